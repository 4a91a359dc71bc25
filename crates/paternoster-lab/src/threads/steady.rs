//! The checks whether threads are steady: `steadystate`.
//!
//! ```text
//!   tasks   thread 0 … thread n-1 │ services … │ checker …
//!
//!   start   ramp_time ──┤ steadystate_ramp_time ──┤ interval ┤ interval ┤ interval ┤
//!                                                        check ┘    check ┘    check ┘
//! ```
//!
//! The threads of a reporting group that are told as one are checked as one, from when the first of
//! them starts; any other thread for itself. Once steady, they stop.

use std::collections::VecDeque;

use paternoster::{Instant, Nanos};

use crate::fio::{Job, SteadyState};
use crate::result::{Steady, SteadySample};
use crate::sim::{Action, TaskId};

/// Who checks which threads.
#[derive(Debug)]
pub(super) struct Checkers {
    each: Vec<Checker>,
    /// The task of the first of them.
    first_task: usize,
    /// The checker of each thread.
    of: Vec<Option<usize>>,
}

/// Checks some threads together, as a task of its own.
#[derive(Debug)]
pub(super) struct Checker {
    rule: SteadyState,
    threads: Vec<usize>,
    /// When it looks for the next time; never before the first thread starts.
    next: Option<Instant>,
    /// What the threads had done when it looked for the last time.
    last: Option<Transferred>,
    samples: VecDeque<SteadySample>,
    is_attained: bool,
}

/// What threads have done since their start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Transferred {
    pub(super) ios: u64,
    pub(super) bytes: u64,
}

/// What follows from a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Check {
    GoOn(Action),
    /// The threads are steady.
    Attained,
}

impl Checkers {
    /// `first_task` is the number of tasks before them.
    pub(super) fn new(jobs: &[Job], first_task: usize) -> Self {
        let mut each: Vec<Checker> = vec![];
        let mut of = vec![];
        for (index, job) in jobs.iter().enumerate() {
            let Some(rule) = job.ends.steady_state else {
                of.push(None);
                continue;
            };
            let other = each.iter().position(|checker| {
                let told = &jobs[checker.threads[0]].reports;
                let is_one = told.grouped && job.reports.grouped;
                is_one && told.group_id == job.reports.group_id
            });
            let checker = other.unwrap_or_else(|| {
                each.push(Checker::new(rule));
                each.len() - 1
            });
            each[checker].threads.push(index);
            of.push(Some(checker));
        }
        Self { each, first_task, of }
    }

    pub(super) fn count(&self) -> usize {
        self.each.len()
    }

    /// The checker that is that task, if it is one.
    pub(super) fn of_task(&mut self, task: TaskId) -> Option<&mut Checker> {
        self.each.get_mut(task.index().checked_sub(self.first_task)?)
    }

    /// A thread starts, and is counted from then on. Returns the task that has to hear of it.
    pub(super) fn started(&mut self, thread: usize, counted_from: Instant) -> Option<TaskId> {
        let index = self.of[thread]?;
        let checker = &mut self.each[index];
        if checker.next.is_some() {
            return None;
        }
        checker.next = Some(counted_from + checker.rule.ramp);
        Some(super::task(self.first_task + index))
    }

    /// How steady the thread was.
    pub(super) fn steady(&self, thread: usize) -> Option<Steady> {
        let Checker { rule, samples, is_attained, .. } = &self.each[self.of[thread]?];
        let samples = samples.iter().copied().collect();
        Some(Steady { rule: *rule, is_attained: *is_attained, samples })
    }
}

impl Checker {
    fn new(rule: SteadyState) -> Self {
        let samples = VecDeque::new();
        Self { rule, threads: vec![], next: None, last: None, samples, is_attained: false }
    }

    /// The threads that it checks.
    pub(super) fn threads(&self) -> &[usize] {
        &self.threads
    }

    /// Looks at what its threads have done, if it is time for that.
    pub(super) fn check(&mut self, now: Instant, done: Transferred) -> Check {
        let Some(next) = self.next.filter(|_| !self.is_attained) else {
            return Check::GoOn(Action::Wait);
        };
        if now < next {
            return Check::GoOn(Action::Sleep(next));
        }
        if let Some(last) = self.last.replace(done) {
            if self.samples.len() == self.rule.checks as usize {
                self.samples.pop_front();
            }
            self.samples.push_back(SteadySample {
                ios_per_s: per_s(done.ios - last.ios, self.rule.interval),
                bytes_per_s: per_s(done.bytes - last.bytes, self.rule.interval),
            });
            let samples = self.samples.iter().copied().collect();
            let steady = Steady { rule: self.rule, is_attained: false, samples };
            if steady.is_below_limit() {
                self.is_attained = true;
                return Check::Attained;
            }
        }
        let next = next + self.rule.interval;
        self.next = Some(next);
        Check::GoOn(Action::Sleep(next))
    }
}

fn per_s(count: u64, time: Nanos) -> u64 {
    let per_s = u128::from(count) * 1_000_000_000 / u128::from(time.as_nanos().max(1));
    u64::try_from(per_s).unwrap_or(u64::MAX)
}
