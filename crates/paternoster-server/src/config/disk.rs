//! The disks: what stands behind each and which scheduler orders its requests.

use std::fs::Metadata;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::PathBuf;

use paternoster::{Hierarchy, Nanos};
use paternoster_disk::{CacheChoice, NbdOptions, block_of, device_size, is_rotational};
use paternoster_model::{Model as _, Op, open_device};

use super::draft::{At, Bounds, Draft, DraftDisk, DraftExport, Key, check_name};
use super::error::{Mistake, Problem};
use super::mistakes::Mistakes;
use super::polling::{self, Polling};
use super::scheduler::{AUTO, SchedulerChoice};
use super::size;
use super::threads::check_plug;
use super::{listen, machine, nbd};
use crate::depth;

/// One disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskConfig {
    /// What exports and statistics call it.
    pub name: String,
    /// What stands behind it.
    pub backend: BackendConfig,
    /// What orders its requests; `auto` where none was written.
    pub scheduler: SchedulerChoice,
    /// In what way groups share the disk; as in Linux where none was written. Only `cfq` has one.
    pub hierarchy: Option<Hierarchy>,
    /// The most requests in the device at once, 1 to 1024; what the back end says where none was
    /// written.
    pub depth: Option<u32>,
    /// Whether connection threads hold bios back in plugs; where there are such threads.
    pub plug: bool,
    /// How the disk's thread waits.
    pub poll: Polling,
    /// How long a processor that idles may take to wake up, in µs; as the machine has it where none
    /// was written.
    pub cpu_dma_latency: Option<u32>,
    /// Whether it seeks; as its device says where none was written.
    pub rotational: Option<bool>,
    /// Tunables of `scheduler` and their values, each in its own unit and range, none twice.
    pub tunables: Vec<(String, i64)>,
}

impl DiskConfig {
    /// The greatest `depth`.
    pub const DEPTH_MAX: u32 = 1024;
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
}

impl BackendConfig {
    /// Returns the name of its kind, as in configurations and statistics.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::File { .. } => "file",
            Self::Memory { .. } => "memory",
            Self::Modelled { .. } | Self::Device { .. } => "modelled",
            Self::Nbd { .. } => "nbd",
        }
    }

    /// The ops a second that a modelled disk does in reads of 4 KiB, each of which counts as one
    /// and a quarter.
    pub(crate) fn modelled_ops(&self) -> Option<u64> {
        let Self::Modelled { servers, service, per_kib, .. } = self else { return None };
        let nanos = service.as_nanos() + 4 * per_kib.as_nanos();
        Some(u64::from(*servers) * 1_250_000_000 / nanos)
    }
}

/// A disk and what was seen while it was checked.
pub(super) struct Checked {
    pub(super) name: String,
    /// None if something is wrong with it.
    pub(super) config: Option<DiskConfig>,
    /// Its bytes, at least 1; none if that cannot be known.
    pub(super) size: Option<u64>,
    /// Bytes of its blocks, if that is known.
    pub(super) block: Option<u32>,
    /// Which file it is.
    pub(super) file: Option<FileId>,
}

const CPU_DMA_LATENCY: Bounds =
    Bounds { key: "cpu_dma_latency", min: 0, max: 1_000_000, unit: "µs" };
const DEPTH: Bounds = Bounds { key: "depth", min: 1, max: DiskConfig::DEPTH_MAX, unit: "requests" };
const SERVERS: Bounds =
    Bounds { key: "servers", min: 1, max: DiskConfig::DEPTH_MAX / 2, unit: "servers" };
const SERVICE: Bounds = Bounds { key: "service_us", min: 1, max: 10_000_000, unit: "µs" };
const PER_KIB: Bounds = Bounds { key: "ns_per_kib", min: 0, max: 1_000_000, unit: "ns" };

/// Bytes of a sector.
const SECTOR: u64 = 512;

/// What is there beside the disks that are checked.
#[derive(Clone, Copy)]
pub(super) struct Beside<'a> {
    /// Those of a server that reads its file again.
    pub(super) served: &'a [DiskConfig],
    /// Where clients connect.
    pub(super) sockets: &'a listen::Checked,
}

/// The disks, in the order in which they were written, whatever is wrong with them.
pub(super) fn check(whole: &Draft, beside: Beside<'_>, mistakes: &mut Mistakes) -> Vec<Checked> {
    if whole.disks.is_empty() && !whole.has_gaps {
        mistakes.add(&whole.whole, Problem::NoDisk);
    }
    let mut disks: Vec<Checked> = Vec::new();
    for draft in &whole.disks {
        let name = &draft.name.value;
        let is_written = whole.exports.iter().any(|export| may_write(export, name));
        let disk = check_disk(draft, beside, is_written, mistakes);
        if let (Some(_), Some(path)) = (disk.file, draft.path.value()) {
            mistakes.note(machine::check_file_access(path, is_written));
        }
        mistakes.note(nbd::check_alone(draft, &disk, &disks));
        let same = disks.iter().find(|other| disk.file.is_some() && other.file == disk.file);
        if let (Some(other), Some(At { value, place })) = (same, draft.path.value()) {
            let (path, other) = (value.clone(), other.name.clone());
            mistakes.add(place, Problem::SameFile { path, other });
        }
        disks.push(disk);
    }
    disks
}

/// Returns whether clients of the export may write to this disk, as far as that is known.
fn may_write(export: &DraftExport, disk: &str) -> bool {
    export.disk.value().is_some_and(|written| written.value == disk) && export.may_write()
}

fn check_disk(
    draft: &DraftDisk,
    beside: Beside<'_>,
    is_written: bool,
    mistakes: &mut Mistakes,
) -> Checked {
    let name = mistakes.note(check_name("disk", &draft.name));
    let Behind { backend, size, block, file, rotational } =
        check_backend(draft, beside, is_written, mistakes);
    let set = draft.rotational.check_or(None, mistakes, |found| Ok(found.value));
    let rotational = set.flatten().or(rotational);
    let auto = rotational.map(|rotational| SchedulerChoice::Auto { rotational });
    let scheduler = draft.scheduler.check_or(auto, mistakes, |name| check_scheduler(auto, name));
    let scheduler = scheduler.flatten();
    let hierarchy = draft.hierarchy.check(mistakes, |name| check_hierarchy(scheduler, name));
    let depth = draft.depth.check(mistakes, |depth| DEPTH.check(depth));
    let plug = check_plug(&draft.plug, mistakes);
    let poll = polling::check(draft, mistakes);
    let latency = draft.cpu_dma_latency.check(mistakes, |latency| CPU_DMA_LATENCY.check(latency));
    let tunables = scheduler.map(|scheduler| check_tunables(scheduler, &draft.tunables, mistakes));
    if size == Some(0) {
        let place = draft.size.value().map_or(&draft.name.place, |size| &size.place);
        mistakes.add(place, Problem::EmptyDisk { disk: draft.name.value.clone() });
    }
    let config = || {
        name?;
        Some(DiskConfig {
            name: draft.name.value.clone(),
            backend: backend?,
            scheduler: scheduler?,
            hierarchy: hierarchy?,
            depth: depth?,
            plug: plug?,
            poll: poll?,
            cpu_dma_latency: latency?,
            rotational: set?,
            tunables: tunables?,
        })
    };
    let name = draft.name.value.clone();
    Checked { name, config: config(), size: size.filter(|&size| size > 0), block, file }
}

/// The scheduler of that name. None if it is for `auto` to choose, and what the disk is unknown.
fn check_scheduler(
    auto: Option<SchedulerChoice>,
    name: &At<String>,
) -> Result<Option<SchedulerChoice>, Mistake> {
    if name.value == AUTO {
        return Ok(auto);
    }
    match name.value.parse() {
        Ok(kind) => Ok(Some(SchedulerChoice::Named(kind))),
        Err(error) => name.refuse(Problem::UnknownScheduler(error)),
    }
}

/// The hierarchy of that name, if the scheduler, as far as it is known, has it.
fn check_hierarchy(
    scheduler: Option<SchedulerChoice>,
    name: &At<String>,
) -> Result<Hierarchy, Mistake> {
    let hierarchy =
        name.value.parse().or_else(|error| name.refuse(Problem::UnknownHierarchy(error)))?;
    let Some(scheduler) = scheduler else { return Ok(hierarchy) };
    match scheduler.kind().check_hierarchy() {
        Ok(()) => Ok(hierarchy),
        Err(error) => name.refuse(scheduler.explain(Problem::NoHierarchy(error))),
    }
}

/// Those of the tunables that are right.
fn check_tunables(
    scheduler: SchedulerChoice,
    written: &[(At<String>, At<i64>)],
    mistakes: &mut Mistakes,
) -> Vec<(String, i64)> {
    let mut tunables: Vec<(String, i64)> = Vec::new();
    for (name, value) in written {
        let checked = check_tunable(scheduler, name, value).and_then(|()| {
            if tunables.iter().any(|(other, _)| *other == name.value) {
                return name.refuse(Problem::TunableTwice { name: name.value.clone() });
            }
            Ok((name.value.clone(), value.value))
        });
        tunables.extend(mistakes.note(checked));
    }
    tunables
}

fn check_tunable(
    scheduler: SchedulerChoice,
    name: &At<String>,
    value: &At<i64>,
) -> Result<(), Mistake> {
    if depth::is_tunable(scheduler.kind(), &name.value) {
        return name.refuse(Problem::DepthAsTunable);
    }
    let info = depth::other_tunable(scheduler.kind(), &name.value)
        .or_else(|error| name.refuse(scheduler.explain(Problem::UnknownTunable(error))))?;
    if info.accepts(value.value).is_err() {
        let paternoster::TunableInfo { name: key, unit, min, max, .. } = *info;
        return value.refuse(Problem::OutOfRange { key, value: value.value, min, max, unit });
    }
    Ok(())
}

/// What stands behind a disk, as far as that can be known.
#[derive(Default)]
pub(super) struct Behind {
    backend: Option<BackendConfig>,
    /// In bytes.
    size: Option<u64>,
    /// Bytes of its blocks.
    block: Option<u32>,
    /// Which file it is.
    file: Option<FileId>,
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
    draft: &DraftDisk,
    beside: Beside<'_>,
    is_written: bool,
    mistakes: &mut Mistakes,
) -> Behind {
    let of_kind = |kind| OfKind { draft, kind };
    let in_memory = |size, backend| Behind::no_file(backend, size, false);
    match (&draft.backend, &draft.path) {
        (Key::Written(backend), _) => match backend.value.as_str() {
            "memory" => {
                let check = of_kind("memory");
                check.refuse_keys_but(&["size"], mistakes);
                let size = check.size(mistakes);
                in_memory(size, size.map(|size| BackendConfig::Memory { size }))
            }
            "modelled" => {
                let check = of_kind("modelled");
                let taken = ["size", "model", "servers", "service_us", "ns_per_kib"];
                check.refuse_keys_but(&taken, mistakes);
                let size = check.size(mistakes);
                if draft.model.is_missing() {
                    in_memory(size, check.servers(size, mistakes))
                } else {
                    check.refuse_servers(mistakes);
                    check.device(size, is_written, mistakes)
                }
            }
            "nbd" => {
                let check = of_kind("nbd");
                check.refuse_keys_but(&nbd::KEYS, mistakes);
                nbd::check(check, beside, is_written, mistakes)
            }
            _ => {
                let found = backend.value.clone();
                mistakes.add(&backend.place, Problem::UnknownBackend { found });
                Behind::default()
            }
        },
        (Key::Missing, Key::Written(path)) => {
            of_kind("file").refuse_keys_but(&["path", "cache"], mistakes);
            let cache = draft.cache.check_or(CacheChoice::Auto, mistakes, check_cache);
            let cache = cache.unwrap_or_default();
            let mut behind = mistakes.note(look_at(path, cache)).unwrap_or_default();
            if behind.file.is_some() {
                behind.block = mistakes.note(look_at_blocks(path, cache, &draft.cache)).flatten();
            }
            behind
        }
        (Key::Missing, Key::Missing) if !draft.has_gaps => {
            let disk = draft.name.value.clone();
            mistakes.add(&draft.name.place, Problem::NoBackend { disk });
            Behind::default()
        }
        _ => Behind::default(),
    }
}

/// A disk of this kind of back end.
#[derive(Clone, Copy)]
pub(super) struct OfKind<'a> {
    pub(super) draft: &'a DraftDisk,
    kind: &'static str,
}

impl OfKind<'_> {
    fn size(self, mistakes: &mut Mistakes) -> Option<u64> {
        self.required("size", &self.draft.size, mistakes, |found| size::check("size", found))
    }

    /// A modelled disk of so many bytes, by its servers.
    fn servers(self, size: Option<u64>, mistakes: &mut Mistakes) -> Option<BackendConfig> {
        let Self { draft, .. } = self;
        let servers =
            self.required("servers", &draft.servers, mistakes, |found| SERVERS.check(found));
        let service =
            self.required("service_us", &draft.service_us, mistakes, |found| SERVICE.check(found));
        let per_kib = draft.ns_per_kib.check_or(0, mistakes, |found| PER_KIB.check(found));
        Some(BackendConfig::Modelled {
            size: size?,
            servers: servers?,
            service: Nanos::from_micros(service?.into()),
            per_kib: Nanos::new(per_kib?.into()),
        })
    }

    /// A modelled disk of so many bytes, by a device of the laboratory.
    fn device(self, size: Option<u64>, is_written: bool, mistakes: &mut Mistakes) -> Behind {
        let device = self.draft.model.check(mistakes, |model| match open_device(&model.value, 1) {
            Ok(device) => Ok(device),
            Err(error) => model.refuse(Problem::BadModel { error: Box::new(error) }),
        });
        let (Some(Some(device)), Some(At { value: model, .. })) =
            (device, self.draft.model.value())
        else {
            return Behind::no_file(None, size, false);
        };
        let used = if is_written { &[Op::Read, Op::Write][..] } else { &[Op::Read] };
        if let Some(op) = used.iter().find(|op| !device.takes(**op)) {
            let op = if *op == Op::Write { "writes" } else { "reads" };
            let place = self.draft.model.place().unwrap_or(&self.draft.name.place);
            mistakes.add(place, Problem::ModelTakesNo { model: model.clone(), op });
        }
        let bytes = device.end().0.saturating_mul(SECTOR);
        if let Some(written) = self.draft.size.value().filter(|_| size > Some(bytes)) {
            mistakes.add(&written.place, Problem::ModelTooSmall { model: model.clone(), bytes });
        }
        let backend = size.map(|size| BackendConfig::Device { size, model: model.clone() });
        Behind::no_file(backend, size, device.rotational())
    }

    /// Refuses the keys that a model says itself.
    fn refuse_servers(self, mistakes: &mut Mistakes) {
        let Self { draft, .. } = self;
        let said = [
            ("servers", draft.servers.place()),
            ("service_us", draft.service_us.place()),
            ("ns_per_kib", draft.ns_per_kib.place()),
        ];
        for (key, place) in said {
            if let Some(place) = place {
                let disk = draft.name.value.clone();
                mistakes.add(place, Problem::BesideModel { disk, key });
            }
        }
    }

    /// What `check` makes of a key that has to be there.
    pub(super) fn required<T, U>(
        self,
        key: &'static str,
        written: &Key<T>,
        mistakes: &mut Mistakes,
        check: impl FnOnce(&At<T>) -> Result<U, Mistake>,
    ) -> Option<U> {
        let Self { draft, kind: backend } = self;
        if written.is_missing() && !draft.has_gaps {
            let disk = draft.name.value.clone();
            mistakes.add(&draft.name.place, Problem::MissingKey { disk, key, backend });
        }
        written.check(mistakes, check).flatten()
    }

    /// Refuses all keys of back ends that are there but for those that this one takes.
    fn refuse_keys_but(self, taken: &[&'static str], mistakes: &mut Mistakes) {
        let Self { draft, kind: backend } = self;
        let places = [
            ("path", draft.path.place()),
            ("cache", draft.cache.place()),
            ("size", draft.size.place()),
            ("model", draft.model.place()),
            ("servers", draft.servers.place()),
            ("service_us", draft.service_us.place()),
            ("ns_per_kib", draft.ns_per_kib.place()),
            ("uri", draft.uri.place()),
            ("connections", draft.connections.place()),
            ("reconnect", draft.reconnect.place()),
            ("resends", draft.resends.place()),
            ("answer_timeout", draft.answer_timeout.place()),
            ("after_reconnect", draft.after_reconnect.place()),
        ];
        for (key, place) in places {
            if let Some(place) = place.filter(|_| !taken.contains(&key)) {
                let disk = draft.name.value.clone();
                mistakes.add(place, Problem::UnusedKey { disk, key, backend });
            }
        }
    }
}

fn check_cache(name: &At<String>) -> Result<CacheChoice, Mistake> {
    match CacheChoice::named(&name.value) {
        Some(cache) => Ok(cache),
        None => name.refuse(Problem::UnknownCache { found: name.value.clone() }),
    }
}

fn look_at(path: &At<PathBuf>, cache: CacheChoice) -> Result<Behind, Mistake> {
    let seen = std::fs::metadata(&path.value)
        .or_else(|reason| path.refuse(Problem::NoDiskFile { path: path.value.clone(), reason }))?;
    let is_device = seen.file_type().is_block_device();
    if !seen.is_file() && !is_device {
        let kind = kind_of(&seen);
        return path.refuse(Problem::NotADisk { path: path.value.clone(), kind });
    }
    let file = if is_device { FileId::Device(seen.rdev()) } else { FileId::of_file(&seen) };
    Ok(Behind {
        backend: Some(BackendConfig::File { path: path.value.clone(), cache }),
        size: if is_device { device_size(&seen) } else { Some(seen.len()) },
        block: None,
        file: Some(file),
        rotational: Some(is_rotational(&path.value, &seen).yes),
    })
}

/// The blocks of a disk's file, unless it cannot be opened, which is told elsewhere.
fn look_at_blocks(
    path: &At<PathBuf>,
    cache: CacheChoice,
    written: &Key<String>,
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

/// What tells two paths of one file from those of two.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum FileId {
    /// The number of a block device.
    Device(u64),
    /// Where a file lies.
    File { device: u64, inode: u64 },
}

impl FileId {
    fn of_file(seen: &Metadata) -> Self {
        Self::File { device: seen.dev(), inode: seen.ino() }
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
