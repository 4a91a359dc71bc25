//! A raw file, through the page cache.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use paternoster::Instant;
use rustix::fs::{FallocateFlags, FlockOperation, SeekFrom, fallocate, flock, seek};
use rustix::io::Errno;

use super::rotational::{Rotational, is_rotational};
use super::{Backend, Capabilities, Damage, Extent, TransferDone, damage};
use crate::engine::{SyncRange, Transfer, TransferId, Transferred};
use crate::ring::{Buffers, Completion, Fd, Ring};
use crate::token::Token;

/// Requests in flight that keep a file busy.
const DEPTH: u32 = 16;

/// Frees the range, which then reads as zeroes.
const PUNCH: FallocateFlags = FallocateFlags::PUNCH_HOLE.union(FallocateFlags::KEEP_SIZE);

/// Has the range read as zeroes and stay allocated.
const ZERO: FallocateFlags = FallocateFlags::ZERO_RANGE.union(FallocateFlags::KEEP_SIZE);

/// How many extents one look at a file collects at most: it is the owner that waits for each.
const MAX_EXTENTS: usize = 64;

/// A transfer that is more than what its operation says when it completes.
#[derive(Debug)]
enum Work {
    /// A range is no longer needed: a hint, which may have no effect.
    Trim { len: u64 },
    /// A range is to read as zeroes; where the file system has no operation for that, they are
    /// written.
    Zero { offset: u64, len: u64 },
}

/// A raw file as a disk.
#[derive(Debug)]
pub struct FileBackend {
    file: Fd,
    size: u64,
    /// Whether the device that it is on is rotational.
    rotational: Rotational,
    /// Whether the file system can punch holes, which read as zeroes.
    punches: bool,
    /// What to make of operations in flight, of those that are not plain reads and writes.
    works: Vec<(TransferId, Work)>,
}

impl FileBackend {
    /// Opens the file, for writing unless it is to be read only, and locks it: against everybody
    /// else, or if it is to be read only against those who would write.
    pub fn open(path: &Path, read_only: bool) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(!read_only).open(path)?;
        flock(
            &file,
            if read_only {
                FlockOperation::NonBlockingLockShared
            } else {
                FlockOperation::NonBlockingLockExclusive
            },
        )
        .map_err(|errno| match errno {
            Errno::WOULDBLOCK => io::Error::other("another program has locked it"),
            other => other.into(),
        })?;
        let seen = file.metadata()?;
        let (size, rotational) = (seen.len(), is_rotational(&seen));
        let punches = !read_only && can_punch(&file, size);
        let file = Arc::new(OwnedFd::from(file));
        Ok(Self { file, size, rotational, punches, works: Vec::new() })
    }

    fn allocate(
        &mut self,
        ring: &mut Ring<Token>,
        id: TransferId,
        mode: FallocateFlags,
        (offset, len): (u64, u64),
        work: Work,
    ) {
        self.works.push((id, work));
        let mode = mode.bits().cast_signed();
        ring.allocate(Token::Transfer(id), &self.file, mode, offset, len);
    }

    fn write_zeroes(&mut self, ring: &mut Ring<Token>, id: TransferId, offset: u64, len: u64) {
        let len = usize::try_from(len).expect("a transfer is shorter than memory");
        let zeroes = Buffers::from_buf([Bytes::from(vec![0; len])]);
        ring.write(Token::Transfer(id), &self.file, offset, zeroes);
    }

    fn take_work(&mut self, id: TransferId) -> Option<Work> {
        let index = self.works.iter().position(|(of, _)| *of == id)?;
        Some(self.works.swap_remove(index).1)
    }
}

impl Backend for FileBackend {
    fn capabilities(&self) -> Capabilities {
        let Self { size, punches: fast_zero, .. } = *self;
        Capabilities { size, rotational: self.rotational.yes, fast_zero, depth: DEPTH, block: 1 }
    }

    fn start(&mut self, ring: &mut Ring<Token>, _: Instant, id: TransferId, transfer: Transfer) {
        let token = Token::Transfer(id);
        match transfer {
            Transfer::Read { offset, parts } => ring.read(token, &self.file, offset, &parts),
            Transfer::Cache { offset, len } => {
                let len = u32::try_from(len).expect("a transfer is shorter than 4 GiB");
                ring.read(token, &self.file, offset, &[len]);
            }
            Transfer::Write { offset, from } => ring.write(token, &self.file, offset, from),
            Transfer::Trim { offset, len } if self.punches => {
                self.allocate(ring, id, PUNCH, (offset, len), Work::Trim { len });
            }
            Transfer::Trim { len, .. } => {
                self.works.push((id, Work::Trim { len }));
                ring.nop(token);
            }
            Transfer::Zero { offset, len, allocate } if allocate || self.punches => {
                let mode = if allocate { ZERO } else { PUNCH };
                self.allocate(ring, id, mode, (offset, len), Work::Zero { offset, len });
            }
            Transfer::Zero { offset, len, .. } => self.write_zeroes(ring, id, offset, len),
            Transfer::Sync { range: SyncRange::Disk } => ring.sync(token, &self.file, None),
            Transfer::Sync { range: SyncRange::Bytes(range) } => {
                ring.sync(token, &self.file, Some(range));
            }
        }
    }

    fn ring_completed(
        &mut self,
        ring: &mut Ring<Token>,
        completion: Completion<TransferId>,
    ) -> Option<TransferDone> {
        let id = completion.token;
        let result = match (self.take_work(id), completion.result) {
            (Some(Work::Trim { len } | Work::Zero { len, .. }), Ok(_))
            | (Some(Work::Trim { len }), Err(Errno::OPNOTSUPP)) => Ok(len),
            (Some(Work::Zero { offset, len }), Err(Errno::OPNOTSUPP)) => {
                self.write_zeroes(ring, id, offset, len);
                return None;
            }
            (_, result) => result.map(u64::from),
        };
        let filled = completion.output.into_buffers();
        Some(TransferDone { id, transferred: Transferred { result, filled } })
    }

    fn extents(&self, offset: u64, len: u64) -> io::Result<Vec<Extent>> {
        let end = offset + len;
        let mut extents = Vec::new();
        let mut at = offset;
        // A step finds at most two.
        while at < end && extents.len() + 2 <= MAX_EXTENTS {
            let data = seek_or_end(&self.file, SeekFrom::Data(at), end)?;
            if data > at {
                extents.push(Extent { len: data - at, hole: true });
            }
            if data < end {
                let hole = seek_or_end(&self.file, SeekFrom::Hole(data), end)?;
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

    fn rotational_because(&self) -> String {
        self.rotational.because.clone()
    }

    fn damage(&self) -> Option<Damage> {
        damage::of(&self.file, self.size)
    }
}

/// Returns whether the file system can punch holes: asked by one beyond the end, which changes
/// nothing.
fn can_punch(file: &File, size: u64) -> bool {
    const ANY: u64 = 4096;
    fallocate(file, PUNCH, size.next_multiple_of(ANY), ANY).is_ok()
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
