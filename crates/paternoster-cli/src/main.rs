//! The binary `paternoster`: a subcommand a file, or a folder.

mod ctl;
mod demo;
mod serve;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};
use paternoster_cli::{completions, man};

/// A block server whose tenants share disks by weight, over NBD.
#[derive(Debug, Parser)]
#[command(name = "paternoster", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Demo(demo::Args),
    Serve(Box<serve::Args>),
    Ctl(ctl::Args),
    Top(ctl::top::Args),
    Completions(completions::Args),
    Man(man::Args),
}

impl Command {
    fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Self::Demo(args) => demo::run(&args),
            Self::Serve(args) => serve::run(*args),
            Self::Ctl(args) => ctl::run(&args),
            Self::Top(args) => ctl::top::run(&args),
            Self::Completions(args) => completions::run(&args, Cli::command()),
            Self::Man(args) => man::run(&args, Cli::command()),
        }
    }
}

fn main() -> ExitCode {
    paternoster_cli::end("paternoster", Cli::parse().command.run())
}
