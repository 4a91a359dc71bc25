//! What requests have made, as a file declares it.
//!
//! ```text
//!   [groups."/gold"]       PUT /v1/groups/%2Fgold
//!   weight = 300
//!   [volumes.vm7]          PUT /v1/volumes/vm7
//!   pool = "fast"
//! ```

use std::fmt::Write as _;
use std::path::PathBuf;

use paternoster::GroupLimits;
use serde_json::{Map, Value};

use super::{Catalogue, State};
use crate::config::{ExportKeys, GroupKeys, PoolKind, RequestKeys, Wanted, differing};

impl Catalogue {
    /// The groups, volumes and exports that were made by request, as TOML: what a file declares
    /// once they are removed here, and images kept.
    pub(crate) fn export_config(&self) -> String {
        let state = self.state();
        let [mut groups, mut volumes, mut exports] = [(); 3].map(|()| Map::new());
        let mut unused = String::new();
        for path in state.groups.made() {
            if state.members(path).next().is_some() {
                groups.insert(path.to_owned(), Value::Object(state.group_in_file(path)));
            } else {
                // A comment: a file has no such group.
                _ = writeln!(unused, "# group {path:?} has no volumes");
            }
        }
        let mut in_file = |of: &Wanted, has_own_group: bool| {
            let is_sized = state.pool_of(of).is_ok_and(|pool| pool.kind() == PoolKind::Modelled);
            let socket = self.socket(of).ok().flatten();
            let mut keys = keys_in_file(of, is_sized, socket);
            let path = of.group();
            let RequestKeys { limits, identities, .. } = &of.more;
            let has_more = *limits != GroupLimits::NONE || !identities.is_empty();
            if has_own_group && has_more {
                // They are a group's in a file, which then has the weight beside.
                keys.remove("weight");
                keys.insert("group".to_owned(), path.clone().into());
                groups.insert(path.clone(), Value::Object(state.group_in_file(&path)));
            }
            Value::Object(keys)
        };
        for (name, volume) in state.volumes.iter().filter(|(_, volume)| !volume.asked.is_of_file) {
            volumes.insert(name.clone(), in_file(&volume.asked.of, volume.asked.has_own_group));
        }
        for (name, export) in state.exports.iter().filter(|(_, export)| !export.asked.is_of_file) {
            exports.insert(name.clone(), in_file(&export.asked.of, export.asked.has_own_group));
        }
        let all = [("groups", groups), ("volumes", volumes), ("exports", exports)];
        let all = all.into_iter().filter(|(_, tables)| !tables.is_empty());
        let toml = all.map(|(key, tables)| {
            let whole = Map::from_iter([(key.to_owned(), Value::Object(tables))]);
            toml::to_string(&whole).expect("texts, numbers and truth, in tables")
        });
        unused + &toml.collect::<Vec<_>>().join("\n")
    }
}

/// What a file says of what is made like this, with that socket of virtual machines, in a pool that
/// says how large its volumes are.
fn keys_in_file(of: &Wanted, is_sized: bool, socket: Option<PathBuf>) -> Map<String, Value> {
    let mut keys = of.keys.clone();
    keys.vhost_user = socket;
    (keys.path, keys.uri) = (of.path().cloned(), of.uri().cloned());
    if is_sized {
        keys.size = of.more.size;
    }
    differing(&keys, &ExportKeys::default())
}

impl State {
    /// What a file says of a group.
    fn group_in_file(&self, path: &str) -> Map<String, Value> {
        let keys = self.groups.keys(path).cloned().unwrap_or_default();
        let usual = GroupKeys { weight: keys.weight, ..GroupKeys::default() };
        // A weight of its own, however usual, so that its table is not empty.
        let usual = GroupKeys { weight: None, ..self.groups.full(usual) };
        differing(&keys, &usual)
    }
}
