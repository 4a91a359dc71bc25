//! How many requests took how long, in [`OpStat`](super::OpStat).
//!
//! In JSON it is an object: `"8191": 3` counts three times of 8191 ns, which is a nanosecond less
//! than a power of two, down to half of that power. Those below 4096 ns are together; those from
//! 2³³ ns on are under `"inf"`. What is 0 is left out.

use std::collections::BTreeMap;

use paternoster::{Histogram, Nanos};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::figures::{How, Value};

/// Counts of times by their length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times([u64; Histogram::BUCKETS]);

/// The key of times that are longer than every bound.
const LONGER: &str = "inf";

impl Times {
    pub(super) fn of(histogram: &Histogram) -> Self {
        Self(histogram.counts())
    }

    /// Whether nothing is counted.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|&count| count == 0)
    }

    /// How many times are counted.
    pub fn count(&self) -> u64 {
        self.0.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Returns each bucket: the longest time in it, which the last one has none of, and how many
    /// there are in this and in all before.
    pub fn cumulative(&self) -> impl Iterator<Item = (Option<Nanos>, u64)> {
        let counts = self.0.iter().enumerate();
        counts.scan(0u64, |sum, (bucket, count)| {
            *sum = sum.saturating_add(*count);
            Some((Histogram::bound(bucket), *sum))
        })
    }

    /// Returns the time below which so many parts in a thousand are: [`Histogram::quantile`].
    pub fn quantile(&self, per_mille: u64) -> Option<Nanos> {
        Histogram::quantile(&self.0, per_mille)
    }
}

impl Value for Times {
    fn combined(&self, other: &Self, how: How) -> Self {
        let mut combined = *self;
        for (own, other) in combined.0.iter_mut().zip(&other.0) {
            *own = own.combined(other, how);
        }
        combined
    }
}

/// Of times, and how many there are of each.
impl FromIterator<(u64, u64)> for Times {
    fn from_iter<I: IntoIterator<Item = (u64, u64)>>(times: I) -> Self {
        let mut collected = Self::default();
        for (time, count) in times {
            let fits = |&bucket: &usize| {
                Histogram::bound(bucket).is_none_or(|bound| time <= bound.as_nanos())
            };
            let bucket = (0..Histogram::BUCKETS).find(fits).unwrap_or(Histogram::BUCKETS - 1);
            collected.0[bucket] = collected.0[bucket].saturating_add(count);
        }
        collected
    }
}

impl Serialize for Times {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let key = |bucket| match Histogram::bound(bucket) {
            Some(bound) => bound.as_nanos().to_string(),
            None => LONGER.to_owned(),
        };
        let counted = self.0.iter().enumerate().filter(|(_, count)| **count > 0);
        serializer.collect_map(counted.map(|(bucket, count)| (key(bucket), count)))
    }
}

impl<'de> Deserialize<'de> for Times {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let counted = BTreeMap::<String, u64>::deserialize(deserializer)?;
        // A key that is no number, of a newer server, is the longest.
        Ok(counted.iter().map(|(key, count)| (key.parse().unwrap_or(u64::MAX), *count)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_names_what_is_counted_by_its_longest_time() {
        let times = [(0, 1), (4095, 2), (4096, 3), ((1 << 33) - 1, 4), (1 << 33, 5)];
        let times: Times = times.into_iter().collect();
        let json = serde_json::to_value(times).expect("it has string keys");
        let expected = serde_json::json!({ "4095": 3, "8191": 3, "8589934591": 4, "inf": 5 });
        assert_eq!(json, expected);
        assert_eq!(serde_json::from_value::<Times>(json).expect("it is one"), times);
    }

    #[test]
    fn quantiles_are_within_the_bucket_that_has_them() {
        let quantile = |times: &[(u64, u64)], per_mille| {
            let times: Times = times.iter().copied().collect();
            times.quantile(per_mille).map(Nanos::as_nanos)
        };
        assert_eq!(quantile(&[], 500), None);
        // A quarter of the hundred, and all of it.
        assert_eq!(quantile(&[(10_000, 100)], 250), Some(8191 + 8192 / 4));
        assert_eq!(quantile(&[(10_000, 100)], 1000), Some(16_383));
        // 98 short ones and two long ones: the 99th of a hundred is the first of these.
        let mixed = [(5000, 98), ((1 << 20) - 1, 2)];
        assert_eq!(quantile(&mixed, 980), Some(8191));
        assert_eq!(quantile(&mixed, 990), Some((1 << 19) - 1 + (1 << 18)));
        assert_eq!(quantile(&[(u64::MAX, 3)], 500), Some((1 << 33) - 1));
        assert_eq!(quantile(&[(1, 1)], 1), Some(4095));
    }
}
