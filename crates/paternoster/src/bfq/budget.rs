//! Budgets: how many sectors a queue may have served in one service, and what a request costs.
//!
//! ```text
//!   the queue's max_budget ──▶ budget of its next service ──▶ finish time
//!      ▲                          │ service
//!      └── feedback, at its end ◀─┘ (expire.rs)
//! ```
//!
//! All bounds follow from the maximum, which is what the device serves in a service at its peak
//! rate. CFQ gives time instead (`cfq/slice.rs`).

use crate::arena::RequestId;
use crate::bfq::Bfq;
use crate::bfq::queue_id::QueueId;
use crate::bfq::wf2q::{ActivationKind, Service};
use crate::request::SectorCount;
use crate::scheduler::Cx;
use crate::time::{Jiffies, Nanos};
use crate::trace::{BfqEvent, Event, Trace};

/// In a symmetric scenario an async sector counts for so many.
const ASYNC_FACTOR: u32 = 3;

impl<T: Trace> Bfq<T> {
    /// Returns what a request is charged: its sectors, and no less than the least charge. An async
    /// request is charged threefold, unless its queue is raised or the scenario is asymmetric.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn charge_of(&self, cx: &Cx, queue: QueueId, rq: RequestId) -> SectorCount {
        let sectors = cx.requests[rq].sectors.max(self.tunables.least_charge());
        let plain = self.queues[queue].synchrony.is_sync()
            || self.is_raised(queue)
            || self.is_asymmetric(queue);
        if plain { sectors } else { SectorCount(sectors.0.saturating_mul(ASYNC_FACTOR)) }
    }

    /// Sets the budget of a queue that becomes busy: the rest of the one that it had, if the queue
    /// is back in time, or its `max_budget`. Returns which of both it is.
    pub(super) fn set_activation_budget(
        &mut self,
        cx: &Cx,
        queue: QueueId,
        in_time: bool,
    ) -> ActivationKind {
        let state = &self.queues[queue];
        let max_budget = state.max_budget;
        let left = u32::try_from(self.wf2q.left(queue)).unwrap_or(0);
        self.wf2q.reset_service(queue);
        if state.resumable && in_time && left > 0 {
            self.wf2q.set_budget(queue, max_budget.min(SectorCount(left)));
            return ActivationKind::InTime;
        }
        let next = state.next().expect("a queue becomes busy with a request");
        let budget = max_budget.max(self.charge_of(cx, queue, next));
        self.wf2q.set_budget(queue, budget);
        self.queues[queue].resumable = false;
        ActivationKind::New
    }

    /// The next request of a busy queue has changed: the budget has to suffice for it. The queue in
    /// service keeps its budget.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn update_budget(&mut self, cx: &Cx, queue: QueueId) {
        let state = &self.queues[queue];
        let Some(next) = state.next().filter(|_| self.in_service != Some(queue)) else { return };
        let charge = self.charge_of(cx, queue, next);
        let budget = state.max_budget.max(charge).max(self.wf2q.service(queue));
        if self.wf2q.budget(queue) != budget {
            self.wf2q.set_budget(queue, budget);
            self.reinsert(cx, queue, Service::GoesOn);
        }
    }

    /// The peak rate has changed, and with it the maximum, unless that is tuned.
    pub(super) fn follow_peak_rate(&mut self, cx: &Cx, rate: u32) {
        self.trace.event(cx.now, Event::Bfq(BfqEvent::PeakRate { rate }));
        if self.tunables.max_budget() == SectorCount(0) {
            self.update_max_budget(cx);
        }
    }

    /// The maximum follows the peak rate, unless it is tuned.
    pub(super) fn update_max_budget(&mut self, cx: &Cx) {
        let max = match self.tunables.max_budget() {
            SectorCount(0) => {
                let timeout = Nanos::from_millis(cx.device.hz.millis(self.budgets.timeout()));
                self.peak_rate.sectors_in(timeout)
            }
            tuned => tuned,
        };
        if self.budgets.replace_max(max) != max {
            self.trace.event(cx.now, Event::Bfq(BfqEvent::MaxBudget { sectors: max }));
        }
    }

    /// Returns until when a queue that is put in service now may stay. A raised queue has longer.
    pub(super) fn service_deadline(&self, now: Jiffies, queue: QueueId) -> Jiffies {
        let raised_by = || self.wf2q.weight(queue) / self.wf2q.own_weight(queue);
        let times = if self.queues[queue].raising().is_soft_rt() { 1 } else { raised_by() };
        now + self.budgets.timeout() * times
    }
}
