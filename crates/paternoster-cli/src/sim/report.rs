//! What `paternoster sim` prints of a run: a table, or fio's JSON.

use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Result;
use paternoster::Nanos;
use paternoster_lab::fio::Jobs;
use paternoster_lab::result::{DiskUse, FioReport, Header, drained_note, table};
use paternoster_lab::sim::{CpuTime, DeviceTime, Setup};
use paternoster_lab::threads::Outcome;

use super::args::Args;

pub(super) fn text(setup: &Setup, jobs: &Jobs, outcome: &Outcome) -> String {
    let (table, device) = (table(jobs, &outcome.results), device_line(&outcome.device));
    let note = drained_note(jobs, &outcome.results).unwrap_or_default();
    format!("{table}\n{device}\n{}{note}", cores_line(setup, outcome))
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

pub(super) fn json(args: &Args, jobs: &Jobs, outcome: &Outcome) -> Result<String> {
    let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let unix_ms = u64::try_from(unix.as_millis()).map_err(io::Error::other)?;
    let time = &outcome.device;
    let all = seconds(outcome.end.since_start());
    let [read, write, trim] = outcome.served;
    let ticks = |took: Nanos| took.as_nanos() / 1_000_000;
    let disk = DiskUse {
        name: args.device.clone(),
        read_ios: read.requests,
        write_ios: write.requests,
        read_merges: read.merged,
        write_merges: write.merged,
        read_ticks: ticks(read.took),
        write_ticks: ticks(write.took),
        in_queue: ticks(read.took + write.took + trim.took),
        util: if all > 0.0 { 100.0 * seconds(time.busy) / all } else { 0.0 },
    };
    let report = FioReport::new(Header { unix_ms }, jobs, &outcome.results, vec![disk]);
    Ok(serde_json::to_string_pretty(&report)? + "\n")
}
