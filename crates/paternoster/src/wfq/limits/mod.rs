//! Caps and reservations: what a group may have at most, and has at least, whatever its weight.
//!
//! ```text
//!   cap           may it have a request now?     cap.rs          parked until its clock allows it
//!   reservation   is it behind its rate?         reservation.rs  served before all others
//!
//!   root ── A ── …            due, least first:   A          a reservation goes first,
//!        └─ B ── …            order of tags:      C B A      then the least tag;
//!        └─ C ── …            parked, by time:    D          whom a cap holds is in neither
//!        └─ D ── …
//! ```
//!
//! A group that has used up a cap leaves the order of service of its siblings, in the direction of
//! that cap alone, and its siblings get what it may not use. It is parked by the time at which it
//! may go on (`parking.rs`). The root competes with nobody: while a cap of the root holds a
//! direction, nothing of that direction is looked for below it.
//!
//! A request that a reservation brings forward is charged as any other: a reservation is a floor,
//! and no extra. Where more is reserved than the device does, all others have a twentieth of it
//! (`others.rs`).

mod cap;
mod held;
mod levels;
mod others;
mod parking;
mod reservation;
mod target;
mod time;

pub(super) use others::Others;
pub(super) use target::{NO_TARGET, Targets};

use super::Wfq;
use super::directions::{BOTH, Directions};
use super::node::{GroupNodes, Kind, NodeId, Tree};
use super::service::Units;
use crate::arena::GroupId;
use crate::group_limits::GroupLimits;
use crate::request::{Direction, Request};
use crate::scheduler::Cx;
use crate::stats::TargetStats;
use crate::time::{Instant, Nanos};
use crate::trace::Trace;

use cap::{Amount, Caps};
use parking::Parking;
use reservation::{Dues, Reservation};
use time::Moment;

/// Whom caps hold, and whom reservations bring forward.
#[derive(Debug)]
pub(super) struct Limits {
    /// How much at once a cap allows, in time at its rate.
    burst: Nanos,
    /// Who waits for a cap.
    parking: Parking,
    /// Who has a reservation, and something waiting.
    dues: Dues,
    /// How many nodes have caps.
    caps: u32,
    /// Heads count by their directions, as some node has caps.
    by_direction: bool,
    /// The root has caps, or is not freed of them yet.
    at_root: bool,
    /// The directions that no cap of the root closes.
    open: Directions,
}

impl Limits {
    pub(super) fn with_burst(burst: Nanos) -> Self {
        Self {
            burst,
            parking: Parking::default(),
            dues: Dues::default(),
            caps: 0,
            by_direction: false,
            at_root: false,
            open: Directions::all(),
        }
    }

    /// Whether heads count by their directions: else all count as reads.
    #[inline]
    pub(super) fn by_direction(&self) -> bool {
        self.by_direction
    }

    /// Whether the root has caps.
    #[inline]
    pub(super) fn at_root(&self) -> bool {
        self.at_root
    }

    /// The directions that no cap of the root closes.
    #[inline]
    pub(super) fn open(&self) -> Directions {
        self.open
    }

    /// Whether a cap holds some node.
    #[inline]
    pub(super) fn hold_some(&self) -> bool {
        !self.parking.is_empty()
    }

    /// When the first of those that caps hold may go on.
    #[inline]
    pub(super) fn hold_until(&self) -> Option<Instant> {
        self.parking.first().map(|(until, _)| until)
    }
}

/// The caps and the reservation of a node.
#[derive(Debug, Default)]
pub(super) struct NodeLimits {
    /// What it may have at most.
    caps: Caps,
    /// What it has at least.
    reservation: Reservation,
    /// It has a cap.
    capped: bool,
    /// Until when it is parked, by direction.
    parked: [Option<Instant>; 2],
    /// Its place among those that are due, while it is active.
    due: Option<Moment>,
}

/// What becomes of a node as it is parked, or freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parked {
    /// It is parked as long as before, or not at all as before.
    AsBefore,
    /// It is parked in one direction at least until then.
    Until(Instant),
    /// It is parked no more.
    NoMore,
}

impl NodeLimits {
    /// Counts a request that was dispatched.
    pub(super) fn count(&mut self, now: Instant, request: &Request, charge: Units) {
        let amount = Amount::of(request);
        self.caps.count(now, amount);
        self.reservation.count(now, amount, charge);
    }

    /// Until when it is parked in one of those directions, if it is.
    fn parked_until(&self, directions: Directions) -> Option<Instant> {
        let of_it = |direction: &Direction| directions.contains((*direction).into());
        BOTH.into_iter().filter(of_it).filter_map(|at| self.parked[at as usize]).max()
    }

    /// The directions in which it is parked.
    fn parked(&self) -> Directions {
        let held = |&direction: &_| self.parked[direction as usize].is_some();
        BOTH.into_iter().filter(held).map(Directions::from).collect()
    }
}

impl<T: Trace> Wfq<T> {
    /// A group has other limits: they hold from the next dispatch on.
    pub(super) fn follow_limits(&mut self, cx: &Cx, group: GroupId) {
        if let Some(nodes) = self.groups.get(group) {
            let limits = cx.groups[group].limits();
            self.limit(cx, nodes.node, limits);
            self.set_target(cx, group, limits.latency_target);
        }
    }

    /// A group has another latency target, or none any more.
    pub(super) fn set_target(&mut self, cx: &Cx, group: GroupId, within: Option<Nanos>) {
        let Some(&GroupNodes { node, .. }) = self.groups.get(group) else { return };
        if !self.targets.set(group, node, within, cx.now) {
            return;
        }
        self.tree.share_mut(node).target = TargetStats::default();
        for (group, nodes) in self.groups.iter_mut() {
            nodes.within = tightest(cx, group);
        }
        if self.targets.is_empty() {
            return;
        }
        let in_device = self.in_flight.iter().filter(|(_, entry)| entry.in_device);
        for (rq, _) in in_device {
            self.targets.enter(self.groups[cx.requests[rq].group].within);
        }
    }

    /// Judges latency targets as a request has completed. While some are held to fewer than the
    /// depth, a trial would measure that.
    pub(super) fn judge_targets(&mut self, cx: &Cx, group: GroupId, latency: Nanos) {
        let Self { targets, tree, depth, trace, .. } = self;
        let tell = &mut |event| trace.event(cx.now, event);
        targets.judge(tree, cx, group, latency, depth.at_rest(), tell);
        if targets.hold_some() {
            depth.stand_still();
        }
    }

    pub(super) fn limit(&mut self, cx: &Cx, node: NodeId, to: &GroupLimits) {
        let known = self.tree.nodes[node].limits.is_some();
        if to.is_none() && !known {
            return;
        }
        // What counts for all heads while there is no cap has to be put right before the first
        // holds, and again only after the last.
        self.tree.limits.caps += u32::from(to.has_caps());
        self.count_by_direction(cx);
        self.tree.limits.caps -= u32::from(self.tree.has_caps(node));
        self.tree.set_limits(node, to, cx.now);
        self.follow_node(cx.now, node);
        self.tree.relist(node);
        self.tree.note_at_root(node, to);
        self.count_by_direction(cx);
    }

    /// Has the heads counted by their directions, if there are caps and if they were not before.
    fn count_by_direction(&mut self, cx: &Cx) {
        let by_direction = self.tree.limits.caps > 0;
        if self.tree.limits.by_direction == by_direction {
            return;
        }
        self.tree.limits.by_direction = by_direction;
        for context in self.tree.contexts().collect::<Vec<_>>() {
            self.follow(cx, context);
        }
    }

    /// Takes over how much at once caps allow. Those that wait go on as it says.
    pub(super) fn set_burst(&mut self, now: Instant) {
        let burst = self.tunables.burst();
        if self.tree.limits.burst != burst {
            self.tree.limits.burst = burst;
            for node in self.tree.limits.parking.nodes() {
                self.follow_node(now, node);
            }
        }
    }

    /// Lets those go on whom a cap held until now.
    #[inline]
    pub(super) fn release(&mut self, now: Instant) {
        while let Some((until, node)) = self.tree.limits.parking.first()
            && until <= now
        {
            self.follow_node(now, node);
        }
    }
}

/// Returns the tightest target of a group and those above it.
fn tightest(cx: &Cx, group: GroupId) -> Nanos {
    let parent = |&group: &GroupId| cx.groups[group].parent;
    let path = std::iter::successors(Some(group), parent);
    let targets = path.filter_map(|group| cx.groups[group].limits().latency_target);
    targets.min().unwrap_or(NO_TARGET)
}

impl Tree {
    fn has_caps(&self, node: NodeId) -> bool {
        self.nodes[node].limits.as_ref().is_some_and(|limits| limits.capped)
    }

    fn set_limits(&mut self, node: NodeId, to: &GroupLimits, now: Instant) {
        let burst = self.limits.burst;
        let node = &mut self.nodes[node];
        let busy = !node.waiting.is_empty();
        self.limits.at_root |= node.among.is_none();
        let limits = node.limits.get_or_insert_default();
        limits.capped = to.has_caps();
        limits.caps.set(to, now, burst, busy);
        limits.reservation.set(to);
    }

    /// Returns in which directions a node may be served, of those in which something waits below
    /// it, and whether it is held otherwise from now on than before. It is parked in the others.
    #[inline]
    pub(super) fn park(&mut self, node: NodeId, now: Instant) -> (Directions, Parked) {
        let waiting = self.nodes[node].waiting;
        if self.nodes[node].limits.is_none() {
            return (waiting, Parked::AsBefore);
        }
        self.park_limited(node, waiting, now)
    }

    fn park_limited(
        &mut self,
        node: NodeId,
        waiting: Directions,
        now: Instant,
    ) -> (Directions, Parked) {
        let limits = self.nodes[node].limits.as_mut().expect("it has limits");
        let before = limits.parked.into_iter().flatten().max();
        for direction in BOTH {
            let ready = limits.caps.ready(direction, self.limits.burst);
            let holds = waiting.contains(direction.into()) && ready > now;
            let to = holds.then_some(ready);
            let from = std::mem::replace(&mut limits.parked[direction as usize], to);
            self.limits.parking.move_to(node, direction, from, to);
        }
        let until = limits.parked.into_iter().flatten().max();
        let open = waiting - limits.parked();
        if let Kind::Group { share, .. } = &mut self.nodes[node].kind {
            share.capped_until(now, until);
        }
        match until {
            _ if until == before => (open, Parked::AsBefore),
            Some(until) => (open, Parked::Until(until)),
            None => (open, Parked::NoMore),
        }
    }

    /// Notes whether the root has caps, if `node` is that and is parked or freed by these already.
    fn note_at_root(&mut self, node: NodeId, limits: &GroupLimits) {
        if self.nodes[node].among.is_none() {
            self.limits.at_root = limits.has_caps();
        }
    }

    /// Parks the root, which has limits, or frees it.
    pub(super) fn park_root(&mut self, root: NodeId, now: Instant) -> Parked {
        let waiting = self.nodes[root].waiting;
        let (open, parked) = self.park_limited(root, waiting, now);
        self.limits.open = Directions::all() - (waiting - open);
        parked
    }

    /// Puts a node where it is due now, if it is active and has a reservation.
    pub(super) fn relist(&mut self, node: NodeId) {
        let is_active = self.nodes[node].is_active();
        let Some(limits) = &mut self.nodes[node].limits else { return };
        let to = limits.reservation.due().filter(|_| is_active);
        let from = std::mem::replace(&mut limits.due, to);
        if from != to {
            self.limits.dues.relist(node, from, to);
        }
    }

    /// Returns the node that is served before all others because of its reservation, and in which
    /// directions.
    #[inline]
    pub(super) fn reserved(&self, now: Instant) -> Option<(NodeId, Directions)> {
        if self.limits.dues.is_empty() { None } else { self.first_due(now) }
    }

    /// The same where some have a reservation, which is seldom: out of the way of all requests.
    #[inline(never)]
    fn first_due(&self, now: Instant) -> Option<(NodeId, Directions)> {
        if self.limits.open.is_empty() {
            return None;
        }
        let reachable = |node| (node, self.reachable(node));
        self.limits.dues.until(now).map(reachable).find(|(_, directions)| !directions.is_empty())
    }

    /// Whether `below` is `node`, or below it.
    pub(super) fn is_within(&self, below: NodeId, node: NodeId) -> bool {
        let mut at = below;
        while at != node {
            let Some(among) = self.nodes[at].among else { return false };
            at = self.siblings[among].of;
        }
        true
    }

    /// Returns in which directions no cap, of the node or above it, holds what waits below it.
    fn reachable(&self, node: NodeId) -> Directions {
        let mut directions = self.limits.open();
        let mut at = node;
        while let Some(among) = self.nodes[at].among {
            directions &= self.nodes[at].active;
            at = self.siblings[among].of;
        }
        directions
    }

    /// Asserts that who has something waiting that a cap holds is parked, and who is active and has
    /// a reservation is listed.
    pub(super) fn check_limits(&self) {
        let mut counts = (0, 0, 0);
        for node in self.nodes.values() {
            let Some(limits) = &node.limits else { continue };
            counts.0 += limits.parked.iter().flatten().count();
            counts.1 += usize::from(limits.due.is_some());
            counts.2 += u32::from(limits.capped);
            let waiting = node.waiting;
            assert!(waiting.contains(limits.parked()), "who is parked has something waiting");
            let is_root = node.among.is_none();
            let is_active = node.active == waiting - limits.parked();
            assert!(is_root || is_active, "it is active else");
            let listed = limits.reservation.due().filter(|_| node.is_active());
            assert_eq!(limits.due, listed, "who is active is listed where it is due");
        }
        let expected = (self.limits.parking.count(), self.limits.dues.count(), self.limits.caps);
        assert_eq!(counts, expected, "parked, listed, with caps");
    }
}
