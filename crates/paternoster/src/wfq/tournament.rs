//! Who has the least tag: a tournament of all seats.
//!
//! ```text
//!   position 1            C                the least of all
//!            2 3      [ A   C ]            each the lesser of the pair below it
//!            4 … 7   [A B] [C –]           the seats; nobody at the last one
//! ```
//!
//! A tag that changes plays again, once a row and upwards: as many comparisons as there are rows,
//! wherever it was. So to serve the least and to put it back with a later tag is one pass, and no
//! place in a heap has to be kept for anybody.

use std::slice;

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
    /// How many seats there are: none, or a power of two.
    count: Seat,
    /// Their tags; the tag of an only seat is `first`.
    seats: Vec<Tag>,
    /// The seats that win at positions 2 i and 2 i + 1, and play against each other for position i.
    /// The seats themselves begin at position `count`. Pair 0 is not used.
    pairs: Vec<[Seat; 2]>,
}

impl Default for Tournament {
    fn default() -> Self {
        Self { first: Tag::of_nobody(), count: 0, seats: vec![], pairs: vec![] }
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
        if seat >= self.count {
            self.make_room(seat);
        }
        self.put(seat, tag);
    }

    /// Has the node of a seat, which competes, do so from now on with another start and sequence.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn advance(&mut self, seat: Seat, start: Vtime, sequence: u64) {
        debug_assert!(seat < self.count, "who competes has a seat");
        let is_only = self.count == 1;
        let tag = if is_only { &mut self.first } else { &mut self.seats[seat as usize] };
        (tag.start, tag.sequence) = (start, sequence);
        if !is_only {
            self.play(seat);
        }
    }

    /// Has nobody compete at a seat.
    #[inline]
    pub(super) fn clear(&mut self, seat: Seat) {
        self.put(seat, Tag::of_nobody());
    }

    /// Puts a tag on a seat.
    #[inline]
    fn put(&mut self, seat: Seat, tag: Tag) {
        debug_assert!(seat < self.count, "there is that seat");
        if self.count == 1 {
            self.first = tag;
        } else {
            self.seats[seat as usize] = tag;
            self.play(seat);
        }
    }

    /// Decides again whatever depends on a seat, which is not the only one.
    #[inline(never)]
    fn play(&mut self, seat: Seat) {
        let Self { first, seats, pairs, .. } = self;
        let (mut winner, mut least) = (seat, &seats[seat as usize]);
        let mut at = seats.len() + seat as usize;
        while at > 1 {
            let pair = &mut pairs[at / 2];
            if winner != seat && pair[at % 2] == winner {
                return; // It has won here before: further up nothing depended on the seat.
            }
            pair[at % 2] = winner;
            let other = pair[1 - at % 2];
            let rival = &seats[other as usize];
            if rival.is_before(least) {
                (winner, least) = (other, rival);
            }
            at /= 2;
        }
        *first = *least;
    }

    /// Doubles the seats until there is that one.
    #[cold]
    fn make_room(&mut self, seat: Seat) {
        let known: Vec<_> = self.iter().collect();
        self.count = (seat + 1).next_power_of_two();
        if self.count == 1 {
            return;
        }
        self.seats.resize(self.count as usize, Tag::of_nobody());
        for (seat, tag) in known {
            self.seats[seat as usize] = tag;
        }
        let mut winners: Vec<_> = (0..self.count).chain(0..self.count).collect();
        for at in (1..self.count as usize).rev() {
            let [left, right] = [2 * at, 2 * at + 1].map(|below| winners[below]);
            let tag = |seat: Seat| &self.seats[seat as usize];
            winners[at] = if tag(right).is_before(tag(left)) { right } else { left };
        }
        self.pairs = winners.as_chunks().0.to_vec();
    }

    /// All tags, by seat.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Seat, Tag)> {
        let tags = if self.count == 1 { slice::from_ref(&self.first) } else { &self.seats };
        (0..).zip(tags.iter().copied()).filter(|(_, tag)| *tag != Tag::of_nobody())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wfq::service::Units;
    use proptest::prelude::*;
    use slotmap::KeyData;
    use std::collections::BTreeMap;

    /// So many nodes, each another one.
    fn nodes(count: u64) -> Vec<NodeId> {
        (1..=count).map(|index| KeyData::from_ffi(1 << 32 | index).into()).collect()
    }

    proptest! {
        /// Equal starts are frequent, and seats are taken in any order.
        #[test]
        fn any_tournament_is_won_by_the_least_tag(
            seats in 1_u32..20,
            steps in proptest::collection::vec(
                (any::<u32>(), 0_u32..6, proptest::bool::weighted(0.3)),
                0..300,
            ),
        ) {
            let nodes = nodes(20);
            let mut tournament = Tournament::default();
            let mut model = BTreeMap::new();
            for (sequence, (seat, ops, leaves)) in (1..).zip(steps) {
                let seat = seat % seats;
                if !leaves {
                    let start = Vtime::ZERO.advanced(Units::ops(ops), 1);
                    let tag = Tag { start, sequence, node: nodes[seat as usize] };
                    if model.insert(seat, tag).is_some() {
                        tournament.advance(seat, start, sequence);
                    } else {
                        tournament.set(seat, tag);
                    }
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
