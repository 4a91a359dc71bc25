//! Queues that wait for each other: a queue whose requests come right after completions of another
//! is *woken* by it. While the woken one is waited for, its waker may send.

use crate::arena::List;
use crate::bfq::Bfq;
use crate::bfq::queue::{ByWaker, QueueId};
use crate::scheduler::Cx;
use crate::time::{Instant, Nanos};
use crate::trace::{Event, Trace};

/// So soon after a completion a request is taken to be its consequence.
const SOON: Nanos = Nanos::from_millis(4);
/// So often that must be seen …
const DETECTIONS: u32 = 3;
/// … within so many times `slice_idle`.
const WINDOW_IDLES: u64 = 128;

/// Who wakes a queue, and who may turn out to do so.
#[derive(Debug)]
pub(super) struct WakerSearch {
    pub(super) waker: Option<QueueId>,
    /// By name only: it may be gone.
    tentative: Option<QueueId>,
    detections: u32,
    /// When the tentative one was first seen.
    since: Instant,
}

impl WakerSearch {
    pub(super) fn new(now: Instant) -> Self {
        Self { waker: None, tentative: None, detections: 0, since: now }
    }
}

impl<T: Trace> Bfq<T> {
    /// The only request of its user in flight arrives for `queue`: whose completion it follows.
    pub(super) fn look_for_waker(&mut self, cx: &Cx<'_>, queue: QueueId) {
        let Some(last) = self.last_completed.filter(|&last| last != queue) else { return };
        let state = &mut self.queues[queue];
        if state.habits.think_briefly || cx.now.wrapping_since(self.last_completion) >= SOON {
            return;
        }
        let window = self.tunables.slice_idle().as_nanos() * WINDOW_IDLES;
        let search = &mut state.waker;
        let outdated = cx.now > search.since + Nanos::new(window);
        if search.tentative != Some(last) || outdated {
            search.tentative = Some(last);
            search.detections = 1;
            search.since = cx.now;
        } else {
            search.detections += 1;
        }
        if search.detections == DETECTIONS {
            search.tentative = None;
            self.set_waker(queue, last);
            let (queue, waker) = (self.queues[queue].name(), self.queues[last].name());
            self.trace.event(cx.now, Event::WakerFound { queue, waker });
        }
    }

    /// Has `waker` wake `queue` from now on.
    pub(super) fn set_waker(&mut self, queue: QueueId, waker: QueueId) {
        self.leave_waker(queue);
        self.queues[queue].waker.waker = Some(waker);
        let mut woken = std::mem::take(&mut self.queues[waker].woken);
        woken.push_front(&mut self.queues, queue);
        self.queues[waker].woken = woken;
    }

    /// `queue` takes over the waker of another.
    pub(super) fn inherit_waker(&mut self, queue: QueueId, waker: QueueId) {
        self.queues[queue].waker.tentative = None;
        self.set_waker(queue, waker);
    }

    /// The queue has become busy: of those that its waker wakes it is the one most likely due.
    pub(super) fn note_woken(&mut self, queue: QueueId) {
        if let Some(waker) = self.queues[queue].waker.waker
            && self.queues[waker].woken.first() != Some(queue)
        {
            self.set_waker(queue, waker);
        }
    }

    /// The queues that `waker` wakes.
    pub(super) fn woken_by(&self, waker: QueueId) -> impl Iterator<Item = QueueId> {
        let next = |&queue: &QueueId| List::<_, ByWaker>::after(&self.queues, queue);
        std::iter::successors(self.queues[waker].woken.first(), next)
    }

    fn leave_waker(&mut self, queue: QueueId) {
        let Some(waker) = self.queues[queue].waker.waker.take() else { return };
        let mut woken = std::mem::take(&mut self.queues[waker].woken);
        woken.remove(&mut self.queues, queue);
        self.queues[waker].woken = woken;
    }

    /// The queue goes: it wakes nobody, and nobody wakes it.
    pub(super) fn stop_waking(&mut self, queue: QueueId) {
        self.leave_waker(queue);
        let mut woken: List<_, _> = std::mem::take(&mut self.queues[queue].woken);
        while let Some(other) = woken.pop_front(&mut self.queues) {
            self.queues[other].waker.waker = None;
        }
    }
}
