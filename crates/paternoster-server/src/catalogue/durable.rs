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
//! Wherever a server is killed, what was answered is there, whole. What was not answered may be
//! there or not, and a removal that has begun goes on.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::PathBuf;

use paternoster_disk::VolumeId;

use super::image::{IMAGE, backend_of, finish_recorded, image_error};
use super::record::{GroupRecord, MadeRecord, Records};
use super::store::{self, EXPORTS, GROUPS, VOLUMES};
use super::{Asked, Catalogue, Disk, Stage, State, Volume};
use crate::config::{BackendConfig, GroupKeys, PoolKind, VOLUME, Wanted};
use crate::ctl::{CatalogueError, Data};
use crate::sockets::Patience;

impl Catalogue {
    /// Says of a volume that is asked for whether it is durable, if the request does not; one in
    /// memory goes with the server.
    pub(super) fn decide_durable(
        &self,
        pool: &Disk,
        wanted: &mut Wanted,
    ) -> Result<(), CatalogueError> {
        let lasts = pool.kind() != PoolKind::Modelled;
        let durable = *wanted.more.durable.get_or_insert(lasts && self.store.is_some());
        match () {
            () if durable && self.store.is_none() => Err(CatalogueError::NoStateDir),
            () if durable && !lasts => Err(CatalogueError::Value(format!(
                "pool {:?} is modelled, and its volumes go with the server: \"durable\": false is \
                 allowed",
                pool.name
            ))),
            () => Ok(()),
        }
    }

    /// Says of an export that is asked for whether it is durable; it lasts no longer than its
    /// volume.
    pub(super) fn decide_durable_export(&self, wanted: &mut Wanted) -> Result<(), CatalogueError> {
        let lasts = {
            let state = self.state();
            let volume = state.volumes.get(wanted.keys.volume.as_deref().unwrap_or_default());
            volume.is_some_and(|volume| volume.asked.is_of_file || volume.asked.of.is_durable())
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

    /// Records a volume or an export as it is in the catalogue, if it is durable.
    pub(super) fn record(&self, kind: &str, name: &str) -> Result<(), CatalogueError> {
        let (of, own_group) = {
            let mut state = self.state();
            let asked = state.asked(kind, name)?;
            (asked.of.clone(), asked.has_own_group)
        };
        self.write(&of, MadeRecord::of(&of, own_group))
    }

    /// Records a volume as it is after a step that failed. That error is answered; one of the
    /// record is logged.
    pub(super) fn record_again(&self, name: &str) {
        logged(name, self.record(VOLUME, name));
    }

    /// Records a volume as it is to be, if it is durable.
    pub(super) fn record_as(&self, wanted: &Wanted, own_group: bool) -> Result<(), CatalogueError> {
        self.write(wanted, MadeRecord::of(wanted, own_group))
    }

    /// Records that a volume is being removed, if it is durable.
    pub(super) fn record_removal(&self, of: &Wanted, data: Data) -> Result<(), CatalogueError> {
        let own_group = self.state().asked(VOLUME, &of.name)?.has_own_group;
        let mut record = MadeRecord::of(of, own_group);
        record.removing = Some(data);
        self.write(of, record)
    }

    fn write(&self, of: &Wanted, record: MadeRecord) -> Result<(), CatalogueError> {
        let Some(store) = self.store.as_ref().filter(|_| of.is_durable()) else { return Ok(()) };
        {
            let mut state = self.state();
            let recorded = &mut state.asked(of.kind(), &of.name)?.recorded;
            if recorded.as_ref() == Some(&record) {
                return Ok(());
            }
            // Where it fails, either may be there.
            *recorded = None;
        }
        let written = store.write(directory_of(of), &record);
        written.map_err(|error| not_recorded(of.kind(), &of.name, &error))?;
        self.state().asked(of.kind(), &of.name)?.recorded = Some(record);
        Ok(())
    }

    /// Has a volume or an export have no record.
    pub(super) fn forget(&self, of: &Wanted) -> Result<(), CatalogueError> {
        let Some(store) = self.store.as_ref().filter(|_| of.is_durable()) else { return Ok(()) };
        if let Ok(asked) = self.state().asked(of.kind(), &of.name) {
            asked.recorded = None;
        }
        let removed = store.remove(directory_of(of), &of.name);
        removed.map_err(|error| not_recorded(of.kind(), &of.name, &error))
    }

    /// Keeps a group that has settings when what has brought it along goes, and others stay.
    pub(super) fn keep_brought(&self, of: &Wanted) -> Result<(), CatalogueError> {
        let path = of.group();
        let keys = {
            let state = self.state();
            let is_set = of.group_keys() != GroupKeys::default();
            let others = || state.members(&path).any(|other| other.name != of.name);
            let is_kept = is_set && !state.groups.is_of_file(&path) && others();
            let known = state.groups.keys(&path).cloned();
            // Of those that are all missing it is not there.
            let keys = known.unwrap_or_else(|| state.groups.full(of.group_keys()));
            is_kept.then_some(keys)
        };
        let Some(keys) = keys.filter(|_| self.store.is_some()) else { return Ok(()) };
        self.record_group(&path, &keys)?;
        self.change_groups(|groups| groups.make(&path, &keys));
        Ok(())
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
    /// served again, and its sockets of virtual machines. What cannot be opened is not served, and
    /// says why.
    pub(crate) fn restore(&self, records: Records) -> (Vec<String>, Vec<PathBuf>) {
        let Records { volumes, exports, groups } = records;
        let made: BTreeSet<_> = groups.iter().map(|(path, _)| path.clone()).collect();
        for (path, keys) in groups {
            self.change_groups(|groups| groups.make(&path, &keys));
        }
        // What has brought a group along says what is set of it, whoever enters it first.
        let brought = volumes.iter().chain(&exports).filter(|(_, record)| record.own_group);
        let brought = brought.map(|(wanted, _)| (wanted.group(), wanted.group_keys()));
        let brought: BTreeMap<_, _> = brought.filter(|(path, _)| !made.contains(path)).collect();
        for (path, keys) in &brought {
            self.change_groups(|groups| groups.make(path, keys));
        }
        let (mut uris, mut machines) = (Vec::new(), Vec::new());
        let mut restored = |wanted: &Wanted, served: Result<(), CatalogueError>| match served {
            Ok(()) => {
                uris.extend(self.uris(&wanted.name));
                machines.extend(self.socket(wanted).ok().flatten());
            }
            Err(error) => logged(&wanted.name, Err(error)),
        };
        let (removed, volumes): (Vec<_>, Vec<_>) =
            volumes.into_iter().partition(|(_, record)| record.removing.is_some());
        // For all of them together.
        let patience = Patience::a_while();
        for (wanted, record) in volumes {
            restored(&wanted, self.serve_again(&wanted, record, patience));
        }
        for (wanted, record) in exports {
            restored(&wanted, self.serve_export_again(&wanted, record));
        }
        // Behind those that may have an image that one of them had.
        let had_brought = removed.iter().filter(|(_, record)| record.own_group);
        let had_brought: Vec<_> = had_brought.map(|(wanted, _)| wanted.clone()).collect();
        for (wanted, record) in removed {
            logged(&wanted.name, self.go_on_removing(&wanted, record));
        }
        for path in brought.keys() {
            self.change_groups(|groups| groups.unmake(path));
        }
        for wanted in had_brought {
            logged(&wanted.name, self.keep_brought(&wanted));
        }
        self.warn_of_orphans();
        (uris, machines)
    }

    fn serve_again(
        &self,
        wanted: &Wanted,
        record: MadeRecord,
        patience: Patience,
    ) -> Result<(), CatalogueError> {
        let (pool, size) = (self.pool_of(wanted)?, wanted.more.size.unwrap_or_default());
        self.insert_missing(&pool, wanted, record);
        let named = backend_of(&pool, wanted).and_then(|of| {
            self.state().check_far(&pool, &wanted.name, &of)?;
            finish_recorded(wanted, &of)
        });
        let served = named.and_then(|()| {
            self.take_room(&wanted.name)?;
            self.serve(&pool, wanted, size, patience)
        });
        self.state().made(&wanted.name)?.stage = match &served {
            Ok(id) => Stage::Ready(*id),
            Err(error) => Stage::Missing(error.to_string()),
        };
        served.map(drop)
    }

    /// Takes a volume into the catalogue that is not served.
    fn insert_missing(&self, pool: &Disk, wanted: &Wanted, record: MadeRecord) {
        // Where the pool is another one by now, the volume says so and has nothing behind it.
        let backend = backend_of(pool, wanted).unwrap_or(BackendConfig::Memory { size: 0 });
        let size = wanted.more.size.unwrap_or_default();
        let opening = Stage::Missing("it is being opened".to_owned());
        let mut state = self.state();
        let asked = Asked::recorded(wanted.clone(), record, &state.groups);
        let writes = !wanted.keys.read_only;
        let (sync_failed, room) = (false, None);
        let volume = Volume { asked, backend, size, writes, stage: opening, sync_failed, room };
        state.volumes.insert(wanted.name.clone(), volume);
    }

    /// Ends a removal that another server had begun: its clients have gone with that one. Where
    /// that fails, it can be asked for again.
    fn go_on_removing(&self, of: &Wanted, record: MadeRecord) -> Result<(), CatalogueError> {
        let (name, data) = (&of.name, record.removing.unwrap_or_default());
        let pool = self.pool_of(of)?;
        self.insert_missing(&pool, of, record);
        let named = match (data, backend_of(&pool, of)) {
            (_, Ok(of_is)) => finish_recorded(of, &of_is),
            (Data::Keep, Err(_)) => Ok(()),
            (Data::Delete, Err(error)) => Err(error),
        };
        let ended = named.and_then(|()| match data {
            Data::Delete => self.delete_image(of),
            Data::Keep => self.sync_name(of),
        });
        if let Err(error) = ended.and_then(|()| self.forget(of)) {
            self.state().made(name)?.stage = removal_failed(&error);
            return Err(error);
        }
        self.state().volumes.remove(name);
        tracing::info!(volume = name, ?data, "the removal that had begun is done");
        Ok(())
    }

    /// Deletes the image of a volume that was made with it, unless it is another's by now.
    pub(super) fn delete_image(&self, of: &Wanted) -> Result<(), CatalogueError> {
        let pool = self.pool_of(of)?;
        let BackendConfig::File { path, .. } = backend_of(&pool, of)? else { return Ok(()) };
        let of_another = self.state().volumes.iter().find_map(|(other, volume)| {
            (*other != of.name && volume.image() == Some(&path)).then(|| other.clone())
        });
        if let Some(other) = of_another {
            let why = format!("it is the image of volume {other:?} by now");
            return Err(CatalogueError::Image { path, why });
        }
        store::remove(&path).map_err(|error| image_error(&path, &error))
    }

    /// Makes durable what the image of a durable volume is called, which only its record says
    /// until then.
    pub(super) fn sync_name(&self, of: &Wanted) -> Result<(), CatalogueError> {
        if !of.is_new() || !of.is_durable() {
            return Ok(());
        }
        let pool = self.pool_of(of)?;
        // One whose pool is another by now has no image there.
        let Ok(BackendConfig::File { path, .. }) = backend_of(&pool, of) else { return Ok(()) };
        store::sync_directory_of(&path).map_err(|error| image_error(&path, &error))
    }

    /// Names images in the directories of pools that are no volume's.
    fn warn_of_orphans(&self) {
        for pool in self.disks().into_iter().filter(|disk| disk.is_pool) {
            let orphans = self.state().orphans(&pool);
            if !orphans.is_empty() {
                let (shown, more) = orphans.split_at(orphans.len().min(ORPHANS_SHOWN));
                let more = if more.is_empty() { "" } else { ", …" };
                let (count, shown) = (orphans.len(), shown.join(", "));
                tracing::warn!(
                    disk = pool.name,
                    "images that are no volume's, {count} in all: {shown}{more}"
                );
            }
        }
    }
}

/// How a volume is whose removal has failed.
pub(super) fn removal_failed(error: &CatalogueError) -> Stage<VolumeId> {
    Stage::Missing(format!("its removal failed, and can be asked for again: {error}"))
}

/// Where what is recorded of it is.
fn directory_of(of: &Wanted) -> &'static str {
    if of.kind() == VOLUME { VOLUMES } else { EXPORTS }
}

/// Images that a warning names.
const ORPHANS_SHOWN: usize = 5;

impl State {
    fn orphans(&self, pool: &Disk) -> Vec<String> {
        let Some(directory) = &pool.config.keys.path else { return Vec::new() };
        let known: BTreeSet<_> = self.volumes.values().filter_map(Volume::image).collect();
        let files = fs::read_dir(directory).into_iter().flatten().flatten();
        let images = files
            .map(|file| file.path())
            .filter(|path| path.to_string_lossy().ends_with(IMAGE) && !known.contains(&**path));
        let mut names: Vec<_> = images
            .filter_map(|path| Some(format!("{:?}", path.file_name()?.to_string_lossy())))
            .collect();
        names.sort_unstable();
        names
    }
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
