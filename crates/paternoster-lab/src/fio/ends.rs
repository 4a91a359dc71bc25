//! What ends a job beside its work and its `runtime`.

use std::time::Duration;

use paternoster::Nanos;

use super::error::Mistake;
use super::iolog::IoLog;
use super::job::{DataDirection, Job};
use super::resolve::JobClone;
use super::value::PerDirection;

/// How many checks may be looked at together.
const MAX_CHECKS: u32 = 100_000;

/// What ends a job beside its work and its `runtime`. Nothing of it holds before `ramp_time` is
/// over.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ends {
    /// An I/O that takes longer, from its submission to its completion, ends the job with an error:
    /// `max_latency`.
    pub max_latency: PerDirection<Option<Nanos>>,
    /// A lower rate ends the job with an error.
    pub least_rates: Option<LeastRates>,
    /// The jobs of its reporting group end together when they are steady, and it ends when it is
    /// if it is in none.
    pub steady_state: Option<SteadyState>,
    /// The job looks for the depth that meets it, and ends when it has found that.
    pub latency_target: Option<LatencyTarget>,
}

/// The least rates of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeastRates {
    /// Of each direction: `rate_min`, `rate_iops_min`.
    pub rates: PerDirection<Option<LeastRate>>,
    /// Over what time a rate is measured, `rate_cycle`.
    pub cycle: Nanos,
}

/// A least rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeastRate {
    /// In bytes a second.
    Bytes(u64),
    /// In I/Os a second.
    Ios(u64),
}

/// A latency, and how it is met: `latency_target`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LatencyTarget {
    /// From the submission of an I/O to its completion.
    pub latency: Nanos,
    /// How long a depth is tried, `latency_window`.
    pub window: Nanos,
    /// How many percent of the I/Os take no longer, `latency_percentile`.
    pub percentile: f64,
    /// The job goes on when it has found the depth, and changes it with what is met:
    /// `latency_run`.
    pub goes_on: bool,
}

/// When a job is steady: `steadystate`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SteadyState {
    /// The rate that is measured.
    pub rate: SteadyRate,
    /// What of it is below the limit.
    pub criterion: SteadyCriterion,
    /// In the unit of the rate, or in percent of its mean.
    pub limit: f64,
    /// The limit is in percent.
    pub is_percent: bool,
    /// How many checks are looked at together, at least 1: those of `steadystate_duration`.
    pub checks: u32,
    /// How long there is between two checks, `steadystate_check_interval`.
    pub interval: Nanos,
    /// How long nothing is measured behind the end of the ramp, `steadystate_ramp_time`.
    pub ramp: Nanos,
}

/// The rate that is steady.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SteadyRate {
    /// I/Os a second.
    Ios,
    /// Bytes a second.
    Bytes,
}

/// What of a rate is small when it is steady.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SteadyCriterion {
    /// The greatest distance of a check from the mean.
    Deviation,
    /// The slope of the line with the least squares through all checks, from check to check.
    Slope,
}

impl SteadyState {
    /// The name of the rate and the criterion in a job file.
    pub fn name(&self) -> &'static str {
        match (self.rate, self.criterion) {
            (SteadyRate::Ios, SteadyCriterion::Deviation) => "iops",
            (SteadyRate::Ios, SteadyCriterion::Slope) => "iops_slope",
            (SteadyRate::Bytes, SteadyCriterion::Deviation) => "bw",
            (SteadyRate::Bytes, SteadyCriterion::Slope) => "bw_slope",
        }
    }
}

/// What the options of a job come to, which replays that log if there is one.
pub(super) fn ends(clone: &JobClone<'_>, log: Option<&IoLog>) -> Result<Ends, Mistake> {
    let said = &clone.spec.ends;
    let max_latency = said.max_latency.map(|latency| (latency > Nanos::ZERO).then_some(latency));
    Ok(Ends {
        max_latency,
        least_rates: least_rates(clone, log)?,
        steady_state: steady_state(clone)?,
        latency_target: latency_target(clone)?,
    })
}

fn latency_target(clone: &JobClone<'_>) -> Result<Option<LatencyTarget>, Mistake> {
    let said = &clone.spec.ends;
    if said.latency_target == Nanos::ZERO {
        return Ok(None);
    }
    if said.latency_window == Nanos::ZERO {
        let what = "latency_target needs the time for which a depth is tried: latency_window=...";
        return Err(clone.mistake(&["latency_target"], what.to_owned()));
    }
    Ok(Some(LatencyTarget {
        latency: said.latency_target,
        window: said.latency_window,
        percentile: said.latency_percentile,
        goes_on: said.latency_run,
    }))
}

/// As in fio, there is none without a duration.
fn steady_state(clone: &JobClone<'_>) -> Result<Option<SteadyState>, Mistake> {
    let said = &clone.spec.ends;
    let (duration, interval) = (said.steady_duration.as_nanos(), said.steady_interval.as_nanos());
    if duration == 0 {
        return Ok(None);
    }
    let checks = duration / interval.max(1);
    if checks * interval != duration {
        let [duration, interval] = [duration, interval].map(Duration::from_nanos);
        let what = format!("{duration:?} are no multiple of the {interval:?} between two checks");
        return Err(clone.mistake(&["steadystate_duration"], what));
    }
    let Some(checks) = u32::try_from(checks).ok().filter(|checks| *checks <= MAX_CHECKS) else {
        let what = format!("{checks} checks at once: {MAX_CHECKS} are allowed");
        return Err(clone.mistake(&["steadystate_duration"], what));
    };
    let (interval, ramp) = (said.steady_interval, said.steady_ramp);
    Ok(Some(SteadyState { checks, interval, ramp, ..said.steady }))
}

/// As in fio, the jobs of a reporting group are steady in the same way.
pub(super) fn check_group(
    clone: &JobClone<'_>,
    ends: &Ends,
    others: &[Job],
    group_id: u32,
) -> Result<(), Mistake> {
    let other = others.iter().find(|job| job.reports.group_id == group_id);
    match other.filter(|other| other.ends.steady_state != ends.steady_state) {
        None => Ok(()),
        Some(other) => {
            let what = format!(
                "steadystate and its times are not those of {}, of the same reporting group",
                other.name
            );
            let options = ["steadystate", "steadystate_duration", "steadystate_ramp_time"];
            Err(clone.mistake(&options, what))
        }
    }
}

/// As in fio, it is in bytes or in I/Os, and not above the rate that holds the job back.
fn least_rates(clone: &JobClone<'_>, log: Option<&IoLog>) -> Result<Option<LeastRates>, Mistake> {
    let JobClone { spec, .. } = *clone;
    let (said, pacing) = (&spec.ends, &spec.pacing);
    let does = |direction| match log {
        Some(log) => log.does(direction),
        // A log that is wrong does nothing.
        None => !spec.replays() && spec.pattern.mix.has(direction),
    };
    let mut rates = [None; 3];
    for (direction, least) in rates.iter_mut().enumerate() {
        // What it does not do is not too slow.
        if !does(DataDirection::ALL[direction]) {
            continue;
        }
        let (bytes, ios) = (said.rate_min[direction], said.rate_iops_min[direction]);
        if bytes > 0 && ios > 0 {
            let what = "rate_min and rate_iops_min: one of them is allowed".to_owned();
            return Err(clone.mistake(&["rate_iops_min"], what));
        }
        for (name, min, of, rate) in [
            ("rate_min", bytes, "rate", pacing.rate[direction]),
            ("rate_iops_min", ios, "rate_iops", pacing.rate_iops[direction]),
        ] {
            // A log has its own pace.
            if let Some(rate) = rate.filter(|rate| min > *rate && !spec.replays()) {
                let what = format!("{name} is {min} a second: {of}, which is {rate}, is allowed");
                return Err(clone.mistake(&[name], what));
            }
        }
        *least = match (bytes, ios) {
            (0, 0) => None,
            (bytes, 0) => Some(LeastRate::Bytes(bytes)),
            (_, ios) => Some(LeastRate::Ios(ios)),
        };
    }
    let cycle = Nanos::from_millis(said.rate_cycle.into());
    Ok(rates.iter().any(Option::is_some).then_some(LeastRates { rates, cycle }))
}
