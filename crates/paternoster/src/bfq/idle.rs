//! Every decision BFQ makes to leave the device free for a request that has not come yet.
//!
//! Two reasons: the device serves more if it is spared a seek away and back, and shares only hold
//! if the queue in service does not lose its turn for thinking a moment.
//!
//! ```text
//!   is_idling_better ─┬─ idling_boosts_throughput   sequential, I/O-bound, soon back; not where
//!                     │                             the device does not seek and queues
//!                     └─ idling_guarantees_service  raised while others are not; asymmetric; alone
//!
//!   complete ──▶ arm_idle_timer ──▶ insert (same queue): the timer is stopped, or runs on where
//!                      │            a small request may grow
//!                      └──────────▶ idle_timer_fired: the turn ends
//! ```
//!
//! While requests of the queue in service are in flight, no timer is needed: it is kept for them.

use crate::bfq::Bfq;
use crate::bfq::queue::QueueId;
use crate::io_context::IoClass;
use crate::scheduler::Cx;
use crate::time::{Instant, Nanos};
use crate::trace::{BudgetEnd, Event, Trace};

/// A seeky queue is waited for no longer than this, where nothing else asks for it.
const SEEKY_IDLE: Nanos = Nanos::from_millis(2);
/// A raised queue is waited for at least so long.
const RAISED_IDLE: Nanos = Nanos::from_millis(20);
/// So many requests of others in the device delay those of a raised queue.
const MANY_OF_OTHERS: u32 = 4;

/// The device is kept free.
#[derive(Debug)]
pub(super) struct Idling {
    /// When the waiting ends, and for which queue; unless its request comes.
    pub(super) timer: Option<(Instant, QueueId)>,
    /// Since when, or when that was last so.
    pub(super) since: Instant,
}

impl<T: Trace> Bfq<T> {
    /// Whether to keep the device free for the queue rather than to serve others.
    pub(super) fn is_idling_better(&self, cx: &Cx<'_>, queue: QueueId) -> bool {
        let state = &self.queues[queue];
        if state.users == 0 {
            return false;
        }
        if self.tunables.strict_guarantees() {
            return true;
        }
        if self.tunables.slice_idle() == Nanos::ZERO
            || !state.sync
            || self.wf2q.entities[queue].class == IoClass::Idle
        {
            return false;
        }
        self.idling_boosts_throughput(cx, queue) || self.idling_guarantees_service(queue)
    }

    /// Whether the device serves more when it is kept free for the queue, and nobody is harmed.
    pub(super) fn idling_boosts_throughput(&self, cx: &Cx<'_>, queue: QueueId) -> bool {
        let state = &self.queues[queue];
        if state.users == 0 || self.symmetry.raised_busy != 0 {
            return false;
        }
        let seeks = cx.device.rotational;
        let one_by_one = !self.hw_queueing.may_queue();
        let comes_soon_and_near =
            || !state.is_seeky() && state.habits.io_bound && state.habits.think_briefly;
        (seeks && one_by_one) || ((seeks || one_by_one) && comes_soon_and_near())
    }

    /// Whether the queue's share only holds if the device is kept free for it. One that is alone is
    /// waited for too, on however fast a device.
    pub(super) fn idling_guarantees_service(&self, queue: QueueId) -> bool {
        let state = &self.queues[queue];
        if state.users == 0 {
            return false;
        }
        let raised = self.wf2q.entities[queue].factor > 1;
        (raised
            && (self.symmetry.some_not_raised()
                || self.in_driver >= state.in_flight + MANY_OF_OTHERS))
            || self.is_asymmetric(queue)
            || self.symmetry.busy() == 1
    }

    /// The queue in service has run empty, with nothing in flight: the device is kept free for it.
    pub(super) fn arm_idle_timer(&mut self, cx: &Cx<'_>, queue: QueueId) {
        let mut length = self.tunables.slice_idle();
        let raised = self.wf2q.entities[queue].factor > 1;
        if self.queues[queue].is_seeky() && !raised && !self.is_asymmetric(queue) {
            length = length.min(SEEKY_IDLE);
        } else if raised {
            length = length.max(RAISED_IDLE);
        }
        self.queues[queue].waiting = true;
        self.idling = Idling { timer: Some((cx.now + length, queue)), since: cx.now };
        let queue = self.queues[queue].name();
        self.trace.event(cx.now, Event::Idling { queue, length });
    }

    /// What the device was kept free for has not come in time.
    pub(super) fn idle_timer_fired(&mut self, cx: &Cx<'_>) {
        let Some((_, queue)) = self.idling.timer.take() else { return };
        self.trace.event(cx.now, Event::IdleTimerFired);
        debug_assert_eq!(self.in_service, Some(queue), "the timer goes with the service");
        let state = &mut self.queues[queue];
        state.waiting = false;
        if cx.jiffies() >= state.turn_end {
            self.expire_after_idling(cx, queue, BudgetEnd::Timeout);
        } else if state.is_empty() {
            self.expire_after_idling(cx, queue, BudgetEnd::TooIdle);
        }
    }
}
