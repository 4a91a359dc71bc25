//! `cargo xtask bench shares`: whether every tenant gets its weight while the disk stays busy.

mod throttled;

use crate::cargo;
use anyhow::Result;
use std::ffi::OsString;

/// How the program is run that measures.
const BENCH: [&str; 6] = ["bench", "--locked", "-p", "paternoster-load", "--bench", "shares"];

/// What to measure: the program's own options, which its `--help` says.
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Args {
    /// Three tenants on a loop device that the kernel throttles, with direct I/O, instead; as root
    #[arg(long)]
    throttled: bool,

    /// The program's options
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    options: Vec<OsString>,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<()> {
    if args.throttled {
        return throttled::run();
    }
    cargo::run(cargo::command().args(BENCH).arg("--").args(&args.options))
}
