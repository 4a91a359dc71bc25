//! Options that say what is told of a job.

use super::{OptionInfo, simulated};
use crate::fio::value::{self, TimeUnit};

/// How many percentiles may be told of.
const MAX_PERCENTILES: usize = 20;

pub(super) static OPTIONS: &[OptionInfo] = &[
    simulated("stats", &[], "bool", "Whether the job is in the report.", |spec, given| {
        spec.reports.is_told = given.switch()?;
        Ok(())
    }),
    simulated(
        "group_reporting",
        &[],
        "bool",
        "The jobs of a reporting group are reported as one.",
        |spec, given| {
            spec.reports.group_reporting = given.flag()?;
            Ok(())
        },
    ),
    simulated("new_group", &[], "bool", "A reporting group begins.", |spec, given| {
        spec.reports.new_group = given.flag()?;
        Ok(())
    }),
    simulated(
        "percentile_list",
        &[],
        "float_list",
        "The percentiles of the report, separated by `:`.",
        |spec, given| {
            let text = given.text()?;
            let pieces = text.split(':');
            if let Some(first) = pieces.get(MAX_PERCENTILES) {
                return Err(first.mistake(format!("{MAX_PERCENTILES} percentiles are allowed")));
            }
            let mut percentiles = vec![];
            for piece in &pieces {
                let percentile = value::fraction(piece, 0.0, 100.0)?;
                if percentile <= 0.0 {
                    return Err(piece.mistake("0: more than 0 is allowed"));
                }
                percentiles.push(percentile);
            }
            percentiles.sort_by(f64::total_cmp);
            percentiles.dedup();
            spec.reports.percentiles = percentiles;
            Ok(())
        },
    ),
    simulated(
        "slat_percentiles",
        &[],
        "bool",
        "Percentiles of submission latencies.",
        |spec, given| {
            spec.reports.slat_percentiles = given.switch()?;
            Ok(())
        },
    ),
    simulated(
        "clat_percentiles",
        &[],
        "bool",
        "Percentiles of completion latencies.",
        |spec, given| {
            spec.reports.clat_percentiles = given.switch()?;
            Ok(())
        },
    ),
    simulated("lat_percentiles", &[], "bool", "Percentiles of total latencies.", |spec, given| {
        spec.reports.lat_percentiles = given.switch()?;
        Ok(())
    }),
    simulated(
        "bwavgtime",
        &[],
        "int",
        "Milliseconds of a sample of the bandwidth.",
        |spec, given| {
            spec.reports.bandwidth_window = given.time(TimeUnit::Milli)?;
            Ok(())
        },
    ),
    simulated(
        "iopsavgtime",
        &[],
        "int",
        "Milliseconds of a sample of the I/Os a second.",
        |spec, given| {
            spec.reports.iops_window = given.time(TimeUnit::Milli)?;
            Ok(())
        },
    ),
];
