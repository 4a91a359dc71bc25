//! Dispatches a request of the active queue, if the gate lets it pass.
//!
//! The gate bounds what a queue may have in flight, and keeps synchronous and asynchronous requests
//! apart. BFQ has no gate: there the budget bounds a queue (`bfq/dispatch.rs`).

use crate::arena::RequestId;
use crate::cfq::Cfq;
use crate::cfq::queue::Queue;
use crate::cfq::queue_id::QueueId;
use crate::io_context::{IoClass, IoPrio};
use crate::scheduler::Cx;
use crate::synchrony::{BySynchrony, Synchrony};
use crate::time::Instant;
use crate::trace::{ElevatorEvent, Event, SliceEnd, Trace, WaitReason};

impl<T: Trace> Cfq<T> {
    /// Dispatches the next request, if there is one for the device now.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn dispatch_request(&mut self, cx: &mut Cx) -> Option<RequestId> {
        let queue = self.select(cx)?;
        let overdue = self.take_overdue(cx, queue);
        if let Err(why) = self.gate(cx, &self.queues[queue]) {
            self.trace.event(cx.now, Event::Elevator(ElevatorEvent::Waiting { why }));
            return None;
        }
        let next = overdue.or(self.queues[queue].next());
        let rq = next.expect("a queue is selected for its requests");
        self.dispatch_from(cx, queue, rq);
        if self.active_context.is_none() {
            self.active_context = Some(cx.requests[rq].ioc);
        }
        if let Some(why) = self.should_yield(&self.queues[queue]) {
            // Linux also sets the slice to its end here; the next activation does so anyway.
            self.expire(cx, why);
        }
        Some(rq)
    }

    /// Returns whether the active queue may have one more request in flight, or why not.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn gate(&self, cx: &Cx, queue: &Queue) -> Result<(), WaitReason> {
        if queue.slice.is_forced() {
            return Ok(());
        }
        let BySynchrony([async_in_flight, sync_in_flight]) = self.in_flight;
        if async_in_flight > 0 && self.should_idle(cx, queue) {
            return Err(WaitReason::GateAsyncDrains);
        }
        if !queue.synchrony.is_sync() && sync_in_flight > 0 {
            return Err(WaitReason::GateSyncDrains);
        }
        if queue.in_flight < self.depth_allowed(queue) {
            Ok(())
        } else {
            Err(WaitReason::GateDepth)
        }
    }

    /// Returns how many requests the active queue may have in flight.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn depth_allowed(&self, queue: &Queue) -> u32 {
        let quantum = self.tunables.quantum();
        let [busy, busy_sync] = self.competing(queue);
        let is_idle_class = queue.class() == IoClass::Idle;
        let mut limit = if is_idle_class { 1 } else { (quantum / 2).max(1) };
        if queue.in_flight >= limit {
            let only_sync = queue.synchrony.is_sync() && busy_sync == 1;
            if is_idle_class || (busy > 1 && !only_sync && self.ends_soon(queue)) {
                return limit;
            }
            limit = if busy == 1 || only_sync { u32::MAX } else { quantum };
        }
        if queue.synchrony.is_sync() || !self.tunables.low_latency() {
            return limit;
        }
        limit.min(self.async_depth(queue))
    }

    /// Returns the busy queues that compete with the active one for places in the device, itself
    /// included, and how many of them are synchronous. Where a group pays for requests that the
    /// device did not complete in its turn, those of other groups do not: in its turn it may use
    /// the whole device.
    fn competing(&self, queue: &Queue) -> [u32; 2] {
        if self.tunables.charge_whole_turn() && self.iops_mode() {
            [self.groups[queue.group].entities, self.sync_queues_of(queue.group)]
        } else {
            [self.busy, self.busy_sync]
        }
    }

    /// Returns how many requests an asynchronous queue may have in flight: one more for each
    /// synchronous slice since a synchronous request was last late, and one if it has none.
    #[allow(clippy::cast_possible_truncation)] // as in Linux
    fn async_depth(&self, queue: &Queue) -> u32 {
        let since = self.now.saturating_since(self.last_delayed_sync).as_nanos();
        let depth = (since / self.tunables.slice(Synchrony::Sync).as_nanos()) as u32;
        if depth == 0 && queue.in_flight == 0 { 1 } else { depth }
    }

    /// Returns whether the slice is likely to end before the requests in flight complete.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn ends_soon(&self, queue: &Queue) -> bool {
        let idles = self.tunables.slice_idle().as_nanos().wrapping_mul(queue.in_flight.into());
        let slice = &queue.slice;
        let done = Instant::from_nanos(self.now.as_nanos().wrapping_add(idles));
        slice.is_fresh() || slice.ends_before(done)
    }

    /// Takes `rq` out of `queue` and gives it to the device.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn dispatch_from(&mut self, cx: &mut Cx, queue: QueueId, rq: RequestId) {
        self.remove_request(cx, queue, rq);
        let request = &cx.requests[rq];
        let state = &mut self.queues[queue];
        state.in_flight += 1;
        state.slice.count_dispatch(request.sectors);
        if state.is_empty() {
            state.slice.run_empty();
        }
        self.in_flight[state.synchrony] += 1;
        self.groups[self.isolation.counted_in(rq, state.group)].in_flight += 1;
        self.activate_request(request.end());
    }

    /// Returns why the slice ends with the request just dispatched, if it does: other queues are
    /// busy, and this one is of the idle class or has dispatched all requests of an asynchronous
    /// slice.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn should_yield(&self, queue: &Queue) -> Option<SliceEnd> {
        if self.busy <= 1 {
            return None;
        }
        if queue.class() == IoClass::Idle {
            return Some(SliceEnd::IdleClass);
        }
        let spent =
            !queue.synchrony.is_sync() && queue.slice.dispatched() >= self.async_requests(queue);
        spent.then_some(SliceEnd::AsyncRequests)
    }

    /// The requests of an asynchronous slice, in 32 bits, which wrap:
    ///
    /// `2 × slice_async_rq × (8 − level)`
    fn async_requests(&self, queue: &Queue) -> u32 {
        let levels = u32::from(IoPrio::LEVELS - queue.io_prio().level());
        2_u32.wrapping_mul(self.tunables.slice_async_rq()).wrapping_mul(levels)
    }
}
