//! Exports beside those that volumes have of their own: those of the file, and read-only ones of
//! volumes that are made, changed and removed by request, as for a backup.

use std::ops::Range;
use std::sync::Arc;

use paternoster::GroupLimits;
use serde_json::Value;

use super::create::not_own;
use super::durable::logged;
use super::record::MadeRecord;
use super::show::page;
use super::{Asked, Catalogue, Disk, ServedVolume, Stage, State, Volume};
use crate::config::{EXPORT, IDENTITIES, MULTIPLE, VOLUME, Wanted, check_volume_name};
use crate::ctl::{
    CatalogueError, ExportAnswer, ExportsAnswer, ExportsQuestion, Put, RemovalQuestion, page_limit,
};
use crate::export_table::{Entry, Told};
use crate::messages::NewExport;
use crate::stat::Stat;

/// An export that is not a volume's own.
#[derive(Debug)]
pub(super) struct Export {
    pub(super) asked: Asked,
    pub(super) bytes: Range<u64>,
    /// With the number of its disk or pool.
    pub(super) stage: Stage<usize>,
}

/// The part of a volume that an export is.
pub(super) struct Part {
    pub(super) disk: Arc<Disk>,
    pub(super) volume: ServedVolume,
    pub(super) bytes: Range<u64>,
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
        let before = self.state().made_export(name)?.asked.of.clone();
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
        let of = self.state().made_export(name)?.asked.of.clone();
        // Its clients could not be answered what they wait for.
        self.check_in_use(volume_of(&of))?;
        // It has nothing that the next server would have to end.
        self.forget(&of)?;
        let has_own_group = self.state().made_export(name)?.asked.has_own_group;
        if let Some(leaving) = self.export_leaves(&of, drain)? {
            self.left(leaving)?;
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
        self.check_own_group(&part.disk, wanted)?;
        self.check_socket(wanted)?;
        let (name, mut wanted) = (&wanted.name, wanted.clone());
        // It stays so when the volume grows.
        wanted.keys.size = Some(part.bytes.end - part.bytes.start);
        {
            let mut state = self.state();
            let asked = Asked::by_request(wanted.clone(), state.gets_own_group(&wanted)?);
            let (bytes, served) = (part.bytes.clone(), Stage::Ready(part.disk.number));
            let export = Export { asked, bytes, stage: served };
            state.exports.insert(name.clone(), export);
        }
        let served = self.record(EXPORT, name).and_then(|()| self.serve_export(&wanted, part));
        served.inspect_err(|_| {
            logged(name, self.forget(&wanted));
            self.state().exports.remove(name);
        })
    }

    /// Finds the part of a volume that an export is to be, which has to be served.
    fn part(&self, wanted: &Wanted) -> Result<Part, CatalogueError> {
        let volume_name = volume_of(wanted);
        let state = self.state();
        let volume = state.volumes.get(volume_name);
        let volume = volume.ok_or_else(|| CatalogueError::NoSuchVolume(volume_name.to_owned()))?;
        let whole = self.exports.get(volume_name).filter(|_| volume.stage.served().is_some());
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
        let disk = state.pool_of(&volume.asked.of)?;
        let volume = ServedVolume::of(&whole, volume.size, volume.writes);
        Ok(Part { disk, volume, bytes })
    }

    /// Has clients enter an export that is in the catalogue.
    pub(super) fn serve_export(&self, wanted: &Wanted, part: Part) -> Result<(), CatalogueError> {
        let Part { disk, volume, bytes } = part;
        let socket = self.bind(wanted)?;
        let group = wanted.group();
        let (lineage, room) = {
            let mut state = self.state();
            state.groups.enter(&group, disk.number, &wanted.group_keys());
            (state.groups.tenants(&group, disk.number), state.groups.room(&group))
        };
        let (name, offset, io_prio) = (wanted.name.clone(), bytes.start, wanted.keys.ioprio);
        let (volume, is_offered, flushes) = (volume.id, true, volume.flushes);
        let new = NewExport { name, volume, offset, io_prio, is_offered, lineage };
        let added = disk.certain_answer(&disk.owner.add_export(new)).inspect_err(|_| {
            self.change_groups(|groups| groups.leave(&group, disk.number));
        });
        let export = added?;
        let told = Told {
            name: &wanted.name,
            description: wanted.keys.description.as_deref(),
            size: bytes.end - bytes.start,
            read_only: wanted.keys.read_only,
            flushes,
        };
        let (info, owner) = (told.info(), disk.owner.clone());
        let (is_leaving, listening) = (false, None);
        self.exports.insert(Entry { info, export, owner, room, is_leaving, listening });
        self.listen(&wanted.name, socket)
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
            let asked = Asked::recorded(wanted.clone(), record, &state.groups);
            let bytes = offset..offset.saturating_add(size);
            let missing = Stage::Missing("its volume is not served".to_owned());
            let export = Export { asked, bytes, stage: missing };
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
            export.asked.of.clone()
        };
        let served = self.part(&wanted).and_then(|part| {
            let (disk, bytes) = (part.disk.number, part.bytes.clone());
            self.serve_export(&wanted, part).map(|()| (disk, bytes))
        });
        let mut state = self.state();
        let export = state.made_export(name)?;
        match served {
            Ok((disk, bytes)) => {
                (export.bytes, export.stage) = (bytes, Stage::Ready(disk));
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
            let exports = state.exports.values().filter(|export| !export.asked.is_of_file);
            let of_volume = exports.filter(|export| volume_of(&export.asked.of) == volume);
            of_volume.map(|export| export.asked.of.name.clone()).collect()
        };
        for name in names {
            let turn = self.turn(&name);
            logged(&name, turn.and_then(|_turn| self.serve_missing_export(&name)));
        }
    }

    /// Changes an export to what is wanted.
    fn change_export(&self, mut wanted: Wanted) -> Result<(), CatalogueError> {
        let name = wanted.name.clone();
        self.serve_missing_export(&name)?;
        let (before, served, size, has_own_group) = {
            let mut state = self.state();
            let Export { asked, bytes, stage } = state.made_export(&name)?;
            (asked.of.clone(), stage.served(), bytes.end - bytes.start, asked.has_own_group)
        };
        if wanted.keys.size.is_none_or(|wanted| wanted == size) {
            wanted.keys.size = before.keys.size;
        }
        if wanted == before {
            // It may have been changed by a request whose record could not be written.
            return self.record(EXPORT, &name);
        }
        let fixed = |of: &Wanted| {
            let mut of = of.clone();
            (of.keys.weight, of.keys.description) = (None, None);
            (of.more.limits, of.more.identities) = (GroupLimits::NONE, Vec::new());
            of
        };
        if fixed(&wanted) != fixed(&before) {
            let how = "and only its weight, limits, identities and description change: remove it, \
                       and make it again";
            return Err(CatalogueError::Exists { what: EXPORT, name, how: how.to_owned() });
        }
        if wanted.group_keys() != before.group_keys() {
            if !has_own_group {
                return Err(not_own(&wanted));
            }
            let disk = served.and_then(|served| self.state().disk(served).cloned());
            if let Some(disk) = disk {
                self.check_own_group(&disk, &wanted)?;
            }
            self.set_own_group(&wanted)?;
        }
        let description = wanted.keys.description.clone();
        self.exports.change(&name, |entry| entry.info.description = description);
        self.state().made_export(&name)?.asked.of = wanted;
        self.record(EXPORT, &name)
    }

    /// Shows one export that is not a volume's own.
    pub(crate) fn export(&self, name: &str) -> Result<ExportAnswer, CatalogueError> {
        let mut shown = {
            let state = self.state();
            let export = state.exports.get(name);
            let export = export.ok_or_else(|| CatalogueError::NoSuchExport(name.to_owned()))?;
            vec![(export.stage.served(), self.show_export(&state, export))]
        };
        self.count_clients(&mut shown)?;
        Ok(shown.pop().expect("there is one").1)
    }

    /// Shows those that are asked for, in the order of their names.
    pub(crate) fn exports(
        &self,
        question: &ExportsQuestion,
    ) -> Result<ExportsAnswer, CatalogueError> {
        let limit = page_limit(question.limit)?;
        let is_meant = |export: &Export| {
            let volume = export.asked.of.keys.volume.as_ref();
            question.volume.as_ref().is_none_or(|of| volume == Some(of))
        };
        let (mut shown, next) = {
            let state = self.state();
            let (meant, next) = page(&state.exports, question.after.as_deref(), limit, is_meant);
            let shown = meant.into_iter();
            let shown = shown.map(|of| (of.stage.served(), self.show_export(&state, of)));
            (shown.collect::<Vec<_>>(), next)
        };
        self.count_clients(&mut shown)?;
        let exports = shown.into_iter().map(|(_, shown)| shown).collect();
        Ok(ExportsAnswer { version: Stat::VERSION, exports, next })
    }

    fn show_export(&self, known: &State, export: &Export) -> ExportAnswer {
        let Export { asked: Asked { of, is_of_file, .. }, bytes, stage } = export;
        let (state, why) = stage.shown();
        let disk = stage.served().and_then(|disk| Some(known.disk(disk)?.name.clone()));
        // One that is not served is of its volume's pool.
        let pool = || known.volumes.get(volume_of(of))?.asked.of.keys.pool.clone();
        let own = of.keys.group.is_none().then(|| of.group_keys());
        ExportAnswer {
            version: Stat::VERSION,
            name: of.name.clone(),
            disk: disk.or_else(pool).unwrap_or_default(),
            volume: of.keys.volume.clone(),
            offset: bytes.start,
            size: bytes.end - bytes.start,
            group: of.group(),
            weight: own.map(|keys| keys.weights().weight.value()),
            limits: of.body().remove("limits"),
            identities: of.body().remove(IDENTITIES),
            ioprio: of.keys.ioprio.to_string(),
            read_only: of.keys.read_only,
            description: of.keys.description.clone(),
            durable: of.is_durable() || *is_of_file,
            of_file: *is_of_file,
            state,
            why,
            clients: 0,
            vhost_user: self.socket(of).ok().flatten(),
            uris: self.uris(&of.name),
        }
    }

    /// Adds what only owners know.
    fn count_clients(
        &self,
        shown: &mut [(Option<usize>, ExportAnswer)],
    ) -> Result<(), CatalogueError> {
        for disk in self.disks() {
            let here = shown.iter_mut().filter(|(served, _)| *served == Some(disk.number));
            let served =
                here.filter_map(|(_, shown)| Some((self.exports.get(&shown.name)?, shown)));
            let (entries, here): (Vec<_>, Vec<_>) = served.unzip();
            if entries.is_empty() {
                continue;
            }
            let exports = entries.iter().map(|entry| Arc::clone(&entry.export)).collect();
            let clients = disk.answer(&disk.owner.export_clients(exports))?;
            here.into_iter().zip(clients).for_each(|(shown, clients)| shown.clients = clients);
        }
        Ok(())
    }
}

impl State {
    /// An export that is not a volume's own.
    pub(super) fn export(&mut self, name: &str) -> Result<&mut Export, CatalogueError> {
        let found = self.exports.get_mut(name);
        found.ok_or_else(|| CatalogueError::NoSuchExport(name.to_owned()))
    }

    /// An export that was made by request.
    pub(super) fn made_export(&mut self, name: &str) -> Result<&mut Export, CatalogueError> {
        let export = self.export(name)?;
        if export.asked.is_of_file {
            return Err(CatalogueError::DeclaredInFile { what: EXPORT, name: name.to_owned() });
        }
        Ok(export)
    }

    /// Refuses a volume that has exports beside its own, which are on it as it is.
    pub(super) fn check_no_exports(&self, volume: &str) -> Result<(), CatalogueError> {
        let having = |export: &&Export| export.asked.of.keys.volume.as_deref() == Some(volume);
        let exports = self.exports.values().filter(having);
        let exports: Vec<_> = exports.map(|export| format!("{:?}", export.asked.of.name)).collect();
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
            volume.asked.of.name
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
