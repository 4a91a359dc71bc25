//! Files of parameters: their errors, and what is known of each value.

mod keys;
mod notes;

use std::fmt;
use std::path::PathBuf;

use paternoster::Nanos;
use thiserror::Error;

use crate::disk::LayoutError;

pub use keys::{Keys, exactly};
pub use notes::{FoundValue, notes, values, with_number};

/// What is known of a value.
#[derive(Clone, Debug, PartialEq)]
pub struct Note {
    /// The value's name, as `mechanics.rpm`.
    pub key: String,
    /// The value, as TOML.
    pub value: String,
    /// How it is known.
    pub mark: Option<Mark>,
    /// Where it comes from.
    pub source: Option<String>,
    /// Between which numbers it may be when it is fitted.
    pub bounds: Option<(f64, f64)>,
}

/// How a value is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// It was measured.
    Measured,
    /// The maker states it.
    Stated,
    /// It follows from other values.
    Inferred,
    /// It is likely.
    Guess,
    /// It was fitted to measurements of the whole.
    Fitted,
}

impl Mark {
    /// All of them, by their names in files.
    const NAMED: [(&'static str, Self); 5] = [
        ("measured", Self::Measured),
        ("stated", Self::Stated),
        ("inferred", Self::Inferred),
        ("guess", Self::Guess),
        ("fitted", Self::Fitted),
    ];

    /// Its name in files.
    pub fn name(self) -> &'static str {
        let named = Self::NAMED.iter().find(|(_, mark)| *mark == self);
        named.expect("all are named").0
    }

    fn named(name: &str) -> Option<Self> {
        Self::NAMED.iter().find(|(own, _)| *own == name).map(|&(_, mark)| mark)
    }
}

/// Why a file describes nothing.
#[derive(Debug, Error)]
#[error("{at}: {problem}")]
pub struct ParameterError {
    /// Where it stands.
    pub at: Spot,
    /// What is wrong.
    pub problem: Problem,
}

/// A place in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spot {
    /// The file.
    pub path: PathBuf,
    /// Line and column, from 1; none is the whole file.
    pub position: Option<(usize, usize)>,
}

impl fmt::Display for Spot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        match self.position {
            Some((line, column)) => write!(f, ":{line}:{column}"),
            None => Ok(()),
        }
    }
}

/// What is wrong with a file.
#[derive(Debug, Error)]
pub enum Problem {
    /// It cannot be read.
    #[error("cannot be read: {0}")]
    Io(#[from] std::io::Error),
    /// It has not the form of such a file.
    #[error("{0}")]
    Syntax(String),
    /// Something is not there.
    #[error("{what} is missing; it is {allowed}")]
    Missing {
        /// The name of what is missing.
        what: String,
        /// What may stand there.
        allowed: String,
    },
    /// Something else than may be is there.
    #[error("{what} is {found}, which must be {allowed}")]
    Unexpected {
        /// The name of the value.
        what: String,
        /// What stands there.
        found: String,
        /// What may stand there.
        allowed: String,
    },
    /// There is no such key.
    #[error("unknown key {key}; there are {known}")]
    UnknownKey {
        /// The key.
        key: String,
        /// The keys of its table.
        known: String,
    },
    /// The layout is impossible.
    #[error("{0}")]
    Layout(#[from] LayoutError),
}

impl Spot {
    /// The place of byte `offset` of `text`.
    pub(crate) fn of(path: &std::path::Path, text: &str, offset: usize) -> Self {
        let before = text.get(..offset).unwrap_or(text);
        let line = 1 + before.matches('\n').count();
        let column = 1 + before.chars().rev().take_while(|&c| c != '\n').count();
        Self { path: path.to_owned(), position: Some((line, column)) }
    }

    /// All of the file.
    pub fn whole(path: &std::path::Path) -> Self {
        Self { path: path.to_owned(), position: None }
    }
}

/// The span of so many ms, to the nearest nanosecond.
pub fn millis(millis: f64) -> Nanos {
    micros(millis * 1000.0)
}

/// The span of so many µs, to the nearest nanosecond.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // keys are held against a range
pub fn micros(micros: f64) -> Nanos {
    Nanos::new((micros * 1000.0).round() as u64)
}
