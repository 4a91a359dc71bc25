//! Which of a queue's requests is next: a sweep over the device that may turn back a little.
//!
//! CFQ's order is alike, but prefers to look at the oldest request elsewhere and weighs equal
//! distances otherwise.

use std::cmp::Reverse;

use crate::arena::RequestId;
use crate::bfq::Bfq;
use crate::bfq::queue::QueueId;
use crate::parts::sort_list::SortList;
use crate::request::{Request, Sector};
use crate::scheduler::Cx;
use crate::trace::{Event, Trace};

impl<T: Trace> Bfq<T> {
    /// The request to send after `rq`, which is leaving `queue`: the oldest, if it is overdue and
    /// was not looked at in this turn; else the one behind `rq`, from the last on the first, or the
    /// one before it, whichever is cheaper to reach.
    pub(super) fn follower(
        &mut self,
        cx: &Cx<'_>,
        queue: QueueId,
        rq: RequestId,
    ) -> Option<RequestId> {
        if let Some(oldest) = self.take_overdue(cx, queue, rq) {
            return Some(oldest);
        }
        let sorted = &self.queues[queue].sorted;
        let after = SortList::after(cx.requests, rq)
            .or_else(|| sorted.first(cx.requests).filter(|&first| first != rq));
        let before = SortList::before(cx.requests, rq);
        self.better(cx, after, before, cx.requests[rq].sector)
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

    /// Which of two requests to send from a head at `from`: sync before async, metadata (what has
    /// the priority flag) before data, then the cheaper to reach; a little way back counts `back_seek_penalty` times, a
    /// longer one is a new sweep.
    pub(super) fn better(
        &self,
        cx: &Cx<'_>,
        a: Option<RequestId>,
        b: Option<RequestId>,
        from: Sector,
    ) -> Option<RequestId> {
        let (Some(first), Some(second)) = (a, b) else { return a.or(b) };
        let (rq_a, rq_b) = (&cx.requests[first], &cx.requests[second]);
        if rq_a.is_sync() != rq_b.is_sync() {
            return if rq_a.is_sync() { a } else { b };
        }
        if rq_a.has_prio() != rq_b.has_prio() {
            return if rq_a.has_prio() { a } else { b };
        }
        let rank = |rq: &Request| (self.cost(rq, from), Reverse(rq.sector));
        if rank(rq_a) <= rank(rq_b) { a } else { b }
    }

    /// How far the head has to go; where the request is too far behind it, its place in the next
    /// sweep, beyond all that are of this one. Computed without a jump: which it is, is as good as
    /// random.
    fn cost(&self, rq: &Request, from: Sector) -> u128 {
        let back_max = u64::from(self.tunables.back_seek_max().0);
        let penalty = u64::from(self.tunables.back_seek_penalty());
        let distance = rq.sector.0.abs_diff(from.0);
        let ahead = rq.sector >= from;
        let too_far_behind = !ahead && distance > back_max;
        let here = distance.saturating_mul(if ahead { 1 } else { penalty });
        let cost = if too_far_behind { rq.sector.0 } else { here };
        (u128::from(too_far_behind) << u64::BITS) | u128::from(cost)
    }
}
