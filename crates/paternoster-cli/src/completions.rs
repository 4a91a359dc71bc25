//! `completions`: a script with which a shell completes the command line.

use std::process::ExitCode;

use anyhow::Result;
use clap_complete::Shell;

use crate::output::print;

/// Print completions for a shell.
///
/// In bash, for this session: `source <(PROGRAM completions bash)`. Fish completes two levels of
/// subcommands, and nothing behind `ctl volume create`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The shell
    shell: Shell,
}

/// Runs the subcommand; `command` is the whole command line.
pub fn run(args: &Args, mut command: clap::Command) -> Result<ExitCode> {
    let mut text = Vec::new();
    let name = command.get_name().to_owned();
    clap_complete::generate(args.shell, &mut command, name, &mut text);
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}
