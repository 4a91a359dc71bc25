//! Options that end a job beside its work and its runtime.

use super::{OptionInfo, simulated};
use crate::fio::value::{self, TimeUnit};

pub(super) static OPTIONS: &[OptionInfo] = &[
    simulated(
        "latency_target",
        &[],
        "time",
        "The job looks for the greatest depth at which I/Os take no longer, and ends then.",
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
        "How many percent of the I/Os take no longer; 100 unless told.",
        |spec, given| {
            spec.ends.latency_percentile = value::fraction(given.text()?, 0.0, 100.0)?;
            Ok(())
        },
    ),
    simulated(
        "latency_run",
        &[],
        "bool",
        "The job does not end, and changes its depth with what is met.",
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
        "Over how many milliseconds they are measured, one cycle after the other.",
        |spec, given| {
            spec.ends.rate_cycle = given.small(1, u32::MAX)?;
            Ok(())
        },
    ),
];
