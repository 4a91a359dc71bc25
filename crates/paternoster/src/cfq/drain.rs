//! Gives up all waiting requests, when the scheduler is switched or the device goes away.

use crate::arena::RequestId;
use crate::cfq::Cfq;
use crate::cfq::queue_id::queue_of;
use crate::scheduler::Cx;
use crate::trace::{ElevatorEvent, Event, SliceEnd, Trace};

impl<T: Trace> Cfq<T> {
    /// Takes out all waiting requests, group by group and queue by queue. Each queue has a slice
    /// for it.
    pub(super) fn drain_queues(&mut self, cx: &mut Cx, out: &mut Vec<RequestId>) {
        if self.active.is_some() {
            self.expire(cx, SliceEnd::Drain);
        }
        let requests = self.queued;
        while let Some(queue) = self.find_to_drain(cx) {
            self.activate(cx, queue);
            while let Some(rq) = self.queues[queue].next() {
                self.remove_request(cx, queue, rq);
                out.push(rq);
            }
            self.expire(cx, SliceEnd::Drain);
        }
        for &rq in out.iter() {
            self.unbind_request(cx, queue_of(&cx.requests, rq), rq);
        }
        self.trace.event(cx.now, Event::Elevator(ElevatorEvent::Drained { requests }));
    }
}
