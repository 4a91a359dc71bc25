//! Classes of I/O whose completion times are kept apart: by direction and by size.
//!
//! ```text
//!   class   0 1   2 3   4 5   6 7   8 9   10 11   12 13   14 15
//!   bytes   512   1 K   2 K   4 K   8 K    16 K    32 K   64 K and more
//! ```
//!
//! Even classes are reads, odd ones writes. These are the buckets of Linux 4.12 to 6.3, which are
//! shown in debugfs as `poll_stat`.

use std::fmt;

use crate::request::{Direction, SectorCount};

/// A class of I/O: its direction, and its size to the power of two below.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PollClass(u8);

impl PollClass {
    /// The number of classes.
    pub const COUNT: usize = 16;

    /// Returns the class of an I/O; none where it has no sectors.
    ///
    /// ```
    /// use paternoster::poll::PollClass;
    /// use paternoster::{Direction, SectorCount};
    ///
    /// let class = PollClass::of(Direction::Read, SectorCount(8)).expect("it has sectors");
    /// assert_eq!(class.index(), 6);
    /// assert_eq!(class.to_string(), "read (4096 Bytes)");
    /// ```
    #[allow(clippy::cast_possible_truncation)] // it is below 7
    pub const fn of(direction: Direction, sectors: SectorCount) -> Option<Self> {
        let Some(power) = sectors.0.checked_ilog2() else { return None };
        let size = if power < 7 { power as u8 } else { 7 };
        Some(Self(2 * size + direction as u8))
    }

    /// Its number, from 0.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// Its direction.
    pub const fn direction(self) -> Direction {
        if self.0.is_multiple_of(2) { Direction::Read } else { Direction::Write }
    }

    /// The size of the smallest I/O of the class.
    pub const fn sectors(self) -> SectorCount {
        SectorCount(1 << (self.0 / 2))
    }

    /// All of them, in the order of their numbers.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..16).map(Self)
    }
}

/// As Linux shows it in `poll_stat`.
impl fmt::Display for PollClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let direction = match self.direction() {
            Direction::Read => "read",
            Direction::Write => "write",
        };
        write!(f, "{direction} ({} Bytes)", self.sectors().bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(direction: Direction, sectors: u32) -> Option<usize> {
        PollClass::of(direction, SectorCount(sectors)).map(PollClass::index)
    }

    #[test]
    fn class_is_twice_the_power_of_two_and_the_direction() {
        assert_eq!(index(Direction::Read, 2048), Some(14), "1 MiB");
        assert_eq!(index(Direction::Write, 128), Some(15), "64 KiB");
        assert_eq!(index(Direction::Read, 127), Some(12), "a sector less than that");
        assert_eq!(index(Direction::Read, 8), Some(6), "4 KiB");
        assert_eq!(index(Direction::Write, 1), Some(1), "512 B");
        assert_eq!(index(Direction::Write, 0), None);
        assert_eq!(index(Direction::Write, u32::MAX), Some(15));
    }
}
