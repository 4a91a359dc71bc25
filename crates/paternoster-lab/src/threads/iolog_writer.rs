//! The log of the I/O that a thread issues, in fio's version 3.
//!
//! ```text
//!   fio version 3 iolog
//!   0 FILE add               when the job starts
//!   T FILE open              when a pass over the files begins, with the closes of the one before
//!   T FILE read 0 4096       when an I/O is issued
//!   T FILE close             when the job ends
//! ```

use std::collections::BTreeMap;

use paternoster::Instant;

use super::sinks::{SinkId, Sinks};
use crate::fio::{Io, Job, Jobs};

/// The log of a thread.
#[derive(Debug)]
pub(super) struct IoLogWriter {
    sink: SinkId,
    /// The names of its files, by their indices.
    files: BTreeMap<usize, String>,
    /// When the job began.
    from: Instant,
    is_open: bool,
}

impl IoLogWriter {
    /// The log of that job, if it writes one and there is a place for it.
    pub(super) fn new(job: &Job, jobs: &Jobs, sinks: &Sinks) -> Option<Self> {
        let sink = sinks.find(job.write_iolog.as_ref()?)?;
        let files = job.pattern.regions.iter().map(|region| region.file);
        let files = files.map(|file| (file, jobs.files[file].path.clone())).collect();
        Some(Self { sink, files, from: Instant::START, is_open: false })
    }

    /// The job begins.
    pub(super) fn start(&mut self, sinks: &mut Sinks, from: Instant) {
        self.from = from;
        sinks.write_line(self.sink, format_args!("fio version 3 iolog"));
        self.of_files(sinks, from, "add");
    }

    /// A pass over the files begins.
    pub(super) fn open(&mut self, sinks: &mut Sinks, now: Instant) {
        self.end(sinks, now);
        self.of_files(sinks, now, "open");
        self.is_open = true;
    }

    /// An I/O is issued.
    pub(super) fn issue(&mut self, sinks: &mut Sinks, now: Instant, io: &Io) {
        let op = io.op.name();
        let Io { file, offset, bytes, .. } = *io;
        let (stamp, name) = (self.stamp(now), &self.files[&file]);
        sinks.write_line(self.sink, format_args!("{stamp} {name} {op} {offset} {bytes}"));
    }

    /// The files are closed.
    pub(super) fn end(&mut self, sinks: &mut Sinks, now: Instant) {
        if std::mem::take(&mut self.is_open) {
            self.of_files(sinks, now, "close");
        }
    }

    fn of_files(&self, sinks: &mut Sinks, now: Instant, action: &str) {
        let stamp = self.stamp(now);
        for name in self.files.values() {
            sinks.write_line(self.sink, format_args!("{stamp} {name} {action}"));
        }
    }

    /// Whole microseconds since the job began.
    fn stamp(&self, now: Instant) -> u64 {
        now.saturating_since(self.from).as_nanos() / 1000
    }
}
