//! The limits of a device: how large a request may grow, and where a bio must be split.

use crate::request::{Bio, BioFlags, Extent, Op, Request, Sector, SectorCount};
use crate::trace::MergeKind;

/// Limits of a device, by the names of `queue/` in sysfs.
///
/// ```
/// use paternoster::Limits;
///
/// let limits = Limits::default().with_max_sectors(256).with_chunk_sectors(2048);
/// assert_eq!((limits.max_sectors, limits.max_segments), (256, 128));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The largest request (`max_sectors_kb`, here in sectors): 1 to 2³² − 2.
    pub max_sectors: u32,
    /// The largest discard (`discard_max_bytes`, here in sectors): 1 to 2³² − 2.
    pub max_discard_sectors: u32,
    /// The most segments of memory in a request: at least 1.
    pub max_segments: u16,
    /// No request crosses a multiple of this (`chunk_sectors`); 0 is no such limit.
    pub chunk_sectors: u32,
    /// A number of bytes less 1. Two bios may be in one request only if the memory of the first
    /// ends on a multiple of that number. The memory of each bio is assumed to begin on one. 0 is
    /// no such limit.
    pub virt_boundary: u32,
    /// Sectors of a block (`logical_block_size`, here in sectors): at least 1. A bio is split only
    /// where a block ends, and one block is never too large for a request.
    pub block_sectors: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_sectors: 2560,
            max_discard_sectors: 2560,
            max_segments: 128,
            chunk_sectors: 0,
            virt_boundary: 0,
            block_sectors: 1,
        }
    }
}

/// Why two pieces do not fit into one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Their memory would leave a gap, which the device cannot skip.
    Gap,
    /// Too many sectors.
    Size,
    /// Too many segments, or ranges.
    Segments,
}

impl Refusal {
    /// Returns whether what has refused a bio never merges again.
    pub(crate) fn is_for_good(self) -> bool {
        self != Self::Gap
    }
}

/// Returns the end of `extent` at which the bio would merge. Back is tested before front.
#[inline]
pub(crate) fn adjacency(extent: Extent, bio: &Bio) -> Option<MergeKind> {
    if extent.end() == bio.sector {
        Some(MergeKind::Back)
    } else if bio.end() == extent.start {
        Some(MergeKind::Front)
    } else {
        None
    }
}

/// A request that two pieces would make together.
pub(crate) struct Joint {
    pub(super) op: Op,
    /// Where the merged request would start.
    pub(super) start: Sector,
    /// Sectors of the piece that comes first.
    pub(super) first: SectorCount,
    /// Sectors of both.
    pub(super) sectors: SectorCount,
    /// Segments of both; for two discard requests, their ranges.
    pub(super) segments: u32,
}

impl Limits {
    /// Sets the largest request, in sectors.
    #[must_use]
    pub const fn with_max_sectors(self, max_sectors: u32) -> Self {
        Self { max_sectors, ..self }
    }

    /// Sets the largest discard, in sectors.
    #[must_use]
    pub const fn with_max_discard_sectors(self, max_discard_sectors: u32) -> Self {
        Self { max_discard_sectors, ..self }
    }

    /// Sets the most segments of memory in a request.
    #[must_use]
    pub const fn with_max_segments(self, max_segments: u16) -> Self {
        Self { max_segments, ..self }
    }

    /// Sets the number of sectors of which no request crosses a multiple; 0 is no such limit.
    #[must_use]
    pub const fn with_chunk_sectors(self, chunk_sectors: u32) -> Self {
        Self { chunk_sectors, ..self }
    }

    /// Sets the number of bytes, less 1, on a multiple of which memory has to end inside a request;
    /// 0 is no such limit.
    #[must_use]
    pub const fn with_virt_boundary(self, virt_boundary: u32) -> Self {
        Self { virt_boundary, ..self }
    }

    /// Sets the sectors of a block.
    #[must_use]
    pub const fn with_block_sectors(self, block_sectors: u32) -> Self {
        Self { block_sectors, ..self }
    }

    /// Asserts that a request of one sector is allowed, that a block has one, and that a sum of
    /// lengths that saturates is too long.
    pub(crate) fn check(&self) {
        for limit in [self.max_sectors, self.max_discard_sectors] {
            assert!((1..u32::MAX).contains(&limit), "a request has 1 to 2³² − 2 sectors");
        }
        assert!(self.max_segments > 0, "a request has a segment");
        assert!(self.block_sectors > 0, "a block has a sector");
    }

    /// Returns whether the two pieces of `joint` may be one request.
    pub(crate) fn fits(&self, joint: &Joint) -> Result<(), Refusal> {
        if joint.first.bytes() & u64::from(self.virt_boundary) != 0 {
            return Err(Refusal::Gap);
        }
        if joint.sectors > self.max_sectors_at(joint.op, joint.start) {
            return Err(Refusal::Size);
        }
        if joint.segments > self.max_segments_of(joint.op) {
            return Err(Refusal::Segments);
        }
        Ok(())
    }

    /// The joint of a bio and the I/O of its operation on `extent`, of so many segments. A discard
    /// bio adds no segment.
    pub(crate) fn joint_with_bio(
        extent: Extent,
        segments: u16,
        bio: &Bio,
        kind: MergeKind,
    ) -> Joint {
        let (start, first) = match kind {
            MergeKind::Back => (extent.start, extent.sectors),
            MergeKind::Front => (bio.sector, bio.sectors),
        };
        let segments = match bio.op {
            Op::Discard => 1,
            _ => u32::from(segments) + u32::from(bio.segments),
        };
        Joint { op: bio.op, start, first, sectors: extent.sectors + bio.sectors, segments }
    }

    /// The joint of two requests. Two discards have two ranges, one more than is allowed here.
    pub(super) fn joint_of_requests(before: &Request, after: &Request) -> Joint {
        let segments = match before.op {
            Op::Discard => 2,
            _ => u32::from(before.segments) + u32::from(after.segments),
        };
        Joint {
            op: before.op,
            start: before.sector,
            first: before.sectors,
            sectors: before.sectors + after.sectors,
            segments,
        }
    }

    /// The longest request that may start at `start`.
    fn max_sectors_at(&self, op: Op, start: Sector) -> SectorCount {
        // A discard has a limit of its own, and no other.
        if op == Op::Discard {
            return SectorCount(self.max_discard_sectors);
        }
        if self.chunk_sectors == 0 {
            return SectorCount(self.max_sectors);
        }
        let into_chunk = start.0 % u64::from(self.chunk_sectors);
        let left = u32::try_from(u64::from(self.chunk_sectors) - into_chunk)
            .expect("the rest of a chunk is not longer than the chunk");
        SectorCount(self.max_sectors.min(left))
    }

    fn max_segments_of(&self, op: Op) -> u32 {
        match op {
            Op::Discard => 1,
            _ => u32::from(self.max_segments),
        }
    }

    /// Where a bio is split that starts there and is too long: where the last block ends that fits
    /// into a request, or the first one.
    fn split_at(&self, op: Op, start: Sector) -> Sector {
        let longest = self.max_sectors_at(op, start);
        assert!(longest.0 > 0, "a request has a sector");
        let block = u64::from(self.block_sectors);
        let last = (start + longest).0 / block * block;
        Sector(if last > start.0 { last } else { (start.0 / block + 1) * block })
    }

    /// Splits `bio` so that its first piece fits into a request. That piece never merges. The rest
    /// has to be split again.
    ///
    /// # Panics
    ///
    /// Where the limit on its sectors is 0.
    pub fn split(&self, bio: Bio) -> (Bio, Option<Bio>) {
        if bio.sectors <= self.max_sectors_at(bio.op, bio.sector) {
            return (bio, None);
        }
        let at = self.split_at(bio.op, bio.sector);
        if bio.end() <= at {
            return (bio, None);
        }
        let sectors = u32::try_from(at.0 - bio.sector.0).expect("shorter than the bio");
        let first =
            Bio { sectors: SectorCount(sectors), flags: bio.flags | BioFlags::NO_MERGE, ..bio };
        let rest = Bio { sector: at, sectors: SectorCount(bio.sectors.0 - sectors), ..bio };
        (first, Some(rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::IocId;

    fn bio(sector: u64, sectors: u32) -> Bio {
        Bio::write(IocId::default(), Sector(sector), SectorCount(sectors))
    }

    #[test]
    fn bio_is_split_at_the_longest_request_and_all_but_the_last_piece_never_merge() {
        let limits = Limits { max_sectors: 100, ..Limits::default() };
        let (first, rest) = limits.split(bio(10, 250));
        let (second, last) = limits.split(rest.expect("150 sectors are left"));
        let last = last.expect("50 sectors are left");
        assert_eq!((first.sector, first.sectors), (Sector(10), SectorCount(100)));
        assert_eq!((second.sector, second.sectors), (Sector(110), SectorCount(100)));
        assert_eq!((last.sector, last.sectors), (Sector(210), SectorCount(50)));
        assert!(first.flags.contains(BioFlags::NO_MERGE));
        assert!(second.flags.contains(BioFlags::NO_MERGE));
        assert_eq!(limits.split(last), (last, None));
    }

    /// It would be split into a piece of no sectors and itself, for ever.
    #[test]
    #[should_panic(expected = "a request has a sector")]
    fn bio_is_not_split_at_requests_without_sectors() {
        Limits { max_sectors: 0, ..Limits::default() }.split(bio(0, 8));
    }

    #[test]
    fn bio_is_split_where_a_chunk_ends() {
        let limits = Limits { chunk_sectors: 64, ..Limits::default() };
        let (first, rest) = limits.split(bio(60, 8));
        assert_eq!(first.sectors, SectorCount(4));
        assert_eq!(rest.map(|rest| rest.sector), Some(Sector(64)));
    }
    #[test]
    fn bio_is_split_where_a_block_ends() {
        let limits = Limits { max_sectors: 20, block_sectors: 8, ..Limits::default() };
        let (first, rest) = limits.split(bio(3, 40));
        assert_eq!(first.sectors, SectorCount(13), "23 is inside the block from 16 to 24");
        assert_eq!(rest.map(|rest| rest.sector), Some(Sector(16)));
    }

    /// Nothing smaller than a block can be read or written.
    #[test]
    fn block_is_not_split_at_requests_that_are_shorter() {
        let limits = Limits { max_sectors: 3, block_sectors: 8, ..Limits::default() };
        assert_eq!(limits.split(bio(8, 8)), (bio(8, 8), None));
        let (first, rest) = limits.split(bio(8, 9));
        assert_eq!((first.sectors, rest.map(|rest| rest.sectors.0)), (SectorCount(8), Some(1)));
    }
}
