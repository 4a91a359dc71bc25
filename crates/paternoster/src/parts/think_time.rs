//! Think time: the time from the end of one request to the next one.
//!
//! It is a decaying mean in integers, as in Linux. Let e be the time since the last end, bounded by
//! twice the idle time, as a longer time is too long in any case:
//!
//! ```text
//!   samples = (7 × samples + 256) / 8        32, 60, 84, … toward 249: sure from the third on
//!   total   = (7 × total + 256 × e) / 8
//!   mean    = (total + 128) / samples
//! ```
//!
//! All is counted in a unit that the owner sets: in nanoseconds, or in ticks if its clock has them.

use crate::time::{Instant, Nanos};

/// One sample, and the weight to which samples tend.
const SAMPLE: u32 = 256;
/// A mean of more than this many weighted samples counts.
const ENOUGH: u32 = 80;

/// The think time of a task, or of all tasks on a tree or in a group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThinkTime {
    /// When the last request ended; at first a moment that the owner sets.
    last_end: Instant,
    samples: u32,
    /// In what the times are counted, each truncated: so many nanoseconds.
    unit: u32,
    /// Units, weighted like the samples.
    total: u64,
}

impl ThinkTime {
    /// Counts nanoseconds.
    pub(crate) fn new(last_end: Instant) -> Self {
        Self { last_end, samples: 0, unit: 1, total: 0 }
    }

    /// Counts such units, each of less than four seconds.
    pub(crate) fn counting(unit: Nanos, last_end: Instant) -> Self {
        let unit = u32::try_from(unit.as_nanos()).expect("a tick is a second at most");
        Self { unit, ..Self::new(last_end) }
    }

    /// When the last request ended.
    #[inline]
    pub(crate) fn last_end(&self) -> Instant {
        self.last_end
    }

    /// Notes the end of a request.
    #[inline]
    pub(crate) fn request_ended(&mut self, now: Instant) {
        self.last_end = now;
    }

    /// Notes a new request; `idle` is how long the device would idle for it.
    #[inline]
    pub(crate) fn request_made(&mut self, now: Instant, idle: Nanos) {
        let longest = idle.as_nanos().saturating_mul(2);
        let thought = now.wrapping_since(self.last_end).as_nanos().min(longest);
        // A division takes long, and most count nanoseconds.
        let thought = if self.unit == 1 { thought } else { thought / u64::from(self.unit) };
        self.samples = (7 * self.samples + SAMPLE) / 8;
        let total =
            self.total.wrapping_mul(7).wrapping_add(u64::from(SAMPLE).wrapping_mul(thought));
        self.total = total / 8;
    }

    /// Returns the mean, once there are enough samples.
    #[inline]
    pub(crate) fn mean(&self) -> Option<Nanos> {
        let enough = self.samples > ENOUGH;
        let mean = || self.total.wrapping_add(u64::from(SAMPLE / 2)) / u64::from(self.samples);
        enough.then(|| Nanos::new(mean().wrapping_mul(self.unit.into())))
    }

    /// Returns whether the mean is known and longer than `limit`.
    #[inline]
    pub(crate) fn exceeds(&self, limit: Nanos) -> bool {
        self.mean().is_some_and(|mean| mean > limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: Nanos = Nanos::from_millis(8);

    /// Thinks that long, again and again: the means.
    fn means(thought: Nanos, times: usize) -> Vec<Option<u64>> {
        let mut now = Instant::START;
        let mut think = ThinkTime::new(now);
        let means = (0..times).map(|_| {
            now = now + thought;
            think.request_made(now, IDLE);
            think.request_ended(now);
            think.mean().map(Nanos::as_nanos)
        });
        means.collect()
    }

    /// 10 ms each: samples 32, 60, 84; total 320, 600 and (7 × 600 + 256 × 10) / 8 = 845 ms. The
    /// first mean that counts is (845 000 000 + 128) / 84.
    #[test]
    fn mean_counts_from_the_third_sample_on() {
        let means = means(Nanos::from_millis(10), 3);
        assert_eq!(means[..2], [None, None]);
        assert_eq!(means[2], Some(10_059_525));
    }

    /// The mean is 10.059 525 ms, as above.
    #[test]
    fn mean_exceeds_what_is_less_than_it() {
        let mut now = Instant::START;
        let mut think = ThinkTime::new(now);
        for sample in 0..3 {
            assert!(!think.exceeds(Nanos::ZERO), "{sample} samples say nothing");
            now = now + Nanos::from_millis(10);
            think.request_made(now, IDLE);
            think.request_ended(now);
        }
        assert!(think.exceeds(Nanos::new(10_059_524)));
        assert!(!think.exceeds(Nanos::new(10_059_525)));
    }

    /// In ticks of 4 ms: 10 ms are 2 ticks each. Total 64, (7 × 64 + 512) / 8 = 120 and 169 ticks;
    /// (169 + 128) / 84 = 3 ticks.
    #[test]
    fn mean_in_ticks_is_truncated_at_every_step() {
        let tick = Nanos::from_millis(4);
        let mut now = Instant::START;
        let mut think = ThinkTime::counting(tick, now);
        for _ in 0..3 {
            now = now + Nanos::from_millis(10);
            think.request_made(now, IDLE);
            think.request_ended(now);
        }
        assert_eq!(think.total, 169);
        assert_eq!(think.mean(), Some(Nanos::from_millis(12)));
    }

    /// The end lies ahead of the first request: the time wraps and counts as the longest, which is
    /// 16 ms. Nothing is thought after that: 512, 448 and 392 ms of total, the last over 84
    /// samples.
    #[test]
    fn time_since_an_end_to_come_is_the_longest() {
        let now = Instant::START;
        let mut think = ThinkTime::new(now + Nanos::new(1));
        for _ in 0..3 {
            think.request_made(now, IDLE);
            think.request_ended(now);
        }
        assert_eq!(think.mean(), Some(Nanos::new(4_666_668)));
    }

    /// 16 ms count for any longer time: the mean tends to 256 / 249 × 16 ms and no further.
    #[test]
    fn thinking_counts_for_twice_the_idle_time_at_most() {
        let long = means(Nanos::from_millis(16), 100);
        assert_eq!(means(Nanos::from_millis(900), 100), long);
    }
}
