//! The way of an I/O from the device back to its task.

use paternoster::{Nanos, Trace};

use super::agenda::Due;
use super::outstanding::OutstandingIo;
use super::workload::{Ended, Moment, Workload};
use super::{Doing, Simulation};
use crate::model::Model;

impl<W: Workload, M: Model, T: Trace> Simulation<W, M, T> {
    /// Has every command completed that the device has done.
    pub(super) fn device_is_due(&mut self) {
        let costs = self.processors.costs();
        while let Some(done) = self.model.poll(self.now) {
            self.device_clock.spend(done.spent);
            if costs.are_none() {
                self.complete(done.tag);
                continue;
            }
            let core = self.core_of_command(done.tag);
            let at = self.processors.work(core, self.now, costs.complete);
            self.agenda.at(at, Due::CompleteLock { tag: done.tag });
        }
    }

    pub(super) fn lock_to_complete(&mut self, tag: u32) {
        let core = self.core_of_command(tag);
        let done = self.processors.hold_lock(core, self.now);
        self.agenda.at(done, Due::Complete { tag });
    }

    /// The core of the task that submitted the first bio of a command.
    fn core_of_command(&self, tag: u32) -> usize {
        let rq = self.in_device[tag as usize].expect("a command that completes is in the device");
        let bios = self.driver.elevator().request(rq).user_data();
        let first = bios.first().expect("a request is made of bios");
        self.processors.core_of(self.outstanding.get(*first).task.index())
    }

    /// A request leaves the scheduler, and its bios complete.
    pub(super) fn complete(&mut self, tag: u32) {
        let rq = self.in_device[tag as usize].take();
        let rq = rq.expect("a command that completes is in the device");
        self.free_tags.push(tag);
        for user_data in self.driver.complete(self.now, rq) {
            if let Some(ended) = self.outstanding.end_bio(user_data) {
                self.io_ended(&ended);
            }
        }
        self.dispatch();
    }

    fn io_ended(&mut self, io: &OutstandingIo) {
        let &OutstandingIo { task, io, submitted, entered, .. } = io;
        let ended = Ended { task, io, submitted, entered, completed: self.now };
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
    pub(super) fn wake(&mut self) {
        let cost = self.processors.costs().wake;
        for task in self.woken.drain(..) {
            let state = &mut self.tasks[task.index()];
            if state.doing != Doing::Waiting {
                continue;
            }
            state.doing = Doing::Due;
            if cost == Nanos::ZERO {
                self.agenda.now(Due::Task(task));
            } else {
                let core = self.processors.core_of(task.index());
                let at = self.processors.work(core, self.now, cost);
                self.agenda.at(at, Due::Task(task));
            }
        }
    }
}
