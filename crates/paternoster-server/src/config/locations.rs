//! Where the bytes of disks and volumes are, so that no two have the same.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use paternoster_disk::{NbdPlace, NbdUri};

use super::error::Problem;
use super::keys::{At, State};
use super::machine;
use super::mistakes::Mistakes;

/// The files and far exports of disks and volumes, and whose they are.
#[derive(Default)]
pub(super) struct Locations {
    files: BTreeMap<FileId, (&'static str, String)>,
    uris: BTreeMap<String, (&'static str, String)>,
    /// Servers that were asked in vain, which took long.
    pub(super) silent: Vec<NbdPlace>,
}

impl Locations {
    /// A volume is to be that file, and refused where it cannot be.
    pub(super) fn take(
        &mut self,
        (what, name): (&'static str, &str),
        path: &At<PathBuf>,
        file: Option<FileId>,
        is_written: bool,
        mistakes: &mut Mistakes,
    ) {
        let Some(file) = file else { return };
        mistakes.note(machine::check_file_access(path, is_written));
        match self.files.entry(file) {
            Entry::Vacant(free) => {
                free.insert((what, name.to_owned()));
            }
            Entry::Occupied(of) => {
                let (of, other) = of.get().clone();
                let path_shown = path.value.clone();
                let problem = Problem::SameFile { path: path_shown, of, other };
                mistakes.add(&path.place, problem);
            }
        }
    }

    /// The same of an export of another server.
    pub(super) fn take_far(
        &mut self,
        (what, name): (&'static str, &str),
        uri: Option<&NbdUri>,
        state: &State,
        mistakes: &mut Mistakes,
    ) {
        let (Some(uri), Some(place)) = (uri, state.place()) else { return };
        match self.uris.entry(uri.in_the_clear().to_string()) {
            Entry::Vacant(free) => _ = free.insert((what, name.to_owned())),
            Entry::Occupied(of) => {
                let (uri, (of, other)) = (uri.to_string(), of.get().clone());
                mistakes.add(place, Problem::SameUri { uri, of, other });
            }
        }
    }
}

/// What tells two paths of one file from those of two.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum FileId {
    /// The number of a block device.
    Device(u64),
    /// Where a file lies.
    File { device: u64, inode: u64 },
}

impl FileId {
    pub(super) fn of_file(seen: &Metadata) -> Self {
        Self::File { device: seen.dev(), inode: seen.ino() }
    }
}
