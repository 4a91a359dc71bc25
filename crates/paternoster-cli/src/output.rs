//! Standard output, of which a reader may have had enough.

use std::io::{self, Write as _};

use anyhow::{Context as _, Result};

/// Writes `text` to standard output. A reader that has gone, as `head` does, is no error.
pub(crate) fn print(text: &[u8]) -> Result<()> {
    match io::stdout().write_all(text) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot write to standard output"),
    }
}
