//! Whether the device queues requests itself, as it shows when it is given several at once.

use crate::cfq::Cfq;
use crate::scheduler::Cx;
use crate::trace::{Event, Trace};

/// From this many requests at once on, a device queues.
const DEPTH_MIN: u32 = 5;
/// So many samples are taken before one decides.
const SAMPLES: u32 = 50;

/// What is known of the device.
#[derive(Debug, Default)]
pub(super) struct HwQueueing {
    /// Whether it queues; nothing is known at first. Yes is final, no is not.
    device_queues: Option<bool>,
    /// The most requests that were in it at a completion.
    depth_seen: u32,
    samples: u32,
}

impl HwQueueing {
    /// Of a device of which that is known; Linux knows nothing at first.
    pub(super) fn new(known: Option<bool>) -> Self {
        Self { device_queues: known, ..Self::default() }
    }
}

impl<T: Trace> Cfq<T> {
    /// Whether the device queues, which it is taken to do until it is known not to.
    #[inline]
    pub(super) fn may_queue_in_hardware(&self) -> bool {
        self.hw_queueing.device_queues != Some(false)
    }

    /// A request has completed, and is still counted as in the device. Only completions under
    /// enough load, that the active queue does not keep down itself, say anything.
    pub(super) fn sample_hw_queueing(&mut self, cx: &Cx<'_>) {
        if cx.device.queues.is_some() {
            return;
        }
        let hw = &mut self.hw_queueing;
        hw.depth_seen = hw.depth_seen.max(self.in_driver);
        if hw.device_queues == Some(true)
            || (self.queued <= DEPTH_MIN && self.in_driver <= DEPTH_MIN)
        {
            return;
        }
        if let Some(active) = self.active {
            let queue = &self.queues[active];
            if queue.idle_window
                && queue.in_flight + queue.queued < DEPTH_MIN
                && self.in_driver < DEPTH_MIN
            {
                return;
            }
        }
        hw.samples = hw.samples.saturating_add(1);
        if hw.samples <= SAMPLES {
            return;
        }
        let now = hw.depth_seen >= DEPTH_MIN;
        let before = hw.device_queues.replace(now);
        if before != Some(now) {
            self.trace.event(cx.now, Event::HardwareQueueing { before, now });
        }
    }
}
