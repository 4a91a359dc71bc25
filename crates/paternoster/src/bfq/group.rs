//! Groups: what they keep beside their servers, and queues that go from one to another.

use crate::arena::GroupId;
use crate::bfq::Bfq;
use crate::bfq::queue::QueueId;
use crate::bfq::wf2q::{Entity, Past, Turn};
use crate::io_context::IoPrio;
use crate::parts::position_index::PositionIndex;
use crate::scheduler::Cx;
use crate::trace::{BudgetEnd, Trace};

/// What BFQ keeps of a group.
#[derive(Debug, Default)]
pub(super) struct GroupState {
    /// The shared queues of asynchronous requests, by class and level.
    pub(super) async_queues: [Option<QueueId>; IoPrio::KINDS],
    /// Its queues by where their next requests are.
    pub(super) positions: PositionIndex<QueueId>,
    /// The sync queue that was made last, with which newborns may merge.
    pub(super) last_made: Option<QueueId>,
}

impl<T: Trace> Bfq<T> {
    /// Makes the state of a group and, before it, of those above.
    pub(super) fn ensure_group(&mut self, cx: &Cx<'_>, group: GroupId) {
        if self.groups.contains_key(group) {
            return;
        }
        self.groups.insert(group, GroupState::default());
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
    pub(super) fn follow_weight(&mut self, cx: &Cx<'_>, group: GroupId) {
        if !self.groups.contains_key(group) {
            return;
        }
        let Some(entity) = self.wf2q.entity_of(group) else { return };
        let weight = cx.groups[group].weight().value();
        let entity = &mut self.wf2q.entities[entity];
        if std::mem::replace(&mut entity.new_weight, weight) != weight {
            entity.change_due = true;
        }
    }

    /// Has the queue compete in another group. It may go with that, if nobody uses it.
    ///
    /// The group that it leaves stays counted as one with I/O pending, and those above it, until
    /// the last queue of one of them has run empty there: as in Linux.
    pub(super) fn move_queue(&mut self, cx: &Cx<'_>, queue: QueueId, group: GroupId) {
        if self.wf2q.entities[queue].above == group {
            return;
        }
        // It stays until it has arrived.
        self.queues[queue].holders += 1;
        if self.in_service == Some(queue) {
            self.expire(cx, queue, BudgetEnd::Preempted);
        }
        let busy = self.queues[queue].busy;
        if busy {
            self.wf2q.deactivate(queue, Past::Forgotten, Turn::GoesOn, cx.jiffies());
        } else {
            self.wf2q.forget_idle(queue);
        }
        self.free_forgotten(cx);
        self.forget_last_made(queue);
        self.unindex_position(queue);
        self.wf2q.set_group(queue, group);
        if busy {
            self.index_position(cx, queue);
            self.reactivate_busy(cx, queue);
        }
        self.queues[queue].holders -= 1;
        self.free_queue_if_unused(cx, queue);
    }

    /// The group goes; no request of it exists, and no I/O context is in it. Contexts that moved on
    /// and made no request since may still use queues of it: these go to the root.
    pub(super) fn remove_group(&mut self, cx: &Cx<'_>, group: GroupId) {
        if !self.groups.contains_key(group) {
            return;
        }
        let root = cx.groups.root();
        while let Some(queue) = self.wf2q.any_member(group) {
            if self.queues[queue].busy {
                self.move_queue(cx, queue, root);
            } else {
                self.wf2q.forget_idle(queue);
                self.free_forgotten(cx);
            }
        }
        let members = |(queue, entity): (QueueId, &Entity)| {
            (entity.above == group && entity.group.is_none()).then_some(queue)
        };
        let rest: Vec<QueueId> = self.wf2q.entities.iter().filter_map(members).collect();
        for queue in rest {
            self.move_queue(cx, queue, root);
        }
        let state = self.groups.remove(group).expect("it is there");
        for queue in state.async_queues.into_iter().flatten() {
            self.queues[queue].users -= 1;
            self.free_queue_if_unused(cx, queue);
        }
        self.wf2q.remove_group(group);
    }
}
