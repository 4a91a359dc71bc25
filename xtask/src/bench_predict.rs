//! `cargo xtask bench predict`: what the laboratory predicts of a server beside what the server
//! does: the table of `docs/laboratory.md`.

use crate::cargo;
use anyhow::Result;

/// How the program is run that predicts and measures.
const BENCH: [&str; 6] = ["bench", "--locked", "-p", "paternoster-load", "--bench", "predict"];

/// What to measure.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Scenes, by name; all unless told
    scenes: Vec<String>,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<()> {
    cargo::run(cargo::command().args(BENCH).arg("--").args(&args.scenes))
}
