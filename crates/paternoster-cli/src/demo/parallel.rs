//! The second disk of the demo: what weights cost in throughput where much is served at once.

use comfy_table::{Table, presets};
use paternoster::SchedulerKind;
use paternoster_load::Window;
use serde::Serialize;

use super::report::{Claim, align, count, latency_us, percent, replies};
use super::scene::{PARALLEL, TENANTS};

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
    tenants: Vec<Row>,
}

/// One tenant. `share` and `demand` are parts of 1.
#[derive(Debug, Serialize)]
struct Row {
    name: &'static str,
    share: f64,
    /// Of the time that counts, the part with a request waiting.
    demand: f64,
    p50_us: f64,
    p99_us: f64,
}

impl Parallel {
    /// The windows are those of [`SCHEDULERS`].
    pub(super) fn new(windows: &[(SchedulerKind, Window)]) -> Self {
        let rate = |window: &Window| replies(window) / window.counted.as_secs_f64();
        let none = windows.first().map(|(_, window)| rate(window)).unwrap_or_default();
        let schedulers = windows.iter().map(|(kind, window)| Under {
            scheduler: kind.name(),
            iops: rate(window),
            throughput: rate(window) / none,
            tenants: rows(window),
        });
        Self {
            servers: PARALLEL.servers,
            service_us: PARALLEL.service.as_nanos() / 1_000,
            schedulers: schedulers.collect(),
        }
    }

    /// A row for each scheduler.
    pub(super) fn table(&self) -> Table {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        let names = TENANTS.map(|tenant| tenant.name.to_owned());
        let header = |first: &str, last: [&str; 2]| {
            let last = last.map(str::to_owned);
            [first.to_owned()].into_iter().chain(names.clone()).chain(last)
        };
        table.set_header(header("scheduler", ["IOPS", "of none's"]));
        let entitled = TENANTS.map(|tenant| percent(tenant.entitled()));
        let entitled = ["(entitled)".to_owned()].into_iter().chain(entitled);
        table.add_row(entitled.chain([String::new(), String::new()]));
        for under in &self.schedulers {
            let shares = under.tenants.iter().map(|row| percent(row.share));
            let rate = [format!("{:.0}", under.iops), percent(under.throughput)];
            table.add_row([under.scheduler.to_owned()].into_iter().chain(shares).chain(rate));
        }
        align(&mut table);
        table
    }

    /// What its tenants got under schedulers with weights.
    pub(super) fn claims(&self) -> impl Iterator<Item = Claim> {
        let weighing = |under: &&Under| {
            SCHEDULERS.iter().any(|kind| kind.name() == under.scheduler && kind.has_weights())
        };
        self.schedulers.iter().filter(weighing).flat_map(|under| {
            under.tenants.iter().zip(&TENANTS).map(|(row, tenant)| Claim {
                name: row.name,
                under: under.scheduler,
                share: row.share,
                entitled: tenant.entitled(),
                demand: row.demand,
            })
        })
    }
}

fn rows(window: &Window) -> Vec<Row> {
    let all = replies(window);
    let rows = TENANTS.iter().zip(&window.tenants).map(|(tenant, got)| Row {
        name: tenant.name,
        share: count(got) / all,
        demand: got.demand,
        p50_us: latency_us(got, 0.50),
        p99_us: latency_us(got, 0.99),
    });
    rows.collect()
}
