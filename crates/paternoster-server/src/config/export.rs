//! The exports: ranges of disks that clients ask for by name.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::disk::Checked;
use super::draft::{Draft, check_name};
use super::error::{Mistake, Problem};
use super::group::{GroupConfig, Members};
use super::keys::{ExportKeys, Object};
use super::mistakes::Mistakes;
use crate::borders::Placed;

/// One export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportConfig {
    /// What clients ask for; empty is the default export of the NBD protocol.
    pub name: String,
    /// Its disk, as an index into [`Config::disks`](super::Config::disks).
    pub disk: usize,
    /// Where on the disk it starts, in bytes.
    pub offset: u64,
    /// How long it is, in bytes, at least 1; up to the end of the disk where none was written.
    pub size: u64,
    /// Its tenant, as an index into [`Config::groups`](super::Config::groups).
    pub group: usize,
    /// What is set of it.
    pub keys: ExportKeys,
}

impl ExportConfig {
    /// Returns the range of bytes of the disk that it is.
    pub fn bytes(&self) -> Range<u64> {
        self.offset..self.offset + self.size
    }
}

/// Notes names that are there twice.
pub(super) fn check_names(drafts: &[Object<ExportKeys>], mistakes: &mut Mistakes) {
    let mut known = BTreeSet::new();
    for Object { name, .. } in drafts {
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
    if draft.exports.is_empty() && !draft.has_gaps {
        mistakes.add(&draft.whole, Problem::NoExport);
    }
    let groups = groups.into_iter().flatten().enumerate();
    let groups: BTreeMap<_, _> = groups.map(|(index, group)| (&*group.path, index)).collect();
    let mut exports = Vec::new();
    let mut extents = Vec::new();
    let mut ranges = Ranges::default();
    for (index, written) in draft.exports.iter().enumerate() {
        let extent = find_extent(written, draft, disks, mistakes);
        if let Some(extent) = &extent {
            if ranges.overlap_with(extent) {
                mistakes.note(check_beside(extent, &extents, disks));
            }
            check_borders(extent, &disks[extent.disk], mistakes);
        }
        let group = members.path(index).and_then(|path| Some((*groups.get(path)?, path)));
        exports.push(check_export(written, extent.as_ref(), group, mistakes));
        extents.extend(extent);
    }
    exports.into_iter().collect()
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
    let (Extent { disk, bytes, .. }, (group, path)) = (extent?, group?);
    let size = bytes.end - bytes.start;
    let mut keys = draft.keys.clone();
    (keys.size, keys.group) = (Some(size), Some(path.to_owned()));
    let name = draft.name.value.clone();
    Some(ExportConfig { name, disk: *disk, offset: bytes.start, size, group, keys })
}

/// What of a disk an export is.
struct Extent<'a> {
    draft: &'a Object<ExportKeys>,
    /// Its index.
    disk: usize,
    /// Not empty, and all of the disk.
    bytes: Range<u64>,
}

fn find_extent<'a>(
    written: &'a Object<ExportKeys>,
    draft: &Draft,
    disks: &[Checked],
    mistakes: &mut Mistakes,
) -> Option<Extent<'a>> {
    let Object { keys, states, .. } = written;
    if states.disk.is_missing() && !written.has_gaps {
        mistakes.add(&written.name.place, Problem::Missing { key: "disk" });
    }
    let name = keys.disk.as_ref()?;
    let disk = disks.iter().position(|disk| disk.name == *name);
    if disk.is_none() && !draft.has_gaps && !disks.is_empty() {
        mistakes.note(states.disk.refuse(unknown_disk(name, disks)));
    }
    if states.offset.is_wrong() || states.size.is_wrong() {
        return None;
    }
    let disk = disk?;
    let bytes = mistakes.note(check_range(written, &disks[disk]))??;
    Some(Extent { draft: written, disk, bytes })
}

fn unknown_disk(disk: &str, disks: &[Checked]) -> Problem {
    let known: Vec<_> = disks.iter().map(|disk| format!("{:?}", disk.name)).collect();
    Problem::UnknownDisk { disk: disk.to_owned(), known: known.join(", ") }
}

/// The bytes from `offset` on, as many as `size` says, else all. None if the disk's size is not
/// known.
fn check_range(draft: &Object<ExportKeys>, disk: &Checked) -> Result<Option<Range<u64>>, Mistake> {
    let ExportKeys { offset, size, .. } = draft.keys;
    let (of_size, of_offset) = (draft.states.size.place(), draft.states.offset.place());
    let place = of_size.or(of_offset).unwrap_or(&draft.name.place);
    let export = draft.name.value.clone();
    let Some(disk_size) = disk.size else {
        let is_empty = size == Some(0);
        return if is_empty {
            Err(place.mistake(Problem::EmptyExport { export }))
        } else {
            Ok(None)
        };
    };
    let size = size.unwrap_or(disk_size.saturating_sub(offset));
    if offset.saturating_add(size) > disk_size {
        let disk = disk.name.clone();
        return Err(place.mistake(Problem::PastEnd { export, offset, size, disk, disk_size }));
    }
    if size == 0 {
        return Err(place.mistake(Problem::EmptyExport { export }));
    }
    Ok(Some(offset..offset + size))
}

/// Notes borders inside a block, as far as the disk's blocks are known.
fn check_borders(export: &Extent<'_>, disk: &Checked, mistakes: &mut Mistakes) {
    let (Some(block), Some(end_of_disk)) = (disk.block, disk.size) else { return };
    let Extent { draft, bytes, .. } = export;
    let placed =
        Placed { export: &draft.name.value, disk: &disk.name, is_file: disk.file.is_some() };
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
    /// Where they end, by their disks and where they start.
    ends: BTreeMap<(usize, u64), u64>,
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
        let place = (export.disk, start);
        let before = self.ends.range(..=place).next_back();
        let behind = self.ends.range(place..).next();
        self.some_overlap |= before.is_some_and(|(at, ends)| at.0 == export.disk && *ends > start)
            || behind.is_some_and(|(at, _)| at.0 == export.disk && at.1 < end);
        self.ends.insert(place, end);
        self.some_overlap
    }
}

/// Returns whether `export` may stand beside the `others`.
fn check_beside(
    export: &Extent<'_>,
    others: &[Extent<'_>],
    disks: &[Checked],
) -> Result<(), Mistake> {
    let name = &export.draft.name;
    for other in others {
        let other_name = &other.draft.name.value;
        let (one, two) = (&export.bytes, &other.bytes);
        let bytes = one.start.max(two.start)..one.end.min(two.end);
        let may_share = !(export.draft.may_write() && other.draft.may_write());
        // Of two of one name, that is told.
        let are_one = name.value == *other_name;
        if export.disk == other.disk && !bytes.is_empty() && !may_share && !are_one {
            return name.refuse(Problem::Overlap {
                export: name.value.clone(),
                other: other_name.clone(),
                disk: disks[export.disk].name.clone(),
                bytes,
            });
        }
    }
    Ok(())
}
