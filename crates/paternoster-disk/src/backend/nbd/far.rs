//! What a server said of its export, as far as a disk depends on it.

use paternoster_nbd::proto::TransmissionFlags;
use paternoster_nbd::{BlockSize, Session};
use thiserror::Error;

use crate::backend::Capabilities;

/// Requests in flight that keep a server busy.
const DEPTH: u32 = 16;

/// The largest block of a server, in bytes: what is read and written for a single byte.
const MAX_BLOCK: u32 = 64 << 10;

/// The least that the longest read or write of a server has to be, in bytes: a sector.
const LEAST_PAYLOAD: u32 = 512;

/// The error of an export that cannot be a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Unusable {
    /// Its blocks are too large, or its payloads too small.
    #[error(
        "its blocks have {block} bytes and its reads and writes at most {max}; blocks of up to \
         {MAX_BLOCK} bytes and reads and writes of at least {LEAST_PAYLOAD}, and of a block, are \
         allowed"
    )]
    Blocks {
        /// Bytes of its smallest block.
        block: u32,
        /// Bytes of its longest read and write.
        max: u32,
    },
    /// It has no whole block, or more bytes than a file can have.
    #[error("it has {size} bytes; a block to 2⁶³ − 1 bytes are allowed")]
    Size {
        /// Bytes that it has.
        size: u64,
    },
}

/// An export of another server, as it is when a connection has entered it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Far {
    /// Bytes, whole blocks.
    size: u64,
    flags: TransmissionFlags,
    block_size: BlockSize,
}

impl Far {
    /// What a session shows.
    pub(super) fn of(session: &Session) -> Result<Self, Unusable> {
        let export = &session.export;
        let BlockSize { min, max, .. } = export.block_size;
        if min > MAX_BLOCK || max < min.max(LEAST_PAYLOAD) {
            return Err(Unusable::Blocks { block: min, max });
        }
        let size = export.size / u64::from(min) * u64::from(min);
        if size == 0 || i64::try_from(size).is_err() {
            return Err(Unusable::Size { size: export.size });
        }
        // What a session may do is not what the export is.
        let flags = export.flags - TransmissionFlags::SEND_DF;
        Ok(Self { size, flags, block_size: export.block_size })
    }

    /// Returns how many bytes it has.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// It has so many bytes, as far as this disk uses them.
    pub(super) fn set_size(&mut self, size: u64) {
        self.size = size;
    }

    /// Returns whether it may only be read.
    pub fn is_read_only(&self) -> bool {
        self.flags.contains(TransmissionFlags::READ_ONLY)
    }

    /// Returns whether it says that it is rotational.
    pub fn is_rotational(&self) -> bool {
        self.flags.contains(TransmissionFlags::ROTATIONAL)
    }

    /// Returns whether a flush on one connection covers what was written on all.
    pub fn allows_several_connections(&self) -> bool {
        self.flags.contains(TransmissionFlags::CAN_MULTI_CONN)
    }

    /// Returns whether it flushes at all.
    pub fn flushes(&self) -> bool {
        self.flags.contains(TransmissionFlags::SEND_FLUSH)
    }

    pub(super) fn trims(&self) -> bool {
        self.flags.contains(TransmissionFlags::SEND_TRIM)
    }

    pub(super) fn zeroes(&self) -> bool {
        self.flags.contains(TransmissionFlags::SEND_WRITE_ZEROES)
    }

    pub(super) fn caches(&self) -> bool {
        self.flags.contains(TransmissionFlags::SEND_CACHE)
    }

    /// Returns what the disk can do: zeroing is not called fast, as nobody here knows.
    pub fn capabilities(&self) -> Capabilities {
        Capabilities {
            rotational: self.is_rotational(),
            fast_zero: false,
            block: self.block_size.min,
            max_transfer: Some(self.block_size.max),
            flushes: self.flushes(),
            ..Capabilities::new(self.size, DEPTH)
        }
    }

    /// Says in what a server that has come back is another one; nothing where it is not, or has
    /// grown.
    pub(super) fn difference(&self, now: &Self) -> Option<String> {
        let (read_only, is_now) = (self.is_read_only(), now.is_read_only());
        match () {
            () if self.size > now.size => {
                Some(format!("it had {} bytes and has {}", self.size, now.size))
            }
            () if read_only && !is_now => Some("it was read-only and is not".to_owned()),
            () if !read_only && is_now => Some("it was not read-only and is".to_owned()),
            () if self.flags != now.flags => {
                let names = |flags: TransmissionFlags| {
                    flags.iter_names().map(|(name, _)| name).collect::<Vec<_>>().join(" ")
                };
                let (gone, new) = (self.flags - now.flags, now.flags - self.flags);
                Some(format!(
                    "flags that it no longer has: {:?}; new ones: {:?}",
                    names(gone),
                    names(new)
                ))
            }
            () if self.block_size.min != now.block_size.min
                || self.block_size.max > now.block_size.max =>
            {
                Some(format!("its blocks were {:?} and are {:?}", self.block_size, now.block_size))
            }
            () => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use paternoster_nbd::ExportInfo;

    use super::*;

    fn far(size: u64, flags: TransmissionFlags, min: u32) -> Far {
        let export = ExportInfo {
            name: String::new(),
            description: None,
            size,
            flags,
            block_size: BlockSize { min, preferred: 4096, max: 1 << 20 },
        };
        let session = Session { export, structured_replies: true, allocation_context: None };
        Far::of(&session).expect("it can be a disk")
    }

    #[test]
    fn export_that_cannot_be_a_disk_is_refused() {
        let of = |size, min, max| {
            let block_size = BlockSize { min, preferred: 4096, max };
            let flags = TransmissionFlags::HAS_FLAGS;
            let (name, description) = (String::new(), None);
            let export = ExportInfo { name, description, size, flags, block_size };
            Far::of(&Session { export, structured_replies: true, allocation_context: None }).err()
        };
        assert_eq!(of(1 << 20, 65_536, 1 << 20), None);
        assert_eq!(of(1 << 20, 1, 512), None);
        let (block, max) = (131_072, 1 << 20);
        assert_eq!(of(1 << 30, block, max), Some(Unusable::Blocks { block, max }));
        assert_eq!(of(1 << 30, 1, 511), Some(Unusable::Blocks { block: 1, max: 511 }));
        assert_eq!(of(4095, 4096, max), Some(Unusable::Size { size: 4095 }));
        assert_eq!(of(1 << 63, 1, max), Some(Unusable::Size { size: 1 << 63 }));
    }

    #[test]
    fn disk_is_the_whole_blocks_of_an_export() {
        let flags = TransmissionFlags::SEND_FLUSH | TransmissionFlags::ROTATIONAL;
        let capabilities = far(10_000, flags, 4096).capabilities();
        assert_eq!((capabilities.size, capabilities.block), (8192, 4096));
        assert_eq!(capabilities.max_transfer, Some(1 << 20));
        assert!(capabilities.rotational && capabilities.flushes && !capabilities.fast_zero);
        assert!(!far(10_000, TransmissionFlags::empty(), 1).capabilities().flushes);
    }

    #[test]
    fn other_size_flags_or_blocks_are_another_export() {
        let flags = TransmissionFlags::SEND_FLUSH;
        let first = far(4096, flags, 1);
        let told = |now: Far| first.difference(&now);
        assert_eq!(told(far(4096, flags | TransmissionFlags::SEND_DF, 1)), None);
        assert_eq!(told(far(8192, flags, 1)), None, "it has grown");
        assert_eq!(told(far(2048, flags, 1)).as_deref(), Some("it had 4096 bytes and has 2048"));
        let read_only = told(far(4096, flags | TransmissionFlags::READ_ONLY, 1));
        assert_eq!(read_only.as_deref(), Some("it was not read-only and is"));
        let other = told(far(4096, TransmissionFlags::SEND_FUA, 1)).expect("it differs");
        assert!(other.contains("\"SEND_FLUSH\"") && other.contains("\"SEND_FUA\""), "{other}");
        assert!(told(far(4096, flags, 512)).is_some());
    }
}
