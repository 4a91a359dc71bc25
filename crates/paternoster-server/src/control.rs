//! Answers the control plane: it asks the owners of a running server's disks by message.

use std::collections::BTreeMap;
use std::time::Duration;

use paternoster::Weights;

use crate::config::Config;
use crate::ctl::{
    Control, DiskChange, SettingError, SettingsAnswer, StatError, WeightAnswer, WeightChange,
    WeightError,
};
use crate::messages::{GroupWeights, OwnerHandle};
use crate::stat::{Detail, Stat};

/// How long the owner of a disk may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Asks a running server for its statistics and settings, and changes weights and settings.
#[derive(Clone, Debug)]
pub struct ControlHandle {
    disks: Vec<Disk>,
    /// The weights that groups have in the configuration, by their paths.
    written: BTreeMap<String, Weights>,
}

/// A disk, and what is known of it without asking its owner.
#[derive(Clone, Debug)]
struct Disk {
    name: String,
    /// The paths of the groups that have an export here or below them.
    groups: Vec<String>,
    owner: OwnerHandle,
}

impl ControlHandle {
    /// The `owners` are those of the configuration's disks.
    pub(crate) fn new(config: &Config, owners: &[OwnerHandle]) -> Self {
        let disks = config.disks.iter().zip(owners).enumerate();
        let disks = disks.map(|(index, (disk, owner))| Disk {
            name: disk.name.clone(),
            groups: config
                .groups_on(index)
                .into_iter()
                .map(|group| config.groups[group].path.clone())
                .collect(),
            owner: owner.clone(),
        });
        let written = config.groups.iter().map(|group| {
            let weights = Weights { weight: group.weight, leaf: group.leaf_weight };
            (group.path.clone(), weights)
        });
        Self { disks: disks.collect(), written: written.collect() }
    }

    /// The disks that the change is for.
    fn disks_of(&self, change: &WeightChange) -> Result<Vec<&Disk>, WeightError> {
        let group = change.group.clone();
        let having = self.disks.iter().filter(|disk| disk.groups.contains(&change.group));
        let having: Vec<_> = having.collect();
        if having.is_empty() {
            let mut known: Vec<_> = self.disks.iter().flat_map(|disk| &disk.groups).collect();
            known.sort();
            known.dedup();
            return Err(WeightError::UnknownGroup { group, known: quoted(known) });
        }
        let Some(name) = &change.disk else { return Ok(having) };
        let disk = name.clone();
        if !self.disks.iter().any(|disk| disk.name == *name) {
            let known = quoted(self.disks.iter().map(|disk| &disk.name));
            return Err(WeightError::UnknownDisk { disk, known });
        }
        let found = having.iter().find(|disk| disk.name == *name);
        found.map(|disk| vec![*disk]).ok_or_else(|| {
            let known = quoted(having.iter().map(|disk| &disk.name));
            WeightError::NotOnDisk { group, disk, known }
        })
    }
}

impl Control for ControlHandle {
    fn stat(&self, detail: Detail) -> Result<Stat, StatError> {
        let asked: Vec<_> = self.disks.iter().map(|disk| disk.owner.stat(detail)).collect();
        let answers = asked.into_iter().map(|answer| answer.recv_timeout(PATIENCE));
        let disks: Result<Vec<_>, _> = answers.collect();
        disks.map(Stat::new).map_err(|error| StatError(format!("a disk does not answer: {error}")))
    }

    fn set_weight(&self, change: &WeightChange) -> Result<WeightAnswer, WeightError> {
        let disks = self.disks_of(change)?;
        // A group that is on a disk is one of the configuration's.
        let weights = change.check(self.written[&change.group])?;
        let asked = disks.into_iter().map(|disk| {
            let group = change.group.clone();
            (disk, disk.owner.set_weight(GroupWeights { group, weights }))
        });
        let asked: Vec<_> = asked.collect();
        let answers = asked.into_iter().map(|(disk, answer)| {
            let late = |_| WeightError::Unanswered { disk: disk.name.clone() };
            answer.recv_timeout(PATIENCE).map_err(late)
        });
        answers.collect::<Result<_, _>>().map(WeightAnswer::new)
    }

    fn settings(&self) -> Result<SettingsAnswer, SettingError> {
        let asked: Vec<_> = self.disks.iter().map(|disk| (disk, disk.owner.settings())).collect();
        let answers = asked.into_iter().map(|(disk, answer)| {
            let late = |_| SettingError::Unanswered { disk: disk.name.clone() };
            answer.recv_timeout(PATIENCE).map_err(late)
        });
        answers.collect::<Result<_, _>>().map(SettingsAnswer::new)
    }

    fn change_settings(&self, change: &DiskChange) -> Result<SettingsAnswer, SettingError> {
        let DiskChange { disk: name, set } = change;
        let found = self.disks.iter().find(|disk| disk.name == *name);
        let disk = found.ok_or_else(|| {
            let known = quoted(self.disks.iter().map(|disk| &disk.name));
            SettingError::UnknownDisk { disk: name.clone(), known }
        })?;
        let answer = disk.owner.change_settings(set.clone()).recv_timeout(PATIENCE);
        let in_force = answer.map_err(|_| SettingError::Unanswered { disk: name.clone() })??;
        Ok(SettingsAnswer::new(vec![in_force]))
    }
}

/// Names in quotes, for a message.
fn quoted<'a>(names: impl IntoIterator<Item = &'a String>) -> String {
    names.into_iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ")
}
