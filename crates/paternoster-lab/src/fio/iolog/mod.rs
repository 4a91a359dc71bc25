//! Logs of I/O, as fio's `write_iolog` writes and its `read_iolog` replays them.
//!
//! ```text
//!   fio version 3 iolog                 the line says of which version the log is
//!   0 /a add                            files are added, opened and closed
//!   204 /a open                         each line with its time, in µs since the start
//!   208 /a read 0 4096
//!   10208 /a sync 0 0
//! ```
//!
//! A log is read twice, in pieces: `check` looks at every line before the run, and `replay` reads
//! them again when their time has come: what the run was made for holds then too, or the run fails.
//! Memory holds the names of its files, and no lines.

mod check;
mod replay;
mod rules;
mod source;

use std::collections::HashMap;
use std::sync::Arc;

use paternoster_intake::iolog::Version;

use super::command_priority::CommandPriorities;
use super::error::Place;
use super::job::DataDirection;

pub(super) use check::{Checked, check};
pub(crate) use replay::{Entry, Replay, Step, Timing};
pub(super) use rules::{Rules, Skips};
pub use source::ReadAt;

/// A log that a job replays.
#[derive(Clone, Debug)]
pub struct IoLog {
    source: Arc<dyn ReadAt>,
    path: Arc<str>,
    version: Version,
    lines: u32,
    bytes: u64,
    directions: [bool; 3],
    first_wait: Option<Place>,
    rules: Rules,
    files: Arc<HashMap<String, LogFile>>,
    /// Which of its I/Os have a priority of their own, with the seed of what is drawn for that.
    priorities: CommandPriorities,
    seed: u64,
}

/// A file of a log.
#[derive(Clone, Copy, Debug)]
struct LogFile {
    /// Its index in `Jobs::files`.
    index: usize,
    /// Where the I/O ends that goes farthest, in bytes.
    end: u64,
}

impl IoLog {
    /// The log as it is replayed; `index` knows the files by the names that the log has for them.
    pub(super) fn new(
        checked: &Checked,
        rules: Rules,
        index: impl Fn(&str) -> usize,
        priorities: CommandPriorities,
        seed: u64,
    ) -> Self {
        let files = checked.files.iter();
        let files =
            files.map(|(name, file)| (name.clone(), LogFile { index: index(name), end: file.end }));
        Self {
            source: Arc::clone(&checked.source),
            path: Arc::clone(&checked.path),
            version: checked.version,
            lines: checked.lines,
            bytes: checked.bytes,
            directions: checked.directions,
            first_wait: checked.first_wait.clone(),
            rules,
            files: Arc::new(files.collect()),
            priorities,
            seed,
        }
    }

    /// Its path, as it was given.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Where a wait of version 2 stands for which something waits: fio and its HOWTO have them
    /// otherwise, and they are as fio has them.
    pub fn first_wait(&self) -> Option<&Place> {
        self.first_wait.as_ref().filter(|_| !self.rules.no_stall)
    }

    /// Whether any of its I/O that is replayed has that direction.
    pub fn does(&self, direction: DataDirection) -> bool {
        self.directions[direction as usize]
    }
}
