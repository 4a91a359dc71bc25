//! What requests have made, as a file declares it.
//!
//! ```text
//!   [groups."/gold"]       PUT /v1/groups/%2Fgold
//!   weight = 300
//!   [volumes.vm7]          PUT /v1/volumes/vm7
//!   pool = "fast"
//! ```

use std::fmt::Write as _;

use paternoster::GroupLimits;
use serde_json::{Map, Value};

use super::{Catalogue, State, Volume};
use crate::config::{ExportKeys, GroupKeys, WantedVolume, differing};

impl Catalogue {
    /// The groups and volumes that were made by request, as TOML: what a file declares once they
    /// are removed here, and images kept.
    pub(crate) fn export_config(&self) -> String {
        let state = self.state();
        let (mut groups, mut volumes) = (Map::new(), Map::new());
        let mut unused = String::new();
        for path in state.groups.made() {
            if state.groups.exports(path) > 0 {
                groups.insert(path.to_owned(), Value::Object(state.group_in_file(path)));
            } else {
                // A comment: a file has no such group.
                _ = writeln!(unused, "# group {path:?} has no volumes");
            }
        }
        for (name, volume) in state.volumes.iter().filter(|(_, volume)| !volume.is_of_file) {
            let mut keys = volume_in_file(&volume.of);
            let path = volume.of.group();
            if has_limits(volume) {
                // They are a group's in a file, which then has the weight beside.
                keys.remove("weight");
                keys.insert("group".to_owned(), path.clone().into());
                groups.insert(path.clone(), Value::Object(state.group_in_file(&path)));
            }
            volumes.insert(name.clone(), Value::Object(keys));
        }
        let all = [("groups", groups), ("volumes", volumes)];
        let all = all.into_iter().filter(|(_, tables)| !tables.is_empty());
        let all: Map<_, _> = all.map(|(key, of)| (key.to_owned(), Value::Object(of))).collect();
        let toml = toml::to_string(&all).expect("texts, numbers and truth, in tables");
        unused + &toml
    }
}

/// Whether limits are set of a volume's own group.
fn has_limits(volume: &Volume) -> bool {
    volume.has_own_group && volume.of.more.limits != GroupLimits::NONE
}

/// What a file says of a volume that is made like this.
fn volume_in_file(of: &WantedVolume) -> Map<String, Value> {
    let mut keys = of.keys.clone();
    keys.path = of.path().cloned();
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
