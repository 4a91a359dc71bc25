//! Flushes: one sync at a time, shared by all that wait for it.
//!
//! ```text
//!   flush ──▶ waiting ──sync begins──▶ running ──sync ends──▶ done
//!                ▲                        │
//!     a flush that comes meanwhile        └─ fails: this and every later one gets EIO
//! ```
//!
//! A flush that arrives while a sync runs waits for the next one: what completed after that sync
//! began may not be covered by it. After a failed sync nobody knows what the medium holds (the
//! system may have dropped what it could not write), so no later one may call it durable.

use rustix::io::Errno;

/// What `stat` tells of a disk's syncs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SyncStats {
    /// Syncs that have begun.
    pub begun: u64,
    /// Whether one failed: every flush and FUA command gets EIO from then on.
    pub failed: bool,
}

/// The flushes of one disk; `W` is who waits for one.
#[derive(Debug)]
pub(super) struct Syncs<W> {
    waiting: Vec<W>,
    running: Option<Vec<W>>,
    stats: SyncStats,
}

impl<W> Syncs<W> {
    pub(super) fn new() -> Self {
        Self { waiting: Vec::new(), running: None, stats: SyncStats::default() }
    }

    pub(super) fn stats(&self) -> SyncStats {
        self.stats
    }

    /// Whether nothing may be called durable any more.
    pub(super) fn failed(&self) -> bool {
        self.stats.failed
    }

    /// Whether nobody waits and none runs.
    pub(super) fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.running.is_none()
    }

    /// `who` waits for a sync that has not begun yet.
    pub(super) fn wait(&mut self, who: W) {
        self.waiting.push(who);
    }

    /// Begins a sync if somebody waits and none runs.
    pub(super) fn begin(&mut self) -> bool {
        if self.running.is_some() || self.waiting.is_empty() {
            return false;
        }
        self.running = Some(std::mem::take(&mut self.waiting));
        self.stats.begun += 1;
        true
    }

    /// The running sync has ended: who it was for.
    pub(super) fn end(&mut self, result: Result<(), Errno>) -> Vec<W> {
        let mut ended = self.running.take().expect("a sync ends once");
        if result.is_err() {
            self.fail();
            ended.append(&mut self.waiting);
        }
        ended
    }

    /// Something that was to be durable is not.
    pub(super) fn fail(&mut self) {
        self.stats.failed = true;
    }
}
