//! Which threads may start, and which end with others.

use crate::fio::{ExitWhat, Job};

/// What the start and the end of a thread depend on.
#[derive(Clone, Debug)]
struct Rules {
    stage: u32,
    wait_for: Vec<usize>,
    exit: Option<ExitWhat>,
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
                group: job.reports.group_id,
            })
            .collect();
        let none = vec![false; rules.len()];
        Self { rules, ended: none.clone(), cancelled: none }
    }

    /// Returns whether all threads have ended that have to end before it.
    pub(super) fn may_start(&self, thread: usize) -> bool {
        let Rules { stage, wait_for, .. } = &self.rules[thread];
        let mut below =
            self.rules.iter().zip(&self.ended).filter(|(other, _)| other.stage < *stage);
        below.all(|(_, ended)| *ended) && wait_for.iter().all(|awaited| self.ended[*awaited])
    }

    /// Returns whether the thread never starts.
    pub(super) fn is_cancelled(&self, thread: usize) -> bool {
        self.cancelled[thread]
    }

    /// The thread has ended. Returns those that have to end with it.
    pub(super) fn end(&mut self, thread: usize) -> Vec<usize> {
        self.ended[thread] = true;
        let Rules { stage, exit, group, .. } = self.rules[thread].clone();
        let Some(exit) = exit else { return Vec::new() };
        let ends = |other: &Rules| match exit {
            ExitWhat::Group => other.group == group,
            ExitWhat::Stonewall => other.stage == stage,
            ExitWhat::All => true,
        };
        let others = 0..self.rules.len();
        let ending: Vec<_> =
            others.filter(|&other| !self.ended[other] && ends(&self.rules[other])).collect();
        for &other in &ending {
            self.cancelled[other] = true;
        }
        ending
    }
}
