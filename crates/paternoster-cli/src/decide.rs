//! `paternoster decide`: scenarios in, decision logs out.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use paternoster_lab::decide_folder;

/// Run recorded scenarios in virtual time and write what the scheduler decided on each.
///
/// A scenario that cannot be run, for instance one of an unknown scheduler, is named; the others
/// still run, and the exit status is 1.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The folder of the scenarios, NAME.scenario.json.
    dir: PathBuf,
    /// The folder for the logs, NAME.log.jsonl; made if need be.
    #[arg(long)]
    out: PathBuf,
    /// Run this scenario alone.
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let decided = decide_folder(&args.dir, &args.out, args.only.as_deref())?;
    let failures: Vec<_> = decided.iter().filter_map(|one| one.log.as_ref().err()).collect();
    for failure in &failures {
        eprintln!("paternoster: {failure}");
    }
    eprintln!("{} of {} scenarios decided", decided.len() - failures.len(), decided.len());
    Ok(if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
