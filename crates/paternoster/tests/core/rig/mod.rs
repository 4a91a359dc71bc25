//! A rig for behaviour tests: an elevator with a clock, and bios, tasks and groups by name.
//!
//! A test is a list of steps and expected decisions, in the block layer's words:
//!
//! ```text
//!   Submit("a", read(0..8))              it becomes a request of its own
//!   BackMerge("b", read(8..16), "a")     it becomes part of the request that holds "a"
//!   Expect(dispatched("a"))              one dispatch gives that one
//!   Serve(&["a", "c"])                   these are dispatched in order, and complete at once
//! ```
//!
//! A request goes by the name of any of its bios; of bios of one name, by that of the last. Times
//! are counted from the start of the run. What happens otherwise than a step says ends the test
//! with the step's number, and what happened instead. A step judges a single answer of the
//! elevator, which therefore has no `Driver`: dispatch may stop, or be left out, where a test
//! wants.

#![allow(unreachable_pub)]

mod act;
mod expect;
mod inside;
pub mod io;
pub mod lines;
pub mod served;
mod step;
mod words;

pub use io::{Io, discard, flush, read, write, zeroes};
pub use served::{Served, Stream};
pub use step::Expected::{
    Deadline, Done, Emitted, NotEmitted, Nothing, Number, Timeout, WaitersCalled, Waiting,
};
pub use step::Step::*;
pub use step::{Expected, Step, apart, dispatched, sectors, together};

use std::collections::BTreeMap;

use paternoster::{
    AnyScheduler, Device, Elevator, ElevatorEvent, Event, GroupId, Hierarchy, Instant, IocId,
    Kernel, MergeSite, Nanos, NoMerges, Recorder, RequestId, SchedulerKind, Submitted, Weight,
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
    /// The schedulers that it has had.
    kinds: Vec<SchedulerKind>,
    /// Events that the test has not looked at.
    events: Vec<(Instant, Event)>,
    steps: usize,
}

impl Rig {
    pub fn new(kind: SchedulerKind) -> Self {
        Self::on(Device::disk(1), kind)
    }

    pub fn on(device: Device, kind: SchedulerKind) -> Self {
        Self::of(device, AnyScheduler::new(kind, Recorder::default()))
    }

    /// CFQ as that kernel has it.
    pub fn of_kernel(device: Device, kernel: Kernel) -> Self {
        let scheduler = AnyScheduler::with_kernel(SchedulerKind::Cfq, Recorder::default(), kernel);
        Self::of(device, scheduler.expect("cfq has kernels"))
    }

    fn of(device: Device, scheduler: AnyScheduler<Recorder>) -> Self {
        let kind = scheduler.kind();
        let mut elevator = Elevator::new(scheduler, device, Instant::START);
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
            kinds: vec![kind],
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

    pub fn kyber() -> Self {
        Self::new(SchedulerKind::Kyber)
    }

    pub fn cfq() -> Self {
        Self::new(SchedulerKind::Cfq)
    }

    pub fn bfq() -> Self {
        Self::new(SchedulerKind::Bfq)
    }

    /// On a device where nothing rotates, with prices by request.
    pub fn wfq() -> Self {
        let rig = Self::on(Device::solid_state(4096), SchedulerKind::Wfq);
        rig.without_merging().set("cost", 1)
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
        let ioc = self.elevator.add_io_context(self.now, io_prio, self.groups[group]);
        self.tasks.insert(name.to_owned(), ioc);
        self
    }

    /// With a tunable set.
    pub fn set(mut self, tunable: &'static str, value: i64) -> Self {
        self.run(&[Set(tunable, value)]);
        self
    }

    /// With groups that share the device in that way.
    pub fn in_hierarchy(mut self, hierarchy: Hierarchy) -> Self {
        self.run(&[SetHierarchy(hierarchy)]);
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
        self.dispatch_request().map(|(_, name)| name)
    }

    fn dispatch_request(&mut self) -> Option<(RequestId, String)> {
        let rq = self.elevator.dispatch(self.now)?;
        let bio = usize::try_from(self.elevator.request(rq).name()).expect("an index");
        Some((rq, self.bios[bio].clone()))
    }

    /// Asks and completes at once, until nothing is given: the names in order.
    pub fn serve_all(&mut self) -> Vec<String> {
        self.serve_up_to(usize::MAX)
    }

    /// The same, at most `count` times.
    pub fn serve_up_to(&mut self, count: usize) -> Vec<String> {
        let mut served = vec![];
        while served.len() < count
            && let Some((rq, name)) = self.dispatch_request()
        {
            self.complete_request(rq);
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
            Event::Elevator(
                ElevatorEvent::Merged { site, .. } | ElevatorEvent::Absorbed { site, .. },
            ) => Some(site),
            _ => None,
        };
        self.events().into_iter().filter_map(site).collect()
    }

    pub fn group_id(&self, path: &str) -> GroupId {
        self.groups[path]
    }

    pub fn task_id(&self, name: &str) -> IocId {
        self.tasks[name]
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
