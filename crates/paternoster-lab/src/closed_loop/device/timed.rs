//! A device that knows as it takes a command when it ends.

use paternoster::{Instant, Sector};

use super::ends::Ends;
use super::{DEPTH, END, completion};
use crate::model::{Command, Completion, Model};

/// Times commands as they come.
pub(super) trait Times {
    /// When a command ends that comes now.
    fn end_of(&mut self, now: Instant, command: &Command) -> Instant;
}

/// A device by its times.
#[derive(Debug)]
pub(super) struct Timed<T> {
    pub(super) times: T,
    ends: Ends,
}

impl<T: Times> Timed<T> {
    pub(super) fn new(times: T) -> Self {
        Self { times, ends: Ends::default() }
    }
}

impl<T: Times> Model for Timed<T> {
    fn depth(&self) -> u32 {
        DEPTH
    }

    fn end(&self) -> Sector {
        END
    }

    fn rotational(&self) -> bool {
        false
    }

    fn submit(&mut self, now: Instant, command: Command) {
        let end = self.times.end_of(now, &command);
        self.ends.push(end, command.tag);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.ends.next()
    }

    fn poll(&mut self, now: Instant) -> Option<Completion> {
        self.ends.pop(now).map(|(_, tag)| completion(tag))
    }
}
