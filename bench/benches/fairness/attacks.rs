//! Attacks on a neighbour's share of a disk, by real NBD clients, and what the neighbour keeps.
//!
//! The disk is modelled: 4 servers of 200 µs, 20,000 requests a second. The neighbour has 64
//! requests of 4 KiB outstanding, and is entitled to half of what the disk does under `none` with
//! everybody at 64 outstanding, whatever the disk does under attack.

use std::time::Duration;

use anyhow::{Context as _, Result};
use paternoster::{Nanos, SchedulerKind};
use paternoster_load::Live;
use paternoster_model::{Kind, ServersParameters, Service as Law};
use paternoster_scene::{Scene, Tenant, World as _};

/// What the disk does at most, a second.
pub(crate) const PEAK: f64 = 20_000.0;
/// The machine is fast enough to say something if the disk does this part of that under `none`.
const ENOUGH: f64 = 0.97;
const SEED: u64 = 9;

/// What an attacker does, and the name of that. Where not said otherwise, it reads.
pub(crate) fn attacks() -> [(&'static str, Tenant); 11] {
    let one = || reads(1, 1);
    let deep = || reads(1, 64);
    let thinking = |micros| Tenant { think: Nanos::from_micros(micros), ..one() };
    [
        ("one request outstanding", one()),
        ("… that thinks 100 µs", thinking(100)),
        ("… that thinks 300 µs", thinking(300)),
        ("… that thinks 700 µs", thinking(700)),
        ("… that reconnects for each request", Tenant { reconnects: Some(Nanos::ZERO), ..one() }),
        ("… on each of 16 connections", reads(16, 1)),
        ("64 of 1 byte", Tenant { block: 1, ..deep() }),
        ("64 of 512 bytes", Tenant { block: 512, ..deep() }),
        ("16 of 64 KiB", Tenant { block: 64 << 10, ..reads(1, 16) }),
        ("64, half of them writes", Tenant { write_percent: 50, ..deep() }),
        ("64 on each of 16 connections", reads(16, 64)),
    ]
}

fn reads(connections: u32, depth: u32) -> Tenant {
    Tenant::reads(100, connections, depth).named("attacker")
}

fn neighbour() -> Tenant {
    reads(1, 64).named("neighbour")
}

/// The servers of the disk.
const SERVERS: u32 = 4;

/// What a tenant gets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Service {
    /// Replies a second.
    pub(crate) rate: f64,
    /// The latency that 99 % of its requests do not exceed.
    pub(crate) p99: Duration,
}

/// Replies a second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rates {
    pub(crate) neighbour: f64,
    pub(crate) attacker: f64,
    /// The latency that 99 % of the neighbour's requests do not exceed.
    pub(crate) neighbour_p99: Duration,
}

impl Rates {
    pub(crate) fn of_disk(self) -> f64 {
        self.neighbour + self.attacker
    }

    /// How many times fewer replies a second the neighbour gets than is fair, and how many times
    /// its p99.
    pub(crate) fn slowdown(self, fair: Service) -> (f64, f64) {
        (fair.rate / self.neighbour, self.neighbour_p99.div_duration_f64(fair.p99))
    }
}

/// What each of these gets of a disk of so many servers, in `span` in all.
fn services(
    kind: SchedulerKind,
    servers: u32,
    tenants: Vec<Tenant>,
    span: Duration,
) -> Result<Vec<Service>> {
    let law = Law::constant(Nanos::from_micros(200));
    let span = Nanos::new(u64::try_from(span.as_nanos()).context("a span of centuries")?);
    let device = Kind::Servers(ServersParameters::new(servers, law));
    let scene = Scene::new(device, tenants).lasting(span);
    let outcome = Live::default().play(&scene, &kind.into(), SEED)?;
    #[allow(clippy::cast_precision_loss, reason = "some ten thousands")]
    let rate = |requests: u64| requests as f64 / outcome.seconds;
    let services = outcome.tenants.iter().map(|got| Service {
        rate: rate(got.requests),
        p99: Duration::from_nanos(got.latency.value_at_quantile(0.99)),
    });
    Ok(services.collect())
}

/// What is fair for the neighbour: what it gets alone on a disk of half of the servers.
pub(crate) fn fair(span: Duration) -> Result<Service> {
    let alone = services(SchedulerKind::None, SERVERS / 2, vec![neighbour()], span)?;
    alone.first().copied().context("a tenant")
}

/// What the neighbour and the attacker get under a scheduler.
pub(crate) fn measure(
    scheduler: SchedulerKind,
    attacker: &Tenant,
    span: Duration,
) -> Result<Rates> {
    let both = services(scheduler, SERVERS, vec![neighbour(), attacker.clone()], span)?;
    let [neighbour, attacker] = both[..] else { anyhow::bail!("{} tenants", both.len()) };
    let neighbour_p99 = neighbour.p99;
    Ok(Rates { neighbour: neighbour.rate, attacker: attacker.rate, neighbour_p99 })
}

/// What an attacker of weight 400 gets alone, and beside the neighbour.
pub(crate) fn measure_heavy(
    scheduler: SchedulerKind,
    attacker: &Tenant,
    span: Duration,
) -> Result<(f64, Rates)> {
    let heavy = Tenant { weight: 400, ..attacker.clone() };
    let alone = services(scheduler, SERVERS, vec![heavy.clone()], span)?;
    let alone = alone.first().context("a tenant")?.rate;
    Ok((alone, measure(scheduler, &heavy, span)?))
}

/// What the disk does under `none` with everybody at 64 outstanding.
pub(crate) fn baseline(span: Duration) -> Result<f64> {
    Ok(measure(SchedulerKind::None, &reads(1, 64), span)?.of_disk())
}

/// Whether a machine on which the disk does that much is fast enough to show shares.
pub(crate) fn shows_shares(baseline: f64) -> bool {
    baseline >= ENOUGH * PEAK
}
