//! How turns went for a group: the counts of Linux's debug `blkio` files that only a scheduler can
//! keep which gives groups turns. They have no influence on what it decides.
//!
//! ```text
//!   first request queued   a queue activated        turn ends, nothing queued    next request
//!          │◀── group_wait_time ──▶│◀──── time ────▶│◀──── empty_time ────▶│
//! ```

use crate::time::{Instant, Nanos};

/// How turns went for one group.
#[derive(Clone, Copy, Debug, Default)]
pub struct TurnStats {
    /// Time of slices that was used (`time`).
    pub time: Nanos,
    /// Time of turns beyond that (`unaccounted_time`).
    pub unaccounted_time: Nanos,
    /// From the first request that waits while another group is served to a turn
    /// (`group_wait_time`).
    pub group_wait_time: Nanos,
    /// Time in which the device was kept free for the group (`idle_time`).
    pub idle_time: Nanos,
    /// From the end of a turn with nothing waiting to the next request (`empty_time`).
    pub empty_time: Nanos,
    /// How often the group had no queue any more that wanted turns (`dequeue`).
    pub dequeue: u64,
    /// Requests that waited, summed over the beginnings of turns.
    queue_size_sum: u64,
    /// Turns begun.
    turns: u64,
    waits_since: Option<Instant>,
    idles_since: Option<Instant>,
    empty_since: Option<Instant>,
}

impl TurnStats {
    /// Requests that waited, averaged over the beginnings of turns (`avg_queue_size`).
    pub fn avg_queue_size(&self) -> u64 {
        self.queue_size_sum.checked_div(self.turns).unwrap_or(0)
    }

    /// A request waits from now on; `served` says whether the group is the one being served.
    #[inline]
    pub(crate) fn request_queued(&mut self, now: Instant, served: bool) {
        add_since(&mut self.empty_time, self.empty_since.take(), now);
        if !served {
            self.waits_since.get_or_insert(now);
        }
    }

    /// A turn of one of its queues begins, with `queued` requests of the group waiting.
    #[inline]
    pub(crate) fn activated(&mut self, now: Instant, queued: u32) {
        self.turns += 1;
        self.queue_size_sum += u64::from(queued);
        add_since(&mut self.group_wait_time, self.waits_since.take(), now);
    }

    /// A turn of one of its queues ends, with `queued` requests of the group waiting.
    #[inline]
    pub(crate) fn charged(&mut self, now: Instant, used: Nanos, unaccounted: Nanos, queued: u32) {
        self.time += used;
        self.unaccounted_time += unaccounted;
        if queued == 0 {
            self.empty_since.get_or_insert(now);
        }
    }

    /// The device is kept free for the group from now on.
    #[inline]
    pub(crate) fn idle_begins(&mut self, now: Instant) {
        self.idles_since.get_or_insert(now);
    }

    /// It is not any more.
    #[inline]
    pub(crate) fn idle_ends(&mut self, now: Instant) {
        add_since(&mut self.idle_time, self.idles_since.take(), now);
    }

    /// Adds what another group has gathered.
    pub(crate) fn add(&mut self, other: &Self) {
        self.time += other.time;
        self.unaccounted_time += other.unaccounted_time;
        self.group_wait_time += other.group_wait_time;
        self.idle_time += other.idle_time;
        self.empty_time += other.empty_time;
        self.dequeue += other.dequeue;
        self.queue_size_sum += other.queue_size_sum;
        self.turns += other.turns;
    }
}

fn add_since(total: &mut Nanos, since: Option<Instant>, now: Instant) {
    if let Some(since) = since {
        *total += now.saturating_since(since);
    }
}
