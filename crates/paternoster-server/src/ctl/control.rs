//! What the control plane asks of a server, whichever that is.

use axum::http::StatusCode;
use serde_json::Value;
use thiserror::Error;
use uuid::Uuid;

use super::answer::Status;
use super::catalogue_error::CatalogueError;
use super::export::{ExportAnswer, ExportsAnswer, ExportsQuestion};
use super::group::{GroupAnswer, GroupChange, GroupError, GroupQuestion};
use super::hand_over::{HandOverAnswer, HandOverError};
use super::record::{RecordError, RecordQuestion, RecordingsAnswer};
use super::reload::{ReloadAnswer, ReloadError, ReloadMode};
use super::settings::{DiskChange, SettingError, SettingsAnswer};
use super::stat_page::{StatPage, StatQuestion};
use super::trace::{DecisionLines, TraceError, TraceQuestion};
use super::volume::{
    GroupsAnswer, PoolAnswer, PoolsAnswer, Put, RemovalQuestion, ServedGroup, VolumeAnswer,
    VolumesAnswer, VolumesQuestion, page_limit,
};
use crate::stat::{Detail, Stat};

/// What the control plane needs of a server.
pub trait Control: Send + Sync + 'static {
    /// The UUID of the directory of records; none without one, or if it cannot be read or made.
    fn instance(&self) -> Option<Uuid> {
        None
    }

    /// The state now. Called on a thread that may wait, but not for long: a client gives up after
    /// ten seconds.
    fn stat(&self, detail: Detail) -> Result<Stat, StatError>;

    /// The same, of which metrics are made: what they do not have may be missing. Called as `stat`
    /// is.
    fn stat_in_parts(&self) -> Result<Stat, StatError> {
        self.stat(Detail::Groups)
    }

    /// Adds volumes to what metrics are made of, if they are to have them. Called as `stat` is.
    fn add_volumes(&self, stat: &mut Stat) -> Result<(), StatError> {
        _ = stat;
        Ok(())
    }

    /// The state of some groups. Called as `stat` is; there are none unless a server says so.
    fn stat_page(&self, question: &StatQuestion) -> Result<StatPage, CatalogueError> {
        page_limit(question.limit).map(|_| StatPage { stat: Stat::new(Vec::new()), next: None })
    }

    /// Reports what is set of a group. Called as `stat` is.
    fn group(&self, question: &GroupQuestion) -> Result<GroupAnswer, GroupError>;

    /// Changes what is set of a group; it is in force when this returns. Called as `stat` is.
    fn set_group(&self, change: &GroupChange) -> Result<GroupAnswer, GroupError>;

    /// Reports what is set of every disk. Called as `stat` is.
    fn settings(&self) -> Result<SettingsAnswer, SettingError>;

    /// Changes what is set of a disk, all of it or nothing; it is in force when this returns.
    /// Called as `stat` is.
    fn change_settings(&self, change: &DiskChange) -> Result<SettingsAnswer, SettingError>;

    /// Records what a disk's scheduler decides, for as long as the lines are there; for how long
    /// somebody wants them is not looked at. Called as `stat` is.
    fn trace(&self, question: &TraceQuestion) -> Result<DecisionLines, TraceError>;

    /// Begins to write a disk's requests to files. Called as `stat` is, and so are the next two; no
    /// disk is recorded unless a server says so.
    fn start_recording(&self, question: &RecordQuestion) -> Result<RecordingsAnswer, RecordError> {
        Err(RecordError::Unanswered { disk: question.disk.clone() })
    }

    /// Ends it, when all is written.
    fn stop_recording(&self, disk: &str) -> Result<RecordingsAnswer, RecordError> {
        Err(RecordError::NotRecorded { disk: disk.to_owned() })
    }

    /// How far the newest recordings are, of that disk or of all.
    fn recordings(&self, disk: Option<&str>) -> Result<RecordingsAnswer, RecordError> {
        _ = disk;
        Ok(RecordingsAnswer::new(Vec::new()))
    }

    /// Reads the file again and, unless it is a dry run, makes what may change while clients are
    /// served as it says. Called as `stat` is.
    fn reload(&self, mode: ReloadMode) -> Result<ReloadAnswer, ReloadError>;

    /// Says how another server can take over. Called as `stat` is.
    fn hand_over(&self) -> Result<HandOverAnswer, HandOverError> {
        Err(HandOverError::NotServed)
    }

    /// Has the next end hand over to the service manager. Called as `stat` is.
    fn arm_hand_over(&self) -> Result<HandOverAnswer, HandOverError> {
        Err(HandOverError::NotServed)
    }

    /// Reports the pools. Called as `stat` is, and so are the next four; there are none unless a
    /// server says so.
    fn pools(&self) -> PoolsAnswer {
        PoolsAnswer::new(Vec::new())
    }

    /// Reports one pool.
    fn pool(&self, name: &str) -> Result<PoolAnswer, CatalogueError> {
        let (pool, known) = (name.to_owned(), "none".to_owned());
        Err(CatalogueError::NoSuchPool { pool, known })
    }

    /// Reports volumes of pools.
    fn volumes(&self, question: &VolumesQuestion) -> Result<VolumesAnswer, CatalogueError> {
        page_limit(question.limit)
            .map(|_| VolumesAnswer { version: Stat::VERSION, ..Default::default() })
    }

    /// Reports one volume.
    fn volume(&self, name: &str) -> Result<VolumeAnswer, CatalogueError> {
        Err(CatalogueError::NoSuchVolume(name.to_owned()))
    }

    /// Makes a volume as the body says, or changes it to that, unless it has to be new. Called on a
    /// thread that may wait for as long as it takes, and so are the next three.
    fn put_volume(
        &self,
        name: &str,
        body: &Value,
        only_new: bool,
    ) -> Result<Put<VolumeAnswer>, CatalogueError> {
        _ = (body, only_new);
        self.volume(name).map(|shown| Put { shown, is_new: false })
    }

    /// Changes a volume by a merge patch.
    fn patch_volume(&self, name: &str, patch: &Value) -> Result<VolumeAnswer, CatalogueError> {
        _ = patch;
        self.volume(name)
    }

    /// Removes a volume.
    fn remove_volume(&self, name: &str, question: &RemovalQuestion) -> Result<(), CatalogueError> {
        _ = question;
        self.volume(name).map(drop)
    }

    /// Reports some exports that are no volume's own. Called as `volumes` is, and so are the next
    /// four as those of volumes.
    fn exports(&self, question: &ExportsQuestion) -> Result<ExportsAnswer, CatalogueError> {
        page_limit(question.limit)?;
        Ok(ExportsAnswer { version: Stat::VERSION, ..ExportsAnswer::default() })
    }

    /// Reports one export.
    fn export(&self, name: &str) -> Result<ExportAnswer, CatalogueError> {
        Err(CatalogueError::NoSuchExport(name.to_owned()))
    }

    /// Makes an export as the body says, or changes it to that, unless it has to be new.
    fn put_export(
        &self,
        name: &str,
        body: &Value,
        only_new: bool,
    ) -> Result<Put<ExportAnswer>, CatalogueError> {
        _ = (body, only_new);
        self.export(name).map(|shown| Put { shown, is_new: false })
    }

    /// Changes an export by a merge patch.
    fn patch_export(&self, name: &str, patch: &Value) -> Result<ExportAnswer, CatalogueError> {
        _ = patch;
        self.export(name)
    }

    /// Removes an export.
    fn remove_export(&self, name: &str, question: &RemovalQuestion) -> Result<(), CatalogueError> {
        _ = question;
        self.export(name).map(drop)
    }

    /// Reports all groups, and what is set of each by the file or by request. Called as `stat` is,
    /// and so are the next four.
    fn all_groups(&self) -> GroupsAnswer {
        GroupsAnswer { version: Stat::VERSION, ..GroupsAnswer::default() }
    }

    /// Reports one group.
    fn served_group(&self, path: &str) -> Result<ServedGroup, CatalogueError> {
        let (group, known) = (path.to_owned(), String::new());
        Err(CatalogueError::NoSuchGroup { group, known })
    }

    /// Makes a group as the body says, or changes it to that.
    fn put_group(&self, path: &str, body: &Value) -> Result<Put<ServedGroup>, CatalogueError> {
        _ = body;
        self.served_group(path).map(|shown| Put { shown, is_new: false })
    }

    /// Changes a group by a merge patch.
    fn patch_group(&self, path: &str, changes: &Value) -> Result<ServedGroup, CatalogueError> {
        _ = changes;
        self.served_group(path)
    }

    /// Removes a group.
    fn remove_group(&self, path: &str) -> Result<(), CatalogueError> {
        self.served_group(path).map(drop)
    }

    /// The volumes, exports and groups that were made by request, as a file declares them.
    fn export_config(&self) -> String {
        String::new()
    }

    /// Opens a volume again.
    fn reopen_volume(&self, name: &str) -> Result<VolumeAnswer, CatalogueError> {
        self.volume(name)
    }

    /// Disconnects from the server of a volume, which may then restart: requests wait.
    fn quiesce_volume(&self, name: &str) -> Result<VolumeAnswer, CatalogueError> {
        self.volume(name)
    }

    /// Goes on with what waits for the server of a volume.
    fn resume_volume(&self, name: &str) -> Result<VolumeAnswer, CatalogueError> {
        self.volume(name)
    }
}

/// Why there is no state to report; clients get status 503 and this sentence.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct StatError(pub String);

impl Status for StatError {
    fn status(&self) -> StatusCode {
        StatusCode::SERVICE_UNAVAILABLE
    }
}
