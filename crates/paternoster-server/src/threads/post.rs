//! What one thread sends to another, in order.

use std::collections::VecDeque;

use paternoster_crossing::{Door, Outbox, Sent};

use super::RING;

/// Sends messages to one inbox. Nobody waits: what does not fit into the ring is kept. That is
/// bounded: commands in flight hold their tenants' credit, and what only says how things are is not
/// sent while something is kept.
#[derive(Debug)]
pub(crate) struct Post<T> {
    outbox: Outbox<T>,
    kept: VecDeque<T>,
    /// How often this has woken the other thread.
    woke: u64,
    /// Whether nobody takes anything any more.
    is_gone: bool,
}

impl<T> Post<T> {
    pub(crate) fn new(door: &Door<T>) -> Self {
        Self { outbox: door.enter(RING), kept: VecDeque::new(), woke: 0, is_gone: false }
    }

    /// Sends a message behind those that are kept.
    pub(crate) fn send(&mut self, message: T) {
        self.kept.push_back(message);
        self.send_kept();
    }

    /// Sends what is kept, as much as fits.
    pub(crate) fn send_kept(&mut self) {
        while let Some(message) = self.kept.pop_front() {
            match self.outbox.send(message) {
                Sent::Quietly => {}
                Sent::Woke => self.woke += 1,
                Sent::Full(message) => return self.kept.push_front(message),
                Sent::Gone(_) => {
                    self.is_gone = true;
                    self.kept.clear();
                }
            }
        }
    }

    /// Returns whether something is kept: the thread then looks again soon.
    pub(crate) fn has_kept(&self) -> bool {
        !self.kept.is_empty()
    }

    pub(crate) fn woke(&self) -> u64 {
        self.woke
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.is_gone
    }
}
