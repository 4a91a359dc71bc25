//! Traces of each format, and what is known of them from elsewhere: tests/data/README.md.

mod convert;
mod events;
mod faults;
mod formats;
mod recorded;

use std::fs;
use std::path::{Path, PathBuf};

use paternoster::Op;
use paternoster_intake::{Findings, Format, Options, Request, Trace, Warning};
use tempfile::TempDir;

pub(crate) fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

/// All of a trace.
pub(crate) struct Read {
    pub(crate) format: Format,
    pub(crate) requests: Vec<Request>,
    pub(crate) findings: Findings,
}

impl Read {
    pub(crate) fn warnings(&self) -> Vec<&'static str> {
        self.findings.warnings().iter().map(Warning::kind).collect()
    }

    pub(crate) fn of_op(&self, op: Op) -> usize {
        self.requests.iter().filter(|request| request.op == op).count()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.requests.iter().map(|request| request.len).sum()
    }
}

pub(crate) fn try_read(path: &Path, options: &Options) -> Result<Read, String> {
    let said = |error: paternoster_intake::Error| error.to_string();
    let mut trace = Trace::open(path, options).map_err(said)?;
    let format = trace.format();
    let mut requests = Vec::new();
    while let Some(request) = trace.next_request().map_err(said)? {
        requests.push(request);
    }
    Ok(Read { format, requests, findings: trace.finish() })
}

pub(crate) fn read(path: &Path) -> Read {
    try_read(path, &Options::default()).expect("it is a trace")
}

/// A trace of that text.
pub(crate) fn written(text: impl AsRef<[u8]>) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("trace");
    fs::write(&path, text).expect("a file");
    (folder, path)
}

pub(crate) fn read_text(text: impl AsRef<[u8]>) -> Result<Read, String> {
    let (_folder, path) = written(text);
    try_read(&path, &Options::default())
}

pub(crate) fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values[values.len() / 2]
}
