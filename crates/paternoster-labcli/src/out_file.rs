//! A file that a command was told to write: opened before the work, and written when it is done.
//!
//! ```text
//!   a regular file, or nothing there   a file beside it, which takes its place when it is whole
//!   /dev/stdout, a pipe                itself
//! ```

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use tempfile::{Builder, NamedTempFile};

/// A file to write.
#[derive(Debug)]
pub(crate) struct OutFile {
    /// What it is called in messages.
    path: PathBuf,
    way: Way,
}

/// In which way it is written.
#[derive(Debug)]
enum Way {
    /// Into one beside it, which then gets its name and has these permissions.
    Beside(PathBuf, Permissions),
    Directly(File),
}

impl OutFile {
    /// Opens the file; what it has stays until it is written.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let way = way(path).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self { path: path.to_owned(), way })
    }

    /// Writes it: as a whole or not at all, if it is a regular file.
    pub(crate) fn write(self, bytes: &[u8]) -> Result<()> {
        let name = self.path.display().to_string();
        let write = |file: &mut dyn Write| Ok(file.write_all(bytes)?);
        self.write_by(write).with_context(|| format!("cannot write {name}"))
    }

    /// The same by what writes to it in pieces, and fails with an error of its own.
    pub(crate) fn write_by<T>(self, by: impl FnOnce(&mut dyn Write) -> Result<T>) -> Result<T> {
        match self.way {
            Way::Directly(mut file) => by(&mut file),
            Way::Beside(target, permissions) => {
                let mut file = beside(&target, permissions)?;
                // The file itself: an error would name the one beside it, of which nobody knows.
                let done = by(file.as_file_mut())?;
                file.persist(target).map_err(|error| error.error)?;
                Ok(done)
            }
        }
    }
}

fn way(path: &Path) -> io::Result<Way> {
    // A stream of this process may be a regular file, to which others write as well.
    let is_stream = path.starts_with("/dev") || path.starts_with("/proc");
    let (target, permissions) = match fs::metadata(path) {
        Ok(found) if found.is_file() && !is_stream => {
            (fs::canonicalize(path)?, found.permissions())
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            (path.to_owned(), Permissions::from_mode(0o666))
        }
        _ => return OpenOptions::new().append(true).open(path).map(Way::Directly),
    };
    // That there can be one beside it is seen now. It is made when it is written, so that a run
    // that is interrupted leaves none.
    drop(beside(&target, permissions.clone())?);
    Ok(Way::Beside(target, permissions))
}

/// Makes a file in the folder of the target.
fn beside(target: &Path, permissions: Permissions) -> io::Result<NamedTempFile> {
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    Builder::new().permissions(permissions).tempfile_in(folder).map_err(without_path)
}

/// What the system said, without the path of the file beside, of which nobody knows.
fn without_path(error: io::Error) -> io::Error {
    match error.to_string().rsplit_once(" at path ") {
        Some((said, _)) => io::Error::new(error.kind(), said.to_owned()),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("a folder");
        let names = entries.map(|entry| entry.expect("an entry").file_name());
        let mut names: Vec<_> = names.map(|name| name.to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn file_keeps_what_it_has_until_it_is_written_and_its_neighbours_keep_theirs() {
        let folder = tempfile::tempdir().expect("a folder");
        let [out, part] = ["out.html", "out.part"].map(|name| folder.path().join(name));
        fs::write(&out, "old").expect("a file");
        fs::set_permissions(&out, Permissions::from_mode(0o640)).expect("it is ours");
        fs::write(&part, "a neighbour").expect("a file");
        let file = OutFile::open(&out).expect("it can be written");
        assert_eq!(fs::read_to_string(&out).expect("a file"), "old");
        file.write(b"new").expect("it is written");
        assert_eq!(fs::read_to_string(&out).expect("a file"), "new");
        assert_eq!(fs::read_to_string(&part).expect("a file"), "a neighbour");
        assert_eq!(fs::metadata(&out).expect("a file").permissions().mode() & 0o777, 0o640);
        assert_eq!(names(folder.path()), ["out.html", "out.part"]);
    }

    /// A command that is interrupted drops nothing.
    #[test]
    fn file_that_is_not_written_is_not_there_nor_is_another() {
        let folder = tempfile::tempdir().expect("a folder");
        let out = OutFile::open(&folder.path().join("out.html")).expect("it can be written");
        assert_eq!(names(folder.path()), Vec::<String>::new());
        drop(out);
        assert_eq!(names(folder.path()), Vec::<String>::new());
    }

    #[test]
    fn link_stays_a_link() {
        let folder = tempfile::tempdir().expect("a folder");
        let [link, file] = ["link", "file"].map(|name| folder.path().join(name));
        fs::write(&file, "old").expect("a file");
        std::os::unix::fs::symlink("file", &link).expect("a link");
        OutFile::open(&link).and_then(|out| out.write(b"new")).expect("it is written");
        assert!(fs::symlink_metadata(&link).expect("a link").is_symlink());
        assert_eq!(fs::read_to_string(&file).expect("a file"), "new");
    }

    #[test]
    fn what_cannot_be_written_is_told_when_it_is_opened() {
        let folder = tempfile::tempdir().expect("a folder");
        for path in [folder.path().to_owned(), folder.path().join("none/out.html")] {
            let error = OutFile::open(&path).expect_err("it cannot be written").to_string();
            assert_eq!(error, format!("cannot write {}", path.display()));
        }
        let error = OutFile::open(&folder.path().join("none/out.html")).expect_err("no folder");
        let told = format!("{error:#}");
        assert!(told.ends_with("none/out.html: No such file or directory (os error 2)"), "{told}");
        OutFile::open(Path::new("/dev/null")).and_then(|out| out.write(b"")).expect("it takes it");
    }
}
