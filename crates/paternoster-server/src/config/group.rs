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
//! is, or is 100. An export without a `group` makes its own, of its name; the default export, whose
//! name is empty, makes `/default`. A written group that no
//! export is in or below is refused: the name is misspelt there or at the export, which would then
//! silently run at weight 100.
//!
//! `weight_device` and `leaf_weight_device` are other weights on the disks that they name, as in
//! version 1 of Linux's I/O cgroups. A disk on which the group is not is refused as well.

use std::collections::BTreeMap;

use paternoster::{DeviceWeights, GroupLimits, Weight, Weights};

use super::bounds::{self, TenantBounds};
use super::disk::Checked;
use super::draft::{At, Bounds, Draft, DraftExport, DraftGroup, Key, NAME_MAX, Number, check_name};
use super::error::{Mistake, Problem};
use super::limit::Limit;
use super::mistakes::Mistakes;

/// The most names of a path. Each level costs every decision a step, and CFQ has parts of a disk
/// in 1/4096: of a tree much deeper, nothing would be left to share.
const LEVELS_MAX: usize = 8;

/// What the own group of the default export is called, whose name is empty.
const DEFAULT: &str = "default";

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
    /// Its caps, reservations and latency target, on each disk.
    pub limits: GroupLimits,
    /// What its clients may take of the server.
    pub bounds: TenantBounds,
}

impl GroupConfig {
    /// Makes a group at the top level, whose leaf weight is its weight.
    pub fn new(path: impl Into<String>, weight: Weight) -> Self {
        Self {
            path: path.into(),
            parent: None,
            weight,
            leaf_weight: weight,
            device_weights: BTreeMap::new(),
            limits: GroupLimits::NONE,
            bounds: TenantBounds::default(),
        }
    }

    /// Returns whether its leaf weight is another than its weight, or the disk's own.
    pub(super) fn has_leaf_weight(&self, disk: usize) -> bool {
        let of_disk = self.device_weights.get(&disk).and_then(|weights| weights.leaf);
        self.leaf_weight != self.weight || of_disk.is_some()
    }

    /// Its weights where a disk has none of its own for it.
    pub(crate) fn weights(&self) -> Weights {
        Weights { weight: self.weight, leaf: self.leaf_weight }
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

/// Whose the exports are, as far as that is known.
pub(super) struct Members {
    /// The path of each export's group, in the order of the exports; none where it is wrong.
    paths: Vec<Option<String>>,
    /// Whether nothing is wrong with an export that leaves open whose it is.
    are_all_known: bool,
}

impl Members {
    pub(super) fn of(draft: &Draft, mistakes: &mut Mistakes) -> Self {
        let path = |export| mistakes.note(check_reference(export)).flatten();
        let paths: Vec<_> = draft.exports.iter().map(path).collect();
        check_default(&draft.exports, mistakes);
        let is_known = |(export, path): (&DraftExport, &Option<String>)| {
            path.is_some() && !(export.has_gaps && export.group.is_missing())
        };
        let are_all_known = !draft.has_gaps && draft.exports.iter().zip(&paths).all(is_known);
        Self { paths, are_all_known }
    }

    /// The path of an export's group.
    pub(super) fn path(&self, export: usize) -> Option<&str> {
        self.paths[export].as_deref()
    }

    /// The paths that are known, without a repetition.
    fn used(&self) -> Vec<&str> {
        let mut used: Vec<_> = self.paths.iter().flatten().map(String::as_str).collect();
        used.sort_unstable();
        used.dedup();
        used
    }
}

/// The groups that are written, then those that exports name or make, in their order; but behind
/// each group at once those below it.
pub(super) fn check(
    draft: &Draft,
    members: &Members,
    disks: &[Checked],
    general: TenantBounds,
    mistakes: &mut Mistakes,
) -> Option<Vec<GroupConfig>> {
    let mut paths = Vec::new();
    let mut is_right = true;
    for group in &draft.groups {
        if mistakes.note(check_path(&group.path)).is_some() {
            add(&mut paths, &group.path.value);
        } else {
            check_weights_nowhere(group, mistakes);
            is_right = false;
        }
    }
    for (index, export) in draft.exports.iter().enumerate() {
        if let Some(path) = members.path(index) {
            mistakes.note(check_weight_place(export, path, &draft.groups));
            add(&mut paths, path);
        } else {
            export.weight.check(mistakes, |weight| check_weight("weight", weight));
            is_right = false;
        }
    }
    check_all_used(draft, members, mistakes);
    let mut groups = Vec::new();
    for path in &paths {
        let written = draft.groups.iter().find(|group| group.path.value == *path);
        let group = check_group(path, &paths, draft, members, mistakes);
        let on_disks = written.map(|written| OfGroup { written, draft, members, disks });
        let device_weights = on_disks.map(|on_disks| on_disks.device_weights(mistakes));
        let bounds =
            written.map_or(Some(general), |group| bounds::check_group(general, group, mistakes));
        let limits = on_disks.map_or(Some(GroupLimits::NONE), |on_disks| on_disks.limits(mistakes));
        is_right &= group.is_some() && bounds.is_some() && limits.is_some();
        let device_weights = device_weights.unwrap_or_default();
        let (bounds, limits) = (bounds.unwrap_or(general), limits.unwrap_or_default());
        groups.extend(group.map(|group| GroupConfig { device_weights, limits, bounds, ..group }));
    }
    is_right.then_some(groups)
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
    draft: &Draft,
    members: &Members,
    mistakes: &mut Mistakes,
) -> Option<GroupConfig> {
    let written = draft.groups.iter().find(|group| group.path.value == path);
    let is_own = |(index, export): &(usize, &DraftExport)| {
        members.path(*index) == Some(path) && export.group.is_missing()
    };
    let own = || draft.exports.iter().enumerate().find(is_own);
    let of_group = written.map(|group| &group.weight).filter(|weight| !weight.is_missing());
    let weight = of_group.or_else(|| own().map(|(_, export)| &export.weight));
    let missing = Key::Missing;
    let weight = weight
        .unwrap_or(&missing)
        .check_or(Weight::default(), mistakes, |weight| check_weight("weight", weight));
    let leaf = written.map_or(&missing, |group| &group.leaf_weight);
    let leaf = leaf.check(mistakes, |leaf| check_weight("leaf_weight", leaf));
    Some(GroupConfig {
        path: path.to_owned(),
        parent: parent_of(path).and_then(|parent| paths.iter().position(|other| other == parent)),
        weight: weight?,
        leaf_weight: leaf?.unwrap_or(weight?),
        device_weights: BTreeMap::new(),
        limits: GroupLimits::NONE,
        bounds: TenantBounds::default(),
    })
}

/// A group that is written, and what is needed to check its weights on disks.
#[derive(Clone, Copy)]
struct OfGroup<'a> {
    written: &'a DraftGroup,
    draft: &'a Draft,
    members: &'a Members,
    disks: &'a [Checked],
}

impl OfGroup<'_> {
    /// Those of its weights on disks that are right.
    fn device_weights(self, mistakes: &mut Mistakes) -> BTreeMap<usize, DeviceWeights> {
        let mut weights = BTreeMap::<usize, DeviceWeights>::new();
        let DraftGroup { weight_device, leaf_weight_device, .. } = self.written;
        for (disk, weight) in weight_device {
            let found = mistakes.note(self.find_disk(disk)).flatten();
            let weight = mistakes.note(check_weight("weight_device", weight));
            if let Some(index) = found {
                weights.entry(index).or_default().weight = weight;
            }
        }
        for (disk, leaf) in leaf_weight_device {
            let found = mistakes.note(self.find_disk(disk)).flatten();
            let leaf = mistakes.note(check_weight("leaf_weight_device", leaf));
            if let Some(index) = found {
                weights.entry(index).or_default().leaf = leaf;
            }
        }
        weights
    }

    /// Its limits. A disk where it is has to have a scheduler that has such limits.
    fn limits(self, mistakes: &mut Mistakes) -> Option<GroupLimits> {
        let mut limits = GroupLimits::NONE;
        let mut is_right = true;
        for (limit, key) in Limit::ALL.into_iter().zip(&self.written.limits) {
            let value = key.check(mistakes, |found| {
                limit.read(&found.value).or_else(|problem| found.refuse(problem))
            });
            match value {
                Some(value) => limit.set(&mut limits, value.flatten()),
                None => is_right = false,
            }
            if limit.of(&limits).is_some() {
                is_right &= mistakes.note(self.check_takes(limit, key)).is_some();
            }
        }
        is_right.then_some(limits)
    }

    /// Refuses a limit where a disk of the group has a scheduler without limits.
    fn check_takes(self, limit: Limit, key: &Key<Number>) -> Result<(), Mistake> {
        let is_here = |name: &str| {
            self.exports().any(|export| export.disk.value().is_some_and(|at| at.value == name))
        };
        let disks = self.disks.iter().filter(|disk| is_here(&disk.name));
        let scheduler = |disk: &Checked| disk.config.as_ref().map(|config| config.scheduler);
        let mut without = disks.filter_map(|disk| {
            let choice = scheduler(disk).filter(|choice| !choice.kind().has_group_limits())?;
            Some((disk.name.clone(), choice))
        });
        match (without.next(), key.value()) {
            (Some((disk, scheduler)), Some(found)) => {
                let group = self.written.path.value.clone();
                let (key, name) = (limit.key(), scheduler.kind().name());
                let problem = Problem::NoLimits { key, group, disk, scheduler: name };
                found.refuse(scheduler.explain(problem))
            }
            _ => Ok(()),
        }
    }

    /// The index of a disk of that name, on which an export is in the group or below it. None if
    /// what is wrong elsewhere leaves that open.
    fn find_disk(self, name: &At<String>) -> Result<Option<usize>, Mistake> {
        let exists = |name: &str| self.disks.iter().any(|disk| disk.name == name);
        let is_open = !self.members.are_all_known
            || self.exports().any(|export| export.disk.value().is_none_or(|at| !exists(&at.value)));
        let has_exports = |disk: &&Checked| {
            self.exports()
                .any(|export| export.disk.value().is_some_and(|written| written.value == disk.name))
        };
        let index = self.disks.iter().position(|disk| disk.name == name.value);
        match index.filter(|&index| has_exports(&&self.disks[index])) {
            Some(index) => Ok(Some(index)),
            None if is_open => Ok(None),
            None => {
                let known = self.disks.iter().filter(has_exports);
                let known: Vec<_> = known.map(|disk| format!("{:?}", disk.name)).collect();
                let (group, disk) = (self.written.path.value.clone(), name.value.clone());
                name.refuse(Problem::GroupNotOnDisk { group, disk, known: known.join(", ") })
            }
        }
    }

    /// The exports in the group or below it.
    fn exports(&self) -> impl Iterator<Item = &DraftExport> {
        let group = self.written.path.value.as_str();
        let exports = self.draft.exports.iter().enumerate();
        exports.filter_map(move |(index, export)| {
            let path = self.members.path(index)?;
            (path == group || is_below(path, group)).then_some(export)
        })
    }
}

/// The path of an export's group; none if there is none in its place, which is told already.
fn check_reference(export: &DraftExport) -> Result<Option<String>, Mistake> {
    match &export.group {
        Key::Unreadable => return Ok(None),
        Key::Written(path) => return check_path(path).map(|()| Some(path.value.clone())),
        Key::Missing => {}
    }
    let At { value: name, place } = &export.name;
    check_name("export", &export.name)?;
    // The path has a "/" before it. A name with one inside would put the export into a group that
    // nobody has written.
    let max = NAME_MAX - 1;
    let name = if name.is_empty() { DEFAULT } else { name };
    if name.len() <= max && !name.contains('/') {
        return Ok(Some(format!("/{name}")));
    }
    Err(place.mistake(Problem::NoOwnGroup { export: name.to_owned(), max }))
}

/// Notes two exports that would have the default export's own group.
fn check_default(exports: &[DraftExport], mistakes: &mut Mistakes) {
    let own = |name: &str| {
        exports.iter().find(|export| export.name.value == name && export.group.is_missing())
    };
    if let (Some(unnamed), Some(_)) = (own(""), own(DEFAULT)) {
        let problem = Problem::DefaultGroupTwice { name: DEFAULT, path: format!("/{DEFAULT}") };
        mistakes.add(&unnamed.name.place, problem);
    }
}

fn check_path(path: &At<String>) -> Result<(), Mistake> {
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

/// The weights of a group that is nowhere, as its path is wrong.
fn check_weights_nowhere(group: &DraftGroup, mistakes: &mut Mistakes) {
    group.weight.check(mistakes, |weight| check_weight("weight", weight));
    group.leaf_weight.check(mistakes, |leaf| check_weight("leaf_weight", leaf));
    for (_, weight) in &group.weight_device {
        mistakes.note(check_weight("weight_device", weight));
    }
    for (_, leaf) in &group.leaf_weight_device {
        mistakes.note(check_weight("leaf_weight_device", leaf));
    }
}

fn check_weight(key: &'static str, weight: &At<i64>) -> Result<Weight, Mistake> {
    let bounds = Bounds { key, min: Weight::MIN, max: Weight::MAX, unit: "" };
    let value = bounds.check(weight)?;
    Ok(Weight::new(value).expect("a weight within its bounds is one"))
}

/// Returns whether an export's weight is its own group's, and the only one of that.
fn check_weight_place(
    export: &DraftExport,
    path: &str,
    written: &[DraftGroup],
) -> Result<(), Mistake> {
    let Some(weight) = export.weight.value() else { return Ok(()) };
    let group = path.to_owned();
    if !export.group.is_missing() {
        let export = export.name.value.clone();
        return weight.refuse(Problem::WeightBesideGroup { export, group });
    }
    if written.iter().any(|group| group.path.value == path && !group.weight.is_missing()) {
        return weight.refuse(Problem::WeightTwice { group });
    }
    Ok(())
}

/// Notes groups that nobody is in, where it is known who is in which.
fn check_all_used(draft: &Draft, members: &Members, mistakes: &mut Mistakes) {
    if !members.are_all_known || draft.exports.is_empty() {
        return;
    }
    let used = members.used();
    let is_used = |group: &str| used.iter().any(|path| *path == group || is_below(path, group));
    let is_path = |group: &&DraftGroup| check_path(&group.path).is_ok();
    let unused = draft.groups.iter().filter(|group| !is_used(&group.path.value)).filter(is_path);
    for DraftGroup { path, .. } in unused {
        let used: Vec<_> = used.iter().map(|path| format!("{path:?}")).collect();
        let (group, used) = (path.value.clone(), used.join(", "));
        mistakes.add(&path.place, Problem::UnusedGroup { path: group, used });
    }
}
