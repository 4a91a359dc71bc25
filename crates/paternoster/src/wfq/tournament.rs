//! Who has the least tag: a tournament of all seats.
//!
//! ```text
//!   position 1            C                the least of all
//!            2 3       A     C             each the lesser of the two below it
//!            4 … 7    A  B  C  –           the seats; nobody at the last one
//! ```
//!
//! A tag that changes plays again, once a row and upwards: as many comparisons as there are rows,
//! wherever it was. So to serve the least and to put it back with a later tag is one pass, and no
//! place in a heap has to be kept for anybody.

use super::node::NodeId;
use super::service::Vtime;

/// The tag of a node, by which it competes: the least start first; of equal ones the tag that was
/// made first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Tag {
    pub(super) start: Vtime,
    /// How many tags were made before it in the tree; all ones of nobody.
    pub(super) sequence: u64,
    pub(super) node: NodeId,
}

impl Tag {
    /// After all others.
    fn of_nobody() -> Self {
        Self { start: Vtime::LAST, sequence: u64::MAX, node: NodeId::default() }
    }

    /// Returns whether it is served before the other one. Nothing is done as often as this.
    #[inline]
    fn is_before(&self, other: &Self) -> bool {
        self.start < other.start || (self.start == other.start && self.sequence < other.sequence)
    }
}

/// The place of a competitor. It is the same in tournaments of different directions.
pub(super) type Seat = u32;

/// The tags by seat, and who wins against whom.
#[derive(Debug)]
pub(super) struct Tournament {
    /// The least of all.
    first: Tag,
    /// A power of two of seats, or none.
    seats: Vec<Tag>,
    /// The seat that wins at each position. Below position i are 2 i and 2 i + 1; the seats
    /// themselves begin at position `seats.len()`. There is no position 0.
    winners: Vec<Seat>,
}

impl Default for Tournament {
    fn default() -> Self {
        Self { first: Tag::of_nobody(), seats: vec![], winners: vec![] }
    }
}

impl Tournament {
    /// Returns whether nobody competes.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.first.sequence == u64::MAX
    }

    /// The least tag.
    #[inline]
    pub(super) fn least(&self) -> Option<&Tag> {
        (!self.is_empty()).then_some(&self.first)
    }

    /// Has a node compete with that tag.
    #[inline]
    pub(super) fn set(&mut self, seat: Seat, tag: Tag) {
        if seat as usize >= self.seats.len() {
            self.make_room(seat);
        }
        self.put(seat, tag);
    }

    /// Has nobody compete at a seat.
    #[inline]
    pub(super) fn clear(&mut self, seat: Seat) {
        self.put(seat, Tag::of_nobody());
    }

    /// Puts a tag on a seat.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn put(&mut self, seat: Seat, tag: Tag) {
        self.seats[seat as usize] = tag;
        if self.seats.len() == 1 {
            self.first = tag;
        } else {
            self.play(seat, tag);
        }
    }

    /// Decides again whatever depends on a seat, on which that tag is now.
    #[inline(never)]
    fn play(&mut self, seat: Seat, tag: Tag) {
        let Self { first, seats, winners } = self;
        let (mut winner, mut least) = (seat, &tag);
        let mut at = seats.len() + seat as usize;
        while at > 1 {
            let other = winners[at ^ 1];
            let rival = &seats[other as usize];
            at /= 2;
            if rival.is_before(least) {
                (winner, least) = (other, rival);
                if winners[at] == winner {
                    return; // Further up nothing depended on this seat.
                }
            }
            winners[at] = winner;
        }
        *first = *least;
    }

    /// Doubles the seats until there is that one.
    #[cold]
    fn make_room(&mut self, seat: Seat) {
        let count = (seat + 1).next_power_of_two();
        self.seats.resize(count as usize, Tag::of_nobody());
        self.winners = vec![0; 2 * count as usize];
        for seat in 0..count {
            self.winners[(count + seat) as usize] = seat;
        }
        for at in (1..count as usize).rev() {
            let [left, right] = [2 * at, 2 * at + 1].map(|below| self.winners[below]);
            let tag = |seat: Seat| &self.seats[seat as usize];
            self.winners[at] = if tag(right).is_before(tag(left)) { right } else { left };
        }
    }

    /// All tags, by seat.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Seat, Tag)> {
        (0..).zip(self.seats.iter().copied()).filter(|(_, tag)| *tag != Tag::of_nobody())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wfq::service::Units;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// Equal starts are frequent, and seats are taken in any order.
        #[test]
        fn any_tournament_is_won_by_the_least_tag(
            steps in proptest::collection::vec((0_u32..20, 0_u32..6, any::<bool>()), 0..300),
        ) {
            let mut tournament = Tournament::default();
            let mut model = BTreeMap::new();
            for (sequence, (seat, ops, leaves)) in (1..).zip(steps) {
                if !leaves {
                    let start = Vtime::ZERO.advanced(Units::ops(ops), 1);
                    let tag = Tag { start, sequence, node: NodeId::default() };
                    tournament.set(seat, tag);
                    model.insert(seat, tag);
                } else if model.remove(&seat).is_some() {
                    tournament.clear(seat);
                }
                prop_assert_eq!(tournament.least(), model.values().min());
                let expected = model.iter().map(|(&seat, &tag)| (seat, tag));
                prop_assert!(tournament.iter().eq(expected));
            }
        }
    }
}
