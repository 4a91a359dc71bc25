//! The exports: disks, volumes, or ranges of them, that clients ask for by name.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;

use super::disk::{Checked, CheckedVolume};
use super::draft::{Draft, check_name};
use super::error::{Mistake, Problem};
use super::group::{GroupConfig, Members};
use super::keys::{DISK, EXPORT, ExportKeys, OF_SOCKET, Object, POOL, State, VOLUME, VOLUMES};
use super::mistakes::Mistakes;
use super::pool::refuse_others;
use crate::borders::Placed;

/// One export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportConfig {
    /// What clients ask for; empty is the default export of the NBD protocol.
    pub name: String,
    /// Its disk or pool, as an index into [`Config::disks`](super::Config::disks).
    pub disk: usize,
    /// Its volume, as an index into those of the disk.
    pub volume: usize,
    /// Where on the volume it starts, in bytes.
    pub offset: u64,
    /// How long it is, in bytes, at least 1; up to the end of the volume where none was written.
    pub size: u64,
    /// Its tenant, as an index into [`Config::groups`](super::Config::groups).
    pub group: usize,
    /// What is set of it.
    pub keys: ExportKeys,
}

impl ExportConfig {
    /// Returns what it is, as messages say it.
    pub(crate) fn what(&self) -> &'static str {
        if self.keys.pool.is_some() { VOLUME } else { EXPORT }
    }

    /// Returns the range of bytes of the volume that it is.
    pub fn bytes(&self) -> Range<u64> {
        self.offset..self.offset + self.size
    }
}

/// Notes names that are there twice.
pub(super) fn check_names(drafts: &[Object<ExportKeys>], mistakes: &mut Mistakes) {
    let mut known = BTreeSet::new();
    for Object { name, .. } in drafts {
        // A volume is an export of its name.
        if !known.insert(&name.value) {
            mistakes.add(&name.place, Problem::ExportTwice { name: name.value.clone() });
        }
    }
}

/// The exports of these disks, in these groups.
pub(super) fn check(
    draft: &Draft,
    members: &Members,
    disks: &[Checked],
    groups: Option<&[GroupConfig]>,
    mistakes: &mut Mistakes,
) -> Option<Vec<ExportConfig>> {
    // Volumes of a pool can be made while it is served.
    let is_pool = |disk: &Checked| disk.is_pool;
    if draft.exports.is_empty() && !draft.has_gaps && !disks.iter().any(is_pool) {
        mistakes.add(&draft.whole, Problem::NoExport);
    }
    let groups = groups.into_iter().flatten().enumerate();
    let groups: BTreeMap<_, _> = groups.map(|(index, group)| (&*group.path, index)).collect();
    let volumes = Volumes::of(draft, disks);
    let used: BTreeSet<_> =
        draft.exports.iter().filter_map(|export| export.keys.volume.as_ref()).collect();
    let mut exports = Vec::new();
    let mut extents = Vec::new();
    let mut ranges = Ranges::default();
    for (index, written) in draft.exports.iter().enumerate() {
        refuse_keys(written, draft, mistakes);
        if written.kind == VOLUME && !written.keys.export {
            let is_used = used.contains(&written.name.value) || draft.has_gaps;
            check_not_exported(written, is_used, mistakes);
        }
        let extent = find_extent(written, &volumes, disks, mistakes);
        if let Some(extent) = extent.as_ref().filter(|of| of.draft.keys.export) {
            if ranges.overlap_with(extent) {
                mistakes.note(check_beside(extent, &extents));
            }
            check_borders(extent, mistakes);
        }
        let group = members.path(index).and_then(|path| Some((*groups.get(path)?, path)));
        exports.push(check_export(written, extent.as_ref(), group, mistakes));
        extents.extend(extent.filter(|of| of.draft.keys.export));
    }
    exports.into_iter().collect()
}

/// Refuses the keys of others: of exports, or of volumes, or of volumes of another kind of pool.
fn refuse_keys(written: &Object<ExportKeys>, whole: &Draft, mistakes: &mut Mistakes) {
    if written.kind != VOLUME {
        // One that options name has no kind.
        if !written.kind.is_empty() {
            refuse_others(written, &[EXPORT], None, mistakes);
        }
        return;
    }
    let pools = || whole.disks.iter().filter(|disk| disk.kind == POOL);
    let pool = pools().find(|pool| written.keys.pool.as_ref() == Some(&pool.name.value));
    let kind = pool.and_then(|pool| pool.keys.pool_kind());
    let name = kind.map(|kind| {
        let [_, name] = kind.names();
        name
    });
    refuse_others(written, &VOLUMES, name, mistakes);
}

/// Refuses what is an export's of a volume that is none, and one on which there is none.
fn check_not_exported(volume: &Object<ExportKeys>, is_used: bool, mistakes: &mut Mistakes) {
    let name = || volume.name.value.clone();
    let of_exports = ["group", "weight", "ioprio", "read_only", "description"];
    for key in of_exports.into_iter().chain(["vhost_user"]).chain(OF_SOCKET) {
        let problem = Problem::NotExported { volume: name(), key };
        mistakes.note(volume.state(key).refuse(problem));
    }
    if !is_used {
        mistakes.add(&volume.name.place, Problem::NothingOn { volume: name() });
    }
}

fn check_export(
    draft: &Object<ExportKeys>,
    extent: Option<&Extent<'_>>,
    group: Option<(usize, &str)>,
    mistakes: &mut Mistakes,
) -> Option<ExportConfig> {
    // Of those without a group, this is told with the group.
    if !draft.states.group.is_missing() {
        mistakes.note(check_name("export", &draft.name));
    }
    let (&Extent { disk, volume, ref bytes, .. }, (group, path)) = (extent?, group?);
    let (offset, size) = (bytes.start, bytes.end - bytes.start);
    let mut keys = draft.keys.clone();
    (keys.size, keys.group) = (Some(size), Some(path.to_owned()));
    // Whether somebody writes to what is no export its exports say.
    keys.read_only |= !keys.export;
    let name = draft.name.value.clone();
    Some(ExportConfig { name, disk, volume, offset, size, group, keys })
}

/// What of a volume an export is.
struct Extent<'a> {
    draft: &'a Object<ExportKeys>,
    /// Its disk, and that one's volume, as indices.
    disk: usize,
    volume: usize,
    of: On<'a>,
    /// Not empty, and all of the volume.
    bytes: Range<u64>,
}

/// A volume, as messages call it.
#[derive(Clone, Copy)]
struct On<'a> {
    what: &'static str,
    volume: &'a CheckedVolume,
}

impl fmt::Display for On<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.what, self.volume.name)
    }
}

fn find_extent<'a>(
    written: &'a Object<ExportKeys>,
    volumes: &Volumes<'_>,
    disks: &'a [Checked],
    mistakes: &mut Mistakes,
) -> Option<Extent<'a>> {
    let Object { states, .. } = written;
    let found = mistakes.note(find_volume(written, volumes, disks)).flatten();
    if states.offset.is_wrong() || states.size.is_wrong() {
        return None;
    }
    let (disk, volume) = found?;
    let of = On { what: disks[disk].what_of_volume(), volume: &disks[disk].volumes[volume] };
    let bytes = mistakes.note(check_range(written, of))??;
    Some(Extent { draft: written, disk, volume, of, bytes })
}

/// The volumes of pools.
struct Volumes<'a> {
    /// Those that are written.
    written: BTreeSet<&'a str>,
    /// Their pools and they themselves, as indices.
    places: BTreeMap<&'a str, (usize, usize)>,
    /// Whether nothing unknown may be a disk, pool or volume.
    are_all_known: bool,
}

impl<'a> Volumes<'a> {
    fn of(draft: &'a Draft, disks: &'a [Checked]) -> Self {
        let written = draft.exports.iter().filter(|export| export.kind == VOLUME);
        let pools = disks.iter().enumerate().filter(|(_, disk)| disk.is_pool);
        let places = pools.flat_map(|(pool, of)| {
            let volumes = of.volumes.iter().enumerate();
            volumes.map(move |(volume, of)| (&*of.name, (pool, volume)))
        });
        Self {
            written: written.map(|volume| &*volume.name.value).collect(),
            places: places.collect(),
            are_all_known: !draft.has_gaps && !disks.is_empty(),
        }
    }
}

/// The disk of an export and that one's volume, as indices; none where that is not known, for a
/// reason that is told elsewhere.
fn find_volume(
    written: &Object<ExportKeys>,
    volumes: &Volumes<'_>,
    disks: &[Checked],
) -> Result<Option<(usize, usize)>, Mistake> {
    let Object { name, keys, states, kind, has_gaps } = written;
    let unknown = |state: &State, what, name: &str, known: Vec<&str>| {
        let known: Vec<_> = known.iter().map(|known| format!("{known:?}")).collect();
        let (disk, known) = (name.to_owned(), known.join(", "));
        if volumes.are_all_known {
            state.refuse(Problem::UnknownDisk { what, disk, known })
        } else {
            Ok(())
        }
    };
    let missing = |key| {
        if *has_gaps { Ok(None) } else { Err(name.place.mistake(Problem::Missing { key })) }
    };
    if *kind == VOLUME {
        let Some(pool) = &keys.pool else {
            return if states.pool.is_missing() { missing("pool") } else { Ok(None) };
        };
        if disks.iter().any(|disk| disk.is_pool && disk.name == *pool) {
            return Ok(volumes.places.get(&*name.value).copied());
        }
        let pools = disks.iter().filter(|disk| disk.is_pool).map(|pool| &*pool.name);
        return unknown(&states.pool, POOL, pool, pools.collect()).map(|()| None);
    }
    if let Some(of) = &keys.volume {
        if keys.disk.is_some() {
            let export = name.value.clone();
            states.volume.refuse(Problem::DiskAndVolume { export })?;
        }
        if !volumes.written.contains(&**of) {
            unknown(&states.volume, VOLUME, of, volumes.written.iter().copied().collect())?;
        }
        return Ok(volumes.places.get(&**of).copied());
    }
    let Some(disk) = &keys.disk else {
        let is_missing = states.disk.is_missing() && states.volume.is_missing();
        return if is_missing { missing("disk") } else { Ok(None) };
    };
    match disks.iter().position(|known| known.name == *disk) {
        Some(pool) if disks[pool].is_pool => {
            states.disk.refuse(Problem::PoolForDisk { pool: disk.clone() }).map(|()| None)
        }
        Some(disk) => Ok(Some((disk, 0))),
        None => {
            let known = disks.iter().filter(|disk| !disk.is_pool).map(|disk| &*disk.name);
            unknown(&states.disk, DISK, disk, known.collect()).map(|()| None)
        }
    }
}

/// The bytes from `offset` on, as many as `size` says, else all. None if the volume's size is not
/// known.
fn check_range(draft: &Object<ExportKeys>, on: On<'_>) -> Result<Option<Range<u64>>, Mistake> {
    let ExportKeys { offset, size, .. } = draft.keys;
    let (of_size, of_offset) = (draft.states.size.place(), draft.states.offset.place());
    let place = of_size.or(of_offset).unwrap_or(&draft.name.place);
    let export = draft.name.value.clone();
    let Some(disk_size) = on.volume.size else {
        let is_empty = size == Some(0);
        return if is_empty {
            Err(place.mistake(Problem::EmptyExport { export }))
        } else {
            Ok(None)
        };
    };
    let size = size.unwrap_or(disk_size.saturating_sub(offset));
    if offset.saturating_add(size) > disk_size {
        let on = on.to_string();
        let problem = Problem::PastEnd { export, offset, size, on, disk_size };
        return Err(place.mistake(problem));
    }
    if size == 0 {
        return Err(place.mistake(Problem::EmptyExport { export }));
    }
    Ok(Some(offset..offset + size))
}

/// Notes borders inside a block, as far as the volume's blocks are known.
fn check_borders(export: &Extent<'_>, mistakes: &mut Mistakes) {
    let Extent { draft, bytes, of: On { what, volume }, .. } = export;
    let (Some(block), Some(end_of_disk)) = (volume.block, volume.size) else { return };
    let (disk, is_file) = (&*volume.name, volume.file.is_some());
    let placed = Placed { export: &draft.name.value, what, disk, is_file };
    let [begins, ends] = placed.inside_blocks(bytes, block, end_of_disk);
    let (offset, size) = (draft.states.offset.place(), draft.states.size.place());
    for (problem, place) in [(begins, offset), (ends, size.or(offset))] {
        if let Some(problem) = problem {
            let place = place.unwrap_or(&draft.name.place);
            mistakes.add(place, Problem::InsideBlock(Box::new(problem)));
        }
    }
}

/// The bytes of exports that may be written. A good file has thousands, none of which overlap:
/// then each is compared with its neighbours alone.
#[derive(Default)]
struct Ranges {
    /// Where they end, by their volumes and where they start.
    ends: BTreeMap<((usize, usize), u64), u64>,
    /// Whether some overlap: a neighbour does not tell then.
    some_overlap: bool,
}

impl Ranges {
    /// Adds an export. Returns whether it may overlap with one before it.
    fn overlap_with(&mut self, export: &Extent<'_>) -> bool {
        if !export.draft.may_write() {
            return false;
        }
        let Range { start, end } = export.bytes;
        let volume = (export.disk, export.volume);
        let place = (volume, start);
        let before = self.ends.range(..=place).next_back();
        let behind = self.ends.range(place..).next();
        self.some_overlap |= before.is_some_and(|(at, ends)| at.0 == volume && *ends > start)
            || behind.is_some_and(|(at, _)| at.0 == volume && at.1 < end);
        self.ends.insert(place, end);
        self.some_overlap
    }
}

/// Returns whether `export` may stand beside the `others`.
fn check_beside(export: &Extent<'_>, others: &[Extent<'_>]) -> Result<(), Mistake> {
    let name = &export.draft.name;
    for other in others {
        let other_name = &other.draft.name.value;
        let (one, two) = (&export.bytes, &other.bytes);
        let bytes = one.start.max(two.start)..one.end.min(two.end);
        let may_share = !(export.draft.may_write() && other.draft.may_write());
        // Of two of one name, that is told.
        let are_one = name.value == *other_name;
        let is_one_volume = (export.disk, export.volume) == (other.disk, other.volume);
        if is_one_volume && !bytes.is_empty() && !may_share && !are_one {
            return name.refuse(Problem::Overlap {
                export: name.value.clone(),
                other: other_name.clone(),
                on: export.of.to_string(),
                bytes,
            });
        }
    }
    Ok(())
}
