//! What a disk's thread has looked for before it slept.

use paternoster_disk::{BusyPollStats, Polling};
use serde::{Deserialize, Serialize};

/// Busy polling of the thread of a disk, by `poll` of its configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PollStat {
    /// `auto` or `interrupt`.
    pub mode: String,
    /// How often the thread looked for a moment before it slept, or instead.
    pub looks: u64,
    /// Looks in which something came, and the thread did not sleep.
    pub found: u64,
    /// The time of all looks, in nanoseconds.
    pub looked_ns: u64,
    /// Looks that ended as another thread had the processor.
    pub crowded: u64,
    /// How long the next look takes at most, in nanoseconds; 0 where the thread sleeps at once.
    pub next_ns: u64,
}

impl PollStat {
    pub(crate) fn new(polling: Polling, stats: BusyPollStats) -> Self {
        Self {
            mode: polling.name().to_owned(),
            looks: stats.looks,
            found: stats.found,
            looked_ns: stats.looked.as_nanos(),
            crowded: stats.crowded,
            next_ns: stats.next.as_nanos(),
        }
    }

    pub(super) fn since(&self, before: &Self) -> Self {
        Self {
            mode: self.mode.clone(),
            looks: self.looks.saturating_sub(before.looks),
            found: self.found.saturating_sub(before.found),
            looked_ns: self.looked_ns.saturating_sub(before.looked_ns),
            crowded: self.crowded.saturating_sub(before.crowded),
            next_ns: self.next_ns,
        }
    }
}
