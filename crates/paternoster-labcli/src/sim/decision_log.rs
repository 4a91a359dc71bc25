//! The file of `--log`: a line for each decision.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

/// The file, and the first error of writing it: a run goes on without it.
#[derive(Debug)]
pub(super) struct DecisionLog {
    path: PathBuf,
    file: BufWriter<File>,
    written: io::Result<()>,
}

impl DecisionLog {
    pub(super) fn create(path: &Path) -> Result<Self> {
        let file = File::create(path).with_context(|| cannot_write(path))?;
        Ok(Self { path: path.to_owned(), file: BufWriter::new(file), written: Ok(()) })
    }

    pub(super) fn push(&mut self, line: &str) {
        if self.written.is_ok() {
            self.written = writeln!(self.file, "{line}");
        }
    }

    pub(super) fn close(mut self) -> Result<()> {
        self.written.and_then(|()| self.file.flush()).with_context(|| cannot_write(&self.path))
    }
}

fn cannot_write(path: &Path) -> String {
    format!("cannot write {}", path.display())
}
