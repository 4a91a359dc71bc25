//! What a run gives of each group, in the figures that are compared.

use std::fmt;

use indexmap::IndexSet;
use paternoster::Hierarchy;
use serde::Serialize;

use crate::fio::Jobs;
use crate::report::entitled;
use crate::result::{DirectionResult, Entry, JobResult, entries, job_names, sums_by_group};
use crate::threads::Outcome;

/// With more I/Os than that, the 99.9th percentile of a run says something.
const FOR_P999: u64 = 10_000;

/// A figure of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// Bytes a second.
    Throughput,
    /// How far its share of the bytes is from what its weight entitles it to, while all have
    /// something to do.
    ShareError,
    /// The latency in ns that half of its I/Os do not exceed.
    P50,
    /// Likewise of 99 in 100.
    P99,
    /// Likewise of 999 in 1000.
    P999,
}

impl Measure {
    /// Whether two are compared by their ratio; else by their difference.
    pub fn is_ratio(self) -> bool {
        self != Self::ShareError
    }
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Throughput => "throughput",
            Self::ShareError => "share error",
            Self::P50 => "p50",
            Self::P99 => "p99",
            Self::P999 => "p99.9",
        })
    }
}

/// What is compared: groups where jobs have several, else jobs; and the figures of each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    names: Vec<String>,
    by_group: bool,
    /// Whose figure it is, by the index of the name, and which; those of one stand together.
    figures: Vec<(usize, Measure)>,
}

impl Plan {
    /// All figures of those jobs.
    pub fn of(jobs: &Jobs) -> Self {
        let told = jobs.jobs.iter().filter(|job| job.reports.is_told);
        let groups: IndexSet<&str> = told.map(|job| job.group.as_str()).collect();
        if groups.len() > 1 {
            return Self::new(groups.into_iter().map(str::to_owned).collect(), true);
        }
        let nothing = vec![JobResult::default(); jobs.jobs.len()];
        let single = job_names(&jobs.jobs);
        let name = |entry: &Entry<'_>| match entry.jobs[..] {
            [one] => single[one].clone(),
            _ => entry.name(),
        };
        Self::new(entries(&jobs.jobs, &nothing).iter().map(name).collect(), false)
    }

    pub(super) fn new(names: Vec<String>, by_group: bool) -> Self {
        let mut measures = vec![Measure::Throughput];
        if by_group {
            measures.push(Measure::ShareError);
        }
        measures.extend([Measure::P50, Measure::P99, Measure::P999]);
        let of_one = |index| measures.iter().map(move |measure| (index, *measure));
        let figures = (0..names.len()).flat_map(of_one).collect();
        Self { names, by_group, figures }
    }

    /// How many figures there are.
    pub fn len(&self) -> usize {
        self.figures.len()
    }

    /// Whether no job is told of.
    pub fn is_empty(&self) -> bool {
        self.figures.is_empty()
    }

    /// Whose figure it is, and which.
    pub fn figure(&self, index: usize) -> (&str, Measure) {
        let (name, measure) = self.figures[index];
        (&self.names[name], measure)
    }

    /// Their values of a run; none where there is none, as the latencies of one that did nothing.
    pub fn values(
        &self,
        jobs: &Jobs,
        outcome: &Outcome,
        hierarchy: Option<Hierarchy>,
    ) -> Vec<Option<f64>> {
        let results = self.results(jobs, outcome);
        let has_jobs = |path: &str| jobs.jobs.iter().any(|job| job.group == path);
        let parts = entitled(&outcome.groups, has_jobs, hierarchy);
        let directions = outcome.results.iter().flat_map(|result| &result.directions);
        let all: u64 = directions.map(|direction| direction.together_bytes).sum();
        let value = |&(index, measure): &(usize, Measure)| {
            let result = &results[index];
            let percentile = |percent| result.completion.percentile(percent).map(nanos);
            match measure {
                Measure::Throughput => Some(result.bytes_per_s()),
                Measure::ShareError => {
                    let part = parts.get(&self.names[index]).copied().flatten()?;
                    (all > 0).then(|| (ratio(result.together_bytes, all) - part).abs())
                }
                Measure::P50 => percentile(50.0),
                Measure::P99 => percentile(99.0),
                Measure::P999 => percentile(99.9).filter(|_| result.ios > FOR_P999),
            }
        };
        self.figures.iter().map(value).collect()
    }

    /// What each of the names did.
    fn results(&self, jobs: &Jobs, outcome: &Outcome) -> Vec<DirectionResult> {
        if self.by_group {
            let mut sums = sums_by_group(&jobs.jobs, &outcome.results);
            let of_group = |name: &String| sums.swap_remove(name.as_str()).unwrap_or_default();
            return self.names.iter().map(of_group).collect();
        }
        let of_entry = |entry: &Entry<'_>| {
            let mut sum = DirectionResult::default();
            entry.result.directions.iter().for_each(|direction| sum.merge(direction));
            sum
        };
        entries(&jobs.jobs, &outcome.results).iter().map(of_entry).collect()
    }
}

#[allow(clippy::cast_precision_loss, reason = "a figure needs no more than 53 bits")]
fn nanos(time: paternoster::Nanos) -> f64 {
    time.as_nanos() as f64
}

#[allow(clippy::cast_precision_loss, reason = "a figure needs no more than 53 bits")]
fn ratio(part: u64, all: u64) -> f64 {
    part as f64 / all as f64
}
