//! Whose sync begins next: a few volumes sync at once, in the order in which they asked.
//!
//! ```text
//!   c asks ─▶│ wanting: c, d      │     │ syncing: a, b   │
//!   d asks ─▶│ each volume once   │ ──▶ │ at most so many │ ──▶ over; who waits anew asks again
//! ```
//!
//! Without a bound, a thousand volumes that flush every second would fill the device with syncs,
//! which no scheduler orders.

use std::collections::VecDeque;

/// The volumes that want to sync, and how many do.
#[derive(Debug)]
pub(super) struct SyncTurns<V> {
    /// In the order in which they asked.
    wanting: VecDeque<V>,
    running: usize,
    at_once: usize,
}

impl<V> SyncTurns<V> {
    /// At most so many sync at once.
    pub(super) fn new(at_once: usize) -> Self {
        Self { wanting: VecDeque::new(), running: 0, at_once }
    }

    /// At most so many sync at once from now on.
    pub(super) fn set_at_once(&mut self, volumes: usize) {
        self.at_once = volumes;
    }

    /// That volume wants to sync, and does not want or do so already.
    pub(super) fn ask(&mut self, volume: V) {
        self.wanting.push_back(volume);
    }

    /// The next volume begins to sync, if one may.
    pub(super) fn begin(&mut self) -> Option<V> {
        if self.running >= self.at_once {
            return None;
        }
        let volume = self.wanting.pop_front()?;
        self.running += 1;
        Some(volume)
    }

    /// No volume wants to sync any more; those that do go on.
    pub(super) fn forget_wanting(&mut self) {
        self.wanting.clear();
    }

    /// A volume syncs no more.
    pub(super) fn end(&mut self) {
        self.running -= 1;
    }

    /// Returns whether no volume syncs or wants to.
    pub(super) fn is_idle(&self) -> bool {
        self.running == 0 && self.wanting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn volumes_sync_in_the_order_in_which_they_asked_and_so_many_at_once() {
        let mut turns = SyncTurns::new(2);
        assert!(turns.is_idle());
        for volume in ["a", "b", "c"] {
            turns.ask(volume);
        }
        assert_eq!([turns.begin(), turns.begin(), turns.begin()], [Some("a"), Some("b"), None]);
        turns.end();
        // Who has just synced comes behind who has not yet.
        turns.ask("a");
        assert_eq!([turns.begin(), turns.begin()], [Some("c"), None]);
        turns.end();
        assert_eq!([turns.begin(), turns.begin()], [Some("a"), None]);
        assert!(!turns.is_idle());
        turns.end();
        turns.end();
        assert!(turns.is_idle());
    }
}
