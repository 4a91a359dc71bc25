//! When a queue that becomes busy preempts the queue in service.
//!
//! In CFQ every request that is inserted may do so; here it is the queue's first one alone.

use crate::bfq::Bfq;
use crate::bfq::queue_id::QueueId;
use crate::bfq::wf2q::ActivationKind;
use crate::scheduler::Cx;
use crate::trace::{BudgetEnd, Event, PreemptReason, QueueEvent, Trace};

impl<T: Trace> Bfq<T> {
    /// The queue has become busy and preempts the queue in service, if it has the better claim or
    /// if idling for the queue in service is not better.
    pub(super) fn maybe_preempt(&mut self, cx: &Cx, queue: QueueId, kind: ActivationKind) {
        let Some(in_service) = self.in_service else { return };
        let Some(why) = self.should_preempt(cx, queue, in_service, kind) else { return };
        if self.wf2q.may_preempt(cx.groups.root()) {
            let (by, over) = (self.queues[queue].name(), self.queues[in_service].name());
            self.trace.event(cx.now, Event::Queue(QueueEvent::Preempted { by, over, why }));
            self.expire(cx, in_service, BudgetEnd::Preempted);
        }
    }

    /// Returns why `queue`, which has become busy, is to preempt the queue in service, if it is.
    /// The first row that matches decides.
    fn should_preempt(
        &self,
        cx: &Cx,
        queue: QueueId,
        in_service: QueueId,
        kind: ActivationKind,
    ) -> Option<PreemptReason> {
        let wf2q = &self.wf2q;
        let factor = |queue: QueueId| self.queues[queue].raising().factor();
        if kind == ActivationKind::InTime && factor(queue) >= factor(in_service) {
            Some(PreemptReason::InTime)
        } else if wf2q.class_of(queue) < wf2q.class_of(in_service) {
            Some(PreemptReason::Class)
        } else if wf2q.weighs_more(queue, in_service) {
            Some(PreemptReason::Weight)
        } else if !self.is_idling_better(cx, in_service) {
            Some(PreemptReason::NotIdling)
        } else {
            None
        }
    }
}
