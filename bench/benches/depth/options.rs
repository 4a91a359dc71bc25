//! What is to be run: scenes, schedulers, seeds.

use anyhow::{Result, bail};
use clap::Parser;
use paternoster::Nanos;
use paternoster_lab::closed_loop::{Entry, Owner, Set, scenes};
use paternoster_scene::Scheduler;

/// What is to be run.
#[derive(Parser)]
#[command(
    name = "cargo xtask bench depth",
    about = "Throughput, shares and a victim's latency under schedulers over modelled devices"
)]
pub(crate) struct Options {
    /// Scenes, by name, or sets of them: devices, crowds, victims, changes, prices; all unless told
    scenes: Vec<String>,
    /// Schedulers, each as `cfq` or `wfq:depth=32,grace_us=1000`. Others are compared with the
    /// first; the table is about the last
    #[arg(long = "scheduler", value_name = "NAME[:TUNABLE=VALUE,…]")]
    #[arg(default_values = ["none", "cfq", "wfq:depth=32", "wfq"])]
    pub(crate) schedulers: Vec<Scheduler>,
    /// How many seeds each is run with
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(crate) seeds: u64,
    /// Stall whoever drives the scheduler 20 times a second, for 0.5 to 4 ms
    #[arg(long)]
    noisy: bool,
    /// Let whoever drives the scheduler run for 4 ms on average, then not for 2 to 8 ms, as on a
    /// busy machine
    #[arg(long, conflicts_with = "noisy")]
    busy: bool,
    /// Print a row for each run
    #[arg(long)]
    pub(crate) runs: bool,
    /// Print throughput and depth in steps of so many milliseconds
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(10..=60_000))]
    timeline: Option<u64>,
}

impl Options {
    /// Whoever drives the scheduler.
    pub(crate) fn owner(&self) -> Owner {
        match (self.noisy, self.busy) {
            (true, _) => Owner::Noisy,
            (_, true) => Owner::Busy,
            _ => Owner::Prompt,
        }
    }

    /// The step of what happens in a run, where that is wanted instead of a table.
    pub(crate) fn timeline(&self) -> Option<Nanos> {
        self.timeline.map(Nanos::from_millis)
    }

    /// The scenes; all where none is named.
    pub(crate) fn scenes(&self) -> Result<Vec<&'static Entry>> {
        if self.scenes.is_empty() {
            return Ok(scenes().iter().collect());
        }
        let named: Result<Vec<_>> = self.scenes.iter().map(|name| named(name)).collect();
        Ok(named?.concat())
    }
}

/// The scenes of a set, or the scene of that name.
fn named(name: &str) -> Result<Vec<&'static Entry>> {
    let is_named = |entry: &&Entry| entry.set.name() == name || entry.scene.name == name;
    let found: Vec<_> = scenes().iter().filter(is_named).collect();
    if found.is_empty() {
        let sets = Set::ALL.map(Set::name).join(", ");
        let names: Vec<_> = scenes().iter().map(|entry| entry.scene.name.as_str()).collect();
        bail!("{name:?} is no scene; sets are: {sets}; scenes: {}", names.join(", "));
    }
    Ok(found)
}
