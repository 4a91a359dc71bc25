//! I/Os that a task submits with one call: they travel as one, and a plug is on their way.
//!
//! ```text
//!   SubmitAll ──▶ plug ──▶ core ──▶ way ──▶ scheduler, then dispatch
//!    a b c d      a bc d      one job, one hand-over
//! ```
//!
//! The plug is on the stack of the call, as in Linux: what it holds leaves before the call returns,
//! so nothing is in it while its task waits, sleeps, works or has ended. Of a call with one or two
//! bios each enters by itself, as the plug is not worth it.

use paternoster::scheduler::Scheduler;
use paternoster::{Batch, HandOver, IoPrio, Nanos, Plug};

use super::Simulation;
use super::agenda::Due;
use super::processors::Job;
use super::submitting::bio;
use super::workload::{Io, TaskId, Workload};
use paternoster_model::Model;

/// A call that is on its way to the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CallId(u32);

/// What a call submits.
#[derive(Debug)]
pub(super) struct Call {
    task: TaskId,
    /// The user data of its I/Os, in the order in which they were given; at least one.
    ios: Vec<u64>,
    runs: Vec<Run>,
}

/// I/Os of a call, one behind the other, of one priority: requests have one.
#[derive(Debug)]
struct Run {
    io_prio: Option<IoPrio>,
    /// What left the plug, in its order.
    batches: Vec<Batch>,
}

/// Keeps what leaves a plug.
#[derive(Default)]
pub(crate) struct LeftPlug(pub(crate) Vec<Batch>);

impl HandOver<()> for LeftPlug {
    fn hand_over(&mut self, (): (), batch: Batch) {
        self.0.push(batch);
    }
}

impl<W: Workload, M: Model, S: Scheduler> Simulation<W, M, S> {
    /// Submits I/Os with one call. Returns whether the task goes on at once, which it does where
    /// nothing costs anything.
    pub(super) fn submit_all(&mut self, task: TaskId, ios: &[Io]) -> bool {
        if ios.is_empty() {
            return true;
        }
        let call = self.plug(task, ios);
        let ios = u32::try_from(call.ios.len()).expect("I/Os of a call are counted in u32");
        let batches = call.runs.iter().flat_map(|run| &run.batches);
        let requests = batches.map(|batch| batch.chains.len()).sum::<usize>();
        let requests = u32::try_from(requests).expect("requests of a call are counted in u32");
        let key = self.calls.insert(call);
        let call = CallId(u32::try_from(key).expect("calls under way are counted in u32"));
        if self.processors.costs().are_none() {
            self.send_call(call);
            return true;
        }
        self.give_job(task, Job::SubmitAll { call, ios, requests });
        false
    }

    /// A core has submitted the call; its task goes on.
    pub(super) fn enter_call(&mut self, id: CallId, took: Nanos) {
        let call = &self.calls[id.0 as usize];
        let task = call.task;
        // What does not divide is the first one's.
        let count = call.ios.len() as u64;
        let (each, rest) = (took.as_nanos() / count, took.as_nanos() % count);
        self.outstanding.spend(call.ios[0], Nanos::new(rest));
        for &user_data in &call.ios {
            self.outstanding.spend(user_data, Nanos::new(each));
        }
        self.send_call(id);
        self.ask(task);
    }

    /// The call goes to the scheduler.
    fn send_call(&mut self, call: CallId) {
        if self.way == Nanos::ZERO {
            return self.submit_call(call);
        }
        self.agenda.at(self.now + self.way, Due::Call { call });
    }

    /// Submits what left the plug, each batch followed by dispatch.
    pub(super) fn submit_call(&mut self, call: CallId) {
        let Call { task, ios, runs } = self.calls.remove(call.0 as usize);
        for user_data in ios {
            self.outstanding.enter(user_data, self.now);
        }
        for Run { io_prio, batches } in runs {
            self.set_priority(task, io_prio);
            for batch in batches {
                self.stack.driver.submit_batch(self.now, batch);
                self.dispatch();
            }
        }
    }

    fn plug(&mut self, task: TaskId, ios: &[Io]) -> Call {
        let ioc = self.tasks[task.index()].ioc;
        let rules = self.stack.driver.elevator().plug_rules();
        let mut names = Vec::with_capacity(ios.len());
        let mut runs = vec![];
        for run in ios.chunk_by(|io, next| io.io_prio == next.io_prio) {
            let mut bios = vec![];
            for io in run {
                let user_data = self.ask_for(task, *io);
                names.push(user_data);
                let mut rest = Some(bio(ioc, io, user_data));
                while let Some(bio) = rest {
                    let (first, more) = self.stack.driver.elevator().limits().split(bio);
                    self.outstanding.add_bio(user_data);
                    bios.push(first);
                    rest = more;
                }
            }
            let mut plug = Plug::new(self.plug, LeftPlug::default());
            plug.begin();
            plug.announce(u32::try_from(bios.len()).expect("bios are counted in u32"));
            for bio in bios {
                plug.submit(self.now, (), bio, &rules);
            }
            plug.finish(self.now);
            let batches = std::mem::take(&mut plug.receiver().0);
            runs.push(Run { io_prio: run[0].io_prio, batches });
        }
        Call { task, ios: names, runs }
    }
}
