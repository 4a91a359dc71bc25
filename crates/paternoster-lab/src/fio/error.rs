//! What is wrong with a job file or with job options of a command line, and where: all mistakes are
//! told at once.

use std::fmt;
use std::sync::Arc;

/// A place in a job file, or in an argument of a command line.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The file's name, as it was given or included; of an argument `the command line`.
    pub file: Arc<str>,
    /// The number of the line, or of the argument, from 1.
    pub line: u32,
    /// In characters, from 1.
    pub column: u32,
    /// The argument, as `--rw=read`; none in a file.
    pub argument: Option<Arc<str>>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, column, argument } = self;
        match argument {
            None => write!(f, "{file}:{line}:{column}"),
            Some(argument) => write!(f, "argument {line}, {argument}, column {column}"),
        }
    }
}

/// One mistake in a job file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mistake {
    /// Where it is.
    pub place: Place,
    /// What was found, and what is allowed.
    pub what: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}

/// Why a job file cannot be run: its mistakes, a line for each, in the order of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobFileError {
    mistakes: Vec<Mistake>,
}

impl JobFileError {
    /// The mistakes, of which there is at least one.
    pub fn mistakes(&self) -> &[Mistake] {
        &self.mistakes
    }
}

impl fmt::Display for JobFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<_> = self.mistakes.iter().map(Mistake::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl std::error::Error for JobFileError {}

/// The mistakes found so far.
#[derive(Debug, Default)]
pub(super) struct Mistakes {
    found: Vec<Mistake>,
}

impl Mistakes {
    pub(super) fn add(&mut self, mistake: Mistake) {
        self.found.push(mistake);
    }

    pub(super) fn count(&self) -> usize {
        self.found.len()
    }

    /// The value of `result`; its mistake is kept.
    pub(super) fn keep<T>(&mut self, result: Result<T, Mistake>) -> Option<T> {
        result.map_err(|mistake| self.add(mistake)).ok()
    }

    /// Ends the search: `value`, if no mistake was found.
    ///
    /// An option of `[global]` is read again for each job behind it; its mistake is told once.
    pub(super) fn end<T>(mut self, value: T) -> Result<T, JobFileError> {
        if self.found.is_empty() {
            return Ok(value);
        }
        self.found.sort();
        self.found.dedup();
        Err(JobFileError { mistakes: self.found })
    }
}
