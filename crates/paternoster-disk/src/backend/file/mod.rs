//! A raw file or block device, past the page cache or through it.
//!
//! ```text
//!   direct   │ block │ block │ block │ block │ tail│     whole blocks, from and to aligned memory;
//!             ─────────── O_DIRECT ──────────  page      a last block that the file does not fill
//!                                             cache      goes by a second descriptor
//! ```
//!
//! The engine gives whole blocks only, and a short last one by itself. A block is then no smaller
//! than a page: else the tail's page would hold neighbours too, and write old bytes over theirs.

mod aligned;
mod cache;
mod extents;
mod holder;
mod open;

pub use cache::{Cache, CacheChoice};
pub use holder::program;
pub use open::{FileOptions, block_of};

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use bytes::{Bytes, BytesMut};
use paternoster::Instant;
use rustix::fs::FallocateFlags;
use rustix::io::Errno;

use self::aligned::Alignment;
use self::open::Opened;
use super::device::Rotational;
use super::granules::Granules;
use super::{Backend, BusyDepth, Capabilities, Damage, Extent, TransferDone, damage};
use crate::engine::{Part, SyncRange, Transfer, TransferId, Transferred};
use crate::guest::GuestReads;
use crate::ring::{Buffers, Completion, Fd, Ring, Room};
use crate::token::Token;

/// Frees the range, which then reads as zeroes.
pub(super) const PUNCH: FallocateFlags =
    FallocateFlags::PUNCH_HOLE.union(FallocateFlags::KEEP_SIZE);

/// Has the range read as zeroes and stay allocated.
const ZERO: FallocateFlags = FallocateFlags::ZERO_RANGE.union(FallocateFlags::KEEP_SIZE);

/// A transfer that is more than what its operation says when it completes.
#[derive(Debug)]
enum Work {
    /// A range is no longer needed, or will soon be: a hint, which may have no effect.
    Hint { len: u64 },
    /// A range is to read as zeroes; where the file system has no operation for that, they are
    /// written.
    Zero { offset: u64, len: u64 },
}

/// A raw file as a disk.
#[derive(Debug)]
pub struct FileBackend {
    file: Fd,
    /// The way to its last block through the page cache, where that is short and the rest goes past
    /// it.
    tail: Option<Fd>,
    size: u64,
    /// Whether the device that it is on is rotational.
    rotational: Rotational,
    /// Whether the file system can punch holes, which read as zeroes.
    punches: bool,
    /// In what a block device forgets; none where it says nothing.
    granules: Option<Granules>,
    cache: Cache,
    /// What direct I/O asks for; none through the page cache.
    alignment: Option<Alignment>,
    /// What a read straight into a machine's memory has to be, where there is such a read.
    reads_into: Option<GuestReads>,
    /// What to make of operations in flight, of those that are not plain reads and writes.
    works: Vec<(TransferId, Work)>,
}

impl FileBackend {
    /// That of a file past the page cache. Of 128 outstanding requests qemu-nbd has all in the
    /// device. With 16 of them there `none` did 0.79 times as many on a virtio disk, with 32 it did
    /// 0.95 times as many, and with 64 no more (docs/performance.md).
    pub const DEPTH: BusyDepth = BusyDepth { shared: 16, unshared: 32 };

    /// Opens the file or block device, for writing unless it is to be read only, and locks it:
    /// against everybody else, or if it is to be read only against those who would write. A block
    /// device that is written to is nobody else's: not mounted, nor part of another device.
    pub fn open(path: &Path, options: FileOptions) -> io::Result<Self> {
        Self::open_or_adopt(path, options, None)
    }

    /// The same with the descriptor that another server has opened, if there is one: see
    /// [`Backend::file`].
    pub fn open_or_adopt(
        path: &Path,
        options: FileOptions,
        passed: Option<OwnedFd>,
    ) -> io::Result<Self> {
        let Opened { file, size, rotational, punches, granules, cache, alignment } =
            Opened::new(path, options, passed)?;
        let tail = match &alignment {
            Some(alignment) if alignment.tail(size) < size => {
                Some(open::tail(path, options, &file)?)
            }
            _ => None,
        };
        let reads_into = match &alignment {
            None => Some(GuestReads { memory: 1, block: 1 }),
            // Its lock is shared: a server after this one would not wait until the device has
            // written what it reads for this one to the machine.
            Some(_) if options.read_only => None,
            // A read is cut at blocks, and what is behind a cut begins where it has to as well.
            Some(alignment) if alignment.memory > alignment.block => None,
            Some(alignment) => {
                Some(GuestReads { memory: alignment.memory, block: alignment.block })
            }
        };
        let works = Vec::new();
        Ok(Self {
            file,
            tail,
            size,
            rotational,
            punches,
            granules,
            cache,
            alignment,
            reads_into,
            works,
        })
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
        ring.allocate(Token::Transfer(id), &self.file, mode, offset, len);
    }

    fn write_zeroes(&mut self, ring: &mut Ring<Token>, id: TransferId, offset: u64, len: u64) {
        let len = usize::try_from(len).expect("a transfer is shorter than memory");
        self.write(ring, id, offset, Buffers::from_buf([Bytes::from(vec![0; len])]));
    }

    /// Reads the parts: past the page cache into memory that is aligned.
    fn read(
        &self,
        ring: &mut Ring<Token>,
        id: TransferId,
        offset: u64,
        parts: impl Iterator<Item = Part>,
    ) {
        let (file, alignment) = match self.alignment_at(offset) {
            Ok(alignment) => (&self.file, Some(alignment)),
            Err(file) => (file, None),
        };
        let spare = ring.spare();
        let mut own = |len| match alignment {
            Some(alignment) => alignment.room(spare, len),
            None => spare.take(len as usize),
        };
        let into = parts.map(|part| match part {
            Part::Own(len) => Room::Own(own(len), len),
            Part::Guest(slice) => Room::Guest(slice),
        });
        let into = into.collect();
        ring.read_into(Token::Transfer(id), file, offset, into);
    }

    /// Writes the buffers: past the page cache from memory that is aligned.
    fn write(&self, ring: &mut Ring<Token>, id: TransferId, offset: u64, from: Buffers<Bytes>) {
        match self.alignment_at(offset) {
            Ok(alignment) => {
                let from = alignment.aligned(ring.spare(), from);
                ring.write(Token::Transfer(id), &self.file, offset, from);
            }
            Err(file) => ring.write(Token::Transfer(id), file, offset, from),
        }
    }

    /// How a transfer there goes past the page cache, or through which descriptor it does not. What
    /// lies in the last block, if that is short, is a transfer of its own.
    fn alignment_at(&self, offset: u64) -> Result<Alignment, &Fd> {
        match (self.alignment, &self.tail) {
            (Some(alignment), Some(tail)) if offset >= alignment.tail(self.size) => Err(tail),
            (Some(alignment), _) => Ok(alignment),
            (None, _) => Err(&self.file),
        }
    }

    fn take_work(&mut self, id: TransferId) -> Option<Work> {
        let index = self.works.iter().position(|(of, _)| *of == id)?;
        Some(self.works.swap_remove(index).1)
    }
}

impl Backend for FileBackend {
    fn file(&self) -> Option<Fd> {
        Some(self.file.clone())
    }

    fn capabilities(&self) -> Capabilities {
        let Self { size, punches: fast_zero, .. } = *self;
        let block = self.alignment.map_or(1, |alignment| alignment.block);
        let is_direct = self.alignment.is_some();
        let depth = if is_direct { Self::DEPTH } else { BusyDepth::any(Self::DEPTH.shared) };
        Capabilities {
            rotational: self.rotational.yes,
            fast_zero,
            block,
            granules: self.granules,
            reads_into: self.reads_into,
            depth,
            ..Capabilities::new(size, depth.shared)
        }
    }

    fn start(&mut self, ring: &mut Ring<Token>, _: Instant, id: TransferId, transfer: Transfer) {
        let token = Token::Transfer(id);
        match transfer {
            Transfer::Read { offset, parts } => {
                self.read(ring, id, offset, parts.into_iter().map(Part::Own));
            }
            Transfer::ReadInto { offset, parts } => {
                self.read(ring, id, offset, parts.into_iter());
            }
            Transfer::Cache { len, .. } if self.alignment.is_some() => {
                self.works.push((id, Work::Hint { len }));
                ring.nop(token);
            }
            Transfer::Cache { offset, len } => {
                let len = u32::try_from(len).expect("a transfer is shorter than 4 GiB");
                ring.read(token, &self.file, offset, &[len]);
            }
            Transfer::Write { offset, from } => self.write(ring, id, offset, from),
            Transfer::Trim { offset, len } if self.punches => {
                self.allocate(ring, id, PUNCH, (offset, len), Work::Hint { len });
            }
            Transfer::Trim { len, .. } => {
                self.works.push((id, Work::Hint { len }));
                ring.nop(token);
            }
            Transfer::Zero { offset, len, allocate } if allocate || self.punches => {
                let mode = if allocate { ZERO } else { PUNCH };
                self.allocate(ring, id, mode, (offset, len), Work::Zero { offset, len });
            }
            Transfer::Zero { offset, len, .. } => self.write_zeroes(ring, id, offset, len),
            Transfer::Sync { range: SyncRange::Whole } => ring.sync(token, &self.file, None),
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
            (Some(Work::Hint { len } | Work::Zero { len, .. }), Ok(_))
            | (Some(Work::Hint { len }), Err(Errno::OPNOTSUPP)) => Ok(len),
            (Some(Work::Zero { offset, len }), Err(Errno::OPNOTSUPP)) => {
                self.write_zeroes(ring, id, offset, len);
                return None;
            }
            (_, result) => result.map(u64::from),
        };
        let read = completion.output.into_buffers().into_iter().map(BytesMut::freeze).collect();
        Some(TransferDone { id, transferred: Transferred::new(result, read) })
    }

    /// To whole blocks: what would lie in a short last one goes by a descriptor of its own.
    fn grow(&mut self, size: u64) -> io::Result<()> {
        let block = self.alignment.map_or(1, |alignment| alignment.block);
        if !size.is_multiple_of(block.into()) {
            let error = format!("whole blocks of {block} bytes are allowed");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, error));
        }
        self.size = size;
        Ok(())
    }

    fn extents(&self, offset: u64, len: u64) -> io::Result<Vec<Extent>> {
        extents::of(&self.file, offset, len)
    }

    fn cache(&self) -> Option<&Cache> {
        Some(&self.cache)
    }

    fn rotational_because(&self) -> String {
        self.rotational.because.clone()
    }

    fn damage(&self) -> Option<Damage> {
        damage::of(&self.file, self.size)
    }
}
