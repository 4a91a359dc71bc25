//! The mistakes of a configuration, collected: a check that fails does not keep the next from being
//! made.
//!
//! What depends on something that is wrong is not checked: that would only tell one mistake twice.

use super::error::{ConfigError, Mistake, Place, Problem};

/// Those found up to now.
#[derive(Debug, Default)]
pub(crate) struct Mistakes {
    found: Vec<Mistake>,
}

impl Mistakes {
    /// Notes what is wrong with a value; else the value.
    pub(super) fn note<T>(&mut self, checked: Result<T, Mistake>) -> Option<T> {
        checked.map_err(|mistake| self.found.push(mistake)).ok()
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.found.len()
    }

    pub(super) fn add(&mut self, place: &Place, problem: Problem) {
        self.found.push(place.mistake(problem));
    }

    /// Their texts without places; Ok if there are none.
    pub(super) fn problems(self) -> Result<(), String> {
        let problems: Vec<_> =
            self.found.iter().map(|mistake| mistake.problem.to_string()).collect();
        if problems.is_empty() { Ok(()) } else { Err(problems.join("; ")) }
    }

    /// What has been made of the configuration, where nothing is wrong.
    pub(super) fn end<T>(mut self, made: Option<T>) -> Result<T, ConfigError> {
        if self.found.is_empty() {
            return Ok(made.expect("what could not be made has a mistake"));
        }
        // What is missing as a whole comes last.
        self.found.sort_by_key(|mistake| match mistake.place {
            Place::Line { line, .. } => line,
            Place::File(_) | Place::Option(_) | Place::Body | Place::CommandLine => usize::MAX,
        });
        Err(ConfigError::Mistakes(self.found))
    }
}
