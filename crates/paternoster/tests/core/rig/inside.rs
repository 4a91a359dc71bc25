//! What a test may see inside: counters, and what the scheduler dumps.

use paternoster::scheduler::{Dump, QueueDump, Scheduler, SliceStats};
use paternoster::{GroupStats, QueueName};

use super::Rig;
use super::words::Word as _;

impl Rig {
    pub fn stats(&self, group: &str) -> &GroupStats {
        self.elevator.stats().group(self.groups[group])
    }

    pub fn slice_stats(&self, group: &str) -> &SliceStats {
        let stats = self.elevator.scheduler().own_stats(self.now, self.groups[group]).slices;
        stats.expect("a group that had a request")
    }

    /// The task of a queue.
    pub fn task_name(&self, queue: QueueName) -> String {
        queue.word(self)
    }

    /// An internal number of the scheduler.
    pub fn number(&self, name: &'static str) -> Option<i64> {
        let mut found = Wanted { name, value: None };
        self.elevator.scheduler().dump(&mut found);
        found.value
    }

    /// The scheduler's queues, by who made them.
    pub fn queues(&self) -> Vec<QueueDump> {
        let mut queues = Queues(vec![]);
        self.elevator.scheduler().dump(&mut queues);
        queues.0.sort_by_key(|queue| (queue.name.ioc, queue.name.sync));
        queues.0
    }
}

struct Wanted {
    name: &'static str,
    value: Option<i64>,
}

impl Dump for Wanted {
    fn number(&mut self, name: &'static str, value: i64) {
        if name == self.name {
            self.value = Some(value);
        }
    }
}

struct Queues(Vec<QueueDump>);

impl Dump for Queues {
    fn number(&mut self, _: &'static str, _: i64) {}

    fn queue(&mut self, queue: &QueueDump) {
        self.0.push(*queue);
    }
}
