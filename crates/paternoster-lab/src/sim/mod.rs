//! The simulation of a workload over a modelled device, in virtual time.
//!
//! ```text
//!            next ──▶ Io ──▶ bios ──▶ ┌────────┐ dispatch ──▶ ┌───────┐
//!   Workload                          │ Driver │              │ Model │
//!       completed ◀── Io ended ◀───── └────────┘ ◀── complete └───────┘
//! ```
//!
//! The next event is the earliest of three: the device completes something, the scheduler's timer
//! expires, a task is due. At one time they are handled in this order. Each is followed by
//! dispatch, as the law of the [`Driver`] has it. Nothing here depends on the length of the run but
//! its time: what is kept grows with what is outstanding.

mod agenda;
mod device_time;
mod outstanding;
mod setup;
mod workload;

use paternoster::{AnyScheduler, Bio, Driver, Elevator, Instant, IocId, Op, RequestId, Trace};
use thiserror::Error;

use crate::model::{self, Command, Model};
use agenda::Agenda;
use device_time::DeviceClock;
use outstanding::{Outstanding, OutstandingIo};

pub use device_time::DeviceTime;
pub use setup::{GroupSetup, Setup, SetupError};
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
    ioc: IocId,
    /// Its outstanding I/Os.
    outstanding: u32,
    doing: Doing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    /// It is on the agenda.
    Due,
    Waiting,
    Ended,
}

/// A simulation.
#[derive(Debug)]
pub struct Simulation<W, M, T: Trace> {
    workload: W,
    model: M,
    driver: Driver<AnyScheduler<T>>,
    tasks: Vec<TaskState>,
    /// Tasks that have not ended.
    alive: usize,
    agenda: Agenda,
    outstanding: Outstanding,
    /// The requests in the device, by the tags of their commands.
    in_device: Vec<Option<RequestId>>,
    free_tags: Vec<u32>,
    device_clock: DeviceClock,
    /// Tasks that the workload has woken in this event.
    woken: Vec<TaskId>,
    now: Instant,
}

impl<W: Workload, M: Model, T: Trace> Simulation<W, M, T> {
    /// Sets up a simulation of that workload over that device; events of the scheduler go to
    /// `trace`.
    pub fn new(setup: &Setup, workload: W, model: M, trace: T) -> Result<Self, SetupError> {
        let now = Instant::START;
        let mut driver = Driver::new(setup.elevator(&model, trace)?);
        let groups = driver.administer(|elevator| setup.add_groups(now, elevator))?;
        let begin = workload.tasks();
        let mut agenda = Agenda::default();
        let tasks: Vec<_> = begin
            .iter()
            .zip(0..)
            .map(|(task, number)| {
                agenda.at(task.start, TaskId(number));
                let group = task.group.map_or(groups[0], |index| groups[index + 1]);
                let ioc =
                    driver.administer(|elevator| elevator.add_io_context(now, task.io_prio, group));
                TaskState { ioc, outstanding: 0, doing: Doing::Due }
            })
            .collect();
        driver.dispatch(now, |_, _| {});
        let depth = model.depth();
        Ok(Self {
            workload,
            driver,
            alive: tasks.len(),
            tasks,
            agenda,
            outstanding: Outstanding::default(),
            in_device: vec![None; depth as usize],
            free_tags: (0..depth).rev().collect(),
            device_clock: DeviceClock::new(now),
            woken: Vec::new(),
            now,
            model,
        })
    }

    /// Runs until all tasks have ended and nothing is outstanding.
    pub fn run(&mut self) -> Result<(), SimError> {
        while self.step()? {}
        Ok(())
    }

    /// Handles the next event. Returns whether there was one.
    pub fn step(&mut self) -> Result<bool, SimError> {
        if self.alive == 0 && self.outstanding.len() == 0 {
            return Ok(false);
        }
        let now = self.now;
        let device = self.model.poll_timeout().map(|at| at.max(now));
        let timer = self.driver.poll_timeout().map(|at| at.max(now));
        let task = self.agenda.next_at(now);
        let Some(next) = [device, timer, task].into_iter().flatten().min() else {
            return Err(self.stuck());
        };
        self.advance(next);
        if device == Some(next) {
            self.device_is_due();
        } else if timer == Some(next) {
            self.driver.handle_timeout(next);
            self.dispatch();
        } else {
            self.task_is_due();
        }
        Ok(true)
    }

    /// The time of the last event.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Where the device's time went so far.
    pub fn device_time(&self) -> DeviceTime {
        self.device_clock.time()
    }

    /// The workload, with what it has counted.
    pub fn workload(&self) -> &W {
        &self.workload
    }

    /// The elevator, for looking only.
    pub fn elevator(&self) -> &Elevator<AnyScheduler<T>> {
        self.driver.elevator()
    }

    /// The sink of the scheduler's events.
    pub fn trace(&mut self) -> &mut T {
        self.driver.trace()
    }

    fn stuck(&self) -> SimError {
        SimError::Stuck {
            at_ns: self.now.since_start().as_nanos(),
            outstanding: self.outstanding.len(),
            tasks: self.alive,
        }
    }

    fn advance(&mut self, to: Instant) {
        let elevator = self.driver.elevator();
        self.device_clock.advance(to, elevator.in_flight(), elevator.queued());
        self.now = to;
    }

    fn device_is_due(&mut self) {
        while let Some(done) = self.model.poll(self.now) {
            self.device_clock.spend(done.spent);
            let rq = self.in_device[done.tag as usize].take();
            self.free_tags.push(done.tag);
            let rq = rq.expect("a command that completes was given to the device");
            for user_data in self.driver.complete(self.now, rq) {
                if let Some(ended) = self.outstanding.end_bio(user_data) {
                    self.io_ended(&ended);
                }
            }
            self.dispatch();
        }
    }

    fn io_ended(&mut self, io: &OutstandingIo) {
        let &OutstandingIo { task, io, submitted, .. } = io;
        let ended = Ended { task, io, submitted, completed: self.now };
        let mut moment = Moment { now: self.now, woken: &mut self.woken };
        self.workload.completed(&mut moment, &ended);
        let state = &mut self.tasks[task.index()];
        state.outstanding -= 1;
        if state.doing == Doing::Ended {
            self.exit_if_done(task);
        } else {
            self.woken.push(task);
        }
        self.wake();
    }

    /// Puts the tasks on the agenda that were woken and wait.
    fn wake(&mut self) {
        for task in self.woken.drain(..) {
            let state = &mut self.tasks[task.index()];
            if state.doing == Doing::Waiting {
                state.doing = Doing::Due;
                self.agenda.now(task);
            }
        }
    }

    fn task_is_due(&mut self) {
        let task = self.agenda.pop(self.now).expect("a task is due");
        loop {
            let mut moment = Moment { now: self.now, woken: &mut self.woken };
            let action = self.workload.next(&mut moment, task);
            self.wake();
            let state = &mut self.tasks[task.index()];
            match action {
                Action::Submit(io) => self.submit(task, io),
                Action::Sleep(until) => return self.agenda.at(until, task),
                Action::Wait => return state.doing = Doing::Waiting,
                Action::Exit => {
                    state.doing = Doing::Ended;
                    self.alive -= 1;
                    return self.exit_if_done(task);
                }
            }
        }
    }

    /// Ends the I/O context of a task that has ended, with its last I/O.
    fn exit_if_done(&mut self, task: TaskId) {
        let state = &self.tasks[task.index()];
        if state.outstanding == 0 {
            let (now, ioc) = (self.now, state.ioc);
            self.driver.administer(|elevator| elevator.exit_io_context(now, ioc));
            self.dispatch();
        }
    }

    /// Submits the bios of an I/O, each followed by dispatch.
    fn submit(&mut self, task: TaskId, io: Io) {
        let state = &mut self.tasks[task.index()];
        state.outstanding += 1;
        let user_data = self.outstanding.add(task, io, self.now);
        let whole = Bio::new(io.op, state.ioc, io.sector, io.sectors)
            .with_flags(io.flags)
            .with_user_data(user_data);
        let mut rest = Some(whole);
        while let Some(bio) = rest {
            let (first, more) = self.driver.elevator().limits().split(bio);
            rest = more;
            self.outstanding.add_bio(user_data);
            self.driver.submit(self.now, first);
            self.dispatch();
        }
    }

    /// Gives the device what may start.
    fn dispatch(&mut self) {
        let now = self.now;
        while let Some(rq) = self.driver.dispatch_next(now) {
            let tag = self.free_tags.pop().expect("the elevator keeps to the device's depth");
            self.in_device[tag as usize] = Some(rq);
            self.model.submit(now, command(tag, self.driver.elevator().request(rq)));
        }
    }
}

/// The command for a request.
fn command(tag: u32, request: &paternoster::Request) -> Command {
    let op = match request.op {
        Op::Read => model::Op::Read,
        Op::Write => model::Op::Write,
        Op::Discard | Op::WriteZeroes => model::Op::Discard,
        Op::Flush => model::Op::Flush,
        other => unreachable!("{other:?}: a model knows all operations of the core"),
    };
    let durable = request.flags.contains(paternoster::BioFlags::FUA);
    Command { tag, op, durable, sector: request.sector, sectors: request.sectors }
}
