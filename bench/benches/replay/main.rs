//! `cargo xtask bench replay`: what a replay of a recorded server predicts of it under another
//! scheduler, beside what the server then does, as the table of `docs/laboratory.md`.
//!
//! ```text
//!   scene ──▶ server under A, recorded ──▶ replay under B ──▶ predicted ± ┐
//!     └─────▶ server under B, several times ────────────────▶ live        ┴▶ cells
//! ```
//!
//! A cell is a figure of a tenant: share, throughput, median and 99th percentile. The device of the
//! replay is the modelled one of the server; how late the server hears of its completions was
//! measured once, on a disk that is idle but for that. Nothing is fitted to a scene.

#[path = "../predict/costs.rs"]
mod costs;
mod order;
mod pairs;
mod report;
#[path = "../predict/scenes.rs"]
mod scenes;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use paternoster::Nanos;
use paternoster_intake::{Meta, Options as TraceOptions, Trace};
use paternoster_lab::replay::{Figures, Options, Predictor, Recording, as_recorded};
use paternoster_load::Live;
use paternoster_model::{Described, Stages};
use paternoster_scene::{Outcome, Scene, Scheduler};

use order::Orders;
use pairs::{Pair, pairs};
use report::{Cells, Predicted};
use scenes::{Entry, scenes};

/// How often the server is run under B, with a seed each.
const RUNS: u64 = 5;
/// How long the tenants ask before anything counts of a run under B.
const WARM_UP: Nanos = Nanos::from_secs(1);
const COUNTED: Nanos = Nanos::from_secs(3);
/// How long the server is recorded under A.
const RECORDED: Nanos = Nanos::from_secs(10);

fn main() -> Result<ExitCode> {
    // Cargo gives a bench this option.
    let names: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let load = std::fs::read_to_string("/proc/loadavg")?;
    println!("load of the machine before: {}", load.split(' ').next().unwrap_or_default());
    let lateness = costs::measure()?.lateness;
    println!("the server hears of a completion {} us late\n", lateness.as_nanos() / 1000);
    let folder = tempfile::tempdir().context("a folder")?;
    let (mut cells, mut orders) = (Cells::default(), Orders::default());
    for Entry { scene, .. } in scenes() {
        let wanted = |pair: &&Pair| pair.scene == scene.name;
        let is_chosen = names.is_empty() || names.contains(&scene.name);
        let all = pairs();
        let pairs: Vec<&Pair> = all.iter().filter(wanted).filter(|_| is_chosen).collect();
        let mut recordings = BTreeMap::new();
        let mut live = BTreeMap::new();
        for Pair { recorded, other, .. } in pairs {
            if !recordings.contains_key(recorded) {
                let path = folder.path().join(format!("{}-{recorded}", scene.name));
                recordings.insert(*recorded, record(&scene, recorded, &path)?);
            }
            if !live.contains_key(other) {
                let runs = (1..=RUNS).map(|seed| run(&scene, other, seed));
                live.insert(*other, runs.collect::<Result<Vec<_>>>()?);
            }
            let predicted = predict(&scene, lateness, &recordings[recorded], [recorded, other])?;
            let title = format!("{}: {recorded} to {other}", scene.name);
            cells.add(&title, &scene, &predicted, &live[other]);
            orders.add(&scene.name, recorded, &predicted, &live[other]);
        }
    }
    println!("{}", cells.table());
    println!("{}", cells.summary());
    println!("{}", orders.summary());
    Ok(if cells.are_within() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Records the server while it plays a scene.
fn record(scene: &Scene, scheduler: &str, path: &Path) -> Result<(Recording, Meta)> {
    let scene = Scene { warm_up: Nanos::ZERO, counted: RECORDED, ..scene.clone() };
    let live = Live { recorded: Some(path.to_owned()), ..Live::default() };
    live.watch(&scene, &parsed(scheduler), 0, |_| {})?;
    let trace = Trace::open(&path.with_extension("blktrace.0"), &TraceOptions::default())?;
    let (recording, findings) = Recording::read(trace)?;
    let recorded = findings.recorded().context("it has a sidecar")?;
    Ok((recording, recorded.meta.clone()))
}

/// What each tenant gets of the server.
fn run(scene: &Scene, scheduler: &str, seed: u64) -> Result<Vec<Figures>> {
    let outcome = Live::default().watch(scene, &parsed(scheduler), seed, |_| {})?;
    Ok(figures(&outcome))
}

fn parsed(scheduler: &str) -> Scheduler {
    scheduler.parse().expect("it is one")
}

#[allow(clippy::cast_precision_loss, reason = "some ten thousands")]
fn figures(outcome: &Outcome) -> Vec<Figures> {
    let bytes = outcome.tenants.iter().map(|tenant| tenant.requests * u64::from(tenant.block));
    let all: u64 = bytes.sum();
    let tenants = outcome.tenants.iter().map(|tenant| {
        let requests = tenant.requests as f64;
        let bytes = requests * f64::from(tenant.block);
        let quantile = |of| Nanos::new(tenant.latency.value_at_quantile(of));
        Figures {
            iops: requests / outcome.seconds,
            bytes_per_second: bytes / outcome.seconds,
            share: bytes / all as f64,
            p50: quantile(0.5),
            p99: quantile(0.99),
        }
    });
    tenants.collect()
}

/// What the replay says of each tenant under the other scheduler.
fn predict(
    scene: &Scene,
    lateness: Nanos,
    (recording, meta): &(Recording, Meta),
    [recorded, other]: [&str; 2],
) -> Result<Predicted> {
    let stages = Stages { latency: lateness, ..scene.device.stages };
    let device = Described { stages, ..scene.device.clone() };
    let options = |scheduler: &str| Options::new(as_recorded(&parsed(scheduler), meta, false));
    let own = options(recorded);
    let predictor = Predictor::new(recording.clone(), &device, &own)?;
    let itself = predictor.itself(&own)?;
    let predicted = predictor.predict(&options(other))?;
    let plus_minus = itself.plus_minus(&predicted);
    let parties = recording.parties();
    let index = |name: &String| {
        let of = |party: &Option<usize>| recording.path(*party) == format!("/{name}");
        parties.iter().position(of).with_context(|| format!("{name} is not in the recording"))
    };
    let tenants = scene.tenants.iter().map(|tenant| {
        let index = index(&tenant.name)?;
        Ok((predicted.figures[index], plus_minus[index]))
    });
    Ok(Predicted { tenants: tenants.collect::<Result<_>>()? })
}
