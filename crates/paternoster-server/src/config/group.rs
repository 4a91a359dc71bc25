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
//! The root is no tenant. `[groups."/"]` has caps alone, for all that use a disk.
//!
//! `weight_device` and `leaf_weight_device` are other weights on the disks that they name, as in
//! version 1 of Linux's I/O cgroups. A disk on which the group is not is refused as well.

use std::collections::{BTreeMap, BTreeSet};

use paternoster::{DeviceWeights, GroupLimits, Weights};

use super::disk::Checked;
use super::draft::{Draft, NAME_MAX, check_name};
use super::error::{Mistake, Problem};
use super::keys::{
    At, ExportKeys, GroupKeys, Key, Keys as _, Object, ROOT, ServerKeys, State, group_kind,
};
use super::mistakes::Mistakes;

/// The most names of a path. Each level costs every decision a step, and CFQ has parts of a disk
/// in 1/4096: of a tree much deeper, nothing would be left to share.
const LEVELS_MAX: usize = 8;

/// What the own group of the default export is called, whose name is empty.
const DEFAULT: &str = "default";

/// The group of volumes that are no exports: no client is in it, so it takes nothing of any other.
pub(crate) const OF_VOLUMES: &str = "/.volumes";

/// A tenant, or a group above tenants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupConfig {
    /// Its path, a name behind a `/` for each level.
    pub path: String,
    /// The group above, as an index into [`Config::groups`](super::Config::groups); none at the
    /// top level.
    pub parent: Option<usize>,
    /// What is set of it.
    pub keys: GroupKeys,
    /// Weights that hold on one disk instead of its own, by its index in
    /// [`Config::disks`](super::Config::disks).
    pub device_weights: BTreeMap<usize, DeviceWeights>,
}

impl GroupConfig {
    /// Returns whether its leaf weight is another than its weight, or the disk's own.
    pub(super) fn has_leaf_weight(&self, disk: usize) -> bool {
        let of_disk = self.device_weights.get(&disk).and_then(|weights| weights.leaf);
        let Weights { weight, leaf } = self.weights();
        leaf != weight || of_disk.is_some()
    }

    /// Its weights where a disk has none of its own for it.
    pub fn weights(&self) -> Weights {
        self.keys.weights()
    }

    /// The weights that hold on a disk, by its index.
    pub fn weights_on(&self, disk: usize) -> Weights {
        let on_disk = self.device_weights.get(&disk).copied().unwrap_or_default();
        let Weights { weight, leaf } = self.weights();
        Weights { weight: on_disk.weight.unwrap_or(weight), leaf: on_disk.leaf.unwrap_or(leaf) }
    }
}

/// Whose the exports are, as far as that is known.
pub(super) struct Members {
    /// The path of each export's group, in the order of the exports; none where it is wrong.
    paths: Vec<Option<String>>,
    /// The exports in each group or below it, by their places; also of the root.
    below: BTreeMap<String, Vec<usize>>,
    /// Whether nothing is wrong with an export that leaves open whose it is.
    are_all_known: bool,
}

impl Members {
    pub(super) fn of(draft: &Draft, mistakes: &mut Mistakes) -> Self {
        let path = |export| mistakes.note(check_reference(export)).flatten();
        let mut paths: Vec<_> = draft.exports.iter().map(path).collect();
        for (_, path) in draft.exports.iter().zip(&mut paths).filter(|(of, _)| !of.keys.export) {
            *path = Some(OF_VOLUMES.to_owned());
        }
        check_default(&draft.exports, mistakes);
        let is_known = |(export, path): (&Object<ExportKeys>, &Option<String>)| {
            path.is_some() && !(export.has_gaps && export.states.group.is_missing())
        };
        let are_all_known = !draft.has_gaps && draft.exports.iter().zip(&paths).all(is_known);
        let mut below = BTreeMap::<_, Vec<_>>::new();
        for (export, path) in paths.iter().enumerate() {
            let lineage = std::iter::successors(path.as_deref(), |path| parent_of(path));
            for group in lineage.chain(path.iter().map(|_| ROOT)) {
                below.entry(group.to_owned()).or_default().push(export);
            }
        }
        Self { paths, below, are_all_known }
    }

    /// The path of an export's group.
    pub(super) fn path(&self, export: usize) -> Option<&str> {
        self.paths[export].as_deref()
    }

    /// The exports in a group or below it, by their places.
    fn below(&self, group: &str) -> &[usize] {
        self.below.get(group).map_or(&[], Vec::as_slice)
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
/// each group at once those below it. None if a path is wrong.
pub(super) fn check(
    draft: &Draft,
    members: &Members,
    disks: &[Checked],
    mistakes: &mut Mistakes,
) -> Option<Vec<GroupConfig>> {
    let mut paths = GroupPaths::default();
    let mut are_all = true;
    let written: BTreeMap<&str, _> =
        draft.groups.iter().map(|group| (&*group.name.value, group)).collect();
    for group in draft.groups.iter().filter(|group| group.name.value != ROOT) {
        if mistakes.note(check_group_path(&group.name)).is_some() {
            paths.add(&group.name.value);
        } else {
            are_all = false;
        }
    }
    // The first export whose own group it is.
    let mut own = BTreeMap::new();
    for (index, export) in draft.exports.iter().enumerate() {
        if let Some(path) = members.path(index) {
            mistakes.note(check_weight_place(export, path, written.get(path).copied()));
            paths.add(path);
            if export.has_own_group() {
                own.entry(path).or_insert(export);
            }
        } else {
            are_all = false;
        }
    }
    check_all_used(draft, members, mistakes);
    let paths = paths.in_order();
    let places = paths.iter().enumerate().map(|(index, path)| (path.as_str(), index));
    let places: BTreeMap<_, _> = places.collect();
    let groups: Vec<_> = paths
        .iter()
        .map(|path| {
            let written = written.get(&**path).copied();
            let keys = keys_of(written, own.get(&**path).copied(), draft);
            let on_disks = written.map(|written| OfGroup { written, draft, members, disks });
            let device_weights = on_disks.map(|on_disks| {
                on_disks.check_limits(mistakes);
                on_disks.device_weights(mistakes)
            });
            GroupConfig {
                path: path.clone(),
                parent: parent_of(path).and_then(|parent| places.get(parent).copied()),
                keys,
                device_weights: device_weights.unwrap_or_default(),
            }
        })
        .collect();
    are_all.then_some(groups)
}

/// The caps of the root, if it is written.
pub(super) fn check_root(
    draft: &Draft,
    members: &Members,
    disks: &[Checked],
    mistakes: &mut Mistakes,
) -> GroupLimits {
    let Some(written) = draft.groups.iter().find(|group| group.name.value == ROOT) else {
        return GroupLimits::NONE;
    };
    for key in GroupKeys::KEYS.iter().filter(|key| !key.is_of(group_kind(ROOT))) {
        mistakes.note(written.state(key.name).refuse(Problem::NotOfRoot { key: key.name }));
    }
    OfGroup { written, draft, members, disks }.check_limits(mistakes);
    written.keys.limits
}

/// Paths of groups, with those above them.
#[derive(Debug, Default)]
struct GroupPaths {
    known: BTreeSet<String>,
    /// Those at the top level, in the order in which they were added, and those below each.
    top: Vec<String>,
    below: BTreeMap<String, Vec<String>>,
}

impl GroupPaths {
    /// Adds a path behind all that is below its parent, which is added before.
    fn add(&mut self, path: &str) {
        if !self.known.insert(path.to_owned()) {
            return;
        }
        let siblings = match parent_of(path) {
            None => &mut self.top,
            Some(parent) => {
                self.add(parent);
                self.below.entry(parent.to_owned()).or_default()
            }
        };
        siblings.push(path.to_owned());
    }

    /// All of them, each at once followed by those below it.
    fn in_order(&self) -> Vec<String> {
        let mut order = Vec::new();
        let mut left: Vec<_> = self.top.iter().rev().collect();
        while let Some(path) = left.pop() {
            order.push(path.clone());
            left.extend(self.below.get(path).into_iter().flatten().rev());
        }
        order
    }
}

/// The path of the group above, unless that is the root.
pub(crate) fn parent_of(path: &str) -> Option<&str> {
    path.rsplit_once('/').map(|(parent, _)| parent).filter(|parent| !parent.is_empty())
}

/// What is set of a group: by itself, by the export whose own it is, and by the server.
fn keys_of(
    written: Option<&Object<GroupKeys>>,
    own: Option<&Object<ExportKeys>>,
    draft: &Draft,
) -> GroupKeys {
    let keys = written.map(|group| group.keys.clone()).unwrap_or_default();
    let ServerKeys { memory, connections, .. } = draft.server.keys;
    let weight = keys.weight.or_else(|| own.and_then(|export| export.keys.weight));
    let weight = weight.unwrap_or_default();
    GroupKeys {
        weight: Some(weight),
        leaf_weight: Some(keys.leaf_weight.unwrap_or(weight)),
        memory: Some(keys.memory.unwrap_or(memory)),
        connections: Some(keys.connections.unwrap_or(connections)),
        ..keys
    }
}

/// A group that is written, and what is needed to check its weights on disks.
#[derive(Clone, Copy)]
struct OfGroup<'a> {
    written: &'a Object<GroupKeys>,
    draft: &'a Draft,
    members: &'a Members,
    disks: &'a [Checked],
}

impl OfGroup<'_> {
    /// Those of its weights on disks that are right.
    fn device_weights(self, mistakes: &mut Mistakes) -> BTreeMap<usize, DeviceWeights> {
        let mut weights = BTreeMap::<usize, DeviceWeights>::new();
        let GroupKeys { weight_device, leaf_weight_device, .. } = &self.written.keys;
        for (disk, weight) in weight_device {
            if let Some(index) = mistakes.note(self.find_disk(disk)).flatten() {
                weights.entry(index).or_default().weight = Some(*weight);
            }
        }
        for (disk, leaf) in leaf_weight_device {
            if let Some(index) = mistakes.note(self.find_disk(disk)).flatten() {
                weights.entry(index).or_default().leaf = Some(*leaf);
            }
        }
        weights
    }

    /// Notes limits where a disk of the group has a scheduler without them.
    fn check_limits(self, mistakes: &mut Mistakes) {
        let is_here =
            |name: &str| self.exports().any(|export| self.draft.disk_of(export) == Some(name));
        let disks = self.disks.iter().filter(|disk| is_here(&disk.name));
        let mut without = disks.filter_map(|disk| {
            let scheduler = disk.config.as_ref()?.scheduler;
            let has_none = !scheduler.kind().has_group_limits();
            has_none.then(|| (disk.name.clone(), scheduler))
        });
        let Some((disk, scheduler)) = without.next() else { return };
        let (written, none) = (&self.written.keys, GroupKeys::default());
        let is_set = |key: &&Key<GroupKeys>| (key.show)(written) != (key.show)(&none);
        let group = &self.written.name.value;
        let limits = GroupKeys::part("limits").filter(|key| key.is_of(group_kind(group)));
        for key in limits.filter(is_set) {
            let (key, group) = (key.name, group.clone());
            let (disk, name) = (disk.clone(), scheduler.kind().name());
            let problem = Problem::NoLimits { key, group, disk, scheduler: name };
            mistakes.note(self.written.state(key).refuse(scheduler.explain(problem)));
        }
    }

    /// The index of a disk of that name, on which an export is in the group or below it. None if
    /// what is wrong elsewhere leaves that open.
    fn find_disk(self, name: &At<String>) -> Result<Option<usize>, Mistake> {
        let exists = |name: &str| self.disks.iter().any(|disk| disk.name == name);
        let is_open = !self.members.are_all_known
            || self
                .exports()
                .any(|export| self.draft.disk_of(export).is_none_or(|name| !exists(name)));
        let has_exports = |disk: &&Checked| {
            self.exports().any(|export| self.draft.disk_of(export) == Some(&disk.name))
        };
        let index = self.disks.iter().position(|disk| disk.name == name.value);
        match index.filter(|&index| has_exports(&&self.disks[index])) {
            Some(index) => Ok(Some(index)),
            None if is_open => Ok(None),
            None => {
                let known = self.disks.iter().filter(has_exports);
                let known: Vec<_> = known.map(|disk| format!("{:?}", disk.name)).collect();
                let (group, disk) = (self.written.name.value.clone(), name.value.clone());
                name.refuse(Problem::GroupNotOnDisk { group, disk, known: known.join(", ") })
            }
        }
    }

    /// The exports in the group or below it.
    fn exports(&self) -> impl Iterator<Item = &Object<ExportKeys>> {
        let below = self.members.below(&self.written.name.value);
        below.iter().map(|&export| &self.draft.exports[export])
    }
}

/// The path of an export's group; none if there is none in its place, which is told already.
fn check_reference(export: &Object<ExportKeys>) -> Result<Option<String>, Mistake> {
    match (&export.states.group, &export.keys.group) {
        (State::Written(place), Some(path)) => {
            let path = At { value: path.clone(), place: place.clone() };
            return check_group_path(&path).map(|()| Some(path.value));
        }
        (State::Missing, _) => {}
        _ => return Ok(None),
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
fn check_default(exports: &[Object<ExportKeys>], mistakes: &mut Mistakes) {
    let own = |name: &str| {
        exports.iter().find(|export| export.name.value == name && export.has_own_group())
    };
    if let (Some(unnamed), Some(_)) = (own(""), own(DEFAULT)) {
        let problem = Problem::DefaultGroupTwice { name: DEFAULT, path: format!("/{DEFAULT}") };
        mistakes.add(&unnamed.name.place, problem);
    }
}

/// Refuses a text that is no path of a group.
pub(super) fn check_group_path(path: &At<String>) -> Result<(), Mistake> {
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

/// Returns whether an export's weight is its own group's, and the only one of that.
fn check_weight_place(
    export: &Object<ExportKeys>,
    path: &str,
    written: Option<&Object<GroupKeys>>,
) -> Result<(), Mistake> {
    let weight = &export.states.weight;
    let group = path.to_owned();
    if !export.states.group.is_missing() {
        let export = export.name.value.clone();
        return weight.refuse(Problem::WeightBesideGroup { export, group });
    }
    if written.is_some_and(|group| !group.states.weight.is_missing()) {
        return weight.refuse(Problem::WeightTwice { group });
    }
    Ok(())
}

/// Notes groups that nobody is in, where it is known who is in which.
fn check_all_used(draft: &Draft, members: &Members, mistakes: &mut Mistakes) {
    if !members.are_all_known || draft.exports.is_empty() {
        return;
    }
    let is_used = |group: &Object<GroupKeys>| !members.below(&group.name.value).is_empty();
    let is_path = |group: &&Object<GroupKeys>| check_group_path(&group.name).is_ok();
    let unused = draft.groups.iter().filter(|group| !is_used(group)).filter(is_path);
    let unused: Vec<_> = unused.collect();
    let used = if unused.is_empty() { Vec::new() } else { members.used() };
    for Object { name: path, .. } in unused {
        let used: Vec<_> = used.iter().map(|path| format!("{path:?}")).collect();
        let (group, used) = (path.value.clone(), used.join(", "));
        mistakes.add(&path.place, Problem::UnusedGroup { path: group, used });
    }
}

/// Whether the group of this path is the other, or below it.
pub(crate) fn is_in(path: &str, other: &str) -> bool {
    let below = path.strip_prefix(other.trim_end_matches('/'));
    below.is_some_and(|below| below.is_empty() || below.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn group_is_wanted_with_those_below_it() {
        assert!(is_in("/gold", "/gold") && is_in("/gold/a", "/gold") && is_in("/gold", "/"));
        assert!(is_in("/", "/") && !is_in("/goldfish", "/gold") && !is_in("/", "/gold"));
    }
}
