//! Putting a request into its queue, and taking it out again. With a request, a queue becomes busy:
//! it may be raised, and it may take the device from the queue in service (`preempt.rs`).

use crate::arena::{IocId, RequestId};
use crate::bfq::Bfq;
use crate::bfq::queue_id::{QueueId, queue_of};
use crate::bfq::raising::EligibleAs;
use crate::bfq::wf2q::Service;
use crate::io_context::IoClass;
use crate::parts::sort_list::SortList;
use crate::parts::waiting::Next;
use crate::request::SectorCount;
use crate::scheduler::Cx;
use crate::time::Nanos;
use crate::trace::{BudgetEnd, Event, QueueEvent, Trace};

/// A queue that is busy again within so many times `slice_idle` resumes with the rest of its
/// budget.
const IN_TIME_IDLES: u64 = 3;
/// A single request shorter than this does not end idling for its queue: it may grow.
const SMALL: SectorCount = SectorCount(32);

impl<T: Trace> Bfq<T> {
    /// Inserts a request into its queue, or into the queue of others that work on the same part of
    /// the device.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn insert_request(&mut self, cx: &mut Cx, rq: RequestId) {
        let request = &cx.requests[rq];
        let (ioc, sector) = (request.ioc, request.sector);
        let mut queue = queue_of(&cx.requests, rq);
        if let Some(target) = self.cooperator(cx, queue, sector, ioc) {
            self.move_request(cx, rq, target);
            queue = target;
        }
        self.learn(cx, queue, rq, ioc);
        self.add_request(cx, queue, rq);
        self.end_idling(cx, queue, rq);
    }

    /// Learns from a request of `ioc` that is about to be added to `queue`: its I/O pattern, and
    /// whether it has a short think time. For a while after a split that is not judged.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn learn(&mut self, cx: &Cx, queue: QueueId, rq: RequestId, ioc: IocId) {
        let now = cx.jiffies();
        let slice_idle = self.tunables.slice_idle();
        let state = &mut self.queues[queue];
        if state.in_flight == 0 && !state.busy {
            state.io_pattern.request_made(cx.now, slice_idle);
        }
        if state.synchrony.is_sync()
            && slice_idle > Nanos::ZERO
            && now > state.split_at + self.times.raise_min_idle
            && self.wf2q.class_of(queue) != IoClass::Idle
        {
            let is_alive = cx.contexts.alive(ioc);
            if let Some(is_short) = state.io_pattern.update_think_time(slice_idle, is_alive) {
                self.think_time_changed(cx, queue, is_short);
            }
        }
        let state = &mut self.queues[queue];
        state.seekiness.observe(cx.requests[rq].extent(), cx.device.rotational);
        if state.seekiness.only_seeks() && state.raising().is_raised() {
            self.stop_soft_rt_of_seeky(cx, queue);
        }
    }

    /// The think time of the queue is short now, or not any more: what injection was measured to
    /// cost may be void.
    #[cold]
    #[inline(never)]
    fn think_time_changed(&mut self, cx: &Cx, queue: QueueId, is_short: bool) {
        let gap = self.times.think_change_gap;
        let injection = &mut self.queues[queue].injection;
        if injection.is_void_after_think_time_change(is_short, gap, cx.jiffies()) {
            self.reset_injection(cx, queue);
        }
    }

    /// Puts a request into its queue, which is busy from now on.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn add_request(&mut self, cx: &mut Cx, queue: QueueId, rq: RequestId) {
        let request = &cx.requests[rq];
        let synchrony = request.synchrony();
        let deadline = cx.now + self.tunables.order.fifo_expire(synchrony);
        let was_raised = self.is_raised(queue);
        // This depends on whether the queue was empty, so it comes before the insertion.
        if self.queues[queue].synchrony.is_sync() {
            if self.contexts[request.ioc].requests_bound <= 1 {
                self.look_for_waker(cx, queue);
                self.probe_first_request(cx, queue);
            }
            self.queues[queue].update_io_bound(cx.now);
        }
        let order = self.seek_order(self.head);
        let state = &mut self.queues[queue];
        state.waiting.insert(&mut cx.requests, rq, deadline);
        let next = state.waiting.prefer(&cx.requests, order, rq);
        let was_busy = state.busy;
        self.queued += 1;
        if next == Next::Changed {
            self.index_position(cx, queue);
        }
        let mut interactive = false;
        if was_busy {
            if self.tunables.low_latency() && !was_raised && !synchrony.is_sync() {
                self.raise_starved_async(cx, queue);
            }
            if next == Next::Changed {
                self.update_budget(cx, queue);
            }
        } else {
            interactive = self.become_busy(cx, queue, rq) == EligibleAs::Interactive;
        }
        if self.tunables.low_latency() {
            let is_raised = self.is_raised(queue);
            if !was_raised || !is_raised || interactive {
                self.queues[queue].restart_raising(cx.jiffies());
            }
        }
    }

    /// Makes `rq` the queue's next request if it is the better one.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn prefer(&mut self, cx: &Cx, queue: QueueId, rq: RequestId) -> Next {
        let order = self.seek_order(self.head);
        self.queues[queue].waiting.prefer(&cx.requests, order, rq)
    }

    /// A queue without requests has one now and becomes busy. Returns as what it was eligible to be
    /// raised.
    #[cold]
    #[inline(never)]
    fn become_busy(&mut self, cx: &Cx, queue: QueueId, rq: RequestId) -> EligibleAs {
        let now = cx.jiffies();
        let eligibility = self.raising_eligibility(cx, queue, cx.requests[rq].ioc);
        let state = &self.queues[queue];
        let patience = Nanos::new(self.tunables.slice_idle().as_nanos() * IN_TIME_IDLES);
        let in_time = cx.now <= state.io_pattern.last_end() + patience;
        let kind = self.set_activation_budget(cx, queue, in_time);
        let state = &self.queues[queue];
        if !state.fresh && state.was_idle_for(self.times.burst_memory, now) {
            self.burst.remove(queue);
            self.queues[queue].in_large_burst = false;
        }
        self.queues[queue].fresh = false;
        if self.tunables.low_latency() {
            self.raise_on_arrival(cx, queue, eligibility);
        }
        let state = &mut self.queues[queue];
        state.busy_since = now;
        state.served_since_busy = 0;
        state.soft_rt.due = false;
        self.add_busy(cx, queue);
        self.maybe_preempt(cx, queue, kind);
        eligibility.eligible_as
    }

    /// The queue is busy from now on.
    #[cold]
    #[inline(never)]
    fn add_busy(&mut self, cx: &Cx, queue: QueueId) {
        self.activate(cx, queue);
        let state = &mut self.queues[queue];
        state.busy = true;
        let (name, in_flight) = (state.name(), state.in_flight);
        self.trace.event(cx.now, Event::Queue(QueueEvent::Busy { queue: name }));
        self.busy.add(self.wf2q.class_of(queue), self.queues[queue].raising());
        if in_flight == 0 {
            self.wf2q.count_weight(queue);
        }
        self.queues.note_woken(queue);
    }

    /// A request arrives while the device may idle for its queue. A single small request leaves the
    /// timer running where idling boosts the throughput: the next dispatch finds the request
    /// anyway, and it may grow until then.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn end_idling(&mut self, cx: &Cx, queue: QueueId, rq: RequestId) {
        let state = &self.queues[queue];
        if self.in_service != Some(queue) || !state.idling {
            return;
        }
        let small = state.queued() == 1 && cx.requests[rq].sectors < SMALL;
        let late = state.is_past_deadline(cx.jiffies());
        if small && !late && self.idling_boosts_throughput(cx, queue) {
            return;
        }
        self.stop_idle_timer(queue);
        if late {
            self.expire(cx, queue, BudgetEnd::Timeout);
        }
    }

    /// Removes a waiting request from its queue. If it was the next one, the request after it is.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn remove_request(&mut self, cx: &mut Cx, queue: QueueId, rq: RequestId) {
        let mut next = self.queues[queue].next();
        let was_next = next == Some(rq);
        if was_next {
            next = self.next_after(cx, queue, rq);
        }
        self.queues[queue].waiting.remove(&mut cx.requests, rq, next);
        if was_next {
            self.update_budget(cx, queue);
        }
        self.note_removal(cx, queue);
    }

    /// One request less waits in the queue, which may be empty now.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn note_removal(&mut self, cx: &Cx, queue: QueueId) {
        self.queued -= 1;
        let state = &self.queues[queue];
        if !state.is_empty() {
            self.index_position(cx, queue);
            return;
        }
        if state.busy && self.in_service != Some(queue) {
            self.remove_busy(cx, queue, Service::GoesOn);
            self.wf2q.set_budget(queue, SectorCount(0));
            self.wf2q.reset_service(queue);
        }
        self.unindex_position(queue);
    }

    /// The request has grown at its start. It keeps its place in the sort list, unless it now
    /// starts before the request in front of it.
    pub(super) fn grown_at_front(&mut self, cx: &mut Cx, rq: RequestId) {
        let queue = queue_of(&cx.requests, rq);
        self.queues[queue].waiting.set_start_in_place(&mut cx.requests, rq);
        self.follow_position(cx, queue);
        let before = SortList::before(&cx.requests, rq);
        if before.is_some_and(|before| cx.requests[rq].sector < cx.requests[before].sector) {
            self.queues[queue].waiting.reposition(&mut cx.requests, rq);
            if self.prefer(cx, queue, rq) == Next::Changed {
                self.update_budget(cx, queue);
                self.index_position(cx, queue);
            }
        }
    }

    /// `rq` has absorbed `absorbed`, which may be of another queue and may not have been inserted.
    pub(super) fn absorb(&mut self, cx: &mut Cx, rq: RequestId, absorbed: RequestId) {
        let queue = queue_of(&cx.requests, rq);
        let other = queue_of(&cx.requests, absorbed);
        if !cx.requests[absorbed].is_queued() {
            return self.unbind_request(cx, absorbed);
        }
        if queue == other {
            // The budget stays as it is, even if this was the next request.
            self.queues[queue].waiting.absorb(&mut cx.requests, rq, absorbed);
            self.note_removal(cx, queue);
        } else {
            self.remove_request(cx, other, absorbed);
        }
        self.unbind_request(cx, absorbed);
    }
}
