//! What a completion changes: estimates, and whether the turn of the active queue goes on.

use crate::arena::RequestId;
use crate::cfq::Cfq;
use crate::cfq::queue::{QueueId, queue_of};
use crate::io_context::IoClass;
use crate::request::Sector;
use crate::scheduler::Cx;
use crate::trace::{ExpireReason, Trace};

impl<T: Trace> Cfq<T> {
    /// A request that was sent has completed.
    pub(super) fn complete_request(&mut self, cx: &Cx<'_>, rq: RequestId) {
        let queue = queue_of(cx.requests, rq);
        self.sample_hw_queueing(cx);
        self.in_driver -= 1;
        let state = &mut self.queues[queue];
        state.in_flight -= 1;
        self.sent[usize::from(state.sync)] -= 1;
        self.groups[state.group].in_flight -= 1;
        self.note_end(cx, queue, rq);
        if self.active == Some(queue) {
            self.continue_or_end_turn(cx, queue, cx.requests[rq].is_sync());
        }
        self.unbind_request(cx, rq);
    }

    /// Think times begin; a sync request that was long on its way slows async ones down.
    fn note_end(&mut self, cx: &Cx<'_>, queue: QueueId, rq: RequestId) {
        let request = &cx.requests[rq];
        let state = &self.queues[queue];
        let group = &mut self.groups[state.group];
        group.think.request_ended(cx.now);
        if !request.is_sync() {
            return;
        }
        if let Some(context) = self.contexts.get_mut(request.ioc) {
            context.think.request_ended(cx.now);
        }
        let tree = state.place.as_ref().map_or_else(|| state.wanted_tree(), |place| place.tree);
        group.trees.tree_mut(tree).think.request_ended(cx.now);
        if request.start + self.tunables.fifo_expire(true) <= cx.now {
            self.last_delayed_sync = cx.now;
        }
    }

    /// A request of the active queue has completed: its slice begins, is stretched or over, or the
    /// device is kept free for the next one.
    fn continue_or_end_turn(&mut self, cx: &Cx<'_>, active: QueueId, sync: bool) {
        if self.queues[active].turn.is_fresh() {
            self.begin_slice(cx, active);
        }
        if self.should_wait_busy(cx, active) {
            self.wait_busy(cx, active);
        }
        let queue = &self.queues[active];
        if queue.turn.is_over(cx.now) {
            self.expire_with_residue(cx, ExpireReason::SliceUsed);
        } else if queue.class() == IoClass::Idle {
            self.expire_with_residue(cx, ExpireReason::IdleClass);
        } else if sync && queue.is_empty() && self.close_cooperator(active).is_none() {
            self.arm_idle_timer(cx, active);
        }
    }

    /// The device has taken a request that ends there.
    pub(super) fn activate_request(&mut self, end: Sector) {
        self.in_driver += 1;
        self.head = end;
    }

    /// The device has handed a request back.
    pub(super) fn deactivate_request(&mut self) {
        self.in_driver -= 1;
    }
}
