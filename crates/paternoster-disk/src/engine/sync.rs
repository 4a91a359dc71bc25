//! Flushes and FUA: one sync of a volume at a time, shared by all that wait for it.
//!
//! ```text
//!   FLUSH    whole volume ──▶ waiting ──sync begins──▶ running ──sync ends──▶ done
//!   FUA write  its range  ──▶    ▲                        │
//!          who comes meanwhile ──┘                        └─ fails: this and every later
//!                                                            one gets EIO
//! ```
//!
//! Who arrives while a sync runs waits for the next one: what completed after that sync began may
//! not be covered by it. A sync covers the bytes from the first to the last that anybody waits
//! for: beside a neighbour that writes much, a FUA write does not wait for the neighbour's pages.
//! After a failed sync nobody knows what the medium holds (the system may have dropped what it
//! could not write, and reports that once, in whatever range it was), so no later one may call it
//! durable.

use std::ops::Range;

use paternoster::Instant;

/// Counts of a volume's syncs, which `stat` reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SyncStats {
    /// Syncs that have succeeded.
    pub succeeded: u64,
    /// Whether one failed: every flush and FUA command gets EIO from then on.
    pub failed: bool,
}

/// The syncs of one volume; `W` is who waits for one.
#[derive(Debug)]
pub(super) struct Syncs<W> {
    waiting: Vec<W>,
    /// What those in `waiting` wait for.
    wanted: SyncRange,
    running: Option<RunningSync<W>>,
    stats: SyncStats,
}

/// The sync in flight.
#[derive(Debug)]
pub(super) struct RunningSync<W> {
    /// When it began.
    pub(super) began: Instant,
    /// Who waits for it; at least one.
    pub(super) waiters: Vec<W>,
}

/// How a sync has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SyncEnd {
    /// What it covers is durable.
    Durable,
    /// Nobody knows what of that is lost.
    Failed,
    /// The device could not be asked, or did not answer: a later one may succeed.
    NotAsked,
}

/// The part of a volume that a sync makes durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SyncRange {
    /// The whole volume.
    Whole,
    /// These bytes of it.
    Bytes(Range<u64>),
}

impl SyncRange {
    const NOTHING: Self = Self::Bytes(0..0);

    /// The bytes from the first to the last of both.
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Bytes(a), b) if a.is_empty() => b,
            (Self::Bytes(a), Self::Bytes(b)) => Self::Bytes(a.start.min(b.start)..a.end.max(b.end)),
            (Self::Whole, _) | (_, Self::Whole) => Self::Whole,
        }
    }
}

impl<W> Syncs<W> {
    pub(super) fn new() -> Self {
        Self {
            waiting: Vec::new(),
            wanted: SyncRange::NOTHING,
            running: None,
            stats: SyncStats::default(),
        }
    }

    pub(super) fn stats(&self) -> SyncStats {
        self.stats
    }

    /// Returns whether nothing may be called durable any more.
    pub(super) fn failed(&self) -> bool {
        self.stats.failed
    }

    /// Returns whether one is waited for, and none runs.
    pub(super) fn wants_to_begin(&self) -> bool {
        !self.waiting.is_empty() && self.running.is_none()
    }

    /// `who` waits for a sync of `range` that has not begun yet.
    pub(super) fn wait(&mut self, who: W, range: SyncRange) {
        self.waiting.push(who);
        self.wanted = std::mem::replace(&mut self.wanted, SyncRange::NOTHING).and(range);
    }

    /// Begins a sync if one is waited for and none runs. Returns what it is to cover.
    pub(super) fn begin(&mut self, now: Instant) -> Option<SyncRange> {
        if !self.wants_to_begin() {
            return None;
        }
        let waiters = std::mem::take(&mut self.waiting);
        self.running = Some(RunningSync { began: now, waiters });
        Some(std::mem::replace(&mut self.wanted, SyncRange::NOTHING))
    }

    /// Nothing may be called durable any more.
    pub(super) fn fail(&mut self) {
        self.stats.failed = true;
    }

    /// Gives up the sync that has not begun. Returns who waits for it.
    pub(super) fn give_up_waiting(&mut self) -> Vec<W> {
        self.wanted = SyncRange::NOTHING;
        std::mem::take(&mut self.waiting)
    }

    /// Returns the sync in flight.
    pub(super) fn running(&self) -> Option<&RunningSync<W>> {
        self.running.as_ref()
    }

    /// Ends the running sync. Returns whose wait is over by that.
    pub(super) fn end(&mut self, ended: SyncEnd) -> Vec<W> {
        let RunningSync { mut waiters, .. } = self.running.take().expect("a sync ends once");
        match ended {
            SyncEnd::Durable => self.stats.succeeded += 1,
            SyncEnd::Failed => {
                self.stats.failed = true;
                waiters.append(&mut self.waiting);
            }
            SyncEnd::NotAsked => {}
        }
        waiters
    }
}
