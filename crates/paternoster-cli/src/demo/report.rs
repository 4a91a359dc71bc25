//! The report of the demo: tables for people, JSON for programs, and a verdict.

use comfy_table::Table;
use paternoster::SchedulerKind;
use paternoster_scene::{Outcome, plain_table};
use serde::Serialize;

use super::parallel::Parallel;
use super::scene::{DISK, PARALLEL, protocol, tenants};

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
    name: String,
    weight: u32,
    /// `nbd` or `vhost-user`.
    protocol: &'static str,
    /// Connections of NBD, or queues of a machine.
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
    /// From the outcomes with `none` and with `cfq`, and those of the parallel disk.
    pub(super) fn new(
        without: &Outcome,
        with: &Outcome,
        parallel: &[(SchedulerKind, Outcome)],
    ) -> Self {
        let pairs = rows(without).zip(rows(with));
        let tenants = tenants().into_iter().enumerate();
        let rows = tenants.zip(pairs).map(|((place, tenant), (none, cfq))| Row {
            name: cfq.name,
            weight: tenant.weight,
            protocol: protocol(place),
            connections: tenant.connections,
            entitled: cfq.entitled,
            share_none: none.share,
            share_cfq: cfq.share,
            demand: cfq.demand,
            iops: cfq.share * iops(with),
            p50_us: cfq.p50_us,
            p99_us: cfq.p99_us,
        });
        Self { version: 1, tenants: rows.collect(), parallel: Parallel::new(parallel) }
    }

    /// All of it for people.
    pub(super) fn text(&self) -> String {
        let (first, second) = (self.table(), self.parallel.table());
        format!("{}\n\n{first}\n\n{}\n\n{second}", DISK.in_words(), PARALLEL.in_words())
    }

    fn table(&self) -> Table {
        let header = [
            "tenant",
            "protocol",
            "weight",
            "connections",
            "entitled",
            "with none",
            "with cfq",
            "IOPS",
            "p50 µs",
            "p99 µs",
        ];
        let mut table = plain_table(header, 2);
        for row in &self.tenants {
            table.add_row([
                row.name.clone(),
                row.protocol.to_owned(),
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
        table
    }

    /// Returns whether every tenant got what its weight entitles it to, if that can be said.
    pub(super) fn verdict(&self) -> Verdict {
        let cfq = self.tenants.iter().map(|row| Claim {
            name: &row.name,
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
pub(super) struct Claim<'a> {
    pub(super) name: &'a str,
    pub(super) under: &'a str,
    pub(super) share: f64,
    pub(super) entitled: f64,
    /// The part of the time with a request waiting.
    pub(super) demand: f64,
}

fn judge(claims: &[Claim<'_>]) -> Verdict {
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

/// What a tenant got under a scheduler. `share` and `demand` are parts of 1.
#[derive(Debug, Serialize)]
pub(super) struct Got {
    pub(super) name: String,
    #[serde(skip)]
    pub(super) entitled: f64,
    /// Of all requests.
    pub(super) share: f64,
    /// Of the time that counts, the part with a request waiting.
    pub(super) demand: f64,
    pub(super) p50_us: f64,
    pub(super) p99_us: f64,
}

pub(super) fn rows(outcome: &Outcome) -> impl Iterator<Item = Got> {
    outcome.tenants.iter().map(|tenant| Got {
        name: tenant.name.clone(),
        entitled: outcome.entitled(tenant),
        share: count(tenant.requests) / count(outcome.requests),
        demand: tenant.backlogged,
        p50_us: tenant.latency_us(0.50),
        p99_us: tenant.latency_us(0.99),
    })
}

/// Requests a second, of all tenants.
pub(super) fn iops(outcome: &Outcome) -> f64 {
    count(outcome.requests) / outcome.seconds
}

#[allow(clippy::cast_precision_loss, reason = "fewer than 2⁵² requests")]
fn count(requests: u64) -> f64 {
    requests as f64
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
