//! The report of the demo: tables for people, JSON for programs, and a verdict.

use comfy_table::{CellAlignment, Table, presets};
use paternoster::SchedulerKind;
use paternoster_load::{Got, Window};
use serde::Serialize;

use super::parallel::Parallel;
use super::scene::{DISK, PARALLEL, TENANTS};

/// How far a share may be off, in parts of what its tenant is entitled to.
const TOLERANCE: f64 = 0.05;

/// The least part of the time in which a tenant must have had a request waiting.
const DEMAND: f64 = 0.98;

/// The whole result. Within a version fields are only added.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    version: u32,
    tenants: Vec<Row>,
    parallel: Parallel,
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
    /// From the windows with `none` and with `cfq`, and those of the parallel disk.
    pub(super) fn new(
        without: &Window,
        with: &Window,
        parallel: &[(SchedulerKind, Window)],
    ) -> Self {
        let (sum_none, sum_cfq) = (replies(without), replies(with));
        let pairs = without.tenants.iter().zip(&with.tenants);
        let rows = TENANTS.iter().zip(pairs).map(|(tenant, (none, cfq))| Row {
            name: tenant.name,
            weight: tenant.weight,
            connections: tenant.connections,
            entitled: tenant.entitled(),
            share_none: count(none) / sum_none,
            share_cfq: count(cfq) / sum_cfq,
            demand: cfq.demand,
            iops: count(cfq) / with.counted.as_secs_f64(),
            p50_us: latency_us(cfq, 0.50),
            p99_us: latency_us(cfq, 0.99),
        });
        Self { version: 1, tenants: rows.collect(), parallel: Parallel::new(parallel) }
    }

    /// All of it for people.
    pub(super) fn text(&self) -> String {
        let (first, second) = (self.table(), self.parallel.table());
        format!("{}\n\n{first}\n\n{}\n\n{second}", DISK.in_words(), PARALLEL.in_words())
    }

    fn table(&self) -> Table {
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
        align(&mut table);
        table
    }

    /// Returns whether every tenant got what its weight entitles it to, if that can be said.
    pub(super) fn verdict(&self) -> Verdict {
        let cfq = self.tenants.iter().map(|row| Claim {
            name: row.name,
            under: "cfq",
            share: row.share_cfq,
            entitled: row.entitled,
            demand: row.demand,
        });
        judge(&cfq.chain(self.parallel.claims()).collect::<Vec<_>>())
    }
}

/// What a tenant got where its weight shall hold.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim {
    pub(super) name: &'static str,
    pub(super) under: &'static str,
    pub(super) share: f64,
    pub(super) entitled: f64,
    /// The part of the time with a request waiting.
    pub(super) demand: f64,
}

fn judge(claims: &[Claim]) -> Verdict {
    if let Some(claim) = claims.iter().find(|claim| claim.demand < DEMAND) {
        return Verdict::TooSlow(format!(
            "this machine was too slow to say: {} had a request waiting for {} of the time only \
             with {}, {} is needed",
            claim.name,
            percent(claim.demand),
            claim.under,
            percent(DEMAND)
        ));
    }
    let off = |claim: &&Claim| (claim.share / claim.entitled - 1.0).abs() > TOLERANCE;
    match claims.iter().find(off) {
        None => Verdict::Shared,
        Some(claim) => Verdict::Unfair(format!(
            "{} got {} with {}, where its weight entitles it to {} ± 5 % of that",
            claim.name,
            percent(claim.share),
            claim.under,
            percent(claim.entitled)
        )),
    }
}

/// Numbers to the right, names to the left.
pub(super) fn align(table: &mut Table) {
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
}

#[allow(clippy::cast_precision_loss)] // fewer than 2⁵² replies
pub(super) fn count(got: &Got) -> f64 {
    got.measured.replies as f64
}

pub(super) fn replies(outcome: &Window) -> f64 {
    outcome.tenants.iter().map(count).sum()
}

#[allow(clippy::cast_precision_loss)] // latencies are shown with three digits
pub(super) fn latency_us(got: &Got, quantile: f64) -> f64 {
    got.measured.latency.value_at_quantile(quantile) as f64 / 1_000.0
}

pub(super) fn percent(part: f64) -> String {
    format!("{:.1} %", part * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(share: f64, demand: f64) -> Verdict {
        judge(&[Claim { name: "light", under: "wfq", share, entitled: 0.2, demand }])
    }

    #[test]
    fn share_within_5_percent_of_its_entitlement_is_fair() {
        assert_eq!(verdict(0.209, 1.0), Verdict::Shared);
        assert_eq!(verdict(0.191, 0.98), Verdict::Shared);
    }

    #[test]
    fn share_that_is_farther_off_is_unfair_and_named() {
        let Verdict::Unfair(text) = verdict(0.211, 1.0) else { panic!("unfair") };
        assert!(text.contains("light got 21.1 % with wfq") && text.contains("20.0 %"), "{text}");
    }

    #[test]
    fn tenant_without_demand_says_nothing_of_fairness() {
        let Verdict::TooSlow(text) = verdict(0.5, 0.97) else { panic!("too slow") };
        assert!(text.contains("97.0 %"), "{text}");
    }
}
