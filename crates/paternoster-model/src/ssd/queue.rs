//! The drive's own queue: which of the commands that wait it takes next.
//!
//! ```text
//!   waiting   r1  s4  r2  s5         s continues what was taken before, r does not
//!   taken     s4  s5  …              and r1 once it has waited for so long
//! ```
//!
//! A drive that works on a few commands at a time and favours those that go on where others end
//! moves the most; a random reader beside sequential ones then waits as long as the queue allows.

use std::collections::VecDeque;

use paternoster::{Instant, Nanos};

use super::streams::Streams;
use crate::Command;

/// How the queue works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueParameters {
    /// Commands that the drive works on at once; the others wait.
    pub active: u32,
    /// A command that has waited so long goes before all others.
    pub longest_wait: Nanos,
}

/// The commands that wait, and how many the drive works on.
#[derive(Debug)]
pub(super) struct Queue {
    parameters: QueueParameters,
    active: u32,
    /// In the order in which they came.
    waiting: VecDeque<(Instant, Command)>,
}

impl Queue {
    pub(super) fn new(parameters: QueueParameters) -> Self {
        Self { parameters, active: 0, waiting: VecDeque::new() }
    }

    /// A command has come.
    pub(super) fn add(&mut self, now: Instant, command: Command) {
        self.waiting.push_back((now, command));
    }

    /// The drive has done a command.
    pub(super) fn done(&mut self) {
        self.active -= 1;
    }

    /// Whether the drive has no command.
    pub(super) fn is_idle(&self) -> bool {
        self.active == 0 && self.waiting.is_empty()
    }

    /// Takes the command on which the drive works next, if it works on one more.
    pub(super) fn take(&mut self, now: Instant, streams: &Streams) -> Option<Command> {
        let (oldest, _) = self.waiting.front()?;
        if self.active >= self.parameters.active {
            return None;
        }
        let is_late = now.saturating_since(*oldest) >= self.parameters.longest_wait;
        let index = if is_late || self.waiting.len() == 1 {
            0
        } else {
            self.waiting.iter().position(|(_, command)| streams.is_next(command)).unwrap_or(0)
        };
        self.active += 1;
        self.waiting.remove(index).map(|(_, command)| command)
    }
}

#[cfg(test)]
mod tests {
    use paternoster::{Sector, SectorCount};

    use super::*;
    use crate::{Chance, Op};

    fn read(tag: u32, sector: u64) -> Command {
        let sectors = SectorCount(8);
        let (sector, chance) = (Sector(sector), Chance::default());
        Command { tag, op: Op::Read, durable: false, sector, sectors, chance }
    }

    fn at(us: u64) -> Instant {
        Instant::from_nanos(us * 1000)
    }

    #[test]
    fn sequential_commands_go_first_until_another_has_waited_for_too_long() {
        let parameters = QueueParameters { active: 1, longest_wait: Nanos::from_micros(100) };
        let mut queue = Queue::new(parameters);
        let mut streams = Streams::new(4);
        streams.note(&read(0, 0));
        queue.add(at(0), read(1, 5000));
        queue.add(at(10), read(2, 8));
        assert_eq!(queue.take(at(10), &streams), Some(read(2, 8)), "it goes on at sector 8");
        streams.note(&read(2, 8));
        assert_eq!(queue.take(at(20), &streams), None, "one at a time");
        queue.done();
        queue.add(at(90), read(3, 16));
        assert_eq!(queue.take(at(100), &streams), Some(read(1, 5000)), "it has waited for 100 us");
        queue.done();
        assert!(!queue.is_idle());
        assert_eq!(queue.take(at(100), &streams), Some(read(3, 16)));
        queue.done();
        assert!(queue.is_idle());
    }
}
