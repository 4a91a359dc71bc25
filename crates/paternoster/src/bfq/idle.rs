//! Every decision of BFQ to idle: to leave the device without a request although others wait.
//!
//! There are two reasons. The device serves more if it does not seek away and back. And shares hold
//! only if the queue in service does not lose the device because it thinks for a moment.
//!
//! ```text
//!   is_idling_better ─┬─ idling_boosts_throughput   sequential, I/O-bound, soon back; not where
//!                     │                             the device does not seek and queues
//!                     └─ idling_guarantees_service  raised while others are not; asymmetric; alone
//!
//!   complete ──▶ arm_idle_timer ──▶ insert (same queue): the timer is stopped, or runs on where
//!                      │            a small request may grow
//!                      └──────────▶ idle_timer_fired: the service ends
//! ```
//!
//! While requests of the queue in service are in flight, it stays in service without a timer.

use crate::bfq::Bfq;
use crate::bfq::queue_id::QueueId;
use crate::io_context::IoClass;
use crate::scheduler::Cx;
use crate::time::{Instant, Nanos};
use crate::trace::{BfqEvent, BudgetEnd, Event, QueueEvent, Trace};

/// The device idles for a seeky queue no longer than this, unless shares depend on it.
const SEEKY_IDLE: Nanos = Nanos::from_millis(2);
/// The device idles for a raised queue at least so long.
const RAISED_IDLE: Nanos = Nanos::from_millis(20);
/// So many requests of others in the device delay those of a raised queue.
const MANY_OF_OTHERS: u32 = 4;

/// The device idles, or did.
#[derive(Debug)]
pub(super) struct Idling {
    /// When idling ends, and for which queue, unless a request of the queue comes before.
    pub(super) timer: Option<(Instant, QueueId)>,
    /// When the device last began to idle.
    pub(super) since: Instant,
}

impl<T: Trace> Bfq<T> {
    /// Returns whether to idle for the queue is better than to serve others.
    pub(super) fn is_idling_better(&self, cx: &Cx, queue: QueueId) -> bool {
        let state = &self.queues[queue];
        if state.users == 0 {
            return false;
        }
        if self.tunables.strict_guarantees() {
            return true;
        }
        if self.tunables.slice_idle() == Nanos::ZERO
            || !state.synchrony.is_sync()
            || self.wf2q.class_of(queue) == IoClass::Idle
        {
            return false;
        }
        self.idling_boosts_throughput(cx, queue) || self.idling_guarantees_service(queue)
    }

    /// Returns whether the device serves more if it idles for the queue, and no raised queue is
    /// harmed by that.
    pub(super) fn idling_boosts_throughput(&self, cx: &Cx, queue: QueueId) -> bool {
        let state = &self.queues[queue];
        if state.users == 0 || self.busy.any_raised() {
            return false;
        }
        let seeks = cx.device.rotational;
        let one_by_one = !self.hw_queueing.may_queue();
        let comes_soon_and_near = || {
            let pattern = &state.io_pattern;
            !state.is_seeky() && pattern.is_io_bound() && pattern.has_short_think_time()
        };
        (seeks && one_by_one) || ((seeks || one_by_one) && comes_soon_and_near())
    }

    /// Returns whether the queue's share holds only if the device idles for it. If no other queue
    /// is busy, the device idles too, however fast it is.
    pub(super) fn idling_guarantees_service(&self, queue: QueueId) -> bool {
        let state = &self.queues[queue];
        if state.users == 0 {
            return false;
        }
        let raised = self.is_raised(queue);
        (raised
            && (self.busy.some_not_raised() || self.in_driver >= state.in_flight + MANY_OF_OTHERS))
            || self.is_asymmetric(queue)
            || self.busy.count() == 1
    }

    /// The queue in service has run empty, with nothing in flight: the device idles for it.
    pub(super) fn arm_idle_timer(&mut self, cx: &Cx, queue: QueueId) {
        let mut length = self.tunables.slice_idle();
        let raised = self.is_raised(queue);
        if self.queues[queue].is_seeky() && !raised && !self.is_asymmetric(queue) {
            length = length.min(SEEKY_IDLE);
        } else if raised {
            length = length.max(RAISED_IDLE);
        }
        self.queues[queue].idling = true;
        self.idling = Idling { timer: Some((cx.now + length, queue)), since: cx.now };
        let queue = self.queues[queue].name();
        self.trace.event(cx.now, Event::Bfq(BfqEvent::BudgetIdling { queue, length }));
    }

    /// Stops the idle timer, if it runs.
    pub(super) fn stop_idle_timer(&mut self, queue: QueueId) {
        if std::mem::take(&mut self.queues[queue].idling) {
            self.idling.timer = None;
        }
    }

    /// The request for which the device idled has not come in time.
    pub(super) fn idle_timer_fired(&mut self, cx: &Cx) {
        let Some((_, queue)) = self.idling.timer.take() else { return };
        self.trace.event(cx.now, Event::Queue(QueueEvent::IdleTimerFired));
        debug_assert_eq!(self.in_service, Some(queue), "the timer goes with the service");
        let state = &mut self.queues[queue];
        state.idling = false;
        if state.is_past_deadline(cx.jiffies()) {
            self.expire_after_idling(cx, queue, BudgetEnd::Timeout);
        } else if state.is_empty() {
            self.expire_after_idling(cx, queue, BudgetEnd::TooIdle);
        }
    }
}
