//! The answer of a command that could not do what it was asked: neither a pass nor a failure.

use std::fmt;

/// Why nothing was checked, and what would have to be there. Ends the program with status 2.
#[derive(Debug)]
pub struct NotRun(pub String);

impl fmt::Display for NotRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not run: {}", self.0)
    }
}

impl std::error::Error for NotRun {}
