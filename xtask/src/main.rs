//! The project’s own commands, run as `cargo xtask COMMAND`.
//!
//! Every path in this crate is relative to the root of the repository.

mod source;
mod tidy;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use std::path::Path;

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
    /// What a machine can check of how the code base should read
    Tidy,
}

fn main() -> Result<()> {
    let cli = Cli::parse();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask has no parent")?;
    std::env::set_current_dir(root).with_context(|| format!("going to {}", root.display()))?;
    match cli.command {
        Command::Tidy => tidy::run(),
    }
}
