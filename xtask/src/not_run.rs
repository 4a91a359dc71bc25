//! What tests note that could not do what they were asked: neither a pass nor a failure.

use anyhow::{Context as _, Result};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The variable that names the file in which tests note what they could not run on this machine.
const NOT_RUN: &str = "PATERNOSTER_NOT_RUN";

/// The file in which the tests of one run note what they could not run; removed at the end.
pub(crate) struct NotedFile(PathBuf);

impl NotedFile {
    /// Names a file that does not exist yet, for the run of that name.
    pub(crate) fn new(run: &str) -> Result<Self> {
        let run = run.replace(|letter: char| !letter.is_alphanumeric(), "-");
        let name = format!("paternoster-not-run-{}-{run}", std::process::id());
        let path = std::env::temp_dir().join(name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(error).with_context(|| format!("cannot remove {}", path.display()))
            }
            _ => Ok(Self(path)),
        }
    }

    /// The variable of the environment that tells tests of it.
    pub(crate) fn variable(&self) -> (&'static str, &Path) {
        (NOT_RUN, &self.0)
    }

    /// Returns the lines that were noted.
    pub(crate) fn lines(&self) -> Result<Vec<String>> {
        match fs::read_to_string(&self.0) {
            Ok(text) => Ok(text.lines().map(str::to_owned).collect()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(vec![]),
            Err(error) => Err(error).with_context(|| format!("cannot read {}", self.0.display())),
        }
    }
}

impl Drop for NotedFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tests_note_as_not_run_is_read_and_their_file_removed() {
        let noted = NotedFile::new("a test, of it").expect("a name");
        let path = noted.0.clone();
        assert_eq!(noted.lines().expect("no file is no lines"), [""; 0]);
        fs::write(&path, "not run: a\nnot run: b\n").expect("written");
        assert_eq!(noted.lines().expect("two"), ["not run: a", "not run: b"]);
        drop(noted);
        assert!(!path.exists());
    }
}
