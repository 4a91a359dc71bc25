//! The place of a busy queue on the service trees, which says when its next slice is due.
//!
//! `hierarchy/` decides where that is. The counterpart in BFQ, where queues finish in virtual time,
//! is `bfq/wf2q/`.

use crate::cfq::Cfq;
use crate::cfq::queue_id::QueueId;
use crate::cfq::service_tree::{Entity, Key};
use crate::scheduler::Cx;
use crate::trace::{Event, QueueEvent, Trace};

impl<T: Trace> Cfq<T> {
    /// Makes the queue busy. It is indexed by position when its first request becomes the next one.
    pub(super) fn add_busy(&mut self, cx: &Cx, queue: QueueId) {
        let name = self.queues[queue].name();
        self.trace.event(cx.now, Event::Queue(QueueEvent::Busy { queue: name }));
        self.busy += 1;
        self.busy_sync += u32::from(name.sync);
        // It is placed before it is counted among the queues of its group: see `slice_offset`.
        self.place(cx, queue);
        self.join_group(cx, self.queues[queue].group);
    }

    /// Makes the queue, which is empty, no longer busy.
    pub(super) fn remove_busy(&mut self, cx: &Cx, queue: QueueId) {
        let state = &self.queues[queue];
        let (name, group) = (state.name(), state.group);
        self.take_off_tree(queue);
        self.leave_group(cx, group);
        self.busy -= 1;
        self.busy_sync -= u32::from(name.sync);
        self.trace.event(cx.now, Event::Queue(QueueEvent::NotBusy { queue: name }));
    }

    /// Takes the busy queue off the tree on which it is.
    #[inline]
    pub(super) fn take_off_tree(&mut self, queue: QueueId) {
        let state = &mut self.queues[queue];
        let place = state.place.take().expect("a busy queue has a place");
        self.groups[state.group].trees.remove(place);
    }

    /// Puts the queue on the tree on which it should be, by `key`.
    #[inline]
    pub(super) fn put_on_tree(&mut self, queue: QueueId, key: Key) {
        let state = &mut self.queues[queue];
        let trees = &mut self.groups[state.group].trees;
        state.place = Some(trees.put(Entity::Queue(queue), state.wanted_tree(), key, state.place));
    }
}
