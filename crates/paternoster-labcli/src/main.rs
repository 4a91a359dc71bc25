//! The binary `paternoster-lab`: a subcommand a file, or a folder.

mod command_line;
mod compare;
mod conditions;
mod decide;
mod device;
mod inputs;
mod out_file;
mod progress;
mod replay;
mod scene;
mod sim;
mod study;
mod trace;
mod tunable;
mod weights_note;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};
use paternoster_cli::{completions, man};

/// The laboratory: I/O schedulers over modelled devices in virtual time.
#[derive(Debug, Parser)]
#[command(name = "paternoster-lab", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Scene(scene::Args),
    Sim(sim::Args),
    Compare(compare::Args),
    Study(study::Args),
    Trace(trace::Args),
    Replay(Box<replay::Args>),
    Decide(decide::Args),
    Completions(completions::Args),
    Man(man::Args),
}

impl Command {
    fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Self::Scene(args) => scene::run(&args),
            Self::Sim(args) => sim::run(&args),
            Self::Compare(args) => compare::run(&args),
            Self::Study(args) => study::run(&args),
            Self::Trace(args) => trace::run(&args),
            Self::Replay(args) => replay::run(&args),
            Self::Decide(args) => decide::run(args),
            Self::Completions(args) => completions::run(&args, Cli::command()),
            Self::Man(args) => man::run(&args, Cli::command()),
        }
    }
}

fn main() -> ExitCode {
    paternoster_cli::end("paternoster-lab", Cli::parse().command.run())
}
