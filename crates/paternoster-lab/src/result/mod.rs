//! What a run measured of each job, and how it is told: as fio's JSON, or as a table.
//!
//! ```text
//!   engine ──▶ JobResult, one for each job ──▶ FioReport ──▶ JSON, for the tools that read fio's
//!                                          └─▶ table      ──▶ a terminal
//! ```

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "rates are told with 53 bits"
)]

mod drained;
mod error;
mod fio_json;
mod latency;
mod names;
mod steady;
mod table;
mod together;

pub use drained::drained_note;
pub use error::JobError;
pub use fio_json::{DiskUse, FioReport, Header};
pub use latency::{Latencies, Moments};
pub(crate) use names::job_names;
pub use steady::{Steady, SteadySample};
pub(crate) use table::{Subject, shares_note, short_time, table_of};
pub use table::{table, tables_side_by_side};
pub(crate) use together::Together;

use std::borrow::Cow;
use std::collections::HashSet;

use indexmap::IndexMap;
use paternoster::Nanos;

use crate::fio::{DataDirection, Job};

/// The classes by which depths and batches are counted.
const CLASSES: usize = 7;

/// The bounds of completion latencies that are counted, in nanoseconds; each counts what is less,
/// down to the one before.
const LATENCY_BOUNDS: [u64; 31] = {
    let steps = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000];
    let mut bounds = [2_000_000_000; 31];
    let mut index = 0;
    while index < 30 {
        bounds[index] = steps[index % 10] * [1, 1_000, 1_000_000][index / 10];
        index += 1;
    }
    bounds
};

/// What was measured of a job.
#[derive(Clone, Debug, Default)]
pub struct JobResult {
    /// By direction, in the order of [`DataDirection`].
    pub directions: [DirectionResult; 3],
    /// Latencies of syncs.
    pub syncs: Latencies,
    /// How long it ran, from the end of the ramp on.
    pub runtime: Nanos,
    /// For how long all jobs of the run had something to do.
    pub together: Nanos,
    /// How long its processor was busy for it, in user space and in the kernel.
    pub user_cpu: Nanos,
    /// See above.
    pub system_cpu: Nanos,
    /// How often it waited.
    pub context_switches: u64,
    /// I/Os of all directions that completed when its runtime was over; they are counted above.
    pub drained: u64,
    /// Why it ended, if that was an error.
    pub error: Option<JobError>,
    /// How steady it was, if that is looked at.
    pub steady: Option<Steady>,
    /// The depth to which its latency target has led, if it has one.
    pub latency_depth: Option<u32>,
    depths: [u64; CLASSES],
    submits: [u64; CLASSES],
    completes: [u64; CLASSES],
    /// Completion latencies by bound; the last are those beyond all.
    latencies: [u64; LATENCY_BOUNDS.len() + 1],
}

/// What was measured of a direction of a job.
#[derive(Clone, Debug, Default)]
pub struct DirectionResult {
    /// I/Os that completed.
    pub ios: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The bytes of those that completed while all jobs of the run had something to do.
    pub together_bytes: u64,
    /// From the end of the ramp to the end of the job, if it has any I/O.
    pub runtime: Nanos,
    /// From the making of an I/O to the end of its submission.
    pub submission: Latencies,
    /// From there to its completion.
    pub completion: Latencies,
    /// Both together.
    pub total: Latencies,
    /// KiB a second over each window.
    pub bandwidth: Samples,
    /// I/Os a second over each window.
    pub iops: Samples,
}

/// Samples of a rate over windows of time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Samples {
    /// How many there are.
    pub count: u64,
    /// The least.
    pub min: u64,
    /// The greatest.
    pub max: u64,
    /// The mean.
    pub mean: f64,
    /// The deviation.
    pub deviation: f64,
}

impl From<&Moments> for Samples {
    fn from(moments: &Moments) -> Self {
        Self {
            count: moments.count(),
            min: moments.min(),
            max: moments.max(),
            mean: moments.mean(),
            deviation: moments.deviation(),
        }
    }
}

impl JobResult {
    /// Counts an I/O that makes `depth` of the job under way.
    pub fn submitted(&mut self, depth: u32) {
        let class = depth.max(1).ilog2() as usize;
        self.depths[class.min(CLASSES - 1)] += 1;
    }

    /// Counts a call that submitted so many I/Os at once.
    pub fn submitted_batch(&mut self, ios: u32) {
        self.submits[batch_class(ios)] += 1;
    }

    /// Counts a call that found so many I/Os complete.
    pub fn completed_batch(&mut self, ios: u32) {
        self.completes[batch_class(ios)] += 1;
    }

    /// Counts an I/O that completed.
    pub fn completed(&mut self, direction: DataDirection, bytes: u64, took: Took) {
        let result = &mut self.directions[direction as usize];
        result.ios += 1;
        result.bytes += bytes;
        result.submission.add(took.submission);
        result.completion.add(took.completion);
        result.total.add(took.submission + took.completion);
        let nanos = took.completion.as_nanos();
        self.latencies[LATENCY_BOUNDS.partition_point(|&bound| bound <= nanos)] += 1;
    }

    /// Adds what was measured of another job of the same reporting group.
    pub fn merge(&mut self, other: &Self) {
        for (sum, other) in self.directions.iter_mut().zip(&other.directions) {
            sum.merge(other);
        }
        self.syncs.merge(&other.syncs);
        self.runtime += other.runtime;
        self.together = self.together.max(other.together);
        self.user_cpu += other.user_cpu;
        self.system_cpu += other.system_cpu;
        self.context_switches += other.context_switches;
        self.drained += other.drained;
        self.error = self.error.or(other.error);
        // All of a group have the same.
        self.steady = self.steady.take().or_else(|| other.steady.clone());
        self.latency_depth = self.latency_depth.or(other.latency_depth);
        let counts = [
            (&mut self.depths[..], &other.depths[..]),
            (&mut self.submits, &other.submits),
            (&mut self.completes, &other.completes),
            (&mut self.latencies, &other.latencies),
        ];
        for (sums, others) in counts {
            sums.iter_mut().zip(others).for_each(|(sum, other)| *sum += other);
        }
    }

    /// I/Os of all directions.
    pub fn ios(&self) -> u64 {
        self.directions.iter().map(|direction| direction.ios).sum()
    }
}

/// How long an I/O took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Took {
    /// From its making to the end of its submission.
    pub submission: Nanos,
    /// From there to its completion.
    pub completion: Nanos,
}

/// Counts 0, then 1 to 4, then up to each power of two.
fn batch_class(ios: u32) -> usize {
    match ios {
        0 => 0,
        1..=4 => 1,
        more => ((more - 1).ilog2() as usize).min(CLASSES - 1),
    }
}

impl DirectionResult {
    /// As fio adds up a group: rates over the longest time, samples of rates by their sums.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.ios += other.ios;
        self.bytes += other.bytes;
        self.together_bytes += other.together_bytes;
        self.runtime = self.runtime.max(other.runtime);
        self.submission.merge(&other.submission);
        self.completion.merge(&other.completion);
        self.total.merge(&other.total);
        self.bandwidth.merge(&other.bandwidth);
        self.iops.merge(&other.iops);
    }

    /// Bytes a second.
    pub fn bytes_per_s(&self) -> f64 {
        per_s(self.bytes, self.runtime)
    }

    /// I/Os a second.
    pub fn ios_per_s(&self) -> f64 {
        per_s(self.ios, self.runtime)
    }
}

fn per_s(count: u64, time: Nanos) -> f64 {
    match time.as_nanos() {
        0 => 0.0,
        nanos => count as f64 * 1e9 / nanos as f64,
    }
}

impl Samples {
    fn merge(&mut self, other: &Self) {
        let deviations = self.deviation * self.deviation + other.deviation * other.deviation;
        *self = Self {
            count: self.count + other.count,
            min: self.min.saturating_add(other.min),
            max: self.max.saturating_add(other.max),
            mean: self.mean + other.mean,
            deviation: deviations.sqrt(),
        };
    }
}

/// A line of a report: a job, or the jobs of a reporting group that are told as one.
pub(crate) struct Entry<'a> {
    /// The first of them.
    pub(crate) job: &'a Job,
    /// What was measured of all of them.
    pub(crate) result: JobResult,
    /// Which they are, by index.
    pub(crate) jobs: Vec<usize>,
}

impl<'a> Entry<'a> {
    /// The group of its jobs, or how many they have.
    pub(crate) fn group(&self, jobs: &'a [Job]) -> Cow<'a, str> {
        let groups: HashSet<_> = self.jobs.iter().map(|&job| jobs[job].group.as_str()).collect();
        match groups.len() {
            1 => Cow::Borrowed(&self.job.group),
            several => Cow::Owned(format!("{several} groups")),
        }
    }

    /// What it is called.
    pub(crate) fn name(&self) -> String {
        match self.jobs.len() {
            1 => self.job.name.clone(),
            count => format!("{} x {count}", self.job.name),
        }
    }
}

/// What each group did that has jobs of which something is told, in the order of the jobs, whatever
/// jobs are told as one.
pub fn sums_by_group<'a>(
    jobs: &'a [Job],
    results: &[JobResult],
) -> IndexMap<&'a str, DirectionResult> {
    let told = jobs.iter().zip(results).filter(|(job, _)| job.reports.is_told);
    group_sums(told.map(|(job, result)| (job.group.as_str(), result)))
}

/// The sums of results by the paths of their groups, of those that did anything.
pub(crate) fn group_sums<'a, 'r>(
    results: impl Iterator<Item = (&'a str, &'r JobResult)>,
) -> IndexMap<&'a str, DirectionResult> {
    let mut sums: IndexMap<&str, DirectionResult> = IndexMap::new();
    for (group, result) in results {
        for direction in result.directions.iter().filter(|direction| direction.ios > 0) {
            sums.entry(group).or_default().merge(direction);
        }
    }
    sums
}

/// The lines of a report, in the order of the jobs.
pub(crate) fn entries<'a>(jobs: &'a [Job], results: &[JobResult]) -> Vec<Entry<'a>> {
    assert_eq!(jobs.len(), results.len(), "each job has a result");
    let mut entries: Vec<Entry<'a>> = vec![];
    for (index, (job, result)) in jobs.iter().zip(results).enumerate() {
        if !job.reports.is_told {
            continue;
        }
        let group = entries.iter_mut().find(|entry| {
            let told = &entry.job.reports;
            job.reports.grouped && told.grouped && told.group_id == job.reports.group_id
        });
        match group {
            Some(entry) => {
                entry.result.merge(result);
                entry.jobs.push(index);
            }
            None => entries.push(Entry { job, result: result.clone(), jobs: vec![index] }),
        }
    }
    entries
}
