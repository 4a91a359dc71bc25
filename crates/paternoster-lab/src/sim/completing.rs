//! The way of an I/O from the device back to its task.

use paternoster::Nanos;
use paternoster::scheduler::Scheduler;

use super::agenda::Due;
use super::processors::Job;
use super::workload::{Ended, Moment, Workload};
use super::{Doing, Simulation};
use paternoster_model::Model;

impl<W: Workload, M: Model, S: Scheduler> Simulation<W, M, S> {
    /// Has every command completed that the device has done.
    pub(super) fn device_is_due(&mut self) {
        let free = self.processors.costs().are_none();
        while let Some(done) = self.stack.device.poll(self.now) {
            self.device_clock.spend(done.spent);
            if free {
                self.complete(done.tag);
            } else {
                let task = self.outstanding.get(self.first_bio(done.tag)).task;
                self.give_job(task, Job::Complete { tag: done.tag });
            }
        }
    }

    /// The user data of the first bio of a command.
    fn first_bio(&self, tag: u32) -> u64 {
        let bios = self.stack.driver.elevator().request(self.stack.request(tag)).user_data();
        *bios.first().expect("a request is made of bios")
    }

    /// A core that took so long has completed the command.
    pub(super) fn job_completed(&mut self, tag: u32, took: Nanos) {
        self.outstanding.spend(self.first_bio(tag), took);
        self.complete(tag);
    }

    /// A request leaves the scheduler, and its bios complete.
    pub(super) fn complete(&mut self, tag: u32) {
        let rq = self.stack.leave(tag);
        for user_data in self.stack.driver.complete(self.now, rq) {
            if let Some(ended) = self.outstanding.end_bio(user_data, self.now) {
                self.io_ended(ended);
            }
        }
        self.dispatch();
    }

    fn io_ended(&mut self, mut ended: Ended) {
        let task = ended.task;
        let state = &mut self.tasks[task.index()];
        state.wanted = state.wanted.saturating_sub(1);
        let is_enough = state.wanted == 0;
        if state.doing == Doing::Waiting && is_enough {
            ended.cpu += self.processors.costs().wake;
        }
        let mut moment = Moment::new(self.now, &mut self.woken);
        self.workload.completed(&mut moment, &ended);
        let state = &mut self.tasks[task.index()];
        state.outstanding -= 1;
        if state.doing == Doing::Ended {
            self.exit_if_done(task);
        } else if is_enough {
            self.woken.push(task);
        }
        self.wake();
    }

    /// Puts the tasks on the agenda that were woken and wait.
    pub(super) fn wake(&mut self) {
        let costs_time = self.processors.costs().wake > Nanos::ZERO;
        for index in 0..self.woken.len() {
            let task = self.woken[index];
            let state = &mut self.tasks[task.index()];
            let is_asleep = match state.doing {
                Doing::Waiting => true,
                Doing::Polling => false,
                Doing::Due | Doing::Ended => continue,
            };
            state.doing = Doing::Due;
            if costs_time && is_asleep {
                self.give_job(task, Job::Wake { task });
            } else {
                self.agenda.now(Due::Task(task));
            }
        }
        self.woken.clear();
    }
}
