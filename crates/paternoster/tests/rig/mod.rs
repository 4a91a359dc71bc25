//! A rig for behaviour tests: an elevator with a clock, and bios, tasks and groups by name.
//!
//! A test is a list of steps and expected decisions, told in the block layer's words:
//!
//! ```text
//!   Submit("a", read(0..8))              it becomes a request of its own
//!   BackMerge("b", read(8..16), "a")     it becomes part of the request that holds "a"
//!   Expect(dispatched("a"))              the scheduler is asked once, and gives that one
//!   Serve(&["a", "c"])                   a device that is instantly done takes these, in order
//! ```
//!
//! A request goes by the name of any of its bios; of bios of one name, by that of the last. Times
//! are counted from the start of the run. What happens otherwise than a step says ends the test
//! with the step's number, and what happened instead.

// Each test file uses the part of the rig that it needs.
#![allow(dead_code, unused_imports, unreachable_pub)]

pub mod io;
pub mod served;
pub mod told;

pub use io::{Io, discard, flush, read, write, zeroes};
pub use served::{Served, Stream};

use std::collections::BTreeMap;
use std::ops::Range;

use paternoster::{
    AnyScheduler, Bios, Device, DeviceWeights, Dump, Elevator, Event, GroupId, GroupStats, Instant,
    IocId, Limits, MergeKind, MergeSite, Nanos, NoMerges, QueueDump, Recorder, RequestId,
    Scheduler, SchedulerKind, Submitted, TurnStats, Weight,
};

/// The task that issues what names no other: `be/4`, in the root group.
pub const MAIN: &str = "main";
/// The root group.
pub const ROOT: &str = "/";

pub const fn ms(millis: u64) -> Nanos {
    Nanos::from_millis(millis)
}

pub const fn us(micros: u64) -> Nanos {
    Nanos::from_micros(micros)
}

/// What a test does, or says must hold.
#[derive(Clone, Debug)]
pub enum Step {
    /// Time passes.
    Advance(Nanos),
    /// The elevator is told that the time has come that it asked for.
    TimerFires,
    /// A bio arrives and becomes a request.
    Submit(&'static str, Io),
    /// A bio arrives and becomes part of the request that holds that other bio, behind it.
    BackMerge(&'static str, Io, &'static str),
    /// The same, before it.
    FrontMerge(&'static str, Io, &'static str),
    /// A bio arrives and may not enter now.
    TurnAway(&'static str, Io),
    /// What was turned away tries again and becomes a request.
    Retry(&'static str, Io),
    /// The scheduler is asked for each and gives it; it is done at once.
    Serve(&'static [&'static str]),
    /// A request in the device is done.
    Complete(&'static str),
    /// The device hands a request back.
    Requeue(&'static str),
    /// All that waits is given up: these bios, in this order.
    Cancel(&'static [&'static str]),
    /// A tunable of the scheduler.
    Set(&'static str, i64),
    SetNoMerges(NoMerges),
    SetLimits(Limits),
    SetScanDepth(u32),
    SetNrRequests(Option<u32>),
    SetDepth(u32),
    /// A task's I/O priority.
    SetPriority(&'static str, &'static str),
    /// A group's weight and leaf weight, both the same.
    SetWeight(&'static str, u32),
    /// A group's weight and leaf weight.
    SetWeights(&'static str, u32, u32),
    /// The weight and the leaf weight that a group has on this device alone, if any.
    SetDeviceWeights(&'static str, Option<u32>, Option<u32>),
    /// A task goes to a group.
    Move(&'static str, &'static str),
    Exit(&'static str),
    RemoveGroup(&'static str),
    SwitchTo(SchedulerKind),
    Expect(Expected),
}

/// What a test expects.
#[derive(Clone, Copy, Debug)]
pub enum Expected {
    /// The scheduler, asked once, gives the request of this bio.
    Dispatched(&'static str),
    /// The scheduler, asked once, gives nothing.
    Nothing,
    /// The last completion was of these bios, in this order.
    Done(&'static [&'static str]),
    /// The last completion said whether submitters that were turned away should try again.
    WaitersCalled(bool),
    /// Both bios are of one request.
    Together(&'static str, &'static str),
    /// The bios are of different requests.
    Apart(&'static str, &'static str),
    /// The range of the bio's request.
    Sectors(&'static str, u64, u64),
    /// The deadline of the bio's request.
    Deadline(&'static str, Nanos),
    /// When the elevator wants to be told the time.
    Timeout(Option<Nanos>),
    /// An internal number of the scheduler, by its name in debugfs.
    Number(&'static str, i64),
    /// Requests that wait.
    Waiting(u32),
    /// The trace tells this, after what was looked at before (`told.rs` has the words). What the
    /// line has beyond it, from a comma on, may be anything.
    Told(&'static str),
    /// The trace tells nothing that begins so, after what was looked at before.
    Untold(&'static str),
}

pub use Expected::{
    Deadline, Done, Nothing, Number, Timeout, Told, Untold, WaitersCalled, Waiting,
};
pub use Step::*;

pub const fn dispatched(bio: &'static str) -> Expected {
    Expected::Dispatched(bio)
}

pub const fn together(a: &'static str, b: &'static str) -> Expected {
    Expected::Together(a, b)
}

pub const fn apart(a: &'static str, b: &'static str) -> Expected {
    Expected::Apart(a, b)
}

pub const fn sectors(bio: &'static str, range: Range<u64>) -> Expected {
    Expected::Sectors(bio, range.start, range.end)
}

/// What happened instead of what a step says.
type Outcome = Result<(), String>;

/// An elevator, its clock, and names.
pub struct Rig {
    pub elevator: Elevator<AnyScheduler<Recorder>>,
    pub now: Instant,
    tasks: BTreeMap<String, IocId>,
    groups: BTreeMap<String, GroupId>,
    /// Names of bios; their user data are indices here.
    bios: Vec<String>,
    /// The request that holds each bio.
    requests: BTreeMap<u64, RequestId>,
    /// The bios of the last completion.
    done: Vec<String>,
    waiters_called: bool,
    /// What the trace has told and the test has not looked at.
    events: Vec<(Instant, Event)>,
    steps: usize,
}

impl Rig {
    pub fn new(kind: SchedulerKind) -> Self {
        Self::on(Device::disk(1), kind)
    }

    pub fn on(device: Device, kind: SchedulerKind) -> Self {
        let scheduler = AnyScheduler::new(kind, Recorder::default());
        let mut elevator = Elevator::new(scheduler, device);
        elevator.set_nr_requests(Some(u32::MAX));
        let groups = BTreeMap::from([(ROOT.to_owned(), elevator.groups().root())]);
        let rig = Self {
            elevator,
            now: Instant::START,
            tasks: BTreeMap::new(),
            groups,
            bios: vec![],
            requests: BTreeMap::new(),
            done: vec![],
            waiters_called: false,
            events: vec![],
            steps: 0,
        };
        rig.task(MAIN, "be/4", ROOT)
    }

    pub fn none() -> Self {
        Self::new(SchedulerKind::None)
    }

    pub fn mq_deadline() -> Self {
        Self::new(SchedulerKind::MqDeadline)
    }

    pub fn cfq() -> Self {
        Self::new(SchedulerKind::Cfq)
    }

    pub fn bfq() -> Self {
        Self::new(SchedulerKind::Bfq)
    }

    pub fn depth(mut self, queue_depth: u32) -> Self {
        self.elevator.set_depth(queue_depth);
        self
    }

    pub fn without_merging(mut self) -> Self {
        self.elevator.set_nomerges(NoMerges::All);
        self
    }

    /// With a task of its own I/O context.
    pub fn task(mut self, name: &str, io_prio: &str, group: &str) -> Self {
        let io_prio = io_prio.parse().expect("an I/O priority");
        let ioc = self.elevator.io_context(self.now, io_prio, self.groups[group]);
        self.tasks.insert(name.to_owned(), ioc);
        self
    }

    /// With a tunable set.
    pub fn set(mut self, tunable: &'static str, value: i64) -> Self {
        self.run(&[Set(tunable, value)]);
        self
    }

    /// With a group at that path, `/a` or `/a/b`.
    pub fn group(mut self, path: &str, weight: u32) -> Self {
        let parent = match path.rsplit_once('/').expect("a path") {
            ("", _) => ROOT,
            (parent, _) => parent,
        };
        let weight = Weight::new(weight).expect("a weight");
        let group = self.elevator.add_group(self.now, self.groups[parent], weight);
        self.groups.insert(path.to_owned(), group);
        self
    }

    /// Does all steps and asserts the elevator's invariants after each.
    pub fn run(&mut self, steps: &[Step]) -> &mut Self {
        for step in steps {
            self.steps += 1;
            if let Err(instead) = self.step(step) {
                panic!("step {}, {step:?}: {instead}", self.steps);
            }
            self.elevator.check();
        }
        self
    }

    /// Submits a bio for which there is room.
    pub fn enter(&mut self, name: &str, io: Io) {
        let submitted = self.submit(name, io);
        assert!(!matches!(submitted, Submitted::Later(_)), "{name} may enter");
    }

    /// A bio arrives; what became of it.
    pub fn submit(&mut self, name: &str, io: Io) -> Submitted {
        let bio = io.bio(self.tasks[io.task], self.bios.len() as u64);
        self.bios.push(name.to_owned());
        let submitted = self.elevator.submit(self.now, bio);
        self.note(bio.user_data, submitted);
        submitted
    }

    /// The scheduler is asked once: the name of what it gives.
    pub fn dispatch(&mut self) -> Option<String> {
        let rq = self.elevator.dispatch(self.now)?;
        let bio = usize::try_from(self.elevator.request(rq).name()).expect("an index");
        Some(self.bios[bio].clone())
    }

    /// Asks and completes at once, until nothing is given: the names in order.
    pub fn serve_all(&mut self) -> Vec<String> {
        self.serve_up_to(usize::MAX)
    }

    /// The same, at most `count` times.
    pub fn serve_up_to(&mut self, count: usize) -> Vec<String> {
        let mut served = vec![];
        while served.len() < count
            && let Some(name) = self.dispatch()
        {
            self.complete(&name).expect("what was dispatched is in the device");
            served.push(name);
        }
        served
    }

    /// Events since the last call.
    pub fn events(&mut self) -> Vec<Event> {
        self.timed_events().into_iter().map(|(_, event)| event).collect()
    }

    /// The same, with their times.
    pub fn timed_events(&mut self) -> Vec<(Instant, Event)> {
        self.collect_events();
        std::mem::take(&mut self.events)
    }

    /// How bios and requests met since the last look at events, in order.
    pub fn merge_sites(&mut self) -> Vec<MergeSite> {
        let site = |event| match event {
            Event::Merged { site, .. } | Event::Joined { site, .. } => Some(site),
            _ => None,
        };
        self.events().into_iter().filter_map(site).collect()
    }

    pub fn stats(&self, group: &str) -> &GroupStats {
        self.elevator.stats().group(self.groups[group])
    }

    pub fn group_id(&self, path: &str) -> GroupId {
        self.groups[path]
    }

    pub fn task_id(&self, name: &str) -> IocId {
        self.tasks[name]
    }

    pub fn turn_stats(&self, group: &str) -> &TurnStats {
        let stats = self.elevator.scheduler().turn_stats(self.groups[group]);
        stats.expect("a group that had a request")
    }

    /// An internal number of the scheduler.
    pub fn number(&self, name: &'static str) -> Option<i64> {
        let mut found = Wanted { name, value: None };
        self.elevator.scheduler().dump(&mut found);
        found.value
    }

    /// The scheduler's queues, by who made them.
    pub fn queues(&self) -> Vec<QueueDump> {
        let mut queues = Queues(vec![]);
        self.elevator.scheduler().dump(&mut queues);
        queues.0.sort_by_key(|queue| (queue.name.ioc, queue.name.sync));
        queues.0
    }

    fn step(&mut self, step: &Step) -> Outcome {
        let now = self.now;
        match *step {
            TimerFires => self.elevator.handle_timeout(self.now),
            Advance(span) => self.now = now + span,
            Submit(bio, io) => return own_request(self.submit(bio, io)),
            BackMerge(bio, io, into) => {
                let submitted = self.submit(bio, io);
                return self.merged(submitted, bio, MergeKind::Back, into);
            }
            FrontMerge(bio, io, into) => {
                let submitted = self.submit(bio, io);
                return self.merged(submitted, bio, MergeKind::Front, into);
            }
            TurnAway(bio, io) => match self.submit(bio, io) {
                Submitted::Later(_) => {}
                other => return Err(format!("{other:?}")),
            },
            Retry(bio, io) => return own_request(self.retry(bio, io)),
            Serve(names) => return self.serve(names),
            Complete(bio) => return self.complete(bio),
            Requeue(bio) => {
                let rq = self.request(bio)?;
                self.elevator.requeue(now, rq);
            }
            Cancel(bios) => return self.cancel(bios),
            Expect(expected) => return self.expect(expected),
            _ => self.administrate(step),
        }
        Ok(())
    }

    fn administrate(&mut self, step: &Step) {
        let now = self.now;
        match *step {
            Set(tunable, value) => {
                self.elevator.set_tunable(now, tunable, value).expect("a tunable of the scheduler");
            }
            SetNoMerges(nomerges) => self.elevator.set_nomerges(nomerges),
            SetLimits(limits) => self.elevator.set_limits(limits),
            SetScanDepth(requests) => self.elevator.set_scan_depth(requests),
            SetNrRequests(requests) => self.elevator.set_nr_requests(requests),
            SetDepth(queue_depth) => self.elevator.set_depth(queue_depth),
            SetPriority(task, io_prio) => {
                let io_prio = io_prio.parse().expect("an I/O priority");
                self.elevator.set_io_priority(now, self.tasks[task], io_prio);
            }
            SetWeight(group, weight) => self.administrate(&SetWeights(group, weight, weight)),
            SetWeights(group, weight, leaf) => {
                let [weight, leaf] = [weight, leaf].map(|w| Weight::new(w).expect("a weight"));
                self.elevator.set_weight(now, self.groups[group], weight, leaf);
            }
            SetDeviceWeights(group, weight, leaf) => {
                let [weight, leaf] =
                    [weight, leaf].map(|w| w.map(|w| Weight::new(w).expect("a weight")));
                let weights = DeviceWeights { weight, leaf };
                self.elevator.set_device_weights(now, self.groups[group], weights);
            }
            Move(task, group) => {
                self.elevator.move_to_group(now, self.tasks[task], self.groups[group]);
            }
            Exit(task) => self.elevator.exit_io_context(now, self.tasks[task]),
            RemoveGroup(group) => self.elevator.remove_group(now, self.groups[group]),
            SwitchTo(kind) => {
                self.collect_events();
                let scheduler = AnyScheduler::new(kind, Recorder::default());
                let mut old = self.elevator.switch(now, scheduler);
                self.events.extend(old.trace().take());
            }
            _ => unreachable!("step does the others"),
        }
    }

    fn retry(&mut self, name: &str, io: Io) -> Submitted {
        let index = self.bios.iter().position(|bio| bio == name).expect("it was turned away");
        let bio = io.bio(self.tasks[io.task], index as u64);
        let submitted = self.elevator.resubmit(self.now, bio);
        self.note(bio.user_data, submitted);
        submitted
    }

    /// Keeps which request holds which bio, as the trace tells it.
    fn note(&mut self, bio: u64, submitted: Submitted) {
        if let Submitted::Queued(rq) = submitted {
            self.requests.insert(bio, rq);
        }
        for event in self.collect_events() {
            match event {
                Event::Merged { bio, into, .. } => {
                    self.requests.insert(bio, self.requests[&into]);
                }
                Event::Joined { gone, into, .. } => {
                    let (gone_rq, into) = (self.requests.get(&gone).copied(), self.requests[&into]);
                    self.requests.insert(gone, into);
                    for rq in self.requests.values_mut().filter(|rq| Some(**rq) == gone_rq) {
                        *rq = into;
                    }
                }
                _ => {}
            }
        }
        if let Submitted::Merged { into, .. } = submitted {
            assert_eq!(self.requests[&bio], into, "the trace and the answer agree");
        }
    }

    /// Takes what the trace has told since the last call, and keeps it for the test too.
    fn collect_events(&mut self) -> Vec<Event> {
        let new = self.elevator.trace().take();
        self.events.extend(&new);
        new.into_iter().map(|(_, event)| event).collect()
    }

    fn merged(
        &mut self,
        submitted: Submitted,
        bio: &str,
        expected: MergeKind,
        into: &str,
    ) -> Outcome {
        match submitted {
            Submitted::Merged { kind, .. } if kind == expected => self.same(bio, into, true),
            other => Err(format!("{other:?}")),
        }
    }

    fn same(&self, a: &str, b: &str, wanted: bool) -> Outcome {
        let same = self.request(a)? == self.request(b)?;
        if same == wanted {
            return Ok(());
        }
        Err(format!("they are {}", if same { "one request" } else { "different requests" }))
    }

    fn serve(&mut self, names: &[&str]) -> Outcome {
        for (index, name) in names.iter().enumerate() {
            self.expect_dispatched(name).map_err(|instead| format!("at {index}: {instead}"))?;
            self.complete(name)?;
        }
        Ok(())
    }

    fn complete(&mut self, bio: &str) -> Outcome {
        let rq = self.request(bio)?;
        let Bios { user_data, call_waiters } = self.elevator.complete(self.now, rq);
        self.done = self.names(&user_data);
        for bio in &user_data {
            self.requests.remove(bio);
        }
        self.waiters_called = call_waiters;
        Ok(())
    }

    fn cancel(&mut self, expected: &[&str]) -> Outcome {
        let cancelled = self.elevator.cancel_queued(self.now);
        let cancelled: Vec<u64> = cancelled.into_iter().flat_map(|bios| bios.user_data).collect();
        for bio in &cancelled {
            self.requests.remove(bio);
        }
        equal(&self.names(&cancelled)[..], expected)
    }

    fn expect(&mut self, expected: Expected) -> Outcome {
        match expected {
            Expected::Dispatched(bio) => self.expect_dispatched(bio),
            Expected::Nothing => match self.dispatch() {
                None => Ok(()),
                Some(name) => Err(format!("{name} is dispatched")),
            },
            Expected::Done(bios) => equal(&self.done[..], bios),
            Expected::WaitersCalled(called) => equal(&self.waiters_called, &called),
            Expected::Together(a, b) => self.same(a, b, true),
            Expected::Apart(a, b) => self.same(a, b, false),
            Expected::Sectors(bio, start, end) => {
                let rq = self.elevator.request(self.request(bio)?);
                equal(&(rq.sector.0, rq.end().0), &(start, end))
            }
            Expected::Deadline(bio, deadline) => {
                let rq = self.elevator.request(self.request(bio)?);
                equal(&rq.deadline.since_start(), &deadline)
            }
            Expected::Timeout(at) => {
                equal(&self.elevator.poll_timeout().map(Instant::since_start), &at)
            }
            Expected::Number(name, value) => equal(&self.number(name), &Some(value)),
            Expected::Waiting(requests) => equal(&self.elevator.queued(), &requests),
            Expected::Told(line) => self.expect_told(line),
            Expected::Untold(line) => self.expect_untold(line),
        }
    }

    fn expect_dispatched(&mut self, bio: &str) -> Outcome {
        let expected = self.request(bio)?;
        match self.elevator.dispatch(self.now) {
            Some(rq) if rq == expected => Ok(()),
            Some(rq) => {
                Err(format!("{:?} instead", self.names(self.elevator.request(rq).user_data())))
            }
            None => Err(format!("nothing instead of {bio}")),
        }
    }

    fn request(&self, bio: &str) -> Result<RequestId, String> {
        let index = self.bios.iter().rposition(|name| name == bio);
        let rq = index.and_then(|index| self.requests.get(&(index as u64)));
        rq.copied().ok_or_else(|| format!("no request holds {bio}"))
    }

    fn names(&self, user_data: &[u64]) -> Vec<String> {
        let index = |&bio| usize::try_from(bio).expect("user data are indices");
        user_data.iter().map(|bio| self.bios[index(bio)].clone()).collect()
    }
}

struct Wanted {
    name: &'static str,
    value: Option<i64>,
}

impl Dump for Wanted {
    fn number(&mut self, name: &'static str, value: i64) {
        if name == self.name {
            self.value = Some(value);
        }
    }
}

struct Queues(Vec<QueueDump>);

impl Dump for Queues {
    fn number(&mut self, _: &'static str, _: i64) {}

    fn queue(&mut self, queue: &QueueDump) {
        self.0.push(*queue);
    }
}

fn own_request(submitted: Submitted) -> Outcome {
    match submitted {
        Submitted::Queued(_) => Ok(()),
        other => Err(format!("{other:?}")),
    }
}

fn equal<A, B>(found: &A, expected: &B) -> Outcome
where
    A: ?Sized + PartialEq<B> + std::fmt::Debug,
    B: ?Sized + std::fmt::Debug,
{
    if found == expected { Ok(()) } else { Err(format!("{found:?}, not {expected:?}")) }
}
