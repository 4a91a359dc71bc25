//! Attacks on a neighbour's share of a disk, by real NBD clients, and what the neighbour keeps.
//!
//! The disk is modelled: 4 servers of 200 µs, 20,000 requests a second. The neighbour has 64
//! requests of 4 KiB outstanding, and is entitled to half of what the disk does under `none` with
//! everybody at 64 outstanding, whatever the disk does under attack.

use std::time::Duration;

use anyhow::{Context as _, Result};
use paternoster::SchedulerKind;
use paternoster_load::{Habit, TenantLoad};

use crate::shares::Rig;

/// What the disk does at most, a second.
pub(crate) const PEAK: f64 = 20_000.0;
/// The machine is fast enough to say something if the disk does this part of that under `none`.
const ENOUGH: f64 = 0.97;
const SEED: u64 = 9;

const DISK: &str = r#"
[disks.d]
backend = "modelled"
size = "128M"
servers = SERVERS
service_us = 200
scheduler = "SCHEDULER"
[groups."/attacker"]
weight = WEIGHT
[exports.neighbour]
disk = "d"
size = "64M"
[exports.attacker]
disk = "d"
offset = "64M"
"#;

/// What an attacker does. Where not said otherwise, it reads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attack {
    pub(crate) name: &'static str,
    connections: u32,
    depth: u32,
    block: u32,
    write_percent: u32,
    think_us: u64,
    reconnects: bool,
}

/// One request of 4 KiB outstanding.
const ONE: Attack = Attack {
    name: "one request outstanding",
    connections: 1,
    depth: 1,
    block: 4096,
    write_percent: 0,
    think_us: 0,
    reconnects: false,
};
const DEEP: Attack = Attack { depth: 64, ..ONE };

pub(crate) const ATTACKS: [Attack; 11] = [
    ONE,
    Attack { name: "… that thinks 100 µs", think_us: 100, ..ONE },
    Attack { name: "… that thinks 300 µs", think_us: 300, ..ONE },
    Attack { name: "… that thinks 700 µs", think_us: 700, ..ONE },
    Attack { name: "… that reconnects for each request", reconnects: true, ..ONE },
    Attack { name: "… on each of 16 connections", connections: 16, ..ONE },
    Attack { name: "64 of 1 byte", block: 1, ..DEEP },
    Attack { name: "64 of 512 bytes", block: 512, ..DEEP },
    Attack { name: "16 of 64 KiB", block: 64 << 10, depth: 16, ..ONE },
    Attack { name: "64, half of them writes", write_percent: 50, ..DEEP },
    Attack { name: "64 on each of 16 connections", connections: 16, ..DEEP },
];

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

fn start(scheduler: SchedulerKind, servers: u32, weight: u32) -> Result<Rig> {
    let text = DISK.replace("SCHEDULER", &scheduler.to_string());
    let text = text.replace("SERVERS", &servers.to_string());
    Rig::from_toml(&text.replace("WEIGHT", &weight.to_string()))
}

fn load(export: &str, attack: Attack) -> TenantLoad {
    let Attack { connections, depth, block, write_percent, .. } = attack;
    TenantLoad { export: export.to_owned(), connections, depth, block, write_percent }
}

/// What each of these gets in `span` of the disk of a rig.
fn services(rig: Rig, tenants: &[(&str, Attack)], span: Duration) -> Result<Vec<Service>> {
    let loads: Vec<_> = tenants.iter().map(|(export, attack)| load(export, *attack)).collect();
    let mut clients = rig.connect(&loads, SEED)?;
    for (index, (_, attack)) in tenants.iter().enumerate() {
        let think = Duration::from_micros(attack.think_us);
        clients
            .set_habit(index, Habit { think, reconnects: attack.reconnects, ..Habit::default() });
    }
    let window = clients.measure(&rig.control(), span, |_| {})?;
    clients.finish()?;
    rig.end()?;
    let seconds = window.counted.as_secs_f64();
    #[allow(clippy::cast_precision_loss)] // some ten thousands
    let rate = |replies: u64| replies as f64 / seconds;
    let services = window.tenants.iter().map(|got| Service {
        rate: rate(got.measured.replies),
        p99: Duration::from_nanos(got.measured.latency.value_at_quantile(0.99)),
    });
    Ok(services.collect())
}

/// What is fair for the neighbour: what it gets alone on a disk of half of the servers.
pub(crate) fn fair(span: Duration) -> Result<Service> {
    let rig = start(SchedulerKind::None, SERVERS / 2, 100)?;
    let alone = services(rig, &[("neighbour", DEEP)], span)?;
    alone.first().copied().context("a tenant")
}

/// What the neighbour and the attacker, of equal weight, get under a scheduler.
pub(crate) fn measure(scheduler: SchedulerKind, attack: Attack, span: Duration) -> Result<Rates> {
    let both = [("neighbour", DEEP), ("attacker", attack)];
    pair(&services(start(scheduler, SERVERS, 100)?, &both, span)?)
}

/// What a tenant of weight 400 with one request outstanding gets alone, and beside the neighbour.
pub(crate) fn measure_heavy(
    scheduler: SchedulerKind,
    attack: Attack,
    span: Duration,
) -> Result<(f64, Rates)> {
    let rig = || start(scheduler, SERVERS, 400);
    let alone = services(rig()?, &[("attacker", attack)], span)?;
    let both = [("neighbour", DEEP), ("attacker", attack)];
    let alone = alone.first().context("a tenant")?.rate;
    Ok((alone, pair(&services(rig()?, &both, span)?)?))
}

/// What the disk does under `none` with everybody at 64 outstanding.
pub(crate) fn baseline(span: Duration) -> Result<f64> {
    Ok(measure(SchedulerKind::None, DEEP, span)?.of_disk())
}

/// Whether a machine on which the disk does that much is fast enough to show shares.
pub(crate) fn shows_shares(baseline: f64) -> bool {
    baseline >= ENOUGH * PEAK
}

fn pair(services: &[Service]) -> Result<Rates> {
    let [neighbour, attacker] = *services else { anyhow::bail!("{} tenants", services.len()) };
    let neighbour_p99 = neighbour.p99;
    Ok(Rates { neighbour: neighbour.rate, attacker: attacker.rate, neighbour_p99 })
}
