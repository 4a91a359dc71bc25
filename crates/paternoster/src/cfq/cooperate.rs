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
//! The position index, one for each level, has the queues by the sector of their next request.
//! That request may change without the index being told, as it is in Linux.

use crate::arena::IocId;
use crate::cfq::Cfq;
use crate::cfq::context::SYNC;
use crate::cfq::queue::QueueId;
use crate::io_context::{IoClass, IoPrio};
use crate::parts::position_index::PositionIndex;
use crate::scheduler::Cx;
use crate::trace::{Event, Trace};

/// The queues with requests by where their next one starts, an index for each level.
pub(super) type Positions = [PositionIndex<QueueId>; IoPrio::LEVELS as usize];

impl<T: Trace> Cfq<T> {
    /// Puts the queue on the index of its level anew. One whose next request starts where that of
    /// another does stays off.
    pub(super) fn index_position(&mut self, queue: QueueId) {
        self.unindex_position(queue);
        let state = &self.queues[queue];
        if state.next_sector().is_none() || state.class() == IoClass::Idle {
            return;
        }
        let level = state.own_io_prio.level();
        if self.positions[usize::from(level)].insert(&mut self.queues, queue) {
            self.queues[queue].near = Some(level);
        }
    }

    /// Takes the queue off its index, if it is on one.
    pub(super) fn unindex_position(&mut self, queue: QueueId) {
        if let Some(level) = self.queues[queue].near.take() {
            self.positions[usize::from(level)].remove(&mut self.queues, queue);
        }
    }

    /// Whether the queue is on the index that it names.
    pub(super) fn is_indexed(&self, queue: QueueId) -> bool {
        let index = self.queues[queue].near.map(|level| &self.positions[usize::from(level)]);
        index.is_some_and(|index| index.contains(&self.queues, queue))
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
        let level = state.own_io_prio.level();
        let near = self.positions[usize::from(level)].nearest(&self.queues, self.head)?;
        let other = &self.queues[near];
        let suits = other.group == state.group
            && other.sync
            && !other.is_seeky()
            && (other.class() == IoClass::Rt) == (state.class() == IoClass::Rt);
        suits.then_some(near)
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
