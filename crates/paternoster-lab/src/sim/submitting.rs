//! The way of an I/O from its task to the device.

use paternoster::scheduler::Scheduler;
use paternoster::{Bio, Instant, IoPrio, IocId, Nanos, Request};

use super::agenda::Due;
use super::outstanding::OutstandingIo;
use super::processors::Job;
use super::turns::Turns;
use super::workload::{Action, Io, Moment, TaskId, Workload};
use super::{Doing, Simulation, TaskState};
use paternoster_model::{Chance, Model};

impl TaskState {
    /// It waits until so many of its I/Os have completed.
    fn wait(&mut self, how: Doing, ios: u32) {
        self.doing = how;
        self.wanted = ios;
    }
}

impl<W: Workload, M: Model, S: Scheduler> Simulation<W, M, S> {
    /// Asks the task what it does next, until it does something that takes time.
    pub(super) fn ask(&mut self, task: TaskId) {
        loop {
            let mut moment = Moment::new(self.now, &mut self.woken);
            let action = self.workload.next(&mut moment, task);
            self.wake();
            let state = &mut self.tasks[task.index()];
            match action {
                Action::Submit(io) => {
                    if !self.submit(task, io) {
                        return;
                    }
                }
                Action::SubmitAll(ios) => {
                    if !self.submit_all(task, &ios) {
                        return;
                    }
                }
                Action::Sleep(until) => return self.agenda.at(until, Due::Task(task)),
                Action::Work(span) => return self.work(task, span),
                Action::Wait => return state.wait(Doing::Waiting, 1),
                Action::WaitFor(ios) => return state.wait(Doing::Waiting, ios),
                Action::WaitUntil(until) => {
                    state.wait(Doing::Waiting, 1);
                    if state.alarm.replace(until) != Some(until) {
                        self.agenda.at(until, Due::Alarm { task, until });
                    }
                    return;
                }
                Action::Poll => return state.wait(Doing::Polling, 1),
                Action::Reconnect(ends) => self.reconnect(task, ends),
                Action::Exit => {
                    state.doing = Doing::Ended;
                    self.alive -= 1;
                    return self.exit_if_done(task);
                }
            }
        }
    }

    /// A task has waited until then, unless it waits for another time since.
    pub(super) fn alarm(&mut self, task: TaskId, until: Instant) {
        let state = &mut self.tasks[task.index()];
        if state.alarm != Some(until) {
            return;
        }
        state.alarm = None;
        if state.doing == Doing::Waiting {
            state.doing = Doing::Due;
            self.ask(task);
        }
    }

    /// Notes an I/O as outstanding. Returns the user data of its bios.
    pub(super) fn ask_for(&mut self, task: TaskId, io: Io) -> u64 {
        let state = &mut self.tasks[task.index()];
        state.outstanding += 1;
        let asked = &mut self.asked[state.context];
        *asked += 1;
        let chance = Chance::of(state.context as u64, *asked);
        self.outstanding.add(task, io, chance, self.now)
    }

    /// Submits an I/O. Returns whether its task goes on at once, which it does where nothing costs
    /// anything.
    fn submit(&mut self, task: TaskId, io: Io) -> bool {
        let user_data = self.ask_for(task, io);
        if self.processors.costs().are_none() {
            self.send(user_data);
            return true;
        }
        self.give_job(task, Job::Submit { user_data });
        false
    }

    /// The core of the task works for so long; then the task is asked again.
    pub(super) fn work(&mut self, task: TaskId, span: Nanos) {
        if self.processors.costs().are_none() {
            return self.agenda.at(self.now + span, Due::Task(task));
        }
        self.give_job(task, Job::Work { task, left: span });
    }

    /// A core has submitted the I/O; its task goes on.
    pub(super) fn enter(&mut self, user_data: u64, took: Nanos) {
        self.outstanding.spend(user_data, took);
        let task = self.outstanding.get(user_data).task;
        self.send(user_data);
        self.ask(task);
    }

    /// The I/O goes to the scheduler.
    fn send(&mut self, user_data: u64) {
        if self.way == Nanos::ZERO {
            return self.submit_bios(user_data);
        }
        self.agenda.at(self.now + self.way, Due::Arrival { user_data });
    }

    /// Submits the bios of an I/O, each followed by dispatch.
    pub(super) fn submit_bios(&mut self, user_data: u64) {
        let OutstandingIo { task, io, .. } = self.outstanding.enter(user_data, self.now);
        let ioc = self.tasks[task.index()].ioc;
        self.set_priority(task, io.io_prio);
        let mut rest = Some(bio(ioc, &io, user_data));
        while let Some(bio) = rest {
            let (first, more) = self.stack.driver.elevator().limits().split(bio);
            rest = more;
            self.outstanding.add_bio(user_data);
            self.stack.driver.submit(self.now, first);
            self.dispatch();
        }
    }

    /// Has the I/O context of the task submit with the I/O's own priority, if it has one.
    pub(super) fn set_priority(&mut self, task: TaskId, own: Option<IoPrio>) {
        let state = &mut self.tasks[task.index()];
        let wanted = own.unwrap_or(state.io_prio);
        if wanted != state.submits_with {
            state.submits_with = wanted;
            let (now, ioc) = (self.now, state.ioc);
            self.stack.driver.administer(|elevator| elevator.set_io_priority(now, ioc, wanted));
        }
    }

    /// Gives the device what may start.
    pub(super) fn dispatch(&mut self) {
        if self.turns.as_mut().is_some_and(Turns::puts_off_dispatch) {
            return;
        }
        let now = self.now;
        let outstanding = &self.outstanding;
        let chance = |request: &Request| outstanding.get(request.name()).chance(request);
        while let Some(command) = self.stack.next_command(now, chance) {
            self.stack.device.submit(now, command);
        }
    }

    /// Ends the I/O context of a task that has ended, with its last I/O.
    pub(super) fn exit_if_done(&mut self, task: TaskId) {
        let state = &self.tasks[task.index()];
        if state.outstanding == 0 {
            self.exit(state.ioc);
        }
    }

    /// Ends an I/O context.
    pub(super) fn exit(&mut self, ioc: IocId) {
        let now = self.now;
        self.stack.driver.administer(|elevator| elevator.exit_io_context(now, ioc));
        self.dispatch();
    }

    /// The task goes on with a new I/O context; the one before ends at that time.
    fn reconnect(&mut self, task: TaskId, ends: Instant) {
        let state = &mut self.tasks[task.index()];
        let (now, io_prio, group) = (self.now, state.io_prio, state.group);
        self.agenda.at(ends, Due::Exit { ioc: state.ioc });
        let driver = &mut self.stack.driver;
        state.ioc = driver.administer(|elevator| elevator.add_io_context(now, io_prio, group));
        state.submits_with = io_prio;
        self.dispatch();
    }
}

/// The whole of an I/O as a bio.
pub(super) fn bio(ioc: IocId, io: &Io, user_data: u64) -> Bio {
    Bio::new(io.op, ioc, io.sector, io.sectors).with_flags(io.flags).with_user_data(user_data)
}
