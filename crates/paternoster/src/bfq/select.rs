//! Whose turn it is: which queue to send from, or why to wait.
//!
//! The queue in service is judged first; if its turn is to end, the one that is due takes its
//! place and is judged in turn: it may be empty, or have too small a budget for its first request.

use crate::bfq::Bfq;
use crate::bfq::queue::{Queue, QueueId};
use crate::request::Sector;
use crate::scheduler::Cx;
use crate::trace::{BudgetEnd, Event, Trace, WaitReason};

/// What is to happen with the queue in service.
enum Verdict {
    /// It sends.
    Serve,
    /// It keeps the device though it is empty; others may be injected.
    Wait(WaitReason),
    /// Its turn ends.
    Expire(BudgetEnd),
}

impl<T: Trace> Bfq<T> {
    /// The queue to send from; it has a request.
    pub(super) fn select(&mut self, cx: &Cx<'_>) -> Option<QueueId> {
        let mut candidate = self.in_service;
        if let Some(active) = candidate
            && self.is_turn_spent(cx, active)
        {
            self.expire(cx, active, BudgetEnd::Timeout);
            candidate = self.serve_next(cx);
        } else if candidate.is_none() {
            candidate = self.serve_next(cx);
        }
        while let Some(queue) = candidate {
            match self.judge(cx, queue) {
                Verdict::Serve => {
                    self.stop_waiting(queue);
                    return Some(queue);
                }
                Verdict::Wait(why) => {
                    self.waiting.waited = true;
                    let injected = self.choose_injected(cx, queue);
                    if injected.is_none() {
                        self.trace.event(cx.now, Event::Waiting { why });
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

    /// Whether the time of the queue's turn is over and it is not empty and waited for, in which
    /// case the idle timer says when to go on.
    fn is_turn_spent(&self, cx: &Cx<'_>, queue: QueueId) -> bool {
        self.is_timed_out(cx, queue)
            && !(self.queues[queue].sorted.is_empty() && self.is_idling_better(cx, queue))
    }

    /// Whether the queue in service has had its time. While it is waited for, that does not count
    /// if it used the most of its budget: it will soon be through.
    pub(super) fn is_timed_out(&self, cx: &Cx<'_>, queue: QueueId) -> bool {
        let state = &self.queues[queue];
        (!state.waiting || self.has_third_left(queue)) && cx.jiffies() >= state.turn_end
    }

    /// Whether a third of the budget or more is left.
    pub(super) fn has_third_left(&self, queue: QueueId) -> bool {
        let entity = &self.wf2q.entities[queue];
        entity.left() >= i64::from(entity.budget.0 / 3)
    }

    fn judge(&self, cx: &Cx<'_>, queue: QueueId) -> Verdict {
        let state = &self.queues[queue];
        if let Some(next) = state.next() {
            let charge = self.charge_of(cx, queue, next);
            return if i64::from(charge.0) > self.wf2q.entities[queue].left() {
                Verdict::Expire(BudgetEnd::Exhausted)
            } else {
                Verdict::Serve
            };
        }
        self.judge_empty(cx, queue, state)
    }

    fn judge_empty(&self, cx: &Cx<'_>, queue: QueueId, state: &Queue) -> Verdict {
        if state.waiting {
            Verdict::Wait(WaitReason::IdleTimer)
        } else if state.in_flight > 0 && self.is_idling_better(cx, queue) {
            Verdict::Wait(WaitReason::InFlight)
        } else {
            Verdict::Expire(BudgetEnd::NoMoreRequests)
        }
    }

    /// Puts the queue in service that is due, if one is busy.
    fn serve_next(&mut self, cx: &Cx<'_>) -> Option<QueueId> {
        self.turn_head = Sector(0);
        if self.symmetry.busy() == 0 {
            self.in_service = None;
            return None;
        }
        let now = cx.jiffies();
        let queue = self.wf2q.serve_next(cx.groups.root(), now);
        self.free_forgotten(cx);
        self.queues[queue].fifo_checked = false;
        self.budgets.note_assigned();
        self.prolong_soft_rt(now, queue);
        self.turn_began = cx.now;
        self.queues[queue].turn_end = self.turn_end(now, queue);
        self.in_service = Some(queue);
        let entity = &self.wf2q.entities[queue];
        self.waiting.begin_turn(entity.service);
        let event = Event::InService {
            queue: self.queues[queue].name(),
            budget: entity.budget,
            weight: entity.weight,
        };
        self.trace.event(cx.now, event);
        Some(queue)
    }

    /// What the queue in service was waited for is there, or is not to be waited for.
    pub(super) fn stop_waiting(&mut self, queue: QueueId) {
        if std::mem::take(&mut self.queues[queue].waiting) {
            self.idling.timer = None;
        }
    }
}
