//! Whether shares hold if all queues are served alike.
//!
//! In a *symmetric* scenario queues can be served as requests come, and the device kept busy. In an
//! asymmetric one shares are only held by idling for the queue in service. CFQ idles without that
//! question.

use crate::bfq::Bfq;
use crate::bfq::queue_id::QueueId;
use crate::trace::Trace;

impl<T: Trace> Bfq<T> {
    /// Returns whether the scenario is asymmetric, for `queue`: active queues differ in weight, and
    /// it has not the least; or busy ones differ in class; or there are groups with I/O pending.
    #[inline]
    pub(super) fn is_asymmetric(&self, queue: QueueId) -> bool {
        self.wf2q.weights_matter_for(queue) || self.busy.classes_differ()
    }
}
