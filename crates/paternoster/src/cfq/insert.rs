//! Putting a request into its queue, and which of a queue's requests is next.

use std::cmp::Reverse;

use crate::arena::RequestId;
use crate::cfq::Cfq;
use crate::cfq::queue::QueueId;
use crate::parts::sort_list::SortList;
use crate::request::{Request, Sector};
use crate::scheduler::Cx;
use crate::time::Nanos;
use crate::trace::Trace;

/// Sectors in a KiB.
const SECTORS_PER_KIB: u64 = 2;

impl<T: Trace> Cfq<T> {
    pub(super) fn insert_request(&mut self, cx: &mut Cx<'_>, rq: RequestId) {
        let queue = self.queue_of[rq];
        let expire = if cx.requests[rq].is_sync() {
            self.tunables.fifo_expire_sync
        } else {
            self.tunables.fifo_expire_async
        };
        let deadline = cx.now + Nanos::from_millis(expire.cast_unsigned());
        let state = &mut self.queues[queue];
        state.fifo.push(cx.requests, rq, deadline);
        state.sorted.insert(cx.requests, rq);
        self.queued += 1;
        self.prefer(cx, queue, rq);
        if self.queues[queue].place.is_none() {
            self.list(cx, queue);
        }
    }

    /// Makes `rq` the queue's next request if it is the better one.
    pub(super) fn prefer(&mut self, cx: &Cx<'_>, queue: QueueId, rq: RequestId) {
        let next = self.queues[queue].next;
        self.queues[queue].next = self.better(cx, next, Some(rq), self.head);
    }

    /// The queue wants turns from now on.
    fn list(&mut self, cx: &Cx<'_>, queue: QueueId) {
        self.place(cx.now, queue);
        self.join_group(cx, self.queues[queue].group);
    }

    /// The queue wants no turn any more.
    pub(super) fn unlist(&mut self, cx: &Cx<'_>, queue: QueueId) {
        self.unplace(queue);
        self.leave_group(cx, self.queues[queue].group);
    }

    /// Takes a waiting request out of its queue; `follower` is the one to send next.
    pub(super) fn take_out(
        &mut self,
        cx: &mut Cx<'_>,
        queue: QueueId,
        rq: RequestId,
        follower: Option<RequestId>,
    ) {
        let state = &mut self.queues[queue];
        state.next = follower;
        state.sorted.remove(cx.requests, rq);
        state.fifo.remove(cx.requests, rq);
        self.queued -= 1;
    }

    /// `absorbed` has become part of `rq`, of the same queue.
    pub(super) fn absorb(&mut self, cx: &mut Cx<'_>, rq: RequestId, absorbed: RequestId) {
        let state = &mut self.queues[self.queue_of[rq]];
        if state.next == Some(absorbed) {
            state.next = Some(rq);
        }
        state.sorted.remove(cx.requests, absorbed);
        state.fifo.absorb(cx.requests, rq, absorbed);
        self.queued -= 1;
        self.unbind(absorbed);
    }

    /// The request to send after `rq`: the one behind it, from the last on the first, or the one
    /// before it, whichever is cheaper to reach from its start.
    pub(super) fn follower(&self, cx: &Cx<'_>, rq: RequestId) -> Option<RequestId> {
        let sorted = &self.queues[self.queue_of[rq]].sorted;
        let after = SortList::after(cx.requests, rq)
            .or_else(|| sorted.first(cx.requests).filter(|&first| first != rq));
        let before = SortList::before(cx.requests, rq);
        self.better(cx, after, before, cx.requests[rq].sector)
    }

    /// Which of two requests to send from a head at `from`: sync before async, then the cheaper
    /// to reach; a little way back counts `back_seek_penalty` times, a longer one is a new sweep.
    fn better(
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
        let rank = |rq: &Request| (self.cost(rq, from), Reverse(rq.sector));
        if rank(rq_a) <= rank(rq_b) { a } else { b }
    }

    /// How far the head has to go; where the request is too far behind it, its place in the next
    /// sweep, beyond all that are of this one. Computed without a jump: which it is, is as good as
    /// random.
    fn cost(&self, rq: &Request, from: Sector) -> u128 {
        let back_max = self.tunables.back_seek_max.cast_unsigned() * SECTORS_PER_KIB;
        let penalty = self.tunables.back_seek_penalty.cast_unsigned();
        let distance = rq.sector.0.abs_diff(from.0);
        let ahead = rq.sector >= from;
        let too_far_behind = !ahead && distance > back_max;
        let here = distance.saturating_mul(if ahead { 1 } else { penalty });
        let cost = if too_far_behind { rq.sector.0 } else { here };
        (u128::from(too_far_behind) << u64::BITS) | u128::from(cost)
    }
}
