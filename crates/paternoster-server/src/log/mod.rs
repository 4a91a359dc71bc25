//! The log on standard error: its level, its format, and how often a line is repeated.
//!
//! An event is a sentence with fields: `disk`, `export`, `peer`, `offset`, `errno` and the like. As
//! text they stand behind the sentence, as JSON beside it. Lines that clients can cause go through
//! `Limits`.
//!
//! How much is logged is said by, the first that is there:
//!
//! ```text
//!   --log LEVEL ──▶ RUST_LOG, as tracing-subscriber's EnvFilter reads it ──▶ info
//! ```

mod limit;
mod stderr;

use std::io::{self, Stderr};
use std::str::FromStr;
use std::sync::LazyLock;

use thiserror::Error;
use tracing_subscriber::EnvFilter;

pub(crate) use self::limit::Limits;
use self::stderr::Patient;

/// Where the log is written.
static STDERR: LazyLock<Patient<Stderr>> = LazyLock::new(|| Patient::new(io::stderr()));

/// The level of the log: the least severe lines that are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogLevel(&'static str);

impl LogLevel {
    /// Every level, the one with the fewest lines first.
    pub const NAMES: [&'static str; 5] = ["error", "warn", "info", "debug", "trace"];
}

/// Why a word is no level.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("error, warn, info, debug or trace is allowed")]
pub struct LogLevelError;

impl FromStr for LogLevel {
    type Err = LogLevelError;

    fn from_str(word: &str) -> Result<Self, LogLevelError> {
        Self::NAMES.into_iter().find(|name| *name == word).map(Self).ok_or(LogLevelError)
    }
}

/// The format of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// For people: time, level, sentence, fields.
    #[default]
    Text,
    /// An object a line, with `timestamp`, `level`, `message`, and the fields beside them.
    Json,
}

/// Why a word is no format.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("text or json is allowed")]
pub struct LogFormatError;

impl FromStr for LogFormat {
    type Err = LogFormatError;

    fn from_str(word: &str) -> Result<Self, LogFormatError> {
        match word {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            _ => Err(LogFormatError),
        }
    }
}

/// Logs to standard error from here on. Without a level, as much as `RUST_LOG` asks for, else what
/// is worth an operator's attention (`info`).
pub fn to_stderr(level: Option<LogLevel>, format: LogFormat) {
    let environment = std::env::var(EnvFilter::DEFAULT_ENV).unwrap_or_default();
    let (filter, misread) = filter(level, &environment);
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| &*STDERR)
        .with_target(false);
    // Where a program has its own subscriber, that one stays.
    let _ = match format {
        LogFormat::Text => subscriber.try_init(),
        LogFormat::Json => subscriber.json().flatten_event(true).try_init(),
    };
    if let Some(why) = misread {
        tracing::warn!("RUST_LOG = {environment:?}: {why}; info is logged");
    }
}

/// Logs why the program ends, which text logs say in plain words.
pub fn failure(error: &anyhow::Error) {
    tracing::error!("{error:#}");
}

/// What is logged, and why the environment's wish is not followed.
fn filter(level: Option<LogLevel>, environment: &str) -> (EnvFilter, Option<String>) {
    if let Some(LogLevel(level)) = level {
        return (EnvFilter::new(level), None);
    }
    if environment.is_empty() {
        return (EnvFilter::new("info"), None);
    }
    match EnvFilter::try_new(environment) {
        Ok(filter) => (filter, None),
        Err(error) => (EnvFilter::new("info"), Some(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn level_that_is_given_wins_over_the_environment_and_that_over_info() {
        let debug = "debug".parse().expect("a level");
        for (level, environment, expected) in
            [(Some(debug), "error", "debug"), (None, "error", "error"), (None, "", "info")]
        {
            let (filter, misread) = filter(level, environment);
            assert_eq!((filter.to_string().as_str(), misread), (expected, None));
        }
        let (filter, misread) = filter(None, "a=b=c");
        assert_eq!(filter.to_string(), "info");
        assert!(misread.is_some());
    }

    #[test]
    fn every_level_and_format_is_known_by_its_name_and_no_other_is() {
        for name in LogLevel::NAMES {
            assert_eq!(name.parse(), Ok(LogLevel(name)));
        }
        assert_eq!("loud".parse::<LogLevel>(), Err(LogLevelError));
        assert_eq!("text".parse(), Ok(LogFormat::Text));
        assert_eq!("json".parse(), Ok(LogFormat::Json));
        assert_eq!("xml".parse::<LogFormat>(), Err(LogFormatError));
    }
}
