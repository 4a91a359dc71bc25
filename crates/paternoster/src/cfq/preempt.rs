//! Decides when a new request takes the device from the active queue.

use crate::arena::RequestId;
use crate::cfq::Cfq;
use crate::cfq::queue::Queue;
use crate::cfq::queue_id::QueueId;
use crate::io_context::IoClass;
use crate::parts::position_index::is_close;
use crate::scheduler::Cx;
use crate::trace::{Event, PreemptReason, QueueEvent, SliceEnd, Trace, Workload};

impl<T: Trace> Cfq<T> {
    /// Returns why `queue`, in which `rq` was just inserted, is to preempt the active queue, if it
    /// is. The order of the questions matters.
    pub(super) fn should_preempt(
        &self,
        cx: &Cx,
        queue: QueueId,
        rq: RequestId,
    ) -> Option<PreemptReason> {
        let active = &self.queues[self.active?];
        let (request, new) = (&cx.requests[rq], &self.queues[queue]);
        if new.class() == IoClass::Idle {
            return None;
        }
        if active.class() == IoClass::Idle {
            return Some(PreemptReason::OverIdleClass);
        }
        if active.class() == IoClass::Rt && new.class() != IoClass::Rt {
            return None;
        }
        if request.is_sync() && !active.synchrony.is_sync() && !active.slice.is_forced() {
            // This holds across groups too.
            return Some(PreemptReason::SyncOverAsync);
        }
        if !self.may_preempt_in(cx, active, new) {
            return None;
        }
        if active.slice.is_over(self.now) {
            return Some(PreemptReason::SliceOver);
        }
        if new.class() == IoClass::Rt && active.class() != IoClass::Rt {
            return Some(PreemptReason::RealTime);
        }
        if self.serving.workload() == Workload::SyncNoIdle
            && new.workload() == Workload::SyncNoIdle
            && active.is_empty()
        {
            return Some(PreemptReason::NoIdleWorkload);
        }
        if request.has_prio() && active.prio_pending == 0 {
            return Some(PreemptReason::Priority);
        }
        if active.is_empty() && !self.should_idle(cx, active) {
            return Some(PreemptReason::NotIdling);
        }
        if self.active_context.is_none() || !active.slice.is_idling() {
            return None;
        }
        is_close(request.sector, self.head).then_some(PreemptReason::Close)
    }

    /// Returns whether the group of the new request lets it preempt the active queue: it is the
    /// active queue's group, or above it where groups are nested.
    fn may_preempt_in(&self, cx: &Cx, active: &Queue, new: &Queue) -> bool {
        let are_nested = !self.kernel.has_groups_side_by_side();
        active.group == new.group || (are_nested && cx.groups.is_within(active.group, new.group))
    }

    /// Ends the slice of the active queue and puts `queue` first on its tree. `queue` does not
    /// become active here, because its group and its workload have to be chosen first.
    pub(super) fn preempt(&mut self, cx: &Cx, queue: QueueId, why: PreemptReason) {
        let active = self.active.expect("only an active queue is preempted");
        let (by, over) = (self.queues[queue].name(), self.queues[active].name());
        self.trace.event(cx.now, Event::Queue(QueueEvent::Preempted { by, over, why }));
        let workload = self.queues[active].workload();
        self.expire_with_residue(cx, SliceEnd::Preempted);
        self.preempted_at = Some(self.service_speed.mark(self.now));
        let state = &self.queues[queue];
        if state.workload() != workload {
            self.groups[state.group].saved = None;
        }
        self.place_first(cx, queue);
    }
}
