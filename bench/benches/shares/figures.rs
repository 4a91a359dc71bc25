//! The figures of one contender on one set-up, from its windows.

use paternoster_scene::statistics::median;
use paternoster_scene::{Outcome, Tenant, TenantOutcome};
use serde::Serialize;

use crate::contender::Sample;
use crate::cpu::Cores;
use crate::row::{Aim, Row};

/// The part of the time in which a tenant must have had something waiting for its share to be owed.
pub(crate) const DEMAND: f64 = 0.98;

/// What a contender made of a set-up. Parts are of 1.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Figures {
    /// The worst error of a share in a window, in parts of the share, of the tenants that were
    /// short of the disk in that window; none where there were not two.
    pub(crate) worst_error: Option<f64>,
    /// The same of all tenants that are not light, whether they were short or not.
    pub(crate) worst_error_of_all: Option<f64>,
    /// Jain's index of what the tenants that are not light got over what they were entitled to:
    /// 1 where all got the same part of that.
    pub(crate) jain: f64,
    /// Throughput over that of `none` in the same round, the median of rounds; none for `none`.
    pub(crate) of_none: Option<f64>,
    /// Throughput over that of the fixed depth that did most, the median of rounds; none but of a
    /// learned depth that is compared with fixed ones.
    pub(crate) of_best_fixed: Option<f64>,
    /// Replies a second.
    pub(crate) iops: f64,
    /// The least demand of a tenant that is not light: the part of the time in which it had
    /// something waiting.
    pub(crate) demand: f64,
    /// The most requests in the disk at once, at the end.
    pub(crate) depth: i64,
    /// The first tenant.
    pub(crate) first: First,
    pub(crate) cores: Cores,
    /// What each tenant got in each window, and its demand.
    pub(crate) windows: Vec<Vec<Part>>,
}

/// The first tenant of a set-up.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct First {
    /// What it got of all that was done.
    pub(crate) share: f64,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
}

/// What a tenant got in a window.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Part {
    /// Requests a second, or servers of the disk, as the set-up's aim has it.
    pub(crate) amount: f64,
    pub(crate) demand: f64,
}

impl Figures {
    /// Makes them of the contender's windows and those of `none` in the same rounds.
    pub(crate) fn new(row: &Row, samples: &[Sample], none: Option<&[Sample]>) -> Self {
        let tenants = &row.tenants;
        let windows: Vec<Vec<Part>> = samples.iter().map(|sample| parts(row, sample)).collect();
        let totals: Vec<f64> =
            (0..tenants.len()).map(|i| total(&windows, |part| part.amount, i)).collect();
        let owed: Vec<_> = (0..tenants.len()).filter(|&i| !tenants[i].light).collect();
        let demand = owed.iter().map(|&i| total(&windows, |part| part.demand, i) / count(&windows));
        let per_weight = owed.iter().map(|&i| totals[i] / f64::from(tenants[i].weight));
        let worst_error = |demand| {
            let errors = windows.iter().filter_map(|parts| error(tenants, parts, demand));
            errors.reduce(f64::max)
        };
        let first: Vec<_> = samples.iter().map(|sample| &sample.outcome.tenants[0]).collect();
        let cores: Vec<_> = samples.iter().map(|sample| sample.cores).collect();
        Self {
            worst_error: worst_error(DEMAND),
            worst_error_of_all: worst_error(0.0),
            jain: jain(&per_weight.collect::<Vec<_>>()),
            of_none: none.map(|none| throughput_of(row, samples, none)),
            of_best_fixed: None,
            iops: samples.iter().map(|sample| iops(&sample.outcome)).sum::<f64>() / count(&windows),
            demand: demand.fold(1.0, f64::min),
            depth: samples.last().map_or(0, |sample| sample.depth),
            first: First::new(totals[0] / totals.iter().sum::<f64>(), &first),
            cores: Cores::mean(&cores),
            windows,
        }
    }
}

/// Throughput over that of another contender in the same round, the median of rounds.
pub(crate) fn throughput_of(row: &Row, samples: &[Sample], other: &[Sample]) -> f64 {
    let rounds = samples.iter().zip(other);
    let parts = rounds.map(|(own, other)| done(row, own) / done(row, other));
    median(parts).expect("there are rounds")
}

/// What was done in all windows.
pub(crate) fn all_done(row: &Row, samples: &[Sample]) -> f64 {
    samples.iter().map(|sample| done(row, sample)).sum()
}

impl First {
    fn new(share: f64, windows: &[&TenantOutcome]) -> Self {
        let mut all = windows[0].clone();
        for window in &windows[1..] {
            all.latency.add(&window.latency).expect("it grows");
        }
        Self { share, p50_us: all.latency_us(0.5), p99_us: all.latency_us(0.99) }
    }
}

fn parts(row: &Row, sample: &Sample) -> Vec<Part> {
    let Outcome { tenants, seconds, .. } = &sample.outcome;
    let part =
        |got: &TenantOutcome| Part { amount: amount(row, got) / seconds, demand: got.backlogged };
    tenants.iter().map(part).collect()
}

/// What a tenant got.
#[allow(clippy::cast_precision_loss, reason = "fewer than 2⁵² ns")]
fn amount(row: &Row, got: &TenantOutcome) -> f64 {
    match row.aim {
        Aim::Times => got.device.map_or(0.0, |device| device.as_nanos() as f64 / 1e9),
        Aim::Shares | Aim::Soon | Aim::Depth => got.requests as f64,
    }
}

/// What the disk did a second.
fn done(row: &Row, sample: &Sample) -> f64 {
    parts(row, sample).iter().map(|part| part.amount).sum()
}

#[allow(clippy::cast_precision_loss, reason = "fewer than 2⁵² replies")]
fn iops(outcome: &Outcome) -> f64 {
    outcome.requests as f64 / outcome.seconds
}

/// The worst error of a share in a window, among tenants that had at least that demand in it; none
/// where there were not two.
fn error(tenants: &[Tenant], parts: &[Part], demand: f64) -> Option<f64> {
    let of = |(tenant, part): &(&Tenant, &Part)| !tenant.light && part.demand >= demand;
    let short: Vec<_> = tenants.iter().zip(parts).filter(of).collect();
    let weights: f64 = short.iter().map(|(tenant, _)| f64::from(tenant.weight)).sum();
    let got: f64 = short.iter().map(|(_, part)| part.amount).sum();
    let errors = short.iter().map(|(tenant, part)| {
        let entitled = f64::from(tenant.weight) / weights;
        (part.amount / got / entitled - 1.0).abs()
    });
    errors.reduce(f64::max).filter(|_| short.len() > 1)
}

/// (Σx)² / (n Σx²).
fn jain(of: &[f64]) -> f64 {
    let sum: f64 = of.iter().sum();
    let squares: f64 = of.iter().map(|x| x * x).sum();
    #[allow(clippy::cast_precision_loss)] // some tenants
    let n = of.len() as f64;
    sum * sum / (n * squares)
}

fn total(windows: &[Vec<Part>], of: fn(&Part) -> f64, tenant: usize) -> f64 {
    windows.iter().map(|parts| of(&parts[tenant])).sum()
}

#[allow(clippy::cast_precision_loss)] // some windows
fn count(windows: &[Vec<Part>]) -> f64 {
    windows.len() as f64
}
