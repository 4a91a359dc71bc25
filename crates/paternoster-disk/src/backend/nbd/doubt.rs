//! What was answered and not yet flushed, and whether it is in doubt.
//!
//! ```text
//!   write answered ──▶ to be flushed ──a FLUSH that was sent after that is answered──▶ durable
//!                          │ a connection is lost
//!                          ▼
//!                      in doubt, for good: the server's cache may have gone with it
//! ```
//!
//! What is in doubt no later FLUSH may call durable. Where nothing was to be flushed, nothing is in
//! doubt.

/// What becomes of what was answered and not flushed when a connection has been lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AfterReconnect {
    /// It is in doubt: every FLUSH and FUA command gets an error until it is opened again.
    #[default]
    Doubt,
    /// The far machine and its cache survive what loses a connection.
    Trust,
}

impl AfterReconnect {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Doubt, Self::Trust];

    /// Returns its name in configurations.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Doubt => "doubt",
            Self::Trust => "trust",
        }
    }
}

/// Counts of writes, trims and zeroes that were answered.
#[derive(Debug, Default)]
pub(super) struct Doubt {
    after_reconnect: AfterReconnect,
    answered: u64,
    /// Those of them that are durable.
    durable: u64,
    is_raised: bool,
    /// Whether a FLUSH has succeeded: before, what others have written may not be durable.
    has_flushed: bool,
}

impl Doubt {
    /// Of a server that flushes or not: where it does not, nothing was promised.
    pub(super) fn new(after_reconnect: AfterReconnect, flushes: bool) -> Self {
        let after_reconnect = if flushes { after_reconnect } else { AfterReconnect::Trust };
        Self { after_reconnect, ..Self::default() }
    }

    /// Something was answered that a flush is to make durable.
    pub(super) fn handle_answer(&mut self) {
        self.answered += 1;
    }

    /// What a FLUSH covers that is sent now, for [`Self::handle_flush`].
    pub(super) fn covered(&self) -> u64 {
        self.answered
    }

    /// A FLUSH that covers so much has succeeded.
    pub(super) fn handle_flush(&mut self, covered: u64) {
        self.durable = self.durable.max(covered);
        self.has_flushed = true;
    }

    /// A connection was lost. Returns whether something is in doubt by that which was not.
    pub(super) fn handle_loss(&mut self) -> bool {
        let is_new = self.after_reconnect == AfterReconnect::Doubt
            && self.answered > self.durable
            && !self.is_raised;
        self.is_raised |= is_new;
        is_new
    }

    /// Whether everything that was ever answered is durable: also what an earlier connection of
    /// this volume was answered, by this process or another one.
    pub(super) fn is_durable(&self) -> bool {
        self.has_flushed && self.answered <= self.durable && !self.is_raised
    }

    /// A FLUSH has failed: what it covers may be lost.
    pub(super) fn raise(&mut self) {
        self.is_raised = true;
    }

    pub(super) fn is_raised(&self) -> bool {
        self.is_raised
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_answered_and_not_flushed_is_in_doubt_for_good() {
        let mut doubt = Doubt::new(AfterReconnect::Doubt, true);
        assert!(!doubt.handle_loss(), "nothing was written");
        doubt.handle_answer();
        let covered = doubt.covered();
        doubt.handle_flush(covered);
        assert!(!doubt.handle_loss(), "all of it is durable");
        doubt.handle_answer();
        assert!(doubt.handle_loss() && doubt.is_raised());
        assert!(!doubt.handle_loss(), "it is told once");
        let covered = doubt.covered();
        doubt.handle_flush(covered);
        assert!(doubt.is_raised(), "no later flush tells what was lost");
    }

    #[test]
    fn nothing_is_durable_before_the_first_flush() {
        let mut doubt = Doubt::new(AfterReconnect::Doubt, true);
        assert!(!doubt.is_durable(), "another process may have written");
        doubt.handle_flush(doubt.covered());
        assert!(doubt.is_durable());
        doubt.handle_answer();
        assert!(!doubt.is_durable());
        doubt.handle_flush(doubt.covered());
        assert!(doubt.is_durable());
        doubt.raise();
        assert!(!doubt.is_durable());
    }

    #[test]
    fn flush_covers_what_was_answered_before_it_was_sent() {
        let mut doubt = Doubt::new(AfterReconnect::Doubt, true);
        doubt.handle_answer();
        let covered = doubt.covered();
        doubt.handle_answer();
        doubt.handle_flush(covered);
        assert!(doubt.handle_loss());
    }

    #[test]
    fn nothing_is_in_doubt_where_the_far_cache_is_trusted_or_nothing_was_promised() {
        for (after, flushes) in [(AfterReconnect::Trust, true), (AfterReconnect::Doubt, false)] {
            let mut doubt = Doubt::new(after, flushes);
            doubt.handle_answer();
            assert!(!doubt.handle_loss() && !doubt.is_raised());
        }
    }
}
