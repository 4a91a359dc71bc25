//! In what a block device forgets: of a trim, only whole granules.
//!
//! ```text
//!   granules   │         │         │         │
//!   trim           ├──────────────────────┤
//!   forgotten            ├─────────┤               what is outside stays, as a device leaves it
//! ```
//!
//! A command is cut to them before it is cut into pieces, which then begin and end on granules.

use std::fs::Metadata;
use std::ops::Range;
use std::os::unix::fs::FileTypeExt as _;

use super::device::{device_file, queue_file};

/// The granules of a block device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Granules {
    /// Bytes of each (`discard_granularity`), at least 1.
    bytes: u32,
    /// Where the first begins (`discard_alignment`), in bytes; less than a granule.
    start: u32,
}

impl Granules {
    /// Makes granules of so many bytes, at least 1, of which the first begins at `start`.
    pub fn new(bytes: u32, start: u32) -> Self {
        let bytes = bytes.max(1);
        Self { bytes, start: start % bytes }
    }

    /// What sysfs says of a block device. A file is its file system's, which keeps to those itself.
    pub(super) fn of(seen: &Metadata) -> Option<Self> {
        if !seen.file_type().is_block_device() {
            return None;
        }
        let (_, bytes) = queue_file(seen, "discard_granularity")?;
        let bytes = bytes.parse().ok().filter(|&bytes| bytes > 0)?;
        let start = device_file(seen, "discard_alignment").and_then(|said| said.parse().ok());
        Some(Self::new(bytes, start.unwrap_or(0)))
    }

    /// Returns the bytes of each.
    pub fn bytes(self) -> u32 {
        self.bytes
    }

    /// The most bytes up to `most` that are whole granules; one at least.
    pub(crate) fn most_within(self, most: u32) -> u32 {
        (most / self.bytes * self.bytes).max(self.bytes)
    }

    /// The whole granules among these bytes: none may be left.
    pub(crate) fn inside(self, range: Range<u64>) -> Range<u64> {
        let (bytes, first) = (u64::from(self.bytes), u64::from(self.start));
        // What comes before the first granule is a short one, which nobody forgets.
        let from = range.start.saturating_sub(first).next_multiple_of(bytes) + first;
        let to = range.end.saturating_sub(first) / bytes * bytes + first;
        from..to.clamp(from, range.end.max(from))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_granules_are_forgotten() {
        let granules = Granules { bytes: 4096, start: 0 };
        assert_eq!(granules.inside(0..8192), 0..8192);
        assert_eq!(granules.inside(512..12_000), 4096..8192);
        assert!(granules.inside(512..8191).is_empty());
        assert!(granules.inside(4096..4096).is_empty());
    }

    #[test]
    fn pieces_of_a_trim_are_whole_granules() {
        let within = |bytes| Granules::new(bytes, 0).most_within(4 << 20);
        assert_eq!([1, 4096, 3 << 20, 16 << 20].map(within), [4 << 20, 4 << 20, 3 << 20, 16 << 20]);
    }

    #[test]
    fn granules_begin_where_the_device_says() {
        let granules = Granules { bytes: 4096, start: 512 };
        assert_eq!(granules.inside(512..8704), 512..8704);
        assert_eq!(granules.inside(0..8704), 512..8704);
        assert!(granules.inside(0..4096).is_empty());
    }
}
