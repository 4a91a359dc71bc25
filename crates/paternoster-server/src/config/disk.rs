//! The disks: what stands behind each and which scheduler orders its requests.

use std::fs::Metadata;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::PathBuf;

use paternoster::{Nanos, SchedulerKind};

use super::draft::{At, Bounds, DraftDisk, check_name};
use super::error::{ConfigError, Place, Problem};
use super::size;

/// One disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskConfig {
    /// What exports and statistics call it.
    pub name: String,
    /// What stands behind it.
    pub backend: BackendConfig,
    /// What orders its requests; `cfq` where none was written.
    pub scheduler: SchedulerKind,
    /// The most requests in the device at once, 1 to 1024; what the back end says where none was
    /// written.
    pub depth: Option<u32>,
    /// Tunables of `scheduler` and their values, each in its own unit and range, none twice.
    pub tunables: Vec<(String, i64)>,
}

impl DiskConfig {
    /// The greatest `depth`.
    pub const DEPTH_MAX: u32 = 1024;
}

/// What stands behind a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BackendConfig {
    /// A raw image: `path` alone.
    File {
        /// A regular file that exists.
        path: PathBuf,
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
    },
}

impl BackendConfig {
    /// What configurations and statistics call its kind.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::File { .. } => "file",
            Self::Memory { .. } => "memory",
            Self::Modelled { .. } => "modelled",
        }
    }
}

/// A disk and what was seen while it was checked.
pub(super) struct Checked {
    pub(super) config: DiskConfig,
    /// Its bytes, at least 1.
    pub(super) size: u64,
    /// Device and inode number of its file.
    file: Option<(u64, u64)>,
}

const DEPTH: Bounds = Bounds { key: "depth", min: 1, max: DiskConfig::DEPTH_MAX, unit: "requests" };
const SERVERS: Bounds =
    Bounds { key: "servers", min: 1, max: DiskConfig::DEPTH_MAX / 2, unit: "servers" };
const SERVICE: Bounds = Bounds { key: "service_us", min: 1, max: 10_000_000, unit: "µs" };
const PER_KIB: Bounds = Bounds { key: "ns_per_kib", min: 0, max: 1_000_000, unit: "ns" };

pub(super) fn check(drafts: Vec<DraftDisk>, whole: &Place) -> Result<Vec<Checked>, ConfigError> {
    if drafts.is_empty() {
        return Err(whole.refuses(Problem::NoDisk));
    }
    let mut disks: Vec<Checked> = Vec::new();
    for draft in drafts {
        let disk = check_disk(&draft)?;
        let same = disks.iter().find(|other| disk.file.is_some() && other.file == disk.file);
        if let (Some(other), Some(path)) = (same, &draft.path) {
            let other = other.config.name.clone();
            return path.refuse(Problem::SameFile { path: path.value.clone(), other });
        }
        disks.push(disk);
    }
    Ok(disks)
}

fn check_disk(draft: &DraftDisk) -> Result<Checked, ConfigError> {
    check_name("disk", &draft.name)?;
    let scheduler = match &draft.scheduler {
        None => SchedulerKind::Cfq,
        Some(name) => {
            let parsed = name.value.parse();
            parsed.or_else(|error| name.refuse(Problem::UnknownScheduler(error)))?
        }
    };
    let depth = draft.depth.as_ref().map(|depth| DEPTH.check(depth)).transpose()?;
    let tunables = check_tunables(scheduler, &draft.tunables)?;
    let (backend, size, file) = check_backend(draft)?;
    if size == 0 {
        let place = draft.size.as_ref().map_or(&draft.name.place, |size| &size.place);
        return Err(place.refuses(Problem::EmptyDisk { disk: draft.name.value.clone() }));
    }
    let name = draft.name.value.clone();
    let config = DiskConfig { name, backend, scheduler, depth, tunables };
    Ok(Checked { config, size, file })
}

fn check_tunables(
    scheduler: SchedulerKind,
    written: &[(At<String>, At<i64>)],
) -> Result<Vec<(String, i64)>, ConfigError> {
    let mut tunables: Vec<(String, i64)> = Vec::new();
    for (name, value) in written {
        let info = scheduler
            .tunable(&name.value)
            .or_else(|error| name.refuse(Problem::UnknownTunable(error)))?;
        if info.accepts(value.value).is_err() {
            let paternoster::TunableInfo { name: key, unit, min, max, .. } = *info;
            return value.refuse(Problem::OutOfRange { key, value: value.value, min, max, unit });
        }
        if tunables.iter().any(|(other, _)| *other == name.value) {
            return name.refuse(Problem::TunableTwice { name: name.value.clone() });
        }
        tunables.push((name.value.clone(), value.value));
    }
    Ok(tunables)
}

type Backend = (BackendConfig, u64, Option<(u64, u64)>);

fn check_backend(draft: &DraftDisk) -> Result<Backend, ConfigError> {
    let name = || draft.name.value.clone();
    match (&draft.path, &draft.backend) {
        (None, None) => draft.name.refuse(Problem::NoBackend { disk: name() }),
        (Some(path), None) => {
            refuse_keys(draft, "file", &["size", "servers", "service_us", "ns_per_kib"])?;
            check_file(path)
        }
        (_, Some(backend)) => match backend.value.as_str() {
            "memory" => {
                refuse_keys(draft, "memory", &["path", "servers", "service_us", "ns_per_kib"])?;
                let size = check_size(draft, "memory")?;
                Ok((BackendConfig::Memory { size }, size, None))
            }
            "modelled" => check_modelled(draft),
            _ => backend.refuse(Problem::UnknownBackend { found: backend.value.clone() }),
        },
    }
}

fn check_modelled(draft: &DraftDisk) -> Result<Backend, ConfigError> {
    const KIND: &str = "modelled";
    refuse_keys(draft, KIND, &["path"])?;
    let size = check_size(draft, KIND)?;
    let servers = SERVERS.check(required(draft, draft.servers.as_ref(), "servers", KIND)?)?;
    let service = required(draft, draft.service_us.as_ref(), "service_us", KIND)?;
    let service = Nanos::from_micros(SERVICE.check(service)?.into());
    let per_kib = draft.ns_per_kib.as_ref().map(|found| PER_KIB.check(found)).transpose()?;
    let per_kib = per_kib.map_or(Nanos::ZERO, |nanos| Nanos::new(nanos.into()));
    Ok((BackendConfig::Modelled { size, servers, service, per_kib }, size, None))
}

fn check_size(draft: &DraftDisk, backend: &'static str) -> Result<u64, ConfigError> {
    size::check("size", required(draft, draft.size.as_ref(), "size", backend)?)
}

fn required<'a, T>(
    draft: &DraftDisk,
    found: Option<&'a At<T>>,
    key: &'static str,
    backend: &'static str,
) -> Result<&'a At<T>, ConfigError> {
    let disk = || draft.name.value.clone();
    found
        .ok_or_else(|| draft.name.place.refuses(Problem::MissingKey { disk: disk(), key, backend }))
}

/// Refuses those of `keys` that are there, as they mean nothing to this back end.
fn refuse_keys(
    draft: &DraftDisk,
    backend: &'static str,
    keys: &[&'static str],
) -> Result<(), ConfigError> {
    let places = [
        ("path", draft.path.as_ref().map(|found| &found.place)),
        ("size", draft.size.as_ref().map(|found| &found.place)),
        ("servers", draft.servers.as_ref().map(|found| &found.place)),
        ("service_us", draft.service_us.as_ref().map(|found| &found.place)),
        ("ns_per_kib", draft.ns_per_kib.as_ref().map(|found| &found.place)),
    ];
    for (key, place) in places {
        if let Some(place) = place.filter(|_| keys.contains(&key)) {
            let disk = draft.name.value.clone();
            return Err(place.refuses(Problem::UnusedKey { disk, key, backend }));
        }
    }
    Ok(())
}

fn check_file(path: &At<PathBuf>) -> Result<Backend, ConfigError> {
    let seen = std::fs::metadata(&path.value)
        .or_else(|reason| path.refuse(Problem::NoDiskFile { path: path.value.clone(), reason }))?;
    if !seen.is_file() {
        let kind = kind_of(&seen);
        return path.refuse(Problem::NotRegular { path: path.value.clone(), kind });
    }
    let backend = BackendConfig::File { path: path.value.clone() };
    Ok((backend, seen.len(), Some((seen.dev(), seen.ino()))))
}

fn kind_of(seen: &Metadata) -> &'static str {
    let kind = seen.file_type();
    match () {
        () if kind.is_dir() => "a directory",
        () if kind.is_block_device() => "a block device",
        () if kind.is_char_device() => "a character device",
        () if kind.is_socket() => "a socket",
        () => "a pipe",
    }
}
