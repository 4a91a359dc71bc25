//! The report of the demo: a table for people, JSON for programs, and a verdict.

use comfy_table::{CellAlignment, Table, presets};
use paternoster_load::{Got, Window};
use serde::Serialize;

use super::scene::TENANTS;

/// How far a share may be off, in parts of what its tenant is entitled to.
const TOLERANCE: f64 = 0.05;

/// The least part of the time in which a tenant must have had a request waiting.
const DEMAND: f64 = 0.98;

/// The whole result. Within a version fields are only added.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    version: u32,
    tenants: Vec<Row>,
}

/// One tenant. Shares, `entitled` and `demand` are parts of 1.
#[derive(Debug, Serialize)]
struct Row {
    name: &'static str,
    weight: u32,
    connections: u32,
    entitled: f64,
    share_none: f64,
    share_cfq: f64,
    /// Of the time that counts, the part with a request waiting, with `cfq`.
    demand: f64,
    /// With `cfq`, as the rest.
    iops: f64,
    p50_us: f64,
    p99_us: f64,
}

/// What the shares say.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Shared,
    Unfair(String),
    TooSlow(String),
}

impl Report {
    pub(super) fn new(without: &Window, with: &Window) -> Self {
        let weights: f64 = TENANTS.iter().map(|tenant| f64::from(tenant.weight)).sum();
        let (sum_none, sum_cfq) = (replies(without), replies(with));
        let pairs = without.tenants.iter().zip(&with.tenants);
        let rows = TENANTS.iter().zip(pairs).map(|(tenant, (none, cfq))| Row {
            name: tenant.name,
            weight: tenant.weight,
            connections: tenant.connections,
            entitled: f64::from(tenant.weight) / weights,
            share_none: count(none) / sum_none,
            share_cfq: count(cfq) / sum_cfq,
            demand: cfq.demand,
            iops: count(cfq) / with.counted.as_secs_f64(),
            p50_us: latency_us(cfq, 0.50),
            p99_us: latency_us(cfq, 0.99),
        });
        Self { version: 1, tenants: rows.collect() }
    }

    /// The table for people.
    pub(super) fn table(&self) -> Table {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        table.set_header([
            "tenant",
            "weight",
            "connections",
            "entitled",
            "with none",
            "with cfq",
            "IOPS",
            "p50 µs",
            "p99 µs",
        ]);
        for row in &self.tenants {
            table.add_row([
                row.name.to_owned(),
                row.weight.to_string(),
                row.connections.to_string(),
                percent(row.entitled),
                percent(row.share_none),
                percent(row.share_cfq),
                format!("{:.0}", row.iops),
                format!("{:.0}", row.p50_us),
                format!("{:.0}", row.p99_us),
            ]);
        }
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        table
    }

    /// Returns whether every tenant got what its weight entitles it to, if that can be said.
    pub(super) fn verdict(&self) -> Verdict {
        if let Some(row) = self.tenants.iter().find(|row| row.demand < DEMAND) {
            return Verdict::TooSlow(format!(
                "this machine was too slow to say: {} had a request waiting for {} of the time \
                 only, {} is needed",
                row.name,
                percent(row.demand),
                percent(DEMAND)
            ));
        }
        let off = |row: &&Row| (row.share_cfq / row.entitled - 1.0).abs() > TOLERANCE;
        match self.tenants.iter().find(off) {
            None => Verdict::Shared,
            Some(row) => Verdict::Unfair(format!(
                "{} got {} with cfq, where its weight entitles it to {} ± 5 % of that",
                row.name,
                percent(row.share_cfq),
                percent(row.entitled)
            )),
        }
    }
}

#[allow(clippy::cast_precision_loss)] // fewer than 2⁵² replies
fn count(got: &Got) -> f64 {
    got.measured.replies as f64
}

fn replies(outcome: &Window) -> f64 {
    outcome.tenants.iter().map(count).sum()
}

#[allow(clippy::cast_precision_loss)] // latencies are shown with three digits
fn latency_us(got: &Got, quantile: f64) -> f64 {
    got.measured.latency.value_at_quantile(quantile) as f64 / 1_000.0
}

fn percent(part: f64) -> String {
    format!("{:.1} %", part * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(share_cfq: f64, demand: f64) -> Report {
        let row = Row {
            name: "light",
            weight: 100,
            connections: 1,
            entitled: 0.2,
            share_none: 0.5,
            share_cfq,
            demand,
            iops: 1.0,
            p50_us: 1.0,
            p99_us: 1.0,
        };
        Report { version: 1, tenants: vec![row] }
    }

    #[test]
    fn share_within_5_percent_of_its_entitlement_is_fair() {
        assert_eq!(report(0.209, 1.0).verdict(), Verdict::Shared);
        assert_eq!(report(0.191, 0.98).verdict(), Verdict::Shared);
    }

    #[test]
    fn share_that_is_farther_off_is_unfair_and_named() {
        let Verdict::Unfair(text) = report(0.211, 1.0).verdict() else { panic!("unfair") };
        assert!(text.contains("light got 21.1 %") && text.contains("20.0 %"), "{text}");
    }

    #[test]
    fn tenant_without_demand_says_nothing_of_fairness() {
        let Verdict::TooSlow(text) = report(0.5, 0.97).verdict() else { panic!("too slow") };
        assert!(text.contains("97.0 %"), "{text}");
    }
}
