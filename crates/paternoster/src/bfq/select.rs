//! Which queue to dispatch from, or why to wait.
//!
//! The queue in service is judged first. If its service is to end, the queue that is due takes its
//! place and is judged as well: it may be empty, or its budget too small for its first request.

use crate::bfq::Bfq;
use crate::bfq::queue::Queue;
use crate::bfq::queue_id::QueueId;
use crate::request::Sector;
use crate::scheduler::Cx;
use crate::trace::{BfqEvent, BudgetEnd, ElevatorEvent, Event, Trace, WaitReason};

/// What is to happen with the queue in service.
enum Verdict {
    /// Its next request is dispatched.
    Serve,
    /// It stays in service though it is empty, and requests of others may be injected.
    Wait(WaitReason),
    /// Its service ends.
    Expire(BudgetEnd),
}

impl<T: Trace> Bfq<T> {
    /// Returns the queue to dispatch from; it has a request.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn select(&mut self, cx: &Cx) -> Option<QueueId> {
        let mut candidate = self.in_service;
        if let Some(in_service) = candidate
            && self.is_service_over(cx, in_service)
        {
            self.expire(cx, in_service, BudgetEnd::Timeout);
            candidate = self.serve_next(cx);
        } else if candidate.is_none() {
            candidate = self.serve_next(cx);
        }
        while let Some(queue) = candidate {
            match self.judge(cx, queue) {
                Verdict::Serve => {
                    self.stop_idle_timer(queue);
                    return Some(queue);
                }
                Verdict::Wait(why) => {
                    self.idling_charge.note_idling();
                    let injected = self.inject(cx, queue);
                    if injected.is_none() {
                        self.trace.event(cx.now, Event::Elevator(ElevatorEvent::Waiting { why }));
                    }
                    return injected;
                }
                Verdict::Expire(why) => {
                    self.expire(cx, queue, why);
                    candidate = self.serve_next(cx);
                }
            }
        }
        None
    }

    /// Returns whether the queue's time is over. If it is empty and the device idles for it, the
    /// idle timer decides instead.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn is_service_over(&self, cx: &Cx, queue: QueueId) -> bool {
        self.is_timed_out(cx, queue)
            && !(self.queues[queue].is_empty() && self.is_idling_better(cx, queue))
    }

    /// Returns whether the queue in service has had its time. While the device idles for it, this
    /// is false if less than a third of its budget is left: its service will end soon anyway.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn is_timed_out(&self, cx: &Cx, queue: QueueId) -> bool {
        let state = &self.queues[queue];
        (!state.idling || self.has_third_left(queue)) && state.is_past_deadline(cx.jiffies())
    }

    /// Returns whether a third of the budget or more is left.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn has_third_left(&self, queue: QueueId) -> bool {
        self.wf2q.left(queue) >= i64::from(self.wf2q.budget(queue).0 / 3)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn judge(&self, cx: &Cx, queue: QueueId) -> Verdict {
        let state = &self.queues[queue];
        if let Some(next) = state.next() {
            let charge = self.charge_of(cx, queue, next);
            return if i64::from(charge.0) > self.wf2q.left(queue) {
                Verdict::Expire(BudgetEnd::Exhausted)
            } else {
                Verdict::Serve
            };
        }
        self.judge_empty(cx, queue, state)
    }

    #[cold]
    #[inline(never)]
    fn judge_empty(&self, cx: &Cx, queue: QueueId, state: &Queue) -> Verdict {
        if state.idling {
            Verdict::Wait(WaitReason::IdleTimer)
        } else if state.in_flight > 0 && self.is_idling_better(cx, queue) {
            Verdict::Wait(WaitReason::InFlight)
        } else {
            Verdict::Expire(BudgetEnd::NoMoreRequests)
        }
    }

    /// Puts the queue in service that is due, if one is busy.
    #[cold]
    #[inline(never)]
    fn serve_next(&mut self, cx: &Cx) -> Option<QueueId> {
        self.service_head = Sector(0);
        if self.busy.count() == 0 {
            self.in_service = None;
            return None;
        }
        let now = cx.jiffies();
        let queue = self.take_next(cx, cx.groups.root());
        self.budgets.note_assigned();
        self.queues[queue].prolong_soft_rt(now);
        self.service_began = cx.now;
        let deadline = self.service_deadline(now, queue);
        self.queues[queue].begin_service(deadline);
        self.in_service = Some(queue);
        self.idling_charge.begin_service(cx.now);
        let event = Event::Bfq(BfqEvent::InService {
            queue: self.queues[queue].name(),
            group: self.wf2q.group_of(queue),
            budget: self.wf2q.budget(queue),
            weight: self.wf2q.weight(queue),
        });
        self.trace.event(cx.now, event);
        Some(queue)
    }
}
