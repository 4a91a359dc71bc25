//! What is recorded of volumes, exports and groups that were made by request, and how it goes
//! together with the configuration that a server starts with.

use std::path::Path;

use anyhow::{Context as _, Result, anyhow};
use paternoster::GroupLimits;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::store::{self, EXPORTS, GROUPS, Record, VOLUMES};
use crate::config::{
    Config, EXPORT, GroupKeys, IDENTITIES, Problem, VOLUME, Wanted, is_in, new_group,
};
use crate::ctl::Data;

/// A volume or an export, as it was asked for last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MadeRecord {
    name: String,
    /// The body of the request that would make it.
    asked: Map<String, Value>,
    /// Whether its group has come with it.
    pub(super) own_group: bool,
    /// That a volume is being removed, and what becomes of its image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) removing: Option<Data>,
}

/// A group, as it was asked for last.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GroupRecord {
    path: String,
    /// The body of the request that would make it.
    asked: Map<String, Value>,
}

impl Record for MadeRecord {
    fn name(&self) -> &str {
        &self.name
    }
}

impl Record for GroupRecord {
    fn name(&self) -> &str {
        &self.path
    }
}

impl MadeRecord {
    /// The record of what is there.
    pub(super) fn of(wanted: &Wanted, own_group: bool) -> Self {
        let (name, asked) = (wanted.name.clone(), wanted.body());
        Self { name, asked, own_group, removing: None }
    }

    fn wanted(&self, kind: &'static str) -> Result<Wanted> {
        let read = Wanted::read(kind, &self.name, &Value::Object(self.asked.clone()));
        let wanted = read.and_then(|wanted| match wanted.more.size {
            None if kind == VOLUME => Err("missing key `size`".to_owned()),
            _ => Ok(wanted),
        });
        wanted.map_err(|why| anyhow!("the record of {kind} {:?}: {why}", self.name))
    }
}

impl GroupRecord {
    /// The record of a group that is there.
    pub(super) fn of(path: &str, keys: &GroupKeys) -> Self {
        Self { path: path.to_owned(), asked: new_group::body(keys) }
    }

    fn keys(&self) -> Result<GroupKeys> {
        let read = new_group::read(&self.path, &Value::Object(self.asked.clone()));
        read.map_err(|why| anyhow!("the record of group {:?}: {why}", self.path))
    }
}

/// All records of a state directory, as they were read.
#[derive(Debug, Default)]
pub(crate) struct Records {
    /// Each with what it says of its volume.
    pub(super) volumes: Vec<(Wanted, MadeRecord)>,
    /// The same of exports.
    pub(super) exports: Vec<(Wanted, MadeRecord)>,
    /// Paths of groups, and what is set of each.
    pub(super) groups: Vec<(String, GroupKeys)>,
}

/// Records as they are written to a server that takes over.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct WrittenRecords {
    volumes: Vec<MadeRecord>,
    exports: Vec<MadeRecord>,
    groups: Vec<GroupRecord>,
}

impl WrittenRecords {
    /// Reads them.
    pub(crate) fn read(self) -> Result<Records> {
        let made = |kind: &'static str, records: Vec<MadeRecord>| {
            let records = records.into_iter();
            records.map(|record| Ok((record.wanted(kind)?, record))).collect::<Result<_>>()
        };
        let groups = self.groups.into_iter();
        let groups = groups.map(|record| Ok((record.path.clone(), record.keys()?)));
        Ok(Records {
            volumes: made(VOLUME, self.volumes)?,
            exports: made(EXPORT, self.exports)?,
            groups: groups.collect::<Result<_>>()?,
        })
    }
}

impl Records {
    /// The same to be written.
    pub(crate) fn written(&self) -> WrittenRecords {
        let made = |all: &[(Wanted, MadeRecord)]| all.iter().map(|(_, one)| one.clone()).collect();
        let groups = self.groups.iter().map(|(path, keys)| GroupRecord::of(path, keys));
        WrittenRecords {
            volumes: made(&self.volumes),
            exports: made(&self.exports),
            groups: groups.collect(),
        }
    }

    /// Reads a state directory, which may not be there yet.
    pub(crate) fn read(state: &Path) -> Result<Self> {
        store::check_format(state)?;
        let context = || format!("state_dir {}", state.display());
        let written = WrittenRecords {
            volumes: store::read(state, VOLUMES)?,
            exports: store::read(state, EXPORTS)?,
            groups: store::read(state, GROUPS)?,
        };
        written.read().with_context(context)
    }

    /// Returns what of the records does not go together with a configuration, a sentence each.
    pub(crate) fn mistakes(&self, config: &Config) -> Vec<String> {
        let made = self.volumes.iter().chain(&self.exports);
        let twice = made.filter_map(|(wanted, _)| {
            let export = config.exports.iter().find(|export| export.name == wanted.name)?;
            Some(declared_too(export.what(), wanted.kind(), &wanted.name))
        });
        let both = self.volumes.iter().filter(|(volume, _)| {
            self.exports.iter().any(|(export, _)| export.name == volume.name)
        });
        let both = both.map(|(volume, _)| {
            format!("{:?} is recorded as a volume and as an export: remove one record", volume.name)
        });
        let is_of_file = |path: &str| config.groups.iter().any(|group| group.path == path);
        let made = self.volumes.iter().chain(&self.exports).filter(|(wanted, record)| {
            let sets_group = wanted.group_keys() != GroupKeys::default();
            record.own_group && sets_group && is_of_file(&wanted.group())
        });
        let brought = made.map(|(wanted, _)| {
            let (kind, name, group) = (wanted.kind(), &wanted.name, wanted.group());
            format!(
                "group {group:?}: weight, limits and identities of {kind} {name:?}, which was made \
                 by request, are set of it; leave it out of the file"
            )
        });
        let groups = self.groups.iter().filter(|(path, _)| is_of_file(path));
        let groups = groups.map(|(path, _)| declared_too("group", "group", path));
        let pools = self.volumes.iter().filter_map(|(wanted, _)| {
            self.pool_mistake(config, wanted, wanted.keys.pool.as_deref().unwrap_or_default())
        });
        let exports = self.exports.iter().filter_map(|(wanted, _)| {
            let volume = wanted.keys.volume.as_deref();
            let made = self.volumes.iter().find(|(made, _)| Some(&*made.name) == volume);
            let of_file = config.exports.iter().find(|of| Some(&*of.name) == volume);
            let of_file = of_file.and_then(|of| of.keys.pool.as_deref());
            match made.and_then(|(made, _)| made.keys.pool.as_deref()).or(of_file) {
                Some(pool) => self.pool_mistake(config, wanted, pool),
                // It is not served, and says so.
                None => None,
            }
        });
        let of_groups = self.groups.iter().map(|(path, keys)| (format!("group {path:?}"), keys));
        let of_groups = of_groups.filter(|(_, keys)| !keys.identities.is_empty());
        let made = self.volumes.iter().chain(&self.exports);
        let made = made.filter(|(wanted, _)| !wanted.more.identities.is_empty());
        let made = made.map(|(wanted, _)| format!("{} {:?}", wanted.kind(), wanted.name));
        let known = made.chain(of_groups.map(|(group, _)| group));
        let known = known.filter(|_| config.tls.client_ca.is_none());
        let unknown = known.map(|what| {
            let problem = Problem::WithoutClientCa { key: IDENTITIES };
            format!("{what} was made by request: {problem}")
        });
        let dir = config.keys.vhost_user_dir.as_deref();
        let all = self.volumes.iter().chain(&self.exports);
        let sockets = all.filter_map(|(wanted, _)| {
            let mistake = wanted.socket(dir).err()?;
            Some(format!("{} {:?} was made by request: {mistake}", wanted.kind(), wanted.name))
        });
        let records = twice.chain(both).chain(groups).chain(brought);
        records.chain(pools).chain(exports).chain(sockets).chain(unknown).collect()
    }

    /// Returns why something cannot be on its pool.
    fn pool_mistake(&self, config: &Config, wanted: &Wanted, pool: &str) -> Option<String> {
        let (kind, name) = (wanted.kind(), &wanted.name);
        let mut pools = config.disks.iter().filter(|disk| disk.is_pool);
        let Some(found) = pools.find(|disk| disk.name == pool) else {
            return Some(no_pool(config, wanted, pool));
        };
        let scheduler = found.scheduler.kind();
        if scheduler.has_group_limits() || !self.is_limited(config, wanted) {
            return None;
        }
        Some(format!(
            "{kind} {name:?} was made by request, and it or its group has limits, which \
             {scheduler}, the scheduler of pool {pool:?}, does not support; wfq does"
        ))
    }

    fn is_limited(&self, config: &Config, wanted: &Wanted) -> bool {
        let of_file = config.groups.iter().map(|group| (&group.path, &group.keys));
        let of_records = self.groups.iter().map(|(path, keys)| (path, keys));
        let own = wanted.group();
        let mut limited = of_file.chain(of_records).filter(|(path, _)| is_in(&own, path));
        let limits = |keys: &GroupKeys| keys.limits != GroupLimits::NONE;
        limits(&wanted.group_keys()) || limited.any(|(_, keys)| limits(keys))
    }
}

/// That a configuration does not have the pool of what a request has made.
fn no_pool(config: &Config, wanted: &Wanted, pool: &str) -> String {
    let (kind, name) = (wanted.kind(), &wanted.name);
    let pools = config.disks.iter().filter(|disk| disk.is_pool);
    let known: Vec<_> = pools.map(|disk| format!("{:?}", disk.name)).collect();
    format!(
        "{kind} {name:?} was made by request in pool {pool:?}, and the configuration has no such \
         pool; there are: {}",
        known.join(", ")
    )
}

/// That the file declares what a request has made.
fn declared_too(what: &str, made: &str, name: &str) -> String {
    format!(
        "{what} {name:?}: a {made} of that name was made by request; remove it, or leave it out of \
         the file"
    )
}
