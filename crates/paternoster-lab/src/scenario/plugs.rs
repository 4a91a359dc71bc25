//! The plugs of the tasks that have one. A task submits all of its requests of one moment; then it
//! sleeps, and what is left in its plug is handed over.

use paternoster::{Batch, Bio, FlushReason, HandOver, Instant, Plug, PlugLimits, PlugRules};

use super::Task;

/// The batches that a plug has handed over and that have not entered yet.
#[derive(Default)]
struct Left(Vec<Batch>);

impl HandOver<()> for Left {
    fn hand_over(&mut self, (): (), batch: Batch) {
        self.0.push(batch);
    }
}

/// A plug each task; none where it has none.
pub(super) struct Plugs(Vec<Option<Plug<(), Left>>>);

impl Plugs {
    pub(super) fn new(tasks: &[Task]) -> Self {
        let plug =
            |task: &Task| task.plug.then(|| Plug::new(PlugLimits::default(), Left::default()));
        Self(tasks.iter().map(plug).collect())
    }

    /// Returns whether the task has a plug.
    pub(super) fn has(&self, task: usize) -> bool {
        self.0[task].is_some()
    }

    /// Puts the bio into the task's plug. Returns the batches that leave it; all that it holds
    /// where the task goes to sleep then.
    pub(super) fn submit(
        &mut self,
        now: Instant,
        task: usize,
        bio: Bio,
        rules: &PlugRules,
        sleeps: bool,
    ) -> Vec<Batch> {
        let plug = self.0[task].as_mut().expect("it has a plug");
        plug.submit(now, (), bio, rules);
        if sleeps {
            plug.flush(now, FlushReason::Wait);
        }
        std::mem::take(&mut plug.receiver().0)
    }
}
