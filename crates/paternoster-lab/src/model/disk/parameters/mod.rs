//! All that is known of a disk, whatever file it was read from.

mod from_toml;
mod keys;

use std::fmt;
use std::path::PathBuf;

use thiserror::Error;

use super::cache::Segmentation;
use super::geometry::{Layout, LayoutError};
use super::head::Begin;
use super::link::Link;
use super::ncq::QueueParameters;
use super::read_ahead::ReadAheadPolicy;
use super::seek::SeekCurve;
use super::units::Millis;
use super::write_back::WriteBackPolicy;
use crate::model::Op;

/// A disk.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameters {
    /// Its name.
    pub name: String,
    /// Where its sectors are.
    pub layout: Layout,
    /// What moves.
    pub mechanics: Mechanics,
    /// To and from the host.
    pub link: Link,
    /// What commands take beside positioning and data.
    pub overheads: Overheads,
    /// The buffer.
    pub buffer: Buffer,
    /// How it queues commands.
    pub queue: QueueParameters,
    /// What is known of single values: where they come from and how far they hold.
    pub notes: Vec<Note>,
}

/// What moves.
#[derive(Clone, Debug, PartialEq)]
pub struct Mechanics {
    /// Revolutions a minute.
    pub rpm: f64,
    /// The arm.
    pub seek: SeekCurve,
    /// From one surface to another of the same cylinder.
    pub head_switch: Millis,
    /// What seeks and switches take longer before a write; less than nothing if they are shorter.
    pub write_settle: Millis,
}

/// What commands take beside positioning and data. The pairs are for a command behind a read and
/// behind a write.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Overheads {
    /// Every command, first of all.
    pub command: Millis,
    /// A read whose data are in the buffer, before they leave.
    pub read_hit: Behind,
    /// Another read, before the head moves.
    pub read_miss: Behind,
    /// A write that ends when it is in the buffer, before its data arrive.
    pub write_hit: Behind,
    /// Another write, before its data arrive and the head moves.
    pub write_miss: Behind,
    /// A read that misses, before its data leave, while the head moves.
    pub read_disconnect: Behind,
    /// A command whose data were not at hand, before they leave, while the head moves.
    pub reselect: Millis,
    /// Any command, before its data leave or arrive, while the head moves.
    pub data_preparation: Millis,
    /// A write that ends on the medium: what its data arrive later, while the head moves.
    pub write_disconnect: Millis,
    /// The same, what the head moves later.
    pub write_seek: Millis,
    /// A read, when its data have left.
    pub read_completion: Millis,
    /// A write that ends on the medium, when it is there.
    pub write_completion: Millis,
}

/// A time that depends on the command before.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Behind {
    /// Behind a read.
    pub read: Millis,
    /// Behind a write.
    pub write: Millis,
}

impl Behind {
    /// The time behind a command of this kind.
    pub(super) fn after(self, last: Op) -> Millis {
        if last == Op::Write { self.write } else { self.read }
    }
}

/// The buffer, and what the disk does with it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Buffer {
    /// How it is divided.
    pub segmentation: Segmentation,
    /// Data in it answer reads.
    pub answers_reads: bool,
    /// Data that were written answer reads, too.
    pub answers_reads_of_written: bool,
    /// Where on the track a read begins.
    pub read_begin: Begin,
    /// Where on the track a write begins.
    pub write_begin: Begin,
    /// What part of a read has to be in the buffer before its data leave.
    pub read_mark: f64,
    /// What part of a write has to be in the buffer before it goes to the medium.
    pub write_mark: f64,
    /// The parts are of the command; otherwise of a segment.
    pub marks_of_command: bool,
    /// Reading ahead.
    pub read_ahead: ReadAheadPolicy,
    /// Writing back.
    pub write_back: WriteBackPolicy,
}

/// What is known of a value.
#[derive(Clone, Debug, PartialEq)]
pub struct Note {
    /// The value's name, as `mechanics.rpm`.
    pub key: String,
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
}

/// Why a file describes no disk.
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
    pub(super) fn of(path: &std::path::Path, text: &str, offset: usize) -> Self {
        let before = text.get(..offset).unwrap_or(text);
        let line = 1 + before.matches('\n').count();
        let column = 1 + before.chars().rev().take_while(|&c| c != '\n').count();
        Self { path: path.to_owned(), position: Some((line, column)) }
    }

    /// All of the file.
    pub(super) fn whole(path: &std::path::Path) -> Self {
        Self { path: path.to_owned(), position: None }
    }
}
