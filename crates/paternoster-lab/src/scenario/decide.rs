//! Scenarios in, logs out: files of scenarios or folders of them, each under its own scheduler or
//! under several.
//!
//! ```text
//!   NAME.scenario.json ──┬──▶ NAME.log.jsonl                 under its own scheduler
//!                        ├──▶ NAME.bfq.log.jsonl             under those that are named
//!                        └──▶ NAME.cfq.log.jsonl
//! ```

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use paternoster::{Kernel, SchedulerKind, TunableError};
use thiserror::Error;

use super::run::{RunError, run, run_and_measure};
use super::{Scenario, ScenarioError, told_with_place};

const SCENARIO: &str = ".scenario.json";
const LOG: &str = ".log.jsonl";

/// Why there is no log of a scenario.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DecideError {
    /// A file could not be read or written.
    #[error("{}: {why}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        why: io::Error,
    },
    /// A folder without the scenario asked for, or without any.
    #[error("{} holds no {}{SCENARIO}", path.display(), name.as_deref().unwrap_or("*"))]
    NoScenario {
        /// The folder.
        path: PathBuf,
        /// The scenario asked for.
        name: Option<String>,
    },
    /// A file that is not named as a scenario, so that its log would have no name.
    #[error("{}: NAME{SCENARIO} is allowed, or a folder of such files", path.display())]
    NotNamed {
        /// The file.
        path: PathBuf,
    },
    /// Two scenarios whose logs would be one.
    #[error("{} and {} would have the same log", first.display(), second.display())]
    SameName {
        /// The first one.
        first: PathBuf,
        /// The other one.
        second: PathBuf,
    },
    /// A scheduler that was named does not take what is to be set.
    #[error(transparent)]
    Tunable(#[from] TunableError),
    /// The scenario gave no log.
    #[error("{}", told(path, why))]
    Run {
        /// The scenario's file.
        path: PathBuf,
        /// Why.
        why: RunError,
    },
}

fn told(path: &Path, why: &RunError) -> String {
    match why {
        RunError::Scenario(ScenarioError::Format(error)) => told_with_place(path, error),
        why => format!("{}: {why}", path.display()),
    }
}

/// Which scenarios are run, and how.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Files of scenarios, and folders of them.
    pub scenarios: Vec<PathBuf>,
    /// The name of the only one of them that is run.
    pub only: Option<String>,
    /// The schedulers under which each is run; its own one where there are none.
    pub schedulers: Vec<SchedulerKind>,
    /// Tunables that are set after the scenario's own.
    pub tunables: Vec<(String, i64)>,
}

/// A run of a scenario.
#[derive(Debug)]
pub struct Decided {
    /// The scenario's name.
    pub name: String,
    /// The scheduler under which it was to run, where the plan names one.
    pub scheduler: Option<SchedulerKind>,
    /// What came of it, or why nothing did.
    pub outcome: Result<Outcome, DecideError>,
}

/// What came of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The scheduler under which it ran.
    pub scheduler: String,
    /// Where its log is.
    pub log: PathBuf,
    /// Shares, throughput and latency, by task and by group.
    pub table: String,
}

/// Runs the scenario in the file and returns its log.
pub fn decide(path: &Path) -> Result<String, DecideError> {
    let log = run(&read(path)?).map_err(|error| run_error(path, error))?;
    Ok(log.as_str().to_owned())
}

/// Runs scenarios by a plan and writes their logs into `out`. One that cannot be run does not keep
/// the others from it. Each is run as the iterator is asked for it.
pub fn decide_all<'a>(
    plan: &'a Plan,
    out: &'a Path,
) -> Result<impl ExactSizeIterator<Item = Decided> + 'a, DecideError> {
    for kind in &plan.schedulers {
        for (name, value) in &plan.tunables {
            // A scenario may name a kernel that has others; `set_tunables` asks its own.
            let has_it = |&kernel: &Kernel| kind.tunable_of(kernel, name).is_ok();
            let kernel = Kernel::ALL.into_iter().find(has_it).unwrap_or_default();
            kind.tunable_of(kernel, name)?.accepts(*value)?;
        }
    }
    let files = plan.files()?;
    fs::create_dir_all(out).map_err(|why| file_error(out, why))?;
    let schedulers: Vec<_> = match plan.schedulers.as_slice() {
        [] => vec![None],
        named => named.iter().copied().map(Some).collect(),
    };
    let runs: Vec<_> = files
        .into_iter()
        .flat_map(|file| schedulers.iter().map(move |&scheduler| (file.clone(), scheduler)))
        .collect();
    Ok(runs.into_iter().map(move |((name, path), scheduler)| {
        let log = match scheduler {
            None => format!("{name}{LOG}"),
            Some(kind) => format!("{name}.{kind}{LOG}"),
        };
        let outcome = plan.run(&path, scheduler, out.join(log));
        Decided { name, scheduler, outcome }
    }))
}

impl Plan {
    fn run(
        &self,
        path: &Path,
        scheduler: Option<SchedulerKind>,
        log: PathBuf,
    ) -> Result<Outcome, DecideError> {
        let mut scenario = read(path)?;
        if let Some(kind) = scheduler {
            scenario = scenario.under(kind);
        }
        self.set_tunables(&mut scenario).map_err(|why| run_error(path, why))?;
        let (lines, measured) = run_and_measure(&scenario).map_err(|why| run_error(path, why))?;
        fs::write(&log, lines.as_str()).map_err(|why| file_error(&log, why))?;
        Ok(Outcome { log, table: measured.table(&scenario), scheduler: scenario.scheduler })
    }

    fn set_tunables(&self, scenario: &mut Scenario) -> Result<(), ScenarioError> {
        let kind: SchedulerKind = scenario.scheduler.parse()?;
        let kernel = scenario.kernel.unwrap_or_default();
        for (name, value) in &self.tunables {
            kind.tunable_of(kernel, name)?.accepts(*value)?;
            scenario.tunables.insert(name.clone(), *value);
        }
        Ok(())
    }

    /// The names and the files of the scenarios: as they are named, and those of a folder by name.
    fn files(&self) -> Result<Vec<(String, PathBuf)>, DecideError> {
        let only = self.only.as_deref();
        let mut files = Vec::new();
        for path in &self.scenarios {
            if fs::metadata(path).map_err(|why| file_error(path, why))?.is_dir() {
                files.extend(scenarios_in(path, only)?);
                continue;
            }
            let name = name_of(path).ok_or_else(|| DecideError::NotNamed { path: path.clone() })?;
            if only.is_none_or(|only| only == name) {
                files.push((name.to_owned(), path.clone()));
            }
        }
        if let (true, Some(path)) = (files.is_empty(), self.scenarios.first()) {
            return Err(DecideError::NoScenario { path: path.clone(), name: self.only.clone() });
        }
        let mut names = HashSet::new();
        if let Some((name, second)) = files.iter().find(|(name, _)| !names.insert(name)) {
            let (_, first) = files.iter().find(|(other, _)| other == name).expect("the one before");
            return Err(DecideError::SameName { first: first.clone(), second: second.clone() });
        }
        Ok(files)
    }
}

fn scenarios_in(dir: &Path, only: Option<&str>) -> Result<Vec<(String, PathBuf)>, DecideError> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).map_err(|why| file_error(dir, why))? {
        let path = entry.map_err(|why| file_error(dir, why))?.path();
        if let Some(name) = name_of(&path)
            && only.is_none_or(|only| only == name)
        {
            files.push((name.to_owned(), path));
        }
    }
    if files.is_empty() {
        let name = only.map(str::to_owned);
        return Err(DecideError::NoScenario { path: dir.to_owned(), name });
    }
    files.sort();
    Ok(files)
}

/// The name of the scenario in the file, if it is one.
fn name_of(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()?.strip_suffix(SCENARIO)
}

fn read(path: &Path) -> Result<Scenario, DecideError> {
    let text = paternoster_model::read_input_text(path).map_err(|why| file_error(path, why))?;
    text.parse().map_err(|error: ScenarioError| run_error(path, error))
}

fn file_error(path: &Path, why: io::Error) -> DecideError {
    DecideError::File { path: path.to_owned(), why }
}

fn run_error(path: &Path, why: impl Into<RunError>) -> DecideError {
    DecideError::Run { path: path.to_owned(), why: why.into() }
}
