//! `cargo xtask bench depth`: what tenants and a victim get of many modelled devices under several
//! schedulers, in virtual time.

use crate::cargo;
use anyhow::Result;

/// How the program is run that measures.
const BENCH: [&str; 6] = ["bench", "--locked", "-p", "paternoster-lab", "--bench", "depth"];

/// What to run.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Scenes, by name, or sets of them: devices, crowds, victims, changes, prices; all unless told
    scenes: Vec<String>,
    /// Schedulers, each as `cfq` or `wfq:depth=32,grace_us=1000`. Others are compared with the
    /// first; the table is about the last. Unless told: none, cfq, wfq:depth=32, wfq
    #[arg(long, value_name = "NAME[:TUNABLE=VALUE,…]")]
    scheduler: Vec<String>,
    /// How many seeds each is run with
    #[arg(long, default_value_t = 4)]
    seeds: u64,
    /// Stall whoever drives the scheduler 20 times a second, for 0.5 to 4 ms
    #[arg(long)]
    noisy: bool,
    /// Let whoever drives the scheduler run for 4 ms on average, then not for 2 to 8 ms, as on a
    /// busy machine
    #[arg(long, conflicts_with = "noisy")]
    busy: bool,
    /// Print a row for each run
    #[arg(long)]
    runs: bool,
    /// Print throughput and depth in steps of so many milliseconds
    #[arg(long, value_name = "MS")]
    timeline: Option<u64>,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<()> {
    let mut command = cargo::command();
    command.args(BENCH).arg("--").args(&args.scenes);
    for scheduler in &args.scheduler {
        command.args(["--scheduler", scheduler]);
    }
    command.args(["--seeds", &args.seeds.to_string()]);
    let options = [(args.noisy, "--noisy"), (args.busy, "--busy"), (args.runs, "--runs")];
    for (chosen, option) in options {
        if chosen {
            command.arg(option);
        }
    }
    if let Some(step) = args.timeline {
        command.args(["--timeline", &step.to_string()]);
    }
    cargo::run(&mut command)
}
