//! Why a trace cannot be read: what was found, where, and what is allowed.

use std::fmt;
use std::io;

/// A place in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A line of a text, from 1.
    Line(u64),
    /// A byte of a binary file, from 0.
    Byte(u64),
    /// The file as a whole.
    File,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => write!(f, "line {line}: "),
            Self::Byte(byte) => write!(f, "byte {byte}: "),
            Self::File => Ok(()),
        }
    }
}

/// Why a trace cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be read, or not be decompressed.
    #[error("{0}")]
    Unreadable(#[from] io::Error),
    /// Something in it is not what its format allows.
    #[error("{place}{what}")]
    Malformed {
        /// Where that is.
        place: Place,
        /// What was found, and what is allowed.
        what: String,
    },
}

impl Error {
    /// Something at that place is not allowed.
    pub(crate) fn at(place: Place, what: impl Into<String>) -> Self {
        Self::Malformed { place, what: what.into() }
    }
}
