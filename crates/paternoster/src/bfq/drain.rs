//! Draining: all waiting requests leave the scheduler, when it is replaced or the device is
//! removed.

use crate::arena::RequestId;
use crate::bfq::Bfq;
use crate::bfq::queue_id::QueueId;
use crate::scheduler::Cx;
use crate::trace::{BudgetEnd, ElevatorEvent, Event, Trace};

impl<T: Trace> Bfq<T> {
    /// Takes out every request that waits, queue by queue. The queue in service is expired.
    pub(super) fn drain_queues(&mut self, cx: &mut Cx, out: &mut Vec<RequestId>) {
        if let Some(in_service) = self.in_service {
            self.expire(cx, in_service, BudgetEnd::Timeout);
        }
        let requests = self.queued;
        let waiting = self.queues.iter().filter(|(_, state)| !state.is_empty());
        let queues: Vec<QueueId> = waiting.map(|(queue, _)| queue).collect();
        for queue in queues {
            while let Some(rq) = self.queues[queue].next() {
                self.remove_request(cx, queue, rq);
                out.push(rq);
            }
        }
        for &rq in out.iter() {
            self.unbind_request(cx, rq);
        }
        self.trace.event(cx.now, Event::Elevator(ElevatorEvent::Drained { requests }));
    }
}
