//! The latencies of a domain beside its target, in histograms of quarters of the target.
//!
//! ```text
//!   bucket     0     1     2     3  |  4     5     6     7
//!   up to    T/4   T/2  3T/4     T  | 5T/4  3T/2  7T/4   any     T: the target
//!                          good     |  bad
//! ```
//!
//! There are two histograms: of the time in the device, which shows congestion, and of the total
//! time from the arrival on, waiting included. A percentile of one is computed as soon as it has
//! enough samples, or a second after the first try, and empties the histogram.
//!
//! An oddity: that second is one for both histograms. With few samples the device's percentile uses
//! it up, so that the total one mostly has to wait until it has enough samples.

use crate::time::{Hz, Jiffies, Nanos};
use crate::trace::LatencyKind;

/// The buckets of a histogram.
const BUCKETS: usize = 8;
/// A target is so many buckets wide.
const BUCKETS_OF_TARGET: u64 = 4;
/// So many samples are enough for a percentile at once.
const ENOUGH_SAMPLES: u32 = 500;

/// A bucket of a histogram, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Bucket(u8);

impl Bucket {
    /// Returns the bucket of `latency` beside a target.
    #[inline]
    pub(super) fn of(latency: Nanos, target: Nanos) -> Self {
        let width = (target.as_nanos() / BUCKETS_OF_TARGET).max(1);
        let quarters = latency.as_nanos().saturating_sub(1) / width;
        Self(u8::try_from(quarters).map_or(LAST, |quarters| quarters.min(LAST)))
    }

    /// Its number, from 1: as many quarters of the target as its latencies take at most, except in
    /// the last one.
    pub(super) fn quarters(self) -> u32 {
        u32::from(self.0) + 1
    }

    /// Returns whether its latencies are beyond the target.
    pub(super) fn is_bad(self) -> bool {
        u64::from(self.0) >= BUCKETS_OF_TARGET
    }
}

#[allow(clippy::cast_possible_truncation)] // 7
const LAST: u8 = BUCKETS as u8 - 1;

/// How many samples are in each bucket.
#[derive(Clone, Copy, Debug, Default)]
struct Histogram([u32; BUCKETS]);

impl Histogram {
    #[inline]
    fn add(&mut self, Bucket(bucket): Bucket) {
        self.0[usize::from(bucket)] += 1;
    }

    fn samples(&self) -> u32 {
        self.0.iter().sum()
    }

    /// Returns the bucket within which `percent` of the samples lie, rounded up to whole samples.
    fn percentile(&self, percent: u32) -> Bucket {
        let needed = (u64::from(self.samples()) * u64::from(percent)).div_ceil(100);
        let mut within = 0;
        let reaches = |&(_, &count): &(u8, &u32)| {
            within += u64::from(count);
            within >= needed
        };
        (0..LAST).zip(&self.0).find(reaches).map_or(Bucket(LAST), |(bucket, _)| Bucket(bucket))
    }
}

/// A percentile that was computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Percentile {
    pub(super) bucket: Bucket,
    /// How many samples it was computed of.
    pub(super) samples: u32,
}

/// The latencies of a domain.
#[derive(Debug, Default)]
pub(super) struct Latencies {
    total: Histogram,
    device: Histogram,
    /// From this tick on a percentile is computed of however few samples; none before a try.
    deadline: Option<Jiffies>,
    /// The last 99th percentile of the total latencies without congestion; none once it was used.
    remembered: Option<Bucket>,
}

impl Latencies {
    /// Notes the latencies of a request.
    #[inline]
    pub(super) fn add(&mut self, total: Bucket, device: Bucket) {
        self.total.add(total);
        self.device.add(device);
    }

    /// Computes a percentile and empties its histogram; none if there are too few samples yet.
    pub(super) fn take_percentile(
        &mut self,
        kind: LatencyKind,
        percent: u32,
        now: Jiffies,
        hz: Hz,
    ) -> Option<Percentile> {
        let histogram = match kind {
            LatencyKind::Total => &mut self.total,
            LatencyKind::Device => &mut self.device,
        };
        let samples = histogram.samples();
        if samples == 0 {
            return None;
        }
        let deadline = *self.deadline.get_or_insert(now + hz.part_of_second(1));
        if samples < ENOUGH_SAMPLES && now < deadline {
            return None;
        }
        self.deadline = None;
        let bucket = histogram.percentile(percent);
        *histogram = Histogram::default();
        Some(Percentile { bucket, samples })
    }

    /// Returns what to judge the domain by: its `p99` or, while the device is congested, the one
    /// remembered from before.
    pub(super) fn judge_by(&mut self, p99: Option<Bucket>, congested: bool) -> Option<Bucket> {
        if congested {
            let remembered = self.remembered.take();
            return p99.or(remembered);
        }
        self.remembered = p99.or(self.remembered);
        p99
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::{Instant, Ticks};
    use crate::trace::LatencyKind::{Device, Total};

    const MS_2: Nanos = Nanos::from_millis(2);

    fn bucket(nanos: u64, target: Nanos) -> u8 {
        Bucket::of(Nanos::new(nanos), target).0
    }

    fn start() -> Jiffies {
        Hz::MILLI.jiffies(Instant::START)
    }

    /// Latencies with these counts in both histograms.
    fn latencies(counts: [u32; BUCKETS]) -> Latencies {
        Latencies { total: Histogram(counts), device: Histogram(counts), ..Latencies::default() }
    }

    /// A quarter of 2 ms is 0.5 ms, and a latency at the edge is in the lower bucket.
    #[test]
    fn bucket_is_a_quarter_of_the_target() {
        let at = [0, 1, 500_000, 500_001, 2_000_000, 2_000_001, 3_500_000, 3_500_001, u64::MAX];
        assert_eq!(at.map(|nanos| bucket(nanos, MS_2)), [0, 0, 0, 1, 3, 4, 6, 7, 7]);
    }

    #[test]
    fn target_of_less_than_four_nanoseconds_has_buckets_of_one() {
        for target in [0, 1, 3, 4, 7] {
            let buckets = [0, 1, 2, 4, 5, 8, 9].map(|nanos| bucket(nanos, Nanos::new(target)));
            assert_eq!(buckets, [0, 0, 1, 3, 4, 7, 7], "{target} ns");
        }
        assert_eq!(bucket(2, Nanos::new(8)), 0);
    }

    #[test]
    fn four_buckets_are_within_the_target() {
        let bad: Vec<_> = (0..8).map(|bucket| Bucket(bucket).is_bad()).collect();
        assert_eq!(bad, [false, false, false, false, true, true, true, true]);
        assert_eq!(Bucket(3).quarters(), 4);
    }

    /// Of 1000 samples the 900 lowest are within bucket 0, and the 990 lowest within 2. Of 7
    /// samples 90 % are 6.3, hence 7.
    #[test]
    fn percentile_counts_whole_samples_from_the_lowest_on() {
        let many = Histogram([900, 60, 30, 0, 0, 0, 0, 10]);
        let percentiles = [90, 91, 96, 97, 99, 100].map(|percent| many.percentile(percent).0);
        assert_eq!(percentiles, [0, 1, 1, 2, 2, 7]);
        let few = Histogram([6, 0, 0, 0, 0, 1, 0, 0]);
        assert_eq!([85, 86, 90].map(|percent| few.percentile(percent).0), [0, 5, 5]);
    }

    #[test]
    fn enough_samples_are_judged_at_once_and_then_forgotten() {
        let mut latencies = latencies([0, 500, 0, 0, 0, 0, 0, 0]);
        let p99 = latencies.take_percentile(Total, 99, start(), Hz::MILLI);
        assert_eq!(p99, Some(Percentile { bucket: Bucket(1), samples: 500 }));
        assert_eq!(latencies.take_percentile(Total, 99, start(), Hz::MILLI), None);
        assert_eq!(latencies.deadline, None, "no samples set no deadline");
    }

    /// 499 samples are too few. After a second the device's percentile is computed of them; the
    /// total one then has to wait for another second, and again for the device's.
    #[test]
    fn second_after_which_few_samples_are_judged_is_shared() {
        let mut latencies = latencies([0, 0, 0, 0, 0, 0, 0, 499]);
        let mut taken = |kind, ms| {
            latencies.add(Bucket(7), Bucket(7));
            let at = start() + Ticks::new(ms);
            let taken = latencies.take_percentile(kind, 90, at, Hz::MILLI);
            latencies.total = Histogram([0, 0, 0, 0, 0, 0, 0, 498]);
            taken.map(|percentile| percentile.samples)
        };
        // The first sample makes 500 in the device's histogram.
        assert_eq!(taken(Device, 0), Some(500));
        assert_eq!(taken(Total, 0), None, "499; the second begins");
        assert_eq!(taken(Device, 999), None);
        assert_eq!(taken(Device, 1000), Some(3), "the second is over, and used up");
        assert_eq!(taken(Total, 1000), None, "another one begins");
        assert_eq!(taken(Total, 1999), None);
        assert_eq!(taken(Device, 2000), Some(3));
        assert_eq!(taken(Total, 2000), None);
        latencies.device = Histogram::default();
        let at = start() + Ticks::new(3000);
        assert_eq!(latencies.take_percentile(Device, 90, at, Hz::MILLI), None);
        let p99 = latencies.take_percentile(Total, 99, at, Hz::MILLI);
        assert_eq!(p99.map(|p99| p99.samples), Some(498), "the device has no samples to judge");
    }

    #[test]
    fn percentile_of_a_good_time_is_remembered_until_congestion_comes() {
        let mut latencies = Latencies::default();
        let [two, five] = [Some(Bucket(2)), Some(Bucket(5))];
        assert_eq!(latencies.judge_by(two, false), two);
        assert_eq!(latencies.judge_by(None, false), None, "it is kept, but not judged by");
        assert_eq!(latencies.judge_by(None, true), two);
        assert_eq!(latencies.judge_by(None, true), None, "only once");
        latencies.judge_by(two, false);
        assert_eq!(latencies.judge_by(five, true), five);
        assert_eq!(latencies.judge_by(None, true), None, "nor after a newer one");
    }
}
