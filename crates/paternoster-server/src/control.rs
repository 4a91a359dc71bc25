//! Answers the control plane: it asks the owners of a running server's disks by message.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;

use serde_json::Value;
use uuid::Uuid;

use crate::catalogue::{Catalogue, Disk, UnderWay, check_have_limits};
use crate::config::{Config, ROOT};
use crate::ctl::{
    CatalogueError, Control, DecisionLines, DiskChange, ExportAnswer, ExportsAnswer,
    ExportsQuestion, GroupAnswer, GroupChange, GroupError, GroupInForce, GroupQuestion,
    GroupsAnswer, HandOverAnswer, HandOverError, NewGroup, PoolAnswer, PoolsAnswer, Put,
    RecordError, RecordQuestion, RecordingStatus, RecordingsAnswer, ReloadAnswer, ReloadError,
    ReloadMode, RemovalQuestion, ServedGroup, SetByRequest, SettingError, SettingsAnswer,
    StatError, StatPage, StatQuestion, TraceError, TraceQuestion, UnknownDisk, VolumeAnswer,
    VolumesAnswer, VolumesQuestion,
};
use crate::following::Following;
use crate::handover::HandOver;
use crate::journal::Recordings;
use crate::messages::GroupSettings;
use crate::reload::Reload;
use crate::service_manager::ServiceManager;
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
    catalogue: Arc<Catalogue>,
    manager: ServiceManager,
    /// What requests have set since the file was read.
    set: Arc<Mutex<SetByRequest>>,
    recordings: Arc<Recordings>,
    /// How another server takes over, if one may.
    hand_over: Option<HandOver>,
    /// The UUID of the directory of records.
    instance: Option<Uuid>,
}

impl ControlHandle {
    /// Of a server of that configuration, which serves what the catalogue says.
    pub(crate) fn new(config: &Config, catalogue: Catalogue) -> Self {
        let (config, catalogue) = (Arc::new(config.clone()), Arc::new(catalogue));
        let (manager, set, recordings) =
            (ServiceManager::default(), Arc::default(), Arc::default());
        let (file, hand_over, instance) = (None, None, None);
        Self { config, file, catalogue, manager, set, recordings, hand_over, instance }
    }

    /// Names the file in which the server's configuration was read, for it to be read again.
    #[must_use]
    pub fn with_file(self, file: impl Into<PathBuf>) -> Self {
        Self { file: Some(file.into()), ..self }
    }

    /// Names the directory of records.
    #[must_use]
    pub(crate) fn with_instance(self, instance: Option<Uuid>) -> Self {
        Self { instance, ..self }
    }

    /// Has this manager told of reloads.
    #[must_use]
    pub(crate) fn with_manager(self, manager: ServiceManager) -> Self {
        Self { manager, ..self }
    }

    /// Lets another server take over so.
    #[must_use]
    pub(crate) fn with_hand_over(self, hand_over: HandOver) -> Self {
        Self { hand_over: Some(hand_over), ..self }
    }

    /// Reads the file again, and does what it says or tells what that would be.
    fn reload_file(&self, path: &Path, mode: ReloadMode) -> Result<ReloadAnswer, ReloadError> {
        // To the end, so that of two who ask at once the second compares with what the first left.
        let mut following = self.catalogue.following();
        let reload = Reload::read(path, &self.config, &self.catalogue)?;
        match mode {
            ReloadMode::DryRun => reload.would_do(),
            ReloadMode::Apply => {
                let before = following.file.clone();
                let before = before.as_deref().unwrap_or(&self.config);
                let applied = reload.apply(before, &self.catalogue, &mut following);
                if applied.is_ok() {
                    *self.set_by_request() = SetByRequest::default();
                }
                applied
            }
        }
    }

    /// Held until owners have what is set of groups, so that no file is read or followed in
    /// between.
    fn setting_groups(&self) -> MutexGuard<'_, UnderWay> {
        self.catalogue.following()
    }

    /// What is served.
    pub(crate) fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    /// What requests have set since the file was read.
    pub(crate) fn set_by_request(&self) -> MutexGuard<'_, SetByRequest> {
        self.set.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets again what requests had set on the server before. What cannot be set is logged.
    pub(crate) fn set_again(&self, set: &SetByRequest) {
        let disks = set.disks.iter().map(|one| (&one.disk, self.change_settings(one).err()));
        for (disk, refused) in disks {
            if let Some(why) = refused {
                tracing::warn!(disk, "what was set by request is not set any more: {why}");
            }
        }
        for (group, refused) in set.groups.iter().map(|one| (&one.group, self.set_group(one).err()))
        {
            if let Some(why) = refused {
                tracing::warn!(group, "what was set by request is not set any more: {why}");
            }
        }
    }

    /// Recordings of disks.
    pub(crate) fn recordings_here(&self) -> Arc<Recordings> {
        Arc::clone(&self.recordings)
    }

    pub(crate) fn disks(&self) -> Vec<Arc<Disk>> {
        self.catalogue.disks()
    }

    /// The disk of that name.
    fn disk(&self, name: &str) -> Result<Arc<Disk>, UnknownDisk> {
        let disks = self.disks();
        let found = disks.iter().find(|disk| disk.name == name);
        found.cloned().ok_or_else(|| {
            let known = quoted(disks.iter().map(|disk| &disk.name));
            UnknownDisk { disk: name.to_owned(), known }
        })
    }

    /// The disks that a change of a group is for: one, or all that it is on.
    fn disks_of(&self, group: &str, disk: Option<&String>) -> Result<Vec<Arc<Disk>>, GroupError> {
        let group = group.to_owned();
        let disks = self.disks();
        let having = self.catalogue.groups(|groups| {
            let here = disks.into_iter().filter(|disk| groups.is_on(&group, disk.number));
            let having: Vec<_> = here.collect();
            if having.is_empty() { Err(quoted(groups.known())) } else { Ok(having) }
        });
        let having = match having {
            Ok(having) => having,
            Err(known) => return Err(GroupError::UnknownGroup { group, known }),
        };
        let Some(name) = disk else { return Ok(having) };
        self.disk(name)?;
        let found = having.iter().find(|disk| disk.name == *name);
        found.map(|disk| vec![Arc::clone(disk)]).ok_or_else(|| {
            let disk = name.clone();
            let known = quoted(having.iter().map(|disk| &disk.name));
            GroupError::NotOnDisk { group, disk, known }
        })
    }
}

impl Control for ControlHandle {
    fn instance(&self) -> Option<Uuid> {
        self.instance
    }

    fn stat(&self, detail: Detail) -> Result<Stat, StatError> {
        let disks = self.disks();
        let asked: Vec<_> = disks.iter().map(|disk| (disk, disk.owner.stat(detail))).collect();
        let answers = asked.into_iter().map(|(disk, answer)| match answer.recv_timeout(PATIENCE) {
            // It may have gone since.
            Err(_) if !self.disks().iter().any(|still| still.number == disk.number) => Ok(None),
            answer => answer.map(Some),
        });
        let stats: Result<Vec<_>, _> = answers.filter_map(Result::transpose).collect();
        let mut stats =
            stats.map_err(|error| StatError(format!("a disk does not answer: {error}")))?;
        self.catalogue.warn(&mut stats);
        Ok(Stat::new(stats))
    }

    fn stat_in_parts(&self) -> Result<Stat, StatError> {
        self.catalogue.stat_in_parts().map_err(|error| StatError(error.to_string()))
    }

    fn add_volumes(&self, stat: &mut Stat) -> Result<(), StatError> {
        if !self.config.keys.metrics_volumes {
            return Ok(());
        }
        self.catalogue.add_volumes(stat).map_err(|error| StatError(error.to_string()))
    }

    fn stat_page(&self, question: &StatQuestion) -> Result<StatPage, CatalogueError> {
        self.catalogue.stat_page(question)
    }

    fn group(&self, question: &GroupQuestion) -> Result<GroupAnswer, GroupError> {
        let GroupQuestion { group, disk } = question;
        let disks = self.disks_of(group, disk.as_ref())?;
        let asked: Vec<_> =
            disks.iter().map(|disk| (&**disk, set(disk, group, &NewGroup::default()))).collect();
        answers(asked)
    }

    fn set_group(&self, change: &GroupChange) -> Result<GroupAnswer, GroupError> {
        let group = &change.group;
        let disks = self.disks_of(group, change.disk.as_ref())?;
        let written = || self.catalogue.groups(|groups| groups.weights(group));
        if change.check(written())?.limits_something() {
            check_have_limits(&disks)?;
        }
        let setting = self.setting_groups();
        let settings = change.check(written())?;
        for disk in settings.disks() {
            self.disks_of(group, Some(disk))?;
        }
        let asked: Vec<_> =
            disks.iter().map(|disk| (&**disk, set(disk, group, &settings))).collect();
        let answer = answers(asked)?;
        // Before anybody hands over what is set.
        self.set_by_request().group(change);
        drop(setting);
        Ok(answer)
    }

    fn settings(&self) -> Result<SettingsAnswer, SettingError> {
        let disks = self.disks();
        let asked: Vec<_> = disks.iter().map(|disk| (disk, disk.owner.settings())).collect();
        let answers = asked.into_iter().map(|(disk, answer)| {
            let late = |_| SettingError::Unanswered { disk: disk.name.clone() };
            answer.recv_timeout(PATIENCE).map_err(late)
        });
        answers.collect::<Result<_, _>>().map(SettingsAnswer::new)
    }

    fn change_settings(&self, change: &DiskChange) -> Result<SettingsAnswer, SettingError> {
        let DiskChange { disk: name, set } = change;
        let disk = self.disk(name)?;
        let _setting = self.setting_groups();
        let answer = disk.owner.change_settings(set.clone()).recv_timeout(PATIENCE);
        let in_force = answer.map_err(|_| SettingError::Unanswered { disk: name.clone() })??;
        self.set_by_request().disk(change);
        Ok(SettingsAnswer::new(vec![in_force]))
    }

    fn trace(&self, question: &TraceQuestion) -> Result<DecisionLines, TraceError> {
        let disk = self.disk(&question.disk)?;
        if let Some(group) = &question.group {
            let known = self.catalogue.groups(|groups| {
                let known = || quoted([ROOT].into_iter().chain(groups.on(disk.number)));
                (!groups.is_on(group, disk.number)).then(known)
            });
            if let Some(known) = known {
                let (group, disk) = (group.clone(), disk.name.clone());
                return Err(TraceError::UnknownGroup { group, disk, known });
            }
        }
        let name = || disk.name.clone();
        let begun = Following::begin(disk.owner.clone(), question.group.clone());
        let following = begun.map_err(|_| TraceError::Unanswered { disk: name() })?;
        Ok(Box::new(following.ok_or_else(|| TraceError::Busy { disk: name() })?))
    }

    fn start_recording(&self, question: &RecordQuestion) -> Result<RecordingsAnswer, RecordError> {
        let disk = self.disk(&question.disk)?;
        let begun = self.recordings.start(&disk.owner, question)?;
        Ok(RecordingsAnswer::new(vec![begun]))
    }

    fn stop_recording(&self, disk: &str) -> Result<RecordingsAnswer, RecordError> {
        self.recordings.stop(disk).map(|ended| RecordingsAnswer::new(vec![ended]))
    }

    fn recordings(&self, disk: Option<&str>) -> Result<RecordingsAnswer, RecordError> {
        if let Some(disk) = disk {
            self.disk(disk)?;
        }
        let wanted = |one: &RecordingStatus| disk.is_none_or(|disk| one.disk == disk);
        let all = self.recordings.status().into_iter();
        Ok(RecordingsAnswer::new(all.filter(wanted).collect()))
    }

    fn reload(&self, mode: ReloadMode) -> Result<ReloadAnswer, ReloadError> {
        let path = self.file.as_deref().ok_or(ReloadError::NoFile)?;
        match mode {
            ReloadMode::DryRun => self.reload_file(path, mode),
            ReloadMode::Apply => self.manager.around_reload(|| self.reload_file(path, mode)),
        }
    }

    fn hand_over(&self) -> Result<HandOverAnswer, HandOverError> {
        let hand_over = self.hand_over.as_ref().ok_or(HandOverError::NotServed)?;
        // As whoever asks may be in another directory.
        let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let [file, socket] = [self.file.as_deref(), hand_over.socket()];
        let armed_s = hand_over.armed_for().map(|left| left.as_secs());
        Ok(HandOverAnswer::new(file.map(absolute), socket.map(absolute), armed_s))
    }

    fn arm_hand_over(&self) -> Result<HandOverAnswer, HandOverError> {
        let hand_over = self.hand_over.as_ref().ok_or(HandOverError::NotServed)?;
        if !self.manager.is_there() {
            return Err(HandOverError::NoManager);
        }
        hand_over.arm();
        self.hand_over()
    }

    fn pools(&self) -> PoolsAnswer {
        self.catalogue.pools()
    }

    fn pool(&self, name: &str) -> Result<PoolAnswer, CatalogueError> {
        self.catalogue.pool_answer(name)
    }

    fn volumes(&self, question: &VolumesQuestion) -> Result<VolumesAnswer, CatalogueError> {
        self.catalogue.volumes(question)
    }

    fn volume(&self, name: &str) -> Result<VolumeAnswer, CatalogueError> {
        self.catalogue.volume(name)
    }

    fn put_volume(
        &self,
        name: &str,
        body: &Value,
        only_new: bool,
    ) -> Result<Put<VolumeAnswer>, CatalogueError> {
        self.catalogue.put_volume(name, body, only_new)
    }

    fn patch_volume(&self, name: &str, patch: &Value) -> Result<VolumeAnswer, CatalogueError> {
        self.catalogue.patch_volume(name, patch)
    }

    fn remove_volume(&self, name: &str, question: &RemovalQuestion) -> Result<(), CatalogueError> {
        self.catalogue.remove_volume(name, question)
    }

    fn exports(&self, question: &ExportsQuestion) -> Result<ExportsAnswer, CatalogueError> {
        self.catalogue.exports(question)
    }

    fn export(&self, name: &str) -> Result<ExportAnswer, CatalogueError> {
        self.catalogue.export(name)
    }

    fn put_export(
        &self,
        name: &str,
        body: &Value,
        only_new: bool,
    ) -> Result<Put<ExportAnswer>, CatalogueError> {
        self.catalogue.put_export(name, body, only_new)
    }

    fn patch_export(&self, name: &str, patch: &Value) -> Result<ExportAnswer, CatalogueError> {
        self.catalogue.patch_export(name, patch)
    }

    fn remove_export(&self, name: &str, question: &RemovalQuestion) -> Result<(), CatalogueError> {
        self.catalogue.remove_export(name, question)
    }

    fn all_groups(&self) -> GroupsAnswer {
        self.catalogue.all_groups()
    }

    fn served_group(&self, path: &str) -> Result<ServedGroup, CatalogueError> {
        self.catalogue.group(path)
    }

    fn put_group(&self, path: &str, body: &Value) -> Result<Put<ServedGroup>, CatalogueError> {
        let _setting = self.setting_groups();
        self.catalogue.put_group(path, body)
    }

    fn patch_group(&self, path: &str, changes: &Value) -> Result<ServedGroup, CatalogueError> {
        let _setting = self.setting_groups();
        self.catalogue.patch_group(path, changes)
    }

    fn remove_group(&self, path: &str) -> Result<(), CatalogueError> {
        self.catalogue.remove_group(path)
    }

    fn export_config(&self) -> String {
        self.catalogue.export_config()
    }

    fn reopen_volume(&self, name: &str) -> Result<VolumeAnswer, CatalogueError> {
        self.catalogue.reopen_volume(name)
    }

    fn quiesce_volume(&self, name: &str) -> Result<VolumeAnswer, CatalogueError> {
        self.catalogue.quiesce_volume(name)
    }

    fn resume_volume(&self, name: &str) -> Result<VolumeAnswer, CatalogueError> {
        self.catalogue.resume_volume(name)
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

/// Names in quotes, for a message.
fn quoted(names: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let quoted = names.into_iter().map(|name| format!("{:?}", name.as_ref()));
    quoted.collect::<Vec<_>>().join(", ")
}
