//! `cargo xtask bench fairness`: what a neighbour keeps of a disk that other clients attack, under
//! each scheduler: the tables of `docs/fairness.md`.

use crate::bench_live::FIGURES;
use crate::cargo;
use anyhow::Result;

/// How the program is run that measures.
const BENCH: [&str; 6] = ["bench", "--locked", "-p", "paternoster-server", "--bench", "fairness"];
/// How the test of the same attacks is run.
const CHECK: [&str; 8] =
    ["test", "--locked", "-p", "paternoster-server", "--test", "fairness", "--", "--nocapture"];

/// What to do with what is measured.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Fail where cfq or bfq leave a neighbour less than 85 % of its part; prints no table
    #[arg(long)]
    check: bool,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<()> {
    let args = if args.check { &CHECK[..] } else { &BENCH[..] };
    cargo::run(cargo::command().args(args).envs([FIGURES]))
}
