//! A device that knows as it takes a command when it ends.

use paternoster::Instant;

use crate::ends::Ends;
use crate::{Command, Completion, Model};

/// Times commands as they come.
pub(crate) trait Times {
    /// When a command ends that comes now.
    fn end_of(&mut self, now: Instant, command: &Command) -> Instant;
}

/// A device by its times.
#[derive(Debug)]
pub(crate) struct Timed<T> {
    pub(crate) times: T,
    /// The tags of the commands in it.
    ends: Ends<u32>,
}

impl<T: Times> Timed<T> {
    pub(crate) fn new(times: T) -> Self {
        Self { times, ends: Ends::default() }
    }
}

impl<T: Times> Model for Timed<T> {
    fn submit(&mut self, now: Instant, command: Command) {
        let end = self.times.end_of(now, &command);
        self.ends.push(end, command.tag);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.ends.next()
    }

    fn poll(&mut self, now: Instant) -> Option<Completion> {
        self.ends.pop(now).map(|(_, tag)| Completion::of(tag))
    }
}
