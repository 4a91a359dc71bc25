//! Numbers that a seed decides.

use std::ops::Range;

/// Sebastiano Vigna's `SplitMix64`: enough for tests, and the same everywhere.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// One of the range.
    pub(crate) fn of(&mut self, range: Range<u64>) -> u64 {
        range.start + self.next() % (range.end - range.start)
    }

    /// An index into something of that length.
    pub(crate) fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.of(0..len as u64)).expect("less than a length")
    }

    /// True once in `times`, on average.
    pub(crate) fn once_in(&mut self, times: u64) -> bool {
        self.of(0..times) == 0
    }
}
