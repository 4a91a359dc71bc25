//! Nodes that compete with each other: the tags of those that have something waiting, and the
//! virtual time that they share.
//!
//! ```text
//!   tag: (start, sequence)       v
//!   ───────────────●──●─────●────┼─●────●──────────▶
//!                  ▲ least: served next
//! ```
//!
//! *v* is the least start at the last dispatch, and never falls. Who becomes busy starts at v: it
//! neither pays for service that others had while it had nothing to do, nor is paid for it. With
//! `grace` it starts where v was that long ago: one that ran empty only for a moment keeps its
//! place.

use super::demand::Present;
use super::directions::Directions;
use super::node::NodeId;
use super::service::Vtime;
use super::tournament::{Seat, Tag, Tournament};
use crate::request::Direction;
use crate::time::{Instant, Nanos};

/// Nodes that compete with each other below one node.
#[derive(Debug)]
pub(super) struct Siblings {
    /// The node that they are below.
    pub(super) of: NodeId,
    /// Their virtual time.
    v: Vtime,
    /// Where v was a moment ago, for `grace`.
    history: History,
    /// Those with something waiting that may be served, by its direction.
    active: [Tournament; 2],
    /// How many seats there are.
    seats: Seat,
    /// Seats that nobody has.
    free: Vec<Seat>,
    /// Of those that are present, in `demand.rs`.
    pub(super) present: Present,
}

impl Siblings {
    pub(super) fn below(of: NodeId) -> Self {
        Self {
            of,
            v: Vtime::ZERO,
            history: History::default(),
            active: Default::default(),
            seats: 0,
            free: vec![],
            present: Present::default(),
        }
    }

    /// Their virtual time.
    pub(super) fn v(&self) -> Vtime {
        self.v
    }

    /// In which directions something waits that may be served.
    #[inline]
    pub(super) fn directions(&self) -> Directions {
        let [reads, writes] = &self.active;
        let mut directions = Directions::empty();
        directions.set(Directions::READ, !reads.is_empty());
        directions.set(Directions::WRITE, !writes.is_empty());
        directions
    }

    /// The one to serve next in one of those directions, and its tag.
    #[inline]
    pub(super) fn first(&self, directions: Directions) -> Option<&Tag> {
        let [reads, writes] = &self.active;
        let of = |direction, tournament: &'_ Tournament| {
            directions.contains(direction) && !tournament.is_empty()
        };
        match (of(Directions::READ, reads), of(Directions::WRITE, writes)) {
            (true, false) => reads.least(),
            (false, true) => writes.least(),
            (true, true) => reads.least().min(writes.least()),
            (false, false) => None,
        }
    }

    /// Returns where a node starts that becomes busy and last stopped at `start`.
    #[inline]
    pub(super) fn entry(&self, start: Vtime, now: Instant, grace: Nanos) -> Vtime {
        start.max(if grace == Nanos::ZERO { self.v } else { self.history.at(now, grace, self.v) })
    }

    /// Gives a seat to a node that becomes active.
    #[inline]
    pub(super) fn take_seat(&mut self) -> Seat {
        self.free.pop().unwrap_or_else(|| {
            self.seats += 1;
            self.seats - 1
        })
    }

    /// Takes back the seat of a node that is active no more.
    #[inline]
    pub(super) fn leave_seat(&mut self, seat: Seat) {
        self.free.push(seat);
    }

    /// Has the node of a seat compete with that tag.
    #[inline]
    pub(super) fn set(&mut self, seat: Seat, tag: Tag, directions: Directions) {
        let [reads, writes] = &mut self.active;
        if directions.contains(Directions::READ) {
            reads.set(seat, tag);
        }
        if directions.contains(Directions::WRITE) {
            writes.set(seat, tag);
        }
    }

    /// Has the node of a seat, which competes in those directions, do so from now on with another
    /// start and sequence.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn advance(
        &mut self,
        seat: Seat,
        start: Vtime,
        sequence: u64,
        directions: Directions,
    ) {
        let [reads, writes] = &mut self.active;
        if directions.contains(Directions::READ) {
            reads.advance(seat, start, sequence);
        }
        if directions.contains(Directions::WRITE) {
            writes.advance(seat, start, sequence);
        }
    }

    /// Has the node of a seat, which competes in those directions, not do so any more.
    #[inline]
    pub(super) fn clear(&mut self, seat: Seat, directions: Directions) {
        let [reads, writes] = &mut self.active;
        if directions.contains(Directions::READ) {
            reads.clear(seat);
        }
        if directions.contains(Directions::WRITE) {
            writes.clear(seat);
        }
    }

    /// One of them is served in that direction: v comes to the least start of those that could be,
    /// its own included.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn advance_v(&mut self, direction: Direction, now: Instant, grace: Nanos) {
        let Some(least) = self.active[direction as usize].least() else { return };
        self.v = self.v.max(least.start);
        if grace > Nanos::ZERO {
            self.history.note(now, grace, self.v);
        }
    }

    /// Those with something waiting that may be served in one of those directions; one in both is
    /// there twice.
    pub(super) fn active(&self, directions: Directions) -> impl Iterator<Item = NodeId> {
        let all = self.active.iter().zip([Directions::READ, Directions::WRITE]);
        let of = all.filter(move |&(_, direction)| directions.contains(direction));
        of.flat_map(|(tournament, _)| tournament.iter()).map(|(_, tag)| tag.node)
    }

    /// Forgets where v was: another `grace` asks for other moments.
    pub(super) fn forget_history(&mut self) {
        self.history = History::default();
    }

    /// Asserts that the active ones are those, at those seats with those tags.
    pub(super) fn check(&self, expected: &[(Seat, Tag, Directions)]) {
        for (tournament, direction) in self.active.iter().zip([Directions::READ, Directions::WRITE])
        {
            let of = expected.iter().filter(|(.., directions)| directions.contains(direction));
            let mut expected: Vec<_> = of.map(|&(seat, tag, _)| (seat, tag)).collect();
            expected.sort_unstable();
            let all: Vec<_> = tournament.iter().collect();
            assert_eq!(all, expected, "who has something waiting competes");
            let least = expected.iter().map(|(_, tag)| tag).min();
            assert_eq!(tournament.least(), least, "the least wins");
        }
        assert_eq!(expected.len() + self.free.len(), self.seats as usize, "seats");
    }
}

/// How many moments are remembered.
const MOMENTS: usize = 8;

/// What v was in the last moments, a quarter of `grace` apart.
#[derive(Debug, Default)]
struct History {
    moments: [Option<(Instant, Vtime)>; MOMENTS],
    /// The place of the newest.
    newest: usize,
}

impl History {
    fn note(&mut self, now: Instant, grace: Nanos, v: Vtime) {
        let apart = Nanos::new(grace.as_nanos() / 4);
        if self.moments[self.newest].is_some_and(|(at, _)| now < at + apart) {
            return;
        }
        self.newest = (self.newest + 1) % MOMENTS;
        self.moments[self.newest] = Some((now, v));
    }

    /// Returns the newest v that is at least `grace` old, else the oldest there is; none is `v`.
    fn at(&self, now: Instant, grace: Nanos, v: Vtime) -> Vtime {
        let backwards = (0..MOMENTS).map(|back| (self.newest + MOMENTS - back) % MOMENTS);
        let mut oldest = v;
        for (at, v) in backwards.filter_map(|place| self.moments[place]) {
            oldest = v;
            if at + grace <= now {
                break;
            }
        }
        oldest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wfq::service::Units;

    const GRACE: Nanos = Nanos::from_millis(1);

    fn at_us(micros: u64) -> Instant {
        Instant::START + Nanos::from_micros(micros)
    }

    fn v(ops: u32) -> Vtime {
        Vtime::ZERO.advanced(Units::ops(ops), 1)
    }

    #[test]
    fn v_of_a_moment_ago_is_the_newest_that_is_as_old_as_grace() {
        let mut history = History::default();
        assert_eq!(history.at(at_us(0), GRACE, v(7)), v(7), "nothing is known");
        for step in 0..8 {
            history.note(at_us(u64::from(step) * 250), GRACE, v(step));
            history.note(at_us(u64::from(step) * 250 + 100), GRACE, v(99)); // too soon
        }
        assert_eq!(history.at(at_us(1750), GRACE, v(100)), v(3), "noted at 750 µs");
        assert_eq!(history.at(at_us(1999), GRACE, v(100)), v(3), "at 1000 µs is too new");
        assert_eq!(history.at(at_us(900), GRACE, v(100)), v(0), "the oldest there is");
    }
}
