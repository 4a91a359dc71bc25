//! Between which bounds the mean of a difference lies, and how likely it is 0.
//!
//! ```text
//!   pairs of runs ──▶ differences ──▶ resampled 10,000 times ──▶ their means ──▶ bounds (BCa)
//!                          └────────▶ mean / its error ──▶ p, by Student's t
//! ```
//!
//! `BCa` (Efron 1987) makes up for skew. With few pairs it is too narrow, as any bootstrap: as
//! Hesterberg (2015) has it, its levels are moved out by as much as Student's t lies outside of the
//! normal distribution. Ten normal differences are within it 93 times of 100, and without that 90
//! times.

use paternoster_model::{Draws, Who};
use statrs::distribution::{ContinuousCDF as _, Normal, StudentsT};

/// How often differences are resampled.
const RESAMPLES: u32 = 10_000;
/// The part of intervals that do not hold the mean.
const ERROR: f64 = 0.05;

/// Where a mean lies, of a difference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The mean.
    pub mean: f64,
    /// The bounds of 95 %.
    pub low: f64,
    /// See above.
    pub high: f64,
    /// How likely a mean as far from 0 is where the true one is 0.
    pub p: f64,
}

impl Interval {
    /// That of differences that were drawn alike; none of fewer than two.
    pub fn of(differences: &[f64]) -> Option<Self> {
        if differences.len() < 2 {
            return None;
        }
        let count = real(differences.len());
        let mean = differences.iter().sum::<f64>() / count;
        let powers = |power| differences.iter().map(|it| (it - mean).powi(power)).sum::<f64>();
        let squares = powers(2);
        if squares <= f64::MIN_POSITIVE {
            // Chance plays no part.
            let p = if mean == 0.0 { 1.0 } else { 0.0 };
            return Some(Self { mean, low: mean, high: mean, p });
        }
        let acceleration = powers(3) / (6.0 * squares * libm::sqrt(squares));
        let means = resampled_means(differences);
        let below = means.partition_point(|it| *it < mean);
        let equal = means[below..].partition_point(|it| *it <= mean);
        let part = (real(below) + real(equal) / 2.0) / f64::from(RESAMPLES);
        let bias = quantile_of_normal(part);
        let freedom = count - 1.0;
        let student = StudentsT::new(0.0, 1.0, freedom).expect("there is some freedom");
        let wide = libm::sqrt(count / freedom) * student.inverse_cdf(1.0 - ERROR / 2.0);
        let bound = |side: f64| {
            let moved = bias + side * wide;
            let left = 1.0 - acceleration * moved;
            // So skewed that no bound is known from so few: the outermost.
            let level = if left > 0.0 {
                Normal::standard().cdf(bias + moved / left)
            } else {
                f64::midpoint(side, 1.0)
            };
            at_level(&means, level)
        };
        let p = p(mean, squares, count);
        Some(Self { mean, low: bound(-1.0), high: bound(1.0), p })
    }

    /// Half its width.
    pub fn half_width(&self) -> f64 {
        (self.high - self.low) / 2.0
    }
}

/// How likely a mean as far from 0 is of so many differences that are 0 but for chance, with those
/// squares of their distances from the mean: two-sided, by Student's t.
pub(super) fn p(mean: f64, squares: f64, count: f64) -> f64 {
    let freedom = count - 1.0;
    let student = StudentsT::new(0.0, 1.0, freedom).expect("there is some freedom");
    let error = libm::sqrt(squares / freedom / count);
    2.0 * student.cdf(-(mean / error).abs())
}

/// The means of as many differences, drawn from them with repetition; in ascending order.
fn resampled_means(differences: &[f64]) -> Vec<f64> {
    let mut draws = Draws::new(0, Who::Resamples, 0);
    let count = differences.len();
    let mut one = || {
        let index = draws.below(count as u64);
        differences[usize::try_from(index).expect("it is below a length")]
    };
    let mean = |_| (0..count).map(|_| one()).sum::<f64>() / real(count);
    let mut means: Vec<f64> = (0..RESAMPLES).map(mean).collect();
    means.sort_by(f64::total_cmp);
    means
}

/// The normal quantile of a part, kept off both ends by half a resample.
fn quantile_of_normal(part: f64) -> f64 {
    let least = 0.5 / f64::from(RESAMPLES);
    Normal::standard().inverse_cdf(part.clamp(least, 1.0 - least))
}

/// The value of that level, between its neighbours.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a level is 0 to 1, and an index small"
)]
fn at_level(sorted: &[f64], level: f64) -> f64 {
    let place = level.clamp(0.0, 1.0) * real(sorted.len() - 1);
    let below = libm::floor(place);
    let index = below as usize;
    let above = sorted[(index + 1).min(sorted.len() - 1)];
    sorted[index] + (above - sorted[index]) * (place - below)
}

#[allow(clippy::cast_precision_loss, reason = "there are far fewer than 2^53")]
fn real(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sum of twelve numbers from 0 to 1, less 6: nearly normal, with a deviation of 1.
    fn normal(draws: &mut Draws) -> f64 {
        (0..12).map(|_| draws.unit()).sum::<f64>() - 6.0
    }

    fn holds(interval: &Interval, mean: f64) -> bool {
        (interval.low..=interval.high).contains(&mean)
    }

    /// Of 2,000 repeats 1,900, with a deviation of 10: the bar is 93 to 97 %.
    #[test]
    fn interval_of_twenty_pairs_holds_the_true_mean_95_times_of_100() {
        let mut draws = Draws::new(1, Who::Tenants, 0);
        let mut held = 0;
        for _ in 0..2_000 {
            let differences: Vec<f64> = (0..20).map(|_| 0.05 + 0.1 * normal(&mut draws)).collect();
            held += u32::from(holds(&Interval::of(&differences).expect("some"), 0.05));
        }
        assert!((1_860..=1_940).contains(&held), "{held} of 2,000");
    }

    /// Student's own data (1908): the hours of sleep that ten patients gained by one drug more than
    /// by another. Its mean is 1.58, its t 4.0621 and p 0.002833.
    #[test]
    fn sleep_is_gained() {
        let gained = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4];
        let Interval { mean, low, high, p } = Interval::of(&gained).expect("ten");
        assert!((mean - 1.58).abs() < 1e-12);
        assert!((p - 0.002_833).abs() < 1e-6, "{p}");
        // The one of t is 0.70 to 2.46; as 4.6 is far out, this one is shifted up.
        assert!((0.7..1.1).contains(&low) && (2.46..3.4).contains(&high), "{low} to {high}");
    }

    /// Tables of t have 5 % on both sides at 2.262 (9), 2.145 (14), 2.093 (19) and 2.010 (49).
    #[test]
    fn p_is_that_of_the_tables() {
        for (count, t) in [(10, 2.262), (15, 2.145), (20, 2.093), (50, 2.010)] {
            let sides: Vec<f64> =
                (0..count).map(|it| if it % 2 == 0 { 1.0 } else { -1.0 }).collect();
            let mean = sides.iter().sum::<f64>() / real(count);
            let squares: f64 = sides.iter().map(|it| (it - mean).powi(2)).sum();
            let error = libm::sqrt(squares / real(count - 1) / real(count));
            let moved: Vec<f64> = sides.iter().map(|it| it - mean + t * error).collect();
            let p = Interval::of(&moved).expect("some").p;
            assert!((p - 0.05).abs() < 0.000_1, "{p} of {count}");
        }
    }

    #[test]
    fn without_chance_a_difference_is_known() {
        let same = Interval::of(&[0.25; 10]).expect("ten");
        assert_eq!(same, Interval { mean: 0.25, low: 0.25, high: 0.25, p: 0.0 });
        assert_eq!(Interval::of(&[0.0; 2]).map(|it| it.p), Some(1.0));
        assert_eq!(Interval::of(&[1.0]), None);
    }
}
