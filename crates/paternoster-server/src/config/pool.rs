//! The pools: which volumes share each, and what each volume is: a file, an export of another
//! server, or memory behind the pool's model of a device.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;

use paternoster_disk::is_rotational;

use super::devices::OneDevice;
use super::disk::{BackendConfig, Behind, Beside, OfKind, look_at_all};
use super::draft::Draft;
use super::error::{Mistake, Problem};
use super::keys::{
    At, BackendKind, DiskKeys, ExportKeys, Keys, Object, POOLS, PoolKind, SameDevice, State, VOLUME,
};
use super::locations::Locations;
use super::mistakes::Mistakes;
use super::modelled::Modelled;
use super::nbd;

/// What is known of a pool.
#[derive(Default)]
pub(super) struct Pool {
    /// Its volumes by their names, with what stands behind each.
    pub(super) volumes: Vec<(String, Behind)>,
    /// What stands behind them all, if it says so.
    pub(super) backend: Option<BackendConfig>,
    /// Whether it is rotational where it has no volumes; none if that is not known.
    pub(super) rotational: Option<bool>,
}

/// A pool and its volumes as they are written.
#[derive(Clone, Copy)]
struct Written<'w> {
    pool: &'w Object<DiskKeys>,
    whole: &'w Draft,
}

impl<'w> Written<'w> {
    fn volumes(self) -> impl Iterator<Item = &'w Object<ExportKeys>> {
        let name = &self.pool.name.value;
        let all = self.whole.exports.iter();
        all.filter(move |volume| volume.kind == VOLUME && volume.keys.pool.as_ref() == Some(name))
    }
}

/// The names of volumes to which clients may write.
struct WrittenTo<'w>(BTreeSet<&'w String>);

impl<'w> WrittenTo<'w> {
    fn of(whole: &'w Draft) -> Self {
        let may_write = whole.exports.iter().filter(|export| export.may_write());
        let volume = |export: &'w Object<ExportKeys>| {
            let own = (export.kind == VOLUME).then_some(&export.name.value);
            own.or(export.keys.volume.as_ref())
        };
        Self(may_write.filter_map(volume).collect())
    }

    fn has(&self, volume: &Object<ExportKeys>) -> bool {
        self.0.contains(&volume.name.value)
    }
}

/// What is known of a pool, with its volumes.
pub(super) fn check(
    pool: &Object<DiskKeys>,
    whole: &Draft,
    beside: Beside<'_>,
    locations: &mut Locations,
    mistakes: &mut Mistakes,
) -> Pool {
    let Some(kind) = pool.keys.pool_kind() else {
        let name = pool.name.value.clone();
        mistakes.note(pool.states.backend.refuse(Problem::PoolInMemory { pool: name }));
        return Pool::default();
    };
    if pool.states.backend.is_wrong() {
        return Pool::default();
    }
    let [name, _] = kind.names();
    refuse_others(pool, &POOLS, Some(name), mistakes);
    let (written, written_to) = (Written { pool, whole }, WrittenTo::of(whole));
    let found = match kind {
        PoolKind::Local => check_local(written, &written_to, locations, mistakes),
        PoolKind::Far => check_far(written, &written_to, beside, locations, mistakes),
        PoolKind::Modelled => check_modelled(written, &written_to, mistakes),
    };
    for (volume, (name, behind)) in written.volumes().zip(&found.volumes) {
        mistakes.note(check_volume_name(&volume.name));
        if behind.size == Some(0) {
            let place = volume.states.path.place().unwrap_or(&volume.name.place);
            mistakes.add(place, Problem::EmptyDisk { what: VOLUME, disk: name.clone() });
        }
    }
    check_bounds(pool, written.volumes().count(), &found.volumes, mistakes);
    found
}

/// A pool of files and block devices.
fn check_local(
    written: Written<'_>,
    written_to: &WrittenTo<'_>,
    locations: &mut Locations,
    mistakes: &mut Mistakes,
) -> Pool {
    let Written { pool, whole } = written;
    let Some(directory) = mistakes.note(find_directory(pool)) else { return Pool::default() };
    let mut volumes = Vec::new();
    let mut device = OneDevice::default();
    for volume in written.volumes() {
        let volume_name = &volume.name.value;
        let Some(path) = mistakes.note(path_of(volume, pool)) else {
            volumes.push((volume_name.clone(), Behind::default()));
            continue;
        };
        let behind = look_at_all(&path, pool.keys.cache, &pool.states.cache, mistakes);
        let is_written = written_to.has(volume);
        locations.take((VOLUME, volume_name), &path, behind.file, is_written, mistakes);
        if behind.file.is_some() && pool.keys.same_device == SameDevice::Require {
            let added = device.add(paternoster_disk::devices_of(&path.value));
            mistakes.note(added.or_else(|[on, of_pool]| {
                let (volume, pool) =
                    (volume_name.clone(), format!("pool {:?} is on {of_pool}", pool.name.value));
                path.refuse(Problem::OtherDevice { volume, on, pool })
            }));
        }
        volumes.push((volume_name.clone(), behind));
    }
    if volumes.is_empty() && directory.is_none() && !whole.has_gaps && pool.states.path.is_missing()
    {
        mistakes.add(&pool.name.place, Problem::NoVolume { pool: pool.name.value.clone() });
    }
    let rotational = directory.as_ref().map(|directory| directory.rotational);
    let cache = pool.keys.cache;
    let backend = directory.map(|directory| BackendConfig::File { path: directory.path, cache });
    Pool { volumes, backend, rotational }
}

/// A pool of exports of other NBD servers.
fn check_far(
    written: Written<'_>,
    written_to: &WrittenTo<'_>,
    beside: Beside<'_>,
    locations: &mut Locations,
    mistakes: &mut Mistakes,
) -> Pool {
    nbd::check_one_server(written.pool, written.volumes(), mistakes);
    let volumes = written.volumes().map(|volume| {
        let (name, keys) = (&volume.name.value, &volume.keys);
        locations.take_far((VOLUME, name), keys.uri.as_ref(), &volume.states.uri, mistakes);
        let is_written = written_to.has(volume);
        let behind =
            nbd::check_volume((volume, written.pool), beside, is_written, locations, mistakes);
        (name.clone(), behind)
    });
    Pool {
        volumes: volumes.collect(),
        backend: Some(BackendConfig::NbdPool),
        rotational: Some(false),
    }
}

/// A pool of volumes in memory behind one model of a device.
fn check_modelled(
    written: Written<'_>,
    written_to: &WrittenTo<'_>,
    mistakes: &mut Mistakes,
) -> Pool {
    // Volumes can be made while it is served.
    let is_written = written.volumes().next().is_none()
        || written.volumes().any(|volume| written_to.has(volume));
    let of = OfKind { draft: written.pool, kind: BackendKind::Modelled.name() };
    let device = Modelled::of(of, is_written, mistakes);
    let mut bytes = 0_u64;
    let volumes = written.volumes().map(|volume| {
        bytes = bytes.saturating_add(volume.keys.size.unwrap_or_default());
        if let Err(problem) = device.check_bytes(bytes) {
            mistakes.note(volume.states.size.refuse(problem));
        }
        (volume.name.value.clone(), device.volume(volume, mistakes))
    });
    let volumes = volumes.collect();
    Pool { volumes, backend: device.pool(), rotational: Some(device.rotational) }
}

/// A directory of images.
struct Directory {
    path: PathBuf,
    /// Whether the device that it is on is rotational.
    rotational: bool,
}

/// Notes that there are more volumes, or bytes of them, than the pool says.
fn check_bounds(
    pool: &Object<DiskKeys>,
    written: usize,
    volumes: &[(String, Behind)],
    mistakes: &mut Mistakes,
) {
    let (Object { keys, states, .. }, pool) = (pool, || pool.name.value.clone());
    if written > usize::try_from(keys.volumes).unwrap_or(usize::MAX) {
        let problem = Problem::TooManyVolumes { pool: pool(), has: written, allowed: keys.volumes };
        mistakes.note(states.volumes.refuse(problem));
    }
    let sizes = volumes.iter().filter_map(|(_, behind)| behind.size);
    let bytes = sizes.fold(0, u64::saturating_add);
    if let Some(allowed) = keys.capacity.filter(|&allowed| bytes > allowed) {
        let problem = Problem::TooManyBytes { pool: pool(), has: bytes, allowed };
        mistakes.note(states.capacity.refuse(problem));
    }
}

/// Refuses the keys that no object of its kind has. An object is of the first of `kinds`, and where
/// that is known of `kind`, one of the others.
pub(super) fn refuse_others<O: Keys>(
    object: &Object<O>,
    kinds: &[&'static str],
    kind: Option<&'static str>,
    mistakes: &mut Mistakes,
) {
    let own = kind.map(|kind| [kinds[0], kind]);
    let own = own.as_ref().map_or(kinds, |own| own);
    for key in O::KEYS.iter().filter(|key| !key.is_of_any(own)) {
        let of = kind.filter(|_| key.is_of_any(kinds)).unwrap_or(kinds[0]);
        let (kind, name, key) = (object.kind, object.name.value.clone(), key.name);
        mistakes.note(object.state(key).refuse(Problem::NotOfKind { kind, name, key, of }));
    }
}

fn find_directory(pool: &Object<DiskKeys>) -> Result<Option<Directory>, Mistake> {
    let (Some(path), State::Written(place)) = (&pool.keys.path, &pool.states.path) else {
        return Ok(None);
    };
    let refused = |reason| place.mistake(Problem::NoPoolDirectory { path: path.clone(), reason });
    let seen = std::fs::metadata(path).map_err(refused)?;
    if !seen.is_dir() {
        return Err(refused(io::ErrorKind::NotADirectory.into()));
    }
    let rotational = is_rotational(path, &seen).yes;
    Ok(Some(Directory { path: path.clone(), rotational }))
}

/// The file of a volume, and where it is written.
fn path_of(volume: &Object<ExportKeys>, pool: &Object<DiskKeys>) -> Result<At<PathBuf>, Mistake> {
    let place = volume.states.path.place().unwrap_or(&volume.name.place).clone();
    let name = &volume.name.value;
    let path = volume.keys.path.clone().unwrap_or_else(|| format!("{name}.img").into());
    match &pool.keys.path {
        Some(directory) => Ok(At { value: directory.join(path), place }),
        None if path.is_absolute() => Ok(At { value: path, place }),
        None => {
            let (volume, pool) = (name.clone(), pool.name.value.clone());
            Err(place.mistake(Problem::NoVolumePath { volume, pool }))
        }
    }
}

/// The longest name of a volume, which is a part of a file's name.
const NAME_MAX: usize = 128;

/// Refuses a name of a volume that would not do as a part of a file's name.
pub(super) fn check_volume_name(name: &At<String>) -> Result<(), Mistake> {
    check_file_name("volume", &name.value).or_else(|problem| name.refuse(problem))
}

/// Refuses a name of such a thing that would not do as a part of a file's name.
pub(super) fn check_file_name(what: &'static str, name: &str) -> Result<(), Problem> {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let begins = name.bytes().next().is_some_and(|first| first.is_ascii_alphanumeric());
    if begins && name.len() <= NAME_MAX && name.bytes().all(is_allowed) {
        return Ok(());
    }
    let name = name.chars().take(40).collect();
    Err(Problem::BadFileName { what, name, max: NAME_MAX })
}
