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

    #[inline]
    pub(super) fn count(&mut self, time: Nanos) {
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
