//! How many requests took how long, by powers of two.
//!
//! ```text
//!   bucket       0          1          …        21              22
//!   time     below 4.1 µs  8.2 µs      …       8.6 s      that and longer
//! ```
//!
//! A request costs four instructions a histogram: the place of its time's first bit is where it is
//! counted. So there are more places than buckets; they are put together when they are read.

use std::ops::AddAssign;

use crate::time::Nanos;

/// The place of the first bit of the longest time in the first bucket.
const FIRST: usize = 11;

/// Counts of times by their length. Each bucket ends a nanosecond before a power of two; the last
/// one has no end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Histogram {
    /// By the place of a time's first bit; a time of 0 is counted as one of 1 ns.
    places: [u64; u64::BITS as usize],
}

impl Default for Histogram {
    fn default() -> Self {
        Self { places: [0; u64::BITS as usize] }
    }
}

impl Histogram {
    /// The number of buckets.
    pub const BUCKETS: usize = 23;

    /// Returns the longest time that is counted in a bucket; none for the last one.
    ///
    /// ```
    /// use paternoster::{Histogram, Nanos};
    ///
    /// assert_eq!(Histogram::bound(0), Some(Nanos::new(4095)));
    /// assert_eq!(Histogram::bound(21), Some(Nanos::new((1 << 33) - 1)));
    /// assert_eq!(Histogram::bound(22), None);
    /// ```
    pub const fn bound(bucket: usize) -> Option<Nanos> {
        let is_last = bucket + 1 >= Self::BUCKETS;
        if is_last { None } else { Some(Nanos::new((1 << (FIRST + 1 + bucket)) - 1)) }
    }

    /// Returns the counts of each bucket alone.
    pub fn counts(&self) -> [u64; Self::BUCKETS] {
        let mut counts = [0; Self::BUCKETS];
        for (place, count) in self.places.iter().enumerate() {
            counts[place.saturating_sub(FIRST).min(Self::BUCKETS - 1)] += count;
        }
        counts
    }

    /// Returns how many times are counted.
    pub fn count_all(&self) -> u64 {
        self.places.iter().sum()
    }

    /// Returns the time below which so many parts in a thousand are of these counts: as if the
    /// times in a bucket were spread evenly. None where nothing is counted. What is longer than the
    /// longest bound is that bound.
    pub fn quantile(counts: &[u64; Self::BUCKETS], per_mille: u64) -> Option<Nanos> {
        let all = counts.iter().fold(0, |sum: u64, count| sum.saturating_add(*count));
        let wanted = all.checked_mul(per_mille)?.div_ceil(1000).max(1);
        let (mut below, mut start) = (0u64, 0);
        for (bucket, &count) in counts.iter().enumerate() {
            let Some(end) = Self::bound(bucket).map(Nanos::as_nanos) else { break };
            let sum = below.saturating_add(count);
            if sum >= wanted {
                let part = u128::from(end - start) * u128::from(wanted - below);
                let part = u64::try_from(part / u128::from(sum - below)).unwrap_or(end - start);
                return Some(Nanos::new(start + part));
            }
            (below, start) = (sum, end);
        }
        (all > 0).then_some(Nanos::new(start))
    }

    /// Counts a time.
    #[inline]
    pub fn count(&mut self, time: Nanos) {
        self.places[(time.as_nanos() | 1).ilog2() as usize] += 1;
    }
}

impl AddAssign<&Self> for Histogram {
    fn add_assign(&mut self, other: &Self) {
        for (own, other) in self.places.iter_mut().zip(&other.places) {
            *own += other;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_counted_in_the_first_bucket_that_it_fits_in() {
        let bounds = (0..u64::BITS).map(|bits| 1u64 << bits);
        let near = bounds.flat_map(|bound| [bound - 1, bound, bound + 1]);
        for nanos in near.chain([0, u64::MAX]) {
            let time = Nanos::new(nanos);
            let fits = |&bucket: &usize| Histogram::bound(bucket).is_none_or(|bound| time <= bound);
            let mut expected = [0; Histogram::BUCKETS];
            expected[(0..Histogram::BUCKETS).find(fits).expect("all fit in the last")] = 1;
            let mut histogram = Histogram::default();
            histogram.count(time);
            assert_eq!(histogram.counts(), expected, "{nanos} ns");
        }
    }
}
