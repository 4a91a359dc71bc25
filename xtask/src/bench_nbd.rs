//! `cargo xtask bench nbd`: to come.

use anyhow::{Result, bail};

/// No options.
#[derive(clap::Args)]
pub(crate) struct Args {}

/// Runs the command.
pub(crate) fn run(_: &Args) -> Result<()> {
    bail!("to come")
}
