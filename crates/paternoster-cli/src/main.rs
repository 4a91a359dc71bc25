//! The binary `paternoster`.

mod decide;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// One disk, many tenants: Linux's I/O schedulers in user space.
#[derive(Debug, Parser)]
#[command(version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Decide(decide::Args),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Decide(args) => decide::run(&args),
    };
    result.unwrap_or_else(|error| {
        eprintln!("paternoster: {error:#}");
        ExitCode::FAILURE
    })
}
