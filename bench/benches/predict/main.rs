//! `cargo xtask bench predict`: what the laboratory predicts of a server beside what the server
//! does, as the table of `docs/laboratory.md`.
//!
//! ```text
//!              ┌──▶ Live      server, sockets, clients, modelled disk   in real time
//!   scenes.rs ─┤
//!              └──▶ Virtual   the laboratory                            in virtual time
//! ```
//!
//! Nothing is fitted to a scene. What a request costs beside its time in the device is measured
//! once, on a disk that is idle but for it.

mod costs;
mod report;
mod scenes;

use std::process::ExitCode;

use anyhow::{Context as _, Result};
use paternoster::Nanos;
use paternoster_load::Live;
use paternoster_scene::World;
use report::Report;
use scenes::{Entry, scenes};

/// How often each scene is played in each world, with a seed each; medians count.
const RUNS: u64 = 5;
/// How long the tenants ask before anything counts.
const WARM_UP: Nanos = Nanos::from_secs(1);
const COUNTED: Nanos = Nanos::from_secs(3);

fn main() -> Result<ExitCode> {
    // Cargo gives a bench this option.
    let names: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let entries = named(&names)?;
    let load = std::fs::read_to_string("/proc/loadavg")?;
    println!("load of the machine before: {}", load.split(' ').next().unwrap_or_default());
    let laboratory = costs::measure()?;
    println!(
        "a request costs beside its time in the device: {} µs between client and server, {} µs \
         until its end is heard of\n",
        laboratory.way.as_nanos() / 1000,
        laboratory.lateness.as_nanos() / 1000
    );
    let mut within = true;
    for entry in entries {
        let (mut predicted, mut measured) = (vec![], vec![]);
        for seed in 1..=RUNS {
            predicted.push(rates(laboratory, &entry, seed).context("the laboratory")?);
            measured.push(rates(Live::default(), &entry, seed)?);
        }
        let report = Report::new(&entry, &predicted, &measured);
        println!("{}\n", report.table());
        within &= report.is_within();
    }
    let percent = 100.0 * report::TOLERANCE;
    if within {
        println!("everything is within {percent} % of what was predicted");
        return Ok(ExitCode::SUCCESS);
    }
    println!("something is more than {percent} % off what was predicted");
    Ok(ExitCode::FAILURE)
}

/// The scenes of these names; all where there is none.
fn named(names: &[String]) -> Result<Vec<Entry>> {
    let all = scenes();
    let known: Vec<_> = all.iter().map(|entry| entry.scene.name.clone()).collect();
    if let Some(unknown) = names.iter().find(|name| !known.contains(name)) {
        anyhow::bail!("there is no scene {unknown:?}; scenes are: {}", known.join(", "));
    }
    let is_chosen = |entry: &Entry| names.is_empty() || names.contains(&entry.scene.name);
    Ok(all.into_iter().filter(is_chosen).collect())
}

/// What each tenant gets in a world, in bytes a second.
#[allow(clippy::cast_precision_loss, reason = "some ten thousands")]
fn rates<W: World>(mut world: W, entry: &Entry, seed: u64) -> Result<Vec<f64>, W::Error> {
    let outcome = world.play(&entry.scene, &entry.scheduler, seed)?;
    let rate = |requests: u64| requests as f64 / outcome.seconds;
    let tenants = outcome.tenants.iter();
    Ok(tenants.map(|tenant| rate(tenant.requests) * f64::from(tenant.block)).collect())
}
