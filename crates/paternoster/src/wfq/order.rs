//! The order of service: who competes for it by which tag, and what service costs a tag.
//!
//! ```text
//!   something waits   follow         context ─▶ own ─▶ group ─▶ … each gets a tag and a seat, up
//!                                    to the first that had one
//!   served            charge_path    context ─▶ own ─▶ group ─▶ … ─▶ root: each tag advances; who
//!                                    has nothing left loses its seat
//! ```
//!
//! What waits below a node is noted where it changes, so that one which is served and has more
//! waiting is put back among its siblings without a look at anything else.

use super::directions::Directions;
use super::limits::Parked;
use super::node::{Kind, NodeId, SiblingsId, Tree};
use super::service::{Units, Vtime};
use crate::request::{Direction, Request};
use crate::time::{Instant, Nanos};
use crate::trace::ShareOf;

/// What becomes of a node, for the trace.
#[derive(Clone, Copy, Debug)]
pub(super) enum Change {
    /// It became active.
    Busy(Entered),
    /// A cap holds some of what waits below it, until then.
    Held(ShareOf, Instant),
    /// No cap does any more.
    Released(ShareOf),
}

/// A node that became active.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entered {
    /// Who it is.
    pub(super) whom: ShareOf,
    /// Its tag.
    pub(super) start: Vtime,
    /// The virtual time among its siblings.
    pub(super) v: Vtime,
    /// How far ahead of v it starts, in its own units.
    pub(super) lag: Units,
}

/// A request that is dispatched, as those are charged whose share it is of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Served<'a> {
    pub(super) request: &'a Request,
    /// What it costs; nothing if it was charged before.
    pub(super) charge: Units,
    /// A reservation brought it forward: of the nodes from this one upwards.
    pub(super) reserved: Option<NodeId>,
}

impl Tree {
    /// Puts a node, and those above it, where they are in the order of service now: something began
    /// to wait below it, or ceased to, or a cap holds it, or no longer.
    pub(super) fn follow(
        &mut self,
        from: NodeId,
        now: Instant,
        grace: Nanos,
        mut emit: impl FnMut(Change),
    ) {
        let mut at = from;
        let some_parked = self.limits.hold_some();
        while let Some(among) = self.nodes[at].among {
            let (to, parked) = self.park(at, now);
            if parked != Parked::AsBefore {
                self.note_parked(at, parked, &mut emit);
            }
            if to == self.nodes[at].active {
                break;
            }
            if self.nodes[at].seat.is_none() {
                emit(Change::Busy(self.enter(at, among, now, grace)));
            }
            at = self.compete(at, among, to, now);
        }
        if self.limits.at_root() {
            self.follow_root(at, now, &mut emit);
        }
        if some_parked {
            self.note_held_of(from, &mut emit);
        }
    }

    /// Parks the root, if `at` is that, or frees it.
    #[cold]
    #[inline(never)]
    fn follow_root(&mut self, at: NodeId, now: Instant, emit: &mut impl FnMut(Change)) {
        if self.nodes[at].among.is_none() {
            let parked = self.park_root(at, now);
            self.note_parked(at, parked, emit);
        }
    }

    /// Emits until when caps hold the own requests that a context is of, if that has changed.
    #[inline(never)]
    fn note_held_of(&mut self, context: NodeId, emit: &mut impl FnMut(Change)) {
        if let Kind::Context(context) = &self.nodes[context].kind {
            self.note_held(context.own, emit);
        }
    }

    /// Gives a node that becomes active its tag and its seat.
    fn enter(&mut self, at: NodeId, among: SiblingsId, now: Instant, grace: Nanos) -> Entered {
        let (siblings, node) = (&mut self.siblings[among], &mut self.nodes[at]);
        self.tags += 1;
        node.sequence = self.tags;
        node.start = siblings.entry(node.start, now, grace);
        node.seat = Some(siblings.take_seat());
        let v = siblings.v();
        let lag = node.start.ahead_of(v, node.weight);
        Entered { whom: node.whom(), start: node.start, v, lag }
    }

    /// Has a node, which has a seat, compete in those directions alone, by its tag as it is now.
    /// Returns the node above it, which notes it if something else waits below it now.
    #[inline]
    fn compete(&mut self, at: NodeId, among: SiblingsId, to: Directions, now: Instant) -> NodeId {
        let (siblings, node) = (&mut self.siblings[among], &mut self.nodes[at]);
        let seat = node.seat.expect("who competes has a seat");
        let from = std::mem::replace(&mut node.active, to);
        let before = siblings.directions();
        siblings.set(seat, node.tag(at), to);
        if from != to {
            siblings.clear(seat, from - to);
        }
        if to.is_empty() {
            node.seat = None;
            siblings.leave_seat(seat);
        }
        if node.limits.is_some() {
            self.relist(at);
        }
        let siblings = &self.siblings[among];
        let (above, after) = (siblings.of, siblings.directions());
        if after != before {
            self.note_waiting(above, now);
        }
        above
    }

    /// Notes in which directions something waits below a group, or below its own requests.
    fn note_waiting(&mut self, at: NodeId, now: Instant) {
        let node = &mut self.nodes[at];
        node.waiting = match &mut node.kind {
            Kind::Group { members, .. } => self.siblings[*members].directions(),
            Kind::Own { classes, .. } => classes.note_waiting(&self.siblings, now),
            Kind::Context(_) => unreachable!("nothing competes below a context"),
        };
    }

    /// Charges the context and all above it for a request that was taken out of it.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn charge_path(
        &mut self,
        context: NodeId,
        served: &Served<'_>,
        now: Instant,
        grace: Nanos,
        mut emit: impl FnMut(Change),
    ) {
        let direction = self.counts_as(served.request);
        let mut is_reserved = false;
        let mut at = context;
        loop {
            let node = &mut self.nodes[at];
            let Some(among) = node.among else { break };
            let siblings = &mut self.siblings[among];
            siblings.advance_v(direction, now, grace);
            // Asked on its own: `is_some_and` compares the keys at every level all the same.
            if served.reserved.is_some() {
                is_reserved |= served.reserved == Some(at);
            }
            node.start = if is_reserved {
                node.start.brought_forward(siblings.v(), served.charge, node.weight)
            } else {
                node.start.advanced(served.charge, node.weight)
            };
            self.tags += 1;
            node.sequence = self.tags;
            if let Some(seat) = node.seat
                && node.waiting == node.active
                && node.limits.is_none()
            {
                siblings.advance(seat, node.start, node.sequence, node.active);
                at = siblings.of;
            } else {
                at = self.put_back(at, among, served, now, &mut emit);
            }
        }
        if self.limits.at_root() {
            self.count_limited(at, served, now);
            self.follow_root(at, now, &mut emit);
        }
        if self.limits.hold_some() {
            self.note_held_of(context, &mut emit);
        }
    }

    /// Puts a node that was served and charged where it is now: a cap may hold it, or nothing waits
    /// below it. Returns the node above it.
    #[inline(never)]
    fn put_back(
        &mut self,
        at: NodeId,
        among: SiblingsId,
        served: &Served<'_>,
        now: Instant,
        emit: &mut impl FnMut(Change),
    ) -> NodeId {
        self.count_limited(at, served, now);
        let (to, parked) = self.park(at, now);
        let above = self.compete(at, among, to, now);
        if parked != Parked::AsBefore {
            self.note_parked(at, parked, emit);
        }
        above
    }

    /// Counts a request against the caps and the reservation of a node, once.
    fn count_limited(&mut self, at: NodeId, served: &Served<'_>, now: Instant) {
        if let Some(limits) = &mut self.nodes[at].limits
            && served.charge > Units::ZERO
        {
            limits.count(now, served.request, served.charge);
        }
    }

    /// Returns the direction that a request counts as in the order of service.
    #[inline]
    fn counts_as(&self, request: &Request) -> Direction {
        if self.limits.by_direction() { request.direction() } else { Direction::Read }
    }

    /// Charges a node and all above it for work that was no request.
    pub(super) fn charge_work(&mut self, node: NodeId, charge: Units, now: Instant, grace: Nanos) {
        let mut at = node;
        while let Some(among) = self.nodes[at].among {
            let (siblings, node) = (&mut self.siblings[among], &mut self.nodes[at]);
            if node.seat.is_none() {
                // Else the debt would be forgotten as it becomes busy.
                node.start = siblings.entry(node.start, now, grace);
            }
            node.start = node.start.advanced(charge, node.weight);
            if let Some(seat) = node.seat {
                self.tags += 1;
                node.sequence = self.tags;
                siblings.advance(seat, node.start, node.sequence, node.active);
            }
            at = siblings.of;
        }
    }
}
