//! What a completion changes: estimates, and whether the service goes on.

use crate::arena::RequestId;
use crate::bfq::Bfq;
use crate::bfq::hw_queueing::{InService, Load, NewVerdict};
use crate::bfq::queue_id::{QueueId, queue_of};
use crate::scheduler::Cx;
use crate::trace::{BfqEvent, BudgetEnd, Event, QueueEvent, Trace};

impl<T: Trace> Bfq<T> {
    /// A dispatched request has completed or was requeued: it is not in flight any more.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn complete_request(&mut self, cx: &Cx, rq: RequestId) {
        let queue = queue_of(&cx.requests, rq);
        if let Some(time) = self.service_time_probe.request_completed(rq, cx.now) {
            self.adapt_injection(cx, queue, time);
        }
        self.observe_queueing(cx);
        self.idling_charge.complete(cx.requests[rq].sectors.max(self.tunables.least_charge()));
        self.in_driver -= 1;
        self.note_end(cx, queue);
        if self.in_service == Some(queue) {
            self.continue_or_end_service(cx, queue);
        }
        self.unbind_request(cx, rq);
    }

    /// Learns whether the device queues requests itself, from how many it holds.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn observe_queueing(&mut self, cx: &Cx) {
        let load = Load { in_flight: self.in_driver, queued: self.queued };
        let verdict = self.hw_queueing.observe_completion(load, || {
            let queue = &self.queues[self.in_service?];
            let has_short_think_time = queue.io_pattern.has_short_think_time();
            let requests = queue.in_flight + queue.queued();
            Some(InService { has_short_think_time, requests })
        });
        if let Some(NewVerdict { before, now, merging }) = verdict {
            self.trace.event(cx.now, Event::Queue(QueueEvent::HardwareQueueing { before, now }));
            if let Some(on) = merging {
                self.trace.event(cx.now, Event::Bfq(BfqEvent::QueueMerging { on }));
            }
        }
    }

    /// Notes the completion: think time begins, and a queue with nothing in flight may not be
    /// active any more.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn note_end(&mut self, cx: &Cx, queue: QueueId) {
        let state = &mut self.queues[queue];
        state.in_flight -= 1;
        if state.in_flight == 0 && !state.busy {
            state.go_idle(cx.jiffies());
            self.wf2q.drop_pending(queue);
        }
        state.io_pattern.request_ended(cx.now);
        let is_soft_rt_due = state.soft_rt.due
            && state.in_flight == 0
            && state.is_empty()
            && !state.raising().is_interactive();
        let of_one_user = (!state.shared).then_some(queue);
        let last_completion = self.last_completion.replace(cx.now, of_one_user);
        if let Some(rate) = self.peak_rate.observe_completion(cx.now, last_completion) {
            self.follow_peak_rate(cx, rate);
        }
        if is_soft_rt_due {
            self.update_soft_rt_bound(cx, queue);
        }
    }

    /// A request of the queue in service has completed: the device may idle for the next one, or
    /// the service may end.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn continue_or_end_service(&mut self, cx: &Cx, queue: QueueId) {
        let state = &self.queues[queue];
        let (is_empty, in_flight) = (state.is_empty(), state.in_flight);
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
