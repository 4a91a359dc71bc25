//! Which of a queue's requests is next: the sweep of `parts/sweep.rs`, and now and then the oldest.

use crate::arena::RequestId;
use crate::bfq::Bfq;
use crate::bfq::queue::QueueId;
use crate::parts::sweep::Sweep;
use crate::request::Sector;
use crate::scheduler::Cx;
use crate::trace::{Event, Trace};

impl<T: Trace> Bfq<T> {
    /// How the head moves on from `from`.
    #[inline]
    pub(super) fn sweep(&self, from: Sector) -> Sweep {
        let back_max = self.tunables.back_seek_max();
        Sweep { from, back_max, back_penalty: self.tunables.back_seek_penalty() }
    }

    /// The request to send after `rq`, which is leaving `queue`: the oldest, if it is overdue and
    /// was not looked at in this turn; else whichever is cheaper to reach from there.
    pub(super) fn follower(
        &mut self,
        cx: &Cx<'_>,
        queue: QueueId,
        rq: RequestId,
    ) -> Option<RequestId> {
        if let Some(oldest) = self.take_overdue(cx, queue, rq) {
            return Some(oldest);
        }
        let sweep = self.sweep(cx.requests[rq].sector);
        sweep.follower(cx.requests, &self.queues[queue].sorted, rq)
    }

    /// The queue's oldest request, if its time is over. It is looked at once a turn, at the first
    /// removal of whatever request.
    fn take_overdue(&mut self, cx: &Cx<'_>, queue: QueueId, gone: RequestId) -> Option<RequestId> {
        let state = &mut self.queues[queue];
        if std::mem::replace(&mut state.fifo_checked, true) {
            return None;
        }
        let oldest = state.fifo.first().filter(|&oldest| oldest != gone)?;
        if cx.now < cx.requests[oldest].deadline {
            return None;
        }
        let rq = cx.requests[oldest].name();
        self.trace.event(cx.now, Event::Overdue { queue: state.name(), rq });
        Some(oldest)
    }
}
