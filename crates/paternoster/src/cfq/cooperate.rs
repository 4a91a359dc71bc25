//! Merges the queues of I/O contexts that work on the same part of the device.
//!
//! When the active queue runs empty, it looks for another queue of its group whose next request is
//! near the head. That queue gets the next slice, and the merge is planned: the users of the queue
//! that has fewer of them move to the other one, each at its next request. If the shared queue
//! turns out to be seeky, it is split again (`split.rs`). BFQ also merges queues that were created
//! at about the same time (`bfq/stable_merge.rs`); CFQ does not.
//!
//! ```text
//!   task 1 ─▶ queue a ─ ─merge_into─ ─▶ queue b ◀─ task 2      the merge is planned
//!   task 1 ───────────────────────────▶ queue b ◀─ task 2      task 1 made a request: b is shared
//! ```
//!
//! A position index for each level has the queues by the sector of their next request. As in Linux,
//! the next request may change while the queue keeps its place on the index.

use crate::arena::{IocId, RequestId, Slot};
use crate::cfq::Cfq;
use crate::cfq::queue::Queue;
use crate::cfq::queue_id::QueueId;
use crate::io_context::{IoClass, IoPrio};
use crate::parts::position_index::PositionIndex;
use crate::scheduler::Cx;
use crate::synchrony::Synchrony;
use crate::trace::{Event, QueueEvent, Trace};

/// The queues by the sector of their next request, an index for each level.
pub(super) type Positions = [PositionIndex<QueueId>; IoPrio::LEVELS as usize];

/// Where a queue is on an index.
#[derive(Clone, Copy, Debug)]
pub(super) struct Position {
    /// The level of the index.
    level: u8,
    slot: Slot,
}

/// Writes on the queue's index, if it is on one, where its next request starts.
#[inline]
pub(super) fn set_start(positions: &mut Positions, cx: &Cx, queue: &Queue) {
    if let (Some(Position { level, slot }), Some(next)) = (queue.position, queue.next()) {
        positions[usize::from(level)].set_sector(slot, cx.requests[next].sector);
    }
}

impl<T: Trace> Cfq<T> {
    /// Puts the queue where it belongs on the index of its level. A queue whose next request starts
    /// where that of another queue does is left out.
    #[cold]
    #[inline(never)]
    pub(super) fn index_position(&mut self, cx: &Cx, queue: QueueId) {
        let state = &mut self.queues[queue];
        let next = state.next().filter(|_| state.class() != IoClass::Idle);
        let level = state.priority.own_level();
        let position = state.position.filter(|position| position.level == level);
        let (Some(next), Some(Position { slot, .. })) = (next, position) else {
            return self.index_anew(cx, queue, next);
        };
        let index = &mut self.positions[usize::from(level)];
        if !index.reposition(slot, cx.requests[next].sector) {
            state.position = None;
        }
    }

    /// Takes the queue off its index, if it is on one, and puts it where its next request belongs,
    /// if it has one.
    #[inline]
    fn index_anew(&mut self, cx: &Cx, queue: QueueId, next: Option<RequestId>) {
        self.unindex_position(queue);
        let Some(next) = next else { return };
        let state = &mut self.queues[queue];
        let level = state.priority.own_level();
        let slot = self.positions[usize::from(level)].insert(queue, cx.requests[next].sector);
        state.position = slot.map(|slot| Position { level, slot });
    }

    /// Takes note on the queue's index that its next request starts elsewhere. The queue keeps its
    /// place there.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn follow_position(&mut self, cx: &Cx, queue: QueueId) {
        set_start(&mut self.positions, cx, &self.queues[queue]);
    }

    /// Takes the queue off its index, if it is on one.
    #[cold]
    #[inline(never)]
    pub(super) fn unindex_position(&mut self, queue: QueueId) {
        if let Some(Position { level, slot }) = self.queues[queue].position.take() {
            self.positions[usize::from(level)].remove(slot);
        }
    }

    /// Asserts that a queue that is on an index has a next request, and the index knows where.
    pub(super) fn check_position(&self, cx: &Cx, id: QueueId, queue: &Queue) {
        if let Some(Position { level, slot }) = queue.position {
            let next = queue.next().expect("an indexed queue has requests");
            let is_there =
                self.positions[usize::from(level)].has(slot, id, cx.requests[next].sector);
            assert!(is_there, "an indexed queue is on its index");
        }
    }

    /// Finds a queue to which `queue`, which has run empty, may give the device: its next request
    /// is near the head, and it is of the same group and alike. Only the nearest is considered.
    pub(super) fn close_cooperator(&self, queue: QueueId) -> Option<QueueId> {
        let state = &self.queues[queue];
        if state.class() == IoClass::Idle
            || !state.synchrony.is_sync()
            || state.is_seeky()
            || self.groups[state.group].entities == 1
        {
            return None;
        }
        let level = state.priority.own_level();
        let closest = self.positions[usize::from(level)].nearest(self.head)?;
        let other = &self.queues[closest];
        let suits = other.group == state.group
            && other.synchrony.is_sync()
            && !other.is_seeky()
            && (other.class() == IoClass::Rt) == (state.class() == IoClass::Rt);
        suits.then_some(closest)
    }

    /// Plans the merge of `queue` and `close`, or of the queue at the end of the chain of merges
    /// that begins at `close`. The users of the queue with fewer users are to move to the other.
    #[cold]
    #[inline(never)]
    pub(super) fn set_up_merge(&mut self, cx: &Cx, queue: QueueId, close: QueueId) {
        if self.queues[queue].merge_into.is_some() || self.queues[close].users == 0 {
            return;
        }
        let mut target = close;
        while let Some(further) = self.queues[target].merge_into {
            if further == queue {
                return;
            }
            target = further;
        }
        let (users, others) = (self.queues[queue].users, self.queues[target].users);
        if users == 0 || others == 0 {
            return;
        }
        let (from, into, moving) =
            if others >= users { (queue, target, users) } else { (target, queue, others) };
        self.queues[from].merge_into = Some(into);
        self.queues[into].users += moving;
        let (queue, into) = (self.queues[from].name(), self.queues[into].name());
        self.trace.event(cx.now, Event::Queue(QueueEvent::MergePlanned { queue, into }));
    }

    /// Moves `ioc`, which makes a request, from `queue` to the one into which that is to be merged.
    /// Returns the queue that `ioc` uses now.
    pub(super) fn follow_merge(&mut self, cx: &Cx, ioc: IocId, queue: QueueId) -> QueueId {
        let Some(into) = self.queues[queue].merge_into else { return queue };
        debug_assert!(self.queues[queue].synchrony.is_sync(), "async queues do not merge");
        let (name, into_name) = (self.queues[queue].name(), self.queues[into].name());
        self.trace
            .event(cx.now, Event::Queue(QueueEvent::QueuesMerged { queue: name, into: into_name }));
        self.contexts[ioc].queues[Synchrony::Sync] = Some(into);
        self.queues[into].shared = true;
        self.drop_user(cx, queue);
        into
    }
}
