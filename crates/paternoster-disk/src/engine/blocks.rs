//! The blocks of a disk: a back end reads and writes whole ones, up to the disk's end.
//!
//! ```text
//!   blocks    │       │       │       │       │    │     the last may be short: it is a block too
//!   bytes         ├───────────────┤                      what a command covers
//!   around    ├───────────────────────┤                  what a transfer of it covers
//!   ends      ├───────┤       ├───────┤                  blocks that it covers in part
//! ```
//!
//! A write with such an end is a read-modify-write: its end blocks are read, then all is written.
//! It is cut so that one read gives them: they are neighbours, or there is but one.

use std::ops::Range;

use paternoster::{Bio, Sector, SectorCount};
use smallvec::SmallVec;

use super::kind::Kind;

const SECTOR_BYTES: u64 = SectorCount::SECTOR_BYTES as u64;

/// The blocks of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Blocks {
    /// Bytes of each, a power of two: 1 where any byte can be written.
    bytes: u64,
    /// Bytes of the disk.
    disk: u64,
}

impl Blocks {
    /// The blocks of so many bytes of a disk of so many.
    ///
    /// # Panics
    ///
    /// Where `bytes` is no power of two.
    pub(super) fn new(bytes: u32, disk: u64) -> Self {
        assert!(bytes.is_power_of_two(), "a block has a power of two of bytes");
        Self { bytes: u64::from(bytes), disk }
    }

    /// The blocks of the same bytes of a disk of another size.
    pub(super) fn of_disk(self, disk: u64) -> Self {
        Self { disk, ..self }
    }

    /// Bytes of the disk.
    pub(super) fn disk(self) -> u64 {
        self.disk
    }

    /// Returns whether the last block is a short one.
    pub(super) fn last_is_short(self) -> bool {
        self.within(self.disk) > 0
    }

    /// Sectors of a block, at least one.
    pub(super) fn sectors(self) -> u32 {
        u32::try_from(self.bytes.div_ceil(SECTOR_BYTES)).expect("a block is below 4 GiB")
    }

    /// The whole blocks that these bytes touch.
    pub(super) fn around(self, bytes: Range<u64>) -> Range<u64> {
        self.floor(bytes.start)..self.ceil(bytes.end)
    }

    /// Returns whether the bytes are whole blocks.
    pub(super) fn are_whole(self, bytes: &Range<u64>) -> bool {
        self.within(bytes.start) == 0 && self.ceil(bytes.end) == bytes.end
    }

    /// The whole blocks among these bytes: none may be left.
    pub(super) fn inside(self, bytes: Range<u64>) -> Range<u64> {
        let start = self.ceil(bytes.start);
        let end = if bytes.end >= self.disk { bytes.end } else { self.floor(bytes.end) };
        start..end.max(start)
    }

    /// How far a transfer has got that is done up to that byte: a block of which a part is done is
    /// not.
    pub(super) fn done_until(self, byte: u64) -> u64 {
        if byte >= self.disk { byte } else { self.floor(byte) }
    }

    /// The numbers of the blocks that these bytes touch.
    pub(super) fn numbers(self, bytes: &Range<u64>) -> Range<u64> {
        bytes.start / self.bytes..bytes.end.div_ceil(self.bytes)
    }

    /// The numbers of the blocks that these bytes cover in part: at most two, at their ends.
    pub(super) fn ends(self, bytes: &Range<u64>) -> SmallVec<[u64; 2]> {
        let Range { start, end } = self.numbers(bytes);
        let first = (bytes.start != self.floor(bytes.start)).then_some(start);
        let last = (bytes.end != self.ceil(bytes.end)).then_some(end - 1);
        first.into_iter().chain(last.filter(|last| Some(*last) != first)).collect()
    }

    /// The sectors of the blocks that these bytes touch, or of the sectors where those are longer.
    pub(super) fn sectors_around(self, bytes: &Range<u64>) -> (Sector, SectorCount) {
        let around = self.around(bytes.clone());
        let (first, last) = (around.start / SECTOR_BYTES, around.end.div_ceil(SECTOR_BYTES));
        let sectors = u32::try_from(last - first).expect("a command is shorter than 4 GiB");
        (Sector(first), SectorCount(sectors))
    }

    /// Where the bio, a part of what does that to `bytes`, has to end at the latest.
    ///
    /// - Of zeroes, what is no whole block is written: it is cut off.
    /// - Of a write, the end blocks are read with one transfer: they are cut apart if others are
    ///   between them.
    /// - The last block of the disk, if it is short, is by itself.
    pub(super) fn next_cut(self, kind: &Kind, bytes: &Range<u64>, bio: &Bio) -> Sector {
        let Range { start, end } = self.around(bytes.clone());
        let last = self.floor(bytes.end.saturating_sub(1));
        let starts_inside = bytes.start != start;
        let ends_inside = bytes.end != end;
        let first_off = matches!(kind, Kind::Zero { .. }) && starts_inside;
        let last_off = ends_inside
            && match kind {
                Kind::Zero { .. } => true,
                Kind::Write { .. } => starts_inside && last > start + self.bytes,
                Kind::Read | Kind::ReadInto(_) | Kind::Cache | Kind::Trim => false,
            };
        let short = self.last_is_short().then(|| self.floor(self.disk));
        let cuts = [first_off.then_some(start + self.bytes), last_off.then_some(last), short];
        let after = |at: &u64| *at > bio.sector.0 * SECTOR_BYTES;
        let cut = cuts.into_iter().flatten().filter(after).min();
        cut.map_or(bio.end(), |at| bio.end().min(Sector(at.div_ceil(SECTOR_BYTES))))
    }

    /// Where in its block a byte is. A mask: each transfer asks often, and to divide is slow.
    fn within(self, byte: u64) -> u64 {
        byte & (self.bytes - 1)
    }

    fn floor(self, byte: u64) -> u64 {
        byte - self.within(byte)
    }

    /// The end of the block that `byte` is in, or ends.
    fn ceil(self, byte: u64) -> u64 {
        let end = match self.within(byte) {
            0 => byte,
            within => byte.saturating_add(self.bytes - within),
        };
        end.min(self.disk.max(byte))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten blocks and a short one of 100 bytes.
    const BLOCKS: Blocks = Blocks { bytes: 4096, disk: 40_960 + 100 };

    #[test]
    fn last_block_is_whole_though_it_is_short() {
        assert_eq!(BLOCKS.around(40_961..41_000), 40_960..41_060);
        assert!(BLOCKS.are_whole(&(36_864..41_060)));
        assert!(!BLOCKS.are_whole(&(36_864..41_059)));
        assert_eq!(BLOCKS.inside(36_865..41_060), 40_960..41_060);
        assert_eq!(BLOCKS.done_until(41_060), 41_060);
        assert_eq!(BLOCKS.done_until(41_059), 40_960);
    }

    #[test]
    fn ends_are_the_blocks_that_are_covered_in_part() {
        let ends = |bytes: Range<u64>| BLOCKS.ends(&bytes).into_vec();
        assert!(ends(0..8192).is_empty());
        assert_eq!(ends(1..8192), [0]);
        assert_eq!(ends(0..8193), [2]);
        assert_eq!(ends(1..8193), [0, 2]);
        assert_eq!(ends(5..6), [0], "one block at both ends is one");
        assert_eq!(ends(40_960..41_059), [10]);
    }

    #[test]
    fn range_inside_one_block_has_no_whole_one() {
        assert!(BLOCKS.inside(5..4095).is_empty());
        assert!(BLOCKS.inside(5..4097).is_empty());
        assert_eq!(BLOCKS.inside(5..8192), 4096..8192);
    }

    #[test]
    fn where_any_byte_can_be_written_all_are_whole() {
        let bytes = Blocks::new(1, 1000);
        assert!(bytes.are_whole(&(3..7)));
        assert_eq!(bytes.sectors_around(&(3..700)), (Sector(0), SectorCount(2)));
    }
}
