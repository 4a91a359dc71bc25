//! Which reads go on where others ended, and what the controller reads ahead of them.
//!
//! ```text
//!   units     ┊                          ┊                     ┊
//!   read 1   read 2   read 3                the third in a row: a stream
//!   ├──────┤├──────┤├──────┤├────────────┤
//!                           read 4 … read n├────────────────────┤
//!                                  ├─ low ─┤
//! ```
//!
//! When less than the low mark of what was read ahead is left, it reads on to the end of the unit:
//! units are equally long parts of the array. They are large, so that each disk has much to read
//! where its head is.

use std::ops::Range;

use paternoster::{Sector, SectorCount};

/// When and how far the controller reads ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefetch {
    /// The read in a row with which it begins, at least the first.
    pub from_read: u32,
    /// How long a unit is; 0 is not reading ahead.
    pub unit: SectorCount,
    /// It reads the next one when less than this is left.
    pub low: SectorCount,
    /// How many streams it knows; the one not read for longest is forgotten for another.
    pub streams: usize,
}

/// Reads in a row.
#[derive(Clone, Copy, Debug)]
struct Stream {
    /// The end of the last one.
    end: Sector,
    /// How many there were.
    reads: u32,
    /// The end of what was read ahead.
    ahead: Sector,
}

/// The streams.
#[derive(Clone, Debug)]
pub(super) struct Streams {
    by: Prefetch,
    /// The most recently read first.
    recent: Vec<Stream>,
}

impl Streams {
    pub(super) fn new(by: Prefetch) -> Self {
        Self { by, recent: Vec::new() }
    }

    /// The host reads `range`. Returns what is to be read ahead now.
    pub(super) fn read(&mut self, range: &Range<Sector>) -> Option<Range<Sector>> {
        let goes_on = |stream: &Stream| stream.end == range.start;
        let before = self.recent.iter().position(goes_on).map(|at| self.recent.remove(at));
        let reads = before.map_or(0, |stream| stream.reads).saturating_add(1);
        let first = before.map_or(range.end, |stream| stream.ahead.max(range.end));
        let (unit, low) = (u64::from(self.by.unit.0), u64::from(self.by.low.0));
        let is_low = first.0 - range.end.0 < low.max(1);
        let reads_on = reads >= self.by.from_read && is_low && unit > 0;
        let ahead = if reads_on { Sector((first.0 / unit + 1) * unit) } else { first };
        self.recent.insert(0, Stream { end: range.end, reads, ahead });
        self.recent.truncate(self.by.streams);
        reads_on.then_some(first..ahead)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn streams(from_read: u32, streams: usize) -> Streams {
        let (unit, low) = (SectorCount(100), SectorCount(20));
        Streams::new(Prefetch { from_read, unit, low, streams })
    }

    fn range(first: u64, end: u64) -> Range<Sector> {
        Sector(first)..Sector(end)
    }

    #[test]
    fn third_read_in_a_row_is_a_stream() {
        let mut streams = streams(3, 2);
        assert_eq!(streams.read(&range(0, 8)), None);
        assert_eq!(streams.read(&range(8, 16)), None);
        assert_eq!(streams.read(&range(16, 24)), Some(range(24, 100)));
        assert_eq!(streams.read(&range(26, 34)), None, "it leaves out two");
    }

    #[test]
    fn next_unit_is_read_when_little_is_left() {
        let mut streams = streams(1, 2);
        assert_eq!(streams.read(&range(0, 8)), Some(range(8, 100)));
        assert_eq!(streams.read(&range(8, 80)), None, "20 are left");
        assert_eq!(streams.read(&range(80, 88)), Some(range(100, 200)), "12 are left");
        assert_eq!(streams.read(&range(88, 96)), None);
        assert_eq!(streams.read(&range(96, 300)), Some(range(300, 400)), "it has overtaken");
    }

    #[test]
    fn stream_not_read_for_longest_is_forgotten() {
        let mut streams = streams(2, 2);
        for first in [0, 1000, 2000] {
            assert_eq!(streams.read(&range(first, first + 8)), None);
        }
        assert_eq!(streams.read(&range(2008, 2016)), Some(range(2016, 2100)));
        assert_eq!(streams.read(&range(8, 16)), None);
    }
}
