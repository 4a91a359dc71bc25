//! A device that takes all that is in it in one turn, and ends it together: memory that a thread
//! copies, where a turn costs something of its own.
//!
//! ```text
//!   a ──▶ ├ turn: a ┤├──── turn: b, c, d ────┤├ turn: e ┤
//!   b, c, d came here      e came here           a turn takes fixed + each × its commands
//! ```

use std::collections::VecDeque;

use paternoster::{Instant, Nanos};

use crate::parameter_file::{Keys, ParameterError, micros};
use crate::{Command, Completion, Model};

/// How long turns take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchParameters {
    /// A turn without commands.
    pub fixed: Nanos,
    /// Further time for each command.
    pub each: Nanos,
}

impl BatchParameters {
    /// Reads the keys of a file of this kind.
    pub(crate) fn read(keys: &mut Keys<'_>) -> Result<Self, ParameterError> {
        let fixed = micros(keys.number("turn_us", 0.0..=1e7)?);
        Ok(Self { fixed, each: micros(keys.number("command_us", 0.0..=1e7)?) })
    }
}

/// A device that serves in turns.
#[derive(Debug)]
pub(crate) struct Batch {
    parameters: BatchParameters,
    /// Commands that the next turn takes.
    gathered: VecDeque<u32>,
    /// Those of this turn that have not been told of; none while there is no turn.
    turn: VecDeque<u32>,
    /// When this turn ends, or where there is none, when the next begins.
    at: Instant,
}

impl Batch {
    pub(crate) fn new(parameters: BatchParameters) -> Self {
        let (gathered, turn) = (VecDeque::new(), VecDeque::new());
        Self { parameters, gathered, turn, at: Instant::START }
    }

    fn begin_turn(&mut self, now: Instant) {
        let BatchParameters { fixed, each } = self.parameters;
        self.turn.append(&mut self.gathered);
        let commands = Nanos::new(each.as_nanos() * self.turn.len() as u64);
        self.at = now + fixed + commands;
    }
}

impl Model for Batch {
    fn submit(&mut self, now: Instant, command: Command) {
        if self.turn.is_empty() && self.gathered.is_empty() {
            self.at = now;
        }
        self.gathered.push_back(command.tag);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let is_idle = self.turn.is_empty() && self.gathered.is_empty();
        (!is_idle).then_some(self.at)
    }

    /// A turn begins only when the last one has been told of whole, and what came because of that
    /// is in the device.
    fn poll(&mut self, now: Instant) -> Option<Completion> {
        if !self.turn.is_empty() && self.at <= now {
            return self.turn.pop_front().map(Completion::of);
        }
        if self.turn.is_empty() && !self.gathered.is_empty() {
            self.begin_turn(now);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{at, ends, read};

    fn ended(batch: &mut Batch, now: Instant) -> Option<u32> {
        batch.poll(now).map(|done| done.tag)
    }

    #[test]
    fn turn_takes_all_that_came_during_the_last() {
        let parameters =
            BatchParameters { fixed: Nanos::from_micros(10), each: Nanos::from_micros(2) };
        let mut batch = Batch::new(parameters);
        batch.submit(at(0), read(0));
        assert_eq!(ended(&mut batch, at(0)), None, "the turn begins");
        for tag in 1..4 {
            batch.submit(at(5), read(tag));
        }
        assert_eq!(ends(&mut batch), [(0, 12), (1, 28), (2, 28), (3, 28)]);
    }

    #[test]
    fn what_comes_while_a_turn_is_told_of_is_in_the_next() {
        let parameters = BatchParameters { fixed: Nanos::from_micros(10), each: Nanos::ZERO };
        let mut batch = Batch::new(parameters);
        batch.submit(at(0), read(0));
        batch.submit(at(0), read(1));
        assert_eq!(ended(&mut batch, at(0)), None);
        assert_eq!(ended(&mut batch, at(10)), Some(0));
        batch.submit(at(10), read(2));
        assert_eq!(ended(&mut batch, at(10)), Some(1));
        batch.submit(at(10), read(3));
        assert_eq!(ended(&mut batch, at(10)), None);
        assert_eq!(ends(&mut batch), [(2, 20), (3, 20)]);
    }
}
