//! What the disk answers, as the protocol has it.

use std::io;

use paternoster_nbd::{Extent, ExtentFlags, NbdError};
use rustix::io::Errno;

use super::rotation::ANSWER;

/// The units of work that an answer took: those of any, and a look for data and one for a hole each
/// extent.
pub(crate) fn work_of(answer: &io::Result<Vec<paternoster_disk::Extent>>) -> i32 {
    let looks = answer.as_ref().map_or(0, Vec::len);
    ANSWER + i32::try_from(2 * looks).expect("a look has few extents")
}

pub(super) fn nbd_extent(extent: &paternoster_disk::Extent) -> Extent {
    let flags =
        if extent.hole { ExtentFlags::HOLE | ExtentFlags::ZERO } else { ExtentFlags::empty() };
    // A query is shorter than 4 GiB, and so is every part of it.
    Extent { len: u32::try_from(extent.len).unwrap_or(u32::MAX), flags }
}

/// Returns the error of the protocol for an errno; no other number may be on the wire.
pub(super) fn nbd_error(errno: Errno) -> NbdError {
    match errno {
        Errno::PERM | Errno::ROFS | Errno::ACCESS => NbdError::NotPermitted,
        Errno::NOMEM => NbdError::NoMemory,
        Errno::INVAL => NbdError::Invalid,
        Errno::NOSPC | Errno::DQUOT | Errno::FBIG => NbdError::NoSpace,
        Errno::OVERFLOW => NbdError::Overflow,
        Errno::OPNOTSUPP => NbdError::NotSupported,
        Errno::SHUTDOWN => NbdError::Shutdown,
        _ => NbdError::Io,
    }
}
