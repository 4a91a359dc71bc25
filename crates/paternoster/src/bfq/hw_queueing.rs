//! Whether the device queues requests itself, as it shows when it is given several at once; and
//! with it, whether queues are merged.
//!
//! On a device that does not rotate and queues, to merge the queues of tasks that work on the same
//! part of it gains nothing and costs: the shared queue has the weight of one and is waited for
//! like one. So no queue is merged there for its position, and none of the bookkeeping for that is
//! done. A device that does not rotate is taken to queue until it is found not to.

use crate::bfq::Bfq;
use crate::scheduler::{Cx, Device};
use crate::trace::{Event, Trace};

/// With more requests than this at once, a device queues; with no more than this queued and in the
/// device, nothing is learned.
const DEPTH: u32 = 3;
/// So many samples are taken before one decides.
const SAMPLES: u32 = 32;

/// What is known of the device.
#[derive(Debug)]
pub(super) struct HwQueueing {
    /// Whether it queues; nothing is known at first. Yes is final, no is not.
    device_queues: Option<bool>,
    /// The most requests that were in it at a completion, since it was judged or, once it is known
    /// to queue, ever since.
    pub(super) depth_seen: u32,
    samples: u32,
    /// Whether queues are merged for the position of their requests.
    merges_queues: bool,
    /// They are whatever the device, to see what that costs.
    pub(super) forced: bool,
}

impl HwQueueing {
    /// Of a device of which that may be known; Linux knows nothing at first.
    pub(super) fn new(device: &Device, forced: bool) -> Self {
        let fast = !device.rotational && device.queues != Some(false);
        Self {
            device_queues: device.queues,
            depth_seen: 0,
            samples: 0,
            merges_queues: !fast,
            forced,
        }
    }

    /// Whether the device queues, which it is taken to do until it is known not to.
    #[inline]
    pub(super) fn may_queue(&self) -> bool {
        self.device_queues != Some(false)
    }

    /// Whether queues are merged for the position of their requests.
    #[inline]
    pub(super) fn merges_queues(&self) -> bool {
        self.merges_queues || self.forced
    }
}

impl<T: Trace> Bfq<T> {
    /// A request has completed, and is still counted as in the device. Only completions under
    /// enough load, that the queue in service does not keep down itself, say anything.
    pub(super) fn sample_hw_queueing(&mut self, cx: &Cx<'_>) {
        let hw = &mut self.hw_queueing;
        hw.depth_seen = hw.depth_seen.max(self.in_driver);
        if hw.device_queues == Some(true)
            || cx.device.queues.is_some()
            || self.in_driver + self.queued <= DEPTH
        {
            return;
        }
        if let Some(active) = self.in_service {
            let queue = &self.queues[active];
            if queue.habits.think_briefly
                && queue.in_flight + queue.queued < DEPTH
                && self.in_driver < DEPTH
            {
                return;
            }
        }
        if hw.samples < SAMPLES {
            hw.samples += 1;
            return;
        }
        let now = hw.depth_seen > DEPTH;
        hw.depth_seen = 0;
        hw.samples = 0;
        let before = hw.device_queues.replace(now);
        let merges_queues = cx.device.rotational || !now;
        let merged_before = std::mem::replace(&mut hw.merges_queues, merges_queues);
        if before != Some(now) {
            self.trace.event(cx.now, Event::HardwareQueueing { before, now });
        }
        if merged_before != merges_queues {
            self.trace.event(cx.now, Event::QueueMerging { on: merges_queues });
        }
    }
}
