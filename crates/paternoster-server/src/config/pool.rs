//! The pools: which volumes share each, and what file each volume is.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;

use paternoster_disk::is_rotational;

use super::devices::OneDevice;
use super::disk::{Behind, Files, look_at_all};
use super::draft::Draft;
use super::error::{Mistake, Problem};
use super::keys::{At, DiskKeys, ExportKeys, Keys, Object, SameDevice, State, VOLUME};
use super::mistakes::Mistakes;

/// What is known of a pool.
#[derive(Default)]
pub(super) struct Pool {
    /// Its volumes by their names, with what stands behind each.
    pub(super) volumes: Vec<(String, Behind)>,
    /// Where their images are, if it says so.
    pub(super) directory: Option<Directory>,
}

/// A directory of images.
pub(super) struct Directory {
    pub(super) path: PathBuf,
    /// Whether the device that it is on is rotational.
    pub(super) rotational: bool,
}

/// What is known of a pool, with its volumes.
pub(super) fn check(
    pool: &Object<DiskKeys>,
    whole: &Draft,
    files: &mut Files,
    mistakes: &mut Mistakes,
) -> Pool {
    refuse_others(pool, mistakes);
    let Some(directory) = mistakes.note(find_directory(pool)) else { return Pool::default() };
    let name = &pool.name.value;
    let is_of_pool = |volume: &&Object<ExportKeys>| {
        volume.kind == VOLUME && volume.keys.pool.as_ref() == Some(name)
    };
    let parts = whole.exports.iter().filter(|export| export.may_write());
    let written: BTreeSet<_> = parts.filter_map(|export| export.keys.volume.as_ref()).collect();
    let mut volumes = Vec::new();
    let mut device = OneDevice::default();
    for volume in whole.exports.iter().filter(is_of_pool) {
        let Some(path) = mistakes.note(path_of(volume, pool)) else { continue };
        let behind = look_at_all(&path, pool.keys.cache, &pool.states.cache, mistakes);
        let volume_name = &volume.name.value;
        let is_written = volume.may_write() || written.contains(volume_name);
        files.take((VOLUME, volume_name), &path, behind.file, is_written, mistakes);
        if behind.size == Some(0) {
            let (what, disk) = (VOLUME, volume_name.clone());
            mistakes.add(&path.place, Problem::EmptyDisk { what, disk });
        }
        if behind.file.is_some() && pool.keys.same_device == SameDevice::Require {
            let added = device.add(paternoster_disk::devices_of(&path.value));
            mistakes.note(added.or_else(|[on, of_pool]| {
                let (volume, pool) =
                    (volume_name.clone(), format!("pool {name:?} is on {of_pool}"));
                path.refuse(Problem::OtherDevice { volume, on, pool })
            }));
        }
        volumes.push((volume_name.clone(), behind));
    }
    let written = whole.exports.iter().filter(is_of_pool).count();
    if written == 0 && directory.is_none() && !whole.has_gaps && pool.states.path.is_missing() {
        mistakes.add(&pool.name.place, Problem::NoVolume { pool: name.clone() });
    }
    check_bounds(pool, written, &volumes, mistakes);
    Pool { volumes, directory }
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

/// Refuses the keys that another kind of objects has.
pub(super) fn refuse_others<O: Keys>(object: &Object<O>, mistakes: &mut Mistakes) {
    for key in O::KEYS.iter().filter(|key| !key.is_of(object.kind)) {
        let (kind, name, key) = (object.kind, object.name.value.clone(), key.name);
        mistakes.note(object.state(key).refuse(Problem::NotOfKind { kind, name, key }));
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
    check_volume_name(&volume.name)?;
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

/// Refuses a name that would not do as a part of a file's name.
pub(super) fn check_volume_name(name: &At<String>) -> Result<(), Mistake> {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let text = &name.value;
    let begins = text.bytes().next().is_some_and(|first| first.is_ascii_alphanumeric());
    if begins && text.len() <= NAME_MAX && text.bytes().all(is_allowed) {
        return Ok(());
    }
    name.refuse(Problem::BadVolumeName { name: text.chars().take(40).collect(), max: NAME_MAX })
}
