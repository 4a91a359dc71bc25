//! How queues start and stop to compete for service: every step in which the servers of `wf2q/` may
//! have *retired* a queue, that is, removed it from the idle tree for good.
//!
//! A retired queue is freed if nothing else keeps it, before anything else happens. That is done
//! here, and by the compiler it cannot be left out: each verb of `wf2q` that may retire a queue
//! returns a `Retired`, which must be used, and `free_retired` is its only use. In CFQ
//! `cfq/place.rs` says where a queue stands among others.

use crate::arena::GroupId;
use crate::bfq::Bfq;
use crate::bfq::queue_id::QueueId;
use crate::bfq::wf2q::{ActivationKind, Leaving, Retired, Service};
use crate::request::SectorCount;
use crate::scheduler::Cx;
use crate::trace::Trace;

impl<T: Trace> Bfq<T> {
    /// Activates the queue: in time if it may resume, or with new timestamps.
    pub(super) fn activate(&mut self, cx: &Cx, queue: QueueId) {
        let resumes = std::mem::take(&mut self.queues[queue].resumable);
        let kind = if resumes { ActivationKind::InTime } else { ActivationKind::New };
        let retired = self.wf2q.activate(queue, kind, cx.jiffies());
        self.free_retired(cx, &retired);
    }

    /// Reinserts an active queue on its tree, by its new budget and weight.
    pub(super) fn reinsert(&mut self, cx: &Cx, queue: QueueId, service: Service) {
        let retired = self.wf2q.reinsert(queue, service, cx.jiffies());
        self.free_retired(cx, &retired);
    }

    /// Deactivates the queue.
    pub(super) fn deactivate(
        &mut self,
        cx: &Cx,
        queue: QueueId,
        leaving: Leaving,
        service: Service,
    ) {
        let retired = self.wf2q.deactivate(queue, leaving, service, cx.jiffies());
        self.free_retired(cx, &retired);
    }

    /// Takes a queue off the idle tree, if it is there.
    pub(super) fn remove_idle(&mut self, cx: &Cx, queue: QueueId) {
        let retired = self.wf2q.remove_idle(queue);
        self.free_retired(cx, &retired);
    }

    /// Puts the queue in service that is due; there is one.
    pub(super) fn take_next(&mut self, cx: &Cx, root: GroupId) -> QueueId {
        let (queue, retired) = self.wf2q.serve_next(root, cx.jiffies());
        self.free_retired(cx, &retired);
        queue
    }

    /// Charges the queue and its parents for service.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn charge(&mut self, cx: &Cx, queue: QueueId, service: SectorCount) {
        self.queues[queue].note_served(cx, service);
        let retired = self.wf2q.charge(queue, service);
        self.free_retired(cx, &retired);
    }

    /// Frees the queues that have retired, as far as nothing else keeps them.
    #[inline]
    fn free_retired(&mut self, cx: &Cx, retired: &Retired) {
        while let Some(queue) = self.wf2q.next_retired(retired) {
            self.free_queue_if_unused(cx, queue);
        }
    }
}
