//! Learns whether the device queues requests itself, from how many it holds at once, and decides by
//! that whether queues are merged.
//!
//! ```text
//!   completion with more than 3 requests,    ──▶ 33 samples ──▶ more than 3 in the device at
//!   not held down by the queue in service                       once: it queues, for good; else
//!                                                               not, until the next verdict
//! ```
//!
//! On a device that is not rotational and queues, to merge the queues of tasks that work on the
//! same part of it gains nothing and costs: the shared queue has the weight of one, and the device
//! idles for it as for one. So no queue is merged there for its position, and none of the
//! bookkeeping for that is done. A device that is not rotational is taken to queue until it is
//! found not to.
//!
//! CFQ's differs in its numbers (5 and 50), never forgets the depth it has seen, judges every
//! sample after the 50th by itself, and counts no depth where it was told the answer. CFQ merges
//! queues on every device.

use crate::device::Device;

/// With more requests than this at once, a device queues; with no more than this queued and in the
/// device, nothing is learned.
const DEPTH: u32 = 3;
/// So many samples are taken before the one that decides.
const SAMPLES: u32 = 32;

/// What is known of the device.
#[derive(Debug)]
pub(super) struct HwQueueing {
    /// Whether it queues; nothing is known at first.
    device_queues: Option<bool>,
    /// Whether more can be learned: the answer was not given, and is not yes, which is final.
    learns: bool,
    rotational: bool,
    /// The most requests that were in the device at a completion, since the last verdict or, once
    /// it is known to queue, ever since.
    depth_seen: u32,
    samples: u32,
    policy: QueueMerging,
    /// Whether queues are merged for the position of their requests, which follows from the above.
    merges_queues: bool,
}

/// When BFQ merges the queues of tasks that work on the same part of the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum QueueMerging {
    /// On one that is rotational or does not queue requests itself; on others those that are
    /// created together (`stable_merge.rs`).
    #[default]
    Linux,
    /// Never.
    Never,
    /// On every device, to see what that costs.
    Everywhere,
}

/// The requests that wait and those in the device, at a completion.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    /// With the one that has completed.
    pub(super) in_flight: u32,
    pub(super) queued: u32,
}

/// The queue in service at a completion.
#[derive(Clone, Copy, Debug)]
pub(super) struct InService {
    pub(super) has_short_think_time: bool,
    /// Its requests, waiting and in the device.
    pub(super) requests: u32,
}

/// A verdict that differs from what was known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NewVerdict {
    pub(super) before: Option<bool>,
    pub(super) now: bool,
    /// Whether queues are merged now, if that has changed too.
    pub(super) merging: Option<bool>,
}

impl HwQueueing {
    /// Of a device of which the answer may be known; Linux knows nothing at first.
    pub(super) fn new(device: &Device, policy: QueueMerging) -> Self {
        let mut new = Self {
            device_queues: device.native_queueing,
            learns: device.native_queueing.is_none(),
            rotational: device.rotational,
            depth_seen: 0,
            samples: 0,
            policy,
            merges_queues: false,
        };
        new.merges_queues = new.should_merge_queues();
        new
    }

    /// Returns whether the device queues, which it is taken to do until it is known not to.
    #[inline]
    pub(super) fn may_queue(&self) -> bool {
        self.device_queues != Some(false)
    }

    /// Returns whether queues are merged for the position of their requests.
    #[inline]
    pub(super) fn merges_queues(&self) -> bool {
        self.merges_queues
    }

    /// When queues are merged.
    pub(super) fn policy(&self) -> QueueMerging {
        self.policy
    }

    /// Sets when they are merged from now on. Returns whether they are merged for their positions
    /// now, if that has changed.
    pub(super) fn set_policy(&mut self, policy: QueueMerging) -> Option<bool> {
        self.policy = policy;
        let merging = self.should_merge_queues();
        let before = std::mem::replace(&mut self.merges_queues, merging);
        (before != merging).then_some(merging)
    }

    /// What the device is known to do, as Linux's `hw_tag`: −1 while nothing is known.
    pub(super) fn hw_tag(&self) -> i64 {
        self.device_queues.map_or(-1, i64::from)
    }

    /// Linux's `nonrot_with_queueing`: the device does not seek, and may queue.
    pub(super) fn is_nonrot_with_queueing(&self) -> bool {
        !self.rotational && self.may_queue()
    }

    /// The most requests that were in the device at a completion, since the last verdict or, once
    /// it is known to queue, ever since.
    #[inline]
    pub(super) fn depth_seen(&self) -> u32 {
        self.depth_seen
    }

    /// Learns from a completion. Returns the verdict if that is a new one. Only completions under
    /// enough load, that the queue in service does not keep down itself, say anything.
    #[inline]
    pub(super) fn observe_completion(
        &mut self,
        load: Load,
        in_service: impl FnOnce() -> Option<InService>,
    ) -> Option<NewVerdict> {
        self.depth_seen = self.depth_seen.max(load.in_flight);
        if !self.learns || load.in_flight + load.queued <= DEPTH {
            return None;
        }
        let keeps_load_down = |queue: InService| {
            queue.has_short_think_time && queue.requests < DEPTH && load.in_flight < DEPTH
        };
        if in_service().is_some_and(keeps_load_down) {
            return None;
        }
        if self.samples < SAMPLES {
            self.samples += 1;
            return None;
        }
        self.judge()
    }

    /// Returns the verdict if that is a new one.
    fn judge(&mut self) -> Option<NewVerdict> {
        let now = self.depth_seen > DEPTH;
        self.depth_seen = 0;
        self.samples = 0;
        let before = self.device_queues.replace(now);
        self.learns = !now;
        let merging = self.should_merge_queues();
        let merged_before = std::mem::replace(&mut self.merges_queues, merging);
        let merging = (merged_before != merging).then_some(merging);
        (before != Some(now)).then_some(NewVerdict { before, now, merging })
    }

    fn should_merge_queues(&self) -> bool {
        match self.policy {
            QueueMerging::Linux => !self.is_nonrot_with_queueing(),
            QueueMerging::Never => false,
            QueueMerging::Everywhere => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new(device: Device) -> HwQueueing {
        HwQueueing::new(&device, QueueMerging::Linux)
    }

    /// A completion with so many requests in the device and so many waiting, no queue in service.
    fn complete(hw: &mut HwQueueing, in_flight: u32, queued: u32) -> Option<NewVerdict> {
        hw.observe_completion(Load { in_flight, queued }, || None)
    }

    /// So many such completions, without a verdict.
    fn samples(hw: &mut HwQueueing, count: u32, in_flight: u32, queued: u32) {
        for sample in 0..count {
            assert_eq!(complete(hw, in_flight, queued), None, "sample {sample}");
        }
    }

    /// 32 samples are taken and the 33rd decides: 4 requests in the device at once are more than
    /// 3, and 3 are not.
    #[test]
    fn device_with_more_than_three_requests_at_once_queues_at_the_33rd_sample() {
        for (depth, now, merging) in [(4, true, None), (3, false, Some(true))] {
            let mut hw = new(Device::solid_state(32));
            assert!(hw.may_queue() && !hw.merges_queues(), "it is taken to queue");
            samples(&mut hw, 32, depth, 1);
            let verdict = complete(&mut hw, depth, 1);
            assert_eq!(verdict, Some(NewVerdict { before: None, now, merging }), "{depth}");
            assert_eq!((hw.may_queue(), hw.merges_queues()), (now, !now));
        }
    }

    /// 4 were in the device once, the other 32 times less.
    #[test]
    fn depth_is_the_most_since_the_last_verdict() {
        let mut hw = new(Device::solid_state(32));
        samples(&mut hw, 1, 4, 0);
        samples(&mut hw, 31, 1, 3);
        let yes = NewVerdict { before: None, now: true, merging: None };
        assert_eq!(complete(&mut hw, 1, 3), Some(yes));
    }

    /// 4 requests at a time are one sample, 3 are none, wherever they are.
    #[test]
    fn three_requests_say_nothing() {
        for (in_flight, queued, says) in [(1, 2, false), (2, 1, false), (1, 3, true)] {
            let mut hw = new(Device::solid_state(32));
            samples(&mut hw, 32, in_flight, queued);
            assert_eq!(
                complete(&mut hw, in_flight, queued).is_some(),
                says,
                "{in_flight} {queued}"
            );
        }
    }

    /// The queue in service keeps the load down itself if it has a short think time, less than 3
    /// requests, and less than 3 are in the device. Each of the three alone makes no difference.
    #[test]
    fn queue_in_service_that_keeps_the_load_down_says_nothing() {
        let rows =
            [(true, 2, 2, false), (false, 2, 2, true), (true, 3, 2, true), (true, 2, 3, true)];
        for (has_short_think_time, requests, in_flight, says) in rows {
            let mut hw = new(Device::solid_state(32));
            let in_service = InService { has_short_think_time, requests };
            let load = Load { in_flight, queued: 5 };
            let verdicts = (0..33).filter_map(|_| hw.observe_completion(load, || Some(in_service)));
            assert_eq!(verdicts.count() > 0, says, "{in_service:?} {load:?}");
        }
    }

    /// The depth restarts with each verdict, so that a device which showed none of 3 for a while
    /// may show it later. Yes is final, and the depth counts on from there.
    #[test]
    fn no_is_judged_again_and_yes_is_not() {
        let mut hw = new(Device::solid_state(32));
        samples(&mut hw, 32, 2, 2);
        let no = NewVerdict { before: None, now: false, merging: Some(true) };
        assert_eq!(complete(&mut hw, 2, 2), Some(no));
        assert_eq!(hw.depth_seen(), 0);
        samples(&mut hw, 33, 2, 2);
        samples(&mut hw, 32, 4, 0);
        let yes = NewVerdict { before: Some(false), now: true, merging: Some(false) };
        assert_eq!(complete(&mut hw, 4, 0), Some(yes));
        samples(&mut hw, 100, 2, 2);
        assert!(hw.may_queue());
        assert_eq!(hw.depth_seen(), 2);
    }

    #[test]
    fn given_answer_is_not_judged() {
        for told in [false, true] {
            let mut hw = new(Device::solid_state(32).with_native_queueing(told));
            samples(&mut hw, 100, if told { 2 } else { 9 }, 2);
            assert_eq!((hw.may_queue(), hw.merges_queues()), (told, !told));
            assert_eq!(hw.depth_seen(), if told { 2 } else { 9 }, "injection goes by it");
        }
    }

    #[test]
    fn queues_are_merged_on_a_rotational_device_and_as_the_policy_says() {
        let mut disk = new(Device::disk(32));
        samples(&mut disk, 32, 4, 0);
        let yes = NewVerdict { before: None, now: true, merging: None };
        assert_eq!(complete(&mut disk, 4, 0), Some(yes));
        assert!(disk.merges_queues());
        let mut fast = HwQueueing::new(&Device::solid_state(32), QueueMerging::Everywhere);
        assert!(fast.merges_queues());
        samples(&mut fast, 32, 4, 0);
        assert_eq!(complete(&mut fast, 4, 0), Some(yes));
        assert!(fast.merges_queues());
        assert_eq!(disk.set_policy(QueueMerging::Never), Some(false));
        assert!(!disk.merges_queues());
        assert_eq!(disk.set_policy(QueueMerging::Never), None);
        assert_eq!(fast.set_policy(QueueMerging::Linux), Some(false));
        assert_eq!((fast.merges_queues(), fast.hw_tag()), (false, 1));
    }
}
