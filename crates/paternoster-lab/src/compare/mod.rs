//! The same jobs under several schedulers, in pairs of runs that share all chance: how far apart
//! they are, and whether that is more than chance.
//!
//! ```text
//!   seed 1   run under wfq ─┬─ run under cfq      differences of each figure of each group
//!   seed 2   run under wfq ─┼─ run under cfq        ├──▶ Interval   of each, alone
//!     …                     │                       └──▶ told_apart   all together
//!   seed n   run under wfq ─┴─ run under cfq
//! ```
//!
//! Each is compared with the first. Rates and latencies are compared by their ratios, shares by
//! their distance. Pairs are added until all intervals are narrow, or there are enough.

mod figures;
mod interval;
mod verdict;

use std::ops::Range;

use paternoster_scene::statistics::mean;

pub use figures::{Measure, Plan};
pub use interval::Interval;
pub use verdict::told_apart;

/// How many pairs there are at first, and how many more come at a time.
const STEP: u64 = 10;
/// So narrow is an interval if half of it is at most this part of the figure, or of all bytes.
const NARROW: f64 = 0.02;

/// Runs that are compared.
#[derive(Clone, Debug)]
pub struct Comparison {
    plan: Plan,
    most: u64,
    /// Of each pair, by scheduler, the values of the plan.
    runs: Vec<Vec<Vec<Option<f64>>>>,
    schedulers: usize,
}

/// A figure under a scheduler, beside the first one.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// Which of the schedulers; 1 is the second.
    pub scheduler: usize,
    /// Whose figure it is.
    pub name: String,
    /// Which one.
    pub measure: Measure,
    /// Its mean under the first one, and under this one, of ratios the geometric one; none if a run
    /// lacks it.
    pub means: Option<[f64; 2]>,
    /// By how much it differs: as a part of the first one, 0.1 is 10 % more; of shares, in parts
    /// of all. None if a run lacks it, or has 0 where there would be a ratio.
    pub interval: Option<Interval>,
    /// Whether that is known to 2 %, of a ratio by its logarithm.
    pub is_narrow: bool,
    /// Whether the two are told apart, with all others that are compared.
    pub is_told_apart: bool,
}

impl Comparison {
    /// Nothing has run yet; there will be at most so many pairs, of so many schedulers.
    pub fn new(plan: Plan, schedulers: usize, most: u64) -> Self {
        Self { plan, most, runs: Vec::new(), schedulers }
    }

    /// How many comparisons are planned.
    pub fn planned(&self) -> usize {
        self.plan.len() * self.schedulers.saturating_sub(1)
    }

    /// How many pairs there are.
    pub fn pairs(&self) -> usize {
        self.runs.len()
    }

    /// The numbers of the pairs that are to run next; none are left when it is known enough.
    pub fn wanted(&self) -> Range<u64> {
        let begin = self.runs.len() as u64;
        if begin >= STEP && self.rows().iter().all(|row| row.is_narrow) {
            return begin..begin;
        }
        begin..(begin + STEP).min(self.most).max(begin)
    }

    /// Takes the values of a pair, by scheduler.
    ///
    /// # Panics
    ///
    /// If they are not as many as there are schedulers, or as figures.
    pub fn add(&mut self, pair: Vec<Vec<Option<f64>>>) {
        assert_eq!(pair.len(), self.schedulers, "each scheduler has run");
        let is_whole = pair.iter().all(|run| run.len() == self.plan.len());
        assert!(is_whole, "each run has all figures");
        self.runs.push(pair);
    }

    /// What has come of it so far.
    pub fn rows(&self) -> Vec<Compared> {
        let all = (1..self.schedulers).flat_map(|it| (0..self.plan.len()).map(move |at| (it, at)));
        let row = |(scheduler, index): (usize, usize)| {
            let (name, measure) = self.plan.figure(index);
            let pair =
                |pair: &Vec<Vec<Option<f64>>>| Some([pair[0][index]?, pair[scheduler][index]?]);
            let pairs: Option<Vec<[f64; 2]>> = self.runs.iter().map(pair).collect();
            let pairs = pairs.filter(|pairs| !pairs.is_empty());
            let (interval, is_narrow) = match &pairs {
                Some(pairs) => difference(pairs, measure),
                None => (None, true),
            };
            Compared {
                scheduler,
                name: name.to_owned(),
                measure,
                means: pairs.map(|pairs| means(&pairs, measure)),
                interval,
                is_narrow,
                is_told_apart: false,
            }
        };
        let mut rows: Vec<Compared> = all.map(row).collect();
        let judged: Vec<usize> =
            (0..rows.len()).filter(|&row| rows[row].interval.is_some()).collect();
        let p: Vec<f64> =
            judged.iter().filter_map(|&row| rows[row].interval.map(|it| it.p)).collect();
        for (row, is_told_apart) in judged.into_iter().zip(told_apart(&p, self.planned())) {
            rows[row].is_told_apart = is_told_apart;
        }
        rows
    }
}

fn means(pairs: &[[f64; 2]], measure: Measure) -> [f64; 2] {
    [0, 1].map(|side| {
        let values = pairs.iter().map(|pair| pair[side]);
        if measure.is_ratio() && values.clone().all(|value| value > 0.0) {
            return libm::exp(mean(values.map(libm::log)));
        }
        mean(values)
    })
}

/// By how much the second of each pair differs, and whether that is known well.
fn difference(pairs: &[[f64; 2]], measure: Measure) -> (Option<Interval>, bool) {
    let is_narrow = |interval: &Interval| interval.half_width() <= NARROW;
    let of = |differences: Vec<f64>| Interval::of(&differences);
    if !measure.is_ratio() || pairs.iter().all(|[first, other]| first.total_cmp(other).is_eq()) {
        let differences = of(pairs.iter().map(|[first, other]| other - first).collect());
        return (differences, differences.as_ref().is_none_or(is_narrow));
    }
    if pairs.iter().flatten().any(|value| *value <= 0.0) {
        return (None, true);
    }
    // A ratio's logarithm is as far from 0 either way.
    let logarithms = of(pairs.iter().map(|[first, other]| libm::log(other / first)).collect());
    let part = |it: Interval| Interval {
        mean: libm::expm1(it.mean),
        low: libm::expm1(it.low),
        high: libm::expm1(it.high),
        p: it.p,
    };
    (logarithms.map(part), logarithms.as_ref().is_none_or(is_narrow))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of one group, whose figures are throughput, share error and three latencies.
    fn comparison(most: u64) -> Comparison {
        Comparison::new(Plan::new(vec!["/a".to_owned()], true), 2, most)
    }

    fn values(throughput: f64, share_error: Option<f64>) -> Vec<Option<f64>> {
        vec![Some(throughput), share_error, Some(0.0), None, None]
    }

    /// Under the second scheduler a group has twice the bytes in each run, though runs differ by a
    /// factor of ten, and is nearer to its share by 0.1.
    #[test]
    fn pairs_take_away_what_runs_have_in_common() {
        let mut compared = comparison(50);
        assert_eq!((compared.planned(), compared.wanted()), (5, 0..10));
        for seed in compared.wanted() {
            let common = f64::from(1 << seed);
            let noise = if seed % 2 == 0 { 0.01 } else { -0.01 };
            let other = values(2.0 * common * (1.0 + noise), Some(0.1));
            compared.add(vec![values(common, Some(0.2)), other]);
        }
        let [bytes, share, p50, ..] = &compared.rows()[..] else { panic!("five figures") };
        let of_bytes = bytes.interval.expect("ten pairs");
        assert!((of_bytes.mean - 1.0).abs() < 1e-3 && of_bytes.half_width() < 0.02, "{of_bytes:?}");
        assert!(bytes.is_told_apart && share.is_told_apart);
        assert!((share.interval.expect("ten pairs").mean + 0.1).abs() < 1e-12);
        let [first, here] = bytes.means.expect("ten pairs");
        assert!((here / first - 1.0 - of_bytes.mean).abs() < 1e-12, "{first} and {here}");
        let same = p50.interval.map(|it| (it.mean, it.p));
        assert_eq!((same, p50.is_told_apart), (Some((0.0, 1.0)), false), "both take no time");
        assert_eq!(compared.wanted(), 10..10, "all are narrow");
    }

    #[test]
    fn pairs_are_added_while_an_interval_is_wide_and_there_may_be_more() {
        let mut compared = comparison(15);
        for wanted in [0..10, 10..15, 15..15] {
            assert_eq!(compared.wanted(), wanted);
            for seed in wanted {
                let noise = if seed % 2 == 0 { 2.0 } else { 0.5 };
                compared.add(vec![values(1.0, None), values(noise, Some(0.1))]);
            }
        }
        let [bytes, share, ..] = &compared.rows()[..] else { panic!("five figures") };
        assert!(!bytes.is_told_apart);
        assert_eq!((share.means, share.interval), (None, None), "the first has none");
    }
}
