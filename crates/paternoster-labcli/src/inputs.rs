//! The files that a run reads: what it writes is none of them.

use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use paternoster_lab::fio::FileKey;

/// The files that were read so far.
#[derive(Debug, Default)]
pub(crate) struct Inputs {
    paths: RefCell<Vec<PathBuf>>,
}

impl Inputs {
    /// Knows that the file is read.
    pub(crate) fn add(&self, path: &Path) {
        self.paths.borrow_mut().push(path.to_owned());
    }

    /// Refuses to write a file that is read: it would be overwritten.
    pub(crate) fn check(&self, option: &str, out: &Path) -> Result<()> {
        let paths = self.paths.borrow();
        let read = paths.iter().find(|path| is_same_file(path, out));
        let name = out.display();
        ensure!(read.is_none(), "{option} {name}: that file is read, and would be overwritten");
        Ok(())
    }
}

/// Whether both are names of one regular file, of one that is not there yet too.
pub(crate) fn is_same_file(one: &Path, other: &Path) -> bool {
    let keeps = fs::metadata(one).is_ok_and(|found| found.is_file()) || !one.exists();
    keeps && FileKey::of(one) == FileKey::of(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_is_the_same_by_any_of_its_names() {
        let folder = tempfile::tempdir().expect("a folder");
        let [file, other, link, none] =
            ["file", "other", "link", "none"].map(|name| folder.path().join(name));
        fs::write(&file, "").expect("a file");
        fs::write(&other, "").expect("a file");
        std::os::unix::fs::symlink("file", &link).expect("a link");
        let indirect = folder.path().join(".").join("none");
        assert!(is_same_file(&file, &link) && is_same_file(&none, &indirect));
        assert!(!is_same_file(&file, &other) && !is_same_file(&file, &none));
        let null = Path::new("/dev/null");
        assert!(!is_same_file(null, null), "it keeps nothing that could be gone");
    }
}
