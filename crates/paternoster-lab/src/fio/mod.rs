//! Job files of fio, and job options of its command line: read by fio's rules, and turned into jobs
//! that make I/Os.
//!
//! ```text
//!   NAME.fio ──▶ sections ──▶ options ──▶ resolve ──▶ Jobs ──▶ Stream ──▶ Io, Io, ...
//!                lines,       one table,   clones,     one for   one for
//!                includes,    units,       files,      each      each job
//!                variables    mistakes     groups      thread
//! ```
//!
//! What is written in a job file is simulated, is noted as changing nothing in a model, or is
//! refused with its file, line and column; nothing is skipped silently. [`options()`] is the list.
//! The rules are those of fio's documentation. Where that leaves something open, they are those
//! that fio 3.33 shows when it runs; `docs/fio-jobs.md` says which.

mod arguments;
mod command_priority;
mod direct;
mod distribution;
mod ends;
mod error;
mod files;
mod iolog;
mod job;
mod keys;
mod logs;
mod options;
mod permutation;
mod replay;
mod resolve;
mod sections;
mod spec;
mod spot;
mod stream;
mod text;
mod unused;
mod unvisited;
mod used_files;
mod value;

pub use command_priority::CommandPriorities;
pub use ends::{
    Ends, LatencyTarget, LeastRate, LeastRates, SteadyCriterion, SteadyRate, SteadyState,
};
pub use error::{JobFileError, Mistake, Place};
pub(crate) use iolog::{Entry, Replay, Step, Timing};
pub use iolog::{IoLog, ReadAt};
pub use job::{
    Advice, Batches, BlockSizes, Coverage, DataDirection, Distribution, Engine, ExitWhat, File,
    FileService, Group, IoMix, Job, Jobs, Modifier, Note, Order, Pacing, Pattern, RateProcess,
    Region, Reports, Run, Submission, Syncs, ThinkTime, ThinkTrigger, WriteSync, Zone,
};
pub use logs::{IoPriority, LogKind, RunLogs};
pub use options::{OptionInfo, Support, options};
pub use paternoster_intake::iolog::IoOp;
pub use sections::Surroundings;
pub use stream::{Io, Stream};
pub use used_files::FileKey;
pub use value::Extent;

use error::Mistakes;

impl Jobs {
    /// Reads a job file, which mistakes call `name`.
    ///
    /// # Panics
    ///
    /// If the device has more than 2^63 bytes.
    pub fn parse(
        name: &str,
        bytes: &[u8],
        surroundings: &Surroundings<'_>,
    ) -> Result<Self, JobFileError> {
        Self::parse_with_arguments(&[], Some((name, bytes)), surroundings)
    }

    /// Reads job options of a command line, as fio takes them, and then a job file, its name and
    /// its bytes, if there is one. What the options say before their first `--name` holds for the
    /// jobs of the file, too, where the file does not say otherwise.
    ///
    /// # Panics
    ///
    /// If the device has more than 2^63 bytes.
    pub fn parse_with_arguments(
        arguments: &[String],
        file: Option<(&str, &[u8])>,
        surroundings: &Surroundings<'_>,
    ) -> Result<Self, JobFileError> {
        assert!(surroundings.device_bytes <= 1 << 63, "a device has at most 2^63 bytes");
        let mut mistakes = Mistakes::default();
        let mut lines = arguments::read(arguments, &mut mistakes);
        if let Some((name, bytes)) = file {
            let of_file = sections::read(name, bytes, surroundings, &mut mistakes);
            if !of_file.have_jobs() {
                let place = Place { file: name.into(), line: 1, column: 1, argument: None };
                let what = "a job file needs a section other than [global], such as [job]";
                mistakes.add(Mistake { place, what: what.to_owned() });
            }
            lines.extend(of_file);
        } else if !lines.have_jobs() {
            mistakes.add(arguments::no_job(arguments));
        }
        let jobs = resolve::jobs(&lines, surroundings, &mut mistakes);
        mistakes.end(jobs)
    }
}
