//! Who has the least key: a tournament of all seats.
//!
//! ```text
//!   position 1            C                the least of all
//!            2 3       A     C             each the lesser of the two below it
//!            4 … 7    A  B  C  –           the seats; nobody at the last one
//! ```
//!
//! A key that changes plays again, once a row and upwards: as many comparisons as there are rows,
//! wherever it was. So to serve the least and to put it back with a later key is one pass, and no
//! place in a heap has to be kept for anybody.

use super::node::NodeId;
use super::service::Vtime;

/// The order of service: the least start first; of equal ones the tag that was made first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) start: Vtime,
    pub(super) sequence: u64,
}

impl Key {
    /// After all others: nobody has it.
    const LAST: Self = Self { start: Vtime::LAST, sequence: u64::MAX };

    /// Returns whether it is less. Keys are compared more often than anything else, and equal
    /// starts are rare.
    #[inline]
    fn is_before(&self, other: &Self) -> bool {
        self.start < other.start || (self.start == other.start && self.sequence < other.sequence)
    }
}

/// The place of a competitor. It is the same in tournaments of different directions.
pub(super) type Seat = u32;

/// Who sits somewhere, with which key.
#[derive(Clone, Copy, Debug)]
struct Competitor {
    key: Key,
    node: NodeId,
}

impl Competitor {
    fn nobody() -> Self {
        Self { key: Key::LAST, node: NodeId::default() }
    }
}

/// The competitors by seat, and who wins against whom.
#[derive(Debug)]
pub(super) struct Tournament {
    /// Who wins against all.
    first: Competitor,
    /// A power of two of seats, or none.
    seats: Vec<Competitor>,
    /// The seat that wins at each position. Below position i are 2 i and 2 i + 1; the seats
    /// themselves begin at position `seats.len()`. There is no position 0.
    winners: Vec<Seat>,
}

impl Default for Tournament {
    fn default() -> Self {
        Self { first: Competitor::nobody(), seats: vec![], winners: vec![] }
    }
}

impl Tournament {
    /// Returns whether nobody competes.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.first.key.sequence == Key::LAST.sequence
    }

    /// The least key, and who has it.
    #[inline]
    pub(super) fn least(&self) -> Option<(Key, NodeId)> {
        let Competitor { key, node } = self.first;
        (!self.is_empty()).then_some((key, node))
    }

    /// Has a node compete with that key.
    #[inline]
    pub(super) fn set(&mut self, seat: Seat, key: Key, node: NodeId) {
        if seat as usize >= self.seats.len() {
            self.make_room(seat);
        }
        self.play(seat, Competitor { key, node });
    }

    /// Has nobody compete at a seat.
    #[inline]
    pub(super) fn clear(&mut self, seat: Seat) {
        self.play(seat, Competitor::nobody());
    }

    /// Puts a competitor on a seat, and decides again whatever depends on that.
    #[inline]
    fn play(&mut self, seat: Seat, competitor: Competitor) {
        self.seats[seat as usize] = competitor;
        let (mut winner, mut best) = (seat, &self.seats[seat as usize]);
        let mut at = self.seats.len() + seat as usize;
        while at > 1 {
            let other = self.winners[at ^ 1];
            let rival = &self.seats[other as usize];
            if rival.key.is_before(&best.key) {
                (winner, best) = (other, rival);
            }
            at /= 2;
            if winner != seat && self.winners[at] == winner {
                return; // Further up nothing depended on this seat.
            }
            self.winners[at] = winner;
        }
        self.first = *best;
    }

    /// Doubles the seats until there is that one.
    #[cold]
    fn make_room(&mut self, seat: Seat) {
        let count = (seat + 1).next_power_of_two();
        self.seats.resize(count as usize, Competitor::nobody());
        self.winners = vec![0; 2 * count as usize];
        for seat in 0..count {
            self.winners[(count + seat) as usize] = seat;
        }
        for at in (1..count as usize).rev() {
            let [left, right] = [2 * at, 2 * at + 1].map(|below| self.winners[below]);
            let key = |seat: Seat| self.seats[seat as usize].key;
            self.winners[at] = if key(right) < key(left) { right } else { left };
        }
    }

    /// All competitors, by seat.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Seat, Key, NodeId)> {
        let all = (0..).zip(&self.seats).map(|(seat, one)| (seat, one.key, one.node));
        all.filter(|(_, key, _)| *key != Key::LAST)
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
        fn any_tournament_is_won_by_the_least_key(
            steps in proptest::collection::vec((0_u32..20, 0_u32..6, any::<bool>()), 0..300),
        ) {
            let mut tournament = Tournament::default();
            let mut model = BTreeMap::new();
            for (sequence, (seat, ops, leaves)) in (1..).zip(steps) {
                if !leaves {
                    let start = Vtime::ZERO.advanced(Units::ops(ops), 1);
                    let key = Key { start, sequence };
                    tournament.set(seat, key, NodeId::default());
                    model.insert(seat, key);
                } else if model.remove(&seat).is_some() {
                    tournament.clear(seat);
                }
                let least = tournament.least().map(|(key, _)| key);
                prop_assert_eq!(least, model.values().min().copied());
                let all = tournament.iter().map(|(seat, key, _)| (seat, key));
                prop_assert!(all.eq(model.iter().map(|(&seat, &key)| (seat, key))));
            }
        }
    }
}
