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

mod pacing;
mod pattern;
mod submission;

use indexmap::IndexMap;
use paternoster::{IoPrio, Nanos, Weight};

use super::ends::Ends;
use super::error::Place;
use super::iolog::IoLog;
use super::logs::RunLogs;
pub use pacing::{Pacing, RateProcess, ThinkTime, ThinkTrigger};
pub use pattern::{
    BlockSizes, Coverage, Distribution, FileService, IoMix, Modifier, Order, Pattern, Region,
    Syncs, Zone,
};
pub(super) use pattern::{Sequencer, used_sizes};
pub use submission::{Advice, Batches, Engine, Submission, WriteSync};

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
    /// Where it says what its I/O does: `rw`, `read_iolog`, or its section.
    pub place: Place,
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
        self.pattern.mix.has(direction)
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
