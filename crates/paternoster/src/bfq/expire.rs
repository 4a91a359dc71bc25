//! The end of a turn: what is charged for it, what the queue is granted next, and where it goes.
//!
//! A turn that was slow, by the queue's seeking or by its thinking, is charged for its time, as if
//! the device had served at its peak all along. Otherwise service is all that counts.

use crate::bfq::Bfq;
use crate::bfq::budget::default_timeout;
use crate::bfq::queue::QueueId;
use crate::bfq::wf2q::{Past, Turn};
use crate::request::SectorCount;
use crate::scheduler::Cx;
use crate::time::Instant;
use crate::trace::{BudgetEnd, Event, Trace};

/// Shorter turns say nothing of speed, in µs.
const SHORT_TURN_US: u64 = 1000;
/// Longer ones are slow if they got less than half of the maximum.
const LONG_TURN_US: u64 = 20_000;
/// The time that a short turn is charged for, in ms: on a device that rotates, and on one that
/// does not.
const SHORT_TURN_MS: [u64; 2] = [8, 2];

/// How fast a turn was.
#[derive(Clone, Copy, Debug)]
struct Pace {
    slow: bool,
    /// For what time it would be charged.
    millis: u64,
}

impl<T: Trace> Bfq<T> {
    /// Ends the turn of the queue in service now.
    pub(super) fn expire(&mut self, cx: &Cx<'_>, queue: QueueId, why: BudgetEnd) {
        self.expire_as_of(cx, queue, why, cx.now);
    }

    /// Ends it for that it was waited for in vain; the waiting does not count.
    pub(super) fn expire_after_idling(&mut self, cx: &Cx<'_>, queue: QueueId, why: BudgetEnd) {
        self.expire_as_of(cx, queue, why, self.idling.since);
    }

    fn expire_as_of(&mut self, cx: &Cx<'_>, queue: QueueId, why: BudgetEnd, end: Instant) {
        let pace = self.pace(cx, queue, end);
        let raised = self.wf2q.entities[queue].factor > 1;
        let late = why == BudgetEnd::Timeout && self.has_third_left(queue);
        if !raised && (pace.slow || late) {
            self.charge_time(cx, queue, pace.millis);
        }
        self.charge_waiting(cx, queue, why);
        self.trace_expiry(cx, queue, why, pace.slow);
        if self.tunables.low_latency() {
            self.note_for_raising(cx, queue, raised);
        }
        self.measuring.abort();
        self.adapt_budget(cx, queue, why);
        if self.leave(cx, queue, why) {
            return;
        }
        let state = &mut self.queues[queue];
        let by_budget = matches!(why, BudgetEnd::Timeout | BudgetEnd::Exhausted);
        if !state.busy && !by_budget {
            state.resumable = true;
        } else {
            self.wf2q.entities[queue].service = SectorCount(0);
        }
        self.wf2q.reset_service_above(queue);
    }

    /// Raising begins anew from here, and a queue that runs empty may be soft real time.
    fn note_for_raising(&mut self, cx: &Cx<'_>, queue: QueueId, raised: bool) {
        let now = cx.jiffies();
        let state = &mut self.queues[queue];
        if !raised {
            state.raising.since = now;
        }
        if state.sorted.is_empty() {
            if state.in_flight == 0 {
                self.update_soft_rt_bound(cx, queue);
            } else {
                state.soft_rt.due = true;
            }
        }
    }

    /// How fast the turn was, if it ended at `end`.
    fn pace(&self, cx: &Cx<'_>, queue: QueueId, end: Instant) -> Pace {
        let state = &self.queues[queue];
        if !state.sync {
            return Pace { slow: false, millis: 0 };
        }
        let micros = end.wrapping_since(self.turn_began).as_nanos() / 1000;
        if micros < SHORT_TURN_US {
            let millis = SHORT_TURN_MS[usize::from(!cx.device.rotational)];
            return Pace { slow: state.is_seeky(), millis };
        }
        let slow = if micros > LONG_TURN_US {
            self.wf2q.entities[queue].service < SectorCount(self.budgets.max.0 / 2)
        } else {
            state.is_seeky()
        };
        Pace { slow, millis: micros / 1000 }
    }

    /// Charges the queue as if it had been served at the peak for that time, up to the maximum; by
    /// the default timeout, whatever it is tuned to.
    fn charge_time(&mut self, cx: &Cx<'_>, queue: QueueId, millis: u64) {
        let full = cx.device.hz.millis(default_timeout(cx.device.hz));
        let whole = u64::from(self.budgets.max.0);
        let want = whole * millis.min(full) / full.max(1);
        self.charge_up_to(cx, queue, SectorCount(u32::try_from(want).unwrap_or(u32::MAX)));
    }

    /// Charges the queue as if it had been served so much in its turn, unless it was served more.
    pub(super) fn charge_up_to(&mut self, cx: &Cx<'_>, queue: QueueId, want: SectorCount) {
        let entity = &mut self.wf2q.entities[queue];
        let want = want.max(entity.service);
        entity.budget = entity.budget.max(want);
        let more = SectorCount(want.0 - entity.service.0);
        self.charge(cx, queue, more);
    }

    /// What the queue is granted next: more if its turn was cut short by the bounds, less if it
    /// did not use what it had.
    fn adapt_budget(&mut self, cx: &Cx<'_>, queue: QueueId, why: BudgetEnd) {
        let (least, max) = (self.budgets.lower(), self.budgets.max);
        let entity = &self.wf2q.entities[queue];
        let state = &mut self.queues[queue];
        let before = state.granted;
        let times = |factor: u32| SectorCount(before.0.saturating_mul(factor)).min(max);
        let granted = if entity.factor > 1 {
            if state.sync { SectorCount(2 * least.0) } else { max }
        } else if !state.sync {
            max
        } else {
            match why {
                BudgetEnd::TooIdle if state.in_flight > 0 => times(2),
                BudgetEnd::TooIdle if before.0 > 5 * least.0 => SectorCount(before.0 - 4 * least.0),
                BudgetEnd::TooIdle => least,
                BudgetEnd::Timeout => times(2),
                BudgetEnd::Exhausted => times(4),
                BudgetEnd::NoMoreRequests => entity.service.max(least),
                BudgetEnd::Preempted => return,
            }
        };
        let learned = self.budgets.is_settled() && self.tunables.max_budget() == SectorCount(0);
        state.granted = if learned { granted.min(max) } else { granted };
        if let Some(next) = state.next() {
            let budget = state.granted.max(self.charge_of(cx, queue, next));
            self.wf2q.entities[queue].budget = budget;
        }
    }

    /// The queue leaves service: it goes idle if it is empty, unless it was preempted and its share
    /// only holds if it keeps its place. Whether it is gone.
    pub(super) fn leave(&mut self, cx: &Cx<'_>, queue: QueueId, why: BudgetEnd) -> bool {
        let state = &mut self.queues[queue];
        if state.shared && state.is_seeky() && !std::mem::replace(&mut state.split_due, true) {
            self.trace.event(cx.now, Event::SplitPlanned { queue: state.name() });
        }
        let keeps_place = why == BudgetEnd::Preempted && self.idling_guarantees_service(queue);
        let state = &mut self.queues[queue];
        if state.sorted.is_empty() && !keeps_place {
            if state.in_flight == 0 {
                state.turn_end = cx.jiffies();
            }
            self.remove_busy(cx, queue, Turn::Ends);
        } else {
            self.wf2q.requeue(queue, Turn::Ends, cx.jiffies());
            self.free_forgotten(cx);
            if !self.queues[queue].sorted.is_empty() {
                self.index_position(cx, queue);
            }
        }
        self.stop_waiting(queue);
        self.in_service = None;
        self.wf2q.leave_service(queue);
        self.free_queue_if_unused(cx, queue)
    }

    /// The queue is busy no more.
    pub(super) fn remove_busy(&mut self, cx: &Cx<'_>, queue: QueueId, turn: Turn) {
        let state = &mut self.queues[queue];
        state.busy = false;
        let name = state.name();
        self.trace.event(cx.now, Event::Unlisted { queue: name });
        let entity = &self.wf2q.entities[queue];
        self.symmetry.leaves_busy(entity.class);
        if entity.factor > 1 {
            self.symmetry.raised_busy -= 1;
        }
        self.wf2q.deactivate(queue, Past::Remembered, turn, cx.jiffies());
        self.free_forgotten(cx);
        if self.queues[queue].in_flight == 0 {
            self.wf2q.drop_pending(queue);
        }
    }

    fn trace_expiry(&mut self, cx: &Cx<'_>, queue: QueueId, why: BudgetEnd, slow: bool) {
        let entity = &self.wf2q.entities[queue];
        let state = &self.queues[queue];
        let event = Event::BudgetExpired {
            queue: state.name(),
            why,
            slow,
            service: entity.service,
            budget: entity.budget,
            in_flight: state.in_flight,
        };
        self.trace.event(cx.now, event);
    }
}
