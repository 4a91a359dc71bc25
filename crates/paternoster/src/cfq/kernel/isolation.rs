//! `group_isolation` of kernels 2.6.35 to 2.6.37: whether a queue without an idle window competes
//! in its own group.
//!
//! ```text
//!   0   placed as SYNC_NOIDLE   ──▶ it competes in the root, and its group is remembered
//!       placed as SYNC later    ──▶ it is back in its group
//!   1   it stays where it is
//! ```
//!
//! The device idles for such queues all together, not for each. In one group they have one idle
//! time at the end; in a group each, they have an idle time each, or none and their groups lose
//! their places.

use crate::arena::{GroupId, RequestId, SideTable};
use crate::cfq::Cfq;
use crate::cfq::kernel::KernelRules;
use crate::cfq::queue_id::QueueId;
use crate::scheduler::Cx;
use crate::trace::{CfqEvent, Event, Trace, Workload};

/// A busy queue was moved to another group, which does not count it yet.
#[derive(Clone, Copy, Debug)]
pub(in crate::cfq) struct MovedBusy;

/// The tunable, and what is to be known because of it.
#[derive(Debug)]
pub(in crate::cfq) struct Isolation {
    /// Whether the kernel has it: queues may move to the root.
    may_move_queues: bool,
    /// The tunable.
    pub(super) queues_stay: bool,
    /// The group from which a queue was moved to the root.
    moved_from: SideTable<QueueId, GroupId>,
    /// The group that counts a request in flight: that of its queue when it was bound. Has entries
    /// only if queues may move.
    counted_in: SideTable<RequestId, GroupId>,
}

impl Isolation {
    pub(in crate::cfq) fn new(kernel: KernelRules) -> Self {
        let (moved_from, counted_in) = (SideTable::new(), SideTable::new());
        let may_move_queues = kernel.may_move_queues();
        Self { may_move_queues, queues_stay: false, moved_from, counted_in }
    }

    /// Forgets the queue, which is freed.
    pub(in crate::cfq) fn forget(&mut self, queue: QueueId) {
        self.moved_from.remove(queue);
    }

    /// How many requests the group is to count, waiting and in flight.
    pub(in crate::cfq) fn counted_by(&self, group: GroupId) -> usize {
        self.counted_in.values().filter(|counted_in| **counted_in == group).count()
    }

    /// Has `group`, that of its queue, count the request while it is in flight.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(in crate::cfq) fn begin_count(&mut self, rq: RequestId, group: GroupId) {
        if self.may_move_queues {
            self.counted_in.insert(rq, group);
        }
    }

    /// The group that counts the request in flight, whose queue is in `group` now.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(in crate::cfq) fn counted_in(&self, rq: RequestId, group: GroupId) -> GroupId {
        if self.may_move_queues { self.counted_in[rq] } else { group }
    }

    /// Ends what a request is counted for.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(in crate::cfq) fn end_count(&mut self, rq: RequestId) {
        if self.may_move_queues {
            self.counted_in.remove(rq);
        }
    }
}

impl<T: Trace> Cfq<T> {
    /// The group to which the queue, which is to be placed, moves; none if it stays.
    fn judge_move(&self, cx: &Cx, queue: QueueId) -> Option<GroupId> {
        if self.isolation.queues_stay {
            return None;
        }
        let state = &self.queues[queue];
        let root = cx.groups.root();
        match state.workload() {
            Workload::SyncNoIdle => (state.group != root).then_some(root),
            Workload::Sync => self.isolation.moved_from.get(queue).copied(),
            Workload::Async => None,
        }
    }

    /// Moves the queue, which is to be placed, if it is to compete in another group. A busy one
    /// leaves the trees of its old group; it has to join the new one once it is placed.
    #[inline]
    pub(in crate::cfq) fn begin_move(&mut self, cx: &Cx, queue: QueueId) -> Option<MovedBusy> {
        if self.isolation.may_move_queues { self.move_as_judged(cx, queue) } else { None }
    }

    #[cold]
    fn move_as_judged(&mut self, cx: &Cx, queue: QueueId) -> Option<MovedBusy> {
        let to = self.judge_move(cx, queue)?;
        let from = self.queues[queue].group;
        let moved = self.move_queue(cx, queue, to);
        if to == cx.groups.root() {
            self.isolation.moved_from.insert(queue, from);
        } else {
            self.isolation.forget(queue);
        }
        moved
    }

    /// Has the new group count the queue, which is placed there, if it was busy as it moved.
    #[inline]
    pub(in crate::cfq) fn end_move(&mut self, cx: &Cx, queue: QueueId, moved: Option<MovedBusy>) {
        if moved.is_some() {
            self.join_group_of(cx, queue);
        }
    }

    #[cold]
    fn join_group_of(&mut self, cx: &Cx, queue: QueueId) {
        self.join_group(cx, self.queues[queue].group);
    }

    /// Has the queue belong to another group. A busy one is on no tree afterwards.
    fn move_queue(&mut self, cx: &Cx, queue: QueueId, to: GroupId) -> Option<MovedBusy> {
        let state = &self.queues[queue];
        let (name, from, waiting) = (state.name(), state.group, state.queued());
        let moved = state.is_busy().then_some(MovedBusy);
        if moved.is_some() {
            self.take_off_tree(queue);
            self.leave_group(cx, from);
        }
        self.queues[queue].group = to;
        self.groups[from].queued -= waiting;
        self.groups[to].queued += waiting;
        self.trace.event(cx.now, Event::Cfq(CfqEvent::QueueMoved { queue: name, from, to }));
        moved
    }

    /// Has the root take over what is left of the group, which is about to go: queues that contexts
    /// of other groups share since both were in the root.
    #[cold]
    pub(in crate::cfq) fn move_all_to_root(&mut self, cx: &Cx, group: GroupId) {
        if !self.isolation.may_move_queues {
            return;
        }
        let root = cx.groups.root();
        self.isolation.moved_from.retain(|_, from| *from != group);
        let members = self.queues.iter().filter(|(_, state)| state.group == group);
        let members: Vec<QueueId> = members.map(|(queue, _)| queue).collect();
        for queue in members {
            let moved = self.move_queue(cx, queue, root);
            if moved.is_some() {
                self.place(cx, queue);
            }
            self.end_move(cx, queue, moved);
        }
        self.groups[root].in_flight += std::mem::take(&mut self.groups[group].in_flight);
        for counted_in in self.isolation.counted_in.values_mut().filter(|it| **it == group) {
            *counted_in = root;
        }
    }
}
