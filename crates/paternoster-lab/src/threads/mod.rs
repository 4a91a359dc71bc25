//! Threads of fio at work: each does in a simulation what its job says.
//!
//! ```text
//!   start.rs     not before lower stages and those it waits for have ended; then start_delay
//!   thread.rs    depth, runtime, the next I/O of the stream
//!   pacing.rs    thinktime and rate
//!   buffered.rs  reads through the page cache
//!   system.rs    what they share: the page cache
//!   tally.rs     what is counted
//!   progress.rs  when the last of them is expected to end
//!   start.rs     the end of one may be the end of others (exitall)
//! ```

mod buffered;
mod pacing;
mod progress;
mod run;
mod start;
mod system;
mod tally;
mod thread;

use paternoster::{Instant, Nanos};
use thiserror::Error;

use crate::fio::{Advice, DataDirection, Engine, IoMix, Job, Jobs};
use crate::report::Series;
use crate::result::JobResult;
use crate::sim::{Action, Ended, Moment, TaskId, TaskSetup, Workload};
use start::Starts;
use system::System;

pub use progress::Progress;
pub use run::{JobRunError, Outcome, run_jobs, run_jobs_under};
pub(crate) use run::{set_up, simulate};
use thread::Thread;

/// The error of a job that cannot be simulated.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ThreadError {
    /// Writes through the page cache.
    #[error(
        "job {job}: writes through the page cache are not simulated yet; direct=1 has them go past \
         it"
    )]
    BufferedWrites {
        /// The job.
        job: String,
    },
    /// Memory that is mapped.
    #[error("job {job}: ioengine=mmap is not simulated yet; psync reads the same pages by calls")]
    Mapped {
        /// The job.
        job: String,
    },
}

/// What a system does for threads, beside the block layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Host {
    /// The greatest readahead window, `read_ahead_kb`, in pages.
    pub read_ahead_pages: u64,
    /// How long a page is copied out of the page cache, with its share of the call.
    pub copy_page: Nanos,
    /// How much the page cache may hold.
    pub memory_bytes: u64,
}

impl Host {
    /// The host for a file of which the kernel was told that.
    fn advised(self, advice: Advice) -> Self {
        let read_ahead_pages = match advice {
            Advice::None => self.read_ahead_pages,
            Advice::Sequential => 2 * self.read_ahead_pages,
            Advice::Random => 0,
        };
        Self { read_ahead_pages, ..self }
    }

    /// How long so many pages are copied.
    fn copy(self, pages: u64) -> Nanos {
        Nanos::new(self.copy_page.as_nanos() * pages)
    }
}

impl Default for Host {
    /// 128 KiB of readahead, as Linux has it, 1 µs a page, and 4 GiB.
    fn default() -> Self {
        Self { read_ahead_pages: 32, copy_page: Nanos::from_micros(1), memory_bytes: 4 << 30 }
    }
}

/// The threads of a job file.
#[derive(Debug)]
pub struct Threads {
    each: Vec<Thread>,
    system: System,
    starts: Starts,
    setups: Vec<TaskSetup>,
}

impl Threads {
    /// Makes the threads of these jobs, which have not started.
    pub fn new(jobs: &Jobs, host: Host) -> Result<Self, ThreadError> {
        jobs.jobs.iter().try_for_each(check)?;
        let group_of = |path: &str| jobs.groups.iter().position(|group| group.path == path);
        let setups = jobs.jobs.iter().map(|job| TaskSetup {
            group: group_of(&job.group),
            io_prio: job.io_prio.unwrap_or_default(),
            start: Instant::START,
        });
        Ok(Self {
            setups: setups.collect(),
            each: jobs.jobs.iter().map(Thread::new).collect(),
            system: System::new(jobs, host),
            starts: Starts::new(&jobs.jobs),
        })
    }

    /// What was measured of each job, in their order.
    pub fn results(&self) -> Vec<JobResult> {
        self.each.iter().map(|thread| thread.result().clone()).collect()
    }

    /// Has what completes be counted over time, too.
    pub(crate) fn keep_series(&mut self) {
        self.each.iter_mut().for_each(Thread::keep_series);
    }

    /// What completed over time, by job; nothing unless that was to be kept.
    pub(crate) fn series(&self) -> Vec<Series> {
        self.each.iter().map(|thread| thread.series().cloned().unwrap_or_default()).collect()
    }

    /// The thread has ended: others may start now, or have to end.
    fn end(&mut self, moment: &mut Moment<'_>, ended: TaskId) -> Action {
        self.each[ended.index()].end(moment.now);
        for stopped in self.starts.end(ended.index()) {
            self.each[stopped].stop();
            moment.wake(task(stopped));
        }
        for index in 0..self.each.len() {
            if self.starts.may_start(index) && !self.each[index].has_started() {
                moment.wake(task(index));
            }
        }
        Action::Exit
    }
}

fn task(index: usize) -> TaskId {
    TaskId(u32::try_from(index).expect("jobs are counted in u32"))
}

fn check(job: &Job) -> Result<(), ThreadError> {
    let name = || job.name.clone();
    let submission = &job.submission;
    if submission.engine == Engine::Mmap {
        return Err(ThreadError::Mapped { job: name() });
    }
    let writes = job.pattern.mix != IoMix::Only(DataDirection::Read);
    if writes && !submission.direct && submission.engine != Engine::Null {
        return Err(ThreadError::BufferedWrites { job: name() });
    }
    Ok(())
}

impl Workload for Threads {
    fn tasks(&self) -> Vec<TaskSetup> {
        self.setups.clone()
    }

    fn next(&mut self, moment: &mut Moment<'_>, task: TaskId) -> Action {
        let index = task.index();
        let thread = &mut self.each[index];
        if !thread.has_started() {
            if self.starts.is_cancelled(index) {
                return self.end(moment, task);
            }
            if !self.starts.may_start(index) {
                return Action::Wait;
            }
            thread.start(moment.now);
        }
        match thread.next(&mut self.system, moment.now, task) {
            Some(action) => action,
            None => self.end(moment, task),
        }
    }

    fn completed(&mut self, moment: &mut Moment<'_>, ended: &Ended) {
        let thread = &mut self.each[ended.task.index()];
        thread.worked(ended.completed, ended.cpu);
        if !self.system.completed(moment, ended.io.name) {
            thread.completed(ended);
        }
    }
}
