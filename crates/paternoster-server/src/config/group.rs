//! The tenants: groups of exports that share a weight.
//!
//! A group's weight is written in `[groups."/NAME"]`, or as the `weight` of the export whose own
//! group it is, or is 100. An export without a `group` makes its own, of its name. A written group
//! that no export is in is refused: the name is misspelt there or at the export, which would then
//! silently run at weight 100.

use std::borrow::Cow;

use paternoster::Weight;

use super::draft::{At, Bounds, DraftExport, DraftGroup, check_name};
use super::error::{ConfigError, Problem};

/// A tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupConfig {
    /// Its path, `/` and one name.
    pub path: String,
    /// Its weight against the other groups of each disk.
    pub weight: Weight,
}

/// The groups that are written, then those that exports name or make, in their order.
pub(super) fn check(
    written: &[DraftGroup],
    exports: &[DraftExport],
) -> Result<Vec<GroupConfig>, ConfigError> {
    let mut groups = Vec::new();
    for group in written {
        check_path(&group.path)?;
        let weight = group.weight.as_ref().map(check_weight).transpose()?.unwrap_or_default();
        groups.push(GroupConfig { path: group.path.value.clone(), weight });
    }
    for export in exports {
        check_reference(export)?;
        let path = path_of(export);
        let known = groups.iter_mut().find(|group| group.path == path);
        let weight = own_weight(export, written)?;
        match (known, weight) {
            (Some(group), Some(weight)) => group.weight = weight,
            (Some(_), None) => {}
            (None, weight) => groups
                .push(GroupConfig { path: path.into_owned(), weight: weight.unwrap_or_default() }),
        }
    }
    check_all_used(written, exports)?;
    Ok(groups)
}

/// The path of an export's group.
pub(super) fn path_of(export: &DraftExport) -> Cow<'_, str> {
    match &export.group {
        Some(path) => Cow::Borrowed(path.value.as_str()),
        None => Cow::Owned(format!("/{}", export.name.value)),
    }
}

fn check_reference(export: &DraftExport) -> Result<(), ConfigError> {
    if let Some(path) = &export.group {
        return check_path(path);
    }
    let own = At { value: path_of(export).into_owned(), place: export.name.place.clone() };
    check_path(&own).or_else(|_| {
        let export_name = export.name.value.clone();
        own.refuse(Problem::NoOwnGroup { export: export_name, path: own.value.clone() })
    })
}

fn check_path(path: &At<String>) -> Result<(), ConfigError> {
    check_name("group", path)?;
    match path.value.strip_prefix('/') {
        Some(name) if name.split('/').any(str::is_empty) => {}
        Some(name) if name.contains('/') => {
            return path.refuse(Problem::NestedGroup { path: path.value.clone() });
        }
        Some(_) => return Ok(()),
        None => {}
    }
    path.refuse(Problem::BadGroup { path: path.value.clone() })
}

fn check_weight(weight: &At<i64>) -> Result<Weight, ConfigError> {
    let bounds = Bounds { key: "weight", min: Weight::MIN, max: Weight::MAX, unit: "" };
    let value = bounds.check(weight)?;
    Ok(Weight::new(value).expect("a weight within its bounds is one"))
}

/// The weight that an export gives its own group.
fn own_weight(export: &DraftExport, written: &[DraftGroup]) -> Result<Option<Weight>, ConfigError> {
    let Some(weight) = &export.weight else { return Ok(None) };
    let path = path_of(export);
    if export.group.is_some() {
        let (export, group) = (export.name.value.clone(), path.into_owned());
        return weight.refuse(Problem::WeightBesideGroup { export, group });
    }
    if written.iter().any(|group| group.path.value == path && group.weight.is_some()) {
        return weight.refuse(Problem::WeightTwice { group: path.into_owned() });
    }
    check_weight(weight).map(Some)
}

fn check_all_used(written: &[DraftGroup], exports: &[DraftExport]) -> Result<(), ConfigError> {
    let used = |group: &&DraftGroup| exports.iter().any(|e| path_of(e) == group.path.value);
    let Some(unused) = written.iter().find(|group| !used(group)) else { return Ok(()) };
    let mut names: Vec<_> = exports.iter().map(|export| format!("{:?}", path_of(export))).collect();
    names.sort();
    names.dedup();
    let path = unused.path.value.clone();
    unused.path.refuse(Problem::UnusedGroup { path, used: names.join(", ") })
}
