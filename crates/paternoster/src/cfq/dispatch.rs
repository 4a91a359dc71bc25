//! Sending a request of the queue whose turn it is, if the gate lets it.

use crate::arena::RequestId;
use crate::cfq::Cfq;
use crate::cfq::queue::{Queue, QueueId};
use crate::io_context::{IoClass, IoPrio};
use crate::scheduler::Cx;
use crate::trace::{Event, ExpireReason, Trace, WaitReason};

impl<T: Trace> Cfq<T> {
    /// The next request for the device.
    pub(super) fn poll(&mut self, cx: &mut Cx<'_>) -> Option<RequestId> {
        let queue = self.select(cx)?;
        let overdue = self.take_overdue(cx, queue);
        if let Err(why) = self.gate(cx, &self.queues[queue]) {
            self.trace.event(cx.now, Event::Waiting { why });
            return None;
        }
        let rq =
            overdue.or(self.queues[queue].next()).expect("a queue is selected for its requests");
        self.send(cx, queue, rq);
        if self.active_context.is_none() {
            self.active_context = Some(cx.requests[rq].ioc);
        }
        let turn = &mut self.queues[queue].turn;
        turn.sent += 1;
        turn.forced = false;
        if let Some(why) = self.should_yield(&self.queues[queue]) {
            // Linux also sets the slice to its end here; the next activation does so anyway.
            self.expire(cx, why);
        }
        Some(rq)
    }

    /// The queue's oldest request, if it is late: the queue passes the gate with it. It is looked
    /// at once a turn, even if the gate then refuses.
    fn take_overdue(&mut self, cx: &Cx<'_>, queue: QueueId) -> Option<RequestId> {
        let state = &mut self.queues[queue];
        if std::mem::replace(&mut state.turn.fifo_done, true) {
            return None;
        }
        let oldest = state.fifo.first().filter(|&rq| cx.now >= cx.requests[rq].deadline)?;
        state.turn.forced = true;
        let rq = cx.requests[oldest].name();
        self.trace.event(cx.now, Event::Overdue { queue: state.name(), rq });
        Some(oldest)
    }

    /// Whether the active queue may have one more request in the device, or what it waits for.
    fn gate(&self, cx: &Cx<'_>, queue: &Queue) -> Result<(), WaitReason> {
        if queue.turn.forced {
            return Ok(());
        }
        let [async_sent, sync_sent] = self.sent;
        if async_sent > 0 && self.should_idle(cx, queue) {
            return Err(WaitReason::GateAsyncDrains);
        }
        if !queue.sync && sync_sent > 0 {
            return Err(WaitReason::GateSyncDrains);
        }
        if queue.in_flight < self.depth_allowed(cx, queue) {
            Ok(())
        } else {
            Err(WaitReason::GateDepth)
        }
    }

    /// How many requests of the active queue may be in flight.
    fn depth_allowed(&self, cx: &Cx<'_>, queue: &Queue) -> u32 {
        let quantum = self.tunables.quantum();
        let is_idle_class = queue.class() == IoClass::Idle;
        let mut limit = if is_idle_class { 1 } else { (quantum / 2).max(1) };
        if queue.in_flight >= limit {
            let only_sync = queue.sync && self.busy_sync == 1;
            if is_idle_class || (self.busy > 1 && !only_sync && self.ends_soon(cx, queue)) {
                return limit;
            }
            limit = if self.busy == 1 || only_sync { u32::MAX } else { quantum };
        }
        if queue.sync || !self.tunables.low_latency() {
            return limit;
        }
        limit.min(self.async_depth(cx, queue))
    }

    /// One more for each sync slice since a sync request was last late; one at least if none is in
    /// flight.
    #[allow(clippy::cast_possible_truncation)] // as in Linux
    fn async_depth(&self, cx: &Cx<'_>, queue: &Queue) -> u32 {
        let since = cx.now.saturating_since(self.last_delayed_sync).as_nanos();
        let depth = (since / self.tunables.slice(true).as_nanos()) as u32;
        if depth == 0 && queue.in_flight == 0 { 1 } else { depth }
    }

    /// Whether the slice is likely over before the requests in flight are done.
    fn ends_soon(&self, cx: &Cx<'_>, queue: &Queue) -> bool {
        let idles = self.tunables.slice_idle().as_nanos().wrapping_mul(queue.in_flight.into());
        queue.turn.is_fresh() || cx.now.as_nanos().wrapping_add(idles) > queue.turn.end.as_nanos()
    }

    /// Takes `rq` out of its queue for the device.
    fn send(&mut self, cx: &mut Cx<'_>, queue: QueueId, rq: RequestId) {
        let follower = self.follower(cx, rq);
        self.queues[queue].set_next(cx.requests, follower);
        self.take_out(cx, queue, rq);
        let request = &cx.requests[rq];
        let state = &mut self.queues[queue];
        state.in_flight += 1;
        state.turn.sectors += u64::from(request.sectors.0);
        self.sent[usize::from(state.sync)] += 1;
        self.groups[state.group].in_flight += 1;
        self.activate_request(request.end());
    }

    /// Why the turn ends with the request just sent, though there may be more: others wait, and
    /// the queue is of the idle class or has sent its number of async requests.
    fn should_yield(&self, queue: &Queue) -> Option<ExpireReason> {
        if self.busy <= 1 {
            return None;
        }
        if queue.class() == IoClass::Idle {
            return Some(ExpireReason::IdleClass);
        }
        let spent = !queue.sync && queue.turn.sent >= self.async_requests(queue);
        spent.then_some(ExpireReason::AsyncRequests)
    }

    /// Requests of an async turn, in 32 bits, which wrap: `2 × slice_async_rq × (8 − level)`
    fn async_requests(&self, queue: &Queue) -> u32 {
        let levels = u32::from(IoPrio::LEVELS - queue.io_prio.level());
        2_u32.wrapping_mul(self.tunables.slice_async_rq()).wrapping_mul(levels)
    }
}
