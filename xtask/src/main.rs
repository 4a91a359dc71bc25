//! The project’s own commands, run as `cargo xtask COMMAND`.
//!
//! `test` is what continuous integration runs, in one go; the others are its parts, and the
//! benchmarks. Every path in this crate is relative to the root of the repository.

mod bench_fairness;
mod bench_nbd;
mod bench_sched;
mod cargo;
mod compare;
mod oracle;
mod packages;
mod scores;
mod source;
mod test;
mod tidy;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use std::path::Path;
use std::process::ExitCode;

/// The command line.
#[derive(Parser)]
#[command(name = "cargo xtask", about = "The project's own commands")]
struct Cli {
    /// What to do.
    #[command(subcommand)]
    command: Command,
}

/// The commands, each in the file of its name.
#[derive(Subcommand)]
enum Command {
    /// Everything that continuous integration checks, in order, up to the first failure
    Test,
    /// What a machine can check of how the code base should read
    Tidy,
    /// Compare our decisions with what Linux decided on the same scenarios
    Oracle(oracle::Args),
    /// Measure
    #[command(subcommand)]
    Bench(Bench),
}

/// What there is to measure.
#[derive(Subcommand)]
enum Bench {
    /// The schedulers: instructions per request, against the pins, and nanoseconds
    Sched(bench_sched::Args),
    /// The server beside nbdkit and qemu-nbd: IOPS and latency
    Nbd(bench_nbd::Args),
    /// What a neighbour keeps of a disk that other clients attack
    Fairness(bench_fairness::Args),
}

fn main() -> ExitCode {
    match run(&Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs `command`, from the root of the repository.
fn run(command: &Command) -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask has no parent")?;
    std::env::set_current_dir(root).with_context(|| format!("going to {}", root.display()))?;
    match command {
        Command::Test => test::run(),
        Command::Tidy => tidy::run(),
        Command::Oracle(args) => oracle::run(args),
        Command::Bench(Bench::Sched(args)) => bench_sched::run(args),
        Command::Bench(Bench::Nbd(args)) => bench_nbd::run(args),
        Command::Bench(Bench::Fairness(args)) => bench_fairness::run(args),
    }
}
