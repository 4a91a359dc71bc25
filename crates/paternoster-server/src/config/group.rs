//! The groups: tenants with a weight, and what tenants have in common.
//!
//! A path says where a group is: `/org/db` is below `/org`, and those above a group are there
//! without being written. Its weight is against its siblings; its leaf weight is that of its own
//! exports against the groups below it.
//!
//! ```text
//!   /                 ┌─ /org's own exports   leaf weight of /org
//!   ├─ /org  weight ──┼─ /org/db              weight
//!   └─ /lab  weight   └─ /org/web             weight
//! ```
//!
//! A weight is written in `[groups."/NAME"]`, or as the `weight` of the export whose own group it
//! is, or is 100. An export without a `group` makes its own, of its name. A written group that no
//! export is in or below is refused: the name is misspelt there or at the export, which would then
//! silently run at weight 100.
//!
//! `weight_device` and `leaf_weight_device` are other weights on the disks that they name, as in
//! version 1 of Linux's I/O cgroups. A disk on which the group is not is refused as well.

use std::borrow::Cow;
use std::collections::BTreeMap;

use paternoster::{DeviceWeights, Weight, Weights};

use super::disk::Checked;
use super::draft::{At, Bounds, DraftExport, DraftGroup, NAME_MAX, check_name};
use super::error::{ConfigError, Problem};

/// The most names of a path. Each level costs every decision a step, and CFQ has parts of a disk
/// in 1/4096: of a tree much deeper, nothing would be left to share.
const LEVELS_MAX: usize = 8;

/// A tenant, or a group above tenants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupConfig {
    /// Its path, a name behind a `/` for each level.
    pub path: String,
    /// The group above, as an index into [`Config::groups`](super::Config::groups); none at the
    /// top level.
    pub parent: Option<usize>,
    /// Its weight against its siblings on each disk.
    pub weight: Weight,
    /// The weight of its own exports against the groups below it.
    pub leaf_weight: Weight,
    /// Weights that hold on one disk instead of these, by its index in
    /// [`Config::disks`](super::Config::disks).
    pub device_weights: BTreeMap<usize, DeviceWeights>,
}

impl GroupConfig {
    /// A group at the top level, whose leaf weight is its weight.
    pub fn new(path: impl Into<String>, weight: Weight) -> Self {
        let device_weights = BTreeMap::new();
        Self { path: path.into(), parent: None, weight, leaf_weight: weight, device_weights }
    }

    /// Whether its leaf weight is another than its weight, or the disk's own.
    pub(super) fn has_leaf_weight(&self, disk: usize) -> bool {
        let of_disk = self.device_weights.get(&disk).and_then(|weights| weights.leaf);
        self.leaf_weight != self.weight || of_disk.is_some()
    }

    /// The weights that hold on a disk, by its index.
    pub fn weights_on(&self, disk: usize) -> Weights {
        let on_disk = self.device_weights.get(&disk).copied().unwrap_or_default();
        Weights {
            weight: on_disk.weight.unwrap_or(self.weight),
            leaf: on_disk.leaf.unwrap_or(self.leaf_weight),
        }
    }
}

/// The groups that are written, then those that exports name or make, in their order; but behind
/// each group at once those below it.
pub(super) fn check(
    written: &[DraftGroup],
    exports: &[DraftExport],
    disks: &[Checked],
) -> Result<Vec<GroupConfig>, ConfigError> {
    let mut paths = Vec::new();
    for group in written {
        check_path(&group.path)?;
        add(&mut paths, &group.path.value);
    }
    for export in exports {
        check_reference(export)?;
        check_weight_place(export, written)?;
        add(&mut paths, &path_of(export));
    }
    check_all_used(written, exports)?;
    let mut groups = Vec::new();
    for path in &paths {
        let written = written.iter().find(|group| group.path.value == *path);
        let mut group = check_group(path, &paths, written, exports)?;
        if let Some(written) = written {
            group.device_weights = check_device_weights(written, exports, disks)?;
        }
        groups.push(group);
    }
    Ok(groups)
}

/// The path of an export's group.
pub(super) fn path_of(export: &DraftExport) -> Cow<'_, str> {
    match &export.group {
        Some(path) => Cow::Borrowed(path.value.as_str()),
        None => Cow::Owned(format!("/{}", export.name.value)),
    }
}

/// Adds a path behind all that is below its parent, which is added before. Where it is.
fn add(paths: &mut Vec<String>, path: &str) -> usize {
    if let Some(known) = paths.iter().position(|known| known == path) {
        return known;
    }
    let place = match parent_of(path) {
        None => paths.len(),
        Some(parent) => {
            let first = add(paths, parent) + 1;
            first + paths[first..].iter().take_while(|other| is_below(other, parent)).count()
        }
    };
    paths.insert(place, path.to_owned());
    place
}

fn parent_of(path: &str) -> Option<&str> {
    path.rsplit_once('/').map(|(parent, _)| parent).filter(|parent| !parent.is_empty())
}

fn is_below(path: &str, group: &str) -> bool {
    path.strip_prefix(group).is_some_and(|rest| rest.starts_with('/'))
}

fn check_group(
    path: &str,
    paths: &[String],
    written: Option<&DraftGroup>,
    exports: &[DraftExport],
) -> Result<GroupConfig, ConfigError> {
    let weight_of_export = || {
        let mut own = exports.iter().filter(|export| export.group.is_none());
        own.find(|export| path_of(export) == path).and_then(|export| export.weight.as_ref())
    };
    let weight = written.and_then(|group| group.weight.as_ref()).or_else(weight_of_export);
    let weight = weight.map(|weight| check_weight("weight", weight)).transpose()?;
    let weight = weight.unwrap_or_default();
    let leaf = written.and_then(|group| group.leaf_weight.as_ref());
    let leaf = leaf.map(|leaf| check_weight("leaf_weight", leaf)).transpose()?;
    Ok(GroupConfig {
        path: path.to_owned(),
        parent: parent_of(path).and_then(|parent| paths.iter().position(|other| other == parent)),
        weight,
        leaf_weight: leaf.unwrap_or(weight),
        device_weights: BTreeMap::new(),
    })
}

fn check_device_weights(
    group: &DraftGroup,
    exports: &[DraftExport],
    disks: &[Checked],
) -> Result<BTreeMap<usize, DeviceWeights>, ConfigError> {
    let mut weights = BTreeMap::<usize, DeviceWeights>::new();
    for (disk, weight) in &group.weight_device {
        let index = find_disk(group, disk, exports, disks)?;
        let weight = check_weight("weight_device", weight)?;
        weights.entry(index).or_default().weight = Some(weight);
    }
    for (disk, leaf) in &group.leaf_weight_device {
        let index = find_disk(group, disk, exports, disks)?;
        let leaf = check_weight("leaf_weight_device", leaf)?;
        weights.entry(index).or_default().leaf = Some(leaf);
    }
    Ok(weights)
}

/// The index of a disk of that name, on which an export is in the group or below it.
fn find_disk(
    group: &DraftGroup,
    name: &At<String>,
    exports: &[DraftExport],
    disks: &[Checked],
) -> Result<usize, ConfigError> {
    let path = group.path.value.as_str();
    let inside = |export: &&DraftExport| {
        let own = path_of(export);
        own == path || is_below(&own, path)
    };
    let has_exports = |disk: &&Checked| {
        exports.iter().filter(inside).any(|export| export.disk.value == disk.config.name)
    };
    let index = disks.iter().position(|disk| disk.config.name == name.value);
    index.filter(|&index| has_exports(&&disks[index])).ok_or_else(|| {
        let known = disks.iter().filter(has_exports);
        let known: Vec<_> = known.map(|disk| format!("{:?}", disk.config.name)).collect();
        let (group, disk) = (path.to_owned(), name.value.clone());
        let problem = Problem::GroupNotOnDisk { group, disk, known: known.join(", ") };
        name.place.refuses(problem)
    })
}

fn check_reference(export: &DraftExport) -> Result<(), ConfigError> {
    if let Some(path) = &export.group {
        return check_path(path);
    }
    let At { value: name, place } = &export.name;
    // The path has a "/" before it. A name with one inside would put the export into a group that
    // nobody has written.
    let max = NAME_MAX - 1;
    if (1..=max).contains(&name.len()) && !name.contains('/') {
        return Ok(());
    }
    Err(place.refuses(Problem::NoOwnGroup { export: name.clone(), max }))
}

fn check_path(path: &At<String>) -> Result<(), ConfigError> {
    check_name("group", path)?;
    let found = path.value.clone();
    let names = path.value.strip_prefix('/').unwrap_or_default();
    if names.split('/').any(str::is_empty) {
        return path.refuse(Problem::BadGroup { path: found });
    }
    let levels = names.split('/').count();
    if levels > LEVELS_MAX {
        return path.refuse(Problem::GroupTooDeep { path: found, levels, max: LEVELS_MAX });
    }
    Ok(())
}

fn check_weight(key: &'static str, weight: &At<i64>) -> Result<Weight, ConfigError> {
    let bounds = Bounds { key, min: Weight::MIN, max: Weight::MAX, unit: "" };
    let value = bounds.check(weight)?;
    Ok(Weight::new(value).expect("a weight within its bounds is one"))
}

/// Whether an export's weight is its own group's, and the only one of that.
fn check_weight_place(export: &DraftExport, written: &[DraftGroup]) -> Result<(), ConfigError> {
    let Some(weight) = &export.weight else { return Ok(()) };
    let path = path_of(export);
    if export.group.is_some() {
        let (export, group) = (export.name.value.clone(), path.into_owned());
        return weight.refuse(Problem::WeightBesideGroup { export, group });
    }
    if written.iter().any(|group| group.path.value == path && group.weight.is_some()) {
        return weight.refuse(Problem::WeightTwice { group: path.into_owned() });
    }
    Ok(())
}

fn check_all_used(written: &[DraftGroup], exports: &[DraftExport]) -> Result<(), ConfigError> {
    let mut used: Vec<_> = exports.iter().map(path_of).collect();
    used.sort();
    used.dedup();
    let is_used = |group: &str| used.iter().any(|path| *path == group || is_below(path, group));
    let Some(unused) = written.iter().find(|group| !is_used(&group.path.value)) else {
        return Ok(());
    };
    let path = unused.path.value.clone();
    let used: Vec<_> = used.iter().map(|path| format!("{path:?}")).collect();
    unused.path.refuse(Problem::UnusedGroup { path, used: used.join(", ") })
}
