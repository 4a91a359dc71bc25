//! `paternoster-lab trace`: traces of block I/O that other programs have recorded.

mod convert;
mod info;
mod input;

use std::process::ExitCode;

use anyhow::Result;
pub(crate) use input::Input;

/// Look into traces of block I/O, of blktrace, tracefs, fio, SPC, MSR and others, and convert them.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Info(info::Info),
    Convert(convert::Convert),
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    match &args.command {
        Command::Info(info) => info::run(info),
        Command::Convert(convert) => convert::run(convert),
    }
}
