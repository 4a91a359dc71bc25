//! Tasks that work on the same part of the device, each with a queue: their queues merge.
//!
//! A queue that gets a request near that of another, of its group and kind, is *redirected*: the
//! tasks that use it go to the other at their next requests. What it holds stays in it. A shared
//! queue that turns out to be seeky is left again (`split.rs`).
//!
//! ```text
//!   task 1 ─▶ queue a ─ ─merge_into─ ─▶ queue b ◀─ task 2      at its next request
//!   task 1 ───────────────────────────▶ queue b ◀─ task 2      b is shared
//! ```
//!
//! On devices where merging costs more than it gains (`hw_queueing.rs`), no new merge is set up.
//! Merges that were set up before are still followed.

use crate::arena::{IocId, RequestId};
use crate::bfq::Bfq;
use crate::bfq::queue_id::{QueueId, queue_of};
use crate::io_context::IoClass;
use crate::parts::position_index::is_close;
use crate::request::{Bio, Sector};
use crate::scheduler::Cx;
use crate::synchrony::Synchrony;
use crate::trace::{Event, QueueEvent, Trace};
use slotmap::Key as _;

impl<T: Trace> Bfq<T> {
    /// Returns the queue into which a request of `ioc` at `sector` goes instead of `queue`, if any.
    /// May set up a merge of queues.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn cooperator(
        &mut self,
        cx: &Cx,
        queue: QueueId,
        sector: Sector,
        ioc: IocId,
    ) -> Option<QueueId> {
        if self.queues[queue].merge_into.is_some() {
            self.merge_target(queue)
        } else if self.hw_queueing.merges_queues() {
            self.look_for_cooperator(cx, queue, sector, ioc)
        } else {
            None
        }
    }

    #[cold]
    #[inline(never)]
    fn look_for_cooperator(
        &mut self,
        cx: &Cx,
        queue: QueueId,
        sector: Sector,
        ioc: IocId,
    ) -> Option<QueueId> {
        if self.is_stable_merge_due(cx, queue, ioc) {
            // This is decided once, and no other queue is looked for this time.
            return self.merge_with_candidate(cx, queue, ioc);
        }
        if self.busy.count() == 1 || self.is_too_late(cx, queue) || !self.may_merge(queue) {
            return None;
        }
        if let Some(in_service) = self.in_service
            && in_service != queue
            && is_close(sector, self.service_head)
            && self.wf2q.group_of(queue) == self.wf2q.group_of(in_service)
            && self.fits(cx, queue, in_service)
            && let Some(target) = self.set_up_merge(cx, queue, in_service)
        {
            return Some(target);
        }
        let group = &self.groups[self.wf2q.group_of(queue)];
        let nearest = group.positions.nearest(sector)?;
        if nearest == queue || !self.fits(cx, queue, nearest) {
            return None;
        }
        self.set_up_merge(cx, queue, nearest)
    }

    /// Follows a merge of queues that is due for the bio's context, as Linux does at every request
    /// that might absorb the bio. Returns whether `rq` is in the queue of the bio then, so that it
    /// may absorb it.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn allow_bio_merge(&mut self, cx: &Cx, rq: RequestId, bio: &Bio) -> bool {
        if bio.is_sync() && !cx.requests[rq].is_sync() {
            return false;
        }
        let Some(mut queue) = self.existing_queue(bio.ioc, bio.synchrony()) else { return false };
        if let Some(target) = self.cooperator(cx, queue, bio.sector, bio.ioc) {
            self.redirect(cx, bio.ioc, queue, target);
            queue = target;
        }
        queue_of(&cx.requests, rq) == queue
    }

    /// Returns the end of the chain of queues into which `queue` is to merge.
    fn merge_target(&self, queue: QueueId) -> Option<QueueId> {
        let next = |&queue: &QueueId| self.queues[queue].merge_into;
        std::iter::successors(next(&queue), next).last()
    }

    /// Returns whether the queue has been served for a while since it became busy. Queues that come
    /// near it after that do so by chance.
    fn is_too_late(&self, cx: &Cx, queue: QueueId) -> bool {
        let state = &self.queues[queue];
        state.served_since_busy > 0 && cx.jiffies() > state.first_served + self.times.merge_window
    }

    /// Returns whether the queue is of a kind that merges.
    fn may_merge(&self, queue: QueueId) -> bool {
        let state = &self.queues[queue];
        state.synchrony.is_sync() && !state.is_seeky() && self.wf2q.class_of(queue) != IoClass::Idle
    }

    /// Returns whether `queue`, which may merge, fits with `other`.
    fn fits(&self, cx: &Cx, queue: QueueId, other: QueueId) -> bool {
        !self.is_too_late(cx, other)
            && self.wf2q.class_of(queue) == self.wf2q.class_of(other)
            && self.may_merge(other)
    }

    /// Sets up a merge: the users of `queue` are to go to `other`, or to the queue into which
    /// `other` is to merge. Returns that queue.
    #[cold]
    #[inline(never)]
    pub(super) fn set_up_merge(
        &mut self,
        cx: &Cx,
        queue: QueueId,
        other: QueueId,
    ) -> Option<QueueId> {
        if self.queues[other].users == 0 {
            return None;
        }
        let mut target = other;
        while let Some(further) = self.queues[target].merge_into {
            if further == queue {
                return None;
            }
            target = further;
        }
        let users = self.queues[queue].users;
        if users == 0
            || self.queues[target].users == 0
            || self.wf2q.group_of(queue) != self.wf2q.group_of(target)
        {
            return None;
        }
        self.queues[queue].merge_into = Some(target);
        self.queues[target].users += users;
        let (queue, into) = (self.queues[queue].name(), self.queues[target].name());
        self.trace.event(cx.now, Event::Queue(QueueEvent::MergePlanned { queue, into }));
        Some(target)
    }

    /// Moves `ioc` from `queue` to `target`, the end of its chain, one queue at a time.
    #[cold]
    #[inline(never)]
    pub(super) fn redirect(&mut self, cx: &Cx, ioc: IocId, queue: QueueId, target: QueueId) {
        let mut here = queue;
        while here != target {
            here = self.redirect_one(cx, ioc, here);
        }
    }

    /// Moves `ioc` one queue on, with what was learned of the queue and how it is raised.
    fn redirect_one(&mut self, cx: &Cx, ioc: IocId, queue: QueueId) -> QueueId {
        let target = self.queues[queue].merge_into.expect("a chain ends at its target");
        let (name, into) = (self.queues[queue].name(), self.queues[target].name());
        self.trace.event(cx.now, Event::Queue(QueueEvent::QueuesMerged { queue: name, into }));
        self.save(cx, queue);
        self.save(cx, target);
        if self.queues[queue].io_pattern.is_io_bound() {
            self.queues[queue].io_pattern.clear_io_bound();
            self.queues[target].io_pattern.set_io_bound();
        }
        if let Some(waker) = self.queues[queue].waker
            && waker != target
            && self.queues[target].waker.is_none()
        {
            self.queues.inherit_waker(target, waker);
        }
        self.hand_over_raising(cx, queue, target);
        self.set_queue(cx, ioc, Synchrony::Sync, Some(target));
        let into = &mut self.queues[target];
        into.shared = true;
        into.owner = None;
        self.queues[queue].owner = None;
        let group = self.wf2q.group_of(queue);
        let last_created = &mut self.groups[group].last_created;
        if *last_created == Some(queue) {
            *last_created = Some(target);
        }
        self.drop_user(cx, queue);
        target
    }

    /// Moves a request that is about to be added to `target`, and its user with it.
    pub(super) fn move_request(&mut self, cx: &mut Cx, rq: RequestId, target: QueueId) {
        let queue = queue_of(&cx.requests, rq);
        let ioc = cx.requests[rq].ioc;
        self.wf2q.count_request(target, 1);
        if self.existing_queue(ioc, Synchrony::Sync) == Some(queue) {
            self.redirect(cx, ioc, queue, target);
        }
        self.queues[queue].fresh = false;
        self.wf2q.count_request(queue, -1);
        self.free_queue_if_unused(cx, queue);
        cx.requests.get_mut(rq).queue = target.data();
    }

    /// Updates the place of the queue on the position index of its group, if queues merge.
    #[inline]
    pub(super) fn index_position(&mut self, cx: &Cx, queue: QueueId) {
        if self.hw_queueing.merges_queues() {
            self.update_index_position(cx, queue);
        } else {
            self.follow_position(cx, queue);
        }
    }

    /// Takes note on the queue's index that its next request starts elsewhere. The queue keeps its
    /// place there.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn follow_position(&mut self, cx: &Cx, queue: QueueId) {
        let state = &self.queues[queue];
        if let (Some(slot), Some(next)) = (state.position, state.next()) {
            let positions = &mut self.groups[self.wf2q.group_of(queue)].positions;
            positions.set_sector(slot, cx.requests[next].sector);
        }
    }

    fn update_index_position(&mut self, cx: &Cx, queue: QueueId) {
        let Some(next) = self.queues[queue].next() else { return self.unindex_position(queue) };
        if self.wf2q.class_of(queue) == IoClass::Idle || self.is_too_late(cx, queue) {
            return self.unindex_position(queue);
        }
        let sector = cx.requests[next].sector;
        let positions = &mut self.groups[self.wf2q.group_of(queue)].positions;
        let position = &mut self.queues[queue].position;
        match *position {
            None => *position = positions.insert(queue, sector),
            Some(slot) if positions.reposition(slot, sector) => {}
            Some(_) => *position = None,
        }
    }

    /// Takes the queue off its index, if it is on one.
    pub(super) fn unindex_position(&mut self, queue: QueueId) {
        if let Some(slot) = self.queues[queue].position.take() {
            self.groups[self.wf2q.group_of(queue)].positions.remove(slot);
        }
    }
}
