//! What devices differ in whose times have a law: when a command ends. In all else they are alike.

use paternoster::{Instant, Sector};

use crate::{Command, Completion, Model, Room, Spent};

/// Serves commands. Whatever does is a [`Model`].
pub(crate) trait Serves {
    /// What it has room for.
    fn room(&self) -> Room;

    /// Takes a command.
    fn take(&mut self, now: Instant, command: Command);

    /// When something happens next.
    fn next(&self) -> Option<Instant>;

    /// Lets happen what is due by `now`. Returns the tag of a command that has ended.
    fn ended(&mut self, now: Instant) -> Option<u32>;
}

impl<S: Serves> Model for S {
    fn depth(&self) -> u32 {
        self.room().depth
    }

    fn end(&self) -> Sector {
        self.room().end
    }

    fn rotational(&self) -> bool {
        false
    }

    fn submit(&mut self, now: Instant, command: Command) {
        self.take(now, command);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.next()
    }

    /// Where the time of a command went is not told apart.
    fn poll(&mut self, now: Instant) -> Option<Completion> {
        self.ended(now).map(|tag| Completion { tag, spent: Spent::default() })
    }
}
