//! Which queue wakes which. A queue has at most one waker, and a list of the queues that it wakes;
//! the one that most likely has a request next is first. CFQ has no counterpart.

use crate::arena::List;
use crate::bfq::Bfq;
use crate::bfq::queue::Queues;
use crate::bfq::queue_id::QueueId;
use crate::bfq::waker::ByWaker;
use crate::scheduler::Cx;
use crate::trace::{BfqEvent, Event, Trace};

impl<T: Trace> Bfq<T> {
    /// A request arrives for `queue`, the only one that its user has. It follows a completion of
    /// another queue, which may turn out to be the waker, unless `queue` has a short think time.
    pub(super) fn look_for_waker(&mut self, cx: &Cx, queue: QueueId) {
        if !self.finds_wakers {
            return;
        }
        let Some(last) = self.last_completion.cause_of(queue, cx.now) else { return };
        let state = &mut self.queues[queue];
        if state.io_pattern.has_short_think_time() {
            return;
        }
        if let Some(waker) = state.waker_search.observe(cx.now, last, self.tunables.slice_idle()) {
            self.queues.set_waker(queue, waker);
            let (queue, waker) = (self.queues[queue].name(), self.queues[waker].name());
            self.trace.event(cx.now, Event::Bfq(BfqEvent::WakerFound { queue, waker }));
        }
    }
}

impl Queues {
    /// Has `waker` wake `queue` from now on, as the first of those that it wakes.
    pub(super) fn set_waker(&mut self, queue: QueueId, waker: QueueId) {
        self.leave_waker(queue);
        self[queue].waker = Some(waker);
        let mut woken = std::mem::take(&mut self[waker].woken);
        woken.push_front(self, queue);
        self[waker].woken = woken;
    }

    /// Has the waker of another queue wake `queue` as well.
    pub(super) fn inherit_waker(&mut self, queue: QueueId, waker: QueueId) {
        self[queue].waker_search.restart();
        self.set_waker(queue, waker);
    }

    /// The queue has become busy: of those that its waker wakes it is the one most likely due.
    pub(super) fn note_woken(&mut self, queue: QueueId) {
        if let Some(waker) = self[queue].waker
            && self[waker].woken.first() != Some(queue)
        {
            self.set_waker(queue, waker);
        }
    }

    /// The queues that `waker` wakes.
    pub(super) fn woken_by(&self, waker: QueueId) -> impl Iterator<Item = QueueId> {
        let next = |&queue: &QueueId| List::<_, ByWaker>::after(self, queue);
        std::iter::successors(self[waker].woken.first(), next)
    }

    /// The queue is freed: it wakes no queue any more, and no queue wakes it.
    pub(super) fn stop_waking(&mut self, queue: QueueId) {
        self.leave_waker(queue);
        let mut woken: List<_, _> = std::mem::take(&mut self[queue].woken);
        while let Some(other) = woken.pop_front(self) {
            self[other].waker = None;
        }
    }

    fn leave_waker(&mut self, queue: QueueId) {
        let Some(waker) = self[queue].waker.take() else { return };
        let mut woken = std::mem::take(&mut self[waker].woken);
        woken.remove(self, queue);
        self[waker].woken = woken;
    }
}
