//! Wakers. If the requests of a queue arrive right after completions of another queue, the other
//! queue *wakes* it. While the device idles for the woken queue, its waker may be served.
//!
//! ```text
//!   completion of a ──< 4 ms──▶ request of b     seen 3 times within 128 × slice_idle,
//!                                                no completion of another between: a wakes b
//! ```
//!
//! Which queues a waker wakes is kept in lists (`woken.rs`). CFQ injects nothing, and has no
//! counterpart.

use crate::bfq::queue_id::QueueId;
use crate::time::{Instant, Nanos};

/// So soon after a completion a request is taken to be its consequence.
const SOON: Nanos = Nanos::from_millis(4);
/// So often that must be seen …
const DETECTIONS: u32 = 3;
/// … within so many times `slice_idle`.
const WINDOW_IDLES: u64 = 128;

/// The links by which a queue is on the list of those that another wakes.
#[derive(Debug)]
pub(super) enum ByWaker {}

/// The last completion of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct LastCompletion {
    at: Instant,
    /// The queue of the request; none if several users share it, or if it is gone.
    queue: Option<QueueId>,
}

impl LastCompletion {
    /// None so far.
    pub(super) fn never() -> Self {
        Self { at: Instant::from_nanos(0), queue: None }
    }

    /// When it was.
    #[inline]
    pub(super) fn at(&self) -> Instant {
        self.at
    }

    /// The queue is freed.
    #[inline]
    pub(super) fn clear_queue(&mut self, queue: QueueId) {
        if self.queue == Some(queue) {
            self.queue = None;
        }
    }

    /// A request of `queue` has completed. Returns when one did before.
    #[inline]
    pub(super) fn replace(&mut self, now: Instant, queue: Option<QueueId>) -> Instant {
        std::mem::replace(self, Self { at: now, queue }).at
    }

    /// Returns the queue whose completion a request that arrives now for `queue` may be a
    /// consequence of.
    #[inline]
    pub(super) fn cause_of(&self, queue: QueueId, now: Instant) -> Option<QueueId> {
        self.queue.filter(|&last| last != queue && now.wrapping_since(self.at) < SOON)
    }
}

/// The search for the queue that wakes another.
#[derive(Debug)]
pub(super) struct WakerSearch {
    /// The candidate, by name only: it may be gone.
    tentative: Option<QueueId>,
    detections: u32,
    /// When the candidate was first seen.
    since: Instant,
}

impl WakerSearch {
    pub(super) fn new(now: Instant) -> Self {
        Self { tentative: None, detections: 0, since: now }
    }

    /// A request arrives right after a completion of `candidate`. Returns `candidate` as the waker
    /// if that has been seen often enough; then the search starts again.
    pub(super) fn observe(
        &mut self,
        now: Instant,
        candidate: QueueId,
        slice_idle: Nanos,
    ) -> Option<QueueId> {
        let window = Nanos::new(slice_idle.as_nanos() * WINDOW_IDLES);
        let is_outdated = now > self.since + window;
        if self.tentative != Some(candidate) || is_outdated {
            self.tentative = Some(candidate);
            self.detections = 1;
            self.since = now;
        } else {
            self.detections += 1;
        }
        let is_found = self.detections == DETECTIONS;
        if is_found {
            self.tentative = None;
        }
        is_found.then_some(candidate)
    }

    /// The queue takes over the waker of another: what was seen is void.
    pub(super) fn restart(&mut self) {
        self.tentative = None;
    }
}

#[cfg(test)]
mod tests {
    use crate::arena::Arena;

    use super::*;

    const MS: u64 = 1_000_000;
    /// 128 times this are 1.024 s.
    const IDLE: Nanos = Nanos::from_millis(8);

    fn at(nanos: u64) -> Instant {
        Instant::START + Nanos::new(nanos)
    }

    fn queues() -> [QueueId; 2] {
        let mut queues = Arena::<QueueId, ()>::default();
        [queues.insert(()), queues.insert(())]
    }

    /// The candidates that are seen at those times, by number, and when one is found.
    fn found(seen: &[(u64, usize)]) -> Vec<u64> {
        let queues = queues();
        let mut search = WakerSearch::new(at(0));
        let is_found = |&&(nanos, queue): &&(u64, usize)| {
            let waker = search.observe(at(nanos), queues[queue], IDLE);
            assert!(waker.is_none_or(|waker| waker == queues[queue]), "it is the candidate");
            waker.is_some()
        };
        seen.iter().filter(is_found).map(|&(nanos, _)| nanos).collect()
    }

    #[test]
    fn waker_is_found_at_the_third_detection_and_then_again_after_three() {
        let seen = [1, 2, 3, 4, 5, 6, 7].map(|millis| (millis * MS, 0));
        assert_eq!(found(&seen), [3 * MS, 6 * MS]);
    }

    #[test]
    fn another_candidate_restarts_the_search() {
        let seen = [(1, 0), (2, 0), (3, 1), (4, 0), (5, 0), (6, 0)];
        assert_eq!(found(&seen), [6]);
    }

    /// The third detection is 1.024 s after the first, or a nanosecond later: then it is a first.
    #[test]
    fn detections_count_within_128_times_the_idle_time() {
        for (last, expected) in [(1025 * MS, vec![1025 * MS]), (1025 * MS + 1, vec![])] {
            assert_eq!(found(&[(MS, 0), (2 * MS, 0), (last, 0)]), expected, "{last}");
        }
    }

    #[test]
    fn search_restarts_with_an_inherited_waker() {
        let [queue, _] = queues();
        let mut search = WakerSearch::new(at(0));
        assert_eq!([1, 2].map(|nanos| search.observe(at(nanos), queue, IDLE)), [None, None]);
        search.restart();
        assert_eq!(search.observe(at(3), queue, IDLE), None);
    }

    /// Less than 4 ms after it, of another queue that only one user has and that still exists.
    #[test]
    fn request_soon_after_a_completion_of_another_queue_may_be_its_consequence() {
        let [queue, other] = queues();
        let mut last = LastCompletion::never();
        assert_eq!(last.cause_of(queue, at(0)), None);
        assert_eq!(last.replace(at(0), Some(other)), Instant::from_nanos(0));
        assert_eq!(last.cause_of(queue, at(4 * MS - 1)), Some(other));
        assert_eq!(last.cause_of(queue, at(4 * MS)), None);
        assert_eq!(last.cause_of(other, at(1)), None, "its own");
        last.clear_queue(queue);
        assert_eq!(last.cause_of(queue, at(1)), Some(other));
        last.clear_queue(other);
        assert_eq!(last.cause_of(queue, at(1)), None);
        assert_eq!(last.replace(at(5), None), at(0));
        assert_eq!((last.cause_of(queue, at(5)), last.at()), (None, at(5)));
    }
}
