//! What is stored in a file and what are holes.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{FileType, SeekFrom, fstat, seek};
use rustix::io::Errno;

use super::Extent;

/// How many extents one look at a file collects at most: it is the owner that waits for each.
const MAX_EXTENTS: usize = 64;

/// The extents of those bytes of the file. A block device does not say: all of it is data.
pub(super) fn of(file: &OwnedFd, offset: u64, len: u64) -> io::Result<Vec<Extent>> {
    if FileType::from_raw_mode(fstat(file)?.st_mode) == FileType::BlockDevice {
        return Ok(vec![Extent { len, hole: false }]);
    }
    let end = offset + len;
    let mut extents = Vec::new();
    let mut at = offset;
    // A step finds at most two.
    while at < end && extents.len() + 2 <= MAX_EXTENTS {
        let data = seek_or_end(file, SeekFrom::Data(at), end)?;
        if data > at {
            extents.push(Extent { len: data - at, hole: true });
        }
        if data < end {
            let hole = seek_or_end(file, SeekFrom::Hole(data), end)?;
            // A trim on its way may have taken the data since.
            if hole > data {
                extents.push(Extent { len: hole - data, hole: false });
            }
            at = hole;
        } else {
            at = end;
        }
    }
    Ok(extents)
}

/// Where data or a hole begins, at `end` at the latest.
fn seek_or_end(file: &OwnedFd, to: SeekFrom, end: u64) -> io::Result<u64> {
    match seek(file, to) {
        Ok(at) => Ok(at.min(end)),
        // There is none any more.
        Err(Errno::NXIO) => Ok(end),
        Err(error) => Err(error.into()),
    }
}
