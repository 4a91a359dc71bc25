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
//! Nothing of this is done where it only costs (`hw_queueing.rs`), but for following what is set up
//! already.

use crate::arena::{IocId, RequestId};
use crate::bfq::Bfq;
use crate::bfq::context::SYNC;
use crate::bfq::queue::{QueueId, queue_of};
use crate::bfq::weight_raising::Raising;
use crate::io_context::IoClass;
use crate::parts::position_index::is_close;
use crate::request::{Bio, Sector};
use crate::scheduler::Cx;
use crate::trace::{Event, Trace};
use slotmap::Key as _;

/// Queues that have been served for longer than this part of a second begin to work on the same
/// part of the device by chance.
const MERGE_WINDOW_PARTS: u32 = 10;

impl<T: Trace> Bfq<T> {
    /// The queue into which a request of `ioc` at `sector`, for `queue`, is to go instead.
    #[inline]
    pub(super) fn cooperator(
        &mut self,
        cx: &Cx<'_>,
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

    fn look_for_cooperator(
        &mut self,
        cx: &Cx<'_>,
        queue: QueueId,
        sector: Sector,
        ioc: IocId,
    ) -> Option<QueueId> {
        if self.is_elder_due(cx, queue, ioc) {
            // Decided once; no other is looked for this time.
            return self.merge_with_elder(cx, queue, ioc);
        }
        if self.is_too_late(cx, queue) || self.symmetry.busy() == 1 || !self.may_merge(queue) {
            return None;
        }
        if let Some(active) = self.in_service
            && active != queue
            && is_close(sector, self.turn_head)
            && self.wf2q.entities[queue].above == self.wf2q.entities[active].above
            && self.fits(cx, queue, active)
            && let Some(target) = self.set_up_merge(cx, queue, active)
        {
            return Some(target);
        }
        let group = &self.groups[self.wf2q.entities[queue].above];
        let near = group.positions.nearest(&self.queues, sector)?;
        if near == queue || !self.fits(cx, queue, near) {
            return None;
        }
        self.set_up_merge(cx, queue, near)
    }

    /// Whether `bio` may become part of `rq`: if that is in the queue into which its requests go,
    /// after a merge of queues that is due. Linux looks for one at every candidate.
    pub(super) fn may_take(&mut self, cx: &Cx<'_>, rq: RequestId, bio: &Bio) -> bool {
        if bio.is_sync() && !cx.requests[rq].is_sync() {
            return false;
        }
        let Some(mut queue) = self.existing_queue(bio.ioc, bio.is_sync()) else { return false };
        if let Some(target) = self.cooperator(cx, queue, bio.sector, bio.ioc) {
            self.redirect(cx, bio.ioc, queue, target);
            queue = target;
        }
        queue_of(cx.requests, rq) == queue
    }

    /// The end of the chain of queues into which `queue` is to merge.
    fn merge_target(&self, queue: QueueId) -> Option<QueueId> {
        let next = |&queue: &QueueId| self.queues[queue].merge_into;
        std::iter::successors(next(&queue), next).last()
    }

    /// Whether the queue has been served for a while since it became busy: others that come near
    /// it now do so by chance.
    fn is_too_late(&self, cx: &Cx<'_>, queue: QueueId) -> bool {
        let state = &self.queues[queue];
        state.served_since_busy > 0
            && cx.jiffies() > state.first_served + cx.device.hz.part_of_second(MERGE_WINDOW_PARTS)
    }

    /// Whether the queue is of a kind that merges.
    fn may_merge(&self, queue: QueueId) -> bool {
        let state = &self.queues[queue];
        state.sync && !state.is_seeky() && self.wf2q.entities[queue].class != IoClass::Idle
    }

    /// Whether `other` is one with which `queue`, which may merge, does.
    fn fits(&self, cx: &Cx<'_>, queue: QueueId, other: QueueId) -> bool {
        !self.is_too_late(cx, other)
            && self.wf2q.entities[queue].class == self.wf2q.entities[other].class
            && self.may_merge(other)
    }

    /// The users of `queue` are to go to `other`, or to the queue into which that is to merge:
    /// which one it is.
    pub(super) fn set_up_merge(
        &mut self,
        cx: &Cx<'_>,
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
            || self.wf2q.entities[queue].above != self.wf2q.entities[target].above
        {
            return None;
        }
        self.queues[queue].merge_into = Some(target);
        self.queues[target].users += users;
        let (queue, into) = (self.queues[queue].name(), self.queues[target].name());
        self.trace.event(cx.now, Event::MergePlanned { queue, into });
        Some(target)
    }

    /// `ioc` goes from `queue` to `target`, the end of its chain, a step at a time.
    pub(super) fn redirect(&mut self, cx: &Cx<'_>, ioc: IocId, queue: QueueId, target: QueueId) {
        let mut here = queue;
        while here != target {
            here = self.redirect_one(cx, ioc, here);
        }
    }

    /// One step: what was learned and raised goes along.
    fn redirect_one(&mut self, cx: &Cx<'_>, ioc: IocId, queue: QueueId) -> QueueId {
        let target = self.queues[queue].merge_into.expect("a chain ends at its target");
        let (name, into) = (self.queues[queue].name(), self.queues[target].name());
        self.trace.event(cx.now, Event::QueuesMerged { queue: name, into });
        self.save(cx, queue);
        self.save(cx, target);
        if std::mem::take(&mut self.queues[queue].habits.io_bound) {
            self.queues[target].habits.io_bound = true;
        }
        if let Some(waker) = self.queues[queue].waker.waker
            && waker != target
            && self.queues[target].waker.waker.is_none()
        {
            self.inherit_waker(target, waker);
        }
        self.hand_over_raising(cx, queue, target);
        self.set_queue(cx, ioc, SYNC, Some(target));
        let into = &mut self.queues[target];
        into.shared = true;
        into.owner = None;
        self.queues[queue].owner = None;
        let group = self.wf2q.entities[queue].above;
        let last_made = &mut self.groups[group].last_made;
        if *last_made == Some(queue) {
            *last_made = Some(target);
        }
        self.drop_user(cx, queue);
        target
    }

    /// A raised queue is so no longer: the one into which it merges is, unless it was.
    fn hand_over_raising(&mut self, cx: &Cx<'_>, queue: QueueId, target: QueueId) {
        let factor = self.wf2q.entities[queue].factor;
        if factor == 1 {
            return;
        }
        let (from, into) = (&self.queues[queue], &self.queues[target]);
        let (was_busy, is_busy) = (from.busy, into.busy);
        if self.wf2q.entities[target].factor == 1 {
            let raising = from.raising;
            let served = into.raising.served;
            self.queues[target].raising = Raising { served, ..raising };
            let entity = &mut self.wf2q.entities[target];
            entity.factor = factor;
            entity.change_due = true;
            self.symmetry.raised_busy += i32::from(is_busy);
            self.trace_raising(cx, target);
        }
        let entity = &mut self.wf2q.entities[queue];
        entity.factor = 1;
        entity.change_due = true;
        self.symmetry.raised_busy -= i32::from(was_busy);
        self.trace_raising(cx, queue);
    }

    /// A request that is about to be added goes to `target` instead of its queue, and so do those
    /// of its user from now on.
    pub(super) fn move_request(&mut self, cx: &mut Cx<'_>, rq: RequestId, target: QueueId) {
        let queue = queue_of(cx.requests, rq);
        let ioc = cx.requests[rq].ioc;
        self.wf2q.count_request(target, 1);
        if self.existing_queue(ioc, true) == Some(queue) {
            self.redirect(cx, ioc, queue, target);
        }
        self.queues[queue].fresh = false;
        self.wf2q.count_request(queue, -1);
        self.free_queue_if_unused(cx, queue);
        cx.requests[rq].queue = target.data();
    }

    /// Puts the queue on the position index of its group anew, if it may merge.
    #[inline]
    pub(super) fn index_position(&mut self, cx: &Cx<'_>, queue: QueueId) {
        if self.hw_queueing.merges_queues() {
            self.index_position_anew(cx, queue);
        }
    }

    fn index_position_anew(&mut self, cx: &Cx<'_>, queue: QueueId) {
        self.unindex_position(queue);
        let entity = &self.wf2q.entities[queue];
        if self.queues[queue].next().is_none()
            || entity.class == IoClass::Idle
            || self.is_too_late(cx, queue)
        {
            return;
        }
        let positions = &mut self.groups[entity.above].positions;
        self.queues[queue].near = positions.insert(&mut self.queues, queue);
    }

    /// Takes the queue off its index, if it is on one.
    pub(super) fn unindex_position(&mut self, queue: QueueId) {
        if std::mem::take(&mut self.queues[queue].near) {
            let group = self.wf2q.entities[queue].above;
            self.groups[group].positions.remove(&mut self.queues, queue);
        }
    }
}
