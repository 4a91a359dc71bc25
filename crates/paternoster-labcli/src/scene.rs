//! `paternoster-lab scene`: what tenants get of a device, under one scheduler after the other.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use paternoster_lab::closed_loop::Virtual;
use paternoster_load::Live;
use paternoster_scene::{Outcome, SceneFile, Scheduler, World as _, table};

use paternoster_cli::output;

/// Play a scene: what does each of its tenants get of its device, under which scheduler?
///
/// The file names a device, schedulers, and tenants with their weights, connections, depths and
/// block sizes (docs/laboratory.md, "Scenes"). It is played in virtual time, about a second for a
/// million requests; with --live in real time, by a server and real NBD clients.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The scene.
    #[arg(value_name = "FILE.toml")]
    file: PathBuf,
    /// Play it under this scheduler instead of those of the file, with its tunables, such as
    /// `cfq:slice_idle=0`. May be repeated.
    #[arg(long = "scheduler", value_name = "NAME[:TUNABLE=VALUE,…]")]
    schedulers: Vec<Scheduler>,
    /// The seed of all random numbers; with --live, of what the clients ask for.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Play it in real time, with a server and its clients, each tenant on 64 MiB of the disk.
    #[arg(long)]
    live: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let SceneFile { scene, schedulers, model } = SceneFile::read(&args.file)?;
    let schedulers = if args.schedulers.is_empty() { &schedulers } else { &args.schedulers };
    let mut live = Live { model, ..Live::default() };
    let mut play = |scheduler: &Scheduler| -> Result<Outcome> {
        if args.live {
            return live.play(&scene, scheduler, args.seed);
        }
        let mut laboratory = Virtual { served: true, ..Virtual::default() };
        Ok(laboratory.play(&scene, scheduler, args.seed)?)
    };
    let mut outcomes = vec![];
    for scheduler in schedulers {
        let outcome = play(scheduler).with_context(|| format!("under {scheduler}"))?;
        outcomes.push((scheduler.clone(), outcome));
    }
    let text = format!("{}\n", output::fit(&table(&outcomes).to_string()));
    output::print(text.as_bytes())?;
    for (scheduler, outcome) in &outcomes {
        for note in outcome.notes(&scene) {
            eprintln!("note: {scheduler}: {note}");
        }
    }
    Ok(ExitCode::SUCCESS)
}
