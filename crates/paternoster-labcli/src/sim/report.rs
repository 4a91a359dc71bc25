//! What `paternoster-lab sim` prints of a run: a table, or fio's JSON.

use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Result;
use paternoster::Nanos;
use paternoster_lab::fio::Jobs;
use paternoster_lab::result::{
    DirectionResult, DiskUse, FioReport, Header, drained_note, sums_by_group, table,
};
use paternoster_lab::sim::{CpuTime, DeviceTime, Setup};
use paternoster_lab::threads::Outcome;
use serde::Serialize;

use super::args::Args;

pub(super) fn text(setup: &Setup, jobs: &Jobs, outcome: &Outcome) -> String {
    format!("{}\n{}", table(jobs, &outcome.results), below(setup, jobs, outcome))
}

/// What stands below a table: what the device and the cores did, and what is to be said.
pub(super) fn below(setup: &Setup, jobs: &Jobs, outcome: &Outcome) -> String {
    let device = device_line(&outcome.device);
    let interrupted = interrupted_note(outcome).map_or(String::new(), |note| note + "\n");
    let drained = drained_note(jobs, &outcome.results).unwrap_or_default();
    let cores = cores_line(setup, outcome);
    format!("{interrupted}{device}\n{cores}{}{drained}", order_note(&outcome.device))
}

/// Says of a run that was ended before its jobs were that it was.
pub(super) fn interrupted_note(outcome: &Outcome) -> Option<String> {
    let end = seconds(outcome.end.since_start());
    outcome.interrupted.then(|| {
        format!("interrupted at {end:.3} s of the run: this is what was counted until then")
    })
}

/// Says so where the order in which the scheduler serves requests could change nothing.
fn order_note(time: &DeviceTime) -> &'static str {
    if time.queued > Nanos::ZERO {
        return "";
    }
    "note: the device took every request at once: the scheduler had nothing to order\n"
}

pub(super) fn seconds(span: Nanos) -> f64 {
    Duration::from_nanos(span.as_nanos()).as_secs_f64()
}

/// Where the device's time went, in percent.
fn device_line(time: &DeviceTime) -> String {
    let all = seconds(time.busy) + seconds(time.withheld) + seconds(time.without_work);
    let percent = |span| if all > 0.0 { 100.0 * seconds(span) / all } else { 0.0 };
    format!(
        "device: {:.1} % busy, {:.1} % idle because the scheduler waited, {:.1} % without work",
        percent(time.busy),
        percent(time.withheld),
        percent(time.without_work)
    )
}

/// What the cores did, in percent; nothing where I/O costs them nothing.
fn cores_line(setup: &Setup, outcome: &Outcome) -> String {
    let all = seconds(outcome.end.since_start());
    if setup.costs.are_none() || all == 0.0 {
        return String::new();
    }
    let percent = |span, of: f64| 100.0 * seconds(span) / of;
    let of_cores = all * f64::from(setup.cores);
    let CpuTime { busy, spinning, held } = outcome.cpu;
    format!(
        "cores: {} at {:.1} % busy, {:.1} % of it spinning; lock: {:.1} % of the time held\n",
        setup.cores,
        percent(busy, of_cores),
        if busy > Nanos::ZERO { percent(spinning, seconds(busy)) } else { 0.0 },
        percent(held, all)
    )
}

/// fio's report, and beside it what fio has no place for.
#[derive(Serialize)]
struct Report<'a> {
    #[serde(flatten)]
    fio: FioReport,
    paternoster: Own<'a>,
}

/// What was run, and how it went.
#[derive(Serialize)]
struct Own<'a> {
    device: &'a str,
    host: &'a str,
    scheduler: &'static str,
    tunables: BTreeMap<&'static str, i64>,
    /// Where the command line names one.
    kernel: Option<String>,
    /// See above.
    hierarchy: Option<String>,
    seed: u64,
    nr_requests: u32,
    plug: &'static str,
    /// The root first.
    groups: Vec<Group<'a>>,
    /// The time in which all jobs had something to do.
    together_ns: u64,
    /// The bytes of that time, by job of the job file.
    together_bytes: Vec<u64>,
    interrupted: bool,
    /// For how long the scheduler had requests: of 0 it had nothing to order.
    queued_ns: u64,
    end_ns: u64,
}

#[derive(Serialize)]
struct Group<'a> {
    path: &'a str,
    /// None where the scheduler knows no weights.
    weight: Option<u32>,
    /// None where it knows no leaf weights.
    leaf_weight: Option<u32>,
    /// The indices of its jobs in the job file, with the clones of `numjobs`.
    jobs: Vec<usize>,
    /// What they did, in all directions; none where no I/O of theirs counts.
    #[serde(flatten)]
    did: Option<Did>,
}

/// In the words that fio has for a direction of a job.
#[derive(Serialize)]
struct Did {
    total_ios: u64,
    io_bytes: u64,
    runtime: u64,
    bw_bytes: f64,
    iops: f64,
    /// Of the time in which all jobs had something to do.
    together_bytes: u64,
    clat_ns: Clat,
}

#[derive(Serialize)]
struct Clat {
    max: u64,
    mean: f64,
    percentile: BTreeMap<&'static str, u64>,
}

impl Did {
    fn new(result: &DirectionResult) -> Self {
        let moments = result.completion.moments();
        let percentile = [("50.000000", 50.0), ("99.000000", 99.0)].into_iter();
        let percentile = percentile.filter_map(|(name, percent)| {
            Some((name, result.completion.percentile(percent)?.as_nanos()))
        });
        Self {
            total_ios: result.ios,
            io_bytes: result.bytes,
            runtime: result.runtime.as_nanos() / 1_000_000,
            bw_bytes: result.bytes_per_s(),
            iops: result.ios_per_s(),
            together_bytes: result.together_bytes,
            clat_ns: Clat {
                max: moments.max(),
                mean: moments.mean(),
                percentile: percentile.collect(),
            },
        }
    }
}

impl<'a> Own<'a> {
    fn new(args: &'a Args, setup: &Setup, jobs: &Jobs, outcome: &'a Outcome) -> Self {
        let scheduler = setup.scheduler;
        let jobs_of = |path: &str| {
            let numbered = jobs.jobs.iter().enumerate();
            numbered.filter(|(_, job)| job.group == path).map(|(index, _)| index).collect()
        };
        let sums = sums_by_group(&jobs.jobs, &outcome.results);
        let groups = outcome.groups.iter().map(|group| {
            let weights = &group.weights;
            Group {
                path: &group.path,
                weight: scheduler.has_weights().then(|| weights.weight.value()),
                leaf_weight: scheduler.has_leaf_weights().then(|| weights.leaf.value()),
                jobs: jobs_of(&group.path),
                did: sums.get(group.path.as_str()).map(Did::new),
            }
        });
        let bytes = outcome
            .results
            .iter()
            .map(|result| result.directions.iter().map(|direction| direction.together_bytes).sum());
        let together = outcome.results.first().map_or(Nanos::ZERO, |first| first.together);
        Self {
            device: &args.conditions.device,
            host: &args.conditions.host,
            scheduler: scheduler.name(),
            tunables: outcome.tunables.iter().map(|(info, value)| (info.name, *value)).collect(),
            kernel: setup.kernel.map(|kernel| kernel.to_string()),
            hierarchy: setup.hierarchy.map(|hierarchy| hierarchy.to_string()),
            seed: args.conditions.seed,
            nr_requests: args.conditions.nr_requests,
            plug: args.conditions.plug.name(),
            groups: groups.collect(),
            together_ns: together.as_nanos(),
            together_bytes: bytes.collect(),
            interrupted: outcome.interrupted,
            queued_ns: outcome.device.queued.as_nanos(),
            end_ns: outcome.end.since_start().as_nanos(),
        }
    }
}

pub(super) fn json(args: &Args, setup: &Setup, jobs: &Jobs, outcome: &Outcome) -> Result<String> {
    let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let unix_ms = u64::try_from(unix.as_millis()).map_err(io::Error::other)?;
    let time = &outcome.device;
    let all = seconds(outcome.end.since_start());
    let [read, write, trim] = outcome.served;
    let ticks = |took: Nanos| took.as_nanos() / 1_000_000;
    let disk = DiskUse {
        name: args.conditions.device.clone(),
        read_ios: read.requests,
        write_ios: write.requests,
        read_merges: read.merged,
        write_merges: write.merged,
        read_ticks: ticks(read.took),
        write_ticks: ticks(write.took),
        in_queue: ticks(read.took + write.took + trim.took),
        util: if all > 0.0 { 100.0 * seconds(time.busy) / all } else { 0.0 },
    };
    let fio = FioReport::new(Header { unix_ms }, jobs, &outcome.results, vec![disk]);
    let report = Report { fio, paternoster: Own::new(args, setup, jobs, outcome) };
    Ok(serde_json::to_string_pretty(&report)? + "\n")
}
