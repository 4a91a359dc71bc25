//! `cargo xtask bench thinkers`: what a client keeps of a disk beside one that thinks.

use crate::cargo;
use anyhow::Result;
use std::ffi::OsString;

/// How the program is run that measures.
const BENCH: [&str; 6] = ["bench", "--locked", "-p", "paternoster-load", "--bench", "thinkers"];

/// What to measure: the program's own options, which its `--help` says.
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Args {
    /// The program's options
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    options: Vec<OsString>,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<()> {
    cargo::run(cargo::command().args(BENCH).arg("--").args(&args.options))
}
