//! Whether to serve all queues alike would be to serve them fairly.
//!
//! In a *symmetric* scenario queues can be served as requests come, and the device kept busy. In an
//! asymmetric one shares are only held by keeping the device free for the queue in service.

use crate::bfq::Bfq;
use crate::bfq::queue::QueueId;
use crate::io_context::IoClass;
use crate::trace::Trace;

/// Who is busy.
#[derive(Debug, Default)]
pub(super) struct Symmetry {
    /// Busy queues of each class. A queue that changes class while it is busy is taken back from
    /// its new class, as in Linux: the numbers may wrap, their sum stays right.
    busy: [u32; IoClass::COUNT],
    /// Busy queues whose weight is raised. Less than 0 for good once low latency was turned off
    /// while queues were busy that were not raised, as in Linux.
    pub(super) raised_busy: i32,
}

impl Symmetry {
    pub(super) fn becomes_busy(&mut self, class: IoClass) {
        let busy = &mut self.busy[class as usize];
        *busy = busy.wrapping_add(1);
    }

    pub(super) fn leaves_busy(&mut self, class: IoClass) {
        let busy = &mut self.busy[class as usize];
        *busy = busy.wrapping_sub(1);
    }

    /// Busy queues.
    #[inline]
    pub(super) fn busy(&self) -> u32 {
        self.busy.iter().fold(0, |sum, &busy| sum.wrapping_add(busy))
    }

    /// Whether fewer queues are raised than busy.
    #[inline]
    pub(super) fn some_not_raised(&self) -> bool {
        i64::from(self.raised_busy) < i64::from(self.busy())
    }

    /// Whether queues of several classes are busy.
    #[inline]
    fn classes_differ(&self) -> bool {
        self.busy.iter().filter(|&&busy| busy > 0).count() > 1
    }
}

impl<T: Trace> Bfq<T> {
    /// Whether the scenario is asymmetric, for `queue`: active queues differ in weight, and it has
    /// not the least; or busy ones differ in class; or there are groups with I/O pending.
    #[inline]
    pub(super) fn is_asymmetric(&self, queue: QueueId) -> bool {
        self.wf2q.groups_pending > 0
            || (self.wf2q.counters.differ() && !self.wf2q.has_least_weight(queue))
            || self.symmetry.classes_differ()
    }
}
