//! Groups that are made, changed and removed by request: a group that is made stays without exports
//! until it is removed.

use serde_json::Value;

use super::{Asked, Catalogue, State, check_have_limits, store};
use crate::config::{
    GroupKeys, IDENTITIES, Identity, Keys as _, Problem, Wanted, is_in, new_group,
};
use crate::ctl::{CatalogueError, GroupChange, GroupError, GroupsAnswer, Put, ServedGroup};
use crate::messages::GroupSettings;
use crate::stat::Stat;

impl Catalogue {
    /// Makes the group that the body says, or has the one of that path be as it says.
    pub(crate) fn put_group(
        &self,
        path: &str,
        body: &Value,
    ) -> Result<Put<ServedGroup>, CatalogueError> {
        new_group::check_path(path).map_err(CatalogueError::Name)?;
        if self.store.is_some() && !store::takes_name(path) {
            let why = format!("{path:?}: the path is too long for the name of a record");
            return Err(CatalogueError::Name(why));
        }
        let wanted = new_group::read(path, body).map_err(CatalogueError::Value)?;
        self.check_identities(&wanted.identities)?;
        let _turn = self.turn(path)?;
        let state = self.state();
        if state.groups.is_of_file(path) {
            return Err(CatalogueError::DeclaredInFile { what: "group", name: path.to_owned() });
        }
        let is_new = !state.groups.has(path);
        drop(state);
        if !is_new {
            self.change_group(path, &wanted)?;
        }
        self.record_group(path, &wanted)?;
        self.change_groups(|groups| groups.make(path, &wanted));
        self.change_who_brought(path, &wanted)?;
        Ok(Put { shown: self.group(path)?, is_new })
    }

    /// Applies a merge patch to a group, which may be the file's until that is read again.
    pub(crate) fn patch_group(
        &self,
        path: &str,
        changes: &Value,
    ) -> Result<ServedGroup, CatalogueError> {
        let _turn = self.turn(path)?;
        let keys = self.group_keys(path)?;
        let wanted = new_group::patched(path, &keys, changes).map_err(CatalogueError::Value)?;
        self.check_identities(&wanted.identities)?;
        self.change_group(path, &wanted)?;
        let is_brought = self.change_who_brought(path, &wanted)?;
        // What brings a group along says its weight, limits and identities, and nothing else of
        // it. What is set beyond that, or of one that nobody has brought, has it stay.
        let stays = self.groups(|groups| {
            let GroupKeys { weight, leaf_weight, limits, identities, .. } = wanted.clone();
            let said = GroupKeys { weight, leaf_weight, limits, ..GroupKeys::default() };
            let brought = GroupKeys { identities, ..said };
            let says_more = groups.full(wanted.clone()) != groups.full(brought);
            let is_others = groups.is_of_file(path) || self.store.is_none();
            groups.is_made(path) || !is_others && (says_more || !is_brought)
        });
        if stays {
            self.record_group(path, &wanted)?;
            self.change_groups(|groups| groups.make(path, &wanted));
        }
        self.group(path)
    }

    /// What has brought a group along says the same of it, so that it does after a restart. Returns
    /// whether something has.
    fn change_who_brought(&self, path: &str, wanted: &GroupKeys) -> Result<bool, CatalogueError> {
        let brings = |asked: &Asked| asked.has_own_group && asked.of.group() == path;
        let found = {
            let state = self.state();
            let mut all = state.all_asked();
            all.find(|asked| brings(asked)).map(|asked| (asked.of.kind(), asked.of.name.clone()))
        };
        let Some((kind, name)) = found else { return Ok(false) };
        let _turn = self.turn(&name)?;
        {
            let mut state = self.state();
            // It may have moved or gone meanwhile.
            let Some(asked) = state.asked(kind, &name).ok().filter(|asked| brings(asked)) else {
                return Ok(false);
            };
            if wanted.weights().weight != asked.of.group_keys().weights().weight {
                asked.of.keys.weight = wanted.weight;
            }
            asked.of.more.limits = wanted.limits;
            asked.of.more.identities.clone_from(&wanted.identities);
        }
        self.record(kind, &name).map(|()| true)
    }

    /// Refuses identities where nobody shows a certificate.
    pub(super) fn check_identities(&self, identities: &[Identity]) -> Result<(), CatalogueError> {
        if identities.is_empty() || self.exports.asks_for_certificates() {
            return Ok(());
        }
        Err(CatalogueError::Value(Problem::WithoutClientCa { key: IDENTITIES }.to_string()))
    }

    /// Removes a group that was made by request and has no exports.
    pub(crate) fn remove_group(&self, path: &str) -> Result<(), CatalogueError> {
        let _turn = self.turn(path)?;
        self.group_keys(path)?;
        let state = self.state();
        if state.groups.is_of_file(path) {
            return Err(CatalogueError::DeclaredInFile { what: "group", name: path.to_owned() });
        }
        let exports = state.members(path).count();
        if exports > 0 || state.groups.has_below(path) {
            return Err(CatalogueError::NotEmpty { group: path.to_owned(), exports });
        }
        drop(state);
        self.forget_group(path)?;
        self.change_groups(|groups| groups.unmake(path));
        Ok(())
    }

    /// Shows a group.
    pub(crate) fn group(&self, path: &str) -> Result<ServedGroup, CatalogueError> {
        self.group_keys(path)?;
        Ok(self.state().show_group(path))
    }

    /// Shows all groups.
    pub(crate) fn all_groups(&self) -> GroupsAnswer {
        let state = self.state();
        let paths = state.groups.known();
        let groups = paths.into_iter().filter(|path| state.groups.has(path));
        let groups = groups.map(|path| state.show_group(path)).collect();
        GroupsAnswer { version: Stat::VERSION, groups }
    }

    fn group_keys(&self, path: &str) -> Result<GroupKeys, CatalogueError> {
        let state = self.state();
        state.groups.keys(path).cloned().ok_or_else(|| {
            let known: Vec<_> = state.groups.known().iter().map(|one| format!("{one:?}")).collect();
            CatalogueError::NoSuchGroup { group: path.to_owned(), known: known.join(", ") }
        })
    }

    /// Has a group be as it is wanted.
    fn change_group(&self, path: &str, wanted: &GroupKeys) -> Result<(), CatalogueError> {
        let before = self.group_keys(path)?;
        let state = self.state();
        let full = state.groups.full(wanted.clone());
        let is_changed = (full.memory, full.connections) != (before.memory, before.connections);
        if is_changed && state.groups.exports(path) > 0 {
            let why = "memory and connections of a group that has exports stay as they are";
            return Err(CatalogueError::Value(format!("group {path:?}: {why}")));
        }
        drop(state);
        self.set_group_keys(path, wanted)
    }

    /// Sets what may change of a group, on every disk where it is.
    pub(super) fn set_group_keys(
        &self,
        path: &str,
        wanted: &GroupKeys,
    ) -> Result<(), CatalogueError> {
        let weights = wanted.weights();
        let limits = GroupKeys::part("limits").map(|key| (key.name, (key.show)(wanted)));
        let all = [
            ("weight", weights.weight.value().into()),
            ("leaf_weight", weights.leaf.value().into()),
        ];
        let set = all.into_iter().chain(limits).map(|(name, value)| (name.to_owned(), value));
        let change = GroupChange { group: path.to_owned(), set: set.collect(), disk: None };
        let refused = |error: GroupError| CatalogueError::Value(error.to_string());
        let (settings, disks) = {
            let state = self.state();
            let settings = change.check(state.groups.weights(path)).map_err(refused)?;
            let here = state.disks.iter().filter(|disk| state.groups.is_on(path, disk.number));
            (settings, here.cloned().collect::<Vec<_>>())
        };
        if settings.limits_something() {
            check_have_limits(&disks).map_err(refused)?;
        }
        for disk in disks {
            let (group, settings) = (path.to_owned(), settings.clone());
            let answer = disk.owner.set_group(GroupSettings { group, settings });
            disk.answer(&answer)?.map_err(refused)?;
        }
        self.change_groups(|groups| groups.set(path, wanted));
        Ok(())
    }
}

impl State {
    /// The volumes and exports in a group or below it, also those that are not served now.
    pub(super) fn members(&self, path: &str) -> impl Iterator<Item = &Wanted> {
        self.all_asked().map(|asked| &asked.of).filter(move |of| is_in(&of.group(), path))
    }

    fn show_group(&self, path: &str) -> ServedGroup {
        let keys = self.groups.keys(path).cloned().unwrap_or_default();
        let (volumes, used) = self.used_by(|volume| is_in(&volume.group(), path));
        ServedGroup {
            version: Stat::VERSION,
            path: path.to_owned(),
            settings: new_group::body(&keys),
            of_file: self.groups.is_of_file(path),
            exports: self.groups.exports(path),
            volumes_used: volumes,
            used,
        }
    }

    /// How many volumes those are, and the bytes of them.
    pub(super) fn used_by(&self, is_meant: impl Fn(&Wanted) -> bool) -> (usize, u64) {
        let meant = self.volumes.values().filter(|volume| is_meant(&volume.asked.of));
        meant.fold((0, 0), |(count, used), of| (count + 1, u64::saturating_add(used, of.size)))
    }
}
