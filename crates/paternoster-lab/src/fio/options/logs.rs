//! Options that say which logs a job writes.

use paternoster::Nanos;

use super::{Given, OptionInfo, simulated};
use crate::fio::spec::LogName;

pub(super) static OPTIONS: &[OptionInfo] = &[
    simulated(
        "write_bw_log",
        &[],
        "[str]",
        "Writes a log of the bandwidth, `NAME_bw.JOB.log`; NAME is the job's, unless given.",
        |spec, given| {
            spec.logs.bandwidth = Some(name(given));
            Ok(())
        },
    ),
    simulated(
        "write_lat_log",
        &[],
        "[str]",
        "Writes logs of latencies: `_slat` of submission, `_clat` of completion, `_lat` in all.",
        |spec, given| {
            spec.logs.latency = Some(name(given));
            Ok(())
        },
    ),
    simulated(
        "write_iops_log",
        &[],
        "[str]",
        "Writes a log of I/Os a second, `_iops`; without `log_avg_msec` a line for each I/O.",
        |spec, given| {
            spec.logs.iops = Some(name(given));
            Ok(())
        },
    ),
    simulated(
        "per_job_logs",
        &[],
        "bool",
        "Each job has logs of its own, with its number in their names.",
        |spec, given| {
            spec.logs.per_job = given.switch()?;
            Ok(())
        },
    ),
    simulated(
        "log_avg_msec",
        &[],
        "int",
        "Milliseconds over which values are averaged; 0 writes a line for each I/O.",
        |spec, given| {
            spec.logs.average = Nanos::from_millis(given.small(0, u32::MAX)?.into());
            Ok(())
        },
    ),
    simulated(
        "log_max_value",
        &[],
        "bool",
        "Logs the greatest latency of that time instead of the average.",
        |spec, given| {
            spec.logs.most = given.switch()?;
            Ok(())
        },
    ),
    simulated("log_offset", &[], "bool", "With the I/O's position in its file.", |spec, given| {
        spec.logs.offset = given.switch()?;
        Ok(())
    }),
    simulated(
        "log_prio",
        &[],
        "bool",
        "With the I/O's priority as Linux encodes it, instead of 1 for real time and 0.",
        |spec, given| {
            spec.logs.priority = given.switch()?;
            Ok(())
        },
    ),
    simulated(
        "disable_lat",
        &[],
        "bool",
        "No log of total latencies; the report has them.",
        |spec, given| {
            spec.logs.total = !given.switch()?;
            Ok(())
        },
    ),
    simulated(
        "disable_clat",
        &[],
        "bool",
        "No log of completion latencies; the report has them.",
        |spec, given| {
            spec.logs.completion = !given.switch()?;
            Ok(())
        },
    ),
    simulated(
        "disable_slat",
        &[],
        "bool",
        "No log of submission latencies; the report has them.",
        |spec, given| {
            spec.logs.submission = !given.switch()?;
            Ok(())
        },
    ),
    simulated(
        "disable_bw_measurement",
        &["disable_bw"],
        "bool",
        "No lines in the log of the bandwidth, unless they are averages.",
        |spec, given| {
            spec.logs.bandwidths = !given.switch()?;
            Ok(())
        },
    ),
    simulated(
        "gtod_reduce",
        &[],
        "bool",
        "As `disable_lat`, `disable_clat`, `disable_slat` and `disable_bw` together: `_iops` has \
         averages alone.",
        |spec, given| {
            if given.switch()? {
                let logs = &mut spec.logs;
                (logs.total, logs.completion, logs.submission) = (false, false, false);
                logs.bandwidths = false;
            }
            Ok(())
        },
    ),
];

/// What stands in the names of files.
fn name(given: &Given<'_>) -> LogName {
    match given.value.filter(|text| !text.is_empty()) {
        Some(text) => LogName::Given(text.as_str().to_owned()),
        None => LogName::Job,
    }
}
