//! Which threads may start, and which end with others.

use crate::fio::{ExitWhat, Job};

/// What the start and the end of a thread depend on.
#[derive(Debug)]
struct Rules {
    stage: u32,
    wait_for: Vec<usize>,
    exit: Option<ExitWhat>,
    exits_on_error: bool,
    group: u32,
}

/// Which threads have ended, and what follows from that.
#[derive(Debug)]
pub(super) struct Starts {
    rules: Vec<Rules>,
    ended: Vec<bool>,
    /// Threads that never start, as the end of another has ended them before.
    cancelled: Vec<bool>,
}

impl Starts {
    pub(super) fn new(jobs: &[Job]) -> Self {
        let rules: Vec<_> = jobs
            .iter()
            .map(|job| Rules {
                stage: job.run.stage,
                wait_for: job.run.wait_for.clone(),
                exit: job.run.exit,
                exits_on_error: job.run.exits_on_error,
                group: job.reports.group_id,
            })
            .collect();
        let none = vec![false; rules.len()];
        Self { rules, ended: none.clone(), cancelled: none }
    }

    /// Returns whether all threads have ended that have to end before it.
    pub(super) fn may_start(&self, thread: usize) -> bool {
        self.awaited(thread).all(|awaited| self.ended[awaited])
    }

    /// The threads that have to end before it.
    pub(super) fn awaited(&self, thread: usize) -> impl Iterator<Item = usize> {
        let Rules { stage, wait_for, .. } = &self.rules[thread];
        let below = (0..self.rules.len()).filter(|&other| self.rules[other].stage < *stage);
        below.chain(wait_for.iter().copied())
    }

    /// Returns whether it has ended.
    pub(super) fn has_ended(&self, thread: usize) -> bool {
        self.ended[thread]
    }

    /// Returns whether the thread never starts.
    pub(super) fn is_cancelled(&self, thread: usize) -> bool {
        self.cancelled[thread]
    }

    /// The thread has ended, maybe with an error. Returns those that have to end with it.
    pub(super) fn end(&mut self, thread: usize, has_failed: bool) -> Vec<usize> {
        self.ended[thread] = true;
        let ends_all = has_failed && self.rules[thread].exits_on_error;
        let ending: Vec<_> = if ends_all {
            (0..self.rules.len()).filter(|&other| !self.ended[other]).collect()
        } else {
            self.ended_by(thread).filter(|&other| !self.ended[other]).collect()
        };
        for &other in &ending {
            self.cancelled[other] = true;
        }
        ending
    }

    /// The threads that end with it at the latest.
    pub(super) fn ended_by(&self, thread: usize) -> impl Iterator<Item = usize> {
        let Rules { stage, exit, group, .. } = self.rules[thread];
        let ends = move |other: &Rules| match exit {
            None => false,
            Some(ExitWhat::Group) => other.group == group,
            Some(ExitWhat::Stonewall) => other.stage == stage,
            Some(ExitWhat::All) => true,
        };
        (0..self.rules.len()).filter(move |&other| ends(&self.rules[other]))
    }
}
