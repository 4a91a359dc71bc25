//! `man`: manual pages, made of what `--help` says.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result};

/// Write manual pages to a folder, one for each subcommand.
///
/// `man -M` finds them in a folder called man1: after `PROGRAM man man/man1` by `man -M man
/// PROGRAM-SUBCOMMAND`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The folder; created if missing
    dir: PathBuf,
}

/// Runs the subcommand; `command` is the whole command line.
pub fn run(args: &Args, command: clap::Command) -> Result<ExitCode> {
    let dir = &args.dir;
    fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    // Every page would have one for `help`, which says what --help does.
    let command = command.disable_help_subcommand(true);
    clap_mangen::generate_to(command, dir)
        .with_context(|| format!("cannot write manual pages to {}", dir.display()))?;
    Ok(ExitCode::SUCCESS)
}
