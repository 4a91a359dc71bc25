//! How large a merged request may grow, and where a bio must be split.

use crate::request::{Bio, BioFlags, Op, Request, Sector, SectorCount};

/// Limits of a device, by the names of `queue/` in sysfs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The largest request (`max_sectors_kb`, here in sectors): 1 to 2³² − 2.
    pub max_sectors: u32,
    /// The largest discard (`discard_max_bytes`, here in sectors): 1 to 2³² − 2.
    pub max_discard_sectors: u32,
    /// Pieces of memory a request: at least 1.
    pub max_segments: u16,
    /// No request crosses a multiple of this (`chunk_sectors`); 0 is none.
    pub chunk_sectors: u32,
    /// Bytes − 1: memory of two bios may meet in a request only where the first ends on a
    /// multiple. Each bio's memory is taken to begin on one. 0 is no such rule.
    pub virt_boundary: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_sectors: 2560,
            max_discard_sectors: 2560,
            max_segments: 128,
            chunk_sectors: 0,
            virt_boundary: 0,
        }
    }
}

/// Why two pieces do not fit into one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// Their memory would leave a gap that the device cannot jump.
    Gap,
    /// Too many sectors.
    Size,
    /// Too many pieces of memory, or of ranges.
    Segments,
}

/// What is asked for: a piece of this many sectors and segments behind or before another.
pub(super) struct Joint {
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
    /// Asserts that a request of at least a sector is possible, and that the sum of two lengths,
    /// which stops at the greatest number, is then too long.
    pub(super) fn check(&self) {
        for limit in [self.max_sectors, self.max_discard_sectors] {
            assert!((1..u32::MAX).contains(&limit), "a request has 1 to 2³² − 2 sectors");
        }
        assert!(self.max_segments > 0, "a request has a segment");
    }

    /// Whether a request may be made of the two pieces of `joint`.
    pub(super) fn fits(&self, joint: &Joint) -> Result<(), Refusal> {
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

    /// The joint of a request and a bio. A discard bio adds no segment.
    pub(super) fn joint_with_bio(rq: &Request, bio: &Bio, bio_first: bool) -> Joint {
        let (start, first) =
            if bio_first { (bio.sector, bio.sectors) } else { (rq.sector, rq.sectors) };
        let segments = match rq.op {
            Op::Discard => 1,
            _ => u32::from(rq.segments) + u32::from(bio.segments),
        };
        Joint { op: rq.op, start, first, sectors: rq.sectors + bio.sectors, segments }
    }

    /// The joint of two requests. Two discards are two ranges, which is one too many here.
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
        // Nothing but its own limit holds for a discard.
        if op == Op::Discard {
            return SectorCount(self.max_discard_sectors);
        }
        if self.chunk_sectors == 0 {
            return SectorCount(self.max_sectors);
        }
        let into_chunk = start.0 % u64::from(self.chunk_sectors);
        let left = u32::try_from(u64::from(self.chunk_sectors) - into_chunk)
            .expect("what is left of a chunk is not longer than the chunk");
        SectorCount(self.max_sectors.min(left))
    }

    fn max_segments_of(&self, op: Op) -> u32 {
        match op {
            Op::Discard => 1,
            _ => u32::from(self.max_segments),
        }
    }

    /// Cuts `bio` so that its first piece is a request that the device takes. The piece that is
    /// cut off the front never merges; the rest is to be split again.
    ///
    /// # Panics
    ///
    /// Where the limit on its sectors is 0.
    pub fn split(&self, bio: Bio) -> (Bio, Option<Bio>) {
        let longest = self.max_sectors_at(bio.op, bio.sector);
        assert!(longest.0 > 0, "a request has a sector");
        if bio.sectors <= longest {
            return (bio, None);
        }
        let first = Bio { sectors: longest, flags: bio.flags | BioFlags::NO_MERGE, ..bio };
        let rest = Bio {
            sector: bio.sector + longest,
            sectors: SectorCount(bio.sectors.0 - longest.0),
            ..bio
        };
        (first, Some(rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::IocId;

    fn bio(sector: u64, sectors: u32) -> Bio {
        Bio {
            op: Op::Write,
            flags: BioFlags::empty(),
            sector: Sector(sector),
            sectors: SectorCount(sectors),
            segments: 1,
            ioc: IocId::default(),
            user_data: 0,
        }
    }

    #[test]
    fn a_bio_is_split_at_the_longest_request_and_all_but_the_last_piece_never_merge() {
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

    /// It was cut into a piece of no sectors and itself, for ever.
    #[test]
    #[should_panic(expected = "a request has a sector")]
    fn a_bio_is_not_split_at_requests_without_sectors() {
        Limits { max_sectors: 0, ..Limits::default() }.split(bio(0, 8));
    }

    #[test]
    fn a_bio_is_split_where_a_chunk_ends() {
        let limits = Limits { chunk_sectors: 64, ..Limits::default() };
        let (first, rest) = limits.split(bio(60, 8));
        assert_eq!(first.sectors, SectorCount(4));
        assert_eq!(rest.map(|rest| rest.sector), Some(Sector(64)));
    }
}
