//! What the devices of this folder differ in: when a command ends. In all else they are alike.

use paternoster::{Instant, Sector};

use crate::model::{Command, Completion, Model, Spent};

/// Commands that a device takes at once: more than any scheduler here should give it.
pub(super) const DEPTH: u32 = 1024;
/// The sector behind the last one: so many that requests do not merge by chance.
const END: Sector = Sector(1 << 40);

/// Serves commands. Whatever does is a [`Model`].
pub(super) trait Serves {
    /// Takes a command.
    fn take(&mut self, now: Instant, command: Command);

    /// When something happens next.
    fn next(&self) -> Option<Instant>;

    /// Lets happen what is due by `now`. Returns the tag of a command that has ended.
    fn ended(&mut self, now: Instant) -> Option<u32>;
}

impl<S: Serves> Model for S {
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
