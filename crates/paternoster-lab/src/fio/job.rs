//! Jobs: what the sections of a job file come to, each thread a job of its own.
//!
//! ```text
//!   Jobs ── jobs ── Job ── pattern     what it reads and writes: stream.rs makes I/Os of it
//!    │                 ├── submission  how it hands them over
//!    │                 ├── pacing      how fast
//!    │                 ├── ends        what ends it beside its work and its runtime
//!    │                 ├── run         when it starts and ends
//!    │                 └── reports     what is told of it
//!    ├── files         where each lies on the device
//!    ├── groups        weights
//!    └── notes         options that change nothing in a model
//! ```

use std::sync::Arc;

use indexmap::IndexMap;
use paternoster::{IoPrio, Nanos, Weight};

use super::ends::Ends;
use super::error::Place;
use super::iolog::IoLog;
use super::logs::RunLogs;
use super::value::{Extent, PerDirection};

/// The jobs of a job file.
#[derive(Clone, Debug)]
pub struct Jobs {
    /// Every thread that fio would start, in the order of the file.
    pub jobs: Vec<Job>,
    /// What they read and write.
    pub files: Vec<File>,
    /// Groups but the root, parents before children.
    pub groups: Vec<Group>,
    /// What was said and changes nothing.
    pub notes: Vec<Note>,
    /// The options of all `[global]` sections as given, for the report.
    pub global_options: IndexMap<String, String>,
}

/// A job: one thread of fio.
#[derive(Clone, Debug)]
pub struct Job {
    /// The name of its section, or what `name` says.
    pub name: String,
    /// What `description` says.
    pub description: Option<String>,
    /// The options of its section as given, for the report.
    pub options: IndexMap<String, String>,
    /// The section that it comes from, counted without `[global]`; its clones have the same.
    pub section: usize,
    /// The path of its group.
    pub group: String,
    /// Its I/O priority; none was set where absent.
    pub io_prio: Option<IoPrio>,
    /// What it reads and writes, unless it replays a log.
    pub pattern: Pattern,
    /// The log that it replays; its pattern then only has the log's files.
    pub replay: Option<IoLog>,
    /// Where it writes a log of its I/O, `write_iolog`.
    pub write_iolog: Option<String>,
    /// How it hands I/O over.
    pub submission: Submission,
    /// How fast.
    pub pacing: Pacing,
    /// What ends it beside its work and its runtime.
    pub ends: Ends,
    /// When it starts and ends.
    pub run: Run,
    /// What is told of it.
    pub reports: Reports,
}

impl Job {
    /// Whether any of its I/O has that direction.
    pub fn does(&self, direction: DataDirection) -> bool {
        if let Some(log) = &self.replay {
            return log.does(direction);
        }
        match self.pattern.mix {
            IoMix::Only(only) => only == direction,
            IoMix::ReadsAndWrites { .. } => direction != DataDirection::Trim,
            IoMix::TrimsAndWrites => direction != DataDirection::Read,
        }
    }
}

/// A file or the device itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its path.
    pub path: String,
    /// How long it is.
    pub bytes: u64,
    /// Where it starts on the device, in bytes. It lies there in one piece.
    pub start: u64,
}

/// A group, as cgroups are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// From the root: `/a/b`.
    pub path: String,
    /// Against its siblings; the scheduler's default where absent.
    pub weight: Option<Weight>,
    /// Of its own I/O against its child groups; the scheduler's default where absent.
    pub leaf_weight: Option<Weight>,
}

/// An option that changes nothing in a model.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Note {
    /// Where it stands.
    pub place: Place,
    /// Its name.
    pub option: String,
    /// Why it changes nothing.
    pub why: &'static str,
}

/// The data directions of fio.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DataDirection {
    /// From the device.
    Read = 0,
    /// To the device.
    Write = 1,
    /// The data are no longer needed.
    Trim = 2,
}

impl DataDirection {
    /// All of them, in fio's order.
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Trim];
}

/// What a job reads and writes: see [`Stream`](super::Stream).
#[derive(Clone, Debug)]
pub struct Pattern {
    /// Which directions, `rw`.
    pub mix: IoMix,
    /// Whether positions are drawn, `rw`.
    pub order: Order,
    /// What the number behind `rw=...:` says; none where absent.
    pub modifier: Option<Modifier>,
    /// How large the I/Os of each direction are, `bs`, `bsrange`, `bssplit`.
    pub sizes: PerDirection<BlockSizes>,
    /// The first size is of sequential I/O and the second of random I/O, `bs_is_seq_rand`.
    pub sizes_by_order: bool,
    /// What random positions are multiples of, `ba`; the least block size where absent.
    pub align: PerDirection<Option<u64>>,
    /// How random positions are drawn.
    pub distribution: Distribution,
    /// How many percent of the I/Os of a random job are random.
    pub percent_random: PerDirection<u8>,
    /// Whether a block is visited again before all were, `norandommap`.
    pub coverage: Coverage,
    /// The parts of files that it works on, at least one.
    pub regions: Vec<Region>,
    /// Which of them is next.
    pub file_service: FileService,
    /// How much it does in a loop, in bytes; the whole of its regions where absent.
    pub io_bytes: Option<u64>,
    /// How often, `loops`.
    pub loops: u32,
    /// It begins again for ever, `time_based`; the engine ends it at `runtime`.
    pub is_endless: bool,
    /// After how many I/Os it ends, `number_ios`.
    pub number_ios: Option<u64>,
    /// When it syncs.
    pub syncs: Syncs,
    /// Each loop has the same random positions, `randrepeat`.
    pub repeat: bool,
    /// Of all its draws, from `randseed` or the seed of the run.
    pub seed: u64,
    /// Which I/Os of reads and of writes have a priority of their own.
    pub command_priority: [Option<CommandPriority>; 2],
}

/// Which directions a job's I/O has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoMix {
    /// One direction.
    Only(DataDirection),
    /// Reads and writes; `rwmixread` says how many percent are reads.
    ReadsAndWrites {
        /// Percent.
        reads: u8,
    },
    /// Each block is trimmed and then written.
    TrimsAndWrites,
}

/// Which of the three sizes a mix has: those of its directions, or by order.
pub(super) fn used_sizes(mix: IoMix, by_order: bool) -> &'static [usize] {
    match mix {
        _ if by_order => &[0, 1],
        IoMix::Only(DataDirection::Read) => &[0],
        IoMix::Only(DataDirection::Write) => &[1],
        IoMix::ReadsAndWrites { .. } => &[0, 1],
        // A write has the size of the trim before it.
        IoMix::Only(DataDirection::Trim) | IoMix::TrimsAndWrites => &[2],
    }
}

/// In what order a job visits blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// One behind the other.
    Sequential,
    /// Drawn.
    Random,
}

/// What the number behind `rw=...:` does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Modifier {
    /// Sequential I/O leaves out so many bytes between two blocks.
    Holes(u64),
    /// A random position is drawn for so many I/Os, which follow each other.
    Runs(u64),
    /// A random position is drawn for so many I/Os, which are all there.
    Repeats(u64),
}

/// `rw_sequencer`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sequencer {
    Sequential,
    Identical,
}

/// How large I/Os are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockSizes {
    /// All of one size, in bytes.
    Fixed(u64),
    /// Any multiple of `step`, from `min` to `max` bytes.
    Range {
        /// The least size.
        min: u64,
        /// The greatest.
        max: u64,
        /// The least size, or 1 with `bs_unaligned`.
        step: u64,
    },
    /// Each size with its part in percent, 100 in all.
    Split(Vec<(u64, u8)>),
}

impl BlockSizes {
    /// The least size.
    pub fn min(&self) -> u64 {
        match self {
            Self::Fixed(size) | Self::Range { min: size, .. } => *size,
            Self::Split(parts) => parts.iter().map(|&(size, _)| size).min().unwrap_or(1),
        }
    }
}

/// How random positions are drawn.
#[derive(Clone, Debug, PartialEq)]
pub enum Distribution {
    /// All alike.
    Uniform,
    /// The block of rank r is drawn in proportion to r^-theta. Ranks are scattered.
    Zipf {
        /// The exponent.
        theta: f64,
        /// Where rank 1 lies, 0 to 1 of the region; drawn where absent.
        center: Option<f64>,
    },
    /// A part `h` of the blocks gets a part 1 - `h` of the draws, and so on within it.
    Pareto {
        /// Between 0 and 1.
        h: f64,
        /// Where the block drawn most lies, 0 to 1 of the region; drawn where absent.
        center: Option<f64>,
    },
    /// By a bell curve around its center.
    Normal {
        /// The standard deviation, in percent of the region.
        deviation: f64,
        /// The middle, 0 to 1 of the region.
        center: f64,
    },
    /// Parts of the region, from its start on, for each direction.
    Zoned(Arc<PerDirection<Vec<Zone>>>),
}

/// A part of a zoned distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zone {
    /// How many percent of the draws are in it.
    pub percent: u8,
    /// How large it is.
    pub size: Extent,
}

/// Whether a block is visited again before all were.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coverage {
    /// No.
    EachOnce,
    /// It may be.
    Any,
}

/// A part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// The index of the file in [`Jobs::files`].
    pub file: usize,
    /// Where it starts in the file, in bytes.
    pub start: u64,
    /// How long it is.
    pub bytes: u64,
}

/// Which of a job's files is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileService {
    /// The files in turns, after so many I/Os.
    RoundRobin {
        /// At least 1.
        ios: u32,
    },
    /// A file until it is done.
    Sequential,
    /// A drawn one, after so many I/Os.
    Random {
        /// At least 1.
        ios: u32,
    },
}

/// When a job syncs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Syncs {
    /// After so many writes; 0, never.
    pub fsync: u32,
    /// The same with `fdatasync`.
    pub fdatasync: u32,
    /// At the end of the job and of each loop.
    pub at_end: bool,
    /// When a file is closed, which is at the end of each loop.
    pub at_close: bool,
}

/// A part of the I/Os has a priority of its own, `cmdprio_*`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandPriority {
    /// How many percent.
    pub percent: u8,
    /// Which.
    pub io_prio: IoPrio,
}

/// How a job hands I/O to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Submission {
    /// By which calls, `ioengine`.
    pub engine: Engine,
    /// How many I/Os it has under way: `iodepth`, and 1 where the call waits.
    pub depth: u32,
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

/// How fast a job goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pacing {
    /// It pauses between blocks of I/O.
    pub think: Option<ThinkTime>,
    /// How many bytes a second it submits at most.
    pub rate_bytes_per_s: PerDirection<Option<u64>>,
    /// How moments are chosen where there is a rate.
    pub rate_process: RateProcess,
    /// What was missed while thinking is not caught up.
    pub rate_ignores_think: bool,
}

/// A pause, `thinktime`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThinkTime {
    /// How long.
    pub pause: Nanos,
    /// How much of it the processor is busy.
    pub spin: Nanos,
    /// After how many I/Os, if they count.
    pub ios: Option<u32>,
    /// What counts as one.
    pub trigger: ThinkTrigger,
    /// Also after so much time of I/O.
    pub after: Option<Nanos>,
}

/// What `thinktime_blocks` counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThinkTrigger {
    /// I/Os that completed.
    Complete,
    /// I/Os that were submitted.
    Issue,
}

/// How the moments of a rate are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateProcess {
    /// Evenly.
    Linear,
    /// The time between two is drawn, as of a Poisson process.
    Poisson,
}

/// When a job starts and ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// All jobs of lower stages end before it starts, `stonewall`.
    pub stage: u32,
    /// The jobs that end before it starts, by index, `wait_for`.
    pub wait_for: Vec<usize>,
    /// How long it waits then.
    pub start_delay: Nanos,
    /// How long it runs before anything is counted.
    pub ramp_time: Nanos,
    /// When it ends, counted from the end of the ramp; never where absent.
    pub runtime: Option<Nanos>,
    /// Whom its end ends.
    pub exit: Option<ExitWhat>,
    /// If it ends with an error, all others end too.
    pub exits_on_error: bool,
}

/// Whom the end of a job ends, `exit_what`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitWhat {
    /// The jobs of its reporting group.
    Group,
    /// All jobs that run; those of the next stage start.
    Stonewall,
    /// All jobs, also those that have not started.
    All,
}

/// What is told of a job.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::struct_excessive_bools, reason = "each is an option of fio's")]
pub struct Reports {
    /// It is in the report, `stats`.
    pub is_told: bool,
    /// Its reporting group, from 0.
    pub group_id: u32,
    /// The jobs of its reporting group that have this too are told as one.
    pub grouped: bool,
    /// Above 0, 100 at most.
    pub percentiles: Vec<f64>,
    /// Percentiles of submission latencies.
    pub slat_percentiles: bool,
    /// Percentiles of completion latencies.
    pub clat_percentiles: bool,
    /// Percentiles of total latencies.
    pub lat_percentiles: bool,
    /// Over what time a sample of the bandwidth is taken.
    pub bandwidth_window: Nanos,
    /// Over what time a sample of the I/Os a second is taken.
    pub iops_window: Nanos,
    /// The logs that it writes.
    pub logs: RunLogs,
}
