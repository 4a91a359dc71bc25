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

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use super::image::{finish_recorded, path_of};
use super::record::{GroupRecord, MadeRecord, Records};
use super::store::{EXPORTS, GROUPS, VOLUMES, sync_directory_of};
use super::{Catalogue, Pool, Stage, State, Volume};
use crate::config::{GroupKeys, VOLUME, Wanted};
use crate::ctl::{CatalogueError, Data};

impl Catalogue {
    /// Says of a volume that is asked for whether it is durable, if the request does not.
    pub(super) fn decide_durable(&self, wanted: &mut Wanted) -> Result<(), CatalogueError> {
        let durable = *wanted.more.durable.get_or_insert(self.store.is_some());
        if durable && self.store.is_none() { Err(CatalogueError::NoStateDir) } else { Ok(()) }
    }

    /// The same of an export, which can last as long as its volume.
    pub(super) fn decide_durable_export(&self, wanted: &mut Wanted) -> Result<(), CatalogueError> {
        let lasts = {
            let state = self.state();
            let volume = state.volumes.get(wanted.keys.volume.as_deref().unwrap_or_default());
            volume.is_some_and(|volume| volume.is_of_file || volume.of.is_durable())
        };
        let durable = *wanted.more.durable.get_or_insert(lasts && self.store.is_some());
        match () {
            () if durable && self.store.is_none() => Err(CatalogueError::NoStateDir),
            () if durable && !lasts => Err(CatalogueError::Value(format!(
                "export {:?}: its volume goes with the server: \"durable\": false is allowed",
                wanted.name
            ))),
            () => Ok(()),
        }
    }

    /// Records a volume as it is in the catalogue, if it is durable.
    pub(super) fn record(&self, name: &str) -> Result<(), CatalogueError> {
        let (of, own_group) = {
            let mut state = self.state();
            let volume = state.made(name)?;
            (volume.of.clone(), volume.has_own_group)
        };
        self.write(&of, MadeRecord::of(&of, own_group))
    }

    /// The same where something else has failed, which is what is answered.
    pub(super) fn record_again(&self, name: &str) {
        logged(name, self.record(name));
    }

    /// Records a volume as it is to be, if it is durable.
    pub(super) fn record_as(&self, wanted: &Wanted) -> Result<(), CatalogueError> {
        let own_group = self.state().made(&wanted.name)?.has_own_group;
        self.write(wanted, MadeRecord::of(wanted, own_group))
    }

    /// Records that a volume is being removed, if it is durable.
    pub(super) fn record_removal(&self, of: &Wanted, data: Data) -> Result<(), CatalogueError> {
        let own_group = self.state().made(&of.name)?.has_own_group;
        let mut record = MadeRecord::of(of, own_group);
        record.removing = Some(data);
        self.write(of, record)
    }

    fn write(&self, of: &Wanted, record: MadeRecord) -> Result<(), CatalogueError> {
        if self.state().made(&of.name)?.recorded.as_ref() != Some(&record) {
            self.write_record(of, &record)?;
            self.state().made(&of.name)?.recorded = Some(record);
        }
        Ok(())
    }

    /// Records an export as it is in the catalogue, if it is durable.
    pub(super) fn record_export(&self, name: &str) -> Result<(), CatalogueError> {
        let (of, own_group) = {
            let mut state = self.state();
            let export = state.made_export(name)?;
            (export.of.clone(), export.has_own_group)
        };
        self.write_record(&of, &MadeRecord::of(&of, own_group))
    }

    fn write_record(&self, of: &Wanted, record: &MadeRecord) -> Result<(), CatalogueError> {
        let Some(store) = self.store.as_ref().filter(|_| of.is_durable()) else { return Ok(()) };
        let written = store.write(directory_of(of), record);
        written.map_err(|error| not_recorded(of.kind(), &of.name, &error))
    }

    /// Has a volume or an export have no record.
    pub(super) fn forget(&self, of: &Wanted) -> Result<(), CatalogueError> {
        let Some(store) = self.store.as_ref().filter(|_| of.is_durable()) else { return Ok(()) };
        let removed = store.remove(directory_of(of), &of.name);
        removed.map_err(|error| not_recorded(of.kind(), &of.name, &error))
    }

    /// Records a group that was made by request.
    pub(super) fn record_group(&self, path: &str, keys: &GroupKeys) -> Result<(), CatalogueError> {
        let Some(store) = &self.store else { return Ok(()) };
        let written = store.write(GROUPS, &GroupRecord::of(path, keys));
        written.map_err(|error| not_recorded("group", path, &error))
    }

    /// Has a group have no record.
    pub(super) fn forget_group(&self, path: &str) -> Result<(), CatalogueError> {
        let Some(store) = &self.store else { return Ok(()) };
        let removed = store.remove(GROUPS, path);
        removed.map_err(|error| not_recorded("group", path, &error))
    }

    /// Serves what the records say, before any client enters. Returns the URIs of all that is
    /// served again. What cannot be opened is not served, and says why.
    pub(crate) fn restore(&self, records: Records) -> Vec<String> {
        let Records { volumes, exports, groups } = records;
        let made: BTreeSet<_> = groups.iter().map(|(path, _)| path.clone()).collect();
        for (path, keys) in groups {
            self.change_groups(|groups| groups.make(&path, &keys));
        }
        // What has brought a group along says what is set of it, whoever enters it first.
        let brought = volumes.iter().chain(&exports).filter(|(_, record)| record.own_group);
        let brought = brought.map(|(wanted, _)| (wanted.group(), wanted.group_keys()));
        let brought: Vec<_> = brought.filter(|(path, _)| !made.contains(path)).collect();
        for (path, keys) in &brought {
            self.change_groups(|groups| groups.make(path, keys));
        }
        let mut uris = Vec::new();
        let mut restored = |wanted: &Wanted, served: Result<(), CatalogueError>| match served {
            Ok(()) => uris.extend(self.places.iter().map(|place| place.of_export(&wanted.name))),
            Err(error) => logged(&wanted.name, Err(error)),
        };
        for (wanted, record) in volumes {
            match record.removing {
                Some(data) => logged(&wanted.name, self.go_on_removing(&wanted, data)),
                None => restored(&wanted, self.serve_again(&wanted, record)),
            }
        }
        for (wanted, record) in exports {
            restored(&wanted, self.serve_export_again(&wanted, record.own_group));
        }
        for (path, _) in &brought {
            self.change_groups(|groups| groups.unmake(path));
        }
        self.warn_of_orphans();
        uris
    }

    fn serve_again(&self, wanted: &Wanted, record: MadeRecord) -> Result<(), CatalogueError> {
        let pool = self.pool_of(wanted)?;
        let (name, path) = (&wanted.name, path_of(pool, wanted)?);
        let size = wanted.more.size.unwrap_or_default();
        let room = self.rooms.volume();
        let full = room.as_ref().err().map(|full| CatalogueError::NoDescriptor(full.to_string()));
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
    fn go_on_removing(&self, of: &Wanted, data: Data) -> Result<(), CatalogueError> {
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

/// Where what is recorded of it is.
fn directory_of(of: &Wanted) -> &'static str {
    if of.kind() == VOLUME { VOLUMES } else { EXPORTS }
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
pub(super) fn delete(path: &Path) -> Result<(), CatalogueError> {
    let deleted = match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other.and_then(|()| sync_directory_of(path)),
    };
    deleted.map_err(|error| super::image::image_error(path, &error))
}

/// Logs what nobody is answered.
pub(super) fn logged(name: &str, done: Result<(), CatalogueError>) {
    if let Err(error) = done {
        tracing::error!("{name:?}: {error}");
    }
}

fn not_recorded(what: &'static str, name: &str, error: &io::Error) -> CatalogueError {
    let (name, why) = (name.to_owned(), error.to_string());
    CatalogueError::NotRecorded { what, name, why }
}
