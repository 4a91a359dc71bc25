//! One thread: what it does next, from its start to its end.

use paternoster::{BioFlags, Instant, Nanos, Op, Sector, SectorCount};
use slab::Slab;

use super::batching::{Batching, Complete, Taking};
use super::bounds::Bounds;
use super::calls::{Called, Calls};
use super::depth_search::{self, DepthSearch};
use super::iolog_writer::IoLogWriter;
use super::pacing::Pace;
use super::progress::at_this_pace;
use super::replaying::{Next, Replaying};
use super::run_log_writer::{Done, RunLogWriter};
use super::sinks::Sinks;
use super::stand_still::StandStill;
use super::steady::Transferred;
use super::system::{SECTOR, System};
use super::tally::Tally;
use crate::fio::{
    self, DataDirection, Engine, Entry, IoOp, IoPriority, Job, Mistake, Run, Stream, Submission,
    WriteSync,
};
use crate::report::Series;
use crate::result::{JobError, JobResult, Took};
use crate::sim::{Action, Ended, Io, TaskId};

/// A thread.
#[derive(Debug)]
pub(super) struct Thread {
    source: Source,
    submission: Submission,
    run: Run,
    batching: Batching,
    pace: Pace,
    bounds: Bounds,
    stand_still: StandStill,
    /// The search for its depth, with `latency_target`.
    search: Option<DepthSearch>,
    /// What it has read, written and trimmed since its start.
    transferred: Transferred,
    /// The I/O that is next, taken from the stream and waiting for its time.
    next: Option<fio::Io>,
    /// Others may end it, so that it sleeps in pieces.
    may_be_stopped: bool,
    /// Others have ended it.
    is_stopped: bool,
    /// When its ramp ends, if it has not.
    ramp_end: Option<Instant>,
    /// Its calls that go through the page cache.
    calls: Calls,
    /// How many passes over its files it has begun.
    passes: u32,
    /// Its outstanding I/Os, those of the page cache apart. Their keys are their names.
    outstanding: Slab<fio::Io>,
    phase: Phase,
    tally: Tally,
    /// The log of its I/O that it writes.
    iolog: Option<IoLogWriter>,
}

/// Where its I/Os come from.
#[derive(Debug)]
enum Source {
    Stream(Box<Stream>),
    Log(Box<Replaying>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// It may not start yet.
    Waiting,
    /// It runs from `from` on, and stops at `until`.
    Running { from: Instant, until: Option<Instant> },
}

impl Thread {
    /// A thread that has not started. `may_be_stopped` says that the end of others may end it.
    pub(super) fn new(job: &Job, may_be_stopped: bool) -> Self {
        Self {
            source: match &job.replay {
                None => Source::Stream(Box::new(Stream::new(&job.pattern))),
                Some(log) => Source::Log(Box::new(Replaying::new(log))),
            },
            submission: job.submission,
            run: job.run.clone(),
            batching: Batching::new(job.submission.batches),
            pace: Pace::new(job.pacing, job.pattern.seed),
            bounds: Bounds::new(&job.ends),
            stand_still: StandStill::new(job),
            search: job
                .ends
                .latency_target
                .map(|target| DepthSearch::new(target, depth_search::greatest_depth(job))),
            transferred: Transferred::default(),
            next: None,
            may_be_stopped,
            is_stopped: false,
            ramp_end: None,
            calls: Calls::new(job),
            passes: 0,
            outstanding: Slab::new(),
            phase: Phase::Waiting,
            tally: Tally::new(&job.reports),
            iolog: None,
        }
    }

    pub(super) fn has_started(&self) -> bool {
        self.phase != Phase::Waiting
    }

    /// It may start, and does after its delay. Returns from when on it is counted.
    pub(super) fn start(&mut self, sinks: &mut Sinks, now: Instant) -> Instant {
        let from = now + self.run.start_delay;
        self.phase = Phase::Running { from, until: self.until(from) };
        self.pace.start(from);
        if let Source::Log(log) = &mut self.source {
            log.start(from);
        }
        if let Some(iolog) = &mut self.iolog {
            iolog.start(sinks, from);
        }
        self.ramp_end = Some(from + self.run.ramp_time);
        self.tally.begin(from + self.run.ramp_time);
        self.bounds.begin(from + self.run.ramp_time);
        if let Some(search) = &mut self.search {
            search.begin(from + self.run.ramp_time);
        }
        from + self.run.ramp_time
    }

    /// When it is expected to end, if it has not ended. `from` is when it may start, if that can be
    /// told; it matters as long as it has not started.
    pub(super) fn expected_end(&self, now: Instant, from: Option<Instant>) -> Option<Instant> {
        match self.phase {
            Phase::Waiting => self.until(from? + self.run.start_delay),
            Phase::Running { from, until } => {
                let work = match &self.source {
                    Source::Stream(stream) => stream.work(),
                    Source::Log(log) => Some(log.work()),
                };
                let worked = work.and_then(|(done, whole)| at_this_pace(from, now, done, whole));
                [worked, until].into_iter().flatten().min()
            }
        }
    }

    /// When it stops if it runs from `from` on.
    fn until(&self, from: Instant) -> Option<Instant> {
        self.run.runtime.map(|runtime| from + self.run.ramp_time + runtime)
    }

    /// It has ended.
    pub(super) fn end(&mut self, sinks: &mut Sinks, now: Instant) {
        if let Some(search) = &self.search {
            self.tally.searched(search.depth());
        }
        self.tally.end(sinks, now);
        if let Some(iolog) = &mut self.iolog {
            iolog.end(sinks, now);
        }
    }

    /// Whether time goes by while it works.
    pub(super) fn stand_still(&self) -> &StandStill {
        &self.stand_still
    }

    /// What it has read, written and trimmed since its start.
    pub(super) fn transferred(&self) -> Transferred {
        self.transferred
    }

    /// Whether it has an I/O outstanding, or a call through the page cache under way.
    pub(super) fn has_work(&self) -> bool {
        !self.outstanding.is_empty() || self.calls.are_under_way()
    }

    /// What was measured of it.
    pub(super) fn result(&self) -> &JobResult {
        self.tally.result()
    }

    /// Has what completes be counted over time, too.
    pub(super) fn keep_series(&mut self) {
        self.tally.keep_series();
    }

    /// Has a log of its I/O written.
    pub(super) fn write_iolog(&mut self, iolog: Option<IoLogWriter>) {
        self.iolog = iolog;
    }

    /// Has these logs written.
    pub(super) fn write_logs(&mut self, logs: Option<RunLogWriter>) {
        self.tally.write_logs(logs);
    }

    /// What completed over time, if that is kept.
    pub(super) fn series(&self) -> Option<&Series> {
        self.tally.series()
    }

    /// Why the log that it replays could not be replayed to its end.
    pub(super) fn failure(&self) -> Option<&Mistake> {
        match &self.source {
            Source::Stream(_) => None,
            Source::Log(log) => log.failure(),
        }
    }

    /// It does no more than what it has begun, and the syncs at its end.
    pub(super) fn stop(&mut self) {
        match &mut self.source {
            Source::Stream(stream) => stream.stop(),
            Source::Log(log) => log.stop(),
        }
        self.next = self.next.filter(|io| matches!(io.op, IoOp::Sync | IoOp::DataSync));
    }

    /// The same because others have ended.
    pub(super) fn stop_with_others(&mut self) {
        self.stop();
        self.is_stopped = true;
    }

    /// Sleeps: as fio does, in pieces of a second where others may end it meanwhile.
    fn sleep(&self, now: Instant, until: Instant) -> Action {
        let piece =
            if self.may_be_stopped { Nanos::from_secs(1) } else { until.saturating_since(now) };
        Action::Sleep(until.min(now + piece))
    }

    /// It ends with an error: it does no more than what it has begun.
    fn fail(&mut self, error: JobError) {
        self.stop();
        self.next = None;
        self.tally.fail(error);
    }

    /// Returns whether it ends, or has ended, with an error.
    pub(super) fn has_failed(&self) -> bool {
        self.result().error.is_some()
    }

    /// What it does next; nothing when it has ended.
    pub(super) fn next(
        &mut self,
        system: &mut System,
        now: Instant,
        task: TaskId,
    ) -> Option<Action> {
        let polled = self.batching.go_on(now);
        self.tally.polled(now, polled);
        let action = self.go_on(system, now, task);
        if matches!(action, Some(Action::Wait | Action::WaitFor(_) | Action::Sleep(_))) {
            self.tally.waits();
        }
        if matches!(action, Some(Action::Sleep(_))) {
            let complete = self.batching.sleep();
            self.take_back(&mut system.sinks, now, complete);
        }
        action
    }

    fn go_on(&mut self, system: &mut System, now: Instant, task: TaskId) -> Option<Action> {
        let Phase::Running { from, until } = self.phase else { return Some(Action::Wait) };
        if now < from && !self.is_stopped {
            return Some(self.sleep(now, from));
        }
        let is_over = until.is_some_and(|until| now >= until);
        if is_over {
            self.stop();
        }
        loop {
            if self.calls.are_under_way()
                && let Some(action) = self.hand_over(system, now)
            {
                return Some(action);
            }
            if let Some(action) = self.call_on(system, now, task) {
                return Some(action);
            }
            if !is_over {
                self.search_on(now);
            }
            let goes_on = !is_over && !self.is_stopped && !self.has_failed();
            let pause = self.pace.pause(now).filter(|_| goes_on);
            if pause.is_none()
                && let Some(error) = self.bounds.check(now)
            {
                self.fail(error);
            }
            let holds_back = pause.is_none() && self.holds_back(now);
            let next = match pause {
                Some(pause) => Next::Sleep(pause),
                None if holds_back => Next::End,
                None => self.next_entry(system, now),
            };
            if matches!(next, Next::End | Next::Sleep(_)) && self.batching.has_begun() {
                match self.hand_over(system, now) {
                    Some(action) => return Some(action),
                    None => continue,
                }
            }
            match next {
                Next::End if holds_back => {
                    if let Some(action) = self.take_back_what_is_complete(system, now) {
                        return Some(action);
                    }
                }
                Next::End => return self.drain(system, now),
                Next::Sleep(due) => {
                    return Some(self.sleep(now, until.map_or(due, |until| until.min(due))));
                }
                Next::Do(Entry::Open(file)) => self.calls.open(system, file),
                Next::Do(Entry::Wait) => {}
                Next::Do(Entry::Io(io)) => {
                    if let Some(action) = self.begin(system, io, now) {
                        return Some(action);
                    }
                }
            }
        }
    }

    /// Looks whether a depth has been tried for long enough.
    fn search_on(&mut self, now: Instant) {
        match self.search.as_mut().and_then(|search| search.judge(now)) {
            Some(depth_search::Outcome::Found) => self.tally.restart(now),
            Some(depth_search::Outcome::Over) => self.stop(),
            Some(depth_search::Outcome::GoOn) | None => {}
        }
    }

    /// What its source has next. As in fio, a thread that fails does not sync at its end.
    fn next_entry(&mut self, system: &mut System, now: Instant) -> Next {
        if self.has_failed() {
            return Next::End;
        }
        let stream = match &mut self.source {
            Source::Log(log) => return log.next(now),
            Source::Stream(stream) => stream,
        };
        if self.ramp_end.take_if(|end| now >= *end).is_some() && self.run.ramp_time > Nanos::ZERO {
            let counted = self.tally.result().directions.iter().map(|direction| direction.ios);
            let begun = self.outstanding.len() + usize::from(self.next.is_some());
            stream.end_ramp(counted.sum::<u64>() + begun as u64);
        }
        let waits = self.pace.waits(now);
        let next = self.next.take().or_else(|| stream.next_within(waits));
        let Some(io) = next else { return Next::End };
        let passes = stream.passes();
        if let Some(due) = self.due(&io).filter(|due| *due > now) {
            self.next = Some(io);
            return Next::Sleep(due);
        }
        self.open_files(system, io, passes, now);
        Next::Do(Entry::Io(io))
    }

    /// When the I/O is due, if there is a rate.
    fn due(&self, io: &fio::Io) -> Option<Instant> {
        direction(io.op).map(|direction| self.pace.due(direction))
    }

    /// Opens its files at the begin of a pass, with the first I/O: the page cache forgets them, if
    /// that is said. The syncs that close them come before.
    fn open_files(&mut self, system: &mut System, io: fio::Io, passes: u32, now: Instant) {
        if passes == self.passes || direction(io.op).is_none() {
            return;
        }
        self.passes = passes;
        if let Some(iolog) = &mut self.iolog {
            iolog.open(&mut system.sinks, now);
        }
        self.calls.open_all(system);
    }

    /// Begins an I/O. Returns what that needs; nothing where it is complete at once, or is a call
    /// that goes through the page cache.
    fn begin(&mut self, system: &mut System, io: fio::Io, now: Instant) -> Option<Action> {
        if self.stand_still.begins(now) {
            self.stop();
            self.next = None;
        }
        if let Some(direction) = direction(io.op) {
            self.pace.spend(direction, io.bytes);
        }
        self.pace.submitted(now);
        if let Some(iolog) = &mut self.iolog {
            iolog.issue(&mut system.sinks, now, &io);
        }
        if self.submission.engine != Engine::Null && self.calls.begin(system, io, now) {
            if direction(io.op).is_some() {
                self.tally.submitted(now, 1, 1);
            }
            return None;
        }
        let name = self.outstanding.insert(io) as u64;
        if self.batching.begin(self.io(system, name, &io)) {
            return self.hand_over(system, now);
        }
        None
    }

    /// Hands over what was begun, if something was. Returns the call for it; what is handed to
    /// `null` needs none, and is complete.
    fn hand_over(&mut self, system: &mut System, now: Instant) -> Option<Action> {
        let depth = u32::try_from(self.outstanding.len()).expect("a depth is in u32");
        let (ios, call) = self.batching.hand_over()?;
        self.tally.submitted(now, depth, ios);
        if self.submission.engine != Engine::Null {
            return Some(call);
        }
        let complete = |(key, _)| Complete { key, submitted: now, entered: now };
        let complete: Vec<_> = self.outstanding.iter().map(complete).collect();
        self.take_back(&mut system.sinks, now, complete);
        None
    }

    /// Whether nothing more is begun, as enough is under way.
    fn holds_back(&mut self, now: Instant) -> bool {
        let outstanding = self.outstanding.len();
        let is_full = match &mut self.search {
            Some(search) => search.holds_back(now, outstanding),
            None => outstanding >= self.submission.depth as usize,
        };
        self.batching.holds_back(is_full, outstanding)
    }

    /// Takes back what is complete if that is enough. Returns what it does if it is not.
    fn take_back_what_is_complete(&mut self, system: &mut System, now: Instant) -> Option<Action> {
        match self.batching.take(now, self.outstanding.len()) {
            Taking::Not(action) => Some(action),
            Taking::Taken(complete) => {
                self.take_back(&mut system.sinks, now, complete);
                None
            }
        }
    }

    /// Takes back what is under way when it begins no more. Returns nothing when that is nothing.
    fn drain(&mut self, system: &mut System, now: Instant) -> Option<Action> {
        if self.batching.end() {
            let is_data = |io: &fio::Io| direction(io.op).is_some();
            let ios = self.outstanding.iter().filter(|(_, io)| is_data(io)).count();
            self.tally.taken_back(now, u32::try_from(ios).expect("a depth is in u32"));
        }
        while !self.outstanding.is_empty() {
            if let Some(action) = self.take_back_what_is_complete(system, now) {
                return Some(action);
            }
        }
        None
    }

    /// Goes on with the call that goes through the page cache, if there is one.
    fn call_on(&mut self, system: &mut System, now: Instant, task: TaskId) -> Option<Action> {
        match self.calls.step(system, now, task)? {
            Called::Do(action) => {
                if let Action::Work(span) = action {
                    self.tally.worked(now, span);
                }
                Some(action)
            }
            Called::Returned { io, took } => {
                let took = Took { submission: Nanos::ZERO, completion: took };
                let is_data = self.count(&mut system.sinks, io, took, now);
                self.tally.taken_back(now, is_data.into());
                None
            }
        }
    }

    /// A core was busy for so long for an I/O of it.
    pub(super) fn worked(&mut self, now: Instant, cpu: Nanos) {
        self.tally.worked(now, cpu);
    }

    pub(super) fn completed(&mut self, sinks: &mut Sinks, ended: &Ended) {
        let &Ended { io, submitted, entered, completed, .. } = ended;
        let key = usize::try_from(io.name).expect("a key is the name of a thread's own I/O");
        let complete = Complete { key, submitted, entered };
        if self.batching.takes_each() {
            self.take_back(sinks, completed, [complete]);
        } else {
            self.batching.completed(complete);
        }
    }

    /// Takes these back, with one call.
    fn take_back(
        &mut self,
        sinks: &mut Sinks,
        now: Instant,
        complete: impl IntoIterator<Item = Complete>,
    ) {
        let mut ios = 0;
        for Complete { key, submitted, entered } in complete {
            let io = self.outstanding.try_remove(key).expect("an I/O that completes was submitted");
            let took = Took {
                submission: entered.saturating_since(submitted),
                completion: now.saturating_since(entered),
            };
            ios += u32::from(self.count(sinks, io, took, now));
        }
        if !self.batching.are_taken_together() {
            self.tally.taken_back(now, ios);
        }
    }

    /// Counts an I/O that is complete. Returns whether it is one of data.
    fn count(&mut self, sinks: &mut Sinks, io: fio::Io, took: Took, now: Instant) -> bool {
        self.pace.completed(now);
        let all = took.submission + took.completion;
        let Some(direction) = direction(io.op) else {
            self.tally.synced(now, all);
            return false;
        };
        let fio::Io { offset, bytes, io_prio, .. } = io;
        let done = Done { direction, offset, bytes, io_prio: io_prio.map(IoPriority::from) };
        self.transferred.ios += 1;
        self.transferred.bytes += io.bytes;
        self.tally.completed(sinks, now, done, took);
        if let Phase::Running { until: Some(until), .. } = self.phase
            && now > until
        {
            self.tally.drained();
        }
        if let Some(search) = &mut self.search {
            search.completed(now, all);
        }
        if let Some(error) = self.bounds.completed(now, direction, io.bytes, all) {
            self.fail(error);
        }
        true
    }

    /// The I/O on the device: whole sectors.
    fn io(&self, system: &System, name: u64, io: &fio::Io) -> Io {
        let first = system.byte(io.file, io.offset);
        let sector = first / SECTOR;
        let end = (first + io.bytes).div_ceil(SECTOR);
        let sectors = u32::try_from(end - sector).expect("a block is below 2 TiB");
        let direct = BioFlags::SYNC | BioFlags::IDLE;
        let (op, flags) = match io.op {
            IoOp::Read => (Op::Read, BioFlags::empty()),
            IoOp::Write if self.submission.write_sync == WriteSync::None => (Op::Write, direct),
            IoOp::Write => (Op::Write, direct | BioFlags::FUA),
            IoOp::Trim => (Op::Discard, BioFlags::empty()),
            IoOp::Sync | IoOp::DataSync => {
                let sectors = SectorCount(0);
                let (op, flags) = (Op::Flush, BioFlags::empty());
                return Io { name, op, flags, sector: Sector(0), sectors, io_prio: None };
            }
        };
        let (sector, sectors) = (Sector(sector), SectorCount(sectors));
        Io { name, op, flags, sector, sectors, io_prio: io.io_prio }
    }
}

fn direction(op: IoOp) -> Option<DataDirection> {
    match op {
        IoOp::Read => Some(DataDirection::Read),
        IoOp::Write => Some(DataDirection::Write),
        IoOp::Trim => Some(DataDirection::Trim),
        IoOp::Sync | IoOp::DataSync => None,
    }
}
