//! Which scheduler a run has, as one word: `cfq`, or `cfq:slice_idle=0,quantum=16`.

use std::fmt;
use std::str::FromStr;

use paternoster::{SchedulerKind, TunableError, UnknownScheduler};
use thiserror::Error;

/// A scheduler with the tunables that are set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scheduler {
    /// Which it is.
    pub kind: SchedulerKind,
    /// By their names in sysfs, in the order in which they are set.
    pub tunables: Vec<(String, i64)>,
}

/// The error for a word that names no scheduler with its tunables.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SchedulerError {
    /// There is no such scheduler.
    #[error(transparent)]
    Unknown(#[from] UnknownScheduler),
    /// It has no such tunable, or that does not take the value.
    #[error(transparent)]
    Tunable(#[from] TunableError),
    /// Something behind the colon is no tunable with a value.
    #[error("{found:?} is not of the form NAME=VALUE")]
    Form {
        /// What it is.
        found: String,
    },
}

impl From<SchedulerKind> for Scheduler {
    /// Without tunables of its own.
    fn from(kind: SchedulerKind) -> Self {
        Self { kind, tunables: Vec::new() }
    }
}

impl FromStr for Scheduler {
    type Err = SchedulerError;

    fn from_str(word: &str) -> Result<Self, SchedulerError> {
        let (name, settings) = word.split_once(':').unwrap_or((word, ""));
        let kind: SchedulerKind = name.parse()?;
        let settings = settings.split(',').filter(|setting| !setting.is_empty());
        let tunables = settings.map(|setting| {
            let form = || SchedulerError::Form { found: setting.to_owned() };
            let (name, value) = setting.split_once('=').ok_or_else(form)?;
            Ok((name.to_owned(), kind.tunable(name)?.parse(value)?))
        });
        Ok(Self { kind, tunables: tunables.collect::<Result<_, SchedulerError>>()? })
    }
}

impl fmt::Display for Scheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.name())?;
        for (index, (name, value)) in self.tunables.iter().enumerate() {
            let before = if index == 0 { ':' } else { ',' };
            let info = self.kind.tunable(name).map_err(|_| fmt::Error)?;
            write!(f, "{before}{name}={}", info.shown(*value))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scheduler_is_written_as_it_is_read() {
        for word in ["none", "cfq", "cfq:slice_idle=0,quantum=16", "wfq:cost=bytes"] {
            let scheduler: Scheduler = word.parse().expect("it is one");
            assert_eq!(scheduler.to_string(), word);
        }
    }

    #[test]
    fn word_that_is_no_scheduler_is_told_what_is_wrong() {
        let error = |word: &str| word.parse::<Scheduler>().expect_err("it is wrong").to_string();
        assert!(error("sfq").starts_with("there is no scheduler \"sfq\"; there are: none, "));
        assert_eq!(error("cfq:quantum"), "\"quantum\" is not of the form NAME=VALUE");
        assert!(error("cfq:depht=3").contains("depht"), "{}", error("cfq:depht=3"));
    }
}
