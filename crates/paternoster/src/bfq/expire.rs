//! The end of a service: what the queue is charged for it, what budget it gets for its next one,
//! and where it goes.
//!
//! A service may be slow because the queue seeks or because its users think. Then the queue is
//! charged for the time, as if the device had served at its peak rate. Otherwise it is charged only
//! for the sectors that it was served.

use crate::bfq::Bfq;
use crate::bfq::budget_bounds::{DEFAULT_MAX, default_timeout};
use crate::bfq::queue::QueueFate;
use crate::bfq::queue_id::QueueId;
use crate::bfq::wf2q::{Leaving, Service};
use crate::request::SectorCount;
use crate::scheduler::Cx;
use crate::time::Instant;
use crate::trace::{BfqEvent, BudgetEnd, Event, QueueEvent, Trace};

/// Shorter services say nothing of speed, in µs.
const SHORT_SERVICE_US: u64 = 1000;
/// Longer ones are slow if they got less than half of the maximum.
const LONG_SERVICE_US: u64 = 20_000;
/// The time that a short service is charged for, in ms: on a device that rotates, and on one that
/// does not.
const SHORT_SERVICE_MS: [u64; 2] = [8, 2];

/// How fast a service was.
#[derive(Clone, Copy, Debug)]
struct ServiceSpeed {
    slow: bool,
    /// The time for which it would be charged, in ms.
    millis: u64,
}

impl<T: Trace> Bfq<T> {
    /// Ends the service now.
    #[cold]
    #[inline(never)]
    pub(super) fn expire(&mut self, cx: &Cx, queue: QueueId, why: BudgetEnd) {
        self.expire_as_of(cx, queue, why, cx.now);
    }

    /// Ends the service because the device has idled in vain. The time since it began to idle does
    /// not count.
    pub(super) fn expire_after_idling(&mut self, cx: &Cx, queue: QueueId, why: BudgetEnd) {
        self.expire_as_of(cx, queue, why, self.idling.since);
    }

    fn expire_as_of(&mut self, cx: &Cx, queue: QueueId, why: BudgetEnd, end: Instant) {
        let speed = self.service_speed(cx, queue, end);
        let raised = self.is_raised(queue);
        let late = why == BudgetEnd::Timeout && self.has_third_left(queue);
        self.charge_idling(cx, queue);
        if !raised && (speed.slow || late) {
            self.charge_time(cx, queue, speed.millis);
        }
        self.trace_expiry(cx, queue, why, speed.slow);
        if self.tunables.low_latency() {
            self.note_for_raising(cx, queue, raised);
        }
        self.service_time_probe.abort();
        self.adapt_budget(cx, queue, why);
        if self.leave(cx, queue, why) == QueueFate::Freed {
            return;
        }
        let state = &mut self.queues[queue];
        let by_budget = matches!(why, BudgetEnd::Timeout | BudgetEnd::Exhausted);
        if !state.busy && !by_budget {
            state.resumable = true;
        } else {
            self.wf2q.reset_service(queue);
        }
        self.wf2q.reset_service_of_parents(queue);
    }

    /// Prepares weight raising at the end of a service: the time since the queue was raised starts
    /// again, and a queue that has run empty may be soft real time next.
    fn note_for_raising(&mut self, cx: &Cx, queue: QueueId, raised: bool) {
        let now = cx.jiffies();
        let state = &mut self.queues[queue];
        if !raised {
            state.restart_raising(now);
        }
        if state.is_empty() {
            if state.in_flight == 0 {
                self.update_soft_rt_bound(cx, queue);
            } else {
                state.soft_rt.due = true;
            }
        }
    }

    /// How fast the service was, if it ended at `end`.
    fn service_speed(&self, cx: &Cx, queue: QueueId, end: Instant) -> ServiceSpeed {
        let state = &self.queues[queue];
        if !state.synchrony.is_sync() {
            return ServiceSpeed { slow: false, millis: 0 };
        }
        let micros = end.wrapping_since(self.service_began).as_nanos() / 1000;
        if micros < SHORT_SERVICE_US {
            let millis = SHORT_SERVICE_MS[usize::from(!cx.device.rotational)];
            return ServiceSpeed { slow: state.is_seeky(), millis };
        }
        let slow = if micros > LONG_SERVICE_US {
            self.wf2q.service(queue) < SectorCount(self.budgets.max().0 / 2)
        } else {
            state.is_seeky()
        };
        ServiceSpeed { slow, millis: micros / 1000 }
    }

    /// Charges the queue as if it had been served at the peak rate for that time, up to the
    /// maximum. The default timeout is the measure, even if another one is tuned.
    fn charge_time(&mut self, cx: &Cx, queue: QueueId, millis: u64) {
        let full = cx.device.hz.millis(default_timeout(cx.device.hz));
        let whole = u64::from(self.budgets.max().0);
        let want = whole * millis.min(full) / full.max(1);
        self.charge_up_to(cx, queue, SectorCount(u32::try_from(want).unwrap_or(u32::MAX)));
    }

    /// Charges the queue for what others lost if the device idled for it, where that is tuned so.
    fn charge_idling(&mut self, cx: &Cx, queue: QueueId) {
        if !self.tunables.charge_waiting() {
            return;
        }
        let of_group = &mut self.groups[self.wf2q.group_of(queue)].unjudged;
        let lost = self.idling_charge.end_service(cx.now, of_group);
        if lost > SectorCount(0) {
            let service = self.wf2q.service(queue).0;
            self.charge_up_to(cx, queue, SectorCount(service.saturating_add(lost.0)));
        }
    }

    /// Charges the queue as if it had been served so much in its service, unless it was served
    /// more.
    fn charge_up_to(&mut self, cx: &Cx, queue: QueueId, want: SectorCount) {
        let service = self.wf2q.service(queue);
        let want = want.max(service);
        self.wf2q.set_budget(queue, self.wf2q.budget(queue).max(want));
        let more = SectorCount(want.0 - service.0);
        self.charge(cx, queue, more);
    }

    /// Adapts the queue's budget for its next service: more if the bounds cut this one short, less
    /// if the queue did not use what it had.
    fn adapt_budget(&mut self, cx: &Cx, queue: QueueId, why: BudgetEnd) {
        let (least, most) = (self.budgets.lower(), self.greatest_budget());
        let state = &mut self.queues[queue];
        let before = state.max_budget;
        let times = |factor: u32| SectorCount(before.0.saturating_mul(factor)).min(most);
        let wanted = if state.raising().is_raised() {
            if state.synchrony.is_sync() { SectorCount(2 * least.0) } else { most }
        } else if !state.synchrony.is_sync() {
            most
        } else {
            match why {
                BudgetEnd::TooIdle if state.in_flight > 0 => times(2),
                BudgetEnd::TooIdle if before.0 > 5 * least.0 => SectorCount(before.0 - 4 * least.0),
                BudgetEnd::TooIdle => least,
                BudgetEnd::Timeout => times(2),
                BudgetEnd::Exhausted => times(4),
                BudgetEnd::NoMoreRequests => self.wf2q.service(queue).max(least),
                BudgetEnd::Preempted => return,
            }
        };
        let learned = self.budgets.is_settled() && self.tunables.max_budget() == SectorCount(0);
        state.max_budget = if learned { wanted.min(most) } else { wanted };
        if let Some(next) = state.next() {
            let budget = state.max_budget.max(self.charge_of(cx, queue, next));
            self.wf2q.set_budget(queue, budget);
        }
    }

    /// The most that a queue may have served in its next service. In Linux that is a guess until
    /// the device was measured, and on a fast one its injected requests use it up before its
    /// service begins. Where those who think pay for it, nobody is cut off for a guess.
    fn greatest_budget(&self) -> SectorCount {
        let max = self.budgets.max();
        let is_tuned = self.tunables.max_budget() > SectorCount(0);
        let is_guess = !is_tuned && !self.peak_rate.is_measured();
        if self.tunables.charge_waiting() && is_guess { max.max(DEFAULT_MAX) } else { max }
    }

    /// The queue leaves service: it goes idle if it is empty, unless it was preempted and its share
    /// only holds if it keeps its place.
    pub(super) fn leave(&mut self, cx: &Cx, queue: QueueId, why: BudgetEnd) -> QueueFate {
        self.plan_split_of_seeky(cx, queue);
        let keeps_place = why == BudgetEnd::Preempted && self.idling_guarantees_service(queue);
        let state = &mut self.queues[queue];
        if state.is_empty() && !keeps_place {
            if state.in_flight == 0 {
                state.go_idle(cx.jiffies());
            }
            self.remove_busy(cx, queue, Service::Ends);
        } else {
            self.reinsert(cx, queue, Service::Ends);
            if !self.queues[queue].is_empty() {
                self.index_position(cx, queue);
            }
        }
        self.stop_idle_timer(queue);
        self.in_service = None;
        self.wf2q.leave_service(queue);
        self.free_queue_if_unused(cx, queue)
    }

    /// The queue stops being busy.
    pub(super) fn remove_busy(&mut self, cx: &Cx, queue: QueueId, service: Service) {
        let state = &mut self.queues[queue];
        state.busy = false;
        let name = state.name();
        self.trace.event(cx.now, Event::Queue(QueueEvent::NotBusy { queue: name }));
        self.busy.remove(self.wf2q.class_of(queue), self.queues[queue].raising());
        self.deactivate(cx, queue, Leaving::KeepOnIdleTree, service);
        if self.queues[queue].in_flight == 0 {
            self.wf2q.drop_pending(queue);
        }
    }

    fn trace_expiry(&mut self, cx: &Cx, queue: QueueId, why: BudgetEnd, slow: bool) {
        let state = &self.queues[queue];
        let event = Event::Bfq(BfqEvent::BudgetExpired {
            queue: state.name(),
            why,
            slow,
            service: self.wf2q.service(queue),
            budget: self.wf2q.budget(queue),
            in_flight: state.in_flight,
        });
        self.trace.event(cx.now, event);
    }
}
