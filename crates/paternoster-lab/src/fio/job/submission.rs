//! How a job hands its I/Os over.

/// How a job hands I/O to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Submission {
    /// By which calls, `ioengine`.
    pub engine: Engine,
    /// How many I/Os it has under way: `iodepth`, and 1 where the call waits.
    pub depth: u32,
    /// What it hands over together, and what it takes back together.
    pub batches: Batches,
    /// Past the page cache.
    pub direct: bool,
    /// Whether each write waits to be durable, `sync`.
    pub write_sync: WriteSync,
    /// The page cache forgets the job's files at the begin of each loop, and writes what is dirty.
    pub invalidate: bool,
    /// What the kernel is told of buffered I/O.
    pub advice: Advice,
}

impl Submission {
    /// Whether its reads and writes go through the page cache. Mapped memory is always pages of it.
    pub fn is_cached(&self) -> bool {
        match self.engine {
            Engine::Null => false,
            Engine::Mmap => true,
            _ => !self.direct,
        }
    }
}

/// What a job hands over with one call, and what it takes back with one. None of the numbers is 0
/// or more than the job's depth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batches {
    /// How many I/Os make a call, `iodepth_batch`.
    pub submit: u32,
    /// How far the depth falls once it was reached, before more I/O is made, `iodepth_low`.
    pub low: u32,
    /// How many completions are waited for, `iodepth_batch_complete_min`.
    pub complete_min: u32,
    /// How many are taken back at once, `iodepth_batch_complete_max`; no less than are waited for.
    pub complete_max: u32,
    /// Whether it looks again and again instead of sleeping: `iodepth_batch_complete_min=0`.
    pub polls: bool,
}

impl Batches {
    /// One at a time.
    pub const SINGLE: Self =
        Self { submit: 1, low: 1, complete_min: 1, complete_max: 1, polls: false };
}

/// What the kernel is told of buffered I/O, as `posix_fadvise` does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// Nothing.
    None,
    /// It is sequential: readahead is doubled.
    Sequential,
    /// It is random: nothing is read ahead.
    Random,
}

/// The calls by which I/O is handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// `read` and `write`, after `lseek`.
    Sync,
    /// `pread` and `pwrite`.
    Psync,
    /// `preadv2` and `pwritev2`.
    Pvsync2,
    /// Linux's `io_submit`. Buffered I/O waits in it.
    Libaio,
    /// `io_uring`.
    IoUring,
    /// The C library's `aio_read` and `aio_write`.
    PosixAio,
    /// Memory that is mapped: each page is read when it is touched.
    Mmap,
    /// Nothing is handed over; each I/O is complete at once.
    Null,
}

impl Engine {
    /// Whether the call waits until the I/O is done, so that one is under way at a time.
    pub fn waits(self) -> bool {
        match self {
            Self::Sync | Self::Psync | Self::Pvsync2 | Self::Mmap => true,
            Self::Libaio | Self::IoUring | Self::PosixAio | Self::Null => false,
        }
    }
}

/// Whether each write waits to be durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteSync {
    /// No.
    None,
    /// `O_SYNC`: with the file's metadata.
    Sync,
    /// `O_DSYNC`.
    DataSync,
}
