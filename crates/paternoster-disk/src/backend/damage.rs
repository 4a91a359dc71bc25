//! The damage that others may do to the file behind a disk while it is served.
//!
//! A truncated file reads as an error beyond its end, and grows again, with holes, where it is
//! written; one without a name is lost when the server ends. Neither need fail anything for a
//! while.

use std::fmt;
use std::os::fd::AsFd;

use rustix::fs::{AtFlags, FileType, StatxFlags, statx};

/// A change to the file of a disk that another program made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// The file is shorter than the disk.
    Truncated {
        /// Bytes that it has now.
        size: u64,
    },
    /// No name leads to the file any more: it was deleted, or another one took its place.
    Deleted,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { size } => write!(
                f,
                "its file was truncated, to {size} bytes: reads beyond fail, what is written \
                 leaves holes"
            ),
            Self::Deleted => f.write_str(
                "its file was deleted or replaced: it is served on, and lost when the server ends",
            ),
        }
    }
}

/// What has become of a file that had so many bytes. What the system already knows is enough: on a
/// network, to ask might take as long as the file's I/O, and its owner must not wait.
pub(super) fn of(file: impl AsFd, size: u64) -> Option<Damage> {
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    let wanted = StatxFlags::TYPE | StatxFlags::SIZE | StatxFlags::NLINK;
    let seen = statx(file, "", flags, wanted).ok()?;
    if FileType::from_raw_mode(seen.stx_mode.into()) == FileType::BlockDevice {
        // It has no size there, and is not gone where its name is.
        None
    } else if seen.stx_size < size {
        Some(Damage::Truncated { size: seen.stx_size })
    } else if seen.stx_nlink == 0 {
        Some(Damage::Deleted)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn file_is_whole_until_it_is_truncated_deleted_or_replaced() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let damage = || of(file.as_file(), 4096);
        assert_eq!(damage(), Some(Damage::Truncated { size: 0 }));
        file.as_file().set_len(8192).expect("room");
        assert_eq!(damage(), None, "longer does no harm");
        file.as_file().set_len(4095).expect("room");
        assert_eq!(damage(), Some(Damage::Truncated { size: 4095 }));
        file.as_file().set_len(4096).expect("room");
        assert_eq!(damage(), None);
        let other = tempfile::NamedTempFile::new().expect("a file");
        fs::rename(other.path(), file.path()).expect("a rename");
        assert_eq!(damage(), Some(Damage::Deleted));
    }
}
