//! The exports: ranges of disks that clients ask for by name.

use std::ops::Range;

use paternoster::IoPrio;

use super::disk::Checked;
use super::draft::{Draft, DraftExport, check_name};
use super::error::{Mistake, Problem};
use super::group::{GroupConfig, Members};
use super::mistakes::Mistakes;
use super::size;
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
    /// The I/O priority of its connections; `be/4` where none was written.
    pub io_prio: IoPrio,
    /// Whether clients may only read.
    pub read_only: bool,
    /// What clients are told about it.
    pub description: Option<String>,
}

impl ExportConfig {
    /// Returns the range of bytes of the disk that it is.
    pub fn bytes(&self) -> Range<u64> {
        self.offset..self.offset + self.size
    }
}

/// Notes names that are there twice.
pub(super) fn check_names(drafts: &[DraftExport], mistakes: &mut Mistakes) {
    for (index, DraftExport { name, .. }) in drafts.iter().enumerate() {
        if drafts[..index].iter().any(|other| other.name.value == name.value) {
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
    let mut exports = Vec::new();
    let mut extents = Vec::new();
    for (index, written) in draft.exports.iter().enumerate() {
        let extent = find_extent(written, draft, disks, mistakes);
        if let Some(extent) = &extent {
            mistakes.note(check_beside(extent, &extents, disks));
            check_borders(extent, &disks[extent.disk], mistakes);
        }
        let path = members.path(index);
        let group = groups.and_then(|groups| groups.iter().position(|g| Some(&*g.path) == path));
        exports.push(check_export(written, extent.as_ref(), group, mistakes));
        extents.extend(extent);
    }
    exports.into_iter().collect()
}

fn check_export(
    draft: &DraftExport,
    extent: Option<&Extent<'_>>,
    group: Option<usize>,
    mistakes: &mut Mistakes,
) -> Option<ExportConfig> {
    // Of those without a group, this is told with the group.
    let name = if draft.group.is_missing() {
        Some(())
    } else {
        mistakes.note(check_name("export", &draft.name))
    };
    let description = draft.description.check(mistakes, |text| {
        check_name("description", text)?;
        Ok(text.value.clone())
    });
    let io_prio = draft.io_prio.check_or(IoPrio::default(), mistakes, |text| {
        text.value.parse().or_else(|error| text.refuse(Problem::BadIoPrio(error)))
    });
    let read_only = draft.read_only.check_or(false, mistakes, |found| Ok(found.value));
    name?;
    let Extent { disk, bytes, .. } = extent?;
    Some(ExportConfig {
        name: draft.name.value.clone(),
        disk: *disk,
        offset: bytes.start,
        size: bytes.end - bytes.start,
        group: group?,
        io_prio: io_prio?,
        read_only: read_only?,
        description: description?,
    })
}

/// What of a disk an export is.
struct Extent<'a> {
    draft: &'a DraftExport,
    /// Its index.
    disk: usize,
    /// Not empty, and all of the disk.
    bytes: Range<u64>,
}

fn find_extent<'a>(
    written: &'a DraftExport,
    draft: &Draft,
    disks: &[Checked],
    mistakes: &mut Mistakes,
) -> Option<Extent<'a>> {
    if written.disk.is_missing() && !written.has_gaps {
        mistakes.add(&written.name.place, Problem::Missing { key: "disk" });
    }
    let disk = written.disk.value().and_then(|name| {
        let index = disks.iter().position(|disk| disk.name == name.value);
        if index.is_none() && !draft.has_gaps && !disks.is_empty() {
            mistakes.add(&name.place, unknown_disk(&name.value, disks));
        }
        index
    });
    let offset = written.offset.check_or(0, mistakes, |found| size::check("offset", found));
    let size = written.size.check(mistakes, |found| size::check("size", found));
    let (disk, offset, size) = (disk?, offset?, size?);
    let bytes = mistakes.note(check_range(written, offset, size, &disks[disk]))??;
    Some(Extent { draft: written, disk, bytes })
}

fn unknown_disk(disk: &str, disks: &[Checked]) -> Problem {
    let known: Vec<_> = disks.iter().map(|disk| format!("{:?}", disk.name)).collect();
    Problem::UnknownDisk { disk: disk.to_owned(), known: known.join(", ") }
}

/// The bytes from `offset` on, as many as `size` says, else all. None if the disk's size is not
/// known.
fn check_range(
    draft: &DraftExport,
    offset: u64,
    size: Option<u64>,
    disk: &Checked,
) -> Result<Option<Range<u64>>, Mistake> {
    let place = draft.size.place().or(draft.offset.place()).unwrap_or(&draft.name.place);
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
    let (offset, size) = (draft.offset.place(), draft.size.place());
    for (problem, place) in [(begins, offset), (ends, size.or(offset))] {
        if let Some(problem) = problem {
            let place = place.unwrap_or(&draft.name.place);
            mistakes.add(place, Problem::InsideBlock(Box::new(problem)));
        }
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
