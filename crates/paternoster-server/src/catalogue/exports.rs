//! Exports beside those that volumes have of their own: those of the file, and read-only ones of
//! volumes that are made, changed and removed by request, as for a backup.

use std::ops::{Bound, Range};
use std::sync::Arc;

use paternoster::GroupLimits;
use serde_json::Value;

use super::create::not_own;
use super::durable::logged;
use super::record::MadeRecord;
use super::{Catalogue, Disk, Pool, State, Volume};
use crate::config::{EXPORT, ExportConfig, MULTIPLE, VOLUME, Wanted, check_volume_name};
use crate::ctl::{
    CatalogueError, ExportAnswer, ExportsAnswer, ExportsQuestion, Put, RemovalQuestion, VolumeStage,
};
use crate::export_table::{Entry, Told};
use crate::messages::NewExport;
use crate::stat::Stat;

/// An export that is not a volume's own.
#[derive(Debug)]
pub(super) struct Export {
    /// As it was asked for.
    pub(super) of: Wanted,
    pub(super) is_of_file: bool,
    /// Whether its group has come with it, so that weight and limits are the export's.
    pub(super) has_own_group: bool,
    /// Its disk or pool, as an index; none if its volume is not there.
    disk: Option<usize>,
    bytes: Range<u64>,
    stage: Stage,
    /// What its record says, if it has one.
    pub(super) recorded: Option<MadeRecord>,
}

/// How an export is.
#[derive(Clone, Debug)]
enum Stage {
    Ready,
    Draining,
    /// It could not be served again, for this reason.
    Missing(String),
}

/// The part of a volume that an export is.
struct Part<'c> {
    pool: &'c Pool,
    /// The volume's own export.
    whole: Arc<Entry>,
    bytes: Range<u64>,
}

impl Export {
    /// One that the file declares.
    pub(super) fn of_file(export: &ExportConfig) -> Self {
        Self {
            of: Wanted::of_file(export),
            is_of_file: true,
            has_own_group: false,
            disk: Some(export.disk),
            bytes: export.bytes(),
            stage: Stage::Ready,
            recorded: None,
        }
    }
}

impl Catalogue {
    /// Makes the export that the body says, or has the one of that name be as it says.
    pub(crate) fn put_export(
        &self,
        name: &str,
        body: &Value,
        only_new: bool,
    ) -> Result<Put<ExportAnswer>, CatalogueError> {
        check_volume_name(name).map_err(CatalogueError::Name)?;
        let mut wanted = Wanted::read(EXPORT, name, body).map_err(CatalogueError::Value)?;
        self.decide_durable_export(&mut wanted)?;
        let _turn = self.turn(name)?;
        let is_new = !self.state().exports.contains_key(name);
        if is_new {
            self.create_export(&wanted)?;
        } else if only_new {
            return Err(CatalogueError::NotNew { what: EXPORT, name: name.to_owned() });
        } else {
            self.change_export(wanted)?;
        }
        Ok(Put { shown: self.export(name)?, is_new })
    }

    /// Applies a merge patch to an export.
    pub(crate) fn patch_export(
        &self,
        name: &str,
        patch: &Value,
    ) -> Result<ExportAnswer, CatalogueError> {
        let _turn = self.turn(name)?;
        let before = self.state().made_export(name)?.of.clone();
        let mut wanted = before.patched(patch).map_err(CatalogueError::Value)?;
        self.decide_durable_export(&mut wanted)?;
        self.change_export(wanted)?;
        self.export(name)
    }

    /// Removes an export; it is gone when this returns, which may take as long as its clients have
    /// to leave.
    pub(crate) fn remove_export(
        &self,
        name: &str,
        question: &RemovalQuestion,
    ) -> Result<(), CatalogueError> {
        let drain = question.drain()?;
        let _turn = self.turn(name)?;
        let of = self.state().made_export(name)?.of.clone();
        // It has nothing that the next server would have to end.
        self.forget(&of)?;
        let (disk, has_own_group) = {
            let mut state = self.state();
            let export = state.made_export(name)?;
            export.stage = Stage::Draining;
            (export.disk, export.has_own_group)
        };
        let served = self.exports.get(name).zip(disk);
        if let Some((entry, disk)) = served {
            let Entry { export, owner, .. } = &*entry;
            self.exports.change(name, |entry| entry.is_leaving = true);
            let gone = owner.remove_export(Arc::clone(export), drain);
            gone.recv().map_err(|_| CatalogueError::Unanswered(self.disks[disk].name.clone()))?;
            self.exports.remove(name);
            self.change_groups(|groups| groups.leave(&of.group(), disk));
        }
        self.state().exports.remove(name);
        tracing::info!(export = name, "an export is removed");
        if has_own_group { self.keep_brought(&of) } else { Ok(()) }
    }

    fn create_export(&self, wanted: &Wanted) -> Result<(), CatalogueError> {
        let of_volume = volume_of(wanted);
        {
            let state = self.state();
            if !state.volumes.contains_key(of_volume) {
                return Err(CatalogueError::NoSuchVolume(of_volume.to_owned()));
            }
            if state.volumes.contains_key(&wanted.name) {
                let how = "and has an export of its own name".to_owned();
                let name = wanted.name.clone();
                return Err(CatalogueError::Exists { what: VOLUME, name, how });
            }
        }
        // So that the volume stays as it is meanwhile.
        let _volume = self.turn(of_volume)?;
        let part = self.part(wanted)?;
        self.check_limits(part.pool, wanted)?;
        let (name, mut wanted) = (&wanted.name, wanted.clone());
        // It stays so when the volume grows.
        wanted.keys.size = Some(part.bytes.end - part.bytes.start);
        {
            let mut state = self.state();
            let export = Export {
                of: wanted.clone(),
                is_of_file: false,
                has_own_group: state.gets_own_group(&wanted)?,
                disk: Some(part.pool.disk),
                bytes: part.bytes.clone(),
                stage: Stage::Ready,
                recorded: None,
            };
            state.exports.insert(name.clone(), export);
        }
        let served = self.record_export(name).and_then(|()| self.serve_export(&wanted, part));
        served.inspect_err(|_| {
            logged(name, self.forget(&wanted));
            self.state().exports.remove(name);
        })
    }

    /// Finds the part of a volume that an export is to be, which has to be served.
    fn part(&self, wanted: &Wanted) -> Result<Part<'_>, CatalogueError> {
        let volume_name = volume_of(wanted);
        let state = self.state();
        let volume = state.volumes.get(volume_name);
        let volume = volume.ok_or_else(|| CatalogueError::NoSuchVolume(volume_name.to_owned()))?;
        let whole = self.exports.get(volume_name).filter(|_| volume.served().is_some());
        let whole = whole.ok_or_else(|| CatalogueError::NotServed(volume_name.to_owned()))?;
        let bytes = bytes_of(wanted, volume)?;
        if !wanted.keys.read_only {
            let why = format!(
                "export {:?}: the export of volume {volume_name:?} is all of it: \"read_only\": \
                 true is allowed for others",
                wanted.name
            );
            return Err(CatalogueError::Value(why));
        }
        Ok(Part { pool: self.pool_of(&volume.of)?, whole, bytes })
    }

    /// Has clients enter an export that is in the catalogue.
    fn serve_export(&self, wanted: &Wanted, part: Part<'_>) -> Result<(), CatalogueError> {
        let Part { pool, whole, bytes } = part;
        let group = wanted.group();
        let (lineage, room) = {
            let mut state = self.state();
            state.groups.enter(&group, pool.disk, &wanted.group_keys());
            (state.groups.tenants(&group, pool.disk), state.groups.room(&group))
        };
        let (name, volume) = (wanted.name.clone(), whole.export.volume);
        let (offset, io_prio) = (bytes.start, wanted.keys.ioprio);
        let new = NewExport { name, volume, offset, io_prio, lineage };
        let added = pool.certain_answer(&pool.owner.add_export(new)).inspect_err(|_| {
            self.change_groups(|groups| groups.leave(&group, pool.disk));
        });
        let export = added?;
        let told = Told {
            name: &wanted.name,
            description: wanted.keys.description.as_deref(),
            size: bytes.end - bytes.start,
            read_only: wanted.keys.read_only,
            flushes: whole.flushes(),
        };
        let (info, owner) = (told.info(), pool.owner.clone());
        self.exports.insert(Entry { info, export, owner, room, is_leaving: false });
        Ok(())
    }

    /// Serves an export that is recorded, as it was before a restart.
    pub(super) fn serve_export_again(
        &self,
        wanted: &Wanted,
        record: MadeRecord,
    ) -> Result<(), CatalogueError> {
        let (offset, size) = (wanted.keys.offset, wanted.keys.size.unwrap_or_default());
        {
            let mut state = self.state();
            let group = wanted.group();
            let export = Export {
                of: wanted.clone(),
                is_of_file: false,
                has_own_group: record.own_group && !state.groups.is_of_file(&group),
                disk: None,
                bytes: offset..offset.saturating_add(size),
                stage: Stage::Missing("its volume is not served".to_owned()),
                recorded: Some(record),
            };
            state.exports.insert(wanted.name.clone(), export);
        }
        self.serve_missing_export(&wanted.name)
    }

    /// Serves an export that is missing, if its volume is served now.
    fn serve_missing_export(&self, name: &str) -> Result<(), CatalogueError> {
        let wanted = {
            let mut state = self.state();
            let export = state.made_export(name)?;
            if !matches!(export.stage, Stage::Missing(_)) {
                return Ok(());
            }
            export.of.clone()
        };
        let served = self.part(&wanted).and_then(|part| {
            let (disk, bytes) = (part.pool.disk, part.bytes.clone());
            self.serve_export(&wanted, part).map(|()| (disk, bytes))
        });
        let mut state = self.state();
        let export = state.made_export(name)?;
        match served {
            Ok((disk, bytes)) => {
                (export.disk, export.bytes, export.stage) = (Some(disk), bytes, Stage::Ready);
                Ok(())
            }
            Err(error) => {
                export.stage = Stage::Missing(error.to_string());
                Err(error)
            }
        }
    }

    /// Serves the exports of a volume that is served again.
    pub(super) fn serve_exports_of(&self, volume: &str) {
        let names: Vec<_> = {
            let state = self.state();
            let exports = state.exports.values().filter(|export| !export.is_of_file);
            let of_volume = exports.filter(|export| volume_of(&export.of) == volume);
            of_volume.map(|export| export.of.name.clone()).collect()
        };
        for name in names {
            let turn = self.turn(&name);
            logged(&name, turn.and_then(|_turn| self.serve_missing_export(&name)));
        }
    }

    /// Changes an export to what is wanted.
    fn change_export(&self, mut wanted: Wanted) -> Result<(), CatalogueError> {
        let name = wanted.name.clone();
        let (before, disk, size, has_own_group) = {
            let mut state = self.state();
            let export = state.made_export(&name)?;
            let size = export.bytes.end - export.bytes.start;
            (export.of.clone(), export.disk, size, export.has_own_group)
        };
        self.serve_missing_export(&name)?;
        if wanted.keys.size.is_none_or(|wanted| wanted == size) {
            wanted.keys.size = before.keys.size;
        }
        if wanted == before {
            // It may have been changed by a request whose record could not be written.
            return self.record_export(&name);
        }
        let fixed = |of: &Wanted| {
            let mut of = of.clone();
            (of.keys.weight, of.keys.description) = (None, None);
            of.more.limits = GroupLimits::NONE;
            of
        };
        if fixed(&wanted) != fixed(&before) {
            let how = "and only its weight, limits and description change: remove it, and make it \
                       again";
            return Err(CatalogueError::Exists { what: EXPORT, name, how: how.to_owned() });
        }
        if wanted.group_keys() != before.group_keys() {
            if !has_own_group {
                return Err(not_own(&wanted));
            }
            if let Some(pool) = self.pools.iter().find(|pool| Some(pool.disk) == disk) {
                self.check_limits(pool, &wanted)?;
            }
            self.set_own_group(&wanted)?;
        }
        let description = wanted.keys.description.clone();
        self.exports.change(&name, |entry| entry.info.description = description);
        self.state().made_export(&name)?.of = wanted;
        self.record_export(&name)
    }

    /// Shows one export that is not a volume's own.
    pub(crate) fn export(&self, name: &str) -> Result<ExportAnswer, CatalogueError> {
        let mut shown = {
            let state = self.state();
            let export = state.exports.get(name);
            let export = export.ok_or_else(|| CatalogueError::NoSuchExport(name.to_owned()))?;
            vec![(export.disk, self.show_export(export))]
        };
        self.count_clients(&mut shown)?;
        Ok(shown.pop().expect("there is one").1)
    }

    /// Shows those that are asked for, in the order of their names.
    pub(crate) fn exports(
        &self,
        question: &ExportsQuestion,
    ) -> Result<ExportsAnswer, CatalogueError> {
        let limit = question.limit()?;
        let after = match &question.after {
            Some(after) => Bound::Excluded(after.clone()),
            None => Bound::Unbounded,
        };
        let (mut shown, is_more) = {
            let state = self.state();
            let all = state.exports.range((after, Bound::Unbounded)).map(|(_, export)| export);
            let is_meant = |export: &&Export| {
                let volume = export.of.keys.volume.as_ref();
                question.volume.as_ref().is_none_or(|of| volume == Some(of))
            };
            let mut meant = all.filter(is_meant);
            let shown = meant.by_ref().take(limit);
            let shown: Vec<_> = shown.map(|of| (of.disk, self.show_export(of))).collect();
            (shown, meant.next().is_some())
        };
        self.count_clients(&mut shown)?;
        let exports: Vec<_> = shown.into_iter().map(|(_, shown)| shown).collect();
        let next = exports.last().filter(|_| is_more).map(|last| last.name.clone());
        Ok(ExportsAnswer { version: Stat::VERSION, exports, next })
    }

    fn show_export(&self, export: &Export) -> ExportAnswer {
        let Export { of, bytes, .. } = export;
        let (state, why) = match &export.stage {
            Stage::Ready => (VolumeStage::Ready, None),
            Stage::Draining => (VolumeStage::Draining, None),
            Stage::Missing(why) => (VolumeStage::Missing, Some(why.clone())),
        };
        let own = of.keys.group.is_none().then(|| of.group_keys());
        ExportAnswer {
            version: Stat::VERSION,
            name: of.name.clone(),
            disk: export.disk.map(|disk| self.disks[disk].name.clone()).unwrap_or_default(),
            volume: of.keys.volume.clone(),
            offset: bytes.start,
            size: bytes.end - bytes.start,
            group: of.group(),
            weight: own.map(|keys| keys.weights().weight.value()),
            limits: of.body().remove("limits"),
            ioprio: of.keys.ioprio.to_string(),
            read_only: of.keys.read_only,
            description: of.keys.description.clone(),
            durable: of.is_durable() || export.is_of_file,
            of_file: export.is_of_file,
            state,
            why,
            clients: 0,
            uris: self.places.iter().map(|place| place.of_export(&of.name)).collect(),
        }
    }

    /// Adds what only owners know.
    fn count_clients(
        &self,
        shown: &mut [(Option<usize>, ExportAnswer)],
    ) -> Result<(), CatalogueError> {
        for (index, Disk { name, owner }) in self.disks.iter().enumerate() {
            let here = shown.iter_mut().filter(|(disk, _)| *disk == Some(index));
            let served =
                here.filter_map(|(_, shown)| Some((self.exports.get(&shown.name)?, shown)));
            let (entries, here): (Vec<_>, Vec<_>) = served.unzip();
            if entries.is_empty() {
                continue;
            }
            let exports = entries.iter().map(|entry| Arc::clone(&entry.export)).collect();
            let clients = owner.export_clients(exports).recv_timeout(crate::control::PATIENCE);
            let clients = clients.map_err(|_| CatalogueError::Unanswered(name.clone()))?;
            here.into_iter().zip(clients).for_each(|(shown, clients)| shown.clients = clients);
        }
        Ok(())
    }
}

impl State {
    /// An export that was made by request.
    pub(super) fn made_export(&mut self, name: &str) -> Result<&mut Export, CatalogueError> {
        match self.exports.get_mut(name) {
            Some(export) if export.is_of_file => {
                Err(CatalogueError::DeclaredInFile { what: EXPORT, name: name.to_owned() })
            }
            Some(export) => Ok(export),
            None => Err(CatalogueError::NoSuchExport(name.to_owned())),
        }
    }

    /// Refuses a volume that has exports beside its own, which are on it as it is.
    pub(super) fn check_no_exports(&self, volume: &str) -> Result<(), CatalogueError> {
        let having = |export: &&Export| export.of.keys.volume.as_deref() == Some(volume);
        let exports = self.exports.values().filter(having);
        let exports: Vec<_> = exports.map(|export| format!("{:?}", export.of.name)).collect();
        if exports.is_empty() {
            return Ok(());
        }
        let (volume, exports) = (volume.to_owned(), exports.join(", "));
        Err(CatalogueError::HasExports { volume, exports })
    }
}

/// The name of the volume that an export is to be on.
fn volume_of(wanted: &Wanted) -> &str {
    wanted.keys.volume.as_deref().unwrap_or_default()
}

/// The bytes of a volume from `offset` on, as many as `size` says, else all.
fn bytes_of(wanted: &Wanted, volume: &Volume) -> Result<Range<u64>, CatalogueError> {
    let (name, offset, all) = (&wanted.name, wanted.keys.offset, volume.size);
    let size = wanted.keys.size.unwrap_or(all.saturating_sub(offset));
    let end = offset.saturating_add(size);
    if size == 0 || end > all {
        let why = format!(
            "export {name:?}: {size} bytes from {offset} on are not in volume {:?}, which has \
             {all}",
            volume.of.name
        );
        return Err(CatalogueError::Value(why));
    }
    if !offset.is_multiple_of(MULTIPLE) || !(end.is_multiple_of(MULTIPLE) || end == all) {
        let why = format!(
            "export {name:?}: offset {offset} and size {size}: whole blocks of {MULTIPLE} bytes \
             are allowed"
        );
        return Err(CatalogueError::Value(why));
    }
    Ok(offset..end)
}
