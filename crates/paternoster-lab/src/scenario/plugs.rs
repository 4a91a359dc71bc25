//! The plugs of the tasks that have one. A task submits all of its requests of one moment; then it
//! sleeps, and what is left in its plug is handed over.

use paternoster::{Batch, Bio, FlushReason, Instant, Plug, PlugLimits, PlugRules};

use std::collections::BTreeMap;

use super::Task;
use crate::sim::LeftPlug;

/// The plugs, and when more comes for them.
pub(super) struct Plugs {
    /// A plug each task; none where it has none.
    of_tasks: Vec<Option<Plug<(), LeftPlug>>>,
    /// How many requests of a task are to arrive at that time, where it has a plug.
    arrivals: BTreeMap<(usize, Instant), u32>,
}

impl Plugs {
    pub(super) fn new(tasks: &[Task]) -> Self {
        let plug =
            |task: &Task| task.plug.then(|| Plug::new(PlugLimits::default(), LeftPlug::default()));
        Self { of_tasks: tasks.iter().map(plug).collect(), arrivals: BTreeMap::new() }
    }

    /// Notes that a request of the task is to arrive then.
    pub(super) fn expect(&mut self, task: usize, at: Instant) {
        if self.has(task) {
            *self.arrivals.entry((task, at)).or_default() += 1;
        }
    }

    /// Returns whether the task has a plug.
    pub(super) fn has(&self, task: usize) -> bool {
        self.of_tasks[task].is_some()
    }

    /// Puts the bio that arrives into the task's plug. Returns the batches that leave it: all that
    /// it holds where no more arrives now, as the task goes to sleep.
    pub(super) fn submit(
        &mut self,
        now: Instant,
        task: usize,
        bio: Bio,
        rules: &PlugRules,
    ) -> Vec<Batch> {
        let left = self.arrivals.get_mut(&(task, now)).expect("it was expected");
        *left -= 1;
        let sleeps = *left == 0;
        let plug = self.of_tasks[task].as_mut().expect("it has a plug");
        plug.submit(now, (), bio, rules);
        if sleeps {
            self.arrivals.remove(&(task, now));
            plug.flush(now, FlushReason::Wait);
        }
        std::mem::take(&mut plug.receiver().0)
    }
}
