//! Budgets: how many sectors a queue may have served in a turn, and what a request costs.
//!
//! ```text
//!   granted to the queue ──▶ budget of its next turn ──▶ finish time
//!      ▲                          │ service
//!      └── feedback, at its end ◀─┘ (expire.rs)
//! ```
//!
//! All bounds follow from the maximum, which is what the device serves in a turn at its peak rate.

use crate::arena::RequestId;
use crate::bfq::Bfq;
use crate::bfq::queue::QueueId;
use crate::bfq::wf2q::Turn;
use crate::request::SectorCount;
use crate::scheduler::Cx;
use crate::time::{Hz, Jiffies, Nanos, Ticks};
use crate::trace::{Event, Trace};

/// The maximum until the device is known, in sectors: 8 MiB.
const DEFAULT_MAX: SectorCount = SectorCount(16 * 1024);
/// The least budget is this part of the maximum.
const MIN_PARTS: u32 = 32;
/// After so many budgets, smoothed, the maximum that was learned counts.
const ENOUGH_ASSIGNED: u32 = 194;
/// What smoothed counts tend to.
const SAMPLE: u32 = 256;
/// In a symmetric scenario an async sector counts for so many.
const ASYNC_FACTOR: u32 = 3;
/// A turn is over after this part of a second.
const TIMEOUT_PARTS: u32 = 8;

/// The bounds of budgets.
#[derive(Debug)]
pub(super) struct Budgets {
    /// Budgets assigned, smoothed: 32, 60, 84, …
    assigned: u32,
    /// What a queue may get at most.
    pub(super) max: SectorCount,
    /// How long a turn may last.
    pub(super) timeout: Ticks,
}

impl Budgets {
    pub(super) fn new(hz: Hz) -> Self {
        Self { assigned: 0, max: DEFAULT_MAX, timeout: default_timeout(hz) }
    }

    /// Whether enough budgets were given to go by what was learned.
    #[inline]
    pub(super) fn is_settled(&self) -> bool {
        self.assigned >= ENOUGH_ASSIGNED
    }

    /// The greatest budget as far as it is settled.
    #[inline]
    pub(super) fn upper(&self) -> SectorCount {
        if self.is_settled() { self.max } else { DEFAULT_MAX }
    }

    /// The least budget.
    #[inline]
    pub(super) fn lower(&self) -> SectorCount {
        SectorCount(self.upper().0 / MIN_PARTS)
    }

    /// What a new queue is granted: two thirds.
    pub(super) fn of_new_queue(&self) -> SectorCount {
        let upper = self.upper().0;
        SectorCount(upper - upper.div_ceil(3))
    }

    /// A queue is put in service.
    #[inline]
    pub(super) fn note_assigned(&mut self) {
        self.assigned = (self.assigned * 7 + SAMPLE) / 8;
    }
}

/// How long a turn may last, unless that is tuned: also the measure by which time is charged,
/// tuned or not.
pub(super) fn default_timeout(hz: Hz) -> Ticks {
    hz.part_of_second(TIMEOUT_PARTS)
}

impl<T: Trace> Bfq<T> {
    /// What a request counts: its sectors, and no less than the least charge; async ones threefold,
    /// unless their queue is raised or the scenario asymmetric.
    #[inline]
    pub(super) fn charge_of(&self, cx: &Cx<'_>, queue: QueueId, rq: RequestId) -> SectorCount {
        let sectors = cx.requests[rq].sectors.max(self.tunables.least_charge());
        let plain = self.queues[queue].sync
            || self.wf2q.entities[queue].factor > 1
            || self.is_asymmetric(queue);
        if plain { sectors } else { SectorCount(sectors.0.saturating_mul(ASYNC_FACTOR)) }
    }

    /// The budget of a queue that becomes busy: what was left, if it is back in time, or what it
    /// was granted. Whether it goes on with what was left.
    pub(super) fn budget_for_activation(
        &mut self,
        cx: &Cx<'_>,
        queue: QueueId,
        in_time: bool,
    ) -> bool {
        let state = &self.queues[queue];
        let granted = state.granted;
        let entity = &mut self.wf2q.entities[queue];
        let left = u32::try_from(entity.left()).unwrap_or(0);
        entity.service = SectorCount(0);
        if state.resumable && in_time && left > 0 {
            entity.budget = granted.min(SectorCount(left));
            return true;
        }
        let next = state.next().expect("a queue becomes busy with a request");
        let budget = granted.max(self.charge_of(cx, queue, next));
        self.wf2q.entities[queue].budget = budget;
        self.queues[queue].resumable = false;
        false
    }

    /// The next request of a busy queue has changed: its budget has to suffice for that. The queue
    /// in service is not touched.
    pub(super) fn update_budget(&mut self, cx: &Cx<'_>, queue: QueueId) {
        let state = &self.queues[queue];
        let Some(next) = state.next().filter(|_| self.in_service != Some(queue)) else { return };
        let charge = self.charge_of(cx, queue, next);
        let entity = &mut self.wf2q.entities[queue];
        let budget = state.granted.max(charge).max(entity.service);
        if std::mem::replace(&mut entity.budget, budget) != budget {
            self.wf2q.requeue(queue, Turn::GoesOn, cx.jiffies());
            self.free_forgotten(cx);
        }
    }

    /// The maximum follows the peak rate, unless it is tuned.
    pub(super) fn update_max_budget(&mut self, cx: &Cx<'_>) {
        let max = match self.tunables.max_budget() {
            SectorCount(0) => {
                let timeout = Nanos::from_millis(cx.device.hz.millis(self.budgets.timeout));
                self.peak_rate.sectors_in(timeout)
            }
            tuned => tuned,
        };
        if std::mem::replace(&mut self.budgets.max, max) != max {
            self.trace.event(cx.now, Event::MaxBudget { sectors: max });
        }
    }

    /// When the turn of a queue that is put in service now is over; raised ones have longer.
    pub(super) fn turn_end(&self, now: Jiffies, queue: QueueId) -> Jiffies {
        let entity = &self.wf2q.entities[queue];
        let times = if self.is_soft_rt(queue) { 1 } else { entity.weight / entity.own_weight };
        now + self.budgets.timeout * times
    }
}
