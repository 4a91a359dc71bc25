//! What outlives a restart: records are written as volumes and groups change, and what they say is
//! served again when a server starts.
//!
//! ```text
//!   make     image made, synced ─▶ record ─▶ image named ─▶ served ─▶ answered
//!   grow     image grown, synced ─▶ record ─▶ clients see it ─▶ answered
//!   shrink   nobody has it open ─▶ record ─▶ image cut ─▶ served ─▶ answered
//!   remove   record says so ─▶ drained, synced ─▶ image deleted ─▶ no record ─▶ answered
//! ```
//!
//! Wherever a server is killed, what was answered is there, whole; what was not is there or it is
//! not, and a removal that has begun goes on.

use std::fs;
use std::io;
use std::path::Path;

use super::image::{finish_recorded, path_of};
use super::record::{GroupRecord, Records, VolumeRecord};
use super::store::{Record as _, sync_directory_of};
use super::{Catalogue, Pool, Stage, State, Volume};
use crate::config::{GroupKeys, WantedVolume};
use crate::ctl::{Data, VolumeError};

impl Catalogue {
    /// Says of a volume that is asked for whether it is durable, if the request does not.
    pub(super) fn decide_durable(&self, wanted: &mut WantedVolume) -> Result<(), VolumeError> {
        let durable = *wanted.more.durable.get_or_insert(self.store.is_some());
        if durable && self.store.is_none() { Err(VolumeError::NoStateDir) } else { Ok(()) }
    }

    /// Records a volume as it is in the catalogue, if it is durable.
    pub(super) fn record(&self, name: &str) -> Result<(), VolumeError> {
        let (of, own_group) = {
            let mut state = self.state();
            let volume = state.made(name)?;
            (volume.of.clone(), volume.has_own_group)
        };
        self.write(&of, &VolumeRecord::of(&of, own_group))
    }

    /// The same where something else has failed, which is what is answered.
    pub(super) fn record_again(&self, name: &str) {
        logged(name, self.record(name));
    }

    /// Records a volume as it is to be, if it is durable.
    pub(super) fn record_as(&self, wanted: &WantedVolume) -> Result<(), VolumeError> {
        let own_group = self.state().made(&wanted.name)?.has_own_group;
        self.write(wanted, &VolumeRecord::of(wanted, own_group))
    }

    /// Records that a volume is being removed, if it is durable.
    pub(super) fn record_removal(&self, of: &WantedVolume, data: Data) -> Result<(), VolumeError> {
        let own_group = self.state().made(&of.name)?.has_own_group;
        let mut record = VolumeRecord::of(of, own_group);
        record.removing = Some(data);
        self.write(of, &record)
    }

    fn write(&self, of: &WantedVolume, record: &VolumeRecord) -> Result<(), VolumeError> {
        let Some(store) = self.store.as_ref().filter(|_| of.is_durable()) else { return Ok(()) };
        if self.state().made(&of.name)?.recorded.as_ref() == Some(record) {
            return Ok(());
        }
        let written = store.write(record);
        written.map_err(|error| not_recorded("volume", record.name(), &error))?;
        self.state().made(&of.name)?.recorded = Some(record.clone());
        Ok(())
    }

    /// Has a volume have no record.
    pub(super) fn forget(&self, of: &WantedVolume) -> Result<(), VolumeError> {
        let Some(store) = self.store.as_ref().filter(|_| of.is_durable()) else { return Ok(()) };
        let removed = store.remove::<VolumeRecord>(&of.name);
        removed.map_err(|error| not_recorded("volume", &of.name, &error))
    }

    /// Records a group that was made by request.
    pub(super) fn record_group(&self, path: &str, keys: &GroupKeys) -> Result<(), VolumeError> {
        let Some(store) = &self.store else { return Ok(()) };
        let written = store.write(&GroupRecord::of(path, keys));
        written.map_err(|error| not_recorded("group", path, &error))
    }

    /// Has a group have no record.
    pub(super) fn forget_group(&self, path: &str) -> Result<(), VolumeError> {
        let Some(store) = &self.store else { return Ok(()) };
        let removed = store.remove::<GroupRecord>(path);
        removed.map_err(|error| not_recorded("group", path, &error))
    }

    /// Serves what the records say, before any client enters. Returns the URIs of all that is
    /// served again. What cannot be opened is not served, and says why.
    pub(crate) fn restore(&self, records: Records) -> Vec<String> {
        let Records { mut volumes, groups } = records;
        for (path, keys) in groups {
            self.change_groups(|groups| groups.make(&path, &keys));
        }
        // Groups that come with a volume have what that one says of them, before others enter.
        volumes.sort_by_key(|(_, record)| !record.own_group);
        let mut uris = Vec::new();
        for (wanted, record) in volumes {
            let restored = match record.removing {
                Some(data) => self.go_on_removing(&wanted, data),
                None => self.serve_again(&wanted, record).map(|()| {
                    uris.extend(self.places.iter().map(|place| place.of_export(&wanted.name)));
                }),
            };
            logged(&wanted.name, restored);
        }
        self.warn_of_orphans();
        uris
    }

    fn serve_again(&self, wanted: &WantedVolume, record: VolumeRecord) -> Result<(), VolumeError> {
        let pool = self.pool_of(wanted)?;
        let (name, path) = (&wanted.name, path_of(pool, wanted)?);
        let size = wanted.more.size.unwrap_or_default();
        let room = self.rooms.volume();
        let full = room.as_ref().err().map(|full| VolumeError::NoDescriptor(full.to_string()));
        let volume = Volume {
            of: wanted.clone(),
            is_of_file: false,
            path: path.clone(),
            is_made: wanted.is_new(),
            has_own_group: record.own_group,
            size,
            stage: Stage::Creating,
            recorded: Some(record),
            _room: room.ok(),
        };
        self.state().volumes.insert(name.clone(), volume);
        let served = full.map_or(Ok(()), Err).and_then(|()| {
            finish_recorded(&path)?;
            self.serve(pool, wanted, size)
        });
        self.state().made(name)?.stage = match &served {
            Ok(id) => Stage::Ready(*id),
            Err(error) => Stage::Missing(error.to_string()),
        };
        served.map(drop)
    }

    /// Ends a removal that another server had begun: its clients have gone with that one.
    fn go_on_removing(&self, of: &WantedVolume, data: Data) -> Result<(), VolumeError> {
        if data == Data::Delete && of.is_new() {
            delete(&path_of(self.pool_of(of)?, of)?)?;
        }
        self.forget(of)?;
        tracing::info!(volume = of.name, ?data, "the removal that had begun is done");
        Ok(())
    }

    /// Names images in the directories of pools that are no volume's.
    fn warn_of_orphans(&self) {
        for pool in &self.pools {
            let orphans = self.state().orphans(pool);
            if !orphans.is_empty() {
                let (shown, more) = orphans.split_at(orphans.len().min(ORPHANS_SHOWN));
                let more = if more.is_empty() { "" } else { ", …" };
                let (count, shown) = (orphans.len(), shown.join(", "));
                tracing::warn!(disk = pool.name, "{count} images are no volume's: {shown}{more}");
            }
        }
    }
}

/// Images that a warning names.
const ORPHANS_SHOWN: usize = 5;

impl State {
    fn orphans(&self, pool: &Pool) -> Vec<String> {
        let Some(directory) = &pool.keys.path else { return Vec::new() };
        let known: Vec<_> = self.volumes.values().map(|volume| &volume.path).collect();
        let files = fs::read_dir(directory).into_iter().flatten().flatten();
        let images = files.map(|file| file.path()).filter(|path| {
            path.extension().is_some_and(|extension| extension == "img") && !known.contains(&path)
        });
        let mut names: Vec<_> = images
            .filter_map(|path| Some(format!("{:?}", path.file_name()?.to_string_lossy())))
            .collect();
        names.sort_unstable();
        names
    }
}

/// Deletes an image, so that it is not there again after a crash; one that is gone is deleted.
pub(super) fn delete(path: &Path) -> Result<(), VolumeError> {
    let deleted = match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other.and_then(|()| sync_directory_of(path)),
    };
    deleted.map_err(|error| super::image::image_error(path, &error))
}

/// Logs what nobody is answered.
pub(super) fn logged(volume: &str, done: Result<(), VolumeError>) {
    if let Err(error) = done {
        tracing::error!(volume, "{error}");
    }
}

fn not_recorded(what: &'static str, name: &str, error: &io::Error) -> VolumeError {
    let (name, why) = (name.to_owned(), error.to_string());
    VolumeError::NotRecorded { what, name, why }
}
