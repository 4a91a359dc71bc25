//! The run of a scenario in virtual time, event by event, as FORMAT.md lays down.
//!
//! ```text
//!   the next of completion < timer < arrival < change    at one time, in this order
//!     │                                  ▲
//!     ▼                                  │ when the device is done with a request
//!   the driver ──▶ dispatch until it gives none ──▶ model
//! ```
//!
//! This is no workload of the simulation, with which it shares the scheduler over the device and
//! what comes next: by FORMAT.md a context begins with its task's first request, ends between its
//! last completion and the dispatch that follows, and moves to other groups meanwhile, and the
//! device hands requests back, none of which a workload can do.

use std::collections::{HashMap, VecDeque};
use std::iter;

use paternoster::{
    AnyScheduler, Arrival, Bio, BioFlags, GroupId, Instant, IoPrio, IocId, Nanos, Recorder,
    RequestId, Sector, SectorCount, Weights,
};
use paternoster_model::{Chance, Command, Model as _, Servers};
use thiserror::Error;

use super::change::{Change, Changed};
use super::log::Log;
use super::measured::Measured;
use super::names::Names;
use super::plugs::Plugs;
use super::setup::{driver, followers, setup};
use super::{LONGEST_NS, Op, Request, Scenario, ScenarioError};
use crate::sim::{Agenda, Next, Stack};

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
    stack: Stack<Servers, AnyScheduler<Recorder>>,
    /// The requests that are to arrive.
    arrivals: Agenda<usize>,
    /// The changes that are to come, by their times.
    changes: VecDeque<&'a Change>,
    /// The first request that would arrive too late for a run.
    too_late: Option<usize>,
    log: Log,
    measured: Measured,
}

/// Runs the scenario to its end.
pub fn run(scenario: &Scenario) -> Result<Log, RunError> {
    run_and_measure(scenario).map(|(log, _)| log)
}

/// Runs the scenario to its end. Returns what was measured, too.
pub(super) fn run_and_measure(scenario: &Scenario) -> Result<(Log, Measured), RunError> {
    Run::new(scenario)?.finish()
}

impl<'a> Run<'a> {
    fn new(scenario: &'a Scenario) -> Result<Self, ScenarioError> {
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
        let setup = setup(scenario)?;
        let mut driver = driver(scenario, &setup)?;
        let groups = driver.administer(|it| setup.add_groups(Instant::START, it))?;
        driver.dispatch(Instant::START, |_, _| {});
        let paths = iter::once("/").chain(scenario.groups.iter().map(|group| group.path.as_str()));
        let groups: Vec<_> = paths.zip(groups).collect();
        let mut changes: Vec<_> = scenario.changes.iter().collect();
        changes.sort_by_key(|change| change.at_ns);
        Ok(Self {
            left: requests.len(),
            completed: vec![false; requests.len()],
            requests,
            followers,
            requeued,
            tasks,
            plugs: Plugs::new(&scenario.tasks),
            stack: Stack::new(driver, scenario.device.open()),
            arrivals: Agenda::default(),
            changes: changes.into(),
            too_late: None,
            log: Log::default(),
            measured: Measured::new(scenario.tasks.len(), names.len()),
            names: Names {
                requests: names,
                groups: groups.iter().map(|&(path, id)| (id, path.to_owned())).collect(),
                tasks: HashMap::new(),
            },
            groups: groups.into_iter().collect(),
            scenario,
        })
    }

    fn finish(mut self) -> Result<(Log, Measured), RunError> {
        self.expect_arrivals();
        let mut now = Instant::START;
        while self.left > 0 {
            if let Some(index) = self.too_late {
                let rq = self.names.requests[index].clone();
                return Err(RunError::TooLong { rq, what: "arrive" });
            }
            let change = self.changes.front().map(|it| Instant::START + Nanos::new(it.at_ns));
            let other = [self.arrivals.next_at(now), change].into_iter().flatten().min();
            let next = self.stack.next(now, other);
            let (at, next) = next.ok_or_else(|| self.stuck(now))?;
            now = at;
            self.handle(now, next)?;
        }
        Ok((self.log, self.measured))
    }

    fn stuck(&self, now: Instant) -> RunError {
        let left =
            self.completed.iter().zip(&self.names.requests).filter(|(is_done, _)| !**is_done);
        RunError::Stuck {
            at_ns: now.since_start().as_nanos(),
            left: self.left,
            requests: left.map(|(_, name)| name.clone()).collect(),
        }
    }

    /// Expects the requests that wait for no completion.
    fn expect_arrivals(&mut self) {
        let mut first = 0;
        for task in &self.scenario.tasks {
            for (i, rq) in task.requests.iter().enumerate() {
                if i < task.depth && rq.after.is_none() {
                    let at = Instant::START + Nanos::new(task.start_ns) + Nanos::new(rq.think_ns);
                    self.expect(at, first + i);
                }
            }
            first += task.requests.len();
        }
    }

    /// The request of that index is to arrive then.
    fn expect(&mut self, at: Instant, index: usize) {
        if at.since_start() > Nanos::new(LONGEST_NS) {
            self.too_late.get_or_insert(index);
        }
        self.plugs.expect(self.requests[index].0, at);
        self.arrivals.at(at, index);
    }

    /// Lets that happen, logs it, and dispatches.
    fn handle(&mut self, now: Instant, next: Next) -> Result<(), RunError> {
        match next {
            Next::Device => self.device_is_due(now)?,
            Next::Timer => self.stack.driver.handle_timeout(now),
            Next::Other => {
                if let Some(index) = self.arrivals.pop(now) {
                    self.arrive(now, index);
                } else if let Some(change) = self.changes.pop_front() {
                    self.change(now, &change.what);
                }
            }
        }
        self.log_events();
        self.dispatch(now);
        Ok(())
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
        let taken = self.stack.driver.submit(now, bio);
        assert_ne!(taken, Arrival::Waiting, "reference runs have no admission");
    }

    /// The bio arrives with all that its task submits at this moment.
    fn plug(&mut self, now: Instant, task: usize, bio: Bio) {
        let rules = self.stack.driver.elevator().plug_rules();
        for batch in self.plugs.submit(now, task, bio, &rules) {
            self.stack.driver.submit_batch(now, batch);
        }
    }

    fn io_context(&mut self, now: Instant, task: usize) -> IocId {
        if let Some(ioc) = self.tasks[task].ioc {
            return ioc;
        }
        let TaskState { io_prio, group, .. } = self.tasks[task];
        let group = self.groups[group];
        let ioc =
            self.stack.driver.administer(|elevator| elevator.add_io_context(now, io_prio, group));
        self.names.tasks.insert(ioc, self.scenario.tasks[task].id);
        *self.tasks[task].ioc.insert(ioc)
    }

    /// The device is done with a request, and has completed it or hands it back.
    fn device_is_due(&mut self, now: Instant) -> Result<(), RunError> {
        let Some(done) = self.stack.device.poll(now) else { return Ok(()) };
        let rq = self.stack.leave(done.tag);
        let name = self.stack.driver.elevator().request(rq).name();
        let name = usize::try_from(name).expect("names are indices");
        if now.since_start() > Nanos::new(LONGEST_NS) {
            let rq = self.names.requests[name].clone();
            return Err(RunError::TooLong { rq, what: "complete" });
        }
        let times = &mut self.requeued[name];
        let is_requeued = *times > 0;
        *times = times.saturating_sub(1);
        if is_requeued {
            self.stack.driver.requeue(now, rq);
        } else {
            self.complete(now, rq);
        }
        Ok(())
    }

    fn complete(&mut self, now: Instant, rq: RequestId) {
        let bios = self.stack.driver.complete(now, rq);
        let index = |&bio| usize::try_from(bio).expect("user data are indices");
        let done: Vec<usize> = bios.iter().map(index).collect();
        for &index in &done {
            self.log.completed(now, &self.names.requests[index]);
        }
        self.log_events();
        for index in done {
            for follower in std::mem::take(&mut self.followers[index]) {
                let at = now + Nanos::new(self.requests[follower].1.think_ns);
                self.expect(at, follower);
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
            self.stack.driver.administer(|elevator| elevator.exit_io_context(now, ioc));
        }
    }

    fn change(&mut self, now: Instant, what: &'a Changed) {
        match what {
            Changed::Weights { group, weight, leaf } => {
                let id = self.groups[group.as_str()];
                let before = self.stack.driver.elevator().groups()[id].configured();
                let weights = Weights {
                    weight: weight.unwrap_or(before.weight),
                    leaf: leaf.unwrap_or(before.leaf),
                };
                self.stack.driver.administer(|elevator| elevator.set_weight(now, id, weights));
            }
            Changed::Group { task, group } => {
                let task = self.task(*task);
                self.tasks[task].group = group;
                let id = self.groups[group.as_str()];
                if let Some(ioc) = self.living_context(task) {
                    self.stack.driver.administer(|elevator| elevator.move_to_group(now, ioc, id));
                }
            }
            Changed::IoPrio { task, io_prio } => {
                let (task, prio) = (self.task(*task), *io_prio);
                self.tasks[task].io_prio = prio;
                if let Some(ioc) = self.living_context(task) {
                    self.stack
                        .driver
                        .administer(|elevator| elevator.set_io_priority(now, ioc, prio));
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
        while let Some(command) = self.stack.next_command(now, |_| Chance::default()) {
            // All operations are alike to this device.
            let op = paternoster_model::Op::Read;
            self.stack.device.submit(now, Command { op, durable: false, ..command });
        }
        self.log_events();
    }

    fn log_events(&mut self) {
        for (at, event) in self.stack.driver.trace().take() {
            self.log.event(at, event, &self.names);
        }
    }
}
