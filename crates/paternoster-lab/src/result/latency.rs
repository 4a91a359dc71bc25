//! Latencies of many I/Os: exact sums, and a histogram for percentiles.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "a mean or a deviation is told with 53 bits"
)]

use hdrhistogram::Histogram;
use paternoster::Nanos;

/// How far a percentile may be off: a thousandth.
const DIGITS: u8 = 3;

/// Sums over numbers, by which their mean and deviation are exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moments {
    count: u64,
    min: u64,
    max: u64,
    sum: u128,
    squares: u128,
}

impl Moments {
    /// Adds a number.
    pub fn add(&mut self, number: u64) {
        self.min = if self.count == 0 { number } else { self.min.min(number) };
        self.max = self.max.max(number);
        self.count += 1;
        self.sum += u128::from(number);
        self.squares = self.squares.saturating_add(u128::from(number) * u128::from(number));
    }

    /// Adds 0 so many times.
    pub fn add_zeroes(&mut self, times: u64) {
        if times > 0 {
            self.min = 0;
            self.count += times;
        }
    }

    /// Adds all numbers of another.
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        self.min = if self.count == 0 { other.min } else { self.min.min(other.min) };
        self.max = self.max.max(other.max);
        self.count += other.count;
        self.sum += other.sum;
        self.squares = self.squares.saturating_add(other.squares);
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The least; 0 where there is none.
    pub fn min(&self) -> u64 {
        self.min
    }

    /// The greatest; 0 where there is none.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// The mean; 0 where there is none.
    pub fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum as f64 / self.count as f64 }
    }

    /// The deviation of a sample: of the squares' sum, one less than the count is the divisor.
    pub fn deviation(&self) -> f64 {
        if self.count < 2 {
            return 0.0;
        }
        // count × squares - sum² is the variance × count × (count - 1), without rounding where it
        // fits.
        let count = u128::from(self.count);
        let exact = count.checked_mul(self.squares).zip(self.sum.checked_mul(self.sum));
        let spread = exact.map_or_else(
            || (count as f64 * self.squares as f64 - self.sum as f64 * self.sum as f64).max(0.0),
            |(squares, square)| squares.saturating_sub(square) as f64,
        );
        (spread / (count as f64 * (count - 1) as f64)).sqrt()
    }
}

/// Latencies.
#[derive(Clone, Debug, Default)]
pub struct Latencies {
    moments: Moments,
    /// Made with the first.
    histogram: Option<Histogram<u64>>,
}

impl Latencies {
    /// Adds one.
    pub fn add(&mut self, latency: Nanos) {
        let nanos = latency.as_nanos();
        self.moments.add(nanos);
        self.histogram().record(nanos).expect("it grows as it needs");
    }

    /// Adds all of another.
    pub fn merge(&mut self, other: &Self) {
        self.moments.merge(&other.moments);
        if let Some(histogram) = &other.histogram {
            self.histogram().add(histogram).expect("both grow as they need");
        }
    }

    /// Their sums, in nanoseconds.
    pub fn moments(&self) -> &Moments {
        &self.moments
    }

    /// The latency that `percent` of them do not exceed; none where there are none. The percentage
    /// is taken to six digits behind the point, as fio prints it.
    pub fn percentile(&self, percent: f64) -> Option<Nanos> {
        let histogram = self.histogram.as_ref()?;
        let millionths = (percent * 1e6).round() as u128;
        let rank = (millionths * u128::from(self.moments.count)).div_ceil(100_000_000);
        let mut below = 0;
        let bucket = histogram.iter_recorded().find(|bucket| {
            below += u128::from(bucket.count_at_value());
            below >= rank
        })?;
        let nanos = bucket.value_iterated_to();
        Some(Nanos::new(nanos.clamp(self.moments.min, self.moments.max)))
    }

    fn histogram(&mut self) -> &mut Histogram<u64> {
        self.histogram.get_or_insert_with(|| Histogram::new(DIGITS).expect("3 digits are allowed"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers 2, 4, 4, 4, 5, 5, 7, 9 have mean 5 and squares of 32 in sum around it.
    #[test]
    fn moments_are_exact_in_one_piece_or_two() {
        let moments = |numbers: &[u64]| {
            let mut moments = Moments::default();
            for &number in numbers {
                moments.add(number);
            }
            moments
        };
        let mut merged = moments(&[2, 4, 4]);
        merged.merge(&Moments::default());
        merged.merge(&moments(&[4, 5, 5, 7, 9]));
        assert_eq!(merged, moments(&[2, 4, 4, 4, 5, 5, 7, 9]));
        assert_eq!((merged.min(), merged.max(), merged.count()), (2, 9, 8));
        assert!((merged.mean() - 5.0).abs() < 1e-12);
        assert!((merged.deviation() - (32.0_f64 / 7.0).sqrt()).abs() < 1e-12);
    }

    #[test]
    fn zeroes_are_numbers() {
        let mut one_by_one = Moments::default();
        for number in [7, 0, 0, 0, 5] {
            one_by_one.add(number);
        }
        let mut at_once = Moments::default();
        at_once.add(7);
        at_once.add_zeroes(3);
        at_once.add(5);
        assert_eq!(at_once, one_by_one);
        let mut none = Moments::default();
        none.add_zeroes(0);
        assert_eq!(none, Moments::default());
    }

    #[test]
    fn numbers_that_overflow_their_squares_have_a_deviation() {
        let mut moments = Moments::default();
        let most = 1 << 62;
        for number in [0, most, most, most] {
            moments.add(number);
        }
        // Of 0, m, m, m the squares around the mean add up to 3/4 m², a third of which is m²/4.
        let wanted = most as f64 / 2.0;
        assert!((moments.deviation() / wanted - 1.0).abs() < 1e-9, "{}", moments.deviation());
    }

    /// Of 1 to 1000 microseconds, p percent are at most p × 10.
    #[test]
    fn percentile_is_the_latency_that_a_part_does_not_exceed() {
        let mut latencies = Latencies::default();
        assert_eq!(latencies.percentile(50.0), None);
        for micros in 1..=1000 {
            latencies.add(Nanos::from_micros(micros));
        }
        for (percent, micros) in [(1.0, 10), (50.0, 500), (99.0, 990), (99.9, 999), (100.0, 1000)] {
            let found = latencies.percentile(percent).expect("there are some").as_nanos();
            let wanted = micros * 1000;
            assert!(found.abs_diff(wanted) <= wanted / 1000, "p{percent}: {found}");
        }
    }
}
