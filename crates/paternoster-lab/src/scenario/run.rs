//! The run of a scenario in virtual time, event by event, as FORMAT.md lays down.
//!
//! ```text
//!   agenda, by (time, kind, sequence)      kind: completion < timer < arrival < change
//!     │ next                                       ▲
//!     ▼                                            │ when the device is done with a request
//!   the driver ─────────▶ dispatch until it gives none ──▶ model
//! ```

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use paternoster::{
    AnyScheduler, Arrival, Bio, BioFlags, Driver, GroupId, Instant, IoPrio, IocId, Nanos, Recorder,
    RequestId, SchedulerKind, Sector, SectorCount, Weights,
};
use paternoster_model::{Command, Model as _, Servers};
use slab::Slab;
use thiserror::Error;

use super::change::Changed;
use super::log::Log;
use super::measured::Measured;
use super::names::Names;
use super::plugs::Plugs;
use super::setup::{elevator, followers};
use super::{LONGEST_NS, Op, Request, Scenario, ScenarioError, parent_path};

/// Why a run gave no log.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RunError {
    /// The scenario cannot be run.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The run would go on for too long.
    #[error("request {rq} would {what} more than 3650 days after the begin: the longest run")]
    TooLong {
        /// The request.
        rq: String,
        /// What it would do.
        what: &'static str,
    },
    /// Requests are left and nothing will ever happen.
    #[error("stuck at {at_ns} ns with {left} requests left: {}", first_of(requests))]
    Stuck {
        /// The time of the last event.
        at_ns: u64,
        /// How many requests have not completed.
        left: usize,
        /// Their names.
        requests: Vec<String>,
    },
}

/// The first names, and that there are more.
fn first_of(names: &[String]) -> String {
    let more = if names.len() > SHOWN { " ..." } else { "" };
    names[..names.len().min(SHOWN)].join(", ") + more
}

/// How many requests are named where a run is stuck.
const SHOWN: usize = 10;

/// What is to happen, in the order of kinds at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Timer,
    Arrival { index: usize },
    Change { index: usize },
}

impl Event {
    fn kind(self) -> u8 {
        match self {
            Self::Timer => 1,
            Self::Arrival { .. } => 2,
            Self::Change { .. } => 3,
        }
    }
}

/// A task as far as the run has come.
struct TaskState<'a> {
    /// Its I/O context, from its first request on.
    ioc: Option<IocId>,
    /// The path of the group of its next requests.
    group: &'a str,
    /// The I/O priority of its next requests.
    io_prio: IoPrio,
    /// Requests that have not completed.
    left: usize,
}

struct Run<'a> {
    scenario: &'a Scenario,
    names: Names,
    /// The task and the request of each index.
    requests: Vec<(usize, &'a Request)>,
    /// The requests that wait for the completion of each, in the order of the file.
    followers: Vec<Vec<usize>>,
    tasks: Vec<TaskState<'a>>,
    plugs: Plugs,
    /// Which requests have completed.
    completed: Vec<bool>,
    /// Requests of any task that have not completed. The run ends with the last one.
    left: usize,
    /// How often each request will yet be requeued.
    requeued: Vec<u32>,
    groups: HashMap<&'a str, GroupId>,
    driver: Driver<AnyScheduler<Recorder>>,
    model: Servers,
    /// The requests in the device, by the tags of their commands.
    in_device: Slab<RequestId>,
    agenda: BinaryHeap<Reverse<(Instant, u8, u64, Event)>>,
    sequence: u64,
    /// The first request that would arrive too late for a run.
    too_late: Option<usize>,
    /// The timer that is on the agenda.
    timer: Option<Instant>,
    log: Log,
    measured: Measured,
}

/// Runs the scenario to its end.
pub fn run(scenario: &Scenario) -> Result<Log, RunError> {
    run_and_measure(scenario).map(|(log, _)| log)
}

/// Runs the scenario to its end. Returns what was measured, too.
pub(super) fn run_and_measure(scenario: &Scenario) -> Result<(Log, Measured), RunError> {
    let kind: SchedulerKind = scenario.scheduler.parse().map_err(ScenarioError::from)?;
    let scheduler = match scenario.kernel {
        None => AnyScheduler::new(kind, Recorder::default()),
        Some(kernel) => AnyScheduler::with_kernel(kind, Recorder::default(), kernel)
            .map_err(ScenarioError::from)?,
    };
    Run::new(scenario, scheduler)?.finish()
}

impl<'a> Run<'a> {
    fn new(
        scenario: &'a Scenario,
        scheduler: AnyScheduler<Recorder>,
    ) -> Result<Self, ScenarioError> {
        let (names, indices) = scenario.names();
        let requests: Vec<_> = scenario
            .tasks
            .iter()
            .enumerate()
            .flat_map(|(task, tasks)| tasks.requests.iter().map(move |rq| (task, rq)))
            .collect();
        let followers = followers(scenario, &names, &indices)?;
        let tasks = scenario.tasks.iter();
        let tasks = tasks.map(|task| TaskState {
            ioc: None,
            group: &task.group,
            io_prio: task.io_prio().expect("checked when the scenario was read"),
            left: task.requests.len(),
        });
        let tasks = tasks.collect();
        let requeued = names.iter().map(|name| scenario.requeued.get(name));
        let requeued = requeued.map(|times| times.copied().unwrap_or(0)).collect();
        Ok(Self {
            left: requests.len(),
            completed: vec![false; requests.len()],
            requests,
            followers,
            requeued,
            tasks,
            plugs: Plugs::new(&scenario.tasks),
            groups: HashMap::new(),
            driver: Driver::new(elevator(scenario, scheduler)?),
            model: scenario.device.open(),
            in_device: Slab::new(),
            agenda: BinaryHeap::new(),
            sequence: 0,
            too_late: None,
            timer: None,
            log: Log::default(),
            measured: Measured::new(scenario.tasks.len(), names.len()),
            names: Names { requests: names, ..Names::default() },
            scenario,
        })
    }

    fn finish(mut self) -> Result<(Log, Measured), RunError> {
        self.set_up_groups()?;
        self.set_up_agenda();
        let mut now = Instant::START;
        while self.left > 0 {
            if let Some(index) = self.too_late {
                let rq = self.names.requests[index].clone();
                return Err(RunError::TooLong { rq, what: "arrive" });
            }
            let due = self.model.poll_timeout();
            let other = self.agenda.peek().map(|Reverse((at, ..))| *at);
            if let Some(at) = due.filter(|due| other.is_none_or(|other| *due <= other)) {
                now = at;
                self.device_is_due(now)?;
                continue;
            }
            let Some(Reverse((at, _, _, event))) = self.agenda.pop() else {
                let at_ns = now.since_start().as_nanos();
                let left = self.completed.iter().enumerate().filter(|(_, is_done)| !**is_done);
                let requests = left.map(|(index, _)| self.names.requests[index].clone());
                return Err(RunError::Stuck {
                    at_ns,
                    left: self.left,
                    requests: requests.collect(),
                });
            };
            now = at;
            self.handle(now, event);
        }
        Ok((self.log, self.measured))
    }

    fn set_up_groups(&mut self) -> Result<(), ScenarioError> {
        let start = Instant::START;
        let root = self.driver.elevator().groups().root();
        self.groups.insert("/", root);
        self.names.groups.insert(root, "/".to_owned());
        for group in &self.scenario.groups {
            let (own, leaf) = group.weights(&self.scenario.scheduler)?;
            let parent = self.groups[parent_path(&group.path)];
            let id = self.driver.administer(|elevator| {
                let id = elevator.add_group(start, parent, own);
                elevator.set_weight(start, id, Weights { weight: own, leaf });
                id
            });
            self.groups.insert(&group.path, id);
            self.names.groups.insert(id, group.path.clone());
        }
        Ok(())
    }

    /// Puts on the agenda what waits for no completion.
    fn set_up_agenda(&mut self) {
        for (index, change) in self.scenario.changes.iter().enumerate() {
            let at = Instant::START + Nanos::new(change.at_ns);
            self.schedule(at, Event::Change { index });
        }
        let mut first = 0;
        for task in &self.scenario.tasks {
            for (i, rq) in task.requests.iter().enumerate() {
                if i < task.depth && rq.after.is_none() {
                    let at = Instant::START + Nanos::new(task.start_ns) + Nanos::new(rq.think_ns);
                    self.schedule(at, Event::Arrival { index: first + i });
                }
            }
            first += task.requests.len();
        }
    }

    fn schedule(&mut self, at: Instant, event: Event) {
        if let Event::Arrival { index } = event {
            // A run ends with its last completion, whatever timers are left.
            if at.since_start() > Nanos::new(LONGEST_NS) {
                self.too_late.get_or_insert(index);
            }
            self.plugs.expect(self.requests[index].0, at);
        }
        self.sequence += 1;
        self.agenda.push(Reverse((at, event.kind(), self.sequence, event)));
    }

    fn handle(&mut self, now: Instant, event: Event) {
        match event {
            Event::Timer if self.timer == Some(now) => {
                self.timer = None;
                self.driver.handle_timeout(now);
            }
            Event::Timer => return,
            Event::Arrival { index } => self.arrive(now, index),
            Event::Change { index } => self.change(now, index),
        }
        self.decide(now);
    }

    /// Logs what has happened, dispatches, and has the timer armed that the scheduler wants.
    fn decide(&mut self, now: Instant) {
        self.log_events();
        self.dispatch(now);
        self.arm_timer();
    }

    fn arrive(&mut self, now: Instant, index: usize) {
        let (task, rq) = self.requests[index];
        let ioc = self.io_context(now, task);
        self.measured.arrived(index, task, now);
        let (op, flags) = match rq.op {
            Op::Read => (paternoster::Op::Read, BioFlags::empty()),
            Op::Write => (paternoster::Op::Write, BioFlags::empty()),
            Op::WriteSync => (paternoster::Op::Write, BioFlags::SYNC | BioFlags::IDLE),
            Op::WriteFua => {
                (paternoster::Op::Write, BioFlags::SYNC | BioFlags::IDLE | BioFlags::FUA)
            }
            Op::Flush => (paternoster::Op::Flush, BioFlags::empty()),
            Op::Discard => (paternoster::Op::Discard, BioFlags::empty()),
            Op::WriteZeroes => (paternoster::Op::WriteZeroes, BioFlags::empty()),
        };
        let bio = Bio::new(op, ioc, Sector(rq.sector), SectorCount(rq.sectors))
            .with_flags(flags)
            .with_user_data(index as u64);
        if self.plugs.has(task) {
            return self.plug(now, task, bio);
        }
        let taken = self.driver.submit(now, bio);
        assert_ne!(taken, Arrival::Waiting, "reference runs have no admission");
    }

    /// The bio arrives with all that its task submits at this moment.
    fn plug(&mut self, now: Instant, task: usize, bio: Bio) {
        let rules = self.driver.elevator().plug_rules();
        for batch in self.plugs.submit(now, task, bio, &rules) {
            self.driver.submit_batch(now, batch);
        }
    }

    fn io_context(&mut self, now: Instant, task: usize) -> IocId {
        if let Some(ioc) = self.tasks[task].ioc {
            return ioc;
        }
        let TaskState { io_prio, group, .. } = self.tasks[task];
        let group = self.groups[group];
        let ioc = self.driver.administer(|elevator| elevator.add_io_context(now, io_prio, group));
        self.names.tasks.insert(ioc, self.scenario.tasks[task].id);
        *self.tasks[task].ioc.insert(ioc)
    }

    /// The device is done with a request, and has completed it or hands it back.
    fn device_is_due(&mut self, now: Instant) -> Result<(), RunError> {
        let Some(done) = self.model.poll(now) else { return Ok(()) };
        let rq = self.in_device.remove(done.tag as usize);
        let name = self.driver.elevator().request(rq).name();
        let name = usize::try_from(name).expect("names are indices");
        if now.since_start() > Nanos::new(LONGEST_NS) {
            let rq = self.names.requests[name].clone();
            return Err(RunError::TooLong { rq, what: "complete" });
        }
        let times = &mut self.requeued[name];
        let is_requeued = *times > 0;
        *times = times.saturating_sub(1);
        if is_requeued {
            self.driver.requeue(now, rq);
        } else {
            self.complete(now, rq);
        }
        self.decide(now);
        Ok(())
    }

    fn complete(&mut self, now: Instant, rq: RequestId) {
        let bios = self.driver.complete(now, rq);
        let index = |&bio| usize::try_from(bio).expect("user data are indices");
        let done: Vec<usize> = bios.iter().map(index).collect();
        for &index in &done {
            self.log.completed(now, &self.names.requests[index]);
        }
        self.log_events();
        for index in done {
            for follower in std::mem::take(&mut self.followers[index]) {
                let at = now + Nanos::new(self.requests[follower].1.think_ns);
                self.schedule(at, Event::Arrival { index: follower });
            }
            let (task, rq) = self.requests[index];
            self.measured.completed(index, task, rq, now);
            self.completed[index] = true;
            self.finish_one_of(now, task);
        }
    }

    /// One request of the task is done; it exits with its last.
    fn finish_one_of(&mut self, now: Instant, task: usize) {
        let state = &mut self.tasks[task];
        state.left -= 1;
        self.left -= 1;
        if state.left == 0 {
            let ioc = state.ioc.expect("a task whose request completed has a context");
            let settings = &self.scenario.tasks[task];
            let begun = Instant::START + Nanos::new(settings.start_ns);
            self.measured.ended(task, begun, now);
            self.log.exited(now, settings.id);
            self.driver.administer(|elevator| elevator.exit_io_context(now, ioc));
        }
    }

    fn change(&mut self, now: Instant, index: usize) {
        match &self.scenario.changes[index].what {
            Changed::Weights { group, weight, leaf } => {
                let id = self.groups[group.as_str()];
                let before = self.driver.elevator().groups()[id].configured();
                let weights = Weights {
                    weight: weight.unwrap_or(before.weight),
                    leaf: leaf.unwrap_or(before.leaf),
                };
                self.driver.administer(|elevator| elevator.set_weight(now, id, weights));
            }
            Changed::Group { task, group } => {
                let task = self.task(*task);
                self.tasks[task].group = group;
                let id = self.groups[group.as_str()];
                if let Some(ioc) = self.living_context(task) {
                    self.driver.administer(|elevator| elevator.move_to_group(now, ioc, id));
                }
            }
            Changed::IoPrio { task, io_prio } => {
                let (task, prio) = (self.task(*task), *io_prio);
                self.tasks[task].io_prio = prio;
                if let Some(ioc) = self.living_context(task) {
                    self.driver.administer(|elevator| elevator.set_io_priority(now, ioc, prio));
                }
            }
        }
    }

    fn task(&self, id: u32) -> usize {
        let found = self.scenario.tasks.iter().position(|task| task.id == id);
        found.expect("checked when the scenario was read")
    }

    /// The task's I/O context, if it has begun and has not exited.
    fn living_context(&self, task: usize) -> Option<IocId> {
        let TaskState { ioc, left, .. } = self.tasks[task];
        ioc.filter(|_| left > 0)
    }

    fn dispatch(&mut self, now: Instant) {
        while let Some(rq) = self.driver.dispatch_next(now) {
            let request = self.driver.elevator().request(rq);
            let (sector, sectors) = (request.sector, request.sectors);
            let tag =
                u32::try_from(self.in_device.insert(rq)).expect("requests are counted in u32");
            // All operations are alike to this device.
            let op = paternoster_model::Op::Read;
            self.model.submit(now, Command { tag, op, durable: false, sector, sectors });
        }
        self.log_events();
    }

    fn arm_timer(&mut self) {
        let wanted = self.driver.poll_timeout();
        if wanted != self.timer {
            self.timer = wanted;
            if let Some(at) = wanted {
                self.schedule(at, Event::Timer);
            }
        }
    }

    fn log_events(&mut self) {
        for (at, event) in self.driver.trace().take() {
            self.log.event(at, event, &self.names);
        }
    }
}
