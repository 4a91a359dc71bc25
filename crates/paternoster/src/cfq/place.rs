//! The place of a busy queue on the service trees, which says when its next slice is due.
//!
//! The counterpart in BFQ, where queues finish in virtual time, is `bfq/wf2q/`.

use crate::cfq::Cfq;
use crate::cfq::queue_id::QueueId;
use crate::cfq::service_tree::Key;
use crate::io_context::IoClass;
use crate::scheduler::Cx;
use crate::synchrony::Synchrony;
use crate::time::Nanos;
use crate::trace::{Event, Trace};

/// A queue of the idle class is placed this far from now, so its tree is a fifo.
const IDLE_KEY_DELAY: Nanos = Nanos::from_millis(200);
/// A queue that preempts is placed this far before the first one.
const FRONT_KEY_STEP: Nanos = Nanos::from_millis(1000);

impl<T: Trace> Cfq<T> {
    /// Makes the queue busy.
    pub(super) fn add_busy(&mut self, cx: &Cx<'_>, queue: QueueId) {
        let state = &self.queues[queue];
        let (name, group) = (state.name(), state.group);
        self.trace.event(cx.now, Event::Busy { queue: name });
        self.busy += 1;
        self.busy_sync += u32::from(name.sync);
        // It is placed before it is counted among the queues of its group: see `slice_offset`.
        self.place(cx, queue);
        self.join_group(cx, group);
        self.index_position(queue);
    }

    /// Makes the queue no longer busy.
    pub(super) fn remove_busy(&mut self, cx: &Cx<'_>, queue: QueueId) {
        let state = &mut self.queues[queue];
        let (name, group) = (state.name(), state.group);
        let place = state.place.take().expect("a busy queue has a place");
        self.groups[group].trees.remove(place);
        self.unindex_position(queue);
        self.leave_group(cx, group);
        self.busy -= 1;
        self.busy_sync -= u32::from(name.sync);
        self.trace.event(cx.now, Event::NotBusy { queue: name });
    }

    /// Puts the queue where its slice is due, on the tree on which it should be. The residue of its
    /// last slice is used up.
    pub(super) fn place(&mut self, cx: &Cx<'_>, queue: QueueId) {
        let state = &self.queues[queue];
        let key = if state.class() == IoClass::Idle {
            Key::at(cx.now + IDLE_KEY_DELAY)
        } else {
            let offset = self.slice_offset(queue);
            let residue = self.queues[queue].take_residue();
            Key::at(cx.now).later(offset.wrapping_sub(residue))
        };
        self.put_on_tree(queue, key);
    }

    /// Puts the busy queue before all others of its tree. A queue of the idle class is placed as
    /// usual.
    pub(super) fn place_first(&mut self, cx: &Cx<'_>, queue: QueueId) {
        let state = &self.queues[queue];
        let key = if state.class() == IoClass::Idle {
            Key::at(cx.now + IDLE_KEY_DELAY)
        } else {
            let tree = self.groups[state.group].trees.tree(state.wanted_tree());
            tree.first_key().unwrap_or(Key::at(cx.now)).earlier(FRONT_KEY_STEP)
        };
        self.put_on_tree(queue, key);
    }

    fn put_on_tree(&mut self, queue: QueueId, key: Key) {
        let state = &mut self.queues[queue];
        let trees = &mut self.groups[state.group].trees;
        state.place = Some(trees.put(queue, state.wanted_tree(), key, state.place));
    }

    /// By how much a queue's slice is due later than that of a synchronous queue of level 0:
    ///
    /// `(queues of the group − 1) × (slice of level 0 − its own slice)`
    ///
    /// An oddity of Linux: a queue that becomes busy does not count itself, so the first one of a
    /// group is due the *earlier* the lower its level is.
    fn slice_offset(&self, queue: QueueId) -> i64 {
        let state = &self.queues[queue];
        let others = i64::from(self.groups[state.group].busy) - 1;
        let top = self.nominal_slice(Synchrony::Sync, 0).as_nanos();
        let own = self.nominal_slice(state.synchrony, state.io_prio().level()).as_nanos();
        others.wrapping_mul(top.wrapping_sub(own).cast_signed())
    }
}
