//! What is recorded of volumes and groups that were made by request, and how it goes together with
//! the configuration that a server starts with.

use std::path::Path;

use anyhow::{Context as _, Result, anyhow};
use paternoster::GroupLimits;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::store::{self, Record};
use crate::config::{Config, ExportConfig, GroupKeys, WantedVolume, is_in, new_group};
use crate::ctl::Data;

/// A volume, as it was asked for last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct VolumeRecord {
    name: String,
    /// The body of the request that would make it.
    volume: Map<String, Value>,
    /// Whether its group has come with it.
    pub(super) own_group: bool,
    /// That it is being removed, and what becomes of its image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) removing: Option<Data>,
}

/// A group, as it was asked for last.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GroupRecord {
    path: String,
    /// The body of the request that would make it.
    group: Map<String, Value>,
}

impl Record for VolumeRecord {
    const DIRECTORY: &'static str = "volumes";

    fn name(&self) -> &str {
        &self.name
    }
}

impl Record for GroupRecord {
    const DIRECTORY: &'static str = "groups";

    fn name(&self) -> &str {
        &self.path
    }
}

impl VolumeRecord {
    /// The record of a volume that is there.
    pub(super) fn of(wanted: &WantedVolume, own_group: bool) -> Self {
        let (name, volume) = (wanted.name.clone(), wanted.body());
        Self { name, volume, own_group, removing: None }
    }

    fn wanted(&self) -> Result<WantedVolume> {
        let body = Value::Object(self.volume.clone());
        let read = WantedVolume::read(&self.name, &body);
        let wanted = read.and_then(|wanted| match wanted.more.size {
            Some(_) => Ok(wanted),
            None => Err("missing key `size`".to_owned()),
        });
        wanted.map_err(|why| anyhow!("the record of volume {:?}: {why}", self.name))
    }
}

impl GroupRecord {
    /// The record of a group that is there.
    pub(super) fn of(path: &str, keys: &GroupKeys) -> Self {
        Self { path: path.to_owned(), group: new_group::body(keys) }
    }

    fn keys(&self) -> Result<GroupKeys> {
        let read = new_group::read(&self.path, &Value::Object(self.group.clone()));
        read.map_err(|why| anyhow!("the record of group {:?}: {why}", self.path))
    }
}

/// All records of a state directory, as they were read.
#[derive(Debug, Default)]
pub(crate) struct Records {
    /// Each with what it says of its volume.
    pub(super) volumes: Vec<(WantedVolume, VolumeRecord)>,
    /// Paths of groups, and what is set of each.
    pub(super) groups: Vec<(String, GroupKeys)>,
}

impl Records {
    /// Reads a state directory, which may not be there yet.
    pub(crate) fn read(state: &Path) -> Result<Self> {
        store::check_format(state)?;
        let volumes = store::read::<VolumeRecord>(state)?.into_iter();
        let volumes = volumes.map(|record| Ok((record.wanted()?, record)));
        let groups = store::read::<GroupRecord>(state)?.into_iter();
        let groups = groups.map(|record| Ok((record.path.clone(), record.keys()?)));
        let context = || format!("state_dir {}", state.display());
        Ok(Self {
            volumes: volumes.collect::<Result<_>>().with_context(context)?,
            groups: groups.collect::<Result<_>>().with_context(context)?,
        })
    }

    /// Returns what of the records does not go together with a configuration, a sentence each.
    pub(crate) fn mistakes(&self, config: &Config) -> Vec<String> {
        let names = |wanted: &WantedVolume, export: &&ExportConfig| export.name == wanted.name;
        let twice = self.volumes.iter().filter_map(|(wanted, _)| {
            let export = config.exports.iter().find(|export| names(wanted, export))?;
            Some(declared_too(export.what(), "volume", &wanted.name))
        });
        let is_of_file = |path: &str| config.groups.iter().any(|group| group.path == path);
        let groups = self.groups.iter().filter(|(path, _)| is_of_file(path));
        let groups = groups.map(|(path, _)| declared_too("group", "group", path));
        let pools = self.volumes.iter().filter_map(|(wanted, _)| self.pool_mistake(config, wanted));
        twice.chain(groups).chain(pools).collect()
    }

    /// Returns why a volume cannot be on its pool.
    fn pool_mistake(&self, config: &Config, wanted: &WantedVolume) -> Option<String> {
        let (name, pool) = (&wanted.name, wanted.keys.pool.as_deref().unwrap_or_default());
        let mut pools = config.disks.iter().filter(|disk| disk.is_pool);
        let Some(found) = pools.clone().find(|disk| disk.name == pool) else {
            let known: Vec<_> = pools.by_ref().map(|disk| format!("{:?}", disk.name)).collect();
            return Some(format!(
                "volume {name:?} was made by request in pool {pool:?}, which the configuration \
                 does not have; there are: {}",
                known.join(", ")
            ));
        };
        let scheduler = found.scheduler.kind();
        if scheduler.has_group_limits() || !self.is_limited(config, wanted) {
            return None;
        }
        Some(format!(
            "volume {name:?} was made by request, and it or its group has limits, which the \
             scheduler of pool {pool:?}, {scheduler}, has not; wfq has them"
        ))
    }

    fn is_limited(&self, config: &Config, wanted: &WantedVolume) -> bool {
        let of_file = config.groups.iter().map(|group| (&group.path, &group.keys));
        let of_records = self.groups.iter().map(|(path, keys)| (path, keys));
        let own = wanted.group();
        let mut limited = of_file.chain(of_records).filter(|(path, _)| is_in(&own, path));
        let limits = |keys: &GroupKeys| keys.limits != GroupLimits::NONE;
        limits(&wanted.group_keys()) || limited.any(|(_, keys)| limits(keys))
    }
}

/// That the file declares what a request has made.
pub(crate) fn declared_too(what: &str, made: &str, name: &str) -> String {
    format!(
        "{what} {name:?}: a {made} of that name was made by request; remove it, or leave it out of \
         the file"
    )
}
