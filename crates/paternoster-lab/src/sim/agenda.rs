//! When tasks are asked next: those of the present moment in the order in which they became due,
//! then the others by time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use paternoster::Instant;

use super::workload::TaskId;

/// The tasks that will be asked without anybody's doing.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    /// Those that are due.
    due: VecDeque<TaskId>,
    /// The others, by time; those of one time in the order in which they were put here.
    later: BinaryHeap<Reverse<(Instant, u64, TaskId)>>,
    sequence: u64,
}

impl Agenda {
    /// The task is asked as soon as others have been that were due before.
    pub(super) fn now(&mut self, task: TaskId) {
        self.due.push_back(task);
    }

    /// The task is asked at that time.
    pub(super) fn at(&mut self, at: Instant, task: TaskId) {
        self.sequence += 1;
        self.later.push(Reverse((at, self.sequence, task)));
    }

    /// When the next task is asked, `now` at the earliest.
    pub(super) fn next_at(&self, now: Instant) -> Option<Instant> {
        if !self.due.is_empty() {
            return Some(now);
        }
        self.later.peek().map(|Reverse((at, ..))| (*at).max(now))
    }

    /// Takes the next task that is due by `now`.
    pub(super) fn pop(&mut self, now: Instant) -> Option<TaskId> {
        if let Some(task) = self.due.pop_front() {
            return Some(task);
        }
        let Reverse((at, _, task)) = *self.later.peek()?;
        (at <= now).then(|| {
            self.later.pop();
            task
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Instant {
        Instant::from_nanos(us * 1000)
    }

    #[test]
    fn due_tasks_come_first_and_others_by_time_in_their_order() {
        let mut agenda = Agenda::default();
        agenda.at(at(30), TaskId(3));
        agenda.at(at(20), TaskId(1));
        agenda.at(at(20), TaskId(2));
        agenda.now(TaskId(0));
        assert_eq!(agenda.next_at(at(10)), Some(at(10)));
        assert_eq!(agenda.pop(at(10)), Some(TaskId(0)));
        assert_eq!(agenda.next_at(at(10)), Some(at(20)));
        assert_eq!(agenda.pop(at(10)), None);
        assert_eq!(agenda.pop(at(20)), Some(TaskId(1)));
        assert_eq!(agenda.pop(at(20)), Some(TaskId(2)));
        assert_eq!(agenda.next_at(at(40)), Some(at(40)), "what is late is due now");
        assert_eq!(agenda.pop(at(40)), Some(TaskId(3)));
        assert_eq!(agenda.next_at(at(40)), None);
    }
}
