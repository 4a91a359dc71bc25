//! Putting a request into its queue, and what is learned from it.

use crate::arena::RequestId;
use crate::cfq::Cfq;
use crate::cfq::queue::{Queue, QueueId, queue_of};
use crate::io_context::IoClass;
use crate::request::SectorCount;
use crate::scheduler::Cx;
use crate::trace::Trace;

/// Farther from the end of the queue's last request is a seek, where the device is rotational.
const SEEK_FAR: u64 = 8 * 100;
/// Shorter is a seek where it is not: 32 KiB.
const SEEK_SMALL: SectorCount = SectorCount(64);
/// A request of at most so many bytes does not end the waiting for its queue: it may grow.
const PAGE_BYTES: u64 = 4096;

impl<T: Trace> Cfq<T> {
    /// Takes a request into its queue, and lets it take the device if it may not wait.
    pub(super) fn insert_request(&mut self, cx: &mut Cx<'_>, rq: RequestId) {
        let queue = queue_of(cx.requests, rq);
        self.refresh_priority(cx, queue, cx.requests[rq].ioc);
        self.put_in(cx, queue, rq);
        self.learn(cx, queue, rq);
        if self.active == Some(queue) {
            self.end_waiting(cx, queue, rq);
        } else if let Some(why) = self.should_preempt(cx, rq) {
            self.preempt(cx, queue, why);
        }
    }

    /// Puts a request into the lists of its queue, which wants turns from now on.
    fn put_in(&mut self, cx: &mut Cx<'_>, queue: QueueId, rq: RequestId) {
        let request = &cx.requests[rq];
        let (sync, has_prio) = (request.is_sync(), request.has_prio());
        let deadline = cx.now + self.tunables.fifo_expire(sync);
        let state = &mut self.queues[queue];
        state.fifo.push(cx.requests, rq, deadline);
        state.sorted.insert(cx.requests, rq);
        state.queued += 1;
        state.prio_pending += u32::from(has_prio);
        let group = &mut self.groups[state.group];
        group.queued += 1;
        let served = self.serving.group == Some(state.group);
        group.stats.request_queued(cx.now, served);
        // Its place is that of a queue without this request: the idle window is judged later.
        if !state.is_listed() {
            self.list(cx, queue);
        }
        self.prefer(cx, queue, rq);
        self.queued += 1;
    }

    /// Makes `rq` the queue's next request if it is the better one.
    pub(super) fn prefer(&mut self, cx: &Cx<'_>, queue: QueueId, rq: RequestId) {
        let old = self.queues[queue].next();
        let next = self.sweep(self.head).better(cx.requests, old, Some(rq));
        if next == Some(rq) {
            self.queues[queue].set_next(cx.requests, next);
        }
        if next != old {
            self.index_position(queue);
        }
    }

    /// Brings up to date what is known of how its queue, task, tree and group work.
    fn learn(&mut self, cx: &Cx<'_>, queue: QueueId, rq: RequestId) {
        let request = &cx.requests[rq];
        let Queue { group, sync, .. } = self.queues[queue];
        let slice_idle = self.tunables.slice_idle();
        let group_state = &mut self.groups[group];
        if sync {
            if let Some(context) = self.contexts.get_mut(request.ioc) {
                context.think.request_made(cx.now, slice_idle);
            }
            let tree = self.queues[queue].tree();
            group_state.trees.tree_mut(tree).think.request_made(cx.now, slice_idle);
        }
        group_state.think.request_made(cx.now, self.tunables.group_idle());
        let state = &mut self.queues[queue];
        let seek = if cx.device.rotational {
            state.last_end.is_some_and(|last| request.sector.0.abs_diff(last.0) > SEEK_FAR)
        } else {
            request.sectors < SEEK_SMALL
        };
        state.seeks.push(seek);
        if sync && state.class() != IoClass::Idle {
            self.update_idle_window(cx, queue, rq);
        }
        self.queues[queue].last_end = Some(request.end());
    }

    /// What the active queue was waited for has come. Alone with a small request, its timer goes
    /// on: Linux holds such a request back for a moment, so that it may grow by merging, and here
    /// only the timer is left of that.
    fn end_waiting(&mut self, cx: &Cx<'_>, active: QueueId, rq: RequestId) {
        let turn = &mut self.queues[active].turn;
        if !turn.awaiting {
            return;
        }
        if cx.requests[rq].sectors.bytes() > PAGE_BYTES || self.busy > 1 {
            turn.awaiting = false;
            self.stop_idle_timer(cx);
        } else {
            turn.forced = true;
        }
    }

    /// Takes a waiting request out of its queue, the next one of which is known already.
    pub(super) fn take_out(&mut self, cx: &mut Cx<'_>, queue: QueueId, rq: RequestId) {
        let has_prio = cx.requests[rq].has_prio();
        let state = &mut self.queues[queue];
        state.sorted.remove(cx.requests, rq);
        state.fifo.remove(cx.requests, rq);
        self.forget_waiting(queue, has_prio);
    }

    /// One request less waits in the queue.
    fn forget_waiting(&mut self, queue: QueueId, has_prio: bool) {
        let state = &mut self.queues[queue];
        state.queued -= 1;
        state.prio_pending -= u32::from(has_prio);
        self.queued -= 1;
        self.groups[state.group].queued -= 1;
        if state.is_empty() {
            self.unindex_position(queue);
        }
    }

    /// `absorbed` has become part of `rq`, of the same queue. On the position index the queue
    /// stays where it is.
    pub(super) fn absorb(&mut self, cx: &mut Cx<'_>, rq: RequestId, absorbed: RequestId) {
        let queue = queue_of(cx.requests, rq);
        let has_prio = cx.requests[absorbed].has_prio();
        let state = &mut self.queues[queue];
        if state.next() == Some(absorbed) {
            state.set_next(cx.requests, Some(rq));
        }
        state.sorted.remove(cx.requests, absorbed);
        state.fifo.absorb(cx.requests, rq, absorbed);
        self.forget_waiting(queue, has_prio);
        self.unbind_request(cx, absorbed);
    }
}
