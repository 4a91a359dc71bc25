//! The groups that exports are in, by their paths: those of the configuration, and those that come
//! with exports and go with them.
//!
//! ```text
//!   /gold        of the file: stays        exports in it or below it   disk "a": 2, pool "fast": 1
//!   /gold/vm7    of the API's volume vm7                               pool "fast": 1
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use indexmap::IndexMap;
use paternoster::{DeviceWeights, GroupLimits, Weight, Weights};

use crate::admission::{Rooms, TenantRoom};
use crate::config::{Config, GroupKeys, Identity, ROOT, is_in, parent_of};
use crate::messages::{GroupOnDisk, NewTenant};
use crate::tls::Identities;

/// A group.
#[derive(Debug)]
struct Group {
    /// What is set of it; memory, connections and weights are there.
    keys: GroupKeys,
    /// Weights that hold on one disk instead of its own, by the disk's index.
    device_weights: BTreeMap<usize, DeviceWeights>,
    room: Arc<TenantRoom>,
    is_of_file: bool,
    /// Whether it was made by request: it stays without exports.
    is_made: bool,
    /// How many exports are in it or below it, by the indices of their disks.
    exports: BTreeMap<usize, usize>,
}

/// All groups.
#[derive(Debug)]
pub(crate) struct Groups {
    /// In the order of the configuration, and behind that in which they came.
    by_path: IndexMap<String, Group>,
    /// Those that have some, for whoever lets clients in.
    identities: Arc<Identities>,
    rooms: Rooms,
    /// What holds where nothing is set.
    memory: u64,
    connections: u32,
}

impl Groups {
    /// Those of the configuration, with its exports.
    pub(crate) fn new(config: &Config, rooms: Rooms) -> Self {
        let (memory, connections) = (config.keys.memory, config.keys.connections);
        let (by_path, identities) = (IndexMap::new(), Arc::default());
        let mut groups = Self { by_path, identities, rooms, memory, connections };
        for group in &config.groups {
            groups.add(&group.path, group.keys.clone(), true);
            groups.by_path[&group.path].device_weights.clone_from(&group.device_weights);
        }
        for export in &config.exports {
            groups.enter(&config.groups[export.group].path, export.disk, &GroupKeys::default());
        }
        groups
    }

    /// Those of the file are as it says from now on, but for what needs a restart, and for the
    /// identities of those that are known; those that it
    /// has no more, and that nothing `stays` in, go with their last exports. `numbers` are those of
    /// its disks.
    pub(super) fn follow(
        &mut self,
        file: &Config,
        numbers: &[Option<usize>],
        stays: impl Fn(&str) -> bool,
    ) {
        for group in &file.groups {
            if !self.has(&group.path) {
                self.add(&group.path, group.keys.clone(), true);
            }
            let known = &mut self.by_path[&group.path];
            known.is_of_file = true;
            let (weight, leaf_weight) = (group.keys.weight, group.keys.leaf_weight);
            (known.keys.weight, known.keys.leaf_weight) = (weight, leaf_weight);
            known.keys.limits = group.keys.limits;
            let on_device = group.device_weights.iter();
            let on_device = on_device.filter_map(|(&disk, &of)| Some((numbers[disk]?, of)));
            known.device_weights = on_device.collect();
        }
        let in_file: BTreeSet<_> = file.groups.iter().map(|group| &*group.path).collect();
        let of_file = self.by_path.iter().filter(|(_, group)| group.is_of_file);
        let gone = of_file.map(|(path, _)| path.clone());
        let gone: Vec<_> = gone.filter(|path| !in_file.contains(&**path)).collect();
        for path in gone.iter().filter(|path| !stays(path)) {
            self.by_path[path].is_of_file = false;
            self.remove_unused(path);
        }
    }

    /// Whose certificates enter what is in which group.
    pub(crate) fn identities(&self) -> Arc<Identities> {
        Arc::clone(&self.identities)
    }

    /// The paths of all, and what is set of each.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&str, &GroupKeys)> {
        self.by_path.iter().map(|(path, group)| (&**path, &group.keys))
    }

    /// Returns whether there is one of that path.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.by_path.contains_key(path)
    }

    /// An export of that disk comes, in that group: the group is made unless it is there, with
    /// these settings, and so are those above it.
    pub(crate) fn enter(&mut self, path: &str, disk: usize, if_new: &GroupKeys) {
        if !self.has(path) {
            self.add(path, if_new.clone(), false);
        }
        for above in lineage(path) {
            if !self.has(above) {
                self.add(above, GroupKeys::default(), false);
            }
            *self.by_path[above].exports.entry(disk).or_default() += 1;
        }
    }

    /// An export of that disk goes, which was in that group; so do groups that came with it and
    /// have no others.
    pub(crate) fn leave(&mut self, path: &str, disk: usize) {
        for above in lineage(path) {
            let group = &mut self.by_path[above];
            let here = group.exports.get_mut(&disk).expect("it was in the group");
            *here -= 1;
            if *here == 0 {
                group.exports.remove(&disk);
            }
            self.remove_unused(above);
        }
    }

    /// A group is made by request, with these settings unless it is there: then it stays as it is.
    pub(crate) fn make(&mut self, path: &str, keys: &GroupKeys) {
        if !self.has(path) {
            self.add(path, keys.clone(), false);
        }
        self.by_path[path].is_made = true;
    }

    /// A group that was made by request goes with its last export.
    pub(crate) fn unmake(&mut self, path: &str) {
        if let Some(group) = self.by_path.get_mut(path) {
            group.is_made = false;
            self.remove_unused(path);
        }
    }

    fn remove_unused(&mut self, path: &str) {
        let group = &self.by_path[path];
        if group.exports.is_empty() && !group.is_of_file && !group.is_made {
            self.by_path.shift_remove(path);
            self.identities.set(path, &[]);
        }
    }

    /// What is set of a group, if there is one of that path.
    pub(crate) fn keys(&self, path: &str) -> Option<&GroupKeys> {
        self.by_path.get(path).map(|group| &group.keys)
    }

    /// What is set of a group is something else.
    pub(crate) fn set(&mut self, path: &str, keys: &GroupKeys) {
        let full = self.full(keys.clone());
        if let Some(group) = self.by_path.get_mut(path) {
            if full.connections != group.keys.connections {
                let limit = full.connections.unwrap_or(self.connections);
                group.room = self.rooms.tenant(path, limit);
            }
            self.identities.set(path, &full.identities);
            group.keys = full;
        }
    }

    /// Whose certificates enter what is in a group, if there is one of that path.
    pub(crate) fn set_identities(&mut self, path: &str, identities: &[Identity]) {
        if let Some(group) = self.by_path.get_mut(path) {
            group.keys.identities = identities.to_vec();
            self.identities.set(path, identities);
        }
    }

    /// Returns whether the file declares it.
    pub(crate) fn is_of_file(&self, path: &str) -> bool {
        self.by_path.get(path).is_some_and(|group| group.is_of_file)
    }

    /// The paths of those that a request has made.
    pub(crate) fn made(&self) -> impl Iterator<Item = &str> {
        self.by_path.iter().filter(|(_, group)| group.is_made).map(|(path, _)| &**path)
    }

    /// Returns whether a request has made it, so that it stays without exports.
    pub(crate) fn is_made(&self, path: &str) -> bool {
        self.by_path.get(path).is_some_and(|group| group.is_made)
    }

    /// How many exports are in a group or below it.
    pub(crate) fn exports(&self, path: &str) -> usize {
        self.by_path.get(path).map_or(0, |group| group.exports.values().sum())
    }

    /// Returns whether there is a group below it.
    pub(crate) fn has_below(&self, path: &str) -> bool {
        self.by_path.keys().any(|other| other != path && is_in(other, path))
    }

    /// A group and those above it, upwards, with what is set of each.
    pub(crate) fn lineage<'p>(&self, path: &'p str) -> impl Iterator<Item = (&'p str, &GroupKeys)> {
        lineage(path).filter_map(|above| Some((above, self.keys(above)?)))
    }

    /// Returns whether a group, or one above it, has limits.
    pub(crate) fn is_limited(&self, path: &str) -> bool {
        self.lineage(path).any(|(_, keys)| keys.limits != GroupLimits::NONE)
    }

    /// What is set of a group, with what holds where nothing is.
    pub(crate) fn full(&self, keys: GroupKeys) -> GroupKeys {
        let weight = keys.weight.unwrap_or_default();
        GroupKeys {
            weight: Some(weight),
            leaf_weight: Some(keys.leaf_weight.unwrap_or(weight)),
            memory: Some(keys.memory.unwrap_or(self.memory)),
            connections: Some(keys.connections.unwrap_or(self.connections)),
            ..keys
        }
    }

    fn add(&mut self, path: &str, keys: GroupKeys, is_of_file: bool) {
        let keys = self.full(keys);
        let room = self.rooms.tenant(path, keys.connections.unwrap_or(self.connections));
        self.identities.set(path, &keys.identities);
        let (device_weights, exports) = (BTreeMap::new(), BTreeMap::new());
        let is_made = false;
        let group = Group { keys, device_weights, room, is_of_file, is_made, exports };
        self.by_path.insert(path.to_owned(), group);
    }

    /// The weights that are written of a group; the usual ones of one that is gone.
    pub(crate) fn weights(&self, path: &str) -> Weights {
        if path == ROOT {
            // It has no weight that could be set.
            return Weight::ROOT.into();
        }
        self.keys(path).cloned().unwrap_or_default().weights()
    }

    /// The room of a group for clients.
    pub(crate) fn room(&self, path: &str) -> Arc<TenantRoom> {
        Arc::clone(&self.by_path[path].room)
    }

    /// A group as a tenant of a disk, and before it those above it, the topmost first.
    pub(crate) fn tenants(&self, path: &str, disk: usize) -> Vec<NewTenant> {
        let mut tenants: Vec<_> = lineage(path).map(|above| self.tenant(above, disk)).collect();
        tenants.reverse();
        tenants
    }

    fn tenant(&self, path: &str, disk: usize) -> NewTenant {
        let Group { keys, device_weights, .. } = &self.by_path[path];
        let group = GroupOnDisk {
            path: path.to_owned(),
            weights: keys.weights(),
            on_device: device_weights.get(&disk).copied().unwrap_or_default(),
            limits: keys.limits,
        };
        NewTenant { group, memory: keys.memory.unwrap_or(self.memory) }
    }

    /// The paths of the groups that have an export of a disk, or are above one.
    pub(crate) fn on(&self, disk: usize) -> impl Iterator<Item = &str> {
        let here = self.by_path.iter().filter(move |(_, group)| group.exports.contains_key(&disk));
        here.map(|(path, _)| &**path)
    }

    /// Returns whether a group, or the root, is on a disk.
    pub(crate) fn is_on(&self, path: &str, disk: usize) -> bool {
        let group = self.by_path.get(path);
        path == ROOT || group.is_some_and(|group| group.exports.contains_key(&disk))
    }

    /// The paths of all, sorted, with the root.
    pub(crate) fn known(&self) -> Vec<&str> {
        let mut known: Vec<_> = self.by_path.keys().map(String::as_str).chain([ROOT]).collect();
        known.sort_unstable();
        known
    }
}

/// A group and those above it, upwards.
pub(super) fn lineage(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(path), |path| parent_of(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups() -> Groups {
        let (by_path, identities, rooms) = (IndexMap::new(), Arc::default(), Rooms::of(16));
        Groups { by_path, identities, rooms, memory: 1 << 20, connections: 7 }
    }

    fn paths(groups: &Groups, disk: usize) -> Vec<&str> {
        groups.on(disk).collect()
    }

    #[test]
    fn group_comes_with_its_first_export_and_goes_with_its_last() {
        let mut groups = groups();
        let heavy = GroupKeys { weight: Weight::new(300).ok(), ..GroupKeys::default() };
        groups.enter("/org/db", 0, &heavy);
        groups.enter("/org/web", 1, &GroupKeys::default());
        assert_eq!(
            [paths(&groups, 0), paths(&groups, 1)],
            [["/org/db", "/org"], ["/org", "/org/web"]]
        );
        let tenants = groups.tenants("/org/db", 0);
        let weights =
            tenants.iter().map(|new| (&*new.group.path, new.group.weights.weight.value()));
        assert_eq!(weights.collect::<Vec<_>>(), [("/org", 100), ("/org/db", 300)]);
        // Whoever comes second does not change what is set.
        groups.enter("/org/db", 0, &GroupKeys::default());
        assert_eq!(groups.weights("/org/db").weight.value(), 300);
        groups.leave("/org/db", 0);
        assert!(groups.is_on("/org/db", 0) && groups.is_on("/org", 0));
        groups.leave("/org/db", 0);
        assert!(!groups.has("/org/db") && groups.has("/org") && !groups.is_on("/org", 0));
        groups.leave("/org/web", 1);
        assert_eq!(groups.known(), ["/"]);
    }
}
