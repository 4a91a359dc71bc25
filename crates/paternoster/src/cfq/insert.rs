//! Puts requests into their queues, and takes them out again.

use crate::arena::RequestId;
use crate::cfq::Cfq;
use crate::cfq::cooperate::set_start;
use crate::cfq::queue_id::{QueueId, queue_of};
use crate::io_context::IoClass;
use crate::parts::waiting::Next;
use crate::scheduler::Cx;
use crate::trace::{CfqEvent, Event, Trace};

/// A request of at most so many bytes does not end idling for its queue, because it may grow.
const PAGE_BYTES: u64 = 4096;

impl<T: Trace> Cfq<T> {
    /// Puts a request into its queue, which preempts the active queue if the request goes first.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn insert_request(&mut self, cx: &mut Cx, rq: RequestId) {
        let queue = queue_of(&cx.requests, rq);
        self.refresh_priority(cx, queue, cx.requests[rq].ioc);
        self.add_request(cx, queue, rq);
        self.learn(cx, queue, rq);
        if self.active == Some(queue) {
            self.end_idling(cx, queue, rq);
        } else if let Some(why) = self.should_preempt(cx, queue, rq) {
            self.preempt(cx, queue, why);
        }
    }

    /// Adds a request to its queue, which is busy from now on.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn add_request(&mut self, cx: &mut Cx, queue: QueueId, rq: RequestId) {
        let request = &cx.requests[rq];
        let has_prio = request.has_prio();
        let deadline = self.now + self.tunables.order.fifo_expire(request.synchrony());
        let state = &mut self.queues[queue];
        state.waiting.insert(&mut cx.requests, rq, deadline);
        state.prio_pending += u32::from(has_prio);
        let group = &mut self.groups[state.group];
        group.queued += 1;
        let served = self.serving.is_served(state.group);
        group.stats.request_queued(self.now, served);
        // The queue is placed first: the idle window is updated by this request only afterwards.
        if !state.is_busy() {
            self.add_busy(cx, queue);
        }
        self.prefer(cx, queue, rq);
        self.queued += 1;
    }

    /// Makes `rq` the queue's next request if it comes before the present one in seek order.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn prefer(&mut self, cx: &Cx, queue: QueueId, rq: RequestId) {
        let order = self.seek_order(self.head);
        if self.queues[queue].waiting.prefer(&cx.requests, order, rq) == Next::Changed {
            self.index_position(cx, queue);
        }
    }

    /// Learns from a request that was just added to `queue`: think times of its I/O context, tree
    /// and group, the I/O pattern of the queue, and whether that earns the queue an idle window.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn learn(&mut self, cx: &Cx, queue: QueueId, rq: RequestId) {
        let request = &cx.requests[rq];
        let (now, slice_idle) = (self.now, self.tunables.slice_idle());
        let state = &mut self.queues[queue];
        let group = &mut self.groups[state.group];
        group.think.request_made(now, self.tunables.group_idle());
        state.seekiness.observe(request.extent(), cx.device.rotational);
        if !state.synchrony.is_sync() {
            return;
        }
        group.trees.tree_mut(state.tree()).think.request_made(now, slice_idle);
        let mut mean = None;
        if let Some(context) = self.contexts.get_mut(request.ioc) {
            context.think.request_made(now, slice_idle);
            mean = context.think.mean();
        }
        if state.class() != IoClass::Idle
            && let Some(open) = state.update_idle_window(cx, request.ioc, slice_idle, mean)
        {
            let event = CfqEvent::IdleWindow { queue: state.name(), on: open };
            self.trace.event(cx.now, Event::Cfq(event));
        }
    }

    /// Ends idling for the active queue, whose request has come. If the request is small and no
    /// other queue is busy, the timer keeps running: Linux holds such a request back for a moment,
    /// so that it can grow by merging, and here only the timer is left of that.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn end_idling(&mut self, cx: &Cx, active: QueueId, rq: RequestId) {
        let slice = &mut self.queues[active].slice;
        if !slice.is_idling() {
            return;
        }
        if cx.requests[rq].sectors.bytes() > PAGE_BYTES || self.busy > 1 {
            slice.stop_idling();
            self.stop_idle_timer();
        } else {
            slice.force_next();
        }
    }

    /// Takes a waiting request out of its queue; the next request is then sought from its sector.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn remove_request(&mut self, cx: &mut Cx, queue: QueueId, rq: RequestId) {
        let request = &cx.requests[rq];
        let (order, has_prio) = (self.seek_order(request.sector), request.has_prio());
        let state = &mut self.queues[queue];
        let next = state.waiting.next_after(&cx.requests, order, rq);
        state.waiting.remove(&mut cx.requests, rq, next);
        set_start(&mut self.positions, cx, state);
        self.uncount_waiting(queue, has_prio);
    }

    /// Counts a request that no longer waits in the queue.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn uncount_waiting(&mut self, queue: QueueId, has_prio: bool) {
        let state = &mut self.queues[queue];
        state.prio_pending -= u32::from(has_prio);
        self.queued -= 1;
        self.groups[state.group].queued -= 1;
        if state.is_empty() {
            self.unindex_position(queue);
        }
    }

    /// Takes out `absorbed`, which was merged into `rq` of the same queue. The queue keeps its
    /// place on the position index.
    pub(super) fn absorb(&mut self, cx: &mut Cx, rq: RequestId, absorbed: RequestId) {
        let queue = queue_of(&cx.requests, rq);
        let has_prio = cx.requests[absorbed].has_prio();
        self.queues[queue].waiting.absorb(&mut cx.requests, rq, absorbed);
        self.follow_position(cx, queue);
        self.uncount_waiting(queue, has_prio);
        self.unbind_request(cx, queue, absorbed);
    }
}
