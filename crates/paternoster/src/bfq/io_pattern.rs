//! The I/O pattern of a queue: how long its users think, whether they mostly wait for I/O, and
//! whether they seek. By that BFQ decides whether to idle for the queue.
//!
//! ```text
//!   completion ──thinks──▶ request       mean ≤ slice_idle / 2, or not known: short think time
//!   empty and nothing in flight          for 1/5 of the time at most: I/O-bound
//!   last end ──distance──▶ start         > 800 sectors: a seek; > 19 of the last 32: seeky
//! ```
//!
//! CFQ judges seeks by other rules (`cfq/io_pattern.rs`), keeps think times of tasks, trees and
//! groups instead of queues, and does not ask who is I/O-bound.

use crate::parts::seek_history::SeekHistory;
use crate::parts::think_time::ThinkTime;
use crate::request::{Extent, Sector, SectorCount};
use crate::synchrony::Synchrony;
use crate::time::{Instant, Nanos};

/// Farther from the end of the request before is a seek …
const SEEK_FAR: u64 = 8 * 100;
/// … but where the device is not rotational, only for requests shorter than this: 32 KiB.
const SEEK_SMALL: SectorCount = SectorCount(8 * 8);
/// More seeks than this among the last 32 requests make a queue seeky.
const MANY_SEEKS: u32 = 19;
/// A queue is I/O-bound unless it is empty for more than a part of its time: 1 in this many.
const IDLE_PARTS: u64 = 5;
/// The length of the window in which idle time counts; then its older half is dropped.
const WINDOW: Nanos = Nanos::from_millis(200);

/// What is known of a queue's users. Kept for each of them while their queues are merged.
#[derive(Clone, Copy, Debug)]
pub(super) struct IoPattern {
    think: ThinkTime,
    /// The users come back soon, for all that is known.
    has_short_think_time: bool,
    /// The users mostly wait for I/O.
    io_bound: bool,
    window_start: Instant,
    /// Nanoseconds of the window during which the queue was empty with nothing in flight; wraps.
    idle_total: u64,
}

/// A request that arrives for a queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    /// The queue never had a request before.
    pub(super) is_first: bool,
    /// The queue was empty, with nothing in flight.
    pub(super) ends_idleness: bool,
}

impl IoPattern {
    /// Of a queue just made. A synchronous one is taken to have a short think time; one of the idle
    /// class as well, which keeps it for good, since its think time is never judged.
    ///
    /// The last completion is set one nanosecond ahead, as Linux does to say "long ago" by a
    /// difference that wraps. Linux's clock runs on until the first request arrives, so there the
    /// first think time is next to nothing. Here a queue is made and gets its first request at one
    /// instant, so the difference does wrap: the first think time is the longest that counts, and
    /// the first idle time takes a nanosecond from 0. The mean think time is short again from the
    /// fourth request on.
    pub(super) fn new(now: Instant, synchrony: Synchrony) -> Self {
        Self {
            think: ThinkTime::new(now + Nanos::new(1)),
            has_short_think_time: synchrony.is_sync(),
            io_bound: true,
            window_start: now,
            idle_total: 0,
        }
    }

    /// Returns whether the users come back soon, for all that is known.
    #[inline]
    pub(super) fn has_short_think_time(&self) -> bool {
        self.has_short_think_time
    }

    /// Returns whether the users mostly wait for I/O.
    #[inline]
    pub(super) fn is_io_bound(&self) -> bool {
        self.io_bound
    }

    /// The mean think time, once it is known.
    pub(super) fn think_time(&self) -> Option<Nanos> {
        self.think.mean()
    }

    /// When a request of the queue last completed.
    #[inline]
    pub(super) fn last_end(&self) -> Instant {
        self.think.last_end()
    }

    /// A request of the queue has completed: its users begin to think.
    #[inline]
    pub(super) fn request_ended(&mut self, now: Instant) {
        self.think.request_ended(now);
    }

    /// The users make a request after their think time; `slice_idle` is how long the device would
    /// idle for it.
    #[inline]
    pub(super) fn request_made(&mut self, now: Instant, slice_idle: Nanos) {
        self.think.request_made(now, slice_idle);
    }

    /// Judges whether the think time is short: the task is alive, and its mean think time is not
    /// known to exceed half of `slice_idle`. Returns the answer if it has changed.
    #[inline]
    pub(super) fn update_think_time(&mut self, slice_idle: Nanos, is_alive: bool) -> Option<bool> {
        let half = Nanos::new(slice_idle.as_nanos() / 2);
        let is_short = is_alive && !self.think.exceeds(half);
        let before = std::mem::replace(&mut self.has_short_think_time, is_short);
        (before != is_short).then_some(is_short)
    }

    /// Counts how long the queue was idle until `arrival`, and judges whether it is I/O-bound, but
    /// not at its first request.
    #[inline]
    pub(super) fn update_io_bound(&mut self, now: Instant, arrival: Arrival) {
        if arrival.ends_idleness {
            let idle = now.wrapping_since(self.think.last_end());
            self.idle_total = self.idle_total.wrapping_add(idle.as_nanos());
        }
        if arrival.is_first {
            return;
        }
        let window = now.wrapping_since(self.window_start);
        self.io_bound = self.idle_total.wrapping_mul(IDLE_PARTS) <= window.as_nanos();
        if window > WINDOW {
            self.window_start = now.saturating_sub(Nanos::new(window.as_nanos() / 2));
            self.idle_total /= 2;
        }
    }

    /// The users, who mostly wait for I/O, have gone to another queue.
    pub(super) fn clear_io_bound(&mut self) {
        self.io_bound = false;
    }

    /// Users who mostly wait for I/O have come to the queue.
    pub(super) fn set_io_bound(&mut self) {
        self.io_bound = true;
    }
}

/// Which of a queue's last requests were seeks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seekiness {
    history: SeekHistory,
    /// Where the last request ended; 0 before the first.
    last_end: Sector,
}

impl Seekiness {
    /// The seekiness of a new queue, with one seek counted, as in Linux.
    pub(super) fn new() -> Self {
        Self { history: SeekHistory::ONE_SEEK, last_end: Sector(0) }
    }

    /// Learns from a request that arrives.
    #[inline]
    pub(super) fn observe(&mut self, request: Extent, rotational: bool) {
        self.history.push(is_seek(self.last_end, request, rotational));
        self.last_end = request.end();
    }

    /// Returns whether many of the last requests were seeks.
    #[inline]
    pub(super) fn is_seeky(&self) -> bool {
        self.history.seeks() > MANY_SEEKS
    }

    /// Returns whether each of the last requests was a seek.
    #[inline]
    pub(super) fn only_seeks(&self) -> bool {
        self.history.all_seeks()
    }
}

/// Returns whether a request is a seek after one that ended at `last_end`, where 0 stands for no
/// request before.
#[inline]
pub(super) fn is_seek(last_end: Sector, request: Extent, rotational: bool) -> bool {
    last_end != Sector(0)
        && request.start.0.abs_diff(last_end.0) > SEEK_FAR
        && (rotational || request.sectors < SEEK_SMALL)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const IDLE: Nanos = Nanos::from_millis(8);
    const BEGIN: Instant = Instant::START;

    fn at(nanos: u64) -> Instant {
        BEGIN + Nanos::new(nanos)
    }

    fn extent(start: u64, sectors: u32) -> Extent {
        Extent { start: Sector(start), sectors: SectorCount(sectors) }
    }

    /// Thinks for so long before each of 3 requests: as many as it takes until the mean counts.
    fn thinks(nanos: u64) -> IoPattern {
        let mut pattern = IoPattern::new(BEGIN, Synchrony::Sync);
        let mut now = BEGIN;
        for _ in 0..3 {
            pattern.request_ended(now);
            now = now + Nanos::new(nanos);
            pattern.request_made(now, IDLE);
        }
        pattern
    }

    /// Of three equal times t the total is 32 t, 60 t, 84.5 t, and the third mean 84.5 t / 84. It
    /// exceeds half of 8 ms where t > 4 ms × 84 / 84.5 = 3.9763 ms.
    #[test]
    fn think_time_of_half_the_idle_time_is_short() {
        for (nanos, changed) in [(3_976_000, None), (3_977_000, Some(false))] {
            let mut pattern = thinks(nanos);
            assert_eq!(pattern.update_think_time(IDLE, true), changed, "{nanos}");
            assert_eq!(pattern.has_short_think_time(), changed.is_none());
            assert_eq!(pattern.update_think_time(IDLE, true), None, "it has not changed since");
        }
    }

    #[test]
    fn think_time_of_a_task_that_is_gone_is_long() {
        let mut pattern = thinks(1);
        assert_eq!(pattern.update_think_time(IDLE, false), Some(false));
        assert_eq!(pattern.update_think_time(IDLE, true), Some(true));
    }

    #[test]
    fn think_time_is_taken_to_be_short_for_what_is_synchronous() {
        assert!(IoPattern::new(BEGIN, Synchrony::Sync).has_short_think_time());
        assert!(!IoPattern::new(BEGIN, Synchrony::Async).has_short_think_time());
    }

    /// The first of its requests comes as the queue is made, the others right after the completion
    /// before. The first sample wraps and counts for twice 8 ms: means of 16, 7.5, 4.7 and 3.3 ms,
    /// the third of which is the first that counts, and exceeds 4 ms.
    #[test]
    fn first_think_time_wraps_and_makes_the_third_mean_long() {
        let mut pattern = IoPattern::new(BEGIN, Synchrony::Sync);
        let mut answers = vec![];
        for request in 0..4 {
            let now = at(request * MS);
            pattern.request_made(now, IDLE);
            pattern.update_think_time(IDLE, true);
            answers.push(pattern.has_short_think_time());
            pattern.request_ended(at((request + 1) * MS));
        }
        assert_eq!(answers, [true, true, false, true]);
    }

    /// 20 of 100 ms idle are a fifth and not too much; a nanosecond more is. The first idle time,
    /// from the moment ahead, takes one nanosecond away.
    #[test]
    fn queue_that_is_idle_for_more_than_a_fifth_is_not_io_bound() {
        for (idle, io_bound) in [(20 * MS + 1, true), (20 * MS + 2, false)] {
            let mut pattern = IoPattern::new(BEGIN, Synchrony::Sync);
            pattern.update_io_bound(BEGIN, Arrival { is_first: true, ends_idleness: true });
            pattern.request_ended(at(100 * MS - idle));
            let arrival = Arrival { is_first: false, ends_idleness: true };
            pattern.update_io_bound(at(100 * MS), arrival);
            assert_eq!(pattern.is_io_bound(), io_bound, "{idle}");
        }
    }

    #[test]
    fn time_with_requests_in_the_queue_is_not_idle() {
        let mut pattern = IoPattern::new(BEGIN, Synchrony::Sync);
        pattern.request_ended(BEGIN);
        pattern.update_io_bound(at(100 * MS), Arrival { is_first: false, ends_idleness: false });
        assert!(pattern.is_io_bound());
    }

    /// The queue is made and gets its first request at once: the idle time is −1 ns, next to 2⁶⁴.
    /// The second request comes while the first is still there and finds it so.
    #[test]
    fn first_idle_time_wraps_below_zero() {
        let mut pattern = IoPattern::new(BEGIN, Synchrony::Sync);
        pattern.update_io_bound(BEGIN, Arrival { is_first: true, ends_idleness: true });
        assert!(pattern.is_io_bound(), "the first request is not judged");
        pattern.update_io_bound(at(1), Arrival { is_first: false, ends_idleness: false });
        // −5 ns, as a number of 64 bits.
        assert!(!pattern.is_io_bound());
    }

    /// In a window of 200 ms 40 are idle: a fifth. One nanosecond later the window is halved, so
    /// that 20 of 100 ms remain. 25 ms further, all idle, 45 of 125 are too much.
    #[test]
    fn older_half_of_a_window_of_more_than_200_ms_is_dropped() {
        let idle = |pattern: &mut IoPattern, from: u64, to: u64| {
            pattern.request_ended(at(from));
            let arrival = Arrival { is_first: false, ends_idleness: true };
            pattern.update_io_bound(at(to), arrival);
            (pattern.is_io_bound(), pattern.window_start, pattern.idle_total)
        };
        let mut pattern = IoPattern::new(BEGIN, Synchrony::Sync);
        assert_eq!(idle(&mut pattern, 160 * MS, 200 * MS), (true, BEGIN, 40 * MS));
        let half = (true, at(100 * MS + 1), 20 * MS);
        assert_eq!(idle(&mut pattern, 200 * MS + 1, 200 * MS + 1), half);
        assert_eq!(idle(&mut pattern, 200 * MS + 1, 225 * MS + 1), (false, half.1, 45 * MS));
    }

    #[test]
    fn users_that_wait_for_io_take_that_along() {
        let mut pattern = IoPattern::new(BEGIN, Synchrony::Sync);
        assert!(pattern.is_io_bound());
        pattern.clear_io_bound();
        assert!(!pattern.is_io_bound());
        pattern.set_io_bound();
        assert!(pattern.is_io_bound());
    }

    /// 801 sectors away is a seek, on either side; 800 is none. Where the device is not rotational
    /// 64 sectors are none, 63 are.
    #[test]
    fn seek_is_far_and_on_a_device_without_a_head_also_small() {
        let from = Sector(10_000);
        for (start, far) in [(10_800, false), (10_801, true), (9200, false), (9199, true)] {
            assert_eq!(is_seek(from, extent(start, 63), false), far, "{start}");
            assert_eq!(is_seek(from, extent(start, 64), true), far, "{start}");
            assert!(!is_seek(from, extent(start, 64), false), "{start} is large");
        }
        assert!(!is_seek(Sector(0), extent(10_000, 8), true), "none was before");
    }

    /// A new queue has one seek. Its first request is none, the next ones are: with 18 of them 19
    /// of the last 32 are seeks, with 19 of them 20, which are many.
    #[test]
    fn queue_with_twenty_seeks_among_the_last_32_is_seeky() {
        for (seeks, seeky) in [(18, false), (19, true)] {
            let mut seekiness = Seekiness::new();
            for request in 0..=seeks {
                seekiness.observe(extent(10_000 * (request + 1), 8), true);
            }
            assert_eq!(seekiness.is_seeky(), seeky, "{seeks}");
        }
    }

    /// Each request is 1000 sectors long and starts 800 behind the end of the one before.
    #[test]
    fn distance_is_that_from_the_end_of_the_request_before() {
        let mut seekiness = Seekiness::new();
        for request in 0..32 {
            seekiness.observe(extent(10_000 + 1800 * request, 1000), true);
        }
        assert!(!seekiness.is_seeky());
    }

    /// The first request of a queue is no seek: 32 more have to come.
    #[test]
    fn queue_of_32_seeks_has_only_seeks() {
        for (seeks, only) in [(31, false), (32, true)] {
            let mut seekiness = Seekiness::new();
            for request in 0..=seeks {
                seekiness.observe(extent(10_000 * (request + 1), 8), true);
            }
            assert_eq!(seekiness.only_seeks(), only, "{seeks}");
        }
    }
}
