//! Changes a volume that was made by request: what may change while clients are connected at once,
//! and the rest by taking it from its owner and giving it back changed, which nobody may see.

use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};

use paternoster::Nanos;
use paternoster_disk::{Backend, FarStats, GrowError, NoGrowth, VolumeId};
use rustix::fs::{FallocateFlags, fallocate};
use serde_json::Value;

use super::create::not_own;
use super::image::{backend_of, check_free, check_size, finish_recorded, image_error};
use super::quiesce::connect_anew;
use super::{Catalogue, Disk, Stage};
use crate::config::{BackendConfig, GroupKeys, PoolKind, Source, VOLUME, Wanted, far_size};
use crate::connections::Removed;
use crate::ctl::{CatalogueError, VolumeAnswer};
use crate::sockets::Patience;

impl Catalogue {
    /// Applies a merge patch to a volume.
    pub(crate) fn patch_volume(
        &self,
        name: &str,
        patch: &Value,
    ) -> Result<VolumeAnswer, CatalogueError> {
        let _turn = self.turn(name)?;
        let before = self.state().made(name)?.asked.of.clone();
        let mut wanted = before.patched(patch).map_err(CatalogueError::Value)?;
        // The same, or it is refused.
        let pool = self.pool_of(&before)?;
        self.decide_durable(&pool, &mut wanted)?;
        if !wanted.is_made_as(&before) {
            let how = "and its pool, source, copy and durable stay as they are".to_owned();
            return Err(CatalogueError::Exists { what: VOLUME, name: name.to_owned(), how });
        }
        self.change(&pool, wanted)?;
        self.volume(name)
    }

    /// Opens a volume again, so that a failed sync is forgotten.
    pub(crate) fn reopen_volume(&self, name: &str) -> Result<VolumeAnswer, CatalogueError> {
        let _turn = self.turn(name)?;
        let (wanted, own_group) = {
            let mut state = self.state();
            let volume = state.volume(name)?;
            (volume.asked.of.clone(), volume.asked.has_own_group)
        };
        let pool = self.pool_of(&wanted)?;
        self.remount(&pool, &wanted, own_group, None)?;
        self.serve_exports_of(name);
        self.volume(name)
    }

    /// Changes a volume to what is wanted. A growth stays also where the rest is refused.
    pub(super) fn change(&self, pool: &Disk, wanted: Wanted) -> Result<(), CatalogueError> {
        let (name, mut wanted) = (wanted.name.clone(), wanted);
        let (before, size, brought_before) = {
            let mut state = self.state();
            let volume = state.made(&name)?;
            (volume.asked.of.clone(), volume.size, volume.asked.has_own_group)
        };
        if wanted == before {
            // It may have been changed by a request whose record could not be written.
            return self.record(VOLUME, &name);
        }
        let new_size = *wanted.more.size.get_or_insert(size);
        let sets_group = wanted.group_keys() != before.group_keys();
        let moves = wanted.keys.group != before.keys.group;
        let has_own_group = if moves {
            let state = self.state();
            state.check_quotas(&wanted.group(), &name, new_size)?;
            state.gets_own_group(&wanted)?
        } else {
            brought_before
        };
        if sets_group && wanted.keys.group.is_none() && !has_own_group {
            return Err(not_own(&wanted));
        }
        if new_size != size && pool.kind() != PoolKind::Far {
            check_size(new_size)?;
        }
        if new_size < size && pool.kind() != PoolKind::Local {
            let allowed = format!("it has {size} bytes, and does not become smaller");
            return Err(CatalogueError::Size { size: new_size, allowed });
        }
        if sets_group || moves {
            self.check_own_group(pool, &wanted)?;
        }
        self.check_socket(&wanted)?;
        let away = [
            moves.then_some("group"),
            (wanted.keys.ioprio != before.keys.ioprio).then_some("ioprio"),
            (wanted.keys.read_only != before.keys.read_only).then_some("read_only"),
            (!wanted.has_same_socket(&before)).then_some("vhost_user"),
            (new_size < size).then_some("a smaller size"),
        ];
        // For these it goes from its owner and comes back.
        let away: Vec<_> = away.into_iter().flatten().collect();
        if new_size > size {
            self.grow(pool, &wanted, new_size)?;
        }
        if !away.is_empty() {
            self.remount(pool, &wanted, has_own_group, Some(&away.join(", ")))?;
            self.serve_exports_of(&name);
        }
        if sets_group && wanted.keys.group.is_none() {
            self.set_own_group(&wanted)?;
        }
        if wanted.keys.description != before.keys.description {
            let description = wanted.keys.description.clone();
            self.exports.change(&name, |entry| entry.info.description = description);
        }
        self.state().made(&name)?.asked.of = wanted;
        self.record(VOLUME, &name)?;
        if moves && brought_before { self.keep_brought(&before) } else { Ok(()) }
    }

    /// Sets what is wanted of the group that has come with it.
    pub(super) fn set_own_group(&self, wanted: &Wanted) -> Result<(), CatalogueError> {
        let (group, own) = (wanted.group(), wanted.group_keys());
        let known = self.groups(|groups| groups.keys(&group).cloned());
        let GroupKeys { weight, limits, identities, .. } = own;
        let more = known.unwrap_or_default();
        let keys = GroupKeys { weight, leaf_weight: None, limits, identities, ..more };
        self.set_group_keys(&group, &keys)?;
        // A request may have made it stay since.
        if self.groups(|groups| groups.is_made(&group)) {
            self.record_group(&group, &keys)?;
        }
        Ok(())
    }

    /// Has an image and its volume have more bytes.
    fn grow(&self, pool: &Disk, wanted: &Wanted, size: u64) -> Result<(), CatalogueError> {
        let name = &wanted.name;
        let (path, before, mut grown, own_group, backend) = {
            let mut state = self.state();
            let volume = state.made(name)?;
            let (path, before) = (volume.image().map(Path::to_owned), volume.size);
            let (of, own_group) = (volume.asked.of.clone(), volume.asked.has_own_group);
            let backend = volume.backend.clone();
            if volume.stage.served().is_none() {
                let none = || CatalogueError::NotServed(name.clone());
                return Err(path.map_or_else(none, not_served));
            }
            state.check_room(pool, name, size)?;
            state.check_quotas(&wanted.group(), name, size)?;
            // What others ask for meanwhile has to fit beside it.
            state.made(name)?.size = size;
            (path, before, of, own_group, backend)
        };
        grown.more.size = Some(size);
        let allocated = matches!(wanted.more.source, Source::New { allocated: true });
        let done = check_free(pool, if allocated { size - before } else { 0 }).and_then(|()| {
            // What is in memory its owner makes larger; what is far away is larger.
            if let Some(path) = path {
                let set_aside = allocated.then_some(before);
                lengthen(&path, size, set_aside, grown.is_durable())
                    .map_err(|error| image_error(&path, &error))?;
            }
            if grown.is_durable() {
                // Before anybody sees the bytes, and may write there.
                self.record_as(&grown, own_group)?;
            }
            self.show_grown(pool, name, size)
        });
        if let Err(error) = done {
            self.state().made(name)?.size = before;
            self.record_again(name);
            return Err(error);
        }
        let mut state = self.state();
        let volume = state.made(name)?;
        (volume.asked.of.more.size, volume.backend) = (Some(size), backend.with_size(size));
        Ok(())
    }

    /// Has machines and new sessions see that the image of a volume has more bytes.
    pub(super) fn show_grown(
        &self,
        pool: &Disk,
        name: &str,
        size: u64,
    ) -> Result<(), CatalogueError> {
        let (served, of, backend) = {
            let mut state = self.state();
            let volume = state.volume(name)?;
            let Some(served) = volume.stage.served() else { return Ok(()) };
            (served, volume.asked.of.clone(), volume.backend.clone())
        };
        let grow = || pool.answer(&pool.owner.grow_volume(served, size));
        let is_far = pool.kind() == PoolKind::Far;
        let grown = match grow()? {
            // Its connections show what there was when they began.
            Err(GrowError::Backend(_)) if is_far => {
                check_server(&of, &backend, size)?;
                connect_anew(pool, name, served)?;
                grow()?
            }
            // Its server had as many when it was opened.
            Err(GrowError::Refused(NoGrowth::Smaller(_))) if is_far => Ok(()),
            grown => grown,
        };
        let refused = |error: GrowError| CatalogueError::Size { size, allowed: error.to_string() };
        grown.map_err(refused)?;
        self.exports.change(name, |entry| entry.info.size = size);
        self.machines.resize(name, size);
        Ok(())
    }

    /// Takes a volume that has no clients from its owner, and gives it back as it is wanted; where
    /// that cannot be, as it was. Unless something changes of it, it is reopened.
    fn remount(
        &self,
        pool: &Disk,
        wanted: &Wanted,
        own_group: bool,
        changes: Option<&str>,
    ) -> Result<(), CatalogueError> {
        let name = &wanted.name;
        let (served, mut before, mut size) = {
            let mut state = self.state();
            let volume = state.volume(name)?;
            if volume.sync_failed && changes.is_some() {
                return Err(CatalogueError::Poisoned(name.clone()));
            }
            (volume.stage.served(), volume.asked.of.clone(), volume.size)
        };
        let new_size = wanted.more.size.unwrap_or(size);
        let backend = self.to_serve_again(pool, wanted)?;
        check_server(wanted, &backend, new_size)?;
        let locked = match served {
            Some(served) => self.take_away(pool, &before, served, changes)?,
            None => None,
        };
        let mut to_be = wanted.clone();
        to_be.more.size = Some(new_size);
        // Its clients have left, so that a crash may leave it changed. If a removal had failed, the
        // record says from now on that it stays.
        let recorded = self.take_room(name).and_then(|()| self.record_as(&to_be, own_group));
        let named = match served {
            Some(_) => Ok(()),
            None => finish_recorded(wanted, &backend),
        };
        let cut = recorded.and(named).and_then(|()| match (&backend, &locked) {
            // As long as the old back end is there, nobody else has the image.
            (BackendConfig::File { path, .. }, Some(_)) if new_size < size => cut(path, new_size),
            (BackendConfig::File { path, .. }, None) if new_size < size => {
                Err(not_served(path.clone()))
            }
            _ => Ok(()),
        });
        // The kernel may hold the image a moment longer than whoever has closed it.
        let patience = if locked.is_some() { Patience::a_while() } else { Patience::NONE };
        // What is in memory would be lost with it, and is served again as it is.
        let in_memory = pool.kind() == PoolKind::Modelled && locked.is_some();
        let mut memory = locked.filter(|_| in_memory);
        let mut serve = |of: &Wanted, size| {
            if !in_memory {
                return self.serve(pool, of, size, patience);
            }
            // Where there is no such socket the memory is still there for what was.
            let socket = self.bind(of)?;
            let memory = memory.take().ok_or_else(|| CatalogueError::NotServed(name.clone()))?;
            self.serve_on(pool, of, size, (memory, socket))
        };
        if cut.is_ok() && new_size < size {
            let mut state = self.state();
            let volume = state.volume(name)?;
            (volume.size, volume.asked.of.more.size) = (new_size, Some(new_size));
            (size, before.more.size) = (new_size, Some(new_size));
        }
        let again = cut.and_then(|()| serve(wanted, new_size));
        let error = match again {
            Ok(id) => {
                let mut state = self.state();
                let volume = state.volume(name)?;
                (volume.stage, volume.asked.of) = (Stage::Ready(id), to_be);
                (volume.size, volume.backend) = (new_size, backend.with_size(new_size));
                volume.asked.has_own_group = own_group;
                // One of which a sync has failed comes here only when it is reopened.
                volume.sync_failed = false;
                return Ok(());
            }
            Err(error) => error,
        };
        // One that has lost writes is not served as if it had not.
        let lost = self.state().volume(name)?.sync_failed;
        let stage = match (!lost).then(|| serve(&before, size)) {
            Some(Ok(id)) => Stage::Ready(id),
            Some(Err(_)) | None => Stage::Missing(error.to_string()),
        };
        self.state().volume(name)?.stage = stage;
        self.record_again(name);
        Err(error)
    }

    /// What stands behind a volume that is to be served again. Where it is not served now, its pool
    /// may be another one, and somebody else may have what it was.
    fn to_serve_again(
        &self,
        pool: &Disk,
        wanted: &Wanted,
    ) -> Result<BackendConfig, CatalogueError> {
        let mut state = self.state();
        let volume = state.volume(&wanted.name)?;
        if volume.stage.served().is_some() || volume.asked.is_of_file {
            return Ok(volume.backend.clone());
        }
        let backend = backend_of(pool, wanted)?;
        state.check_far(pool, &wanted.name, &backend)?;
        state.volume(&wanted.name)?.backend = backend.clone();
        Ok(backend)
    }

    /// Has a volume go from its owner, if it has no clients. Its back end still locks the image.
    /// What changes of it must not hide that a sync has failed: that ends where it is reopened.
    fn take_away(
        &self,
        pool: &Disk,
        of: &Wanted,
        served: VolumeId,
        changes: Option<&str>,
    ) -> Result<Option<Box<dyn Backend>>, CatalogueError> {
        let name = &of.name;
        self.state().check_no_exports(name)?;
        self.exports.change(name, |entry| entry.is_leaving = true);
        let states = pool.answer(&pool.owner.volume_states(vec![served]));
        let not_served = || CatalogueError::NotServed(name.clone());
        let state = states.and_then(|mut states| states.remove(&served).ok_or_else(not_served));
        let checked = state.and_then(|state| match changes {
            _ if state.clients > 0 => {
                let what = changes.unwrap_or("it is reopened: that").to_owned();
                Err(CatalogueError::InUse { name: name.clone(), clients: state.clients, what })
            }
            Some(_) if state.far.as_ref().is_some_and(FarStats::is_quiesced) => {
                Err(CatalogueError::Quiesced(name.clone()))
            }
            Some(_) if state.sync_failed => Err(CatalogueError::Poisoned(name.clone())),
            _ => Ok(state),
        });
        let state = checked.inspect_err(|_| {
            self.exports.change(name, |entry| entry.is_leaving = false);
        })?;
        // After a failed sync there is nothing that another would tell; nor where a server has been
        // lost, or is quiesced.
        let sync_failed = state.sync_failed;
        let is_lost = |far: FarStats| far.in_doubt || far.is_paused || far.connections == 0;
        let is_lost = state.far.is_some_and(is_lost);
        let sync = !sync_failed && !is_lost;
        let leaving = self.volume_leaves(of, served, Nanos::ZERO, sync)?;
        let Removed { backend, synced } = self.left(leaving)?;
        let mut state = self.state();
        let volume = state.volume(name)?;
        volume.sync_failed |= sync_failed || synced.is_err();
        if let Err(errno) = synced {
            let why = errno.to_string();
            volume.stage = Stage::Missing(format!("a sync failed: {why}"));
            return Err(CatalogueError::NotDurable { name: name.clone(), why });
        }
        volume.stage = Stage::Creating;
        Ok(backend)
    }

    /// Takes the place of a volume's descriptor, if there was none when the server started.
    pub(super) fn take_room(&self, name: &str) -> Result<(), CatalogueError> {
        let mut state = self.state();
        let volume = state.volume(name)?;
        if volume.room.is_none() && !volume.asked.is_of_file {
            let room = self.rooms.volume(volume.backend.descriptors());
            let room = room.map_err(|full| CatalogueError::NoDescriptor(full.to_string()))?;
            volume.room = Some(room);
        }
        Ok(())
    }
}

/// Refuses to close a volume whose server would not let it be opened again.
fn check_server(wanted: &Wanted, backend: &BackendConfig, size: u64) -> Result<(), CatalogueError> {
    let Some(uri) = backend.uri() else { return Ok(()) };
    let not_opened = |why| CatalogueError::NotOpened { name: wanted.name.clone(), why };
    let has = far_size(uri, !wanted.keys.read_only).map_err(not_opened)?;
    if has < size {
        return Err(not_opened(format!("it has {has} bytes, and the volume {size}")));
    }
    Ok(())
}

/// That the image of a volume which is not served, and so not locked, gets no other size.
fn not_served(path: PathBuf) -> CatalogueError {
    let why = "it is not served, and may be somebody else's by now: reopen it first".to_owned();
    CatalogueError::Image { path, why }
}

/// Has an image so many bytes, of which those from one on are set aside, and all are there after a
/// crash if that is wanted.
fn lengthen(path: &Path, size: u64, set_aside: Option<u64>, durable: bool) -> io::Result<()> {
    let file = OpenOptions::new().write(true).open(path)?;
    if let Some(from) = set_aside {
        fallocate(&file, FallocateFlags::empty(), from, size - from)?;
    }
    file.set_len(size)?;
    if durable { file.sync_all() } else { Ok(()) }
}

/// Cuts an image.
fn cut(path: &Path, size: u64) -> Result<(), CatalogueError> {
    let file = OpenOptions::new().write(true).open(path);
    file.and_then(|file| file.set_len(size)).map_err(|error| image_error(path, &error))
}
