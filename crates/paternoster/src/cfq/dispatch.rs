//! Sending a request of the active queue.

use crate::arena::RequestId;
use crate::cfq::Cfq;
use crate::cfq::queue::QueueId;
use crate::scheduler::Cx;
use crate::trace::Trace;

impl<T: Trace> Cfq<T> {
    /// Sends the next request of `queue`, which has one.
    pub(super) fn send_from(&mut self, cx: &mut Cx<'_>, queue: QueueId) -> RequestId {
        let rq = self
            .overdue(cx, queue)
            .or(self.queues[queue].next)
            .expect("a queue is selected for its requests");
        let follower = self.follower(cx, rq);
        self.take_out(cx, queue, rq, follower);
        self.queues[queue].sent += 1;
        self.head = cx.requests[rq].end();
        rq
    }

    /// The queue's oldest request, if it is late; looked at once a turn.
    fn overdue(&mut self, cx: &Cx<'_>, queue: QueueId) -> Option<RequestId> {
        let state = &mut self.queues[queue];
        if std::mem::replace(&mut state.fifo_done, true) {
            return None;
        }
        state.fifo.first().filter(|&oldest| cx.now >= cx.requests[oldest].deadline)
    }
}
