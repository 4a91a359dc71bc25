//! How who writes is held back when too much is dirty.
//!
//! From Linux 3.2 on, a writer sleeps so that all of them together are as fast as the device:
//!
//! ```text
//!   rate = bandwidth ÷ writers × position
//!
//!   position   2 ┤╲
//!                │  ╲____            1 + ((set point − level) ÷ (limit − set point))³
//!              1 ┤       ╲____
//!                │            ╲
//!              0 ┼───┬────┬────┬──▶ level
//!              free run  set   limit
//!                       point
//! ```
//!
//! Below the free run, half way between background and limit, nobody is held back. Bandwidth and
//! writers are those of the last 200 ms, the bandwidth smoothed over 3 s. No sleep is longer than
//! 200 ms.
//!
//! Before, a writer above the limit wrote dirty pages to the device itself and slept up to 100 ms,
//! until what was dirty was below the limit again.

use std::collections::BTreeSet;

use paternoster::{Instant, Nanos};

use super::writeback::Limits;

/// How often bandwidth and writers are estimated; the longest sleep.
const INTERVAL: Nanos = Nanos::from_millis(200);

/// Over what time the bandwidth is smoothed.
const SMOOTHING: Nanos = Nanos::from_secs(3);

/// 100 MiB/s, until something was measured.
const FIRST_BANDWIDTH: u64 = 25_600;

/// How many pages a writer dirties before it is looked at again.
const FIRST_ALLOWANCE: u64 = 32;

/// A position of 1.
const ONE: i64 = 1024;

/// In which way writers are held back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Throttling {
    /// They sleep, as from Linux 3.2 on.
    #[default]
    Sleeps,
    /// They write dirty pages themselves, as before.
    WritesBack,
}

/// What is known of who writes.
#[derive(Debug)]
pub(crate) struct Throttle {
    limits: Limits,
    /// The estimate, in pages a second.
    bandwidth: u64,
    /// When the present interval began.
    began: Instant,
    /// Pages that were written in it.
    written: u64,
    /// Who has written in it.
    writers: BTreeSet<u32>,
    /// How many wrote in the one before.
    count: u64,
}

/// A writer, as far as it is held back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Writer {
    /// Pages that it has dirtied and was not yet looked at for.
    pub(crate) unseen: u64,
    /// How many those may be.
    pub(crate) allowance: u64,
    /// How many pages it has to write itself, and then to sleep.
    pub(crate) owes: Option<u64>,
    /// From when on they count.
    since: Instant,
}

impl Default for Writer {
    fn default() -> Self {
        Self { unseen: 0, allowance: FIRST_ALLOWANCE, owes: None, since: Instant::START }
    }
}

impl Throttle {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            bandwidth: FIRST_BANDWIDTH,
            began: Instant::START,
            written: 0,
            writers: BTreeSet::new(),
            count: 1,
        }
    }

    /// So many pages were written.
    pub(super) fn written(&mut self, pages: u64) {
        self.written += pages;
    }

    /// What a writer of old has to write itself, `level` being dirty or being written; the memory
    /// has so many pages.
    pub(crate) fn owed(&self, writer: &mut Writer, level: u64, memory: u64) -> Option<u64> {
        let unseen = (memory / 32).clamp(16, 1024);
        if level > self.limits.limit {
            return Some(unseen + unseen / 2);
        }
        *writer = Writer { allowance: unseen, ..Writer::default() };
        None
    }

    /// How long the writer of that number has to sleep, `level` being dirty or being written.
    pub(crate) fn pause(
        &mut self,
        now: Instant,
        number: u32,
        writer: &mut Writer,
        level: u64,
    ) -> Nanos {
        self.writers.insert(number);
        self.estimate(now);
        let position = self.position(level);
        let rate = match position {
            None => {
                *writer = Writer { since: now, ..Writer::default() };
                return Nanos::ZERO;
            }
            Some(position) => self.bandwidth * position / ONE.unsigned_abs() / self.count,
        };
        if rate == 0 {
            return INTERVAL;
        }
        let due = Nanos::new(writer.unseen * 1_000_000_000 / rate);
        let pause = due.saturating_sub(now.saturating_since(writer.since)).min(INTERVAL);
        // So many pages that the next sleep is one of about 10 ms.
        writer.unseen = 0;
        writer.allowance = (rate / 100).clamp(1, 1024);
        writer.since = now + pause;
        pause
    }

    /// The factor for what is dirty; none where it does not matter.
    fn position(&self, level: u64) -> Option<u64> {
        let Limits { background, limit } = self.limits;
        let free_run = u64::midpoint(background, limit);
        if level <= free_run {
            return None;
        }
        let set_point = u64::midpoint(free_run, limit);
        let signed = |pages: u64| i64::try_from(pages).expect("memory is below 2^63 pages");
        let span = signed(limit - set_point).max(1);
        let x = ((signed(set_point) - signed(level)) * ONE / span).clamp(-ONE, ONE);
        Some((ONE + x * x * x / (ONE * ONE)).unsigned_abs())
    }

    /// Ends an interval that is over:
    ///
    /// `bandwidth += (pages ÷ time − bandwidth) × time ÷ 3 s`
    fn estimate(&mut self, now: Instant) {
        let time = now.saturating_since(self.began);
        if time < INTERVAL {
            return;
        }
        let measured = u128::from(self.written) * 1_000_000_000 / u128::from(time.as_nanos());
        let measured = u64::try_from(measured).unwrap_or(u64::MAX);
        // Nothing written says nothing of the device.
        if self.written > 0 {
            let (weight, of) = (time.min(SMOOTHING).as_nanos(), SMOOTHING.as_nanos());
            let sum = u128::from(self.bandwidth) * u128::from(of - weight)
                + u128::from(measured) * u128::from(weight);
            self.bandwidth = u64::try_from(sum / u128::from(of)).unwrap_or(u64::MAX).max(1);
        }
        self.count = u64::try_from(self.writers.len()).expect("a length fits").max(1);
        self.writers.clear();
        self.written = 0;
        self.began = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { background: 1000, limit: 2000 };

    fn at(ms: u64) -> Instant {
        Instant::START + Nanos::from_millis(ms)
    }

    /// Free run up to 1500 pages, the set point at 1750.
    #[test]
    fn position_falls_from_two_to_nothing() {
        let throttle = Throttle::new(LIMITS);
        assert_eq!(throttle.position(1500), None);
        assert_eq!(throttle.position(1501), Some(1024 + 1009));
        assert_eq!(throttle.position(1750), Some(1024));
        assert_eq!(throttle.position(1875), Some(1024 - 128), "1 - (1/2)^3");
        assert_eq!(throttle.position(2000), Some(0));
        assert_eq!(throttle.position(9000), Some(0));
    }

    /// 256 pages at 25,600 a second are 10 ms.
    #[test]
    fn writer_at_the_set_point_is_as_fast_as_the_device() {
        let mut throttle = Throttle::new(LIMITS);
        let mut writer = Writer { unseen: 256, since: at(0), ..Writer::default() };
        assert_eq!(throttle.pause(at(4), 0, &mut writer, 1750), Nanos::from_millis(6));
        assert_eq!((writer.unseen, writer.allowance), (0, 256));
        writer.unseen = 256;
        assert_eq!(throttle.pause(at(10), 0, &mut writer, 1750), Nanos::from_millis(10));
    }

    /// 300 ms at 51,200 pages a second and 25,600 before are 25,600 + 25,600 × 0.3 ÷ 3. Two have
    /// written.
    #[test]
    fn estimate_moves_towards_what_was_written() {
        let mut throttle = Throttle::new(LIMITS);
        throttle.written(15_360);
        for number in [3, 4] {
            throttle.pause(at(100), number, &mut Writer::default(), 0);
        }
        throttle.pause(at(300), 3, &mut Writer::default(), 0);
        assert_eq!((throttle.bandwidth, throttle.count), (28_160, 2));
    }

    #[test]
    fn writer_above_the_limit_sleeps_the_longest_and_is_looked_at_again() {
        let mut throttle = Throttle::new(LIMITS);
        let mut writer = Writer { unseen: 32, ..Writer::default() };
        assert_eq!(throttle.pause(at(0), 0, &mut writer, 2001), INTERVAL);
        assert_eq!(writer.unseen, 32);
    }
}
