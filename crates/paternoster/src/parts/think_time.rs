//! How long somebody thinks between the end of one request and the making of the next.
//!
//! A decaying mean in integers, as Linux keeps it. With e the time since the last end, at most
//! twice the idle time at stake (longer is just "too long"):
//!
//! ```text
//!   samples = (7 × samples + 256) / 8        32, 60, 84, … toward 249: sure from the third on
//!   total   = (7 × total + 256 × e) / 8
//!   mean    = (total + 128) / samples
//! ```

use crate::time::{Instant, Nanos};

/// One sample, and the weight to which samples tend.
const SAMPLE: u64 = 256;
/// A mean of more than this many weighted samples is to be believed.
const ENOUGH: u64 = 80;

/// The think time of a task, or of all that share a tree or a group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThinkTime {
    /// When the last request ended; at first what its owner says.
    last_end: Instant,
    samples: u64,
    /// Nanoseconds, weighted like the samples.
    total: u64,
}

impl ThinkTime {
    pub(crate) fn new(last_end: Instant) -> Self {
        Self { last_end, samples: 0, total: 0 }
    }

    /// When the last request ended.
    #[inline]
    pub(crate) fn last_end(&self) -> Instant {
        self.last_end
    }

    /// A request has ended.
    #[inline]
    pub(crate) fn request_ended(&mut self, now: Instant) {
        self.last_end = now;
    }

    /// A request was made; `idle` is how long one would wait for it.
    #[inline]
    pub(crate) fn request_made(&mut self, now: Instant, idle: Nanos) {
        let longest = idle.as_nanos().saturating_mul(2);
        let thought = now.wrapping_since(self.last_end).as_nanos().min(longest);
        self.samples = (7 * self.samples + SAMPLE) / 8;
        let total = self.total.wrapping_mul(7).wrapping_add(SAMPLE.wrapping_mul(thought));
        self.total = total / 8;
    }

    /// The mean, once there are samples enough.
    #[inline]
    pub(crate) fn mean(&self) -> Option<Nanos> {
        let enough = self.samples > ENOUGH;
        enough.then(|| Nanos::new(self.total.wrapping_add(SAMPLE / 2) / self.samples))
    }

    /// Whether it surely takes longer than `limit`.
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

    /// 16 ms count for any longer time: the mean tends to 256 / 249 × 16 ms and no further.
    #[test]
    fn thinking_counts_for_twice_the_idle_time_at_most() {
        let long = means(Nanos::from_millis(16), 100);
        assert_eq!(means(Nanos::from_millis(900), 100), long);
    }
}
