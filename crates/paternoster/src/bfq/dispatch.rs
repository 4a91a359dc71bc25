//! Dispatching a request of the queue in service, or one of another queue instead.

use crate::arena::RequestId;
use crate::bfq::Bfq;
use crate::bfq::peak_rate::Dispatched;
use crate::bfq::queue_id::{QueueId, queue_of};
use crate::io_context::IoClass;
use crate::scheduler::Cx;
use crate::trace::{BfqEvent, BudgetEnd, ElevatorEvent, Event, Trace, WaitReason};

impl<T: Trace> Bfq<T> {
    /// The next request for the device.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn dispatch_request(&mut self, cx: &mut Cx) -> Option<RequestId> {
        if self.busy.count() == 0 {
            return None;
        }
        if self.tunables.strict_guarantees() && self.in_driver > 0 {
            self.trace.event(
                cx.now,
                Event::Elevator(ElevatorEvent::Waiting { why: WaitReason::OneAtATime }),
            );
            return None;
        }
        let queue = self.select(cx)?;
        let rq = self.queues[queue].next().expect("a queue is selected for its requests");
        self.dispatch_from(cx, queue, rq);
        if let Some(in_service) = self.in_service.filter(|&in_service| in_service != queue) {
            let (queue, instead_of) = (self.queues[queue].name(), self.queues[in_service].name());
            self.trace.event(cx.now, Event::Bfq(BfqEvent::Injected { queue, instead_of }));
        }
        Some(rq)
    }

    /// Takes `rq` out of its queue and charges the queue for it.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn dispatch_from(&mut self, cx: &mut Cx, queue: QueueId, rq: RequestId) {
        let charge = self.charge_of(cx, queue, rq);
        self.charge(cx, queue, charge);
        let in_service = self.in_service == Some(queue);
        if in_service {
            self.service_time_probe.request_dispatched(rq);
        }
        // Before the request leaves, so that a queue that runs empty stays counted as active.
        self.queues[queue].in_flight += 1;
        self.observe_dispatch(cx, rq, in_service);
        self.remove_request(cx, queue, rq);
        if in_service {
            if self.queues[queue].is_empty() {
                self.idling_charge.note_empty();
            }
            self.update_raising(cx, queue);
            let idle_class = self.wf2q.class_of(queue) == IoClass::Idle;
            if idle_class && self.busy.count() > 1 {
                self.expire(cx, queue, BudgetEnd::Exhausted);
            }
        }
        self.in_driver += 1;
    }

    /// The peak rate may follow from a request on its way to the device, and the head moves.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn observe_dispatch(&mut self, cx: &Cx, rq: RequestId, in_service: bool) {
        let extent = cx.requests[rq].extent();
        let dispatched = Dispatched {
            now: cx.now,
            extent,
            head: self.head,
            in_flight: self.in_driver,
            last_completion: self.last_completion.at(),
        };
        if let Some(rate) = self.peak_rate.observe_dispatch(&dispatched) {
            self.follow_peak_rate(cx, rate);
        }
        self.head = extent.end();
        if in_service {
            self.service_head = self.head;
        }
    }

    /// A requeued request, which the elevator kept, is dispatched again. It bypasses
    /// the queues, and no queue is charged for it.
    pub(super) fn reactivate_request(&mut self, cx: &Cx, rq: RequestId) {
        self.queues[queue_of(&cx.requests, rq)].in_flight += 1;
        self.in_driver += 1;
    }
}
