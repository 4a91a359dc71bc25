//! Stable merges. Queues that were created one right after the other probably belong to tasks that
//! one program has started, and work together for as long as they live. They merge at creation
//! where queues are not merged for their positions, and elsewhere after both have run for a while.
//!
//! ```text
//!   queue a is created              it is the stable-merge candidate of its group for 600 ms
//!   queue b, at most 180 ms later   merges with a at once, or remembers a and merges 600 ms later
//! ```
//!
//! CFQ merges queues for their positions alone.

use crate::arena::IocId;
use crate::bfq::Bfq;
use crate::bfq::hw_queueing::QueueMerging;
use crate::bfq::queue_id::QueueId;
use crate::scheduler::Cx;
use crate::synchrony::Synchrony;
use crate::trace::Trace;

impl<T: Trace> Bfq<T> {
    /// Returns the queue for the requests of `ioc`, for which `queue` was just created. That is
    /// `queue` itself, or the stable-merge candidate of the group if both merge at once: the queue
    /// that was created last in the group, if that was shortly before.
    ///
    /// After 180 ms it is too late to merge, but only after 600 ms the new queue becomes the next
    /// candidate: as in Linux.
    pub(super) fn merge_at_creation(&mut self, cx: &Cx, queue: QueueId, ioc: IocId) -> QueueId {
        if self.hw_queueing.policy() == QueueMerging::Never {
            return queue;
        }
        let group = self.wf2q.group_of(queue);
        let created_at = self.queues[queue].created_at;
        let candidate = self.groups[group].last_created.filter(|&candidate| {
            self.queues[candidate].created_at + self.times.candidate_memory >= created_at
                && self.wf2q.are_peers(candidate, queue)
        });
        let Some(candidate) = candidate else {
            self.groups[group].last_created = Some(queue);
            return queue;
        };
        if self.queues[candidate].created_at + self.times.burst < created_at {
            return queue;
        }
        if self.hw_queueing.merges_queues() {
            self.queues[candidate].keepers += 1;
            // The context has one already if it left a shared queue to go to another group.
            self.drop_merge_candidate(cx, ioc);
            self.contexts[ioc].merge_candidate = Some(candidate);
            return queue;
        }
        let Some(target) = self.set_up_merge(cx, queue, candidate) else { return queue };
        if let Some(owner) = self.queues[target].owner {
            self.contexts[owner].stably_merged = true;
        }
        self.contexts[ioc].stably_merged = true;
        self.queues[queue].owner = Some(ioc);
        self.redirect(cx, ioc, queue, target);
        target
    }

    /// Returns whether the time has come to decide about the merge candidate of `ioc`.
    pub(super) fn is_stable_merge_due(&self, cx: &Cx, queue: QueueId, ioc: IocId) -> bool {
        if self.contexts[ioc].merge_candidate.is_none() {
            return false;
        }
        let state = &self.queues[queue];
        let now = cx.jiffies();
        state.synchrony.is_sync()
            && !state.fresh
            && now > state.split_at + self.times.merge_delay
            && now > state.created_at + self.times.merge_delay
    }

    /// Merges `queue` with the merge candidate of `ioc`, unless idling for `queue` alone boosts the
    /// throughput. Returns the queue for the requests of `ioc` if that changes.
    pub(super) fn merge_with_candidate(
        &mut self,
        cx: &Cx,
        queue: QueueId,
        ioc: IocId,
    ) -> Option<QueueId> {
        let candidate = self.contexts[ioc].merge_candidate.expect("it is due");
        let users = self.queues[queue].users.min(self.queues[candidate].users);
        let merges = users > 0 && !self.idling_boosts_throughput(cx, queue);
        let target = if merges { self.set_up_merge(cx, queue, candidate) } else { None };
        self.drop_merge_candidate(cx, ioc);
        let target = target?;
        self.contexts[ioc].stably_merged = true;
        if let Some(owner) = self.queues[target].owner {
            self.contexts[owner].stably_merged = true;
        }
        Some(target)
    }

    /// `ioc` loses its merge candidate.
    pub(super) fn drop_merge_candidate(&mut self, cx: &Cx, ioc: IocId) {
        if let Some(candidate) = self.contexts[ioc].merge_candidate.take() {
            self.queues[candidate].keepers -= 1;
            self.free_queue_if_unused(cx, candidate);
        }
    }

    /// No new queue is to merge with `queue` any more.
    pub(super) fn drop_last_created(&mut self, queue: QueueId) {
        let group = self.wf2q.group_of(queue);
        let last_created = &mut self.groups[group].last_created;
        if *last_created == Some(queue) {
            *last_created = None;
        }
    }

    /// Has `ioc` put its requests of that kind into another queue, or into none.
    pub(super) fn set_queue(
        &mut self,
        cx: &Cx,
        ioc: IocId,
        synchrony: Synchrony,
        queue: Option<QueueId>,
    ) {
        let context = &mut self.contexts[ioc];
        let before = std::mem::replace(&mut context.queues[synchrony], queue);
        if let Some(before) = before
            && self.queues[before].owner == Some(ioc)
        {
            self.queues[before].owner = None;
        }
        if synchrony.is_sync() && queue.is_some() && self.contexts[ioc].merge_candidate == queue {
            self.drop_merge_candidate(cx, ioc);
        }
    }
}
