//! What the controller's cache holds, and which of it gives way to something else.
//!
//! ```text
//!   arriving  ──▶  held  ──▶  given up: the segment not used for longest
//!                  wanted: a read waits until all of it is there, so it stays
//!                  pinned: written, and not yet on the disks, so it stays
//! ```
//!
//! Segments are equally long parts of the array. One takes room once something of it is held or
//! arriving, however little.

use std::collections::BTreeMap;
use std::ops::Range;

use paternoster::{Sector, SectorCount};
use rangemap::RangeSet;

/// How the cache is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segmentation {
    /// Segments, at least one.
    pub segments: usize,
    /// Sectors of a segment, at least one.
    pub sectors: SectorCount,
}

/// The cache.
#[derive(Clone, Debug)]
pub(super) struct Cache {
    by: Segmentation,
    held: RangeSet<Sector>,
    arriving: RangeSet<Sector>,
    pinned: RangeSet<Sector>,
    /// What reads wait for, each by itself.
    wanted: Vec<Range<Sector>>,
    /// The segments, by when they were last used.
    recent: BTreeMap<u64, u64>,
    /// When each segment was last used.
    used: BTreeMap<u64, u64>,
    uses: u64,
}

impl Cache {
    pub(super) fn new(by: Segmentation) -> Self {
        Self {
            by,
            held: RangeSet::new(),
            arriving: RangeSet::new(),
            pinned: RangeSet::new(),
            wanted: Vec::new(),
            recent: BTreeMap::new(),
            used: BTreeMap::new(),
            uses: 0,
        }
    }

    /// Whether it holds all of `range`.
    pub(super) fn holds(&self, range: &Range<Sector>) -> bool {
        self.held.gaps(range).next().is_none()
    }

    /// Has `range` used. Returns what of it is neither held nor arriving: the caller fetches that.
    pub(super) fn fetch(&mut self, range: &Range<Sector>) -> Vec<Range<Sector>> {
        self.touch(range);
        let gaps: Vec<_> = self.held.gaps(range).collect();
        let missing: Vec<_> = gaps.iter().flat_map(|gap| self.arriving.gaps(gap)).collect();
        self.arriving.extend(missing.iter().cloned());
        self.make_room();
        missing
    }

    /// `range` has arrived from the disks.
    pub(super) fn arrived(&mut self, range: Range<Sector>) {
        self.arriving.remove(range.clone());
        self.held.insert(range);
    }

    /// A read waits for `range`.
    pub(super) fn want(&mut self, range: Range<Sector>) {
        self.wanted.push(range);
    }

    /// A read that waited for `range` does not wait any more.
    pub(super) fn release(&mut self, range: &Range<Sector>) {
        if let Some(at) = self.wanted.iter().position(|wanted| wanted == range) {
            self.wanted.swap_remove(at);
        }
    }

    /// The host has written `range`.
    pub(super) fn write(&mut self, range: Range<Sector>) {
        self.touch(&range);
        self.held.insert(range.clone());
        self.pinned.insert(range);
        self.make_room();
    }

    /// `range` is on the disks as it is here.
    pub(super) fn unpin(&mut self, range: Range<Sector>) {
        self.pinned.remove(range);
    }

    fn touch(&mut self, range: &Range<Sector>) {
        let each = u64::from(self.by.sectors.0);
        for segment in range.start.0 / each..range.end.0.div_ceil(each) {
            self.uses += 1;
            if let Some(before) = self.used.insert(segment, self.uses) {
                self.recent.remove(&before);
            }
            self.recent.insert(self.uses, segment);
        }
    }

    /// Gives up the segments that were not used for longest, as long as there are too many.
    fn make_room(&mut self) {
        while self.used.len() > self.by.segments {
            let free = self.recent.iter().find(|(_, segment)| self.may_give_up(**segment));
            let Some((&used, &segment)) = free else { return };
            self.recent.remove(&used);
            self.used.remove(&segment);
            self.held.remove(self.sectors(segment));
        }
    }

    fn may_give_up(&self, segment: u64) -> bool {
        let sectors = self.sectors(segment);
        let is_wanted = self.wanted.iter().any(|wanted| overlap(wanted, &sectors));
        !is_wanted && !self.pinned.overlaps(&sectors) && !self.arriving.overlaps(&sectors)
    }

    fn sectors(&self, segment: u64) -> Range<Sector> {
        let each = u64::from(self.by.sectors.0);
        Sector(segment * each)..Sector((segment + 1) * each)
    }
}

/// Whether two ranges have sectors in common.
pub(super) fn overlap(one: &Range<Sector>, other: &Range<Sector>) -> bool {
    one.start < other.end && other.start < one.end
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(first: u64, end: u64) -> Range<Sector> {
        Sector(first)..Sector(end)
    }

    fn cache() -> Cache {
        Cache::new(Segmentation { segments: 2, sectors: SectorCount(10) })
    }

    #[test]
    fn what_is_missing_is_fetched_once() {
        let mut cache = cache();
        assert_eq!(cache.fetch(&range(0, 6)), [range(0, 6)]);
        assert_eq!(cache.fetch(&range(4, 8)), [range(6, 8)]);
        cache.arrived(range(0, 6));
        assert!(cache.holds(&range(1, 6)) && !cache.holds(&range(5, 7)));
        assert!(cache.fetch(&range(0, 8)).is_empty());
    }

    #[test]
    fn segment_not_used_for_longest_gives_way() {
        let mut cache = cache();
        for first in [0, 10] {
            cache.fetch(&range(first, first + 10));
            cache.arrived(range(first, first + 10));
        }
        cache.fetch(&range(0, 1));
        cache.fetch(&range(20, 30));
        assert!(cache.holds(&range(0, 10)));
        assert!(!cache.holds(&range(10, 11)));
    }

    #[test]
    fn what_was_written_stays_until_it_is_on_the_disks() {
        let mut cache = cache();
        cache.write(range(3, 5));
        for first in [10, 20, 30] {
            cache.fetch(&range(first, first + 1));
            cache.arrived(range(first, first + 1));
        }
        assert!(cache.holds(&range(3, 5)));
        cache.unpin(range(3, 5));
        cache.fetch(&range(40, 41));
        assert!(!cache.holds(&range(3, 5)));
    }

    #[test]
    fn what_a_read_waits_for_stays_while_the_rest_of_it_arrives() {
        let mut cache = cache();
        cache.fetch(&range(0, 1));
        cache.want(range(0, 1));
        cache.arrived(range(0, 1));
        for first in [10, 20, 30] {
            cache.fetch(&range(first, first + 1));
            cache.arrived(range(first, first + 1));
        }
        assert!(cache.holds(&range(0, 1)));
        cache.release(&range(0, 1));
        cache.fetch(&range(40, 41));
        assert!(!cache.holds(&range(0, 1)));
    }
}
