//! Sending a request of the queue whose turn it is, or one of another in its stead.

use crate::arena::RequestId;
use crate::bfq::Bfq;
use crate::bfq::queue::{QueueId, queue_of};
use crate::io_context::IoClass;
use crate::request::SectorCount;
use crate::scheduler::Cx;
use crate::trace::{BudgetEnd, Event, Trace, WaitReason};

impl<T: Trace> Bfq<T> {
    /// The next request for the device.
    pub(super) fn poll(&mut self, cx: &mut Cx<'_>) -> Option<RequestId> {
        if self.symmetry.busy() == 0 {
            return None;
        }
        if self.tunables.strict_guarantees() && self.in_driver > 0 {
            self.trace.event(cx.now, Event::Waiting { why: WaitReason::OneAtATime });
            return None;
        }
        let queue = self.select(cx)?;
        let rq = self.queues[queue].next().expect("a queue is selected for its requests");
        self.send(cx, queue, rq);
        if let Some(active) = self.in_service.filter(|&active| active != queue) {
            let (queue, instead_of) = (self.queues[queue].name(), self.queues[active].name());
            self.trace.event(cx.now, Event::Injected { queue, instead_of });
        }
        Some(rq)
    }

    /// Takes `rq` out of its queue for the device.
    fn send(&mut self, cx: &mut Cx<'_>, queue: QueueId, rq: RequestId) {
        let charge = self.charge_of(cx, queue, rq);
        self.charge(cx, queue, charge);
        let in_service = self.in_service == Some(queue);
        if in_service {
            self.note_measured(rq);
        } else {
            self.waiting.injected = self.waiting.injected + charge;
        }
        // Before it leaves, so that a queue emptied by this stays counted as active.
        self.queues[queue].in_flight += 1;
        self.sample_rate(cx, rq);
        self.remove(cx, queue, rq);
        if in_service {
            self.update_raising(cx, queue);
            let idle_class = self.wf2q.entities[queue].class == IoClass::Idle;
            if idle_class && self.symmetry.busy() > 1 {
                self.expire(cx, queue, BudgetEnd::Exhausted);
            }
        }
        self.in_driver += 1;
    }

    /// The queue, and the groups above it, are charged for service.
    pub(super) fn charge(&mut self, cx: &Cx<'_>, queue: QueueId, service: SectorCount) {
        let state = &mut self.queues[queue];
        if state.served_since_busy == 0 {
            state.first_served = cx.jiffies();
        }
        if self.wf2q.entities[queue].factor > 1 {
            state.raising.served += u64::from(service.0);
        }
        state.served_since_busy += u64::from(service.0);
        self.wf2q.charge(queue, service);
        self.free_forgotten(cx);
    }

    /// A request that was handed back, and that the elevator kept, goes to the device again, past
    /// all queues and free of charge.
    pub(super) fn send_again(&mut self, cx: &Cx<'_>, rq: RequestId) {
        self.queues[queue_of(cx.requests, rq)].in_flight += 1;
        self.in_driver += 1;
    }
}
