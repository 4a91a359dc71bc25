//! What a run of a scenario measures of each task, as fio measures a job: from its start to its
//! last completion.

use std::borrow::Cow;

use paternoster::{Instant, Nanos};

use super::{Op, Request, Scenario};
use crate::fio::DataDirection;
use crate::result::{JobResult, Subject, Together, Took, group_sums, shares_note, table_of};

/// Bytes of a sector.
const SECTOR: u64 = 512;

/// What was measured so far.
#[derive(Debug)]
pub(super) struct Measured {
    /// Of each task.
    tasks: Vec<JobResult>,
    /// When each request arrived, by its index; valid from then on.
    arrived: Vec<Instant>,
    /// How many requests each task has outstanding.
    outstanding: Vec<u32>,
    together: Together,
}

impl Measured {
    pub(super) fn new(tasks: usize, requests: usize) -> Self {
        let mut together = Together::new(vec![true; tasks]);
        (0..tasks).for_each(|task| together.begin(task, Instant::START));
        Self {
            tasks: vec![JobResult::default(); tasks],
            arrived: vec![Instant::START; requests],
            outstanding: vec![0; tasks],
            together,
        }
    }

    /// The request of that index, of that task, arrives.
    pub(super) fn arrived(&mut self, index: usize, task: usize, now: Instant) {
        self.arrived[index] = now;
        self.outstanding[task] += 1;
        self.follow(task, now);
    }

    /// The request of that index, of that task, completes.
    pub(super) fn completed(&mut self, index: usize, task: usize, rq: &Request, now: Instant) {
        let completion = now.saturating_since(self.arrived[index]);
        let result = &mut self.tasks[task];
        match direction(rq.op) {
            Some(direction) => {
                let took = Took { submission: Nanos::ZERO, completion };
                result.completed(direction, u64::from(rq.sectors) * SECTOR, took);
            }
            None => result.syncs.add(completion),
        }
        self.outstanding[task] -= 1;
        self.follow(task, now);
    }

    /// Has the time known in which all tasks have something outstanding.
    fn follow(&mut self, task: usize, now: Instant) {
        let done = self.tasks[task].directions.each_ref().map(|direction| direction.bytes);
        self.together.update(now, task, done, self.outstanding[task] > 0);
    }

    /// The task that began at `from` has ended.
    pub(super) fn ended(&mut self, task: usize, from: Instant, now: Instant) {
        let result = &mut self.tasks[task];
        result.runtime = now.saturating_since(from);
        for direction in &mut result.directions {
            if direction.ios > 0 {
                direction.runtime = result.runtime;
            }
        }
    }

    /// The table of all tasks.
    pub(super) fn table(&self, scenario: &Scenario) -> String {
        let mut results = self.tasks.clone();
        let told = results.iter_mut().enumerate();
        told.for_each(|(task, result)| self.together.tell(task, result));
        let lines = scenario.tasks.iter().zip(&results);
        let lines = lines.map(|(task, result)| Subject {
            name: task.id.to_string(),
            group: Cow::Borrowed(&task.group),
            result,
        });
        let lines: Vec<_> = lines.collect();
        let groups = group_sums(lines.iter().map(|line| (&*line.group, line.result)));
        table_of("TASK", &lines, &groups) + &shares_note("tasks", &lines).unwrap_or_default()
    }
}

fn direction(op: Op) -> Option<DataDirection> {
    match op {
        Op::Read => Some(DataDirection::Read),
        Op::Write | Op::WriteSync | Op::WriteFua | Op::WriteZeroes => Some(DataDirection::Write),
        Op::Discard => Some(DataDirection::Trim),
        Op::Flush => None,
    }
}
