//! What a completion changes: the estimates, and whether the slice of the active queue goes on.

use crate::arena::RequestId;
use crate::cfq::Cfq;
use crate::cfq::hw_queueing::{Active, Load, NewVerdict};
use crate::cfq::queue_id::{QueueId, queue_of};
use crate::io_context::IoClass;
use crate::request::{Request, Sector};
use crate::scheduler::Cx;
use crate::synchrony::Synchrony;
use crate::trace::{Event, QueueEvent, SliceEnd, Trace};

impl<T: Trace> Cfq<T> {
    /// Handles the completion of a request.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn complete_request(&mut self, cx: &Cx, rq: RequestId) {
        let queue = queue_of(&cx.requests, rq);
        self.observe_queueing(cx);
        self.service_speed.complete(1);
        self.note_end(cx, queue, rq);
        if self.active == Some(queue) {
            self.continue_or_expire(cx, queue, &cx.requests[rq]);
        }
        self.unbind_request(cx, queue, rq);
    }

    /// Counts a request as no longer in flight. Think times begin here. A synchronous request that
    /// completes late slows asynchronous queues down.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn note_end(&mut self, cx: &Cx, queue: QueueId, rq: RequestId) {
        let (now, request) = (self.now, &cx.requests[rq]);
        let state = &mut self.queues[queue];
        self.in_driver -= 1;
        state.in_flight -= 1;
        self.in_flight[state.synchrony] -= 1;
        self.groups[self.isolation.counted_in(rq, state.group)].in_flight -= 1;
        let group = &mut self.groups[state.group];
        group.think.request_ended(now);
        if !request.is_sync() {
            return;
        }
        if let Some(context) = self.contexts.get_mut(request.ioc) {
            context.think.request_ended(now);
        }
        let tree = state.place.map_or_else(|| state.wanted_tree(), |place| place.tree);
        group.trees.tree_mut(tree).think.request_ended(now);
        let late =
            self.kernel.tick_of(request.start) + self.tunables.order.fifo_expire(Synchrony::Sync);
        if late <= now {
            self.last_delayed_sync = now;
        }
    }

    /// Learns whether the device queues requests itself, from how many it holds.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn observe_queueing(&mut self, cx: &Cx) {
        let load = Load { in_flight: self.in_driver, queued: self.queued };
        let verdict = self.hw_queueing.observe_completion(load, || {
            let queue = &self.queues[self.active?];
            let requests = queue.in_flight + queue.waiting.count();
            Some(Active { has_idle_window: queue.idle_window.is_open(), requests })
        });
        if let Some(NewVerdict { before, now }) = verdict {
            self.trace.event(cx.now, Event::Queue(QueueEvent::HardwareQueueing { before, now }));
        }
    }

    /// Decides what follows the completion of a request of the active queue: its slice begins, is
    /// stretched or ends, or the device idles for the next request.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn continue_or_expire(&mut self, cx: &Cx, active: QueueId, request: &Request) {
        if self.queues[active].slice.is_fresh() {
            self.begin_slice(cx, active);
        }
        if self.should_wait_busy(cx, active) {
            self.wait_busy(cx, active);
        }
        let queue = &self.queues[active];
        if queue.slice.is_over(self.now) {
            self.expire_with_residue(cx, SliceEnd::SliceUsed);
        } else if queue.class() == IoClass::Idle {
            self.expire_with_residue(cx, SliceEnd::IdleClass);
        } else if request.is_sync() && queue.is_empty() && self.close_cooperator(active).is_none() {
            if !request.is_noidle() {
                self.serving.ask_for_idling();
            }
            self.arm_idle_timer(cx, active);
        }
    }

    /// Notes that the device has taken a request that ends at `end`.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn activate_request(&mut self, end: Sector) {
        self.in_driver += 1;
        self.head = end;
    }

    /// Notes that the device could not take a request, which is requeued.
    pub(super) fn deactivate_request(&mut self) {
        self.in_driver -= 1;
    }
}
