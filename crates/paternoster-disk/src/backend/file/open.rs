//! How a file or block device is opened.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{
    AtFlags, FlockOperation, OFlags, SeekFrom, StatxFlags, fallocate, fcntl_getfl, flock, fstat,
    seek, statx,
};
use rustix::io::Errno;

use super::aligned::Alignment;
use super::cache::{Cache, CacheChoice};
use super::{PUNCH, holder};
use crate::backend::device::{Rotational, is_rotational, queue_file};
use crate::backend::granules::Granules;
use crate::backend::in_memory::is_in_memory;
use crate::ring::Fd;

/// How a disk's file is to be opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileOptions {
    /// Nobody writes to it.
    pub read_only: bool,
    /// Past the page cache, or through it.
    pub cache: CacheChoice,
}

/// What direct I/O is taken to ask for where nothing says it.
const UNKNOWN: Alignment = Alignment { block: 4096, memory: 4096 };

/// A file that is open, and what is known of it.
pub(super) struct Opened {
    pub(super) file: Fd,
    /// In bytes.
    pub(super) size: u64,
    pub(super) rotational: Rotational,
    pub(super) punches: bool,
    pub(super) granules: Option<Granules>,
    pub(super) cache: Cache,
    /// None through the page cache.
    pub(super) alignment: Option<Alignment>,
}

impl Opened {
    /// Opens the file, or takes it as another server has opened it.
    pub(super) fn new(
        path: &Path,
        options: FileOptions,
        passed: Option<OwnedFd>,
    ) -> io::Result<Self> {
        let (file, direct) = match passed {
            Some(file) => adopt(file.into(), options)?,
            None => open(path, options)?,
        };
        lock(&file, options.read_only)?;
        let seen = file.metadata()?;
        let size = size(&file, &seen)?;
        let (cache, alignment) = match direct {
            Ok(said) => {
                let alignment = said.unwrap_or(UNKNOWN).for_tail_of(size);
                (direct_cache(path, said, alignment), Some(alignment))
            }
            Err(because) => (Cache { direct: false, binds: false, because }, None),
        };
        let punches = !options.read_only && can_punch(&file, &seen, size);
        let rotational = is_rotational(path, &seen);
        let granules = Granules::of(&seen).filter(|_| punches);
        let file = Arc::new(OwnedFd::from(file));
        Ok(Self { file, size, rotational, punches, granules, cache, alignment })
    }
}

/// Returns the bytes of a block of a file or device, as it would be opened that way. It is opened
/// for reading, and not locked.
pub fn block_of(path: &Path, cache: CacheChoice) -> io::Result<u32> {
    let (file, direct) = open(path, FileOptions { read_only: true, cache })?;
    let size = size(&file, &file.metadata()?)?;
    Ok(direct.map_or(1, |said| said.unwrap_or(UNKNOWN).for_tail_of(size).block))
}

/// Opens the same file again, through the page cache, for its last block. A file that has taken its
/// place meanwhile is refused.
///
/// The lock is the other descriptor's. It outlives a killed server until the server's last write
/// has ended: direct I/O of a ring goes on without its process, and keeps its descriptor open. A
/// write through the page cache is made by a thread of the process, and so ends before it.
pub(super) fn tail(path: &Path, options: FileOptions, first: &Fd) -> io::Result<Fd> {
    let again = OpenOptions::new().read(true).write(!options.read_only).open(path)?;
    let (first, second) = (fstat(first)?, fstat(&again)?);
    if (first.st_dev, first.st_ino) != (second.st_dev, second.st_ino) {
        return Err(io::Error::other("another file takes its place: try again"));
    }
    Ok(Arc::new(again.into()))
}

/// What is known of direct I/O on a file: the alignment, if the system says one; or why it is not
/// opened for that.
type Direct = Result<Option<Alignment>, String>;

fn open(path: &Path, options: FileOptions) -> io::Result<(File, Direct)> {
    let open = |flags: OFlags| {
        let is_device = std::fs::metadata(path)?.file_type().is_block_device();
        let own = if is_device && !options.read_only { OFlags::EXCL } else { OFlags::empty() };
        let flags = (flags | own).bits().cast_signed();
        let mut open = OpenOptions::new();
        open.read(true).write(!options.read_only).custom_flags(flags);
        open.open(path).map_err(|error| held(path, error))
    };
    let refused = match options.cache {
        CacheChoice::Page => "it is asked for".to_owned(),
        CacheChoice::Auto | CacheChoice::Direct => match open(OFlags::DIRECT) {
            Ok(file) => match alignment(&file)? {
                Ok(alignment) => return Ok((file, Ok(alignment))),
                Err(refused) => refused,
            },
            Err(error) if error.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => {
                "the file system refuses O_DIRECT".to_owned()
            }
            Err(error) => return Err(error),
        },
    };
    if options.cache == CacheChoice::Direct {
        return Err(io::Error::other(format!("direct I/O is asked for, and {refused}")));
    }
    Ok((open(OFlags::empty())?, Err(refused)))
}

/// Takes a file that is open already: its lock, and the kernel's report of a failed write-back, are
/// of how it was opened and go with it. So it stays as it is.
fn adopt(file: File, options: FileOptions) -> io::Result<(File, Direct)> {
    let flags = fcntl_getfl(&file)?;
    let is_read_only = flags & OFlags::ACCMODE == OFlags::RDONLY;
    if is_read_only != options.read_only {
        let [is, wanted] = [is_read_only, options.read_only]
            .map(|read_only| if read_only { "read-only" } else { "for writing" });
        return Err(io::Error::other(format!(
            "the server before has it open {is}, and {wanted} is asked for: restart the server"
        )));
    }
    match (flags.contains(OFlags::DIRECT), options.cache) {
        (true, CacheChoice::Page) | (false, CacheChoice::Direct) => {
            let is = if flags.contains(OFlags::DIRECT) { "past" } else { "through" };
            Err(io::Error::other(format!(
                "the server before has it open {is} the page cache, and `cache` asks for another \
                 way: restart the server"
            )))
        }
        (true, _) => match alignment(&file)? {
            Ok(said) => Ok((file, Ok(said))),
            Err(refused) => Err(io::Error::other(refused)),
        },
        (false, CacheChoice::Page) => Ok((file, Err("it is asked for".to_owned()))),
        (false, CacheChoice::Auto) => {
            Ok((file, Err("the server before has opened it so".to_owned())))
        }
    }
}

/// The error of an open, with the name of who has a device.
fn held(path: &Path, error: io::Error) -> io::Error {
    match std::fs::metadata(path) {
        Ok(seen) if error.raw_os_error() == Some(Errno::BUSY.raw_os_error()) => {
            io::Error::other(holder::of(seen.rdev()))
        }
        _ => error,
    }
}

fn lock(file: &File, read_only: bool) -> io::Result<()> {
    let lock = if read_only {
        FlockOperation::NonBlockingLockShared
    } else {
        FlockOperation::NonBlockingLockExclusive
    };
    flock(file, lock).map_err(|errno| match errno {
        Errno::WOULDBLOCK => {
            let holder = fstat(file).ok().and_then(|seen| holder::of_lock(&seen));
            let holder = holder.unwrap_or_else(|| "another program".to_owned());
            io::Error::new(io::ErrorKind::WouldBlock, format!("{holder} has locked it"))
        }
        other => other.into(),
    })
}

/// What statx says of direct I/O: nothing before Linux 6.1 and of some file systems, and 0 where
/// the file takes none.
fn alignment(file: &File) -> io::Result<Direct> {
    let seen = statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN)?;
    if seen.stx_mask & StatxFlags::DIOALIGN.bits() == 0 {
        return Ok(Ok(None));
    }
    let (block, memory) = (seen.stx_dio_offset_align, seen.stx_dio_mem_align);
    if block.is_power_of_two() && memory.is_power_of_two() {
        return Ok(Ok(Some(Alignment { block, memory })));
    }
    Ok(Err("statx says that the file takes no direct I/O".to_owned()))
}

impl Alignment {
    /// The same, with blocks of a page at least where the last one of so many bytes would be short.
    fn for_tail_of(self, size: u64) -> Self {
        let page = u32::try_from(rustix::param::page_size()).expect("a page is below 4 GiB");
        let is_short = !size.is_multiple_of(u64::from(self.block));
        Self { block: if is_short { self.block.max(page) } else { self.block }, ..self }
    }
}

fn direct_cache(path: &Path, said: Option<Alignment>, alignment: Alignment) -> Cache {
    let block = alignment.block;
    let binds = !is_in_memory(path);
    let how = match said {
        Some(said) if said.block == block => format!("statx says blocks of {block} bytes"),
        Some(said) => format!(
            "statx says blocks of {} bytes; the file does not fill its last one, which goes \
             through the page cache, and blocks are a page of {block} bytes",
            said.block
        ),
        None => format!("it takes O_DIRECT, and statx says no alignment: blocks of {block} bytes"),
    };
    let because =
        if binds { how } else { format!("{how}; its file system has it in memory all the same") };
    Cache { direct: true, binds, because }
}

fn size(file: &File, seen: &Metadata) -> io::Result<u64> {
    if seen.file_type().is_block_device() {
        Ok(seek(file, SeekFrom::End(0))?)
    } else {
        Ok(seen.len())
    }
}

/// Returns whether a range can be made zero without writing it. A file system is asked by one
/// beyond the end, which changes nothing; a device by sysfs.
fn can_punch(file: &File, seen: &Metadata, size: u64) -> bool {
    const ANY: u64 = 4096;
    if seen.file_type().is_block_device() {
        let most = queue_file(seen, "write_zeroes_max_bytes");
        return most.is_some_and(|(_, most)| most != "0");
    }
    fallocate(file, PUNCH, size.next_multiple_of(ANY), ANY).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Its last block would be written to the other file.
    #[test]
    fn file_that_has_taken_the_place_of_the_first_is_refused() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("disk.img");
        let first: Fd = Arc::new(File::create_new(&path).expect("a file").into());
        let options = FileOptions::default();
        assert!(tail(&path, options, &first).is_ok());
        let other = folder.path().join("other.img");
        File::create_new(&other).expect("a file");
        std::fs::rename(&other, &path).expect("it is renamed");
        assert!(tail(&path, options, &first).is_err());
    }
}
