//! Answers the control plane: it asks the owners of a running server's disks by message.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, mpsc};
use std::time::Duration;

use paternoster::{SchedulerKind, Weight, Weights};
use serde_json::Value;

use crate::config::{Config, ROOT};
use crate::ctl::{
    Control, DecisionLines, DiskChange, GroupAnswer, GroupChange, GroupError, GroupInForce,
    GroupQuestion, NewGroup, ReloadAnswer, ReloadError, ReloadMode, SettingError, SettingsAnswer,
    SettingsInForce, StatError, TraceError, TraceQuestion, UnknownDisk,
};
use crate::following::Following;
use crate::messages::{GroupSettings, OwnerHandle};
use crate::reload::Reload;
use crate::stat::{Detail, Stat};

/// How long the owner of a disk may take to answer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// Asks a running server for its statistics and settings, and changes weights and settings.
#[derive(Clone, Debug)]
pub struct ControlHandle {
    /// The configuration with which the server was started.
    config: Arc<Config>,
    /// Where it was read; none where it was not in a file.
    file: Option<PathBuf>,
    disks: Vec<Disk>,
    /// The weights that groups have in the configuration that was last read, by their paths.
    written: Arc<Mutex<Written>>,
}

type Written = BTreeMap<String, Weights>;

/// A disk, and what is known of it without asking its owner.
#[derive(Clone, Debug)]
pub(crate) struct Disk {
    pub(crate) name: String,
    /// The paths of the groups that have an export here or below them, the root first.
    pub(crate) groups: Vec<String>,
    pub(crate) owner: OwnerHandle,
}

impl ControlHandle {
    /// The `owners` are those of the configuration's disks.
    pub(crate) fn new(config: &Config, owners: &[OwnerHandle]) -> Self {
        let disks = config.disks.iter().zip(owners).enumerate();
        let disks = disks.map(|(index, (disk, owner))| Disk {
            name: disk.name.clone(),
            groups: {
                let groups = config.groups_on(index).into_iter();
                let paths = groups.map(|group| config.groups[group].path.clone());
                std::iter::once(ROOT.to_owned()).chain(paths).collect()
            },
            owner: owner.clone(),
        });
        let disks = disks.collect();
        let written = config.groups.iter().map(|group| (group.path.clone(), group.weights()));
        // The root has no weight that could be set.
        let written = written.chain([(ROOT.to_owned(), Weights::from(Weight::ROOT))]);
        let written = Arc::new(Mutex::new(written.collect()));
        Self { config: Arc::new(config.clone()), file: None, disks, written }
    }

    /// Names the file in which the server's configuration was read, for it to be read again.
    #[must_use]
    pub fn with_file(self, file: impl Into<PathBuf>) -> Self {
        Self { file: Some(file.into()), ..self }
    }

    fn written(&self) -> MutexGuard<'_, Written> {
        self.written.lock().expect("nobody panics who has it")
    }

    /// The disk of that name.
    fn disk(&self, name: &str) -> Result<&Disk, UnknownDisk> {
        let found = self.disks.iter().find(|disk| disk.name == name);
        found.ok_or_else(|| {
            let known = quoted(self.disks.iter().map(|disk| &disk.name));
            UnknownDisk { disk: name.to_owned(), known }
        })
    }

    /// The disks that a change of a group is for: one, or all that it is on.
    fn disks_of(&self, group: &str, disk: Option<&String>) -> Result<Vec<&Disk>, GroupError> {
        let group = group.to_owned();
        let having = self.disks.iter().filter(|disk| disk.groups.contains(&group));
        let having: Vec<_> = having.collect();
        if having.is_empty() {
            let mut known: Vec<_> = self.disks.iter().flat_map(|disk| &disk.groups).collect();
            known.sort();
            known.dedup();
            return Err(GroupError::UnknownGroup { group, known: quoted(known) });
        }
        let Some(name) = disk else { return Ok(having) };
        self.disk(name)?;
        let found = having.iter().find(|disk| disk.name == *name);
        found.map(|disk| vec![*disk]).ok_or_else(|| {
            let disk = name.clone();
            let known = quoted(having.iter().map(|disk| &disk.name));
            GroupError::NotOnDisk { group, disk, known }
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

    fn group(&self, question: &GroupQuestion) -> Result<GroupAnswer, GroupError> {
        let GroupQuestion { group, disk } = question;
        let disks = self.disks_of(group, disk.as_ref())?;
        let asked: Vec<_> =
            disks.into_iter().map(|disk| (disk, set(disk, group, &NewGroup::default()))).collect();
        answers(asked)
    }

    fn set_group(&self, change: &GroupChange) -> Result<GroupAnswer, GroupError> {
        let group = &change.group;
        let disks = self.disks_of(group, change.disk.as_ref())?;
        if change.check(self.written()[group])?.limits_something() {
            check_have_limits(&disks)?;
        }
        // Until the owners have it, so that no other file is read in between.
        let written = self.written();
        // A group that is on a disk is one of the configuration's.
        let settings = change.check(written[group])?;
        for disk in settings.disks() {
            self.disks_of(group, Some(disk))?;
        }
        let asked: Vec<_> =
            disks.into_iter().map(|disk| (disk, set(disk, group, &settings))).collect();
        drop(written);
        answers(asked)
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
        let disk = self.disk(name)?;
        let answer = disk.owner.change_settings(set.clone()).recv_timeout(PATIENCE);
        let in_force = answer.map_err(|_| SettingError::Unanswered { disk: name.clone() })??;
        Ok(SettingsAnswer::new(vec![in_force]))
    }

    fn trace(&self, question: &TraceQuestion) -> Result<DecisionLines, TraceError> {
        let disk = self.disk(&question.disk)?;
        if let Some(group) = &question.group
            && !disk.groups.contains(group)
        {
            let (group, disk, known) = (group.clone(), disk.name.clone(), quoted(&disk.groups));
            return Err(TraceError::UnknownGroup { group, disk, known });
        }
        let name = || disk.name.clone();
        let begun = Following::begin(disk.owner.clone(), question.group.clone());
        let following = begun.map_err(|_| TraceError::Unanswered { disk: name() })?;
        Ok(Box::new(following.ok_or_else(|| TraceError::Busy { disk: name() })?))
    }

    fn reload(&self, mode: ReloadMode) -> Result<ReloadAnswer, ReloadError> {
        let path = self.file.as_deref().ok_or(ReloadError::NoFile)?;
        // To the end, so that of two who ask at once the second compares with what the first left.
        let mut written = self.written();
        let reload = Reload::read(path, &self.config, &self.disks)?;
        let mut changed = reload.compare()?;
        if mode == ReloadMode::Apply {
            for (group, weights) in written.iter_mut() {
                *weights = reload.weights_of(group).unwrap_or(*weights);
            }
            changed = reload.apply()?;
            // Owners log what they change.
            if changed.is_empty() {
                tracing::info!("the file was read again and changes nothing");
            }
            for change in reload.needs_restart() {
                tracing::warn!("the file needs a restart for {change}");
            }
        }
        Ok(ReloadAnswer::new(mode, changed, reload.needs_restart().to_vec()))
    }
}

type Asked<'a> = (&'a Disk, mpsc::Receiver<Result<GroupInForce, GroupError>>);

/// Has the owner of the disk change what is set of a group.
fn set(
    disk: &Disk,
    group: &str,
    settings: &NewGroup,
) -> mpsc::Receiver<Result<GroupInForce, GroupError>> {
    let (group, settings) = (group.to_owned(), settings.clone());
    disk.owner.set_group(GroupSettings { group, settings })
}

/// What the owners answer.
fn answers(asked: Vec<Asked<'_>>) -> Result<GroupAnswer, GroupError> {
    let answers = asked.into_iter().map(|(disk, answer)| {
        let late = |_| GroupError::Unanswered { disk: disk.name.clone() };
        answer.recv_timeout(PATIENCE).map_err(late)?
    });
    answers.collect::<Result<_, _>>().map(GroupAnswer::new)
}

/// Refuses limits on disks of which one has a scheduler without, so that all of them have the
/// change or none has.
fn check_have_limits(disks: &[&Disk]) -> Result<(), GroupError> {
    let asked: Vec<_> = disks.iter().map(|disk| (disk, disk.owner.settings())).collect();
    for (disk, answer) in asked {
        let late = |_| GroupError::Unanswered { disk: disk.name.clone() };
        let SettingsInForce { settings, .. } = answer.recv_timeout(PATIENCE).map_err(late)?;
        let scheduler = settings.get("scheduler").and_then(Value::as_str).unwrap_or_default();
        let kind = scheduler.parse::<SchedulerKind>().expect("the server has this scheduler");
        if !kind.has_group_limits() {
            let (disk, scheduler) = (disk.name.clone(), scheduler.to_owned());
            return Err(GroupError::NoLimits { disk, scheduler });
        }
    }
    Ok(())
}

/// Names in quotes, for a message.
fn quoted<'a>(names: impl IntoIterator<Item = &'a String>) -> String {
    names.into_iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ")
}
