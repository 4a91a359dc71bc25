//! One thread: what it does next, from its start to its end.

use std::collections::HashMap;

use paternoster::{BioFlags, Instant, Nanos, Op, Sector, SectorCount};

use super::Host;
use super::buffered::{OpenFile, Reading, Step};
use super::pacing::Pace;
use super::progress::at_this_pace;
use super::tally::Tally;
use crate::fio::{
    self, DataDirection, Engine, IoOp, Job, Jobs, Run, Stream, Submission, WriteSync,
};
use crate::result::{JobResult, Took};
use crate::sim::{Action, Ended, Io};

/// Bytes of a sector.
const SECTOR: u64 = 512;

/// A thread.
#[derive(Debug)]
pub(super) struct Thread {
    stream: Stream,
    submission: Submission,
    run: Run,
    pace: Pace,
    /// The I/O that is next, taken from the stream and waiting for its time.
    next: Option<fio::Io>,
    /// The read through the page cache that is under way.
    reading: Option<(Reading, fio::Io, Instant)>,
    /// The files that it reads through the page cache.
    open: HashMap<usize, OpenFile>,
    /// Where each file starts on the device, in bytes.
    starts: Vec<u64>,
    /// Its outstanding I/Os, those of readahead apart, by their names.
    outstanding: HashMap<u64, fio::Io>,
    /// Names given so far.
    names: u64,
    phase: Phase,
    tally: Tally,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// It may not start yet.
    Waiting,
    /// It runs from `from` on, and stops at `until`.
    Running { from: Instant, until: Option<Instant> },
}

impl Thread {
    pub(super) fn new(job: &Job, jobs: &Jobs, host: Host) -> Self {
        let submission = job.submission;
        let reads_cached = !submission.direct && submission.engine != Engine::Null;
        let files = job.pattern.regions.iter().map(|region| region.file);
        let open = files.filter(|_| reads_cached).map(|file| {
            let fio::File { bytes, start, .. } = jobs.files[file];
            (file, OpenFile::new(bytes, start, host.advised(submission.advice)))
        });
        Self {
            stream: Stream::new(&job.pattern),
            submission,
            run: job.run.clone(),
            pace: Pace::new(job.pacing, job.pattern.seed),
            next: None,
            reading: None,
            open: open.collect(),
            starts: jobs.files.iter().map(|file| file.start).collect(),
            outstanding: HashMap::new(),
            names: 0,
            phase: Phase::Waiting,
            tally: Tally::new(&job.reports),
        }
    }

    pub(super) fn has_started(&self) -> bool {
        self.phase != Phase::Waiting
    }

    /// It may start, and does after its delay.
    pub(super) fn start(&mut self, now: Instant) {
        let from = now + self.run.start_delay;
        self.phase = Phase::Running { from, until: self.until(from) };
        self.pace.start(from);
        self.tally.begin(from + self.run.ramp_time);
    }

    /// When it is expected to end, if it has not ended. `from` is when it may start, if that can be
    /// told; it matters as long as it has not started.
    pub(super) fn expected_end(&self, now: Instant, from: Option<Instant>) -> Option<Instant> {
        match self.phase {
            Phase::Waiting => self.until(from? + self.run.start_delay),
            Phase::Running { from, until } => {
                let work = self.stream.work();
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
    pub(super) fn end(&mut self, now: Instant) {
        self.tally.end(now);
    }

    /// What was measured of it.
    pub(super) fn result(&self) -> &JobResult {
        self.tally.result()
    }

    /// It does no more than what it has begun, and the syncs at its end.
    pub(super) fn stop(&mut self) {
        self.stream.stop();
        self.next = self.next.filter(|io| matches!(io.op, IoOp::Sync | IoOp::DataSync));
    }

    /// What it does next; nothing when it has ended.
    pub(super) fn next(&mut self, now: Instant) -> Option<Action> {
        let action = self.go_on(now);
        if matches!(action, Some(Action::Wait | Action::Sleep(_))) {
            self.tally.waits();
        }
        action
    }

    fn go_on(&mut self, now: Instant) -> Option<Action> {
        let Phase::Running { from, until } = self.phase else { return Some(Action::Wait) };
        if now < from {
            return Some(Action::Sleep(from));
        }
        let is_over = until.is_some_and(|until| now >= until);
        if is_over {
            self.stop();
        }
        loop {
            if let Some(action) = self.read_on(now) {
                return Some(action);
            }
            if let Some(pause) = self.pace.pause(now).filter(|_| !is_over) {
                return Some(Action::Sleep(until.map_or(pause, |until| until.min(pause))));
            }
            if self.outstanding.len() >= self.submission.depth as usize {
                return Some(Action::Wait);
            }
            let Some(io) = self.next.take().or_else(|| self.stream.next()) else {
                return (!self.outstanding.is_empty()).then_some(Action::Wait);
            };
            if let Some(due) = self.due(&io).filter(|due| *due > now) {
                self.next = Some(io);
                return Some(Action::Sleep(until.map_or(due, |until| until.min(due))));
            }
            if let Some(action) = self.begin(io, now) {
                return Some(action);
            }
        }
    }

    /// When the I/O is due, if there is a rate.
    fn due(&self, io: &fio::Io) -> Option<Instant> {
        direction(io.op).map(|direction| self.pace.due(direction))
    }

    /// Begins an I/O. Returns what that needs; nothing where it is complete at once, or is a read
    /// through the page cache.
    fn begin(&mut self, io: fio::Io, now: Instant) -> Option<Action> {
        if let Some(direction) = direction(io.op) {
            self.pace.spend(direction, io.bytes);
        }
        self.pace.submitted(now);
        if self.submission.engine == Engine::Null {
            self.tally.submitted(now, 1);
            self.count(io, Took { submission: Nanos::ZERO, completion: Nanos::ZERO }, now);
            return None;
        }
        if self.open.contains_key(&io.file) && io.op == IoOp::Read {
            self.tally.submitted(now, 1);
            self.reading = Some((Reading::new(io.offset, io.bytes), io, now));
            return None;
        }
        let name = self.name();
        self.outstanding.insert(name, io);
        let depth = u32::try_from(self.outstanding.len()).expect("a depth is in u32");
        self.tally.submitted(now, depth);
        Some(Action::Submit(self.io(name, &io)))
    }

    /// Goes on with the read through the page cache, if there is one.
    fn read_on(&mut self, now: Instant) -> Option<Action> {
        let (mut reading, io, began) = self.reading?;
        let name = self.name();
        let file = self.open.get_mut(&io.file).expect("the file is open");
        let step = file.step(&mut reading, now, name);
        match step {
            Step::Do(action) => {
                self.reading = Some((reading, io, began));
                Some(action)
            }
            Step::Done => {
                self.reading = None;
                let completion = now.saturating_since(began);
                self.count(io, Took { submission: Nanos::ZERO, completion }, now);
                None
            }
        }
    }

    pub(super) fn completed(&mut self, ended: &Ended) {
        let &Ended { io, submitted, entered, completed, .. } = ended;
        if let Some(io) = self.outstanding.remove(&io.name) {
            let took = Took {
                submission: entered.saturating_since(submitted),
                completion: completed.saturating_since(entered),
            };
            self.count(io, took, completed);
        } else {
            let arrived = self.open.values_mut().any(|file| file.arrived(io.name));
            assert!(arrived, "an I/O that completes was submitted");
        }
    }

    fn count(&mut self, io: fio::Io, took: Took, now: Instant) {
        self.pace.completed(now);
        match direction(io.op) {
            Some(direction) => self.tally.completed(now, direction, io.bytes, took),
            None => self.tally.synced(now, took.submission + took.completion),
        }
    }

    fn name(&mut self) -> u64 {
        self.names += 1;
        self.names
    }

    /// The I/O on the device: whole sectors.
    fn io(&self, name: u64, io: &fio::Io) -> Io {
        let first = self.starts[io.file] + io.offset;
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
