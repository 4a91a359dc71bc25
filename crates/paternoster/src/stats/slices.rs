//! Counts of the slices of a group: those of Linux's debug `blkio` files that only a scheduler with
//! slices can keep. They have no influence on what it decides.
//!
//! ```text
//!   first request queued   a queue activated        slice ends, nothing queued   next request
//!          │◀── group_wait_time ──▶│◀──── time ────▶│◀──── empty_time ────▶│
//! ```

use crate::time::{Instant, Nanos};

/// The counts of the slices of one group.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct SliceStats {
    /// The time of slices that was used (`time`).
    pub time: Nanos,
    /// The time for which queues were active beyond that (`unaccounted_time`).
    pub unaccounted_time: Nanos,
    /// From the first request that waits while another group is served to the next slice
    /// (`group_wait_time`).
    pub group_wait_time: Nanos,
    /// The time for which the device idled for the group (`idle_time`).
    pub idle_time: Nanos,
    /// From the end of a slice with nothing waiting to the next request (`empty_time`).
    pub empty_time: Nanos,
    /// How often the last busy queue of the group ceased to be busy (`dequeue`).
    pub dequeue: u64,
    /// Requests that waited, summed over the beginnings of slices.
    queue_size_sum: u64,
    /// Slices begun.
    slices: u64,
    waits_since: Option<Instant>,
    idles_since: Option<Instant>,
    empty_since: Option<Instant>,
}

impl SliceStats {
    /// Requests that waited, averaged over the beginnings of slices (`avg_queue_size`).
    pub fn avg_queue_size(&self) -> u64 {
        self.queue_size_sum.checked_div(self.slices).unwrap_or(0)
    }

    /// A request waits from now on; `served` says whether its group is being served.
    #[inline]
    pub(crate) fn request_queued(&mut self, now: Instant, served: bool) {
        add_since(&mut self.empty_time, self.empty_since.take(), now);
        if !served {
            self.waits_since.get_or_insert(now);
        }
    }

    /// A slice of one of its queues begins, with `queued` requests of the group waiting.
    #[inline]
    pub(crate) fn activated(&mut self, now: Instant, queued: u32) {
        self.slices += 1;
        self.queue_size_sum += u64::from(queued);
        add_since(&mut self.group_wait_time, self.waits_since.take(), now);
    }

    /// A slice of one of its queues ends, with `queued` requests of the group waiting.
    #[inline]
    pub(crate) fn charged(&mut self, now: Instant, used: Nanos, unaccounted: Nanos, queued: u32) {
        self.time += used;
        self.unaccounted_time += unaccounted;
        if queued == 0 {
            self.empty_since.get_or_insert(now);
        }
    }

    /// The device idles for the group from now on.
    #[inline]
    pub(crate) fn idle_begins(&mut self, now: Instant) {
        self.idles_since.get_or_insert(now);
    }

    /// The device no longer idles for the group.
    #[inline]
    pub(crate) fn idle_ends(&mut self, now: Instant) {
        add_since(&mut self.idle_time, self.idles_since.take(), now);
    }

    /// Adds the counts of another group.
    pub(crate) fn add(&mut self, other: &Self) {
        self.time += other.time;
        self.unaccounted_time += other.unaccounted_time;
        self.group_wait_time += other.group_wait_time;
        self.idle_time += other.idle_time;
        self.empty_time += other.empty_time;
        self.dequeue += other.dequeue;
        self.queue_size_sum += other.queue_size_sum;
        self.slices += other.slices;
    }
}

fn add_since(total: &mut Nanos, since: Option<Instant>, now: Instant) {
    if let Some(since) = since {
        *total += now.saturating_since(since);
    }
}
