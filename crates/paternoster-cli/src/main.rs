//! The binary `paternoster`: a subcommand a file, or a folder.

mod command_line;
mod completions;
mod ctl;
mod decide;
mod demo;
mod inputs;
mod man;
mod out_file;
mod output;
mod progress;
mod scene;
mod serve;
mod sim;
mod study;
mod tunable;
mod weights_note;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

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
    Serve(serve::Args),
    Ctl(ctl::Args),
    Top(ctl::top::Args),
    Decide(decide::Args),
    Scene(scene::Args),
    Sim(sim::Args),
    Study(study::Args),
    Completions(completions::Args),
    Man(man::Args),
}

impl Command {
    fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Self::Demo(args) => demo::run(&args),
            Self::Serve(args) => serve::run(args),
            Self::Ctl(args) => ctl::run(&args),
            Self::Top(args) => ctl::top::run(&args),
            Self::Decide(args) => decide::run(args),
            Self::Scene(args) => scene::run(&args),
            Self::Sim(args) => sim::run(&args),
            Self::Study(args) => study::run(&args),
            Self::Completions(args) => completions::run(&args, Cli::command()),
            Self::Man(args) => man::run(&args, Cli::command()),
        }
    }
}

fn main() -> ExitCode {
    match Cli::parse().command.run() {
        Ok(code) => code,
        Err(error) => {
            // A configuration has a line for each of its mistakes.
            for line in format!("{error:#}").lines() {
                eprintln!("paternoster: {line}");
            }
            ExitCode::FAILURE
        }
    }
}
