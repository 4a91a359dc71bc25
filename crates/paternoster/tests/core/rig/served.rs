//! A served device in virtual time, and tasks that issue as requests complete.
//!
//! ```text
//!   let mut run = Rig::cfq().task("a", "be/4", ROOT).served(1, ms(1));
//!   run.issues("a", Stream::reads(16).think(ms(10)));
//!   run.until(ms(40));
//!   assert_eq!(run.emitted(&["expired"]), ["9 ms: expired a: IdleTimer, ..."]);
//! ```
//!
//! It keeps the law: one event, then dispatch until there is no request. Of events at one time
//! completions come first, then timers, then arrivals. It has no `Driver`: a test may take steps
//! between two runs, and steps ask its elevator for single answers.

use std::collections::{BTreeMap, VecDeque};

use paternoster::{Instant, Nanos};

use super::words::{begins, in_ms};
use super::{Io, Rig, read, write};

/// What a task issues: at first as many requests as it keeps in flight, then one for each that
/// completes.
#[derive(Clone, Copy, Debug)]
pub struct Stream {
    op: fn(std::ops::Range<u64>) -> Io,
    sectors: u64,
    from: u64,
    stride: u64,
    at: Nanos,
    think: Nanos,
    depth: u64,
    count: u64,
}

impl Stream {
    /// Reads of that many sectors, one behind the other from sector 0 on, at once, one at a time,
    /// without end.
    pub fn reads(sectors: u64) -> Self {
        let (from, stride, at, think) = (0, sectors, Nanos::ZERO, Nanos::ZERO);
        Self { op: read, sectors, from, stride, at, think, depth: 1, count: u64::MAX }
    }

    /// The same of asynchronous writes.
    pub fn writes(sectors: u64) -> Self {
        Self { op: write, ..Self::reads(sectors) }
    }

    /// The first is at that sector.
    pub fn from(self, from: u64) -> Self {
        Self { from, ..self }
    }

    /// Each starts so many sectors behind the start of the one before it.
    pub fn stride(self, stride: u64) -> Self {
        Self { stride, ..self }
    }

    /// The first arrive then.
    pub fn at(self, at: Nanos) -> Self {
        Self { at, ..self }
    }

    /// Each other arrives so long after a completion.
    pub fn think(self, think: Nanos) -> Self {
        Self { think, ..self }
    }

    /// So many at a time.
    pub fn depth(self, depth: u64) -> Self {
        Self { depth, ..self }
    }

    /// So many in all.
    pub fn count(self, count: u64) -> Self {
        Self { count, ..self }
    }
}

/// A task at work.
#[derive(Debug)]
struct Source {
    stream: Stream,
    scheduled: u64,
    issued: u64,
    /// What it issued before, of another stream.
    issued_before: u64,
}

/// What is to happen. Those of one time are in this order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    Completion(u64, String),
    Timer,
    Arrival(u64, &'static str),
}

/// A rig whose device serves what it is given, each request in the same time.
pub struct Served {
    pub rig: Rig,
    channels: usize,
    service: Nanos,
    sources: BTreeMap<&'static str, Source>,
    ahead: Vec<(Instant, Happening)>,
    happenings: u64,
    in_service: usize,
    /// In flight, and waiting for a free channel.
    waiting: VecDeque<String>,
    /// Bios that are done.
    pub completed: usize,
    dispatched: Vec<(Nanos, String)>,
}

impl Rig {
    /// On a device of so many channels, which takes so long for a request.
    pub fn served(self, channels: usize, service: Nanos) -> Served {
        Served {
            rig: self,
            channels,
            service,
            sources: BTreeMap::new(),
            ahead: vec![],
            happenings: 0,
            in_service: 0,
            waiting: VecDeque::new(),
            completed: 0,
            dispatched: vec![],
        }
    }
}

impl Served {
    /// The task issues that from now on; what it issued before has ended. A request goes by the
    /// task's name and its number: `a.0`.
    pub fn issues(&mut self, task: &'static str, stream: Stream) -> &mut Self {
        let before = self.sources.get(task);
        let issued_before = before.map_or(0, |source| source.issued_before + source.issued);
        let source = Source { stream, scheduled: 0, issued: 0, issued_before };
        self.sources.insert(task, source);
        for _ in 0..stream.depth {
            self.schedule_arrival(task, Instant::START + stream.at);
        }
        self
    }

    /// Runs up to that time, with the events of that time.
    pub fn until(&mut self, until: Nanos) -> &mut Self {
        let until = Instant::START + until;
        while let Some((at, happening)) = self.next().filter(|&(at, _)| at <= until) {
            self.ahead.retain(|other| *other != (at, happening.clone()));
            self.rig.now = at;
            self.happen(happening);
            while let Some(name) = self.rig.dispatch() {
                self.dispatched.push((at.since_start(), name.clone()));
                self.enter_device(name);
            }
            self.rig.elevator.check();
        }
        self.rig.now = until;
        self
    }

    /// The lines since the last look that begin with any of these, with their times.
    pub fn emitted(&mut self, beginnings: &[&str]) -> Vec<String> {
        for beginning in beginnings {
            self.rig.assert_can_be_emitted(beginning);
        }
        let mut lines = vec![];
        for (at, event) in self.rig.timed_events() {
            let Some(line) = self.rig.line_of(&event) else { continue };
            if beginnings.iter().any(|beginning| begins(&line, beginning)) {
                let at = at.since_start().as_nanos().cast_signed();
                lines.push(format!("{}: {line}", in_ms(at)));
            }
        }
        lines
    }

    /// The same, each without what is behind its first `commas` commas.
    pub fn emitted_up_to(&mut self, commas: usize, beginnings: &[&str]) -> Vec<String> {
        let cut = |line: String| line.split(',').take(commas).collect::<Vec<_>>().join(",");
        self.emitted(beginnings).into_iter().map(cut).collect()
    }

    /// Requests dispatched, in order.
    pub fn dispatched(&self) -> Vec<&str> {
        self.dispatched.iter().map(|(_, name)| name.as_str()).collect()
    }

    /// When requests of the task were dispatched.
    pub fn dispatch_times(&self, task: &str) -> Vec<Nanos> {
        let of_task = |name: &str| name.split_once('.').is_some_and(|(of, _)| of == task);
        self.dispatched.iter().filter(|(_, name)| of_task(name)).map(|&(at, _)| at).collect()
    }

    fn next(&self) -> Option<(Instant, Happening)> {
        let timer = self.rig.elevator.poll_timeout().map(|at| (at, Happening::Timer));
        self.ahead.iter().cloned().chain(timer).min()
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Completion(_, name) => self.complete(&name),
            Happening::Timer => self.rig.elevator.handle_timeout(self.rig.now),
            Happening::Arrival(_, task) => self.arrive(task),
        }
    }

    fn arrive(&mut self, task: &'static str) {
        let source = self.sources.get_mut(task).expect("a task that has a stream");
        let stream = source.stream;
        let start = stream.from + source.issued * stream.stride;
        let name = format!("{task}.{}", source.issued_before + source.issued);
        source.issued += 1;
        self.rig.enter(&name, (stream.op)(start..start + stream.sectors).by(task));
    }

    fn complete(&mut self, name: &str) {
        self.in_service -= 1;
        if let Some(waiting) = self.waiting.pop_front() {
            self.begin_service(waiting);
        }
        self.rig.complete(name).expect("what was dispatched is in the device");
        for bio in self.rig.done.clone() {
            self.completed += 1;
            let task = bio.split_once('.').and_then(|(task, _)| self.sources.get_key_value(task));
            // What a step submitted has none.
            if let Some((&task, source)) = task {
                let at = self.rig.now + source.stream.think;
                self.schedule_arrival(task, at);
            }
        }
    }

    fn enter_device(&mut self, name: String) {
        if self.in_service < self.channels {
            self.begin_service(name);
        } else {
            self.waiting.push_back(name);
        }
    }

    fn begin_service(&mut self, name: String) {
        self.in_service += 1;
        let at = self.rig.now + self.service;
        let completion = Happening::Completion(self.happenings, name);
        self.happenings += 1;
        self.ahead.push((at, completion));
    }

    fn schedule_arrival(&mut self, task: &'static str, at: Instant) {
        let source = self.sources.get_mut(task).expect("a task that has a stream");
        if source.scheduled == source.stream.count {
            return;
        }
        source.scheduled += 1;
        self.ahead.push((at, Happening::Arrival(self.happenings, task)));
        self.happenings += 1;
    }
}
