//! Decides which of a queue's requests is next: the next one in seek order
//! (`parts/seek_order.rs`), or the oldest if it is overdue.

use crate::arena::RequestId;
use crate::cfq::Cfq;
use crate::cfq::queue_id::QueueId;
use crate::parts::seek_order::SeekOrder;
use crate::request::Sector;
use crate::scheduler::Cx;
use crate::trace::{Event, QueueEvent, Trace};

impl<T: Trace> Cfq<T> {
    /// The seek order from `from`.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn seek_order(&self, from: Sector) -> SeekOrder {
        self.tunables.order.seek_order(from)
    }

    /// Returns the queue's oldest request if it is overdue; the queue then passes the gate. It is
    /// looked at once in a slice, even if the gate refuses a request afterwards.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn take_overdue(&mut self, cx: &Cx, queue: QueueId) -> Option<RequestId> {
        let state = &mut self.queues[queue];
        if state.slice.is_fifo_checked() {
            return None;
        }
        state.slice.mark_fifo_checked();
        let oldest = state.waiting.overdue(&cx.requests, self.now)?;
        state.slice.force_next();
        let rq = cx.requests[oldest].name();
        self.trace.event(cx.now, Event::Queue(QueueEvent::Overdue { queue: state.name(), rq }));
        Some(oldest)
    }
}
