//! Scenarios in, logs out: a file, or all of a folder.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::run::{RunError, run};
use crate::scenario::Scenario;

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
    /// The scenario gave no log.
    #[error("{}: {why}", path.display())]
    Run {
        /// The scenario's file.
        path: PathBuf,
        /// Why.
        why: RunError,
    },
}

/// The result of one scenario of a folder.
#[derive(Debug)]
pub struct Decided {
    /// Its name.
    pub name: String,
    /// Where its log is, or why there is none.
    pub log: Result<PathBuf, DecideError>,
}

/// Runs the scenario in the file and returns its log.
pub fn decide(path: &Path) -> Result<String, DecideError> {
    let text = fs::read_to_string(path).map_err(|why| file_error(path, why))?;
    let scenario: Scenario = text.parse().map_err(|error| run_error(path, error))?;
    let log = run(&scenario).map_err(|error| run_error(path, error))?;
    Ok(log.as_str().to_owned())
}

/// Runs the scenarios of folder `dir`, or `only` one of them, and writes their logs into `out`.
/// One that cannot be run does not keep the others from it.
pub fn decide_folder(
    dir: &Path,
    out: &Path,
    only: Option<&str>,
) -> Result<Vec<Decided>, DecideError> {
    let names = scenario_names(dir, only)?;
    fs::create_dir_all(out).map_err(|why| file_error(out, why))?;
    let decided = names.into_iter().map(|name| {
        let to = out.join(format!("{name}{LOG}"));
        let log = decide(&dir.join(format!("{name}{SCENARIO}"))).and_then(|log| {
            fs::write(&to, log).map_err(|why| file_error(&to, why))?;
            Ok(to)
        });
        Decided { name, log }
    });
    Ok(decided.collect())
}

fn scenario_names(dir: &Path, only: Option<&str>) -> Result<Vec<String>, DecideError> {
    let mut names = Vec::new();
    for entry in fs::read_dir(dir).map_err(|why| file_error(dir, why))? {
        let entry = entry.map_err(|why| file_error(dir, why))?;
        if let Some(name) = entry.file_name().to_str().and_then(|n| n.strip_suffix(SCENARIO))
            && only.is_none_or(|only| only == name)
        {
            names.push(name.to_owned());
        }
    }
    if names.is_empty() {
        let name = only.map(str::to_owned);
        return Err(DecideError::NoScenario { path: dir.to_owned(), name });
    }
    names.sort();
    Ok(names)
}

fn file_error(path: &Path, why: io::Error) -> DecideError {
    DecideError::File { path: path.to_owned(), why }
}

fn run_error(path: &Path, why: impl Into<RunError>) -> DecideError {
    DecideError::Run { path: path.to_owned(), why: why.into() }
}
