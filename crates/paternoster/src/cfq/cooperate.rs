//! Tasks that work on the same part of the device, each with a queue: their queues merge.
//!
//! A queue that runs empty looks for another of its group whose next request is near the head.
//! That one has the next turn, and the tasks of the smaller of the two put their requests into the
//! other from then on. If the shared queue turns out to be seeky, its tasks part again.
//!
//! ```text
//!   task 1 ─▶ queue a ─ ─merge_into─ ─▶ queue b ◀─ task 2      at its next request
//!   task 1 ───────────────────────────▶ queue b ◀─ task 2      b is shared
//! ```
//!
//! The *position index*, one for each level, has the queues by the sector of their next request.
//! That request may change without the index being told, as it is in Linux: entries stay where
//! they are, and comparisons read the sector as it is now. So the tree may be out of order for a
//! while, and which neighbour is found depends on its shape.

use crate::arena::IocId;
use crate::cfq::Cfq;
use crate::cfq::context::SYNC;
use crate::cfq::queue::{Queue, QueueId};
use crate::io_context::{IoClass, IoPrio};
use crate::parts::red_black::{Branch, Tree};
use crate::request::Sector;
use crate::scheduler::Cx;
use crate::trace::{Event, Trace};

/// Requests at most this many sectors from the head are near it: 4 MiB.
const CLOSE: u64 = 8 * 1024;

const HAS_NEXT: &str = "an indexed queue has a next request";

/// Whether `sector` is near the head at `head`.
pub(super) fn is_close(sector: Sector, head: Sector) -> bool {
    sector.0.abs_diff(head.0) <= CLOSE
}

/// The queues with requests by where their next one starts, an index for each level.
#[derive(Debug, Default)]
pub(super) struct PositionIndex([Tree<QueueId>; IoPrio::LEVELS as usize]);

impl<T: Trace> Cfq<T> {
    /// Puts the queue on the index of its level anew. One whose next request starts where that of
    /// another does stays off.
    pub(super) fn index_position(&mut self, queue: QueueId) {
        self.unindex_position(queue);
        let state = &self.queues[queue];
        let Some(sector) = state.next_sector() else { return };
        if state.class() == IoClass::Idle {
            return;
        }
        let level = state.own_io_prio.level();
        let tree = &mut self.positions.0[usize::from(level)];
        let mut below = None;
        let mut node = tree.root();
        while let Some(parent) = node {
            let there = self.queues[parent].next_sector().expect(HAS_NEXT);
            if sector == there {
                return;
            }
            let branch = if sector > there { Branch::Right } else { Branch::Left };
            below = Some((parent, branch));
            node = Tree::child(&self.queues, parent, branch);
        }
        tree.insert_below(&mut self.queues, queue, below);
        self.queues[queue].near = Some(level);
    }

    /// Takes the queue off its index, if it is on one.
    pub(super) fn unindex_position(&mut self, queue: QueueId) {
        if let Some(level) = self.queues[queue].near.take() {
            self.positions.0[usize::from(level)].remove(&mut self.queues, queue);
        }
    }

    /// Whether the queue is on the index that it names: its parents lead to that root.
    pub(super) fn is_indexed(&self, queue: QueueId) -> bool {
        let index = self.queues[queue].near.map(|level| &self.positions.0[usize::from(level)]);
        index.is_some_and(|tree| tree.root() == Some(Tree::root_above(&self.queues, queue)))
    }

    /// Another queue of the group of `queue`, which has run empty, that has a request near the
    /// head and is of its kind. If the one found near is not suitable, no other is looked for.
    pub(super) fn close_cooperator(&self, queue: QueueId) -> Option<QueueId> {
        let state = &self.queues[queue];
        if state.class() == IoClass::Idle
            || !state.sync
            || state.is_seeky()
            || self.groups[state.group].listed == 1
        {
            return None;
        }
        let near = self.nearest(state)?;
        let other = &self.queues[near];
        let suits = other.group == state.group
            && other.sync
            && !other.is_seeky()
            && (other.class() == IoClass::Rt) == (state.class() == IoClass::Rt);
        suits.then_some(near)
    }

    /// The queue at the head; else the last on the way down to it, or, if that is not near, its
    /// neighbour on the other side of the head.
    fn nearest(&self, queue: &Queue) -> Option<QueueId> {
        let tree = &self.positions.0[usize::from(queue.own_io_prio.level())];
        let mut node = tree.root();
        let mut last = None;
        while let Some(here) = node {
            let sector = self.queues[here].next_sector().expect(HAS_NEXT);
            if sector == self.head {
                return Some(here);
            }
            last = Some((here, sector));
            let branch = if self.head > sector { Branch::Right } else { Branch::Left };
            node = Tree::child(&self.queues, here, branch);
        }
        let (last, sector) = last?;
        if is_close(sector, self.head) {
            return Some(last);
        }
        let branch = if sector < self.head { Branch::Right } else { Branch::Left };
        let other = Tree::neighbour(&self.queues, last, branch)?;
        let sector = self.queues[other].next_sector().expect(HAS_NEXT);
        is_close(sector, self.head).then_some(other)
    }

    /// The users of one of the two queues are to go to the other, or to the one into which that
    /// is to merge: to the one that has more.
    pub(super) fn set_up_merge(&mut self, cx: &Cx<'_>, queue: QueueId, near: QueueId) {
        if self.queues[queue].merge_into.is_some() || self.queues[near].holders == 0 {
            return;
        }
        let mut target = near;
        while let Some(further) = self.queues[target].merge_into {
            if further == queue {
                return;
            }
            target = further;
        }
        let (users, others) = (self.queues[queue].holders, self.queues[target].holders);
        if users == 0 || others == 0 {
            return;
        }
        let (from, into, moving) =
            if others >= users { (queue, target, users) } else { (target, queue, others) };
        self.queues[from].merge_into = Some(into);
        self.queues[into].holders += moving;
        let (queue, into) = (self.queues[from].name(), self.queues[into].name());
        self.trace.event(cx.now, Event::MergePlanned { queue, into });
    }

    /// The task is about to put a request into `queue`, its own so far: it moves to the queue into
    /// which that is to merge, and leaves one whose users are to part. None where it has none any
    /// more.
    pub(super) fn follow_cooperation(
        &mut self,
        cx: &Cx<'_>,
        ioc: IocId,
        queue: QueueId,
    ) -> Option<QueueId> {
        let state = &mut self.queues[queue];
        if state.shared && state.to_split {
            self.trace.event(cx.now, Event::QueueSplit { queue: state.name() });
            if state.holders > 1 {
                self.contexts[ioc].queues[SYNC] = None;
                self.drop_chain(cx, queue);
                return None;
            }
            // The last user keeps it.
            state.made_by = ioc;
            state.shared = false;
            state.to_split = false;
        }
        let Some(into) = self.queues[queue].merge_into else { return Some(queue) };
        debug_assert!(self.queues[queue].sync, "async queues do not merge");
        let (name, into_name) = (self.queues[queue].name(), self.queues[into].name());
        self.trace.event(cx.now, Event::QueuesMerged { queue: name, into: into_name });
        self.contexts[ioc].queues[SYNC] = Some(into);
        self.queues[into].shared = true;
        self.drop_holder(cx, queue);
        Some(into)
    }
}
