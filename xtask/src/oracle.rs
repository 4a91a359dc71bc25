//! `cargo xtask oracle`: our decisions beside those of Linux on the same scenarios.
//!
//!   oracle/SCHEDULER.tar.zst ──unpack──▶ target/oracle/SCHEDULER/NAME.{scenario.json,log.jsonl}
//!                                               │                           │ Linux's log
//!                                       paternoster-lab decide                  ▼
//!                                               └──▶ …-ours/NAME.log.jsonl ─▶ compare ─▶ score

use crate::compare::{Log, Outcome};
use crate::scores::{self, ByScenario, Fall, Scores};
use crate::{cargo, compare};
use anyhow::{Context, Result, bail};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Where the archives are.
const ARCHIVES: &str = "oracle";
/// How the name of an archive ends.
const ARCHIVE: &str = ".tar.zst";
/// How the name of a scenario's file ends.
const SCENARIO: &str = ".scenario.json";
/// How the name of a log's file ends.
const LOG: &str = ".log.jsonl";
/// Lines shown before and after a first difference.
const CONTEXT: usize = 4;
/// How like another a name is that somebody may have meant, of 1.
const ALIKE: f64 = 0.8;
/// The most such names that are shown.
const NEAR: usize = 5;

/// What to compare, and what to do with the scores.
#[derive(clap::Args, Default)]
pub(crate) struct Args {
    /// Schedulers to compare [default: all that have an archive in oracle/]
    schedulers: Vec<String>,
    /// Run this scenario of the schedulers alone
    #[arg(long, value_name = "NAME", requires = "schedulers")]
    #[arg(conflicts_with_all = ["check", "pin"])]
    scenario: Option<String>,
    /// Compare the logs in DIR/SCHEDULER instead of making them
    #[arg(long, value_name = "DIR")]
    logs: Option<PathBuf>,
    /// Fail where a score is below its pin; show only those scenarios
    #[arg(long)]
    check: bool,
    /// Raise the pins to the scores
    #[arg(long, conflicts_with = "check")]
    pin: bool,
    /// With --pin: lower pins too, for this reason
    #[arg(long, value_name = "REASON", requires = "pin")]
    lower: Option<String>,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<()> {
    let mut pins = Scores::load()?;
    let schedulers: BTreeSet<String> = match args.schedulers.as_slice() {
        [] => archived()?.into_iter().chain(pins.schedulers()).collect(),
        named => named.iter().cloned().collect(),
    };
    let mut fallen = vec![];
    for scheduler in &schedulers {
        let outcomes = score(scheduler, args)?;
        let now: ByScenario =
            outcomes.iter().map(|(name, o)| (name.clone(), scores::rounded(o))).collect();
        let falls = pins.falls(scheduler, &now);
        let is_decided = outcomes.values().any(|outcome| !outcome.is_missing());
        for (name, outcome) in &outcomes {
            if is_decided && !args.check || falls.iter().any(|fall| fall.scenario == *name) {
                show(scheduler, name, outcome);
            }
        }
        let note = if is_decided { "" } else { " (no logs)" };
        println!("{scheduler}: {}{note}", summary(&outcomes));
        let rises = pins.rises(scheduler, &now);
        if args.check && rises > 0 {
            println!("{scheduler}: {rises} above their pins: cargo xtask oracle --pin");
        }
        if args.lower.is_some() {
            pins.replace(scheduler, &now);
        } else if args.pin {
            pins.raise(scheduler, &now);
        }
        fallen.extend(falls.into_iter().map(|fall| (scheduler.clone(), fall)));
    }
    finish(args, &pins, &fallen)
}

/// Fails where a score of any scheduler is below its pin.
pub(crate) fn check() -> Result<()> {
    run(&Args { check: true, ..Args::default() })
}

/// Stores the pins or complains of the scores below theirs, as asked.
fn finish(args: &Args, pins: &Scores, fallen: &[(String, Fall)]) -> Result<()> {
    let list: Vec<String> =
        fallen.iter().map(|(scheduler, fall)| in_words(scheduler, fall)).collect();
    if args.check && !fallen.is_empty() {
        bail!("{} scores are below their pins:\n{}", fallen.len(), list.join("\n"));
    }
    if !args.pin {
        return Ok(());
    }
    pins.store()?;
    println!("{} holds the pins", scores::FILE);
    if fallen.is_empty() {
        return Ok(());
    }
    match &args.lower {
        Some(reason) => println!("for the commit message:\n\n{reason}\n\n{}", list.join("\n")),
        None => println!("not lowered (--lower REASON does):\n{}", list.join("\n")),
    }
    Ok(())
}

/// One line on a scenario that fell.
fn in_words(scheduler: &str, fall: &Fall) -> String {
    let now = fall.now.map_or_else(|| "no such scenario".to_owned(), |now| format!("{now:.4}"));
    format!("  {scheduler} {}: {:.4} -> {now}", fall.scenario, fall.pin)
}

/// Decides all scenarios of `scheduler` and compares with Linux's logs.
fn score(scheduler: &str, args: &Args) -> Result<BTreeMap<String, Outcome>> {
    let dir = cargo::target_dir().join("oracle");
    let reference = dir.join(scheduler);
    unpack(scheduler, &reference)?;
    let mut names = names(&reference, LOG)?;
    if let Some(only) = &args.scenario {
        find(scheduler, only, &names)?;
        names.retain(|name| name == only);
    }
    let ours = match &args.logs {
        Some(logs) => logs.join(scheduler),
        None => {
            decide(&reference, &dir.join(format!("{scheduler}-ours")), args.scenario.as_deref())?
        }
    };
    let outcome = |name: String| {
        let outcome = compare_files(&reference, &ours, &name)?;
        Ok((name, outcome))
    };
    names.into_iter().map(outcome).collect()
}

/// Fails where `wanted` is none of the scenarios `names`, with those that it might be.
fn find(scheduler: &str, wanted: &str, names: &[String]) -> Result<()> {
    if names.iter().any(|name| name == wanted) {
        return Ok(());
    }
    let near = near(wanted, names);
    let (which, shown) = if near.is_empty() { ("it has", names) } else { ("near it are", &*near) };
    bail!("{scheduler} has no scenario {wanted:?}; {which}: {}", shown.join(", "))
}

/// The names that are like `wanted`, the nearest first.
fn near(wanted: &str, names: &[String]) -> Vec<String> {
    let likeness = |name: &String| {
        if name.contains(wanted) { 1.0 } else { strsim::jaro_winkler(wanted, name) }
    };
    let mut near: Vec<_> = names.iter().filter(|name| likeness(name) > ALIKE).cloned().collect();
    near.sort_by(|a, b| likeness(b).total_cmp(&likeness(a)));
    near.truncate(NEAR);
    near
}

/// The schedulers that have an archive.
fn archived() -> Result<Vec<String>> {
    let names = names(Path::new(ARCHIVES), ARCHIVE)?;
    if names.is_empty() {
        bail!("no archive in {ARCHIVES}/");
    }
    Ok(names)
}

/// What comes before `ending` in the names of the files in `dir`, sorted.
fn names(dir: &Path, ending: &str) -> Result<Vec<String>> {
    let mut names = vec![];
    for entry in fs::read_dir(dir).with_context(|| format!("listing {}", dir.display()))? {
        let name = entry?.file_name();
        names.extend(name.to_str().and_then(|name| name.strip_suffix(ending)).map(str::to_owned));
    }
    names.sort();
    Ok(names)
}

/// Unpacks every archive into a directory of its scheduler's name in `dir`; returns these.
pub(crate) fn unpack_all(dir: &Path) -> Result<Vec<PathBuf>> {
    let into = |scheduler: String| {
        let dir = dir.join(&scheduler);
        unpack(&scheduler, &dir).map(|()| dir)
    };
    archived()?.into_iter().map(into).collect()
}

/// Makes `dir` hold what the archive of `scheduler` holds.
fn unpack(scheduler: &str, dir: &Path) -> Result<()> {
    let path = Path::new(ARCHIVES).join(format!("{scheduler}{ARCHIVE}"));
    let file = fs::File::open(&path).with_context(|| format!("opening {}", path.display()))?;
    make_empty(dir)?;
    let unpacked = zstd::Decoder::new(file).and_then(|text| tar::Archive::new(text).unpack(dir));
    unpacked.with_context(|| format!("unpacking {}", path.display()))
}

/// Makes `dir` an empty directory.
pub(crate) fn make_empty(dir: &Path) -> Result<()> {
    if dir.exists() {
        fs::remove_dir_all(dir).with_context(|| format!("emptying {}", dir.display()))?;
    }
    fs::create_dir_all(dir).with_context(|| format!("making {}", dir.display()))
}

/// Has the program decide the scenarios in `scenarios`, or `only` that one; the logs are
/// in `out` then.
///
/// Its exit status is 1 where a scheduler is not there yet, which it names itself. Whatever else
/// ends it early leaves logs out, and these score 0.
fn decide(scenarios: &Path, out: &Path, only: Option<&str>) -> Result<PathBuf> {
    make_empty(out)?;
    let program = cargo::tested_laboratory()?;
    let mut command = Command::new(&program);
    command.args(decide_arguments(scenarios, out, only)).stdout(Stdio::null());
    let status = command.status();
    let status = status.with_context(|| format!("starting {}", program.display()))?;
    if !matches!(status.code(), Some(0 | 1)) {
        println!("paternoster-lab decide {}: {status}", scenarios.display());
    }
    Ok(out.to_owned())
}

/// The arguments of the program for that.
fn decide_arguments(scenarios: &Path, out: &Path, only: Option<&str>) -> Vec<OsString> {
    let mut arguments =
        vec!["decide".into(), scenarios.into(), OsString::from("--out"), out.into()];
    if let Some(only) = only {
        arguments.extend(["--only".into(), only.into()]);
    }
    arguments
}

/// Compares the logs of the scenario `name`.
fn compare_files(reference: &Path, ours: &Path, name: &str) -> Result<Outcome> {
    let file = format!("{name}{LOG}");
    if !reference.join(format!("{name}{SCENARIO}")).exists() {
        bail!("{} has a log but no scenario {name}", reference.display());
    }
    let path = reference.join(&file);
    let linux = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    let linux = Log::parse(&linux);
    if let Some(complaint) = linux.complaint() {
        bail!("{}: {complaint}", path.display());
    }
    let path = ours.join(&file);
    if !path.exists() {
        return Ok(compare::Outcome::missing(&linux));
    }
    let ours = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
    Ok(Outcome::of(&linux, &Log::parse(&String::from_utf8_lossy(&ours)), CONTEXT))
}

/// Prints where a scenario differs, if it does.
fn show(scheduler: &str, name: &str, outcome: &Outcome) {
    let Some(difference) = &outcome.difference else { return };
    let Outcome { same, longest, .. } = outcome;
    let score = outcome.score();
    println!("DIFFER {scheduler} {name}: score {score:.4}");
    println!("    {same} of {longest} dispatches before the first difference");
    print!("{difference}");
}

/// How many agree, and the mean score.
fn summary(outcomes: &BTreeMap<String, Outcome>) -> String {
    let agree = outcomes.values().filter(|outcome| outcome.agrees()).count();
    let count = u32::try_from(outcomes.len()).expect("a directory has fewer than 2^32 files");
    let total: f64 = outcomes.values().map(Outcome::score).sum();
    let mean = if count == 0 { 0.0 } else { total / f64::from(count) };
    format!("{agree} of {count} agree, mean score {mean:.4}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summary_counts_the_logs_that_agree_and_means_all_scores() {
        let half = Outcome { same: 1, longest: 2, difference: Some(String::new()) };
        let full = Outcome { same: 2, longest: 2, difference: None };
        let outcomes = BTreeMap::from([("a".to_owned(), half), ("b".to_owned(), full)]);
        assert_eq!(summary(&outcomes), "1 of 2 agree, mean score 0.7500");
        assert_eq!(summary(&BTreeMap::new()), "0 of 0 agree, mean score 0.0000");
    }

    #[test]
    fn scenario_without_a_log_is_not_scored() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let reference = dir.path().join("reference");
        fs::create_dir(&reference).expect("a directory");
        for file in ["a.scenario.json", "a.log.jsonl", "b.scenario.json"] {
            fs::write(reference.join(file), "").expect("a file");
        }
        assert_eq!(names(&reference, LOG).expect("it can be listed"), ["a"]);
        let outcome = compare_files(&reference, dir.path(), "a").expect("the log is well formed");
        assert!(!outcome.agrees());
    }

    #[test]
    fn scenario_that_there_is_not_is_refused_with_those_that_are_near() {
        let names = ["weights-2to1", "weights-3", "nested", "exit"].map(str::to_owned);
        let refused = |wanted| find("cfq", wanted, &names).map_err(|error| error.to_string());
        assert_eq!(refused("nested"), Ok(()));
        let near = "cfq has no scenario \"weights-2to\"; near it are: weights-2to1, weights-3";
        assert_eq!(refused("weights-2to"), Err(near.to_owned()));
        let part = "cfq has no scenario \"est\"; near it are: nested";
        assert_eq!(refused("est"), Err(part.to_owned()));
        let none = "cfq has no scenario \"zoo\"; it has: weights-2to1, weights-3, nested, exit";
        assert_eq!(refused("zoo"), Err(none.to_owned()));
    }

    /// All were decided, and all but one thrown away.
    #[test]
    fn program_is_told_to_decide_one_scenario_where_one_is_named() {
        let arguments = |only| decide_arguments(Path::new("in"), Path::new("out"), only);
        assert_eq!(arguments(None), ["decide", "in", "--out", "out"]);
        assert_eq!(arguments(Some("a")), ["decide", "in", "--out", "out", "--only", "a"]);
    }
}
