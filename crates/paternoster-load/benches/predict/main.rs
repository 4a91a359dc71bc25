//! `cargo xtask bench predict`: what the laboratory predicts of a server beside what the server
//! does, as the table of `docs/laboratory.md`.
//!
//! ```text
//!              ┌──▶ server.rs      server, sockets, clients, modelled disk   in real time
//!   scenes.rs ─┤
//!              └──▶ laboratory.rs  job file, kind = "servers"                in virtual time
//! ```
//!
//! Nothing is fitted to a scene. What a request costs beside its time in the device is measured
//! once, on a disk that is idle but for it.

mod costs;
mod laboratory;
mod report;
mod scenes;
mod server;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result};
use costs::Costs;
use report::Report;
use scenes::{SCENES, Scene};

/// How often each scene is measured and predicted, with a seed each; medians count.
const RUNS: u64 = 5;
/// How long the tenants ask before anything counts.
const WARM_UP: Duration = Duration::from_secs(1);
const COUNTED: Duration = Duration::from_secs(3);
const EXPORT_MIB: usize = 64;

fn main() -> Result<ExitCode> {
    // Cargo gives a bench this option.
    let names: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let scenes = scenes(&names)?;
    let load = std::fs::read_to_string("/proc/loadavg")?;
    println!("load of the machine before: {}", load.split(' ').next().unwrap_or_default());
    let costs = costs::measure()?;
    println!(
        "a request costs beside its time in the device: {} µs between client and server, {} µs \
         until its end is heard of\n",
        costs.way.as_micros(),
        costs.lateness.as_micros()
    );
    let mut within = true;
    for scene in scenes {
        let report = compare(scene, costs)?;
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
fn scenes(names: &[String]) -> Result<Vec<&'static Scene>> {
    if names.is_empty() {
        return Ok(SCENES.iter().collect());
    }
    let known = SCENES.map(|scene| scene.name).join(", ");
    let scene = |name: &String| {
        let scene = SCENES.iter().find(|scene| scene.name == name);
        scene.with_context(|| format!("there is no scene {name:?}; scenes are: {known}"))
    };
    names.iter().map(scene).collect()
}

fn compare(scene: &Scene, costs: Costs) -> Result<Report> {
    let predict = |seed| laboratory::predict(scene, costs, seed);
    let predicted = (1..=RUNS).map(predict).collect::<Result<Vec<_>>>()?;
    let measure = |seed| server::measure(scene, seed);
    let measured = (1..=RUNS).map(measure).collect::<Result<Vec<_>>>()?;
    Ok(Report::new(scene, &predicted, &measured))
}
