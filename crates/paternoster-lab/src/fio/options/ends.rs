//! Options that end a job beside its work and its runtime.

use paternoster::Nanos;

use super::{Given, OptionInfo, simulated};
use crate::fio::ends::{SteadyCriterion, SteadyRate, SteadyState};
use crate::fio::error::Mistake;
use crate::fio::spec::Spec;
use crate::fio::value::{self, TimeUnit};

/// The greatest limit of a steady state.
const MAX_LIMIT: f64 = 1e15;

pub(super) static OPTIONS: &[OptionInfo] = &[
    simulated(
        "steadystate",
        &["ss"],
        "str:float",
        "Ends the job when it is steady: iops, iops_slope, bw or bw_slope is below the limit, \
         which is absolute or in percent of the mean.",
        steadystate,
    ),
    simulated(
        "steadystate_duration",
        &["ss_dur"],
        "time",
        "Time over which it has to be steady; 0, the default, is never.",
        |spec, given| {
            spec.ends.steady_duration = given.time(TimeUnit::Second)?;
            Ok(())
        },
    ),
    simulated(
        "steadystate_ramp_time",
        &["ss_ramp"],
        "time",
        "Time to wait after the ramp.",
        |spec, given| {
            spec.ends.steady_ramp = given.time(TimeUnit::Second)?;
            Ok(())
        },
    ),
    simulated(
        "steadystate_check_interval",
        &["ss_interval"],
        "time",
        "Time between checks; a second by default.",
        |spec, given| {
            let interval = given.time(TimeUnit::Second)?;
            if interval == Nanos::ZERO {
                return Err(given.text()?.mistake("0: more than 0 is allowed"));
            }
            spec.ends.steady_interval = interval;
            Ok(())
        },
    ),
    simulated(
        "latency_target",
        &[],
        "time",
        "The job looks for the greatest depth at which I/Os meet it, and ends.",
        |spec, given| {
            spec.ends.latency_target = given.time(TimeUnit::Micro)?;
            Ok(())
        },
    ),
    simulated("latency_window", &[], "time", "How long a depth is tried.", |spec, given| {
        spec.ends.latency_window = given.time(TimeUnit::Micro)?;
        Ok(())
    }),
    simulated(
        "latency_percentile",
        &[],
        "float",
        "Percentage of I/Os that have to meet it; 100 by default.",
        |spec, given| {
            spec.ends.latency_percentile = value::fraction(given.text()?, 0.0, 100.0)?;
            Ok(())
        },
    ),
    simulated(
        "latency_run",
        &[],
        "bool",
        "The job does not end, and adapts its depth.",
        |spec, given| {
            spec.ends.latency_run = given.switch()?;
            Ok(())
        },
    ),
    simulated(
        "max_latency",
        &[],
        "time[,time][,time]",
        "An I/O that takes longer ends the job with error 110 (ETIMEDOUT).",
        |spec, given| {
            given.per_direction(&mut spec.ends.max_latency, |text| {
                value::time(text, TimeUnit::Micro)
            })
        },
    ),
    simulated(
        "rate_min",
        &["ratemin"],
        "int[,int][,int]",
        "Fewer bytes a second end the job with error 5 (EIO).",
        |spec, given| {
            let base = given.base;
            given
                .per_direction(&mut spec.ends.rate_min, |text| value::size(text, base, 0, u64::MAX))
        },
    ),
    simulated(
        "rate_iops_min",
        &[],
        "int[,int][,int]",
        "Fewer I/Os a second end the job with error 5 (EIO).",
        |spec, given| {
            let base = given.base;
            given.per_direction(&mut spec.ends.rate_iops_min, |text| {
                value::size(text, base, 0, u64::MAX)
            })
        },
    ),
    simulated(
        "rate_cycle",
        &["ratecycle"],
        "int",
        "Milliseconds over which they are measured, one cycle after the other.",
        |spec, given| {
            spec.ends.rate_cycle = given.small(1, u32::MAX)?;
            Ok(())
        },
    ),
];

/// `iops:10`, `bw_slope:0.5%`.
fn steadystate(spec: &mut Spec, given: &Given<'_>) -> Result<(), Mistake> {
    let text = given.text()?;
    let Some((word, limit)) = text.split_once(|c| c == ':') else {
        let what = format!("{0:?} has no limit: {0}:10 and {0}:1% have one", text.as_str());
        return Err(text.mistake(what));
    };
    let words = [
        ("iops", (SteadyRate::Ios, SteadyCriterion::Deviation)),
        ("iops_slope", (SteadyRate::Ios, SteadyCriterion::Slope)),
        ("bw", (SteadyRate::Bytes, SteadyCriterion::Deviation)),
        ("bw_slope", (SteadyRate::Bytes, SteadyCriterion::Slope)),
    ];
    let (rate, criterion) = value::word(&word, &words)?;
    let number = limit.as_str().strip_suffix('%').map(|number| limit.part(0, number.len()));
    let is_percent = number.is_some();
    let limit = value::fraction(&number.unwrap_or(limit), 0.0, MAX_LIMIT)?;
    spec.ends.steady = SteadyState { rate, criterion, limit, is_percent, ..spec.ends.steady };
    Ok(())
}
