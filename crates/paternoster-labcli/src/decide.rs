//! `paternoster-lab decide`: scenarios in, decision logs out, and a table of each.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, ensure};
use paternoster::SchedulerKind;
use paternoster_lab::{Plan, decide_all};

use crate::tunable;
use paternoster_cli::output;

/// Run recorded scenarios in virtual time and write what the scheduler decided on each.
///
/// Prints a table of each run: shares, throughput and latency, by task and by group. A scenario
/// that cannot be run, for instance because its scheduler is unknown, is named; the others still
/// run, and the exit status is 1.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Scenarios, NAME.scenario.json, and folders of them.
    #[arg(value_name = "SCENARIO|DIR", required = true)]
    scenarios: Vec<PathBuf>,
    /// The folder for the logs, NAME.log.jsonl; created if missing.
    #[arg(long)]
    out: PathBuf,
    /// Run only this scenario.
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Run under this scheduler instead of the scenario's own, whose settings are then left out;
    /// the log is NAME.SCHEDULER.log.jsonl. May be repeated.
    #[arg(long = "scheduler", value_name = "NAME")]
    schedulers: Vec<SchedulerKind>,
    /// Set a tunable of the scheduler, by its name and unit in sysfs, after those that the scenario
    /// sets. May be repeated.
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = tunable::parse)]
    tunables: Vec<(String, i64)>,
}

pub(crate) fn run(args: Args) -> Result<ExitCode> {
    let Args { scenarios, out, only, schedulers, tunables } = args;
    tunable::check_once(&tunables)?;
    for (index, kind) in schedulers.iter().enumerate() {
        ensure!(!schedulers[..index].contains(kind), "--scheduler {kind} twice: once is allowed");
    }
    let plan = Plan { scenarios, only, schedulers, tunables };
    let decided = decide_all(&plan, &out)?;
    let (all, mut failures) = (decided.len(), 0);
    for one in decided {
        match one.outcome {
            Ok(outcome) => {
                let text = format!("{}: {}\n{}\n", one.name, outcome.scheduler, outcome.table);
                output::print(text.as_bytes())?;
            }
            Err(failure) => {
                failures += 1;
                eprintln!("paternoster-lab: {failure}");
            }
        }
    }
    eprintln!("{} of {all} scenarios decided", all - failures);
    Ok(if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
