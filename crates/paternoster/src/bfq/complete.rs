//! What a completion changes: estimates, and whether the turn of the queue in service goes on.

use crate::arena::RequestId;
use crate::bfq::Bfq;
use crate::bfq::queue::{QueueId, queue_of};
use crate::scheduler::Cx;
use crate::trace::{BudgetEnd, Trace};

impl<T: Trace> Bfq<T> {
    /// A request that was sent has completed, or was handed back: the device has done with it.
    pub(super) fn complete_request(&mut self, cx: &Cx<'_>, rq: RequestId) {
        let queue = queue_of(cx.requests, rq);
        self.note_measured_end(cx, rq);
        self.sample_hw_queueing(cx);
        self.in_driver -= 1;
        self.note_end(cx, queue);
        if self.in_service == Some(queue) {
            self.continue_or_end_turn(cx, queue);
        }
        self.unbind_request(cx, rq);
    }

    /// Think times begin; a queue with nothing left in the device may be no longer active.
    fn note_end(&mut self, cx: &Cx<'_>, queue: QueueId) {
        let state = &mut self.queues[queue];
        state.in_flight -= 1;
        if state.in_flight == 0 && !state.busy {
            state.turn_end = cx.jiffies();
            self.wf2q.drop_pending(queue);
        }
        let state = &mut self.queues[queue];
        state.habits.think.request_ended(cx.now);
        self.note_late_completion(cx);
        self.last_completion = cx.now;
        let state = &self.queues[queue];
        self.last_completed = (!state.shared).then_some(queue);
        if state.soft_rt.due
            && state.in_flight == 0
            && state.sorted.is_empty()
            && !self.is_raised_as_interactive(queue)
        {
            self.update_soft_rt_bound(cx, queue);
        }
    }

    /// A request of the queue in service has completed: the device is kept free for the next one,
    /// or the turn may be over.
    fn continue_or_end_turn(&mut self, cx: &Cx<'_>, queue: QueueId) {
        let state = &self.queues[queue];
        let (is_empty, in_flight) = (state.sorted.is_empty(), state.in_flight);
        if is_empty && self.is_idling_better(cx, queue) {
            if in_flight == 0 {
                self.arm_idle_timer(cx, queue);
            }
        } else if self.is_timed_out(cx, queue) {
            self.expire(cx, queue, BudgetEnd::Timeout);
        } else if is_empty {
            self.expire(cx, queue, BudgetEnd::NoMoreRequests);
        }
    }
}
