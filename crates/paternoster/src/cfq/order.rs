//! Which of a queue's requests is next: the sweep of `parts/sweep.rs`.

use crate::arena::RequestId;
use crate::cfq::Cfq;
use crate::cfq::queue::queue_of;
use crate::parts::sweep::Sweep;
use crate::request::Sector;
use crate::scheduler::Cx;
use crate::trace::Trace;

impl<T: Trace> Cfq<T> {
    /// How the head moves on from `from`.
    #[inline]
    pub(super) fn sweep(&self, from: Sector) -> Sweep {
        let back_max = self.tunables.back_seek_max();
        Sweep { from, back_max, back_penalty: self.tunables.back_seek_penalty() }
    }

    /// The request to send after `rq`, from its start.
    pub(super) fn follower(&self, cx: &Cx<'_>, rq: RequestId) -> Option<RequestId> {
        let sorted = &self.queues[queue_of(cx.requests, rq)].sorted;
        self.sweep(cx.requests[rq].sector).follower(cx.requests, sorted, rq)
    }
}
