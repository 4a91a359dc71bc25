//! Serving others while the queue in service is kept empty.
//!
//! The device would stand idle while the next request of the queue in service is awaited. So
//! requests of others are *injected*, charged to their own queues: without limit those that the
//! awaited one may depend on, and of any others as many at a time as do not slow it down. That is
//! found out by measuring: the time from the arrival of a first request to its completion, with and
//! without injection.
//!
//! ```text
//!   arrival ─────────────────▶ completion      t < 3/2 × base: limit + 1
//!   of the first request                       else: limit − 1
//!        └── others in the device: injected    alone in the device: base = t
//! ```

use crate::arena::RequestId;
use crate::bfq::Bfq;
use crate::bfq::queue::{QueueId, queue_of};
use crate::request::SectorCount;
use crate::scheduler::Cx;
use crate::time::{Instant, Jiffies, Nanos, Ticks};
use crate::trace::{Event, Trace};

/// On a device that does not rotate, a request of so many sectors or more is injected alone.
const LARGE: SectorCount = SectorCount(8 * 8);

/// How many requests of others may be in the device while a queue is kept empty.
#[derive(Clone, Copy, Debug)]
pub(super) struct InjectionLimit {
    pub(super) limit: u32,
    /// What a first request takes without injection; 0 while that is not known.
    pub(super) base_time: Nanos,
    /// When the limit was last reset or lowered.
    pub(super) since: Jiffies,
}

impl Default for InjectionLimit {
    fn default() -> Self {
        Self { limit: 0, base_time: Nanos::ZERO, since: Jiffies::LONG_AGO }
    }
}

/// The measuring that goes on, for the queue in service.
#[derive(Debug)]
pub(super) struct Measuring {
    /// When the first request arrived.
    since: Instant,
    /// The next request of the queue in service is it.
    next: bool,
    /// It, once it was sent.
    request: Option<RequestId>,
    /// Requests were injected meanwhile.
    injected: bool,
}

impl Measuring {
    pub(super) fn new(now: Instant) -> Self {
        Self { since: now, next: false, request: None, injected: false }
    }

    /// What goes on is given up.
    pub(super) fn abort(&mut self) {
        self.injected = false;
        self.next = false;
        self.request = None;
    }
}

impl<T: Trace> Bfq<T> {
    /// The queue to send from while `active`, in service, is kept empty: those first that its next
    /// request may wait for.
    pub(super) fn choose_injected(&mut self, cx: &Cx<'_>, active: QueueId) -> Option<QueueId> {
        let related = self.own_async_queue(cx, active).or_else(|| {
            let state = &self.queues[active];
            let waker = state.waker.waker.filter(|&waker| self.may_be_injected(cx, waker));
            waker.or_else(|| state.woken.first().filter(|&woken| self.may_be_injected(cx, woken)))
        });
        if related.is_some() {
            return related;
        }
        let raised = self.wf2q.entities[active].factor > 1;
        let briefly = self.queues[active].habits.think_briefly;
        let open = !self.idling_boosts_throughput(cx, active)
            && (!raised || self.symmetry.raised_busy > 1 || !briefly);
        if open { self.choose_any(cx, active) } else { None }
    }

    /// The async queue of the owner of `active`, if its next request is that owner's.
    fn own_async_queue(&self, cx: &Cx<'_>, active: QueueId) -> Option<QueueId> {
        let owner = self.queues[active].owner?;
        let queue = self.existing_queue(owner, false)?;
        let next = self.queues[queue].next()?;
        (cx.requests[next].ioc == owner && self.may_be_injected(cx, queue)).then_some(queue)
    }

    /// Whether the queue has a request, and budget left for it.
    fn may_be_injected(&self, cx: &Cx<'_>, queue: QueueId) -> bool {
        let state = &self.queues[queue];
        let Some(next) = state.next() else { return false };
        state.busy
            && i64::from(self.charge_of(cx, queue, next).0) <= self.wf2q.entities[queue].left()
    }

    /// Any other queue with a request, while the limit is not reached; the one that was last put
    /// on its tree first.
    fn choose_any(&mut self, cx: &Cx<'_>, active: QueueId) -> Option<QueueId> {
        let mut limit = self.queues[active].injection.limit;
        if limit == 0 && self.is_grace_over(cx, active) {
            limit = 1;
        }
        if self.in_driver >= limit {
            return None;
        }
        let raised_wait =
            self.wf2q.entities[active].factor > 1 && self.queues[active].habits.think_briefly;
        for queue in self.wf2q.active_queues() {
            let raised = self.wf2q.entities[queue].factor > 1;
            if (raised_wait && !raised) || !self.may_be_injected(cx, queue) {
                continue;
            }
            let next = self.queues[queue].next().expect("what may be injected has a request");
            // After a large one the bound stays at one for the next large one.
            limit = if !cx.device.rotational && cx.requests[next].sectors >= LARGE {
                limit.min(1)
            } else {
                self.queues[active].injection.limit
            };
            if self.in_driver < limit {
                self.measuring.injected = true;
                return Some(queue);
            }
        }
        None
    }

    /// Whether the queue in service, of which nothing is known, was waited for long enough to let
    /// one large request pass. Hardly ever: Linux compares ticks with nanoseconds, so that it takes
    /// a queue that is waited for though `slice_idle` is 0, as `strict_guarantees` has it.
    fn is_grace_over(&self, cx: &Cx<'_>, active: QueueId) -> bool {
        let state = &self.queues[active];
        let ticks = self.tunables.slice_idle().as_nanos().cast_signed();
        state.injection.base_time == Nanos::ZERO
            && state.waiting
            && cx.jiffies() >= cx.device.hz.jiffies(self.idling.since) + Ticks::new(ticks)
    }

    /// The only request of its user in flight arrives for `queue`: time for a reset, or to begin
    /// to measure, if the device is free of what would blur that.
    pub(super) fn maybe_measure(&mut self, cx: &Cx<'_>, queue: QueueId) {
        let now = cx.jiffies();
        if now >= self.queues[queue].injection.since + self.spans.injection_reset {
            self.reset_injection(cx, queue);
        }
        let injection = &self.queues[queue].injection;
        let is_empty = self.in_driver == 0;
        let with_injection =
            injection.base_time > Nanos::ZERO && self.measuring.injected && !is_empty;
        if self.in_service == Some(queue)
            && (is_empty || with_injection)
            && now >= injection.since + self.spans.injection_gap
        {
            self.measuring.since = cx.now;
            self.measuring.next = true;
            if is_empty {
                self.measuring.injected = false;
            }
        }
    }

    /// A request of the queue in service is sent.
    #[inline]
    pub(super) fn note_measured(&mut self, rq: RequestId) {
        if std::mem::take(&mut self.measuring.next) {
            self.measuring.request = Some(rq);
        }
    }

    /// A request has completed, and is still counted as in the device: the limit follows, if it
    /// was the one measured.
    #[inline]
    pub(super) fn note_measured_end(&mut self, cx: &Cx<'_>, rq: RequestId) {
        if self.measuring.request == Some(rq) {
            self.adapt_injection(cx, queue_of(cx.requests, rq));
        }
    }

    fn adapt_injection(&mut self, cx: &Cx<'_>, queue: QueueId) {
        let took = cx.now.wrapping_since(self.measuring.since);
        let injected = self.measuring.injected;
        let alone = self.in_driver == 1;
        let injection = &mut self.queues[queue].injection;
        let before = injection.limit;
        let base = injection.base_time;
        if base > Nanos::ZERO && injected {
            let bearable = Nanos::new(base.as_nanos() * 3 / 2);
            if took >= bearable && before > 0 {
                injection.limit -= 1;
                injection.since = cx.jiffies();
            } else if took < bearable && before <= self.hw_queueing.depth_seen {
                injection.limit += 1;
            }
        }
        if (base == Nanos::ZERO && alone) || took < base {
            if base == Nanos::ZERO {
                injection.limit = before.max(1);
            }
            injection.base_time = took;
        } else if !injected && alone {
            injection.base_time = took;
        }
        self.measuring.request = None;
        self.measuring.injected = false;
        self.trace_injection(cx, queue, before);
    }

    /// Nothing is known any more of how much the queue bears.
    pub(super) fn reset_injection(&mut self, cx: &Cx<'_>, queue: QueueId) {
        let state = &mut self.queues[queue];
        let limit = u32::from(!state.habits.think_briefly);
        let since = cx.jiffies();
        let before = std::mem::replace(
            &mut state.injection,
            InjectionLimit { limit, base_time: Nanos::ZERO, since },
        );
        self.measuring.request = None;
        self.trace_injection(cx, queue, before.limit);
    }

    fn trace_injection(&mut self, cx: &Cx<'_>, queue: QueueId, before: u32) {
        let state = &self.queues[queue];
        let limit = state.injection.limit;
        if limit != before {
            self.trace.event(cx.now, Event::InjectionLimit { queue: state.name(), limit });
        }
    }
}
