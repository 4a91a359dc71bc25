//! Injection: requests of other queues are dispatched while the device idles for the queue in
//! service.
//!
//! An injected request is charged to its own queue. Requests on which the next request of the queue
//! in service may depend are injected without limit; of all others, as many at a time as do not
//! slow the queue in service down.
//!
//! ```text
//!   its owner's async queue ─┐
//!   its waker ───────────────┼─▶ no limit
//!   the first that it wakes ─┘
//!   any other queue ───────────▶ up to its limit      injection_limit.rs
//! ```
//!
//! CFQ injects nothing: while it idles the device stands idle.

use crate::bfq::Bfq;
use crate::bfq::injection_limit::{DeviceLoad, ServiceTime};
use crate::bfq::queue_id::QueueId;
use crate::request::SectorCount;
use crate::scheduler::Cx;
use crate::synchrony::Synchrony;
use crate::time::Ticks;
use crate::trace::{BfqEvent, Event, Trace};

/// On a device that is not rotational, a request of so many sectors or more is injected alone.
const LARGE: SectorCount = SectorCount(8 * 8);

/// From which queue to inject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Injected {
    /// From one that the next request of the queue in service may depend on.
    Related(QueueId),
    /// From any other: the limit allows it.
    WithinLimit(QueueId),
}

impl<T: Trace> Bfq<T> {
    /// Returns the queue to inject from while the device idles for `in_service`. A queue that is
    /// not related to it makes the service-time probe one with injection.
    pub(super) fn inject(&mut self, cx: &Cx, in_service: QueueId) -> Option<QueueId> {
        match self.choose_injected(cx, in_service)? {
            Injected::Related(queue) => Some(queue),
            Injected::WithinLimit(queue) => {
                self.service_time_probe.note_injected();
                Some(queue)
            }
        }
    }

    /// Returns the queue to inject from while the device idles for `in_service`: first one on which
    /// its next request may depend.
    fn choose_injected(&self, cx: &Cx, in_service: QueueId) -> Option<Injected> {
        let related = self.own_async_queue(cx, in_service).or_else(|| {
            let state = &self.queues[in_service];
            let waker = state.waker.filter(|&waker| self.may_be_injected(cx, waker));
            waker.or_else(|| state.woken.first().filter(|&woken| self.may_be_injected(cx, woken)))
        });
        if let Some(queue) = related {
            return Some(Injected::Related(queue));
        }
        let is_raised = self.is_raised(in_service);
        let comes_soon = self.queues[in_service].io_pattern.has_short_think_time();
        let is_open = !self.idling_boosts_throughput(cx, in_service)
            && (!is_raised || self.busy.raised() > 1 || !comes_soon);
        if is_open { self.choose_any(cx, in_service).map(Injected::WithinLimit) } else { None }
    }

    /// Returns the async queue of the owner of `in_service`, if its next request is that owner's.
    fn own_async_queue(&self, cx: &Cx, in_service: QueueId) -> Option<QueueId> {
        let owner = self.queues[in_service].owner?;
        let queue = self.existing_queue(owner, Synchrony::Async)?;
        let next = self.queues[queue].next()?;
        (cx.requests[next].ioc == owner && self.may_be_injected(cx, queue)).then_some(queue)
    }

    /// Returns whether the queue has a request, and budget left for it.
    fn may_be_injected(&self, cx: &Cx, queue: QueueId) -> bool {
        let state = &self.queues[queue];
        let Some(next) = state.next() else { return false };
        state.busy && i64::from(self.charge_of(cx, queue, next).0) <= self.wf2q.left(queue)
    }

    /// Returns any other queue with a request, while the limit is not reached; the one that was
    /// last put on its tree first.
    ///
    /// After a large request the bound stays at one for the next large one, as in Linux.
    fn choose_any(&self, cx: &Cx, in_service: QueueId) -> Option<QueueId> {
        let full_limit = self.queues[in_service].injection.limit();
        let mut limit = full_limit;
        if limit == 0 && self.is_grace_over(cx, in_service) {
            limit = 1;
        }
        if self.in_driver >= limit {
            return None;
        }
        let only_raised =
            self.is_raised(in_service) && self.queues[in_service].io_pattern.has_short_think_time();
        for queue in self.wf2q.active_queues() {
            let is_raised = self.is_raised(queue);
            if (only_raised && !is_raised) || !self.may_be_injected(cx, queue) {
                continue;
            }
            let next = self.queues[queue].next().expect("what may be injected has a request");
            let is_large = !cx.device.rotational && cx.requests[next].sectors >= LARGE;
            limit = if is_large { limit.min(1) } else { full_limit };
            if self.in_driver < limit {
                return Some(queue);
            }
        }
        None
    }

    /// Returns whether the device has idled long enough for `in_service`, whose base time is not
    /// known, to let one request of another queue pass. It hardly ever has: Linux compares ticks
    /// with nanoseconds, so that this needs a `slice_idle` of 0 with `strict_guarantees`.
    fn is_grace_over(&self, cx: &Cx, in_service: QueueId) -> bool {
        let state = &self.queues[in_service];
        let ticks = self.tunables.slice_idle().as_nanos().cast_signed();
        state.injection.base_time().is_none()
            && state.idling
            && cx.jiffies() >= cx.device.hz.jiffies(self.idling.since) + Ticks::new(ticks)
    }

    /// A request arrives for `queue`, the only one that its user has: the limit of the queue may be
    /// due for a reset, and the time that the request takes may be probed.
    pub(super) fn probe_first_request(&mut self, cx: &Cx, queue: QueueId) {
        let now = cx.jiffies();
        if self.queues[queue].injection.is_older_than(self.times.injection_reset, now) {
            self.reset_injection(cx, queue);
        }
        let injection = &self.queues[queue].injection;
        if self.in_service == Some(queue) && injection.is_older_than(self.times.injection_gap, now)
        {
            let base_is_known = injection.base_time().is_some();
            self.service_time_probe.arm(cx.now, self.in_driver, base_is_known);
        }
    }

    /// The probed request of `queue` has completed, and is still counted as in the device: the
    /// limit follows.
    pub(super) fn adapt_injection(&mut self, cx: &Cx, queue: QueueId, time: ServiceTime) {
        let depth_seen = self.hw_queueing.depth_seen();
        let device = DeviceLoad { in_flight: self.in_driver, depth_seen };
        let injection = &mut self.queues[queue].injection;
        let before = injection.limit();
        injection.adapt(time, device, cx.jiffies());
        self.trace_injection(cx, queue, before);
    }

    /// Resets the injection limit of the queue.
    pub(super) fn reset_injection(&mut self, cx: &Cx, queue: QueueId) {
        let state = &mut self.queues[queue];
        let before = state.injection.limit();
        state.injection.reset(state.io_pattern.has_short_think_time(), cx.jiffies());
        self.service_time_probe.drop_request();
        self.trace_injection(cx, queue, before);
    }

    fn trace_injection(&mut self, cx: &Cx, queue: QueueId, before: u32) {
        let state = &self.queues[queue];
        let limit = state.injection.limit();
        if limit != before {
            self.trace
                .event(cx.now, Event::Bfq(BfqEvent::InjectionLimit { queue: state.name(), limit }));
        }
    }
}
