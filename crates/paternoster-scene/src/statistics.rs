//! What is told of several figures: the one rule for each.

use serde::Serialize;

/// The mean; 0 where there is no figure.
#[allow(clippy::cast_precision_loss, reason = "there are far fewer than 2^53")]
pub fn mean(figures: impl IntoIterator<Item = f64>) -> f64 {
    let mut count = 0_u64;
    let sum: f64 = figures.into_iter().inspect(|_| count += 1).sum();
    sum / count.max(1) as f64
}

/// The median of figures in any order: the middle one, or the mean of the middle two; none where
/// there is no figure.
pub fn median(figures: impl IntoIterator<Item = f64>) -> Option<f64> {
    Some(Spread::of(figures)?.median)
}

/// The nearest rank, from 0 on, of the value that so many in a thousand of `count` values in
/// ascending order do not exceed. With no value it is 0, too.
pub fn rank(count: usize, per_mille: usize) -> usize {
    (count * per_mille).div_ceil(1000).saturating_sub(1)
}

/// The value of that rank, of values in ascending order; none where there is no value.
pub fn quantile<T: Copy>(sorted: &[T], per_mille: usize) -> Option<T> {
    sorted.get(rank(sorted.len(), per_mille)).copied()
}

/// Where figures lie.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// The [`median`].
    pub median: f64,
    /// The least.
    pub least: f64,
    /// The greatest.
    pub most: f64,
}

impl Spread {
    /// That of figures in any order; none where there is no figure.
    pub fn of(figures: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = figures.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let (&least, &most) = (sorted.first()?, sorted.last()?);
        let median = f64::midpoint(sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
        Some(Self { median, least, most })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_of_an_even_number_is_between_the_middle_two() {
        let even = Spread::of([4.0, 1.0, 3.0, 2.0]);
        assert_eq!(even, Some(Spread { median: 2.5, least: 1.0, most: 4.0 }));
        assert_eq!(median([9.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median([]), None);
    }

    /// 99 % of 200 values are the first 198; of 3 values no fewer than all are 99 %.
    #[test]
    fn quantiles_are_values_by_the_nearest_rank() {
        let values: Vec<u32> = (1..=200).collect();
        assert_eq!(quantile(&values, 990), Some(198));
        assert_eq!(quantile(&values[..3], 990), Some(3));
        assert_eq!(quantile(&values[..3], 500), Some(2));
        assert_eq!(quantile(&values, 0), Some(1));
        assert_eq!(quantile::<u32>(&[], 500), None);
    }

    #[test]
    fn mean_of_nothing_is_0() {
        assert!((mean([1.0, 2.0, 6.0]) - 3.0).abs() < 1e-12);
        assert!(mean([]).abs() < 1e-12);
    }
}
