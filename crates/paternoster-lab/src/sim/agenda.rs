//! What is due without anybody's doing: what is due now in the order in which it became due, then
//! the rest by time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use paternoster::{Instant, IocId};

use super::call::CallId;
use super::workload::TaskId;

/// What is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Due {
    /// A task is asked what it does next.
    Task(TaskId),
    /// A task has waited long enough.
    Alarm {
        /// The task.
        task: TaskId,
        /// Until when it waits; it may be another time since.
        until: Instant,
    },
    /// An I/O comes to the scheduler.
    Arrival {
        /// The user data of its bios.
        user_data: u64,
    },
    /// The I/Os of a call come to the scheduler.
    Call {
        /// The call.
        call: CallId,
    },
    /// An I/O context ends.
    Exit {
        /// The context.
        ioc: IocId,
    },
    /// A core has done its own part of a job, and asks for the lock.
    Lock {
        /// The core.
        core: usize,
    },
    /// A core has done a job.
    JobDone {
        /// The core.
        core: usize,
    },
}

/// What is due, by time.
#[derive(Debug)]
pub(crate) struct Agenda<D> {
    /// What is due now.
    due: VecDeque<D>,
    /// The rest, by time; what is due at one time in the order in which it was put here.
    later: BinaryHeap<Reverse<(Instant, u64, D)>>,
    sequence: u64,
}

impl<D: Ord> Default for Agenda<D> {
    fn default() -> Self {
        Self { due: VecDeque::new(), later: BinaryHeap::new(), sequence: 0 }
    }
}

impl<D: Copy + Ord> Agenda<D> {
    /// It is due as soon as what was due before is done.
    pub(crate) fn now(&mut self, due: D) {
        self.due.push_back(due);
    }

    /// It is due at that time.
    pub(crate) fn at(&mut self, at: Instant, due: D) {
        self.sequence += 1;
        self.later.push(Reverse((at, self.sequence, due)));
    }

    /// When the next thing is due, `now` at the earliest.
    pub(crate) fn next_at(&self, now: Instant) -> Option<Instant> {
        if !self.due.is_empty() {
            return Some(now);
        }
        self.later.peek().map(|Reverse((at, ..))| (*at).max(now))
    }

    /// Takes all that is due by `now`: what was due before, then the rest by time. Of what is due
    /// at one time tasks go by their numbers.
    pub(crate) fn take_due(&mut self, now: Instant) -> Vec<D> {
        let mut later = Vec::new();
        while let Some(&Reverse((at, _, due))) = self.later.peek().filter(|it| it.0.0 <= now) {
            self.later.pop();
            later.push((at, due));
        }
        later.sort_unstable();
        self.due.drain(..).chain(later.into_iter().map(|(_, due)| due)).collect()
    }

    /// Takes the next thing that is due by `now`.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<D> {
        if let Some(due) = self.due.pop_front() {
            return Some(due);
        }
        let Reverse((at, _, due)) = *self.later.peek()?;
        (at <= now).then(|| {
            self.later.pop();
            due
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Instant {
        Instant::from_nanos(us * 1000)
    }

    fn task(number: u32) -> Due {
        Due::Task(TaskId(number))
    }

    #[test]
    fn what_is_due_comes_first_and_the_rest_by_time_in_its_order() {
        let mut agenda = Agenda::default();
        agenda.at(at(30), task(3));
        agenda.at(at(20), task(2));
        agenda.at(at(20), task(1));
        agenda.now(task(0));
        assert_eq!(agenda.next_at(at(10)), Some(at(10)));
        assert_eq!(agenda.pop(at(10)), Some(task(0)));
        assert_eq!(agenda.next_at(at(10)), Some(at(20)));
        assert_eq!(agenda.pop(at(10)), None);
        assert_eq!(agenda.pop(at(20)), Some(task(2)));
        assert_eq!(agenda.pop(at(20)), Some(task(1)));
        assert_eq!(agenda.next_at(at(40)), Some(at(40)), "what is late is due now");
        assert_eq!(agenda.pop(at(40)), Some(task(3)));
        assert_eq!(agenda.next_at(at(40)), None);
    }
}
