//! The files that a run reads and writes on the machine on which it runs: none is written that it
//! reads, and none twice.
//!
//! ```text
//!   job file, included files, logs that are replayed   read
//!   logs of I/O, logs of a run                         written, and empty from the start on
//! ```
//!
//! Paths are compared by the files that they name: [`FileKey`].

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::logs::LogKind;

/// How many links are followed to a file that is not there.
const LINKS: usize = 40;

/// What all paths of a file have in common.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum FileKey {
    /// Of a file that is there.
    Inode {
        /// The number of its file system's device.
        device: u64,
        /// Its number there.
        inode: u64,
    },
    /// Of a file that is not there yet, or of which nothing else is known: its path.
    Path(PathBuf),
}

impl FileKey {
    /// The key where nothing is known of files but their paths.
    pub fn named(path: &Path) -> Self {
        Self::Path(path.to_owned())
    }

    /// The key of a path as the machine's file systems have it.
    pub fn of(path: &Path) -> Self {
        let mut path = path.to_owned();
        for _ in 0..LINKS {
            if let Ok(file) = fs::metadata(&path) {
                return Self::Inode { device: file.dev(), inode: file.ino() };
            }
            // What is written through a link to nothing is made where it leads to.
            let Ok(target) = fs::read_link(&path) else { break };
            path = path.parent().unwrap_or(Path::new("")).join(target);
        }
        let folder = match path.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        let whole = folder.canonicalize().ok().zip(path.file_name());
        Self::Path(whole.map_or(path.clone(), |(folder, name)| folder.join(name)))
    }
}

/// What a run does with a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// It reads its jobs from there.
    Jobs,
    /// A job replays it.
    Replayed,
    /// The job of that name writes a log of its I/O there.
    IoLog(String),
    /// The job of that name writes a log of that kind there.
    RunLog(String, LogKind),
}

/// The files that a run uses so far.
pub(super) struct UsedFiles<'a> {
    key: &'a dyn Fn(&Path) -> FileKey,
    /// Each with the path under which it is used, and for what it was used first.
    used: HashMap<FileKey, (String, Use)>,
}

impl<'a> UsedFiles<'a> {
    /// None yet; `key` tells files apart.
    pub(super) fn new(key: &'a dyn Fn(&Path) -> FileKey) -> Self {
        Self { key, used: HashMap::new() }
    }

    /// One more file. What is wrong is that one use of it would spoil the other.
    pub(super) fn add(&mut self, path: &str, is_for: Use) -> Result<(), String> {
        let (known, before) = match self.used.entry((self.key)(Path::new(path))) {
            Entry::Vacant(entry) => {
                entry.insert((path.to_owned(), is_for));
                return Ok(());
            }
            Entry::Occupied(entry) => entry.into_mut(),
        };
        let file =
            if known == path { path.to_owned() } else { format!("{path}, that is {known},") };
        let what = match (&*before, &is_for) {
            (Use::Jobs | Use::Replayed, Use::Jobs | Use::Replayed) => return Ok(()),
            // Jobs share logs with `per_job_logs=0`.
            (Use::RunLog(_, kind), Use::RunLog(_, other)) if kind == other && known == path => {
                return Ok(());
            }
            (Use::Jobs, _) => format!("{file} says what the jobs are: it would be overwritten"),
            (Use::Replayed, _) => {
                format!("{file} is the log that a job replays: it would be overwritten")
            }
            (_, Use::Jobs | Use::Replayed) => {
                format!("{file} is a log that a job writes: it would be overwritten")
            }
            (Use::IoLog(job), Use::IoLog(_)) => format!(
                "{file} is the log of {job} too: each job, and each clone of numjobs, needs its \
                 own, as fio mixes them"
            ),
            (Use::IoLog(job) | Use::RunLog(job, _), _) => {
                format!("{file} is a log of {job} too: each has a file of its own, with one name")
            }
        };
        Err(what)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn paths_of_a_file_have_one_key() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        let key = |name: &str| FileKey::of(&path(name));
        fs::create_dir(path("sub")).expect("a folder of ours");
        fs::write(path("a"), "").expect("a file in it");
        fs::hard_link(path("a"), path("same")).expect("a name of it");
        symlink("../a", path("sub/link")).expect("a link to it");
        for name in ["./a", "sub/../a", "same", "sub/link"] {
            assert_eq!(key(name), key("a"), "{name}");
        }
        // What is not there is made in its folder, also through a link.
        symlink("new", path("link")).expect("a link to nothing");
        symlink("circle", path("circle")).expect("a link to itself");
        for name in ["./new", "sub/../new", "link"] {
            assert_eq!(key(name), key("new"), "{name}");
        }
        let keys = ["a", "new", "other", "sub/new", "none/new", "circle"].map(key);
        for (index, one) in keys.iter().enumerate() {
            assert!(!keys[..index].contains(one), "{one:?}");
        }
        assert_eq!(FileKey::of(Path::new("new.log")), FileKey::of(Path::new("./new.log")));
    }
}
