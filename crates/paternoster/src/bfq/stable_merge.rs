//! Queues made one right after the other are likely to work together for good: their tasks were
//! started by one program. They merge at once where queues are not merged for their positions, and
//! elsewhere when both have kept running for a while.

use crate::arena::IocId;
use crate::bfq::Bfq;
use crate::bfq::context::SYNC;
use crate::bfq::queue::QueueId;
use crate::scheduler::Cx;
use crate::trace::Trace;

impl<T: Trace> Bfq<T> {
    /// `queue` was just made for `ioc`: the one in which its requests go, which may be that of an
    /// elder brother, made shortly before in the same group.
    ///
    /// After 180 ms it is too late to merge, but only after 600 ms the newborn is the next elder
    /// brother: as in Linux.
    pub(super) fn join_elder(&mut self, cx: &Cx<'_>, queue: QueueId, ioc: IocId) -> QueueId {
        let group = self.wf2q.entities[queue].above;
        let made_at = self.queues[queue].made_at;
        let elder = self.groups[group].last_made.filter(|&elder| {
            let (a, b) = (&self.wf2q.entities[elder], &self.wf2q.entities[queue]);
            self.queues[elder].made_at + self.spans.elder_memory >= made_at
                && a.above == b.above
                && a.level() == b.level()
                && a.class == b.class
        });
        let Some(elder) = elder else {
            self.groups[group].last_made = Some(queue);
            return queue;
        };
        if self.queues[elder].made_at + self.spans.burst < made_at {
            return queue;
        }
        if self.hw_queueing.merges_queues() {
            self.queues[elder].holders += 1;
            // It had one already if it left a queue that it shares, for another group.
            self.drop_elder(cx, ioc);
            self.contexts[ioc].elder = Some(elder);
            return queue;
        }
        let Some(target) = self.set_up_merge(cx, queue, elder) else { return queue };
        if let Some(owner) = self.queues[target].owner {
            self.contexts[owner].stably_merged = true;
        }
        self.contexts[ioc].stably_merged = true;
        self.queues[queue].owner = Some(ioc);
        self.redirect(cx, ioc, queue, target);
        target
    }

    /// Whether the time has come to decide about the elder brother of `ioc`.
    pub(super) fn is_elder_due(&self, cx: &Cx<'_>, queue: QueueId, ioc: IocId) -> bool {
        let state = &self.queues[queue];
        let now = cx.jiffies();
        state.sync
            && self.contexts[ioc].elder.is_some()
            && !state.fresh
            && now > state.split_at + self.spans.merge_delay
            && now > state.made_at + self.spans.merge_delay
    }

    /// Merges `queue` with the elder brother of `ioc`, unless it does better alone: whether it is
    /// waited for matters then.
    pub(super) fn merge_with_elder(
        &mut self,
        cx: &Cx<'_>,
        queue: QueueId,
        ioc: IocId,
    ) -> Option<QueueId> {
        let elder = self.contexts[ioc].elder.expect("it is due");
        let users = self.queues[queue].users.min(self.queues[elder].users);
        let merges = users > 0 && !self.idling_boosts_throughput(cx, queue);
        let target = if merges { self.set_up_merge(cx, queue, elder) } else { None };
        self.drop_elder(cx, ioc);
        let target = target?;
        self.contexts[ioc].stably_merged = true;
        if let Some(owner) = self.queues[target].owner {
            self.contexts[owner].stably_merged = true;
        }
        Some(target)
    }

    /// `ioc` is not to merge with its elder brother any more.
    pub(super) fn drop_elder(&mut self, cx: &Cx<'_>, ioc: IocId) {
        if let Some(elder) = self.contexts[ioc].elder.take() {
            self.queues[elder].holders -= 1;
            self.free_queue_if_unused(cx, elder);
        }
    }

    /// The queue has lost a user: no newborn is to merge with it.
    pub(super) fn forget_last_made(&mut self, queue: QueueId) {
        let group = self.wf2q.entities[queue].above;
        let last_made = &mut self.groups[group].last_made;
        if *last_made == Some(queue) {
            *last_made = None;
        }
    }

    /// Has `ioc` put its requests of that kind into another queue, or into none.
    pub(super) fn set_queue(
        &mut self,
        cx: &Cx<'_>,
        ioc: IocId,
        slot: usize,
        queue: Option<QueueId>,
    ) {
        let context = &mut self.contexts[ioc];
        let before = std::mem::replace(&mut context.queues[slot], queue);
        if let Some(before) = before
            && self.queues[before].owner == Some(ioc)
        {
            self.queues[before].owner = None;
        }
        if slot == SYNC && queue.is_some() && self.contexts[ioc].elder == queue {
            self.drop_elder(cx, ioc);
        }
    }
}
