//! Which of a queue's requests is next: in the seek order of `parts/seek_order.rs`, and now and
//! then the oldest.

use crate::arena::RequestId;
use crate::bfq::Bfq;
use crate::bfq::queue_id::QueueId;
use crate::parts::seek_order::SeekOrder;
use crate::request::Sector;
use crate::scheduler::Cx;
use crate::trace::{Event, QueueEvent, Trace};

impl<T: Trace> Bfq<T> {
    /// How the head moves on from `from`.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn seek_order(&self, from: Sector) -> SeekOrder {
        self.tunables.order.seek_order(from)
    }

    /// The request to dispatch after `rq`, which is leaving `queue`: the oldest, if it is overdue;
    /// else whichever is cheaper to reach from there.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn next_after(
        &mut self,
        cx: &Cx,
        queue: QueueId,
        rq: RequestId,
    ) -> Option<RequestId> {
        if let Some(oldest) = self.take_overdue(cx, queue, rq) {
            return Some(oldest);
        }
        let order = self.seek_order(cx.requests[rq].sector);
        self.queues[queue].waiting.next_after(&cx.requests, order, rq)
    }

    /// The queue's oldest request, if it is late and is not `leaving`. It is looked at once a
    /// service, at the first removal of whatever request.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn take_overdue(&mut self, cx: &Cx, queue: QueueId, leaving: RequestId) -> Option<RequestId> {
        let state = &mut self.queues[queue];
        if std::mem::replace(&mut state.fifo_checked, true) {
            return None;
        }
        let overdue = state.waiting.overdue(&cx.requests, cx.now);
        let oldest = overdue.filter(|&oldest| oldest != leaving)?;
        let rq = cx.requests[oldest].name();
        self.trace.event(cx.now, Event::Queue(QueueEvent::Overdue { queue: state.name(), rq }));
        Some(oldest)
    }
}
