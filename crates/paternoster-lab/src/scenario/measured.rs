//! What a run of a scenario measures of each task, as fio measures a job: from its start to its
//! last completion.

use paternoster::{Instant, Nanos};

use super::{Op, Request, Scenario};
use crate::fio::DataDirection;
use crate::result::{JobResult, Subject, Took, table_of};

/// Bytes of a sector.
const SECTOR: u64 = 512;

/// What was measured so far.
#[derive(Debug)]
pub(super) struct Measured {
    /// Of each task.
    tasks: Vec<JobResult>,
    /// When each request arrived, by its index; valid from then on.
    arrived: Vec<Instant>,
}

impl Measured {
    pub(super) fn new(tasks: usize, requests: usize) -> Self {
        Self { tasks: vec![JobResult::default(); tasks], arrived: vec![Instant::START; requests] }
    }

    /// The request of that index arrives.
    pub(super) fn arrived(&mut self, index: usize, now: Instant) {
        self.arrived[index] = now;
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
        let lines = scenario.tasks.iter().zip(&self.tasks);
        let lines = lines.map(|(task, result)| Subject {
            name: task.id.to_string(),
            group: &task.group,
            result,
        });
        table_of("TASK", &lines.collect::<Vec<_>>())
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
