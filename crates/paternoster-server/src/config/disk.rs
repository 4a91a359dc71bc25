//! The disks and pools: what stands behind each and which scheduler orders its requests.
//!
//! ```text
//!   [disks.d]      ──▶ one volume, of its own name
//!   [pools.fast]   ──▶ its volumes ◀── [volumes.vm1], [volumes.vm2]   each an export too
//! ```

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::PathBuf;

use paternoster::Nanos;
use paternoster_disk::{CacheChoice, NbdOptions, NbdUri, block_of, device_size, is_rotational};

use super::draft::{Draft, check_name};
use super::error::{Mistake, Problem};
use super::keys::{
    At, BackendKind, DISK, DiskKeys, ExportKeys, Keys as _, Object, POOL, SchedulerWord, State,
    VOLUME,
};
use super::locations::{FileId, Locations};
use super::mistakes::Mistakes;
use super::modelled::Modelled;
use super::pool::{self, Pool};
use super::scheduler::SchedulerChoice;
use super::{Served, listen, nbd, polling};
use crate::depth::{self, Depth};

/// One disk, or a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskConfig {
    /// What exports and statistics call it.
    pub name: String,
    /// Whether it is a pool; else it is one volume, of its own name.
    pub is_pool: bool,
    /// What is set of it.
    pub keys: DiskKeys,
    /// What stands behind it. Behind a pool that is the file or server of each volume: here the
    /// directory, or a first file, or that it is servers.
    pub backend: BackendConfig,
    /// Its volumes, in the order in which they were written; at least one, or of a pool that has a
    /// directory any number.
    pub volumes: Vec<VolumeConfig>,
    /// What orders their requests.
    pub scheduler: SchedulerChoice,
}

/// A volume: all of a disk, or one of those that share a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeConfig {
    /// What exports and log lines call it.
    pub name: String,
    /// What stands behind it.
    pub backend: BackendConfig,
}

impl DiskConfig {
    /// A disk that is one volume.
    #[cfg(test)]
    pub(crate) fn whole(
        name: String,
        keys: DiskKeys,
        backend: BackendConfig,
        scheduler: SchedulerChoice,
    ) -> Self {
        let volumes = vec![VolumeConfig { name: name.clone(), backend: backend.clone() }];
        Self { name, is_pool: false, keys, backend, volumes, scheduler }
    }

    /// Returns what it is, as messages say it.
    pub(crate) fn what(&self) -> &'static str {
        if self.is_pool { POOL } else { DISK }
    }

    /// Returns what one of its volumes is, as messages say it.
    pub(crate) fn what_of_volume(&self) -> &'static str {
        if self.is_pool { VOLUME } else { DISK }
    }

    /// Tunables of the scheduler and their values, each in its own unit and range, none twice.
    pub fn tunables(&self) -> Vec<(String, i64)> {
        let tunables = self.keys.tunables.iter();
        tunables.map(|(name, value)| (name.value.clone(), value.value)).collect()
    }
}

/// The back end of a disk, as configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BackendConfig {
    /// A raw image or a block device: `path` alone.
    File {
        /// A regular file or block device that exists.
        path: PathBuf,
        /// Past the page cache, or through it; past it where that goes if none was written.
        cache: CacheChoice,
    },
    /// Memory that is zero at start and gone at the end: `backend = "memory"`.
    Memory {
        /// Bytes, at least 1.
        size: u64,
    },
    /// Memory that is as slow as a disk, for trying out weights: `backend = "modelled"`. A request
    /// of n bytes keeps one server for service + n / 1024 × `per_kib`.
    Modelled {
        /// Bytes, at least 1.
        size: u64,
        /// Requests that are served at once, 1 to 512.
        servers: u32,
        /// Fixed time of a request, 1 µs to 10 s: `service_us`.
        service: Nanos,
        /// Further time for each KiB of it, up to 1 ms; nothing where none was written:
        /// `ns_per_kib`.
        per_kib: Nanos,
        /// Time of a sync, up to 10 s: `sync_us`.
        sync: Nanos,
    },
    /// Memory that is as slow as a device of the laboratory: `backend = "modelled"`, with `model`.
    Device {
        /// Bytes, at least 1 and no more than the device has.
        size: u64,
        /// A device that comes with the laboratory, or a file of parameters: `model`.
        model: String,
    },
    /// An export of another NBD server: `backend = "nbd"`.
    Nbd {
        /// Where it is, and what becomes of lost connections.
        options: NbdOptions,
        /// Bytes, at least 1: as the server says, or where it could not be asked as is written.
        size: u64,
        /// Whether the server says that it is rotational; where it could not be asked it is not.
        rotational: bool,
    },
    /// Exports of other NBD servers, as the volumes of a pool have them.
    NbdPool,
}

impl BackendConfig {
    /// Returns the name of its kind, as in configurations and statistics.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::File { .. } => "file",
            Self::Memory { .. } => "memory",
            Self::Modelled { .. } | Self::Device { .. } => "modelled",
            Self::Nbd { .. } | Self::NbdPool => "nbd",
        }
    }

    /// Returns the path or URI that no other disk or volume may have beside it; none of memory.
    pub(crate) fn location(&self) -> Option<String> {
        match self {
            Self::File { path, .. } => Some(path.display().to_string()),
            Self::Nbd { options, .. } => Some(options.uri.to_string()),
            Self::Memory { .. } | Self::Modelled { .. } | Self::Device { .. } | Self::NbdPool => {
                None
            }
        }
    }

    /// Returns how many descriptors it has, as a volume.
    pub(crate) fn descriptors(&self) -> u32 {
        match self {
            // The thread that connects wakes the owner by one.
            Self::Nbd { options, .. } => options.connections.saturating_add(1),
            _ => 1,
        }
    }

    /// Returns the export of another server that it is, if it is one.
    pub(crate) fn uri(&self) -> Option<&NbdUri> {
        match self {
            Self::Nbd { options, .. } => Some(&options.uri),
            _ => None,
        }
    }

    /// Returns its bytes, where it is no file.
    pub(crate) fn size(&self) -> Option<u64> {
        match self {
            Self::Memory { size }
            | Self::Modelled { size, .. }
            | Self::Device { size, .. }
            | Self::Nbd { size, .. } => Some(*size),
            Self::File { .. } | Self::NbdPool => None,
        }
    }

    /// The same with so many bytes; of what has them elsewhere, as that is known to have them.
    #[must_use]
    pub(crate) fn with_size(&self, bytes: u64) -> Self {
        let mut sized = self.clone();
        match &mut sized {
            Self::Memory { size }
            | Self::Modelled { size, .. }
            | Self::Device { size, .. }
            | Self::Nbd { size, .. } => *size = bytes,
            Self::File { .. } | Self::NbdPool => {}
        }
        sized
    }

    /// The ops a second that a modelled disk does in reads of 4 KiB, each of which counts as one
    /// and a quarter.
    pub(crate) fn modelled_ops(&self) -> Option<u64> {
        let Self::Modelled { servers, service, per_kib, .. } = self else { return None };
        let nanos = service.as_nanos() + 4 * per_kib.as_nanos();
        Some(u64::from(*servers) * 1_250_000_000 / nanos)
    }
}

/// A disk or pool, and what was seen while it was checked.
pub(super) struct Checked {
    pub(super) name: String,
    pub(super) is_pool: bool,
    /// None if something is wrong with it.
    pub(super) config: Option<DiskConfig>,
    pub(super) volumes: Vec<CheckedVolume>,
}

/// A volume, and what was seen of it.
pub(super) struct CheckedVolume {
    pub(super) name: String,
    /// Its bytes, at least 1; none if that cannot be known.
    pub(super) size: Option<u64>,
    /// Bytes of its blocks, if that is known.
    pub(super) block: Option<u32>,
    /// Which file it is.
    pub(super) file: Option<FileId>,
}

impl Checked {
    /// What it is, as messages say it.
    pub(super) fn what(&self) -> &'static str {
        if self.is_pool { POOL } else { DISK }
    }

    /// What one of its volumes is, as messages say it.
    pub(super) fn what_of_volume(&self) -> &'static str {
        if self.is_pool { VOLUME } else { DISK }
    }
}

/// What is there beside the disks that are checked.
#[derive(Clone, Copy)]
pub(super) struct Beside<'a> {
    /// What a server has that reads its file again.
    pub(super) served: Served<'a>,
    /// Where clients connect.
    pub(super) sockets: &'a listen::Checked,
}

/// The disks, in the order in which they were written, whatever is wrong with them.
pub(super) fn check(whole: &Draft, beside: Beside<'_>, mistakes: &mut Mistakes) -> Vec<Checked> {
    if whole.disks.is_empty() && !whole.has_gaps {
        mistakes.add(&whole.whole, Problem::NoDisk);
    }
    let mut disks: Vec<Checked> = Vec::new();
    let mut locations = Locations::default();
    for draft in &whole.disks {
        let disk = check_disk(draft, whole, beside, &mut locations, mistakes);
        if let Some(other) = disks.iter().find(|other| other.name == disk.name) {
            let (name, what, other) = (disk.name.clone(), disk.what(), other.what());
            mistakes.add(&draft.name.place, Problem::DiskAndPool { name, what, other });
        }
        disks.push(disk);
    }
    disks
}

fn path_of(draft: &Object<DiskKeys>) -> Option<At<PathBuf>> {
    let (value, place) = (draft.keys.path.clone()?, draft.states.path.place()?.clone());
    Some(At { value, place })
}

fn check_disk(
    draft: &Object<DiskKeys>,
    whole: &Draft,
    beside: Beside<'_>,
    locations: &mut Locations,
    mistakes: &mut Mistakes,
) -> Checked {
    let before = mistakes.count();
    let Object { name, keys, states, kind, .. } = draft;
    let is_pool = *kind == POOL;
    let what = if is_pool { POOL } else { DISK };
    mistakes.note(check_name(what, name));
    if name.value.starts_with('/') {
        let disk = name.value.clone();
        mistakes.add(&name.place, Problem::DiskAsGroup { what, disk });
    }
    let Pool { volumes: behind, backend: of_pool, rotational: rotates } = if is_pool {
        pool::check(draft, whole, beside, locations, mistakes)
    } else {
        let writes = |export: &Object<ExportKeys>| {
            export.keys.disk.as_ref() == Some(&name.value) && export.may_write()
        };
        let is_written = whole.exports.iter().any(writes);
        let behind = check_backend(draft, beside, is_written, locations, mistakes);
        if let Some(path) = path_of(draft) {
            locations.take((what, &name.value), &path, behind.file, is_written, mistakes);
        }
        locations.take_far((what, &name.value), keys.uri.as_ref(), &states.uri, mistakes);
        if behind.size == Some(0) {
            let place = states.size.place().unwrap_or(&name.place);
            mistakes.add(place, Problem::EmptyDisk { what, disk: name.value.clone() });
        }
        Pool { volumes: vec![(name.value.clone(), behind)], ..Pool::default() }
    };
    let of_volumes = behind.iter().map(|(_, behind)| behind.rotational);
    let rotational = of_volumes.reduce(|one, other| Some(one? || other?)).unwrap_or(rotates);
    let rotational = keys.rotational.or(rotational).filter(|_| !states.rotational.is_wrong());
    let scheduler = choice(draft, rotational);
    check_live(draft, scheduler, mistakes);
    let (mut volumes, mut configs) = (Vec::new(), Some(Vec::new()));
    for (name, Behind { backend, size, block, file, .. }) in behind {
        let config = backend.map(|backend| VolumeConfig { name: name.clone(), backend });
        configs = configs.zip(config).map(|(mut all, one)| {
            all.push(one);
            all
        });
        volumes.push(CheckedVolume { name, size: size.filter(|&size| size > 0), block, file });
    }
    let config = configs.zip(scheduler).filter(|_| mistakes.count() == before);
    let config = config.and_then(|(volumes, scheduler)| {
        let backend = of_pool.or_else(|| Some(volumes.first()?.backend.clone()))?;
        let size = if is_pool { None } else { backend.size() };
        // What is so without being written.
        let kind = keys.backend.filter(|kind| *kind != BackendKind::File);
        let polling = keys.polling.in_force();
        let keys = DiskKeys { size, polling, backend: kind, ..keys.clone() };
        Some(DiskConfig { name: name.value.clone(), is_pool, keys, backend, volumes, scheduler })
    });
    Checked { name: name.value.clone(), is_pool, config, volumes }
}

/// What orders the requests of a disk, as far as that is known.
pub(super) fn choice(
    draft: &Object<DiskKeys>,
    rotational: Option<bool>,
) -> Option<SchedulerChoice> {
    let scheduler = match (draft.keys.scheduler, rotational) {
        (SchedulerWord::Named(kind), _) => Some(SchedulerChoice::Named(kind)),
        // It is for `auto` to choose, and what the disk is may be unknown.
        (SchedulerWord::Auto, known) => {
            known.map(|rotational| SchedulerChoice::Auto { rotational })
        }
    };
    scheduler.filter(|_| !draft.states.scheduler.is_wrong())
}

/// Notes what is wrong with the keys that may change, beside one another and under the scheduler
/// if that is known.
pub(super) fn check_live(
    draft: &Object<DiskKeys>,
    scheduler: Option<SchedulerChoice>,
    mistakes: &mut Mistakes,
) {
    polling::check(draft, mistakes);
    let (Some(scheduler), Object { keys, states, .. }) = (scheduler, draft) else { return };
    let kind = scheduler.kind();
    if let (Some(_), Err(error)) = (keys.hierarchy, kind.check_hierarchy()) {
        let problem = scheduler.explain(Problem::NoHierarchy(error));
        mistakes.note(states.hierarchy.refuse(problem));
    }
    if keys.depth == Some(Depth::Learned) && !depth::learns(kind) {
        let problem = scheduler.explain(Problem::LearnsNoDepth { scheduler: kind });
        mistakes.note(states.depth.refuse(problem));
    }
    scheduler.check_tunables(&keys.tunables, mistakes);
}

/// What stands behind a disk, as far as that can be known.
#[derive(Default)]
pub(super) struct Behind {
    pub(super) backend: Option<BackendConfig>,
    /// In bytes.
    pub(super) size: Option<u64>,
    /// Bytes of its blocks.
    block: Option<u32>,
    /// Which file it is.
    pub(super) file: Option<FileId>,
    /// Whether it is rotational.
    rotational: Option<bool>,
}

impl Behind {
    /// The same with blocks of so many bytes, if that is known.
    pub(super) fn with_block(self, block: Option<u32>) -> Self {
        Self { block, ..self }
    }

    /// What is no file of this machine.
    pub(super) fn no_file(
        backend: Option<BackendConfig>,
        size: Option<u64>,
        rotational: bool,
    ) -> Self {
        Self { backend, size, block: None, file: None, rotational: Some(rotational) }
    }
}

fn check_backend(
    draft: &Object<DiskKeys>,
    beside: Beside<'_>,
    is_written: bool,
    locations: &mut Locations,
    mistakes: &mut Mistakes,
) -> Behind {
    let of_kind = |kind| OfKind { draft, kind };
    let (keys, states) = (&draft.keys, &draft.states);
    match keys.backend {
        Some(kind @ BackendKind::Memory) => {
            let check = of_kind(kind.name());
            check.refuse_others(mistakes);
            let size = check.required("size", keys.size, &states.size, mistakes);
            Behind::no_file(size.map(|size| BackendConfig::Memory { size }), size, false)
        }
        Some(kind @ BackendKind::Modelled) => {
            let check = of_kind(kind.name());
            let size = check.required("size", keys.size, &states.size, mistakes);
            let device = Modelled::of(check, is_written, mistakes);
            if let Err(problem) = device.check_bytes(size.unwrap_or_default()) {
                mistakes.note(states.size.refuse(problem));
            }
            device.behind(size)
        }
        Some(kind @ BackendKind::Nbd) => {
            let check = of_kind(kind.name());
            check.refuse_others(mistakes);
            nbd::check_disk(check, beside, is_written, locations, mistakes)
        }
        None if states.backend.is_wrong() => Behind::default(),
        None | Some(BackendKind::File) => {
            if states.path.is_missing() && !draft.has_gaps {
                let disk = draft.name.value.clone();
                mistakes.add(&draft.name.place, Problem::NoBackend { disk });
            }
            let Some(path) = path_of(draft) else { return Behind::default() };
            of_kind("file").refuse_others(mistakes);
            look_at_all(&path, keys.cache, &states.cache, mistakes)
        }
    }
}

/// What a file of a disk or volume is.
pub(super) fn look_at_all(
    path: &At<PathBuf>,
    cache: CacheChoice,
    written: &State,
    mistakes: &mut Mistakes,
) -> Behind {
    let mut behind = mistakes.note(look_at(path, cache)).unwrap_or_default();
    if behind.file.is_some() {
        behind.block = mistakes.note(look_at_blocks(path, cache, written)).flatten();
    }
    behind
}

/// A disk of this kind of back end.
#[derive(Clone, Copy)]
pub(super) struct OfKind<'a> {
    pub(super) draft: &'a Object<DiskKeys>,
    pub(super) kind: &'static str,
}

impl OfKind<'_> {
    /// The value of a key that has to be there.
    pub(super) fn required<T>(
        self,
        key: &'static str,
        value: Option<T>,
        state: &State,
        mistakes: &mut Mistakes,
    ) -> Option<T> {
        let Self { draft, kind: backend } = self;
        if state.is_missing() && !draft.has_gaps {
            let (what, disk) = (draft.kind, draft.name.value.clone());
            mistakes.add(&draft.name.place, Problem::MissingKey { what, disk, key, backend });
        }
        value
    }

    /// Refuses the keys that are there for other back ends than this one.
    pub(super) fn refuse_others(self, mistakes: &mut Mistakes) {
        let Self { draft, kind: backend } = self;
        // Those of pools are refused with the pool.
        for key in DiskKeys::KEYS.iter().filter(|_| draft.kind != POOL) {
            if !key.is_of(backend) {
                let (disk, key) = (draft.name.value.clone(), key.name);
                mistakes.note(draft.state(key).refuse(Problem::UnusedKey { disk, key, backend }));
            }
        }
    }
}

fn look_at(path: &At<PathBuf>, cache: CacheChoice) -> Result<Behind, Mistake> {
    let no_file =
        |reason| path.place.mistake(Problem::NoDiskFile { path: path.value.clone(), reason });
    let seen = std::fs::metadata(&path.value).map_err(no_file)?;
    let is_device = seen.file_type().is_block_device();
    let size = if is_device { device_size(&seen) } else { Some(seen.len()) };
    if size.is_none() {
        return Err(no_file(io::Error::other("sysfs has not its size")));
    }
    if !seen.is_file() && !is_device {
        let kind = kind_of(&seen);
        return path.refuse(Problem::NotADisk { path: path.value.clone(), kind });
    }
    let file = if is_device { FileId::Device(seen.rdev()) } else { FileId::of_file(&seen) };
    Ok(Behind {
        backend: Some(BackendConfig::File { path: path.value.clone(), cache }),
        size,
        block: None,
        file: Some(file),
        rotational: Some(is_rotational(&path.value, &seen).yes),
    })
}

/// The blocks of a disk's file, unless it cannot be opened, which is told elsewhere.
fn look_at_blocks(
    path: &At<PathBuf>,
    cache: CacheChoice,
    written: &State,
) -> Result<Option<u32>, Mistake> {
    match (block_of(&path.value, cache), written.place()) {
        (Ok(block), _) => Ok(Some(block)),
        (Err(reason), Some(place))
            if cache == CacheChoice::Direct && block_of(&path.value, CacheChoice::Page).is_ok() =>
        {
            Err(place.mistake(Problem::NoDirect { path: path.value.clone(), reason }))
        }
        (Err(_), _) => Ok(None),
    }
}

fn kind_of(seen: &Metadata) -> &'static str {
    let kind = seen.file_type();
    match () {
        () if kind.is_dir() => "a directory",
        () if kind.is_char_device() => "a character device",
        () if kind.is_socket() => "a socket",
        () => "a pipe",
    }
}
