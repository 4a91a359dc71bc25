//! How each golden is made.

use super::{mistakes, random, shape};
use crate::commit::Build;
use crate::oracle::{make_empty, unpack_all};
use anyhow::{Context, Result, bail, ensure};
use paternoster::SchedulerKind;
use std::ffi::OsString;
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What a log has in every line of a dispatch.
const DISPATCH: &str = "\"D\"";

/// Random scenarios of each scheduler.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Scenarios {
    pub(crate) count: u32,
    /// Where their random numbers begin.
    pub(crate) seed: u64,
}

/// As many as there are unless told.
pub(crate) const SCENARIOS: Scenarios = Scenarios { count: 300, seed: 1 };

impl Scenarios {
    /// Has `dir` hold those of a scheduler, and nothing else.
    fn write(self, scheduler: SchedulerKind, dir: &Path) -> Result<()> {
        make_empty(dir)?;
        for index in 0..self.count {
            let name = format!("{index:05}");
            let scenario = random::scenario(scheduler, &name, self.seed, index);
            write(dir, &format!("{name}.scenario.json"), &scenario.to_string())?;
        }
        Ok(())
    }
}
/// Where this tree has job files.
const JOBS: &str = "crates/paternoster-lab/tests/cases";
/// Under what each job file runs: a disk, an array, flash, and servers; every scheduler.
const RUNS: [(&str, &str); 6] = [
    ("sata-7200-2010", "cfq"),
    ("raid5-12-sata", "mq-deadline"),
    ("ssd-plextor-m5s", "bfq"),
    ("nvme-980pro", "kyber"),
    ("servers-16x80us", "wfq"),
    ("table-980pro", "none"),
];
/// The commands of docs/learned-depth.md and docs/learned-prices.md.
const DEPTH: &str = "devices --seeds 3";
const BUSY: &str = "4x200us 16x80us lognormal h2 f6 n1 --busy --seeds 3 --scheduler none \
                    --scheduler cfq --scheduler wfq:depth=32 --scheduler wfq";
const PRICES: &str = "prices --scheduler wfq:cost=fixed --scheduler wfq --seeds 3";

/// Something that a rewrite leaves as it is.
pub(super) struct Recipe {
    /// What it is called.
    pub(super) name: &'static str,
    /// Makes it, as files in a directory.
    pub(super) make: fn(&Build, &Inputs, &Path) -> Result<()>,
}

/// All of them; the pins of instructions are compared by a command of their own.
pub(super) const RECIPES: [Recipe; 9] = [
    Recipe { name: "logs", make: |build, inputs, out| decide(build, &inputs.oracle, out) },
    Recipe { name: "decisions", make: |build, inputs, out| decide(build, &inputs.random, out) },
    Recipe { name: "depth", make: |build, _, out| bench_depth(build, DEPTH, out) },
    Recipe { name: "prices", make: |build, _, out| bench_depth(build, PRICES, out) },
    Recipe { name: "busy", make: |build, _, out| bench_depth(build, BUSY, out) },
    Recipe { name: "study", make: study },
    Recipe { name: "sim", make: sim },
    Recipe { name: "mistakes", make: |build, _, out| mistakes::make(build, out) },
    Recipe { name: "shapes", make: |build, _, out| shape::make(build, out) },
];

/// What both programs are given: it is of this tree.
pub(super) struct Inputs {
    /// Directories of scenarios, one each scheduler: those that Linux was recorded on.
    oracle: Vec<PathBuf>,
    /// The same, random.
    random: Vec<PathBuf>,
    /// Job files.
    jobs: Vec<PathBuf>,
    /// A number that is another one for other scenarios and job files.
    pub(super) fingerprint: String,
}

impl Inputs {
    /// Writes scenarios into `dir`, and looks for the job files.
    pub(super) fn collect(dir: &Path, scenarios: Scenarios) -> Result<Self> {
        let random = SchedulerKind::ALL.map(|scheduler| {
            let dir = dir.join("random").join(scheduler.name());
            scenarios.write(scheduler, &dir).map(|()| dir)
        });
        let mut jobs = vec![];
        for entry in fs::read_dir(JOBS).with_context(|| format!("listing {JOBS}"))? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "fio") {
                jobs.push(fs::canonicalize(path)?);
            }
        }
        jobs.sort();
        let (oracle, random) =
            (unpack_all(&dir.join("oracle"))?, random.into_iter().collect::<Result<Vec<_>>>()?);
        let mut files = jobs.clone();
        for dir in oracle.iter().chain(&random) {
            for entry in fs::read_dir(dir)? {
                files.push(entry?.path());
            }
        }
        files.sort();
        let mut hasher = DefaultHasher::new();
        for file in files {
            fs::read(file)?.hash(&mut hasher);
        }
        let fingerprint = format!("{:016x}", hasher.finish());
        Ok(Self { oracle, random, jobs, fingerprint })
    }
}

/// The logs of all scenarios, each scheduler's with its name before theirs.
fn decide(build: &Build, scenarios: &[PathBuf], out: &Path) -> Result<()> {
    for dir in scenarios {
        let scheduler = dir.file_name().context("a scheduler's name")?.to_string_lossy();
        let logs = out.join("logs");
        make_empty(&logs)?;
        let mut command = Command::new(build.laboratory());
        command.arg("decide").arg(dir).arg("--out").arg(&logs);
        output_of(&mut command)?;
        let names = fs::read_dir(dir)?.map(|entry| Ok(entry?.file_name()));
        let names: Vec<_> = names.collect::<Result<_>>()?;
        let is_scenario = |name: &&OsString| name.to_string_lossy().ends_with(".scenario.json");
        let count = names.iter().filter(is_scenario).count();
        take_logs(&logs, count, &format!("{scheduler}-"), out)?;
        fs::remove_dir(&logs)?;
    }
    Ok(())
}

/// Moves so many logs from a directory, each with that before its name. Two sides without a log, or
/// without a decision in one, would be equal too.
fn take_logs(from: &Path, count: usize, before: &str, out: &Path) -> Result<()> {
    let mut taken = 0;
    for entry in fs::read_dir(from)? {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name()))?;
        let log = fs::read_to_string(&path)?;
        ensure!(log.contains(DISPATCH), "{} has no dispatch", path.display());
        fs::rename(&path, out.join(format!("{before}{}", name.to_string_lossy())))?;
        taken += 1;
    }
    ensure!(taken == count, "{taken} logs of {count} scenarios in {}", from.display());
    Ok(())
}

/// What `cargo xtask bench depth` prints.
fn bench_depth(build: &Build, args: &str, out: &Path) -> Result<()> {
    let mut command = build.xtask();
    command.args(["bench", "depth"]).args(args.split_whitespace());
    write(out, "table", &output_of(&mut command)?)
}

/// What all studies compute. Nothing in it is measured.
fn study(build: &Build, _: &Inputs, out: &Path) -> Result<()> {
    let mut command = Command::new(build.laboratory());
    command.args(["study", "all", "--json"]);
    write(out, "all.json", &output_of(&mut command)?)
}

/// The reports of the job files, each on some devices under some scheduler.
fn sim(build: &Build, inputs: &Inputs, out: &Path) -> Result<()> {
    for job in &inputs.jobs {
        let name = job.file_stem().context("a job's name")?.to_string_lossy();
        for (device, scheduler) in RUNS {
            let mut command = Command::new(build.laboratory());
            command.arg("sim").arg(job).args(["--json", "--device", device]);
            // A device that does not take what a job does is refused, in words that are kept too.
            let output = command.args(["--scheduler", scheduler]).output();
            let output = output.context("the program does not start")?;
            let said = if output.status.success() { output.stdout } else { output.stderr };
            let said = String::from_utf8(said)?;
            let lines: Vec<_> = said.lines().filter(|line| !is_of_this_run(line)).collect();
            let text = lines.join("\n");
            write(out, &format!("{name}-{device}.json"), &text)?;
        }
    }
    Ok(())
}

/// Whether a line of fio's JSON says when the report was made.
fn is_of_this_run(line: &str) -> bool {
    ["\"timestamp\"", "\"timestamp_ms\"", "\"time\""].iter().any(|key| line.trim().starts_with(key))
}

/// What a command prints, whose exit status has to be 0.
pub(super) fn output_of(command: &mut Command) -> Result<String> {
    let output = command.stderr(Stdio::piped()).output();
    let output = output.with_context(|| format!("{command:?} does not start"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{command:?}: {}\n{said}", output.status);
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// Writes a file of a golden.
pub(super) fn write(out: &Path, name: &str, text: &str) -> Result<()> {
    let path = out.join(name);
    fs::write(&path, text).with_context(|| format!("writing {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_log_and_a_log_that_decides_nothing_are_errors() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let [from, out] = ["from", "out"].map(|name| dir.path().join(name));
        make_empty(&out).expect("it can be made");
        let take = |logs: &[&str], count| {
            make_empty(&from).expect("it can be made");
            for (index, log) in logs.iter().enumerate() {
                fs::write(from.join(index.to_string()), log).expect("a file");
            }
            take_logs(&from, count, "cfq-", &out).map_err(|error| error.to_string())
        };
        assert_eq!(take(&["\"D\""], 1), Ok(()));
        assert!(out.join("cfq-0").exists());
        let missing = take(&["\"D\""], 2).expect_err("the second is not there");
        assert!(missing.starts_with("1 logs of 2 scenarios"), "{missing}");
        let empty = take(&[""], 1).expect_err("it decides nothing");
        assert!(empty.ends_with("0 has no dispatch"), "{empty}");
    }
}
