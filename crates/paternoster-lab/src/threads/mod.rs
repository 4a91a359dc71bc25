//! Threads of fio at work: each does in a simulation what its job says.
//!
//! ```text
//!   start.rs           not before lower stages and those it waits for have ended; then start_delay
//!   thread.rs          depth, runtime, the next I/O of the stream
//!   batching.rs        what it hands over together, and takes back together
//!   pacing.rs          thinktime and rate
//!   replaying.rs       the I/O of a log, when it is due
//!   iolog_writer.rs    a log of the I/O that a thread issues
//!   stand_still.rs     whether time goes by
//!   bounds.rs          the longest latency, and the least rates
//!   depth_search.rs    the depth that a latency target allows
//!   calls.rs           its calls through the page cache, one at a time
//!   buffered.rs        reads and writes through the page cache
//!   syncing.rs         a sync of a file
//!   system.rs          what they share: the page cache, what is under way
//!   flusher.rs         who writes dirty pages
//!   tally.rs           what is counted
//!   windows.rs         rates, window by window
//!   run_log_writer.rs  the lines of its logs of the run
//!   sinks.rs           where those go
//!   progress.rs        when the last of them is expected to end
//!   steady.rs          whether they are steady (steadystate)
//!   start.rs           the end of one may be the end of others (exitall)
//! ```

mod batching;
mod bounds;
mod buffered;
mod calls;
mod depth_search;
mod flusher;
mod iolog_writer;
mod pacing;
mod progress;
mod replaying;
mod run;
mod run_log_writer;
mod sinks;
mod stand_still;
mod start;
mod steady;
mod syncing;
mod system;
mod tally;
mod thread;
mod windows;

use paternoster::{Instant, IoPrio, Nanos, Sector};

use crate::cache::{Throttling, WritebackRules};
use crate::fio::{Advice, Jobs, Mistake, Place, Run};
use crate::journal::{Journal, JournalPlace};
use crate::report::Series;
use crate::result::{JobResult, Together};
use crate::sim::{Action, Ended, Moment, TaskId, TaskSetup, Workload};
use flusher::{Service, Services, Timer};
use iolog_writer::IoLogWriter;
use run_log_writer::RunLogWriter;
pub use sinks::{SinkError, Sinks};
use start::Starts;
use steady::{Check, Checkers, Transferred};
use system::System;

pub use flusher::WritebackGroup;
pub use progress::Progress;
pub use run::{JobRunError, Outcome, Served, check_jobs, run_jobs, run_jobs_into, run_jobs_under};
pub(crate) use run::{set_up, simulate};
use thread::Thread;

/// How the page cache serves threads, and the journal of the file system behind it. It is a part of
/// a [`Host`](crate::host::Host), which has the processors' costs as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageCacheParameters {
    /// The greatest readahead window, `read_ahead_kb`, in pages.
    pub read_ahead_pages: u64,
    /// How long a page is copied out of the page cache, with its share of the call.
    pub copy_page: Nanos,
    /// How much the page cache may hold.
    pub memory_bytes: u64,
    /// When dirty pages are written.
    pub writeback: WritebackRules,
    /// In whose name.
    pub writeback_group: WritebackGroup,
    /// In which way writers are held back when too much is dirty.
    pub throttling: Throttling,
    /// The journal of the file system; a device has none.
    pub journal: Option<JournalPlace>,
}

impl PageCacheParameters {
    /// The same for a file of which the kernel was told that.
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

impl Default for PageCacheParameters {
    /// 128 KiB of readahead, as Linux has it, 1 µs a page, and 4 GiB, without a journal.
    fn default() -> Self {
        Self {
            read_ahead_pages: 32,
            copy_page: Nanos::from_micros(1),
            memory_bytes: 4 << 30,
            writeback: WritebackRules::default(),
            writeback_group: WritebackGroup::default(),
            throttling: Throttling::default(),
            journal: None,
        }
    }
}

/// The threads of a job file.
#[derive(Debug)]
pub struct Threads {
    each: Vec<Thread>,
    /// How many of them have not ended.
    running: usize,
    system: System,
    timer: Timer,
    starts: Starts,
    checkers: Checkers,
    together: Together,
    /// The thread whose I/O takes no time, and never ends.
    without_time: Option<usize>,
    setups: Vec<TaskSetup>,
}

impl Threads {
    /// Makes the threads of these jobs, which have not started.
    pub fn new(jobs: &Jobs, page_cache: PageCacheParameters) -> Self {
        let group_of = |path: &str| jobs.groups.iter().position(|group| group.path == path);
        let setups = jobs.jobs.iter().map(|job| TaskSetup {
            group: group_of(&job.group),
            io_prio: job.io_prio.unwrap_or_default(),
            start: Instant::START,
        });
        let services = Services::new(jobs, page_cache);
        let before: Vec<_> = setups.chain(services.tasks()).collect();
        let checkers = Checkers::new(&jobs.jobs, before.len());
        // They submit nothing.
        let check = TaskSetup { group: None, io_prio: IoPrio::default(), start: Instant::START };
        let checks = std::iter::repeat_n(check, checkers.count());
        let may_be_stopped = jobs.jobs.iter().any(|job| {
            let Run { exit, exits_on_error, .. } = &job.run;
            exit.is_some() || *exits_on_error || job.ends.steady_state.is_some()
        });
        Self {
            setups: before.into_iter().chain(checks).collect(),
            each: jobs.jobs.iter().map(|job| Thread::new(job, may_be_stopped)).collect(),
            running: jobs.jobs.len(),
            system: System::new(jobs, page_cache, services),
            timer: Timer::default(),
            starts: Starts::new(&jobs.jobs),
            checkers,
            together: Together::new(jobs.jobs.iter().map(|job| job.reports.is_told)),
            without_time: None,
        }
    }

    /// Where the journal lies, if there is one.
    fn journal(&self) -> Option<JournalPlace> {
        self.system.journal.as_ref().map(Journal::place)
    }

    /// The device ends there.
    fn ends_at(&mut self, device_end: Sector) {
        self.system.ends_at(device_end);
    }

    /// Where a job says what its I/O does that takes no time and never ends, and its name.
    fn without_time(&self) -> Option<(&Place, &str)> {
        self.without_time.map(|index| self.each[index].stand_still().job())
    }

    /// Why a log could not be replayed to its end.
    fn failure(&self) -> Option<&Mistake> {
        self.each.iter().find_map(Thread::failure)
    }

    /// What was measured of each job, in their order.
    pub fn results(&self) -> Vec<JobResult> {
        let results = self.each.iter().enumerate().map(|(index, thread)| {
            let mut result = thread.result().clone();
            result.steady = self.checkers.steady(index);
            self.together.tell(index, &mut result);
            result
        });
        results.collect()
    }

    /// What the tasks behind the threads are called that submit I/O, with their groups; the root's
    /// have none.
    pub(crate) fn services(&self) -> Vec<(&'static str, Option<usize>)> {
        self.system.service_names()
    }

    /// Has what completes be counted over time, too.
    pub(crate) fn keep_series(&mut self) {
        self.each.iter_mut().for_each(Thread::keep_series);
    }

    /// Has the files of the jobs written into `sinks`: those that were opened for the same jobs.
    pub(crate) fn write_into(&mut self, jobs: &Jobs, sinks: Sinks) {
        for (thread, job) in self.each.iter_mut().zip(&jobs.jobs) {
            thread.write_logs(RunLogWriter::new(job, &sinks));
            thread.write_iolog(IoLogWriter::new(job, jobs, &sinks));
        }
        self.system.sinks = sinks;
    }

    /// Says whether all could be written so far that was to be.
    pub(crate) fn check_written(&self) -> Result<(), SinkError> {
        self.system.sinks.check()
    }

    /// What completed over time, by job; nothing unless that was to be kept.
    pub(crate) fn series(&self) -> Vec<Series> {
        self.each.iter().map(|thread| thread.series().cloned().unwrap_or_default()).collect()
    }

    fn next_of_thread(&mut self, moment: &mut Moment<'_>, task: TaskId) -> Action {
        let index = task.index();
        let thread = &mut self.each[index];
        if !thread.has_started() {
            if self.starts.is_cancelled(index) {
                return self.end(moment, task);
            }
            if !self.starts.may_start(index) {
                return Action::Wait;
            }
            let counted_from = thread.start(&mut self.system.sinks, moment.now);
            self.together.begin(index, counted_from);
            if let Some(checker) = self.checkers.started(index, counted_from) {
                moment.wake(checker);
            }
        }
        let action = thread.next(&mut self.system, moment.now, task);
        if thread.stand_still().is_over() {
            self.without_time = Some(index);
        }
        self.follow(index, moment.now);
        match action {
            Some(action) => action,
            None => self.end(moment, task),
        }
    }

    /// Has the time known in which all threads have something to do.
    fn follow(&mut self, index: usize, now: Instant) {
        let thread = &self.each[index];
        let done = thread.result().directions.each_ref().map(|direction| direction.bytes);
        self.together.update(now, index, done, thread.has_work());
    }

    /// Ends the threads that have not ended, for the figures: what is under way does not count.
    fn interrupt(&mut self, now: Instant) {
        self.together.close(now);
        for (index, thread) in self.each.iter_mut().enumerate() {
            if !self.starts.has_ended(index) {
                thread.end(&mut self.system.sinks, now);
            }
        }
        self.system.sinks.flush();
    }

    fn serve(&mut self, service: Service, now: Instant, task: TaskId) -> Action {
        match service {
            Service::Flusher(flusher) => self.system.flush_on(now, flusher, task),
            Service::Timer => self.timer.step(&mut self.system, now),
            Service::Journal => self.system.journal_on(),
        }
    }

    /// Looks whether threads are steady, and stops them if they are.
    fn check(&mut self, moment: &mut Moment<'_>, task: TaskId) -> Action {
        let checker = self.checkers.of_task(task).expect("it is one");
        if checker.threads().iter().all(|&thread| self.starts.has_ended(thread)) {
            return Action::Exit;
        }
        let all = checker.threads().iter().map(|&thread| self.each[thread].transferred());
        let done = all.fold(Transferred::default(), |sum, one| Transferred {
            ios: sum.ios + one.ios,
            bytes: sum.bytes + one.bytes,
        });
        match checker.check(moment.now, done) {
            Check::GoOn(action) => action,
            Check::Attained => {
                for &thread in checker.threads() {
                    self.each[thread].stop_with_others();
                    moment.wake(self::task(thread));
                }
                Action::Exit
            }
        }
    }

    /// Has those asked again for whom something has come.
    fn wake(&mut self, moment: &mut Moment<'_>) {
        for task in self.system.woken.drain(..) {
            moment.wake(task);
        }
    }

    /// The thread has ended: others may start now, or have to end.
    fn end(&mut self, moment: &mut Moment<'_>, ended: TaskId) -> Action {
        self.each[ended.index()].end(&mut self.system.sinks, moment.now);
        self.running -= 1;
        if self.running == 0 {
            self.system.sinks.flush();
        }
        let has_failed = self.each[ended.index()].has_failed();
        for stopped in self.starts.end(ended.index(), has_failed) {
            self.each[stopped].stop_with_others();
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

impl Workload for Threads {
    fn tasks(&self) -> Vec<TaskSetup> {
        self.setups.clone()
    }

    fn next(&mut self, moment: &mut Moment<'_>, task: TaskId) -> Action {
        let action = match self.system.service(task) {
            _ if self.checkers.of_task(task).is_some() => self.check(moment, task),
            Some(service) => self.serve(service, moment.now, task),
            None => self.next_of_thread(moment, task),
        };
        self.wake(moment);
        action
    }

    fn completed(&mut self, moment: &mut Moment<'_>, ended: &Ended) {
        let is_of_system = self.system.completed(ended.io.name);
        if let Some(thread) = self.each.get_mut(ended.task.index()) {
            thread.worked(ended.completed, ended.cpu);
            if !is_of_system {
                thread.completed(&mut self.system.sinks, ended);
                self.follow(ended.task.index(), moment.now);
            }
        }
        self.wake(moment);
    }

    fn has_ended(&self) -> bool {
        self.running == 0 || self.without_time.is_some()
    }
}
