//! Learns whether the device queues requests itself, from how many it holds at once.
//!
//! ```text
//!   a completion with more than 5 requests   ──▶ 51 samples ──▶ were there ever 5 in the device?
//!   that the active queue does not hold down                    yes: it queues, for good
//!                                                               no: it does not, until a sample
//!                                                                   shows that it does
//! ```
//!
//! BFQ has other numbers (3 and 32), resets both counts after each verdict, and goes by the sum of
//! the waiting requests and those in flight. BFQ also decides by the verdict whether queues are
//! merged.

/// A device with this many requests at once queues them. With at most this many waiting and at most
/// this many in the device, nothing is learned.
const DEPTH: u32 = 5;
/// So many samples are taken before one decides.
const SAMPLES: u32 = 50;

/// What is known of the device.
#[derive(Debug)]
pub(super) struct HwQueueing {
    /// Whether it queues requests; none while that is not known.
    device_queues: Option<bool>,
    /// Whether more can be learned: the answer was not given at first, and is not yet yes, which is
    /// final.
    learns: bool,
    /// The most requests that were in the device at a completion.
    depth_seen: u32,
    /// Samples taken, up to `SAMPLES`.
    samples: u32,
}

/// The waiting requests and those in the device, at a completion.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    /// Includes the one that completes.
    pub(super) in_flight: u32,
    pub(super) queued: u32,
}

/// The active queue at a completion.
#[derive(Clone, Copy, Debug)]
pub(super) struct Active {
    pub(super) has_idle_window: bool,
    /// Its requests, waiting and in flight.
    pub(super) requests: u32,
}

/// A verdict that differs from what was known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NewVerdict {
    pub(super) before: Option<bool>,
    pub(super) now: bool,
}

impl HwQueueing {
    /// Begins with the answer, if it is known. In Linux it never is.
    pub(super) fn new(known: Option<bool>) -> Self {
        Self { device_queues: known, learns: known.is_none(), depth_seen: 0, samples: 0 }
    }

    /// Returns whether the device queues requests, or is not known not to.
    #[inline]
    pub(super) fn may_queue(&self) -> bool {
        self.device_queues != Some(false)
    }

    /// Learns from a completion, and returns the verdict if it is a new one. A completion is a
    /// sample only if there are enough requests, and the active queue does not hold the load down.
    #[inline]
    pub(super) fn observe_completion(
        &mut self,
        load: Load,
        active: impl FnOnce() -> Option<Active>,
    ) -> Option<NewVerdict> {
        if !self.learns {
            return None;
        }
        self.depth_seen = self.depth_seen.max(load.in_flight);
        if load.queued <= DEPTH && load.in_flight <= DEPTH {
            return None;
        }
        let keeps_load_down = |queue: Active| {
            queue.has_idle_window && queue.requests < DEPTH && load.in_flight < DEPTH
        };
        if active().is_some_and(keeps_load_down) {
            return None;
        }
        if self.samples < SAMPLES {
            self.samples += 1;
            return None;
        }
        let now = self.depth_seen >= DEPTH;
        let before = self.device_queues.replace(now);
        self.learns = !now;
        (before != Some(now)).then_some(NewVerdict { before, now })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A completion with so many requests in the device and so many waiting, no queue active.
    fn complete(hw: &mut HwQueueing, in_flight: u32, queued: u32) -> Option<NewVerdict> {
        hw.observe_completion(Load { in_flight, queued }, || None)
    }

    /// So many such completions, without a verdict.
    fn samples(hw: &mut HwQueueing, count: u32, in_flight: u32, queued: u32) {
        for sample in 0..count {
            assert_eq!(complete(hw, in_flight, queued), None, "sample {sample}");
        }
    }

    /// 50 samples are taken and the 51st decides: 5 requests in the device at once are enough, and
    /// 4 are not.
    #[test]
    fn device_with_five_requests_at_once_queues_at_the_51st_sample() {
        for (depth, now) in [(5, true), (4, false)] {
            let mut hw = HwQueueing::new(None);
            assert!(hw.may_queue(), "it is taken to queue");
            samples(&mut hw, 50, depth, 6);
            let verdict = complete(&mut hw, depth, 6);
            assert_eq!(verdict, Some(NewVerdict { before: None, now }), "{depth}");
            assert_eq!(hw.may_queue(), now);
        }
    }

    /// More than 5 have to wait, or to be in the device; 5 of each are no sample.
    #[test]
    fn five_requests_waiting_and_five_in_the_device_are_no_sample() {
        for (in_flight, queued, says) in [(5, 5, false), (6, 0, true), (0, 6, true)] {
            let mut hw = HwQueueing::new(None);
            samples(&mut hw, 50, in_flight, queued);
            assert_eq!(
                complete(&mut hw, in_flight, queued).is_some(),
                says,
                "{in_flight} {queued}"
            );
        }
    }

    /// The active queue keeps the load down itself if it has an idle window, less than 5 requests,
    /// and less than 5 are in the device. Each of the three alone makes no difference.
    #[test]
    fn completion_is_no_sample_while_the_active_queue_keeps_the_load_down() {
        let rows =
            [(true, 4, 4, false), (false, 4, 4, true), (true, 5, 4, true), (true, 4, 5, true)];
        for (has_idle_window, requests, in_flight, says) in rows {
            let mut hw = HwQueueing::new(None);
            let active = Active { has_idle_window, requests };
            let load = Load { in_flight, queued: 9 };
            let verdicts = (0..51).filter_map(|_| hw.observe_completion(load, || Some(active)));
            assert_eq!(verdicts.count() > 0, says, "{active:?} {load:?}");
        }
    }

    /// After the first verdict each sample decides by itself: the first with 5 in the device makes
    /// it yes, which is final.
    #[test]
    fn no_is_judged_again_at_the_next_sample_and_yes_is_not() {
        let mut hw = HwQueueing::new(None);
        samples(&mut hw, 50, 4, 6);
        assert_eq!(complete(&mut hw, 4, 6), Some(NewVerdict { before: None, now: false }));
        samples(&mut hw, 1, 4, 6);
        let yes = NewVerdict { before: Some(false), now: true };
        assert_eq!(complete(&mut hw, 5, 6), Some(yes));
        samples(&mut hw, 100, 1, 6);
        assert!(hw.may_queue());
    }

    /// A depth counts even if the completion that showed it was no sample.
    #[test]
    fn depth_is_never_forgotten() {
        let mut hw = HwQueueing::new(None);
        samples(&mut hw, 1, 5, 0);
        samples(&mut hw, 50, 1, 6);
        assert_eq!(complete(&mut hw, 1, 6), Some(NewVerdict { before: None, now: true }));
    }

    #[test]
    fn known_answer_is_never_judged() {
        for known in [false, true] {
            let mut hw = HwQueueing::new(Some(known));
            samples(&mut hw, 200, if known { 1 } else { 9 }, 9);
            assert_eq!(hw.may_queue(), known);
        }
    }
}
