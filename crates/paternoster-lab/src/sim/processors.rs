//! The cores, which do one job at a time, and the lock of the scheduler.
//!
//! ```text
//!   core      ├ submit ┤├ wait for the lock ┤├ hold ┤        the I/O enters the scheduler here
//!   lock      ────────── another's hold ─────├ hold ┤
//!
//!   core      ├ complete ┤├ wait ┤├ hold ┤                   its task goes on here
//!             ▲ the device is done
//! ```
//!
//! A core does its jobs one after the other, in the order in which they come to it. The lock is
//! granted in the order in which it is asked for, and who waits for it spins: the core is busy
//! meanwhile. A hold that was waited for may cost more than one that was not, as what it works on
//! then lies in another core's cache.
//!
//! ```text
//!   core      ├ submit a ┤├ submit b ┤├ submit c ┤├ wait ┤├ hold for ab ┤├ hold for c ┤
//! ```
//!
//! I/Os that are submitted with one call cost the core their time one by one. Those that merge in
//! its plug are one request, the lock is asked for once, and only the first request finds what it
//! works on in another core's cache.

use std::collections::VecDeque;

use paternoster::{Instant, Nanos};

use super::agenda::Due;
use super::call::CallId;
use super::costs::{Costs, CpuTime};
use super::workload::TaskId;

/// What a core does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Job {
    /// Submits an I/O.
    Submit {
        /// The user data of its bios.
        user_data: u64,
    },
    /// Submits the I/Os of a call.
    SubmitAll {
        /// The call.
        call: CallId,
        /// How many I/Os it has.
        ios: u32,
        /// Of how many requests the scheduler hears, as others merged in the plug.
        requests: u32,
    },
    /// Completes a command of the device.
    Complete {
        /// Its tag.
        tag: u32,
    },
    /// Works for a task itself.
    Work {
        /// The task.
        task: TaskId,
        /// For how long.
        left: Nanos,
    },
    /// Wakes a task.
    Wake {
        /// The task.
        task: TaskId,
    },
}

/// A job that is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DoneJob {
    pub(super) job: Job,
    /// How long the core was busy with it.
    pub(super) took: Nanos,
}

/// A core.
#[derive(Clone, Debug, Default)]
struct Core {
    /// What it does, and since when.
    doing: Option<(Job, Instant)>,
    /// What it does next, in this order.
    waiting: VecDeque<Job>,
    /// Where in the range of its times the next job is, in parts of 2³².
    variation: u32,
}

/// How long a core works for a task before it does what waits for it, such as a completion, which
/// would interrupt it.
const SLICE: Nanos = Nanos::from_micros(10);

/// 2³² by the golden ratio: multiples of it are spread evenly.
const STEP: u32 = 0x9e37_79b9;

impl Core {
    /// The time of the next job: evenly spread around the mean, as cores whose jobs all took the
    /// same time would fall into step, and hardly ever meet at the lock.
    fn vary(&mut self, mean: Nanos, percent: u32) -> Nanos {
        self.variation = self.variation.wrapping_add(STEP);
        let range = mean.as_nanos() * u64::from(2 * percent) / 100;
        let part = u64::try_from((u128::from(range) * u128::from(self.variation)) >> 32);
        let part = part.expect("a part of the range is no more than it");
        Nanos::new(mean.as_nanos() - range / 2 + part)
    }
}

/// The cores and the lock.
#[derive(Debug)]
pub(super) struct Processors {
    costs: Costs,
    cores: Vec<Core>,
    lock_free: Instant,
    time: CpuTime,
}

impl Processors {
    pub(super) fn new(costs: Costs, cores: u32) -> Self {
        let core = |index: u32| Core { variation: index.wrapping_mul(STEP), ..Core::default() };
        let cores = (0..cores.max(1)).map(core).collect();
        Self { costs, cores, lock_free: Instant::from_nanos(0), time: CpuTime::default() }
    }

    pub(super) fn costs(&self) -> Costs {
        self.costs
    }

    pub(super) fn time(&self) -> CpuTime {
        self.time
    }

    /// The core of the task: tasks are spread over the cores in turn.
    pub(super) fn core_of(&self, task: TaskId) -> usize {
        task.index() % self.cores.len()
    }

    /// Gives the core a job. Returns what is due when of it; nothing while the core does another.
    pub(super) fn give(&mut self, core: usize, now: Instant, job: Job) -> Option<(Instant, Due)> {
        let own = &mut self.cores[core];
        if own.doing.is_some() {
            own.waiting.push_back(job);
            return None;
        }
        Some(self.begin(core, now, job))
    }

    /// A core asks for the lock, for one half of the scheduler's work. Returns when it gives the
    /// lock back. Cores have to ask in the order of time.
    pub(super) fn take_lock(&mut self, core: usize, now: Instant) -> Instant {
        let further = match self.cores[core].doing {
            Some((Job::SubmitAll { requests, .. }, _)) => u64::from(requests.saturating_sub(1)),
            _ => 0,
        };
        let waited = self.lock_free.saturating_since(now);
        let Costs { hold, hold_after_wait, .. } = self.costs;
        let first = if waited > Nanos::ZERO { hold_after_wait.max(hold) } else { hold };
        let span = Nanos::new(first.as_nanos() / 2 + further * (hold.as_nanos() / 2));
        self.lock_free = self.lock_free.max(now) + span;
        self.time.spinning += waited;
        self.time.held += span;
        self.lock_free
    }

    /// The core has done its job, and begins the next one. Returns what is due when of that.
    pub(super) fn finish(
        &mut self,
        core: usize,
        now: Instant,
    ) -> (DoneJob, Option<(Instant, Due)>) {
        let own = &mut self.cores[core];
        let (job, since) = own.doing.take().expect("a core that is done had a job");
        let took = now.saturating_since(since);
        self.time.busy += took;
        let next = own.waiting.pop_front().map(|job| self.begin(core, now, job));
        (DoneJob { job, took }, next)
    }

    fn begin(&mut self, core: usize, now: Instant, job: Job) -> (Instant, Due) {
        let Costs { submit, complete, wake, hold, hold_after_wait, varies_percent } = self.costs;
        let own = &mut self.cores[core];
        let mut vary = |mean| own.vary(mean, varies_percent);
        let (work, takes_lock) = match job {
            Job::Submit { .. } => (vary(submit), true),
            Job::SubmitAll { ios, .. } => {
                ((0..ios).fold(Nanos::ZERO, |sum, _| sum + vary(submit)), true)
            }
            Job::Complete { .. } => (vary(complete), true),
            Job::Wake { .. } => (vary(wake), false),
            Job::Work { left, .. } => (left.min(SLICE), false),
        };
        own.doing = Some((job, now));
        let has_lock = hold.max(hold_after_wait) > Nanos::ZERO;
        let due = if takes_lock && has_lock { Due::Lock { core } } else { Due::JobDone { core } };
        (now + work, due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ns: u64) -> Instant {
        Instant::from_nanos(ns)
    }

    fn submit(user_data: u64) -> Job {
        Job::Submit { user_data }
    }

    /// The first core holds the lock from 1000 to 1100. The second asks at 1040, waits for 60, and
    /// holds for 300.
    #[test]
    fn second_core_spins_while_the_first_holds_the_lock() {
        let costs =
            Costs { hold: Nanos::new(200), hold_after_wait: Nanos::new(600), ..Costs::default() };
        let mut cpu = Processors::new(costs, 2);
        assert_eq!(cpu.give(0, at(1000), submit(1)), Some((at(1000), Due::Lock { core: 0 })));
        assert_eq!(cpu.take_lock(0, at(1000)), at(1100));
        assert_eq!(cpu.give(1, at(1040), submit(2)), Some((at(1040), Due::Lock { core: 1 })));
        assert_eq!(cpu.take_lock(1, at(1040)), at(1400));
        let took = [cpu.finish(0, at(1100)), cpu.finish(1, at(1400))].map(|(done, _)| done.took);
        assert_eq!(took, [Nanos::new(100), Nanos::new(360)]);
        let time =
            CpuTime { busy: Nanos::new(460), spinning: Nanos::new(60), held: Nanos::new(400) };
        assert_eq!(cpu.time(), time);
    }

    /// A core that waits for the lock does nothing else: its next job asks for the lock when it has
    /// given it back, and had the next job asked before, the lock would have been idle for a core
    /// that spun for the other job.
    #[test]
    fn core_begins_a_job_when_the_one_before_is_done() {
        let costs = Costs { submit: Nanos::new(50), hold: Nanos::new(200), ..Costs::default() };
        let mut cpu = Processors::new(costs, 1);
        assert_eq!(cpu.give(0, at(0), submit(1)), Some((at(50), Due::Lock { core: 0 })));
        assert_eq!(cpu.give(0, at(10), submit(2)), None);
        assert_eq!(cpu.take_lock(0, at(50)), at(150));
        let (first, next) = cpu.finish(0, at(150));
        assert_eq!(first, DoneJob { job: submit(1), took: Nanos::new(150) });
        assert_eq!(next, Some((at(200), Due::Lock { core: 0 })));
    }
}
