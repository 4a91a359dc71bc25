//! The directory of what was made by request and is to be there after a restart: a file for each
//! object, which a person can read, copy and mend.
//!
//! ```text
//!   state/format               1
//!   state/instance             4f5c0d6e-5f1c-4d0a-9a52-2f3c9c0e7b11
//!   state/volumes/vm7.json     {"name": "vm7", "asked": {"pool": "fast", …}, "own_group": true}
//!   state/exports/backup.json  {"name": "backup", "asked": {"volume": "vm7", …}, …}
//!   state/groups/%2Fgold.json  {"path": "/gold", "asked": {"weight": 300}}
//! ```
//!
//! A record is written beside its place, made durable and renamed: after a crash it is the old one
//! or the new one, and whole.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result, anyhow, bail};
use paternoster_disk::Fd;
use rustix::fs::{FlockOperation, flock};
use rustix::rand::{GetRandomFlags, getrandom};
use serde::Serialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use super::image::IMAGE;
use crate::passed::Passed;
use crate::sockets::Patience;
use crate::uri::encode;

/// The layout of the directory and of its files: it grows when one of them means something else.
const FORMAT: &str = "1";
const FORMAT_FILE: &str = "format";
/// The file with the UUID of the directory.
const INSTANCE: &str = "instance";
/// Where files are: the format, and the records of each kind.
pub(super) const VOLUMES: &str = "volumes";
pub(super) const EXPORTS: &str = "exports";
pub(super) const GROUPS: &str = "groups";
const DIRECTORIES: [&str; 4] = ["", VOLUMES, EXPORTS, GROUPS];
/// The longest name of a file.
const FILE_NAME_MAX: usize = 255;
/// How the name of a file begins that has not all that it is to have.
pub(super) const UNFINISHED: &str = ".new-";

/// What is recorded of an object.
pub(super) trait Record: Serialize + DeserializeOwned {
    /// What the object is called.
    fn name(&self) -> &str;
}

/// The directory, which one server has.
#[derive(Debug)]
pub(crate) struct Store {
    path: PathBuf,
    /// It is locked.
    directory: Fd,
}

/// Makes the directory of records durably, if it is not there.
pub(crate) fn make_state_dir(path: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made.and_then(|()| sync_directory_of(path)),
    }
}

impl Store {
    /// Takes the directory, and makes it if it is not there.
    pub(crate) fn open(path: &Path, passed: &Passed, patience: Patience) -> Result<Self> {
        let context = || format!("state_dir {}", path.display());
        make_state_dir(path).with_context(context)?;
        let open = passed.inherited.file(path).map(|open| Ok(open.into()));
        let directory = open.unwrap_or_else(|| File::open(path)).with_context(context)?;
        let lock = || Ok(flock(&directory, FlockOperation::NonBlockingLockExclusive)?);
        patience.lock(lock).map_err(|error| {
            let is_locked = error.kind() == io::ErrorKind::WouldBlock;
            let error = if is_locked { anyhow!("another server has it") } else { error.into() };
            error.context(context())
        })?;
        let store = Self { path: path.to_owned(), directory: Arc::new(directory.into()) };
        store.remove_unfinished().with_context(context)?;
        Ok(store)
    }

    /// The directory, whose lock goes with it.
    pub(super) fn descriptor(&self) -> Fd {
        self.directory.clone()
    }

    /// The UUID of the directory, which is made if it has none yet.
    pub(crate) fn read_or_make_instance(&self) -> Result<Uuid> {
        let path = self.path.join(INSTANCE);
        let context = || path.display().to_string();
        match fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let new = random_uuid().with_context(context)?;
                replace(&self.path, INSTANCE, format!("{new}\n").as_bytes())
                    .with_context(context)?;
                Ok(new)
            }
            found => {
                let text = found.with_context(context)?;
                let uuid = Uuid::parse_str(text.trim());
                uuid.with_context(|| format!("{}: {:?} is no UUID", context(), text.trim()))
            }
        }
    }

    /// Removes what a crash has left, which was never told to anybody.
    fn remove_unfinished(&self) -> io::Result<()> {
        for directory in DIRECTORIES.map(|directory| self.path.join(directory)) {
            let files = match fs::read_dir(directory) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                other => other?,
            };
            for file in files {
                let file = file?;
                let name = file.file_name().to_string_lossy().into_owned();
                // An image that is being made is called so too, and has an extension.
                let is_unfinished = name.starts_with(UNFINISHED) && !name.ends_with(IMAGE);
                if is_unfinished && file.file_type()?.is_file() {
                    fs::remove_file(file.path())?;
                }
            }
        }
        Ok(())
    }

    /// Makes a record durable, in place of the one that the object had.
    pub(super) fn write(&self, kind: &str, record: &impl Record) -> io::Result<()> {
        let directory = self.path.join(kind);
        let mut text = serde_json::to_vec_pretty(record)?;
        text.push(b'\n');
        let write = || replace(&directory, &file_name(record.name()), &text);
        match write() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.lay_out(&directory)?;
                write()
            }
            other => other,
        }
    }

    /// Has an object have no record.
    pub(super) fn remove(&self, kind: &str, name: &str) -> io::Result<()> {
        let path = self.path.join(kind).join(file_name(name));
        remove(&path)
    }

    /// Makes the place of records of one kind; before the first, the format is told.
    fn lay_out(&self, directory: &Path) -> io::Result<()> {
        if !self.path.join(FORMAT_FILE).exists() {
            replace(&self.path, FORMAT_FILE, format!("{FORMAT}\n").as_bytes())?;
        }
        match fs::create_dir(directory) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => sync_directory_of(directory),
        }
    }
}

/// Refuses a directory whose format is another.
pub(super) fn check_format(state: &Path) -> Result<()> {
    match fs::read_to_string(state.join(FORMAT_FILE)) {
        Ok(format) if format.trim() == FORMAT => Ok(()),
        Ok(format) => bail!(
            "state_dir {} is of format {:?}, and this is paternoster {}, which knows {FORMAT}",
            state.display(),
            format.trim(),
            env!("CARGO_PKG_VERSION")
        ),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if DIRECTORIES[1..].iter().any(|directory| state.join(directory).exists()) {
                bail!("state_dir {} has records, and no file {FORMAT_FILE:?}", state.display());
            }
            // Nothing has been recorded.
            Ok(())
        }
        Err(error) => Err(error).with_context(|| format!("state_dir {}", state.display())),
    }
}

/// Reads all records of one kind, in the order of their files' names.
pub(super) fn read<R: Record>(state: &Path, kind: &str) -> Result<Vec<R>> {
    let directory = state.join(kind);
    let files = match fs::read_dir(&directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.with_context(|| directory.display().to_string())?,
    };
    let paths = files.map(|file| file.map(|file| file.path())).collect::<io::Result<Vec<_>>>();
    let mut paths = paths.with_context(|| directory.display().to_string())?;
    paths.sort_unstable();
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    paths.retain(|path| {
        // Such as what an editor leaves.
        let is_json = path.extension().is_some_and(|extension| extension == "json");
        let is_record = is_json && !name(path).starts_with(UNFINISHED);
        if !is_record {
            tracing::warn!("{} is no record", path.display());
        }
        is_record
    });
    let read = |path: &PathBuf| {
        let record: R = serde_json::from_slice(&fs::read(path)?)?;
        let expected = file_name(record.name());
        if name(path) != expected {
            bail!("it is the record of {:?}, whose file is {expected:?}", record.name());
        }
        Ok(record)
    };
    paths.iter().map(|path| read(path).with_context(|| path.display().to_string())).collect()
}

/// Makes durable which files are in the directory of this one.
pub(super) fn sync_directory_of(path: &Path) -> io::Result<()> {
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
    File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
}

/// A UUID that nobody else has. The kernel gives the bytes by a call: a unit may hide its files.
fn random_uuid() -> io::Result<Uuid> {
    let mut bytes = uuid::Bytes::default();
    // So few come whole.
    getrandom(&mut bytes, GetRandomFlags::empty())?;
    Ok(uuid::Builder::from_random_bytes(bytes).into_uuid())
}

/// Removes a file, so that it is not there again after a crash; one that is gone may have been
/// removed by somebody whose sync failed.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    let is_gone = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    match fs::remove_file(path) {
        Err(error) if !is_gone(&error) => return Err(error),
        _ => {}
    }
    match sync_directory_of(path) {
        Err(error) if !is_gone(&error) => Err(error),
        _ => Ok(()),
    }
}

fn replace(directory: &Path, name: &str, text: &[u8]) -> io::Result<()> {
    let mut file = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(directory)?;
    file.write_all(text)?;
    file.as_file().sync_data()?;
    let path = directory.join(name);
    file.persist(&path)?;
    sync_directory_of(&path)
}

/// Whether an object of that name can have a record.
pub(super) fn takes_name(name: &str) -> bool {
    file_name(name).len() <= FILE_NAME_MAX
}

/// The file of an object.
fn file_name(name: &str) -> String {
    format!("{}.json", encode(name.as_bytes(), b""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directory_has_a_uuid_that_stays() {
        let dir = tempfile::tempdir().expect("a directory");
        let store = || Store::open(dir.path(), &Passed::default(), Patience::a_while());
        let instance = || store().and_then(|store| store.read_or_make_instance());
        let first = instance().expect("it is made");
        assert_eq!(instance().expect("it stays"), first);
        let path = dir.path().join(INSTANCE);
        fs::write(&path, "host seven\n").expect("a file");
        let why = instance().expect_err("two words").to_string();
        assert!(why.ends_with("instance: \"host seven\" is no UUID"), "{why}");
        fs::remove_file(&path).expect("it is there");
        assert_ne!(instance().expect("it is made anew"), first);
    }
}
