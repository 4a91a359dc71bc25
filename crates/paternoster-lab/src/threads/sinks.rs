//! Where the files go that jobs write while they run: the caller opens a place for each.

use std::fmt::{self, Arguments, Debug, Formatter};
use std::io::{self, BufWriter, Write};

use thiserror::Error;

use crate::fio::Jobs;

/// A place for each file that the jobs of a run write.
///
/// ```text
///   Jobs::written_files ──▶ Sinks::open, before the run ──▶ lines, as they come ──▶ flushed
/// ```
#[derive(Default)]
pub struct Sinks {
    sinks: Vec<Sink>,
    /// The first one.
    error: Option<SinkError>,
}

struct Sink {
    path: String,
    to: BufWriter<Box<dyn Write + Send>>,
    /// Nothing more is written after an error.
    has_failed: bool,
}

/// A place of [`Sinks`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SinkId(usize);

/// A file of a job that could not be written.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("cannot write {path}: {what}")]
pub struct SinkError {
    /// Its path.
    pub path: String,
    /// What was wrong.
    pub what: String,
}

impl Sinks {
    /// Opens a place for each file that the jobs write, by `open`, which is given its path. What
    /// is written is buffered.
    pub fn open<E>(
        jobs: &Jobs,
        mut open: impl FnMut(&str) -> Result<Box<dyn Write + Send>, E>,
    ) -> Result<Self, E> {
        let sink = |path: &str| {
            let to = BufWriter::new(open(path)?);
            Ok(Sink { path: path.to_owned(), to, has_failed: false })
        };
        let sinks = jobs.written_files().into_iter().map(sink);
        Ok(Self { sinks: sinks.collect::<Result<_, E>>()?, error: None })
    }

    /// The place for the file of that path; none where the caller gave none.
    pub(super) fn find(&self, path: &str) -> Option<SinkId> {
        self.sinks.iter().position(|sink| sink.path == path).map(SinkId)
    }

    /// Writes a line.
    pub(super) fn write_line(&mut self, SinkId(index): SinkId, line: Arguments<'_>) {
        let sink = &mut self.sinks[index];
        if !sink.has_failed {
            let written = writeln!(sink.to, "{line}");
            self.keep(index, written);
        }
    }

    /// Hands over what is buffered.
    pub(super) fn flush(&mut self) {
        for index in 0..self.sinks.len() {
            if !self.sinks[index].has_failed {
                let flushed = self.sinks[index].to.flush();
                self.keep(index, flushed);
            }
        }
    }

    /// What could not be written first.
    pub(super) fn check(&self) -> Result<(), SinkError> {
        self.error.clone().map_or(Ok(()), Err)
    }

    fn keep(&mut self, index: usize, written: io::Result<()>) {
        let Err(error) = written else { return };
        let sink = &mut self.sinks[index];
        sink.has_failed = true;
        let error = SinkError { path: sink.path.clone(), what: error.to_string() };
        self.error.get_or_insert(error);
    }
}

impl Debug for Sinks {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let paths = self.sinks.iter().map(|sink| &sink.path);
        f.debug_list().entries(paths).finish()
    }
}
