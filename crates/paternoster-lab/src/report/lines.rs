//! The lines of a run's tables and charts: jobs, and the groups that they are in.

#![allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
// Rates, shares and means are told with 53 bits.

use std::collections::HashMap;

use indexmap::IndexMap;
use paternoster::Nanos;
use serde::Serialize;

use super::observe::Observed;
use super::series::Series;
use super::shares::entitled;
use crate::fio::{DataDirection, Jobs};
use crate::result::{DirectionResult, Entry, JobResult, Latencies, entries};
use crate::threads::Outcome;

/// At most so many lines of a level have a series: those with the most bytes.
const MOST_SERIES: usize = 16;

/// Windows become wider, down to so many of them, until there are enough I/Os in each line's.
const FEWEST_WINDOWS: usize = 24;
const ENOUGH_IOS: u64 = 12;

/// The percentiles that a distribution is drawn of; each where enough I/Os are beyond it.
const PERCENTILES: [f64; 15] =
    [1.0, 5.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99, 99.995, 99.999];

/// All lines of a run.
pub(super) struct Lines {
    /// All of it.
    pub(super) totals: Line,
    /// Each job and direction.
    pub(super) table: Vec<Line>,
    /// First groups, if there are several, then jobs.
    pub(super) levels: Vec<Level>,
    /// How many windows a series has, and how wide each is.
    pub(super) windows: usize,
    pub(super) width: Nanos,
}

/// The lines of a chart.
#[derive(Serialize)]
pub(super) struct Level {
    name: &'static str,
    lines: Vec<Line>,
}

/// A line.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Line {
    name: String,
    /// Its group, of a line for a job.
    group: String,
    op: &'static str,
    /// The group's weight, in words.
    weight: Option<String>,
    /// The part of the device that its weight entitles it to.
    entitled: Option<f64>,
    /// The part of the device's busy time that it had.
    device_share: Option<f64>,
    ios_per_s: f64,
    bytes_per_s: f64,
    /// The part of the bytes of the time in which all jobs had something to do; none where there
    /// was no such time.
    share: Option<f64>,
    /// The part of all bytes a second.
    share_of_all: f64,
    mean_ns: u64,
    p50_ns: u64,
    p99_ns: u64,
    p999_ns: u64,
    max_ns: u64,
    /// Percentiles, with the latency that so many percent do not exceed.
    percentiles: Vec<(f64, u64)>,
    series: Option<LineSeries>,
}

/// What a line did over time, by window; latencies are absent where nothing completed.
#[derive(Clone, Debug, Default, Serialize)]
struct LineSeries {
    bytes: Vec<u64>,
    mean_ns: Vec<Option<u64>>,
    max_ns: Vec<Option<u64>>,
}

/// What a line is made of.
#[derive(Default)]
struct Sum {
    result: DirectionResult,
    series: Series,
}

impl Lines {
    pub(super) fn new(jobs: &Jobs, outcome: &Outcome, observed: &Observed) -> Self {
        let entries = entries(&jobs.jobs, &outcome.results);
        let mut by_job: Vec<Sum> =
            entries.iter().map(|entry| sum_of(&entry.result, &entry.jobs, observed)).collect();
        let mut by_group: IndexMap<&str, Sum> = IndexMap::new();
        let mut all = Sum::default();
        // What is told as one may be of several groups.
        for entry in &entries {
            for &job in &entry.jobs {
                let sum = sum_of(&outcome.results[job], &[job], observed);
                by_group.entry(&jobs.jobs[job].group).or_default().add(&sum);
            }
        }
        for sum in &by_job {
            all.add(sum);
        }
        let several_groups = by_group.len() > 1;
        let most = by_job.len().max(by_group.len()).min(MOST_SERIES);
        let width = readable_width(&all.series, most as u64);
        let sums = by_job.iter_mut().chain(by_group.values_mut()).chain([&mut all]);
        sums.for_each(|sum| sum.series.widen(width));
        let (windows, width) = (all.series.windows().len(), all.series.width());

        let of_all = All {
            rate: by_job.iter().map(|sum| sum.result.bytes_per_s()).sum(),
            together_bytes: by_job.iter().map(|sum| sum.result.together_bytes).sum(),
        };
        let line = |name: String, group: &str, result: &DirectionResult| Line {
            name,
            group: group.to_owned(),
            op: "all",
            ..Line::new(result, &of_all)
        };
        let job_lines = entries.iter().zip(&by_job).map(|(entry, sum)| {
            (line(entry.name(), &entry.group(&jobs.jobs), &sum.result), &sum.series)
        });
        let jobs_level = Level::new("jobs", job_lines.collect(), windows);
        let group_lines: Vec<_> = by_group
            .iter()
            .map(|(path, sum)| (line((*path).to_owned(), "", &sum.result), &sum.series))
            .collect();
        let mut groups_level = Level::new("groups", group_lines, windows);
        groups_level.weigh(outcome, observed, |path| by_group.contains_key(path));
        Self {
            totals: line("all".to_owned(), "", &all.result),
            table: entries
                .iter()
                .flat_map(|entry| table_lines(entry, &entry.group(&jobs.jobs), &of_all))
                .collect(),
            levels: if several_groups { vec![groups_level, jobs_level] } else { vec![jobs_level] },
            windows,
            width,
        }
    }
}

impl Level {
    fn new(name: &'static str, lines: Vec<(Line, &Series)>, windows: usize) -> Self {
        let mut by_bytes: Vec<_> = (0..lines.len()).collect();
        by_bytes.sort_by(|&one, &other| {
            let rate = |index: usize| lines[index].0.bytes_per_s;
            rate(other).total_cmp(&rate(one))
        });
        by_bytes.truncate(MOST_SERIES);
        let with_series = |(index, (line, series)): (usize, (Line, &Series))| {
            let series = by_bytes.contains(&index).then(|| LineSeries::new(series, windows));
            Line { series, ..line }
        };
        Self { name, lines: lines.into_iter().enumerate().map(with_series).collect() }
    }

    /// Adds what is known of the weights of groups.
    fn weigh(&mut self, outcome: &Outcome, observed: &Observed, has_jobs: impl Fn(&str) -> bool) {
        let had: HashMap<&str, f64> = observed.chronicle.device_shares().collect();
        let parts = entitled(&outcome.groups, has_jobs, observed.hierarchy);
        for line in &mut self.lines {
            let group = outcome.groups.iter().find(|group| group.path == line.name);
            line.weight = group.map(|group| format!("weight {}", group.weights.weight.value()));
            line.device_share = had.get(line.name.as_str()).copied();
            line.entitled = parts.get(&line.name).copied().flatten();
        }
    }
}

impl Line {
    /// The numbers of a result.
    fn new(result: &DirectionResult, of_all: &All) -> Self {
        let bytes_per_s = result.bytes_per_s();
        let latencies = &result.completion;
        let percentile = |percent| latencies.percentile(percent).map_or(0, Nanos::as_nanos);
        Self {
            ios_per_s: result.ios_per_s(),
            bytes_per_s,
            share: part(result.together_bytes as f64, of_all.together_bytes as f64),
            share_of_all: part(bytes_per_s, of_all.rate).unwrap_or(0.0),
            mean_ns: latencies.moments().mean().round() as u64,
            p50_ns: percentile(50.0),
            p99_ns: percentile(99.0),
            p999_ns: percentile(99.9),
            max_ns: latencies.moments().max(),
            percentiles: percentiles(latencies),
            ..Self::default()
        }
    }
}

/// What all jobs did.
struct All {
    /// Bytes a second.
    rate: f64,
    /// Bytes of the time in which all had something to do.
    together_bytes: u64,
}

/// The part of something that is there.
fn part(its: f64, all: f64) -> Option<f64> {
    (all > 0.0).then(|| its / all)
}

/// The lowest latency, and those of the percentiles beyond which there are I/Os.
fn percentiles(latencies: &Latencies) -> Vec<(f64, u64)> {
    let count = latencies.moments().count();
    if count == 0 {
        return Vec::new();
    }
    let is_known = |percent: &f64| (1.0 - percent / 100.0) * count as f64 >= 1.0;
    let known = PERCENTILES.into_iter().filter(is_known);
    let latency = |percent| latencies.percentile(percent).map(|its| (percent, its.as_nanos()));
    [(0.0, latencies.moments().min())].into_iter().chain(known.filter_map(latency)).collect()
}

impl LineSeries {
    fn new(series: &Series, windows: usize) -> Self {
        let mut all = Self::default();
        for index in 0..windows {
            let window = series.windows().get(index).copied().unwrap_or_default();
            let is_known = window.ios > 0;
            all.bytes.push(window.bytes);
            all.mean_ns.push(is_known.then(|| window.latency_sum / window.ios));
            all.max_ns.push(is_known.then(|| window.latency_max.as_nanos()));
        }
        all
    }
}

impl Sum {
    fn add(&mut self, other: &Self) {
        self.result.merge(&other.result);
        self.series.merge(&other.series);
    }
}

/// All directions of an entry.
fn sum_of(result: &JobResult, jobs: &[usize], observed: &Observed) -> Sum {
    let mut sum = Sum::default();
    for direction in &result.directions {
        sum.result.merge(direction);
    }
    for &job in jobs {
        sum.series.merge(&observed.series[job]);
    }
    sum
}

/// A line for each direction of an entry.
fn table_lines(entry: &Entry<'_>, group: &str, of_all: &All) -> Vec<Line> {
    let lines = DataDirection::ALL.into_iter().filter_map(|direction| {
        let result = &entry.result.directions[direction as usize];
        let op = ["read", "write", "trim"][direction as usize];
        let (name, group) = (entry.name(), group.to_owned());
        (result.ios > 0).then(|| Line { name, group, op, ..Line::new(result, of_all) })
    });
    lines.collect()
}

/// How wide windows are in which as many lines have enough I/Os, on average.
fn readable_width(all: &Series, lines: u64) -> Nanos {
    let mut wide = all.clone();
    loop {
        let windows = wide.windows().len();
        let ios: u64 = wide.windows().iter().map(|window| window.ios).sum();
        let is_readable = ios >= ENOUGH_IOS * lines * windows as u64;
        if is_readable || windows < 2 * FEWEST_WINDOWS {
            return wide.width();
        }
        wide.widen(wide.width() + wide.width());
    }
}
