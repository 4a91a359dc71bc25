//! How steady a job was.

use paternoster_scene::statistics::mean;
use serde::Serialize;

use crate::fio::{SteadyCriterion, SteadyRate, SteadyState};

/// How steady a job, or the jobs of a reporting group, were.
#[derive(Clone, Debug, PartialEq)]
pub struct Steady {
    /// What was asked.
    pub rule: SteadyState,
    /// It was steady, and ended for that.
    pub is_attained: bool,
    /// The last checks, the oldest first; fewer than the rule's where it did not run for so long.
    pub samples: Vec<SteadySample>,
}

/// What a check found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SteadySample {
    /// I/Os a second.
    pub ios_per_s: u64,
    /// Bytes a second.
    pub bytes_per_s: u64,
}

impl Steady {
    /// The criterion, in the unit of the limit; none before there are as many checks as are looked
    /// at together, and none in percent of nothing.
    pub fn criterion(&self) -> Option<f64> {
        let rates = self.rates()?;
        let criterion = match self.rule.criterion {
            SteadyCriterion::Deviation => deviation(&rates),
            SteadyCriterion::Slope => slope(&rates),
        };
        if !self.rule.is_percent {
            return Some(criterion);
        }
        let mean = mean(rates.iter().copied());
        (mean > 0.0).then(|| 100.0 * criterion / mean)
    }

    /// Whether the last checks are below the limit, to either side.
    pub fn is_below_limit(&self) -> bool {
        self.criterion().is_some_and(|criterion| criterion.abs() < self.rule.limit)
    }

    /// The rates of all checks.
    fn rates(&self) -> Option<Vec<f64>> {
        let is_full = self.samples.len() == self.rule.checks as usize;
        let rates = self.samples.iter().map(|sample| match self.rule.rate {
            SteadyRate::Ios => sample.ios_per_s as f64,
            SteadyRate::Bytes => sample.bytes_per_s as f64,
        });
        is_full.then(|| rates.collect())
    }
}

/// The greatest distance from the mean.
fn deviation(rates: &[f64]) -> f64 {
    let mean = mean(rates.iter().copied());
    rates.iter().map(|rate| (rate - mean).abs()).fold(0.0, f64::max)
}

/// The slope of the line with the least squares, of x = 0, 1, 2 ...; 0 of a single rate:
///
/// `Σ (x − mean x) y ÷ Σ (x − mean x)²`
fn slope(rates: &[f64]) -> f64 {
    let middle = (rates.len() - 1) as f64 / 2.0;
    let distances = || (0..rates.len()).map(|x| x as f64 - middle);
    let squares: f64 = distances().map(|distance| distance * distance).sum();
    let products: f64 = distances().zip(rates).map(|(distance, rate)| distance * rate).sum();
    if squares > 0.0 { products / squares } else { 0.0 }
}

/// The same as fio's JSON has it.
#[derive(Clone, Debug, Serialize)]
pub(super) struct SteadyJson {
    ss: String,
    duration: u64,
    attained: u8,
    criterion: String,
    max_deviation: f64,
    slope: f64,
    data: SteadyDataJson,
}

#[derive(Clone, Debug, Serialize)]
struct SteadyDataJson {
    bw_mean: u64,
    iops_mean: u64,
    iops: Vec<u64>,
    bw: Vec<u64>,
}

impl SteadyJson {
    pub(super) fn new(steady: &Steady) -> Self {
        let Steady { rule, is_attained, samples } = steady;
        let unit = if rule.is_percent { "%" } else { "" };
        let rates = steady.rates();
        let of = |criterion, what: fn(&[f64]) -> f64| {
            rates.as_deref().filter(|_| rule.criterion == criterion).map_or(0.0, what)
        };
        // As in fio, a check that was not made is 0, and counts in the means.
        let all = |rate: fn(&SteadySample) -> u64| -> Vec<u64> {
            let missing = rule.checks as usize - samples.len();
            samples.iter().map(rate).chain(std::iter::repeat_n(0, missing)).collect()
        };
        let mean = |rates: &[u64]| {
            let sum: u128 = rates.iter().map(|&rate| u128::from(rate)).sum();
            u64::try_from(sum / u128::from(rule.checks)).expect("a mean is no more than its rates")
        };
        let (iops, bw) = (all(|sample| sample.ios_per_s), all(|sample| sample.bytes_per_s));
        Self {
            ss: format!("{}:{:.6}{unit}", rule.name(), rule.limit),
            duration: rule.interval.as_nanos() * u64::from(rule.checks) / 1_000_000_000,
            attained: (*is_attained).into(),
            criterion: format!("{:.6}{unit}", steady.criterion().unwrap_or(0.0)),
            max_deviation: of(SteadyCriterion::Deviation, deviation),
            slope: of(SteadyCriterion::Slope, slope),
            data: SteadyDataJson { bw_mean: mean(&bw), iops_mean: mean(&iops), iops, bw },
        }
    }
}

#[cfg(test)]
mod tests {
    use paternoster::Nanos;

    use super::*;

    fn steady(rate: SteadyRate, criterion: SteadyCriterion, samples: &[[u64; 2]]) -> Steady {
        let samples = samples.iter();
        let samples: Vec<_> = samples
            .map(|&[ios_per_s, bytes_per_s]| SteadySample { ios_per_s, bytes_per_s })
            .collect();
        let rule = SteadyState {
            rate,
            criterion,
            limit: 0.1,
            is_percent: true,
            checks: u32::try_from(samples.len()).expect("few"),
            interval: Nanos::from_secs(1),
            ramp: Nanos::ZERO,
        };
        Steady { rule, is_attained: true, samples }
    }

    /// What fio 3.33 reported of its own checks, with `ss=bw_slope:0.1%`: a slope of -0.4, which is
    /// -0.00001 % of 4098049.
    #[test]
    fn slope_of_checks_is_that_of_fio() {
        let bw = [[1000, 4_096_000], [1001, 4_100_100], [1001, 4_100_096], [1000, 4_096_000]];
        let steady = steady(SteadyRate::Bytes, SteadyCriterion::Slope, &bw);
        let json = SteadyJson::new(&steady);
        assert!((json.slope + 0.4).abs() < 1e-9, "{}", json.slope);
        assert_eq!((json.criterion.as_str(), json.max_deviation), ("-0.000010%", 0.0));
        assert_eq!((json.data.bw_mean, json.data.iops_mean), (4_098_049, 1000));
        assert_eq!(json.ss, "bw_slope:0.100000%");
        assert!(steady.is_below_limit());
    }

    /// What fio 3.33 reported of its own checks, with `ss=iops:50%`.
    #[test]
    fn deviation_of_checks_is_that_of_fio() {
        let checks = [[3_662_245, 0], [3_636_558, 0], [3_504_884, 0]];
        let mut steady = steady(SteadyRate::Ios, SteadyCriterion::Deviation, &checks);
        let json = SteadyJson::new(&steady);
        assert_eq!((json.criterion.as_str(), json.slope), ("2.675337%", 0.0));
        assert!((json.max_deviation - 96_345.0).abs() < 1.0, "{}", json.max_deviation);
        assert!(!steady.is_below_limit());
        steady.rule.is_percent = false;
        steady.rule.limit = 96_346.0;
        assert!(steady.is_below_limit());
    }

    /// As fio 3.33 has it of four seconds where six are looked at.
    #[test]
    fn checks_that_were_not_made_are_told_as_0() {
        let checks = [[998, 4_091_408], [996, 4_083_699], [1004, 4_112_384], [1001, 4_100_096]];
        let mut steady = steady(SteadyRate::Ios, SteadyCriterion::Deviation, &checks);
        steady.rule.checks = 6;
        let json = SteadyJson::new(&steady);
        assert_eq!(json.data.iops, [998, 996, 1004, 1001, 0, 0]);
        assert_eq!((json.data.bw_mean, json.data.iops_mean), (2_731_264, 666));
        assert_eq!((json.duration, json.criterion.as_str()), (6, "0.000000%"));
        assert!(!steady.is_below_limit());
    }
}
