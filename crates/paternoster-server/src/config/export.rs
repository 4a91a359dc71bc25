//! The exports: ranges of disks that clients ask for by name.

use std::ops::Range;

use paternoster::IoPrio;

use super::disk::Checked;
use super::draft::{DraftExport, check_name};
use super::error::{ConfigError, Place, Problem};
use super::group::{GroupConfig, path_of};
use super::size;

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
    /// Its bytes of the disk.
    pub fn bytes(&self) -> Range<u64> {
        self.offset..self.offset + self.size
    }
}

/// Refuses names that cannot be, before groups are named after them.
pub(super) fn check_names(drafts: &[DraftExport]) -> Result<(), ConfigError> {
    for (index, draft) in drafts.iter().enumerate() {
        check_name("export", &draft.name)?;
        if drafts[..index].iter().any(|other| other.name.value == draft.name.value) {
            return draft.name.refuse(Problem::ExportTwice { name: draft.name.value.clone() });
        }
    }
    Ok(())
}

/// The exports of these disks, in these groups.
pub(super) fn check(
    drafts: Vec<DraftExport>,
    whole: &Place,
    disks: &[Checked],
    groups: &[GroupConfig],
) -> Result<Vec<ExportConfig>, ConfigError> {
    if drafts.is_empty() {
        return Err(whole.refuses(Problem::NoExport));
    }
    let mut exports = Vec::new();
    for draft in drafts {
        let export = check_export(&draft, disks, groups)?;
        check_beside(&draft, &export, &exports, disks)?;
        exports.push(export);
    }
    Ok(exports)
}

fn check_export(
    draft: &DraftExport,
    disks: &[Checked],
    groups: &[GroupConfig],
) -> Result<ExportConfig, ConfigError> {
    if let Some(description) = &draft.description {
        check_name("description", description)?;
    }
    let disk = find_disk(draft, disks)?;
    let (offset, size) = check_range(draft, &disks[disk])?;
    let path = path_of(draft);
    let group = groups.iter().position(|group| group.path == path);
    let io_prio = match &draft.io_prio {
        None => IoPrio::default(),
        Some(text) => text.value.parse().or_else(|error| text.refuse(Problem::BadIoPrio(error)))?,
    };
    Ok(ExportConfig {
        name: draft.name.value.clone(),
        disk,
        offset,
        size,
        group: group.expect("every export's group was made"),
        io_prio,
        read_only: draft.read_only,
        description: draft.description.as_ref().map(|text| text.value.clone()),
    })
}

fn find_disk(draft: &DraftExport, disks: &[Checked]) -> Result<usize, ConfigError> {
    let wanted = &draft.disk.value;
    let found = disks.iter().position(|disk| disk.config.name == *wanted);
    found.ok_or_else(|| {
        let names: Vec<_> = disks.iter().map(|disk| format!("{:?}", disk.config.name)).collect();
        let problem = Problem::UnknownDisk { disk: wanted.clone(), known: names.join(", ") };
        draft.disk.place.refuses(problem)
    })
}

/// Offset and size, both in bytes.
fn check_range(draft: &DraftExport, disk: &Checked) -> Result<(u64, u64), ConfigError> {
    let offset = match &draft.offset {
        None => 0,
        Some(found) => size::check("offset", found)?,
    };
    let size = match &draft.size {
        None => disk.size.saturating_sub(offset),
        Some(found) => size::check("size", found)?,
    };
    let last_written = draft.size.as_ref().or(draft.offset.as_ref());
    let place = last_written.map_or(&draft.name.place, |found| &found.place);
    let export = draft.name.value.clone();
    if offset.saturating_add(size) > disk.size {
        let (disk, disk_size) = (disk.config.name.clone(), disk.size);
        return Err(place.refuses(Problem::PastEnd { export, offset, size, disk, disk_size }));
    }
    if size == 0 {
        return Err(place.refuses(Problem::EmptyExport { export }));
    }
    Ok((offset, size))
}

/// Whether `export` may stand beside the `others`.
fn check_beside(
    draft: &DraftExport,
    export: &ExportConfig,
    others: &[ExportConfig],
    disks: &[Checked],
) -> Result<(), ConfigError> {
    for other in others {
        let bytes = export.offset.max(other.offset)..export.bytes().end.min(other.bytes().end);
        let both_read = export.read_only && other.read_only;
        if export.disk == other.disk && !bytes.is_empty() && !both_read {
            return draft.name.refuse(Problem::Overlap {
                export: export.name.clone(),
                other: other.name.clone(),
                disk: disks[export.disk].config.name.clone(),
                bytes,
            });
        }
    }
    Ok(())
}
