//! `cargo xtask decisions --since REV`: our decisions beside those of another commit of ours.
//!
//! A change that is to leave every decision as it is (a rename, a type with walls, a faster list)
//! is checked by this on far more than what is recorded of Linux. Both programs run the same random
//! scenarios, and each pair of logs has to be the same to the byte, what schedulers say of
//! themselves included.
//!
//! ```text
//!   seed ──▶ random ──▶ scenarios ──┬──▶ paternoster of REV ──▶ logs ──┐
//!                                   └──▶ paternoster of now ──▶ logs ──┴──▶ the same bytes?
//! ```

mod random;

use crate::cargo;
use crate::commit::{Build, checked_out};
use crate::oracle::make_empty;
use anyhow::{Context, Result, bail, ensure};
use paternoster::SchedulerKind;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What a log has in every line of a dispatch.
const DISPATCH: &str = "\"D\"";
/// What the program says of a scenario whose scheduler it does not have.
const UNKNOWN_SCHEDULER: &str = "there is no scheduler";

/// What to compare.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The commit whose decisions are the measure
    #[arg(long, value_name = "REV")]
    since: String,
    /// Scenarios for each scheduler
    #[arg(long, default_value_t = 300)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=100_000))]
    scenarios: u32,
    /// Where the random numbers begin
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<()> {
    let dir = cargo::target_dir().join("decisions");
    let now = Build::of_this_tree()?.laboratory();
    checked_out(&args.since, &dir, |build| compare(args, &build.laboratory(), &now, &dir))
}

/// Has both programs decide all scenarios.
fn compare(args: &Args, before: &Path, now: &Path, dir: &Path) -> Result<()> {
    let mut differ = vec![];
    for scheduler in SchedulerKind::ALL {
        let scenarios = dir.join("scenarios").join(scheduler.name());
        write_scenarios(scheduler, args.scenarios, args.seed, &scenarios)?;
        if !has_scheduler(before, &scenarios, &dir.join("before"))? {
            println!("{}: not in {}", scheduler.name(), args.since);
            continue;
        }
        let [before, now] = [(before, "before"), (now, "now")].map(|(program, side)| {
            let logs = dir.join(side).join(scheduler.name());
            decide(program, &scenarios, &logs).map(|()| logs)
        });
        let names = different(&before?, &now?, args.scenarios)?;
        println!("{}: {} of {} logs differ", scheduler.name(), names.len(), args.scenarios);
        differ.extend(names);
    }
    match differ.first() {
        None => Ok(()),
        Some(first) => bail!("{} logs differ, the first is {}", differ.len(), first.display()),
    }
}

/// Has `dir` hold the random scenarios of a scheduler, and nothing else.
pub(crate) fn write_scenarios(
    scheduler: SchedulerKind,
    count: u32,
    seed: u64,
    dir: &Path,
) -> Result<()> {
    make_empty(dir)?;
    for index in 0..count {
        let name = format!("{index:05}");
        let scenario = random::scenario(scheduler, &name, seed, index);
        let path = dir.join(format!("{name}.scenario.json"));
        fs::write(&path, scenario.to_string())
            .with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}

/// Has `program` write its log of each of `scenarios` into the directory `logs`.
fn decide(program: &Path, scenarios: &Path, logs: &Path) -> Result<()> {
    make_empty(logs)?;
    let mut command = Command::new(program);
    command.arg("decide").arg(scenarios).arg("--out").arg(logs).stdout(Stdio::null());
    cargo::run(&mut command)
}

/// Whether `program` has the scheduler of `scenarios` at all: it may be newer.
fn has_scheduler(program: &Path, scenarios: &Path, logs: &Path) -> Result<bool> {
    let mut command = Command::new(program);
    command.arg("decide").arg(scenarios).args(["--only", "00000", "--out"]).arg(logs);
    let output = command.output().with_context(|| format!("starting {}", program.display()))?;
    Ok(!String::from_utf8_lossy(&output.stderr).contains(UNKNOWN_SCHEDULER))
}

/// The logs of `now` that are not the same, to the byte, as those of `before`; each has `count`.
fn different(before: &Path, now: &Path, count: u32) -> Result<Vec<PathBuf>> {
    let mut differ = vec![];
    for index in 0..count {
        let file = format!("{index:05}.log.jsonl");
        let read = |dir: &Path| {
            let path = dir.join(&file);
            let log = fs::read_to_string(&path);
            let log = log.with_context(|| format!("reading {}", path.display()))?;
            // Two logs without decisions would be equal too.
            ensure!(log.contains(DISPATCH), "{} has no dispatch", path.display());
            Ok(log)
        };
        if read(before)? != read(now)? {
            differ.push(now.join(&file));
        }
    }
    Ok(differ)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_that_differ_in_a_byte_are_named_and_missing_ones_are_an_error() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let [before, now] = ["before", "now"].map(|side| dir.path().join(side));
        for (side, second) in [(&before, "\"D\" 1"), (&now, "\"D\" 2")] {
            make_empty(side).expect("it can be made");
            fs::write(side.join("00000.log.jsonl"), "\"D\"").expect("a file");
            fs::write(side.join("00001.log.jsonl"), second).expect("a file");
        }
        let names = different(&before, &now, 2).expect("all are there");
        assert_eq!(names, [now.join("00001.log.jsonl")]);
        let missing = different(&before, &now, 3).expect_err("the third is not there");
        assert!(missing.to_string().ends_with("00002.log.jsonl"), "{missing}");
        fs::write(now.join("00000.log.jsonl"), "").expect("a file");
        let empty = different(&before, &now, 2).expect_err("the first decides nothing");
        assert!(empty.to_string().ends_with("00000.log.jsonl has no dispatch"), "{empty}");
    }
}
