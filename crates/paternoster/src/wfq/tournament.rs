//! Who has the least key: a tournament of all seats.
//!
//! ```text
//!   position 1            C                the least of all
//!            2 3       A     C             each the lesser of the two below it
//!            4 … 7    A  B  C  –           the seats; nobody at the last one
//! ```
//!
//! A key that changes plays again, once a row and upwards: ⌈log₂ seats⌉ comparisons, wherever it was.
//! So to serve the least and to put it back with a later key is one pass, and no place in a heap has
//! to be kept for anybody.

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
}

/// The place of a competitor. It is the same in tournaments of different directions.
pub(super) type Seat = u32;

/// Who sits somewhere, with which key.
#[derive(Clone, Copy, Debug)]
struct Competitor {
    key: Key,
    node: NodeId,
}

/// The competitors by seat, and who wins against whom.
#[derive(Debug, Default)]
pub(super) struct Tournament {
    /// A power of two of seats, or none.
    seats: Vec<Competitor>,
    /// The seat that wins at each position. Below position i are 2 i and 2 i + 1; the seats
    /// themselves begin at position `seats.len()`. There is no position 0.
    winners: Vec<Seat>,
}

impl Tournament {
    /// Returns whether nobody competes.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.least().is_none()
    }

    /// The least key, and who has it.
    #[inline]
    pub(super) fn least(&self) -> Option<(Key, NodeId)> {
        let &first = self.winners.get(1)?;
        let Competitor { key, node } = self.seats[first as usize];
        (key.sequence != Key::LAST.sequence).then_some((key, node))
    }

    /// Has a node compete with that key.
    #[inline]
    pub(super) fn set(&mut self, seat: Seat, key: Key, node: NodeId) {
        if seat as usize >= self.seats.len() {
            self.make_room(seat);
        }
        self.seats[seat as usize] = Competitor { key, node };
        self.play(seat, key);
    }

    /// Has nobody compete at a seat.
    #[inline]
    pub(super) fn clear(&mut self, seat: Seat) {
        self.seats[seat as usize].key = Key::LAST;
        self.play(seat, Key::LAST);
    }

    /// Decides again whatever depends on a seat, whose key is `key` now.
    #[inline]
    fn play(&mut self, seat: Seat, key: Key) {
        let (mut winner, mut least) = (seat, key);
        let mut at = self.seats.len() + seat as usize;
        while at > 1 {
            let other = self.winners[at ^ 1];
            let others = self.seats[other as usize].key;
            if others < least {
                (winner, least) = (other, others);
            }
            at /= 2;
            let before = std::mem::replace(&mut self.winners[at], winner);
            if before == winner && winner != seat {
                return; // Further up it was never this seat.
            }
        }
    }

    /// Doubles the seats until there is that one.
    #[cold]
    fn make_room(&mut self, seat: Seat) {
        let count = (seat + 1).next_power_of_two();
        let nobody = Competitor { key: Key::LAST, node: NodeId::default() };
        self.seats.resize(count as usize, nobody);
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
