//! The simulation of a workload over a modelled device, in virtual time.
//!
//! ```text
//!            next ──▶ Io ──▶ bios ──▶ ┌────────┐ dispatch ──▶ ┌───────┐
//!   Workload                          │ Driver │              │ Model │
//!       completed ◀── Io ended ◀───── └────────┘ ◀── complete └───────┘
//! ```
//!
//! The next event is the earliest of three: the device completes something, the scheduler's timer
//! expires, something on the agenda is due, such as a task. At one time they are handled in this
//! order. Each is followed by dispatch, as the law of the [`Driver`] has it. Where I/O costs the
//! processors something (`processors.rs`), it enters and leaves the scheduler later by that.
//!
//! What is kept grows with what is outstanding, and not with the length of the run.

mod agenda;
mod call;
mod completing;
mod costs;
mod device_time;
mod outstanding;
mod processors;
mod setup;
mod stack;
mod submitting;
mod turns;
mod workload;

use paternoster::scheduler::Scheduler;
use paternoster::{
    Administration, AnyScheduler, Driver, Elevator, GroupId, Instant, IoPrio, IocId, Nanos,
    PlugLimits, Trace,
};
use slab::Slab;
use thiserror::Error;

pub(crate) use agenda::Agenda;
use agenda::Due;
use call::Call;
pub(crate) use call::LeftPlug;
use device_time::DeviceClock;
use outstanding::Outstanding;
use paternoster_model::Model;
use processors::{DoneJob, Job, Processors};
pub(crate) use stack::{Next, Stack};
use turns::Turns;

pub use costs::{Costs, CpuTime};
pub use device_time::DeviceTime;
pub use setup::{Driven, GroupSetup, Setup, SetupError};
pub use workload::{Action, Ended, Io, Moment, TaskId, TaskSetup, Workload};

/// Why a simulation did not come to its end.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SimError {
    /// Nothing would ever happen, though tasks have not ended.
    #[error("stuck at {at_ns} ns with {outstanding} I/Os outstanding and {tasks} tasks waiting")]
    Stuck {
        /// The time of the last event.
        at_ns: u64,
        /// I/Os that have not completed.
        outstanding: usize,
        /// Tasks that have not ended.
        tasks: usize,
    },
}

/// A task as far as the run has come.
#[derive(Debug)]
struct TaskState {
    group: GroupId,
    ioc: IocId,
    /// The number of the I/O context with which it began.
    context: usize,
    /// Its own priority, and the one with which its I/O context submits at present.
    io_prio: IoPrio,
    submits_with: IoPrio,
    /// Its outstanding I/Os.
    outstanding: u32,
    /// How many of them complete before it is asked again; valid while it waits or polls.
    wanted: u32,
    /// Until when it waits, if an alarm is on the agenda for that.
    alarm: Option<Instant>,
    doing: Doing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    /// It is on the agenda.
    Due,
    Waiting,
    Polling,
    Ended,
}

/// A simulation.
#[derive(Debug)]
pub struct Simulation<W, M, S: Scheduler> {
    workload: W,
    stack: Stack<M, S>,
    groups: Vec<GroupId>,
    tasks: Vec<TaskState>,
    /// How many I/Os were asked for, by the numbers of the contexts.
    asked: Vec<u64>,
    /// Tasks that have not ended.
    alive: usize,
    agenda: Agenda<Due>,
    outstanding: Outstanding,
    /// The calls with several I/Os that are on their way to the scheduler.
    calls: Slab<Call>,
    /// How much the plug of such a call holds.
    plug: PlugLimits,
    device_clock: DeviceClock,
    processors: Processors,
    /// How long an I/O is on its way to the scheduler.
    way: Nanos,
    turns: Option<Turns>,
    /// Tasks that the workload has woken in this event.
    woken: Vec<TaskId>,
    now: Instant,
}

impl<W: Workload, M: Model, T: Trace> Simulation<W, M, AnyScheduler<T>> {
    /// Sets up a simulation of that workload over that device; events of the scheduler go to
    /// `trace`.
    pub fn new(setup: &Setup, workload: W, model: M, trace: T) -> Result<Self, SetupError> {
        Self::with_scheduler(setup, setup.scheduler(trace)?, workload, model)
    }
}

impl<W: Workload, M: Model, S: Scheduler> Simulation<W, M, S> {
    /// The same with a scheduler of one's own, instead of the one that `setup` names.
    pub fn with_scheduler(
        setup: &Setup,
        scheduler: S,
        workload: W,
        model: M,
    ) -> Result<Self, SetupError> {
        let now = Instant::START;
        let mut driver =
            Driver::new(setup.elevator(model.rotational(), model.depth(), scheduler)?);
        let groups = driver.administer(|elevator| setup.add_groups(now, elevator))?;
        let begin = workload.tasks();
        let mut agenda = Agenda::default();
        let mut contexts = Vec::with_capacity(begin.len());
        let mut asked = Vec::new();
        let tasks: Vec<_> = begin
            .iter()
            .zip(0..)
            .map(|(task, number)| {
                agenda.at(task.start, Due::Task(TaskId(number)));
                let io_prio = task.io_prio;
                let group = task.group.map_or(groups[0], |index| groups[index + 1]);
                let shared = contexts.get(workload.context_of(TaskId(number)).index());
                let (ioc, context) = shared.copied().unwrap_or_else(|| {
                    asked.push(0);
                    let add = |elevator: &mut Administration<'_, S>| {
                        elevator.add_io_context(now, io_prio, group)
                    };
                    (driver.administer(add), asked.len() - 1)
                });
                contexts.push((ioc, context));
                TaskState {
                    group,
                    ioc,
                    context,
                    io_prio,
                    submits_with: io_prio,
                    outstanding: 0,
                    wanted: 0,
                    alarm: None,
                    doing: Doing::Due,
                }
            })
            .collect();
        driver.dispatch(now, |_, _| {});
        Ok(Self {
            workload,
            stack: Stack::new(driver, model),
            groups,
            alive: tasks.len(),
            tasks,
            asked,
            agenda,
            outstanding: Outstanding::default(),
            calls: Slab::new(),
            plug: setup.plug,
            device_clock: DeviceClock::new(now),
            processors: Processors::new(setup.costs, setup.cores),
            way: setup.way,
            turns: Turns::new(&setup.driven),
            woken: Vec::new(),
            now,
        })
    }

    /// Runs until all tasks have ended and nothing is outstanding, or the workload says so.
    pub fn run(&mut self) -> Result<(), SimError> {
        while self.step()? {}
        Ok(())
    }

    /// Handles the next event. Returns whether there was one.
    pub fn step(&mut self) -> Result<bool, SimError> {
        let is_idle = self.alive == 0 && self.outstanding.len() == 0;
        if is_idle || self.workload.has_ended() {
            return Ok(false);
        }
        let (at, next) = self.next()?;
        self.advance(at);
        match next {
            _ if self.turns.is_some() => self.turn(),
            Next::Device => self.device_is_due(),
            Next::Timer => {
                self.stack.driver.handle_timeout(at);
                self.dispatch();
            }
            Next::Other => {
                let due = self.agenda.pop(at).expect("something is due");
                self.handle(due);
            }
        }
        Ok(true)
    }

    /// When the next event is.
    pub fn next_at(&mut self) -> Result<Instant, SimError> {
        Ok(self.next()?.0)
    }

    /// What it is, too.
    fn next(&mut self) -> Result<(Instant, Next), SimError> {
        let next = self.stack.next(self.now, self.agenda.next_at(self.now));
        let (at, next) = next.ok_or_else(|| self.stuck())?;
        Ok((self.turns.as_mut().map_or(at, |turns| turns.free_at(at)), next))
    }

    /// The time of the last event.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Where the device's time went so far.
    pub fn device_time(&self) -> DeviceTime {
        self.device_clock.time()
    }

    /// What the processors did so far.
    pub fn cpu_time(&self) -> CpuTime {
        self.processors.time()
    }

    /// The workload, with what it has counted.
    pub fn workload(&self) -> &W {
        &self.workload
    }

    /// The same, to be changed by its owner.
    pub(crate) fn workload_mut(&mut self) -> &mut W {
        &mut self.workload
    }

    /// The workload alone, with what it has counted.
    pub fn into_workload(self) -> W {
        self.workload
    }

    /// The elevator, for looking only.
    pub fn elevator(&self) -> &Elevator<S> {
        self.stack.driver.elevator()
    }

    /// The groups, the root first, then those of the setup in their order.
    pub fn groups(&self) -> &[GroupId] {
        &self.groups
    }

    /// The I/O context of a task. It is gone once the task has ended and its last I/O completed.
    pub fn io_context(&self, task: TaskId) -> IocId {
        self.tasks[task.index()].ioc
    }

    /// The sink of the scheduler's events.
    pub fn trace(&mut self) -> &mut S::Trace {
        self.stack.driver.trace()
    }

    fn stuck(&self) -> SimError {
        SimError::Stuck {
            at_ns: self.now.since_start().as_nanos(),
            outstanding: self.outstanding.len(),
            tasks: self.alive,
        }
    }

    fn handle(&mut self, due: Due) {
        match due {
            Due::Task(task) => self.ask(task),
            Due::Alarm { task, until } => self.alarm(task, until),
            Due::Arrival { user_data } => self.submit_bios(user_data),
            Due::Call { call } => self.submit_call(call),
            Due::Exit { ioc } => self.exit(ioc),
            Due::Lock { core } => {
                let free = self.processors.take_lock(core, self.now);
                self.agenda.at(free, Due::JobDone { core });
            }
            Due::JobDone { core } => self.job_done(core),
        }
    }

    /// Gives the core of the task a job.
    fn give_job(&mut self, task: TaskId, job: Job) {
        let core = self.processors.core_of(task);
        if let Some((at, due)) = self.processors.give(core, self.now, job) {
            self.agenda.at(at, due);
        }
    }

    fn job_done(&mut self, core: usize) {
        let (DoneJob { job, took }, next) = self.processors.finish(core, self.now);
        if let Some((at, due)) = next {
            self.agenda.at(at, due);
        }
        match job {
            Job::Submit { user_data } => self.enter(user_data, took),
            Job::SubmitAll { call, .. } => self.enter_call(call, took),
            Job::Complete { tag } => self.job_completed(tag, took),
            Job::Wake { task } => self.ask(task),
            Job::Work { task, left } => match left.saturating_sub(took) {
                Nanos::ZERO => self.ask(task),
                left => self.work(task, left),
            },
        }
    }

    fn advance(&mut self, to: Instant) {
        let elevator = self.stack.driver.elevator();
        self.device_clock.advance(to, elevator.in_flight(), elevator.queued());
        self.now = to;
    }
}
