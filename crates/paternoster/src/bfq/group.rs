//! What BFQ keeps of a group besides its server, and how queues move from one group to another.

use crate::arena::GroupId;
use crate::bfq::Bfq;
use crate::bfq::queue_id::QueueId;
use crate::bfq::wf2q::{Leaving, Service};
use crate::io_context::IoPrio;
use crate::parts::position_index::PositionIndex;
use crate::parts::service_speed::Unjudged;
use crate::scheduler::Cx;
use crate::trace::{BudgetEnd, Trace};

/// What BFQ keeps of a group.
#[derive(Debug, Default)]
pub(super) struct GroupState {
    /// The shared queues of asynchronous requests, by class and level.
    pub(super) async_queues: [Option<QueueId>; IoPrio::ASYNC_SLOTS],
    /// Its queues by where their next requests are.
    pub(super) positions: PositionIndex<QueueId>,
    /// The stable-merge candidate: the sync queue that was created last. New queues may merge with
    /// it.
    pub(super) last_created: Option<QueueId>,
    /// Services of its queues that the speed of the device was not judged by.
    pub(super) unjudged: Unjudged,
}

impl<T: Trace> Bfq<T> {
    /// Creates the state of a group, after that of its parents.
    pub(super) fn ensure_group(&mut self, cx: &Cx, group: GroupId) {
        if self.groups.contains_key(group) {
            return;
        }
        self.groups.add(group, GroupState::default);
        match cx.groups[group].parent {
            None => self.wf2q.set_root(group, cx.jiffies(), cx.device.hz),
            Some(parent) => {
                self.ensure_group(cx, parent);
                let weight = cx.groups[group].weight().value();
                self.wf2q.add_group(group, parent, weight);
            }
        }
    }

    /// The group's weight has changed: it counts from when the group is scheduled next.
    pub(super) fn follow_weight(&mut self, cx: &Cx, group: GroupId) {
        if !self.groups.contains_key(group) {
            return;
        }
        self.wf2q.set_group_weight(group, cx.groups[group].weight().value());
    }

    /// Moves the queue to another group. The queue is freed by that if nothing needs it.
    ///
    /// The group that it leaves, and the parents of that, stay counted as groups with I/O pending
    /// until the last queue of one of them has run empty there: as in Linux.
    pub(super) fn move_queue(&mut self, cx: &Cx, queue: QueueId, group: GroupId) {
        if self.wf2q.group_of(queue) == group {
            return;
        }
        // It stays until it has arrived.
        self.queues[queue].keepers += 1;
        if self.in_service == Some(queue) {
            self.expire(cx, queue, BudgetEnd::Preempted);
        }
        let busy = self.queues[queue].busy;
        if busy {
            self.deactivate(cx, queue, Leaving::Retire, Service::GoesOn);
        } else {
            self.remove_idle(cx, queue);
        }
        self.drop_last_created(queue);
        self.unindex_position(queue);
        self.wf2q.set_group(queue, group);
        if busy {
            self.index_position(cx, queue);
            self.activate(cx, queue);
        }
        self.queues[queue].keepers -= 1;
        self.free_queue_if_unused(cx, queue);
    }

    /// Removes a group without requests and I/O contexts. Contexts that have left it and have made
    /// no request since may still use queues of it: these queues move to the root.
    pub(super) fn remove_group(&mut self, cx: &Cx, group: GroupId) {
        if !self.groups.contains_key(group) {
            return;
        }
        let root = cx.groups.root();
        while let Some(queue) = self.wf2q.any_member(group) {
            if self.queues[queue].busy {
                self.move_queue(cx, queue, root);
            } else {
                self.remove_idle(cx, queue);
            }
        }
        let rest: Vec<QueueId> = self.wf2q.queues_of(group).collect();
        for queue in rest {
            self.move_queue(cx, queue, root);
        }
        let left = self.groups.remove(group).expect("it is there");
        for queue in std::mem::take(left).async_queues.into_iter().flatten() {
            self.queues[queue].users -= 1;
            self.free_queue_if_unused(cx, queue);
        }
        self.wf2q.remove_group(group);
    }
}
