//! Bounds the memory that a tenant holds on one disk.
//!
//! ```text
//!   0                          3/4 of the limit           limit
//!   ├── large: payloads, reads ──┤ at most; one always fits ┤
//!   ├── small: short commands, their replies ───────────────┤ a quarter is theirs alone
//!   ├─ rooms ─┤ of them: at most an eighth
//! ```
//!
//! What is charged is what is held: commands in flight with their data, received payloads, replies
//! that are not sent, and the buffers of all that. Large amounts leave a quarter of the limit to
//! small ones, so that two stalled writes of 32 MiB do not stop a tenant's other clients. While a
//! large amount waits, small ones keep to their quarter: else they might never leave it room.
//! The rooms of streams are kept by idle clients, for ever: all of them together leave place for
//! the largest request and for short commands.

/// Bytes of data up to which a command is small: as much as a stream is received at once.
pub(super) const SMALL_DATA: usize = 64 << 10;

/// Bytes of memory, of one account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Amount {
    Small(usize),
    Large(usize),
    /// Room to receive into, beyond what every connection has; it counts as small.
    Room(usize),
}

impl Amount {
    /// Returns what a command holds that moves so much data, and `more`.
    pub(super) fn of_data(data: usize, more: usize) -> Self {
        if data <= SMALL_DATA { Self::Small(data + more) } else { Self::Large(data + more) }
    }

    pub(super) fn bytes(self) -> usize {
        let (Self::Small(bytes) | Self::Large(bytes) | Self::Room(bytes)) = self;
        bytes
    }
}

/// Bytes that are held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Held {
    /// In small amounts.
    pub(super) small: usize,
    /// In large ones.
    pub(super) large: usize,
    /// In rooms, of `small`.
    pub(super) rooms: usize,
}

impl Held {
    pub(super) fn take(&mut self, amount: Amount) {
        match amount {
            Amount::Small(bytes) => self.small += bytes,
            Amount::Large(bytes) => self.large += bytes,
            Amount::Room(bytes) => {
                self.small += bytes;
                self.rooms += bytes;
            }
        }
    }

    /// Gives back an amount that was taken.
    pub(super) fn give_back(&mut self, amount: Amount) {
        match amount {
            Amount::Small(bytes) => self.small -= bytes,
            Amount::Large(bytes) => self.large -= bytes,
            Amount::Room(bytes) => {
                self.small -= bytes;
                self.rooms -= bytes;
            }
        }
    }

    /// Returns whether nothing is held.
    pub(super) fn is_nothing(self) -> bool {
        self == Self::default()
    }
}

/// The bytes that one tenant holds on one disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Credit {
    limit: usize,
    held: Held,
}

impl Credit {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, held: Held::default() }
    }

    /// Returns whether so much more fits.
    pub(super) fn fits(&self, amount: Amount) -> bool {
        let Self { limit, held: Held { small, large, rooms } } = *self;
        match amount {
            Amount::Small(bytes) => small + large + bytes <= limit || self.fits_in_quarter(bytes),
            Amount::Large(bytes) if large == 0 => small + bytes <= limit || small <= limit / 4,
            Amount::Large(bytes) => {
                small + large + bytes <= limit && large + bytes <= limit / 4 * 3
            }
            Amount::Room(bytes) => rooms + bytes <= limit / 8 && self.fits(Amount::Small(bytes)),
        }
    }

    /// Returns whether so much more, in small amounts, fits into the quarter that is theirs alone.
    pub(super) fn fits_in_quarter(&self, bytes: usize) -> bool {
        self.held.small + bytes <= self.limit / 4
    }

    /// Takes so much, whether it fits or not: some is held already when it is counted.
    pub(super) fn take(&mut self, amount: Amount) {
        self.held.take(amount);
    }

    /// Counts that `now` is held of what was `before`, whether it fits or not.
    pub(super) fn replace(&mut self, before: Held, now: Held) {
        self.held.small = self.held.small - before.small + now.small;
        self.held.large = self.held.large - before.large + now.large;
        self.held.rooms = self.held.rooms - before.rooms + now.rooms;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    /// Takes small amounts as long as they fit: how much.
    fn fill(credit: &mut Credit) -> usize {
        let before = credit.held.small;
        while credit.fits(Amount::Small(4096)) {
            credit.take(Amount::Small(4096));
        }
        credit.held.small - before
    }

    #[test]
    fn small_amounts_fit_up_to_the_limit() {
        let mut credit = Credit::new(MIB);
        assert_eq!(fill(&mut credit), MIB);
        assert!(!credit.fits(Amount::Small(1)));
        credit.held.give_back(Amount::Small(4096));
        assert_eq!(fill(&mut credit), 4096);
    }

    #[test]
    fn large_amounts_leave_a_quarter_to_small_ones() {
        let mut credit = Credit::new(64 * MIB);
        credit.take(Amount::Large(32 * MIB));
        assert!(!credit.fits(Amount::Large(32 * MIB)), "two of them would be all");
        assert!(credit.fits(Amount::Large(16 * MIB)));
        credit.take(Amount::Large(16 * MIB));
        assert!(!credit.fits(Amount::Large(MIB)));
        assert_eq!(fill(&mut credit), 16 * MIB);
    }

    #[test]
    fn the_largest_request_fits_beside_small_ones_whatever_the_limit() {
        let mut credit = Credit::new(32 * MIB);
        credit.take(Amount::Small(8 * MIB));
        let largest = Amount::of_data(32 * MIB, 4096);
        assert!(credit.fits(largest));
        credit.take(largest);
        assert!(!credit.fits(Amount::Large(MIB)));
        assert!(!credit.fits(Amount::Small(4096)));
        credit.held.give_back(Amount::Small(MIB));
        assert_eq!(fill(&mut credit), MIB, "a quarter is for small ones");
    }

    /// Idle clients keep their rooms: a tenant of many once stood still for ever.
    #[test]
    fn rooms_leave_place_for_the_largest_request_and_for_short_commands() {
        let mut credit = Credit::new(32 * MIB);
        while credit.fits(Amount::Room(60 << 10)) {
            credit.take(Amount::Room(60 << 10));
        }
        assert!(credit.held.small > 3 * MIB, "{credit:?}");
        let largest = Amount::of_data(32 * MIB, 4096);
        assert!(credit.fits(largest));
        credit.take(largest);
        assert!(fill(&mut credit) >= 4 * MIB);
    }

    #[test]
    fn small_amounts_that_hold_all_keep_a_large_one_waiting() {
        let mut credit = Credit::new(64 * MIB);
        fill(&mut credit);
        assert!(!credit.fits(Amount::Large(32 * MIB)));
    }
}
