//! A report in the schema of fio's `--output-format=json`, for the tools that read that.
//!
//! The keys are those of fio 3.33, which a test compares. What a model does not have is 0: short
//! and dropped I/Os, page faults.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "rates and parts are told with 53 bits"
)]

use indexmap::IndexMap;
use paternoster::Nanos;
use serde::Serialize;

use super::steady::SteadyJson;
use super::{Entry, JobResult, LATENCY_BOUNDS, Latencies, Samples, entries};
use crate::fio::{DataDirection, Jobs, Reports};

/// A report.
#[derive(Clone, Debug, Serialize)]
pub struct FioReport {
    #[serde(rename = "fio version")]
    version: String,
    timestamp: u64,
    timestamp_ms: u64,
    time: String,
    #[serde(rename = "global options")]
    global_options: IndexMap<String, String>,
    jobs: Vec<JobJson>,
    disk_util: Vec<DiskUse>,
}

/// What stands above a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// When it was made, in milliseconds of Unix time.
    pub unix_ms: u64,
}

/// How the device was used.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DiskUse {
    /// Its name.
    pub name: String,
    /// Requests that it served, from the begin of the run on, its ramp included.
    pub read_ios: u64,
    /// See above.
    pub write_ios: u64,
    /// Requests that others absorbed.
    pub read_merges: u64,
    /// See above.
    pub write_merges: u64,
    /// Milliseconds that requests took in all.
    pub read_ticks: u64,
    /// See above.
    pub write_ticks: u64,
    /// Milliseconds that requests of all kinds were queued or served, in all; flushes are left out.
    pub in_queue: u64,
    /// How many percent of the time it had a request.
    pub util: f64,
}

#[derive(Clone, Debug, Serialize)]
struct JobJson {
    jobname: String,
    groupid: u32,
    error: u32,
    eta: u64,
    elapsed: u64,
    #[serde(rename = "job options")]
    options: IndexMap<String, String>,
    read: DirectionJson,
    write: DirectionJson,
    trim: DirectionJson,
    sync: SyncJson,
    job_runtime: u64,
    usr_cpu: f64,
    sys_cpu: f64,
    ctx: u64,
    majf: u64,
    minf: u64,
    iodepth_level: Parts,
    iodepth_submit: Parts,
    iodepth_complete: Parts,
    latency_ns: Parts,
    latency_us: Parts,
    latency_ms: Parts,
    latency_depth: u32,
    latency_target: u64,
    latency_percentile: f64,
    latency_window: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    desc: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    steadystate: Option<SteadyJson>,
}

/// Percent of the whole, by class.
type Parts = IndexMap<String, f64>;

#[derive(Clone, Debug, Serialize)]
struct DirectionJson {
    io_bytes: u64,
    io_kbytes: u64,
    bw_bytes: u64,
    bw: u64,
    iops: f64,
    runtime: u64,
    total_ios: u64,
    short_ios: u64,
    drop_ios: u64,
    slat_ns: LatencyJson,
    clat_ns: LatencyJson,
    lat_ns: LatencyJson,
    bw_min: u64,
    bw_max: u64,
    bw_agg: f64,
    bw_mean: f64,
    bw_dev: f64,
    bw_samples: u64,
    iops_min: u64,
    iops_max: u64,
    iops_mean: f64,
    iops_stddev: f64,
    iops_samples: u64,
}

#[derive(Clone, Debug, Serialize)]
struct SyncJson {
    total_ios: u64,
    lat_ns: LatencyJson,
}

#[derive(Clone, Debug, Serialize)]
struct LatencyJson {
    min: u64,
    max: u64,
    mean: f64,
    stddev: f64,
    #[serde(rename = "N")]
    count: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    percentile: Option<IndexMap<String, u64>>,
}

impl FioReport {
    /// The report of a run: `results` has one for each job, in their order.
    ///
    /// # Panics
    ///
    /// If there are not as many results as jobs.
    pub fn new(header: Header, jobs: &Jobs, results: &[JobResult], disks: Vec<DiskUse>) -> Self {
        let entries = entries(&jobs.jobs, results);
        let kib_per_s = |group, direction: DataDirection| -> f64 {
            let of_group = entries.iter().filter(|entry| entry.job.reports.group_id == group);
            of_group
                .map(|entry| entry.result.directions[direction as usize].bytes_per_s())
                .sum::<f64>()
                / 1024.0
        };
        let job = |entry| JobJson::new(entry, &kib_per_s);
        Self {
            // Tools look for the version whose schema this is.
            version: format!("fio-3.33 (paternoster-lab {})", env!("CARGO_PKG_VERSION")),
            timestamp: header.unix_ms / 1000,
            timestamp_ms: header.unix_ms,
            time: time_of(header.unix_ms / 1000),
            global_options: jobs.global_options.clone(),
            jobs: entries.iter().map(job).collect(),
            disk_util: disks,
        }
    }

    /// Returns it as fio writes it.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("its keys are strings");
        text.push('\n');
        text
    }
}

impl JobJson {
    fn new(entry: &Entry<'_>, group_kib_per_s: &dyn Fn(u32, DataDirection) -> f64) -> Self {
        let Entry { job, result, .. } = entry;
        let reports = &job.reports;
        let direction = |direction| {
            let kib_per_s = group_kib_per_s(reports.group_id, direction);
            DirectionJson::new(result, direction, reports, kib_per_s)
        };
        let runtime = result.runtime.as_nanos();
        let cpu = |time: Nanos| percent(time.as_nanos(), runtime);
        let longest = result.directions.iter().map(|direction| direction.runtime).max();
        let [by_nanos, by_micros, by_millis] = latency_parts(result);
        let ios = result.depths.iter().sum();
        let target = job.ends.latency_target;
        Self {
            jobname: job.name.clone(),
            groupid: reports.group_id,
            error: result.error.map_or(0, |error| error.number()),
            eta: 0,
            elapsed: longest.unwrap_or_default().as_nanos() / 1_000_000_000 + 1,
            options: job.options.clone(),
            read: direction(DataDirection::Read),
            write: direction(DataDirection::Write),
            trim: direction(DataDirection::Trim),
            sync: SyncJson {
                total_ios: result.syncs.moments().count(),
                lat_ns: LatencyJson::new(&result.syncs, Some(reports)),
            },
            job_runtime: runtime / 1_000_000,
            usr_cpu: cpu(result.user_cpu),
            sys_cpu: cpu(result.system_cpu),
            ctx: result.context_switches,
            majf: 0,
            minf: 0,
            iodepth_level: parts(
                ["1", "2", "4", "8", "16", "32", ">=64"].into_iter().zip(result.depths),
                ios,
            ),
            iodepth_submit: batches(result.submits),
            iodepth_complete: batches(result.completes),
            latency_ns: by_nanos,
            latency_us: by_micros,
            latency_ms: by_millis,
            // As fio has it for a job without a latency target, and in its units: ns and us.
            latency_depth: result.latency_depth.unwrap_or(job.submission.depth),
            latency_target: target.map_or(0, |target| target.latency.as_nanos()),
            latency_percentile: target.map_or(100.0, |target| target.percentile),
            latency_window: target.map_or(0, |target| target.window.as_nanos() / 1000),
            desc: job.description.clone(),
            steadystate: result.steady.as_ref().map(SteadyJson::new),
        }
    }
}

impl DirectionJson {
    fn new(
        result: &JobResult,
        direction: DataDirection,
        reports: &Reports,
        group_kib_per_s: f64,
    ) -> Self {
        let result = &result.directions[direction as usize];
        let Samples { count, min, max, mean, deviation } = result.bandwidth;
        let bytes_per_s = result.bytes_per_s() as u64;
        let of_group = if group_kib_per_s > 0.0 { mean / group_kib_per_s } else { 0.0 };
        Self {
            io_bytes: result.bytes,
            io_kbytes: result.bytes / 1024,
            bw_bytes: bytes_per_s,
            bw: bytes_per_s / 1024,
            iops: result.ios_per_s(),
            runtime: result.runtime.as_nanos().div_ceil(1_000_000),
            total_ios: result.ios,
            short_ios: 0,
            drop_ios: 0,
            slat_ns: told(&result.submission, reports.slat_percentiles, reports),
            clat_ns: told(&result.completion, reports.clat_percentiles, reports),
            lat_ns: told(&result.total, reports.lat_percentiles, reports),
            bw_min: min,
            bw_max: max,
            bw_agg: (100.0 * of_group).min(100.0),
            bw_mean: mean,
            bw_dev: deviation,
            bw_samples: count,
            iops_min: result.iops.min,
            iops_max: result.iops.max,
            iops_mean: result.iops.mean,
            iops_stddev: result.iops.deviation,
            iops_samples: result.iops.count,
        }
    }
}

/// Latencies, with their percentiles if those are told.
fn told(latencies: &Latencies, percentiles: bool, reports: &Reports) -> LatencyJson {
    LatencyJson::new(latencies, percentiles.then_some(reports))
}

impl LatencyJson {
    fn new(latencies: &Latencies, percentiles: Option<&Reports>) -> Self {
        let moments = latencies.moments();
        let some = percentiles.filter(|_| moments.count() > 0);
        let percentile = some.map(|reports| {
            let list = reports.percentiles.iter().filter_map(|&percentile| {
                let nanos = latencies.percentile(percentile)?.as_nanos();
                Some((format!("{percentile:.6}"), nanos))
            });
            list.collect()
        });
        Self {
            min: moments.min(),
            max: moments.max(),
            mean: moments.mean(),
            stddev: moments.deviation(),
            count: moments.count(),
            percentile,
        }
    }
}

/// Completion latencies in percent, by nanoseconds, microseconds and milliseconds.
fn latency_parts(result: &JobResult) -> [Parts; 3] {
    let ios = result.ios();
    let mut counts = LATENCY_BOUNDS.iter().zip(result.latencies);
    let beyond = result.latencies[LATENCY_BOUNDS.len()];
    [1, 1_000, 1_000_000].map(|unit| {
        let bounds = if unit == 1_000_000 { 11 } else { 10 };
        let of_unit = counts.by_ref().take(bounds);
        let named = of_unit.map(|(bound, count)| ((bound / unit).to_string(), count));
        let mut named: Vec<_> = named.collect();
        if unit == 1_000_000 {
            named.push((">=2000".to_owned(), beyond));
        }
        parts(named, ios)
    })
}

fn batches(counts: [u64; super::CLASSES]) -> Parts {
    let names = ["0", "4", "8", "16", "32", "64", ">=64"];
    parts(names.into_iter().zip(counts), counts.iter().sum())
}

fn parts<N: Into<String>>(counts: impl IntoIterator<Item = (N, u64)>, whole: u64) -> Parts {
    counts.into_iter().map(|(name, count)| (name.into(), percent(count, whole))).collect()
}

fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 }
}

/// `Sun Nov 22 18:52:10 2026`, in UTC.
fn time_of(unix_s: u64) -> String {
    let (mut day, second) = (unix_s / 86_400, unix_s % 86_400);
    // 1 January 1970 was a Thursday.
    let weekday = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"][(day % 7) as usize];
    let mut year = 1970_u64;
    let is_leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    // A period of 400 years has 146097 days.
    year += day / 146_097 * 400;
    day %= 146_097;
    while day >= 365 + u64::from(is_leap(year)) {
        day -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let months = [
        ("Jan", 31),
        ("Feb", february),
        ("Mar", 31),
        ("Apr", 30),
        ("May", 31),
        ("Jun", 30),
        ("Jul", 31),
        ("Aug", 31),
        ("Sep", 30),
        ("Oct", 31),
        ("Nov", 30),
        ("Dec", 31),
    ];
    let mut name = "Dec";
    for (month, days) in months {
        if day < days {
            name = month;
            break;
        }
        day -= days;
    }
    let (hours, minutes, seconds) = (second / 3600, second / 60 % 60, second % 60);
    format!("{weekday} {name} {:>2} {hours:02}:{minutes:02}:{seconds:02} {year}", day + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `date -u -d @SECONDS '+%a %b %e %T %Y'` says.
    #[test]
    fn time_is_that_of_the_calendar() {
        assert_eq!(time_of(0), "Thu Jan  1 00:00:00 1970");
        assert_eq!(time_of(951_782_400), "Tue Feb 29 00:00:00 2000");
        assert_eq!(time_of(1_795_373_530), "Sun Nov 22 18:52:10 2026");
        assert_eq!(time_of(4_107_542_399), "Sun Feb 28 23:59:59 2100");
        assert_eq!(time_of(4_107_542_400), "Mon Mar  1 00:00:00 2100");
    }
}
