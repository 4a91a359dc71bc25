//! The second disk of the demo: what weights cost in throughput where much is served at once.

use comfy_table::Table;
use paternoster::SchedulerKind;
use paternoster_scene::{Outcome, plain_table};
use serde::Serialize;

use super::report::{Claim, Got, iops, percent, rows};
use super::scene::PARALLEL;

/// What serves it, one after the other.
pub(super) const SCHEDULERS: [SchedulerKind; 3] =
    [SchedulerKind::None, SchedulerKind::Cfq, SchedulerKind::Wfq];

/// The disk, and what came of it under each scheduler.
#[derive(Debug, Serialize)]
pub(super) struct Parallel {
    servers: u32,
    service_us: u64,
    schedulers: Vec<Under>,
}

/// What came of it under one scheduler.
#[derive(Debug, Serialize)]
struct Under {
    scheduler: &'static str,
    /// Of all tenants.
    iops: f64,
    /// A part of what `none` did.
    throughput: f64,
    tenants: Vec<Got>,
}

impl Parallel {
    /// The outcomes are those of [`SCHEDULERS`].
    pub(super) fn new(outcomes: &[(SchedulerKind, Outcome)]) -> Self {
        let none = outcomes.first().map(|(_, outcome)| iops(outcome)).unwrap_or_default();
        let schedulers = outcomes.iter().map(|(kind, outcome)| Under {
            scheduler: kind.name(),
            iops: iops(outcome),
            throughput: iops(outcome) / none,
            tenants: rows(outcome).collect(),
        });
        Self {
            servers: PARALLEL.servers,
            service_us: PARALLEL.service_us,
            schedulers: schedulers.collect(),
        }
    }

    /// A row for each scheduler.
    pub(super) fn table(&self) -> Table {
        let tenants = self.schedulers.first().map(|under| &under.tenants[..]).unwrap_or_default();
        let names: Vec<_> = tenants.iter().map(|row| row.name.clone()).collect();
        let header = |first: &str, last: [&str; 2]| {
            let last = last.map(str::to_owned);
            [first.to_owned()].into_iter().chain(names.clone()).chain(last)
        };
        let mut table = plain_table(header("scheduler", ["IOPS", "of none's"]), 1);
        let entitled = tenants.iter().map(|row| percent(row.entitled));
        let entitled = ["(entitled)".to_owned()].into_iter().chain(entitled);
        table.add_row(entitled.chain([String::new(), String::new()]));
        for under in &self.schedulers {
            let shares = under.tenants.iter().map(|row| percent(row.share));
            let rate = [format!("{:.0}", under.iops), percent(under.throughput)];
            table.add_row([under.scheduler.to_owned()].into_iter().chain(shares).chain(rate));
        }
        table
    }

    /// What its tenants got under schedulers with weights.
    pub(super) fn claims(&self) -> impl Iterator<Item = Claim<'_>> {
        let weighing = |under: &&Under| {
            SCHEDULERS.iter().any(|kind| kind.name() == under.scheduler && kind.has_weights())
        };
        self.schedulers.iter().filter(weighing).flat_map(|under| {
            under.tenants.iter().map(|row| Claim {
                name: &row.name,
                under: under.scheduler,
                share: row.share,
                entitled: row.entitled,
                demand: row.demand,
            })
        })
    }
}
