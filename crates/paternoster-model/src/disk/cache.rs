//! What the buffer holds: segments, each with sectors that follow one another.
//!
//! ```text
//!   most recent ▶ │ read 800..1180 │ written 96..104 │ read 4000..4281 │ ◀ the one to be taken
//! ```
//!
//! A segment that is too small for what is appended loses its first sectors.

use paternoster::Sector;

use super::head::Range;

/// How the buffer is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segmentation {
    /// Segments, at least one.
    pub segments: usize,
    /// Sectors a segment, at least one.
    pub sectors: u64,
    /// At most this many hold written data, at least one.
    pub write_segments: usize,
    /// Whether writes have segments of their own, which reads never get.
    pub writes_apart: bool,
}

/// Where the data of a segment come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Read,
    Written,
}

/// Names a segment until it is taken for something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentId(u64);

/// Sectors in the buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    pub(super) id: SegmentId,
    pub(super) kind: Kind,
    pub(super) range: Range,
}

/// The segments.
#[derive(Clone, Debug)]
pub(super) struct Segments {
    by: Segmentation,
    /// The most recently used first.
    recent: Vec<Segment>,
    /// How many were taken, for the name of the next.
    made: u64,
}

impl Segments {
    pub(super) fn new(by: Segmentation) -> Self {
        Self { by, recent: Vec::new(), made: 0 }
    }

    /// Sectors a segment.
    pub(super) fn room(&self) -> u64 {
        self.by.sectors
    }

    /// A segment that holds all of `range`.
    pub(super) fn holding(&self, range: Range) -> Option<Segment> {
        self.recent.iter().find(|segment| segment.range.has(range)).copied()
    }

    /// The segment, if it was not taken for something else.
    pub(super) fn segment(&self, id: SegmentId) -> Option<Segment> {
        self.recent.iter().find(|segment| segment.id == id).copied()
    }

    /// Makes it the most recently used.
    pub(super) fn touch(&mut self, id: SegmentId) {
        if let Some(at) = self.recent.iter().position(|segment| segment.id == id) {
            self.recent[..=at].rotate_right(1);
        }
    }

    /// Takes a segment, and drops what was in it.
    pub(super) fn take(&mut self, kind: Kind, range: Range) -> SegmentId {
        let written = |segment: &Segment| segment.kind == Kind::Written;
        let count = |segments: &[Segment], kind| {
            segments.iter().filter(|segment| segment.kind == kind).count()
        };
        if kind == Kind::Written && count(&self.recent, kind) >= self.by.write_segments {
            self.drop_last(written);
        }
        if self.by.writes_apart {
            let read_segments = self.by.segments.saturating_sub(self.by.write_segments).max(1);
            if kind == Kind::Read && count(&self.recent, kind) >= read_segments {
                self.drop_last(|segment| !written(segment));
            }
        } else if self.recent.len() >= self.by.segments {
            self.recent.pop();
        }
        self.made += 1;
        let id = SegmentId(self.made);
        self.recent.insert(0, Segment { id, kind, range: self.fitted(range) });
        id
    }

    fn drop_last(&mut self, like: impl Fn(&Segment) -> bool) {
        if let Some(at) = self.recent.iter().rposition(like) {
            self.recent.remove(at);
        }
    }

    /// Lets the segment hold all up to `end`, or as much of that as it has room for.
    pub(super) fn extend(&mut self, id: SegmentId, end: Sector) {
        let room = self.by.sectors;
        if let Some(segment) = self.recent.iter_mut().find(|segment| segment.id == id) {
            segment.range.end = segment.range.end.max(end);
            let first = segment.range.end.0.saturating_sub(room);
            segment.range.first = segment.range.first.max(Sector(first));
        }
    }

    /// The segment of written data that `range` continues.
    pub(super) fn continued_by(&self, range: Range) -> Option<SegmentId> {
        let ends_there =
            |segment: &&Segment| segment.kind == Kind::Written && segment.range.end == range.first;
        self.recent.iter().find(ends_there).map(|segment| segment.id)
    }

    /// Drops segments that hold some of `range`.
    pub(super) fn forget(&mut self, range: Range) {
        self.recent.retain(|segment| !segment.range.overlaps(range));
    }

    /// The last sectors of `range`, as many as a segment has room for.
    fn fitted(&self, range: Range) -> Range {
        let first = range.end.0.saturating_sub(self.by.sectors);
        Range { first: range.first.max(Sector(first)), end: range.end }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(first: u64, end: u64) -> Range {
        Range { first: Sector(first), end: Sector(end) }
    }

    fn segments(segments: usize, write_segments: usize, writes_apart: bool) -> Segments {
        Segments::new(Segmentation { segments, sectors: 100, write_segments, writes_apart })
    }

    #[test]
    fn segment_not_used_for_longest_is_taken() {
        let mut cache = segments(2, 1, false);
        let first = cache.take(Kind::Read, range(0, 10));
        cache.take(Kind::Read, range(20, 30));
        cache.touch(first);
        cache.take(Kind::Read, range(40, 50));
        assert!(cache.holding(range(0, 10)).is_some());
        assert!(cache.holding(range(20, 30)).is_none());
    }

    #[test]
    fn segment_that_overflows_loses_its_first_sectors() {
        let mut cache = segments(2, 1, false);
        let id = cache.take(Kind::Read, range(0, 10));
        cache.extend(id, Sector(105));
        assert!(cache.holding(range(4, 6)).is_none());
        assert!(cache.holding(range(5, 105)).is_some());
    }

    #[test]
    fn writes_take_no_more_segments_than_they_may() {
        let mut cache = segments(3, 1, false);
        cache.take(Kind::Read, range(0, 10));
        cache.take(Kind::Written, range(20, 30));
        cache.take(Kind::Written, range(40, 50));
        assert!(cache.holding(range(0, 10)).is_some());
        assert!(cache.holding(range(20, 30)).is_none());
    }

    #[test]
    fn segment_of_writes_is_never_taken_for_a_read() {
        let mut cache = segments(2, 1, true);
        cache.take(Kind::Written, range(20, 30));
        cache.take(Kind::Read, range(0, 10));
        cache.take(Kind::Read, range(40, 50));
        assert!(cache.holding(range(20, 30)).is_some());
        assert!(cache.holding(range(0, 10)).is_none());
    }

    #[test]
    fn what_is_partly_forgotten_is_gone() {
        let mut cache = segments(2, 1, false);
        cache.take(Kind::Read, range(0, 10));
        cache.forget(range(9, 12));
        assert!(cache.holding(range(0, 5)).is_none());
    }
}
