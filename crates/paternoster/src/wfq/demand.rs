//! How much each tenant has outstanding: waiting, or in the device.
//!
//! A weight has an effect only while the tenant has something waiting. If its requests fit into its
//! part of the device all at once, none waits, and it gets what it can ask for and no more. So who
//! has q outstanding has its weight up to the depth q / its part: the least of these is the *fair
//! depth*, and a deeper queue has to gain more (`depth/trial.rs`).

use super::Wfq;
use super::node::{Node, NodeId, Tree};
use crate::time::Instant;
use crate::trace::Trace;

/// A part of the device: 2³² is all of it.
pub(super) const WHOLE: u64 = 1 << 32;

/// A thousand of these is one request.
const ONE: u64 = 1000;

/// With so many outstanding a tenant is deep: it means to have something waiting all the time.
const DEEP: u64 = 8 * ONE;

/// With so many it is present, and takes its part.
const PRESENT: u64 = ONE / 2;

/// How many requests a node has outstanding.
#[derive(Clone, Copy, Debug)]
pub(super) struct Demand {
    pub(super) outstanding: u32,
    /// Those in the device.
    pub(super) in_device: u32,
    /// The moment of the last change.
    since: Instant,
    /// Requests × ns since `measured_since`.
    sum: u128,
    measured_since: Instant,
    /// The average of the last measurements, in thousandths.
    mean: u64,
    /// The most at once, in thousandths; it decays.
    peak: u64,
    /// Its part of the device by its weight, among those present. 0 if it is not.
    pub(super) fraction: u64,
}

impl Default for Demand {
    fn default() -> Self {
        Self {
            outstanding: 0,
            in_device: 0,
            since: Instant::START,
            sum: 0,
            measured_since: Instant::START,
            mean: 0,
            peak: 0,
            fraction: 0,
        }
    }
}

impl Demand {
    #[inline]
    pub(super) fn grow(&mut self, now: Instant) {
        self.sum_up(now);
        self.outstanding += 1;
        self.peak = self.peak.max(u64::from(self.outstanding) * ONE);
    }

    #[inline]
    pub(super) fn shrink(&mut self, now: Instant) {
        self.sum_up(now);
        self.outstanding -= 1;
    }

    #[inline]
    fn sum_up(&mut self, now: Instant) {
        let span = now.saturating_since(self.since).as_nanos();
        self.sum += u128::from(self.outstanding) * u128::from(span);
        self.since = now;
    }

    /// Averages what was outstanding since the last call.
    fn measure(&mut self, now: Instant) {
        self.sum_up(now);
        let span = u128::from(now.saturating_since(self.measured_since).as_nanos());
        if span == 0 {
            return;
        }
        let mean = u64::try_from(self.sum * u128::from(ONE) / span).unwrap_or(u64::MAX);
        self.mean = if self.mean == 0 { mean } else { self.mean / 2 + mean / 2 };
        // Eight windows, each a twentieth less.
        self.peak = (self.peak * 66 / 100).max(u64::from(self.outstanding) * ONE);
        self.sum = 0;
        self.measured_since = now;
    }

    /// The average in thousandths.
    #[cfg(test)]
    fn mean_milli(&self) -> u64 {
        self.mean
    }

    #[inline]
    pub(super) fn is_deep(&self) -> bool {
        self.mean >= DEEP
    }

    /// How many places of `depth` are kept for it while it has nothing waiting, in thousandths: its
    /// part, or as many as it has ever filled, less those that it has.
    pub(super) fn kept_milli(&self, depth: u32) -> u64 {
        let part = (u128::from(depth) * u128::from(ONE) * u128::from(self.fraction)) >> 32;
        let most = self.peak.min(u64::try_from(part).unwrap_or(u64::MAX));
        most.saturating_sub(u64::from(self.in_device) * ONE)
    }

    /// The depth up to which it always has something waiting; none where it is alone or not deep.
    fn fair_depth(&self) -> Option<u32> {
        let competes = self.is_deep() && (1..WHOLE).contains(&self.fraction);
        let depth = u128::from(self.mean) * 9 / 10 * u128::from(WHOLE);
        competes.then(|| {
            let depth = depth / (u128::from(self.fraction) * u128::from(ONE));
            u32::try_from(depth).unwrap_or(u32::MAX).max(1)
        })
    }
}

/// The weights of the siblings that are present.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Present {
    round: u64,
    /// Their sum.
    weights: u64,
    /// The sum of what they count: of one that is not deep only as much as it can fill.
    effective: u64,
}

impl Present {
    /// What a node counts: with q outstanding it fills q places of the depth, whatever its weight.
    fn effective_weight(&self, node: &Node, depth: u32) -> u64 {
        let weight = u64::from(node.weight);
        if node.demand.is_deep() || node.demand.mean == 0 {
            return weight;
        }
        let filled = node.demand.mean * self.weights / (u64::from(depth.max(1)) * ONE);
        weight.min(filled.max(1))
    }
}

impl<T: Trace> Wfq<T> {
    /// Measures the demand of all, and with it who is present and which part is whose.
    pub(super) fn measure_demand(&mut self, now: Instant) {
        self.round += 1;
        let (round, depth) = (self.round, self.depth_now);
        let nodes = || self.groups.values().flat_map(|nodes| [nodes.own, nodes.node]);
        for at in nodes() {
            self.tree.nodes[at].demand.measure(now);
        }
        for nodes in self.groups.values() {
            if self.tree.nodes[nodes.own].demand.mean >= PRESENT {
                mark_present(&mut self.tree, nodes.own, round);
            }
        }
        for at in nodes() {
            count_effective(&mut self.tree, at, round, depth);
        }
        for at in nodes() {
            self.tree.nodes[at].demand.fraction = fraction(&self.tree, at, round, depth);
        }
        let own = self.groups.values().map(|nodes| &self.tree.nodes[nodes.own].demand);
        self.fair_depth = own.filter_map(Demand::fair_depth).min();
    }
}

/// Counts the weights of the node and all above it among their siblings.
fn mark_present(tree: &mut Tree, node: NodeId, round: u64) {
    let mut at = node;
    while tree.nodes[at].present_in != round {
        tree.nodes[at].present_in = round;
        let Some(among) = tree.nodes[at].among else { return };
        let weight = u64::from(tree.nodes[at].weight);
        let siblings = &mut tree.siblings[among];
        if siblings.present.round != round {
            siblings.present = Present { round, ..Present::default() };
        }
        siblings.present.weights += weight;
        at = siblings.of;
    }
}

/// Counts what the node can take among its siblings, all of which are marked.
fn count_effective(tree: &mut Tree, node: NodeId, round: u64, depth: u32) {
    let node = &tree.nodes[node];
    if let Some(among) = node.among.filter(|_| node.present_in == round) {
        let present = &mut tree.siblings[among].present;
        present.effective += present.effective_weight(node, depth);
    }
}

/// Returns the node's part of the device, or 0 if it is not present.
fn fraction(tree: &Tree, node: NodeId, round: u64, depth: u32) -> u64 {
    if tree.nodes[node].present_in != round {
        return 0;
    }
    let mut part = WHOLE;
    let mut at = node;
    while let Some(among) = tree.nodes[at].among {
        let siblings = &tree.siblings[among];
        let effective = siblings.present.effective_weight(&tree.nodes[at], depth);
        part = part * effective / siblings.present.effective.max(1);
        at = siblings.of;
    }
    part
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Nanos;

    fn deep(outstanding: u64, fraction: u64) -> Demand {
        Demand { mean: outstanding * ONE, peak: outstanding * ONE, fraction, ..Demand::default() }
    }

    /// Scenario 28: 0.9 × 32 / 0.571.
    #[test]
    fn fair_depth_is_that_at_which_a_tenant_has_nothing_waiting() {
        assert_eq!(deep(32, WHOLE * 4 / 7).fair_depth(), Some(50));
        assert_eq!(deep(7, WHOLE / 2).fair_depth(), None, "it is not deep");
        assert_eq!(deep(32, WHOLE).fair_depth(), None, "it is alone");
    }

    /// Scenario 36: 0.571 × 20 = 11.4, less 9.
    #[test]
    fn places_are_kept_up_to_a_tenant_s_part() {
        let demand = Demand { in_device: 9, ..deep(32, WHOLE * 4 / 7) };
        assert_eq!(demand.kept_milli(20), 2428);
        let demand = Demand { in_device: 9, ..deep(10, WHOLE * 4 / 7) };
        assert_eq!(demand.kept_milli(20), 1000, "it never fills more than 10");
    }

    #[test]
    fn demand_is_averaged_over_time() {
        let at = |millis| Instant::START + Nanos::from_millis(millis);
        let mut demand = Demand::default();
        demand.measure(at(0));
        demand.grow(at(0));
        demand.grow(at(5));
        demand.measure(at(10));
        assert_eq!(demand.mean_milli(), 1500);
        demand.shrink(at(10));
        demand.measure(at(20));
        assert_eq!(demand.mean_milli(), 1250, "half of 1.5 and half of 1");
    }
}
