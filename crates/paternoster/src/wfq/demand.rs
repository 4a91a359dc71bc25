//! How much each tenant has outstanding: waiting, or in the device.
//!
//! A weight has an effect only while the tenant has something waiting. If its requests fit into its
//! part of the device all at once, none waits, and it gets what it can ask for and no more. So who
//! has q outstanding has its weight up to the depth q / its part: the least of these is the *fair
//! depth*, and a deeper queue has to gain more (`depth/trial.rs`).
//!
//! ```text
//!   outstanding    ████████▇▇▇▆▆████▇▇     32 that its clients have asked for
//!   in the device  ▃▃▃▃▃▃▃▃▇▇▇▆▆▃▃▃▃▇▇     its part of the depth, or all that there is
//!                          └dry┘   └dry    nothing waits: others take its places
//! ```
//!
//! Requests on the way to a client and back are not outstanding here. Where a device is done at
//! once (memory, the page cache) that is most of them, and by chance now more, now fewer. So a
//! depth at which a deep tenant was *dry* for a twentieth of the time is too deep as well; not so
//! where the machine is busy, as clients that have lost their core ask for nothing at any depth.

use super::node::{GroupNodes, Node, NodeId, Tree};
use crate::arena::{GroupId, Parallel};
use crate::stats::DemandStats;
use crate::time::{Instant, Nanos};

/// A part of the device: 2³² is all of it.
const WHOLE: u64 = 1 << 32;

/// A thousand of these is one request.
const ONE: u64 = 1000;

/// With so many outstanding a tenant is deep: it means to have something waiting all the time.
const DEEP: u64 = 8 * ONE;

/// With so many it is present, and takes its part.
const PRESENT: u64 = ONE / 2;

/// A tenant that had nothing waiting for more than this part of the time was dry.
const DRY: u128 = 20;

/// In so many measurements in a row: in one alone it may have come, or gone.
const DRY_IN_A_ROW: u32 = 2;

/// For how long a depth at which a tenant was dry is known as such.
const DRY_IS_KNOWN_FOR: Nanos = Nanos::from_secs(10);

/// A depth at which a tenant was dry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TooDeep {
    depth: u32,
    until: Instant,
}

impl TooDeep {
    /// Returns what is known now, where a tenant was dry at a depth, or none was: the least depth
    /// of the last seconds.
    fn known(before: Option<Self>, dry_at: Option<u32>, now: Instant) -> Option<Self> {
        let before = before.filter(|before| now < before.until);
        let found = dry_at.map(|depth| Self { depth, until: now + DRY_IS_KNOWN_FOR });
        match (before, found) {
            (Some(before), Some(found)) if before.depth < found.depth => Some(before),
            (before, found) => found.or(before),
        }
    }
}

/// How many requests a node has outstanding.
#[derive(Clone, Copy, Debug)]
pub(super) struct Demand {
    outstanding: u32,
    /// Those in the device; counted below the root alone.
    in_device: u32,
    /// The moment of the last change.
    since: Instant,
    /// Requests × ns since `measured_since`.
    sum: u128,
    measured_since: Instant,
    /// For how long since then it had nothing waiting; of nodes below the root.
    dry: Nanos,
    /// In how many measurements in a row it was dry.
    dry_in: u32,
    /// Requests × ns until then.
    measured: Nanos,
    /// The average of the last measurements, in thousandths.
    mean: u64,
    /// The most at once, in thousandths; it decays.
    peak: u64,
    /// Its part of the device by its weight, among those present. 0 if it is not.
    fraction: u64,
    /// The last round of measurements in which it was present.
    present_in: u64,
}

impl Default for Demand {
    fn default() -> Self {
        Self {
            outstanding: 0,
            in_device: 0,
            since: Instant::START,
            sum: 0,
            measured_since: Instant::START,
            dry: Nanos::ZERO,
            dry_in: 0,
            measured: Nanos::ZERO,
            mean: 0,
            peak: 0,
            fraction: 0,
            present_in: 0,
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

    /// A request of it enters the device.
    #[inline]
    pub(super) fn enter(&mut self, now: Instant) {
        self.sum_up(now);
        self.in_device += 1;
    }

    /// A request of it has left the device, completed or not.
    #[inline]
    pub(super) fn leave(&mut self, now: Instant) {
        self.sum_up(now);
        self.in_device -= 1;
    }

    /// A request of it has completed.
    #[inline]
    pub(super) fn complete(&mut self, now: Instant) {
        self.leave(now);
        self.outstanding -= 1;
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn sum_up(&mut self, now: Instant) {
        if now == self.since {
            return;
        }
        let span = now.saturating_since(self.since);
        self.sum += u128::from(self.outstanding) * u128::from(span.as_nanos());
        if self.outstanding == self.in_device {
            self.dry += span;
        }
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
        // A third less each time.
        self.peak = (self.peak * 66 / 100).max(u64::from(self.outstanding) * ONE);
        self.measured = self.measured_until_now();
        let is_dry = u128::from(self.dry.as_nanos()) * DRY > span;
        self.dry_in = if is_dry { self.dry_in.saturating_add(1) } else { 0 };
        self.dry = Nanos::ZERO;
        self.sum = 0;
        self.measured_since = now;
    }

    /// The time that its requests have been outstanding, up to now.
    fn outstanding_time(mut self, now: Instant) -> Nanos {
        self.sum_up(now);
        self.measured_until_now()
    }

    /// Requests × ns until the last change; beyond 584 years it stays so.
    fn measured_until_now(&self) -> Nanos {
        self.measured + Nanos::new(u64::try_from(self.sum).unwrap_or(u64::MAX))
    }

    #[inline]
    pub(super) fn is_deep(&self) -> bool {
        self.mean >= DEEP
    }

    /// Returns whether it has nothing waiting, but much on the way.
    #[inline]
    pub(super) fn is_absent(&self) -> bool {
        self.outstanding == self.in_device && self.in_device > 0 && self.is_deep()
    }

    /// How many places of `depth` are kept for it while it has nothing waiting, in thousandths: its
    /// part, or as many as it has ever filled, less those that it has.
    pub(super) fn kept_milli(&self, depth: u32) -> u64 {
        let part = (u128::from(depth) * u128::from(ONE) * u128::from(self.fraction)) >> 32;
        let most = self.peak.min(u64::try_from(part).unwrap_or(u64::MAX));
        most.saturating_sub(u64::from(self.in_device) * ONE)
    }

    /// Returns whether it means to have its part of the device, and has not all of it.
    fn competes(&self) -> bool {
        self.is_deep() && (1..WHOLE).contains(&self.fraction)
    }

    /// The depth up to which it always has something waiting; none where it is alone or not deep.
    fn fair_depth(&self) -> Option<u32> {
        let depth = u128::from(self.mean) * 9 / 10 * u128::from(WHOLE);
        self.competes().then(|| {
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

/// What demand says of the depth, as it was last measured.
#[derive(Debug, Default)]
pub(super) struct Contest {
    /// How often demand was measured.
    round: u64,
    /// The depth above which a tenant has all its requests in the device, by how many it has; none
    /// without contest.
    fair_depth: Option<u32>,
    /// A depth at which some tenant was dry a while ago.
    too_deep: Option<TooDeep>,
    /// The greatest depth in force since demand was measured.
    deepest: u32,
}

impl Contest {
    /// The depth above which some tenant has all its requests in the device; none without contest.
    pub(super) fn above(&self) -> Option<u32> {
        let fair = self.too_deep.map(|known| known.depth.saturating_sub(1));
        [fair, self.fair_depth].into_iter().flatten().min()
    }

    /// Takes a depth that is in force from now on.
    pub(super) fn note_depth(&mut self, depth: u32) {
        self.deepest = self.deepest.max(depth);
    }

    /// Returns what a node has outstanding, and what it needs for its weight to hold: its part, by
    /// the weights of those who are present, of the depth that holds.
    pub(super) fn demand_of(
        &self,
        tree: &Tree,
        node: NodeId,
        now: Instant,
        depth: u32,
    ) -> DemandStats {
        DemandStats {
            outstanding: tree.nodes[node].demand.outstanding_time(now),
            needs: entitled(tree, node, self.round).map(|part| places(part, depth)),
        }
    }

    /// Measures the demand of all, and with it who is present and which part is whose, at the depth
    /// in force. Among gaps, that a tenant was dry says nothing of the depth.
    pub(super) fn measure(
        &mut self,
        tree: &mut Tree,
        groups: &Parallel<GroupId, GroupNodes>,
        now: Instant,
        depth: u32,
        among_gaps: bool,
    ) {
        self.round += 1;
        let round = self.round;
        let nodes = || groups.values().flat_map(|nodes| [nodes.own, nodes.node]);
        for at in nodes() {
            tree.nodes[at].demand.measure(now);
        }
        for nodes in groups.values() {
            if tree.nodes[nodes.own].demand.mean >= PRESENT {
                mark_present(tree, nodes.own, round);
            }
        }
        for at in nodes() {
            count_effective(tree, at, round, depth);
        }
        for at in nodes() {
            tree.nodes[at].demand.fraction = fraction(tree, at, round, depth);
        }
        let own = groups.values().map(|nodes| &tree.nodes[nodes.own].demand);
        self.fair_depth = own.filter_map(Demand::fair_depth).min();
        let mut top = groups.values().map(|nodes| &tree.nodes[nodes.top].demand);
        let some_are_dry = top.any(|top| top.competes() && top.dry_in >= DRY_IN_A_ROW);
        let deepest = std::mem::take(&mut self.deepest);
        let dry_at = (some_are_dry && !among_gaps).then_some(deepest);
        self.too_deep = TooDeep::known(self.too_deep, dry_at, now);
    }
}

/// Counts the weights of the node and all above it among their siblings.
fn mark_present(tree: &mut Tree, node: NodeId, round: u64) {
    let mut at = node;
    while tree.nodes[at].demand.present_in != round {
        tree.nodes[at].demand.present_in = round;
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
    if let Some(among) = node.among.filter(|_| node.demand.present_in == round) {
        let present = &mut tree.siblings[among].present;
        present.effective += present.effective_weight(node, depth);
    }
}

/// Returns the node's part of the device, or 0 if it is not present.
fn fraction(tree: &Tree, node: NodeId, round: u64, depth: u32) -> u64 {
    if tree.nodes[node].demand.present_in != round {
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

/// Returns the node's part of the device by the weights of those who are present, whatever they can
/// fill; none if it is not present.
fn entitled(tree: &Tree, node: NodeId, round: u64) -> Option<u64> {
    // Before the first measurement nobody is.
    if round == 0 || tree.nodes[node].demand.present_in != round {
        return None;
    }
    let mut part = WHOLE;
    let mut at = node;
    while let Some(among) = tree.nodes[at].among {
        let siblings = &tree.siblings[among];
        // Its weight may have grown since those of all were counted.
        let weight = u64::from(tree.nodes[at].weight).min(siblings.present.weights);
        part = part * weight / siblings.present.weights.max(1);
        at = siblings.of;
    }
    Some(part)
}

/// Returns how many places of a depth a part is, rounded up; one at least.
fn places(part: u64, depth: u32) -> u32 {
    let places = (u64::from(depth) * part).div_ceil(WHOLE);
    u32::try_from(places).unwrap_or(u32::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(demand.mean, 1500);
        demand.shrink(at(10));
        demand.measure(at(20));
        assert_eq!(demand.mean, 1250, "half of 1.5 and half of 1");
        // 1 for 5 ms, 2 for 5 ms, 1 for 12 ms, of which the last 2 are not measured yet.
        assert_eq!(demand.outstanding_time(at(22)), Nanos::from_millis(27));
        assert_eq!(demand.outstanding_time(at(20)), Nanos::from_millis(25));
    }

    /// Ten requests, of which nine or all are in the device: in each millisecond of `dry` µs all.
    fn dry_for(demand: &mut Demand, from: u64, dry: u64) {
        let at = |micros| Instant::START + Nanos::from_micros(from * 1000 + micros);
        for millis in 0..10 {
            demand.enter(at(millis * 1000));
            demand.leave(at(millis * 1000 + dry));
        }
        demand.measure(at(10_000));
    }

    #[test]
    fn tenant_is_dry_that_had_nothing_waiting_for_a_twentieth_of_two_measurements() {
        let mut demand = Demand { outstanding: 10, in_device: 9, ..Demand::default() };
        for (at, dry, dry_in) in [(0, 50, 0), (10, 51, 1), (20, 51, 2), (30, 50, 0), (40, 90, 1)] {
            dry_for(&mut demand, at, dry);
            assert_eq!(demand.dry_in, dry_in, "after {at} ms");
        }
    }

    #[test]
    fn least_depth_at_which_a_tenant_was_dry_is_known_for_ten_seconds() {
        let at = |secs| Instant::START + Nanos::from_secs(secs);
        let mut known = None;
        for (secs, dry_at, expected) in [
            (0, None, None),
            (1, Some(20), Some(20)),
            (5, Some(25), Some(20)),
            (10, None, Some(20)),
            (11, None, None),
            (12, Some(25), Some(25)),
            (21, Some(18), Some(18)),
            (30, None, Some(18)),
            (31, Some(30), Some(30)),
        ] {
            known = TooDeep::known(known, dry_at, at(secs));
            assert_eq!(known.map(|known| known.depth), expected, "after {secs} s");
        }
    }

    #[test]
    fn part_of_the_depth_is_rounded_up_to_whole_places() {
        assert_eq!([1, 7, 8].map(|sevenths| places(WHOLE * sevenths / 7, 21)), [3, 21, 24]);
        assert_eq!(places(WHOLE * 4 / 7, 20), 12, "11.4");
        assert_eq!(places(1, 1), 1);
        assert_eq!(places(WHOLE, u32::MAX), u32::MAX);
    }
}
