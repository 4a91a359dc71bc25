//! Changes a volume that was made by request: what may change while clients are connected at once,
//! and the rest by taking it from its owner and giving it back changed, which nobody may see.

use std::fs::OpenOptions;

use paternoster::Nanos;
use paternoster_disk::VolumeId;
use rustix::fs::{FallocateFlags, fallocate};
use serde_json::Value;

use super::image::{check_free, check_size, image_error};
use super::{Catalogue, Disk, Pool, Stage};
use crate::config::{GroupKeys, Keys as _, NewVolume, Source};
use crate::connections::Removal;
use crate::ctl::{GroupChange, VolumeAnswer, VolumeError};
use crate::messages::GroupSettings;

impl Catalogue {
    /// Applies a merge patch to a volume.
    pub(crate) fn patch_volume(
        &self,
        name: &str,
        patch: &Value,
    ) -> Result<VolumeAnswer, VolumeError> {
        let _turn = self.turn(name)?;
        let before = self.state().made(name)?.of.clone();
        let wanted = before.patched(patch).map_err(VolumeError::Value)?;
        if !wanted.is_made_as(&before) {
            let how = "and its pool, source, copy and durable stay as they are".to_owned();
            return Err(VolumeError::Exists { name: name.to_owned(), how });
        }
        self.change(self.pool_of(&wanted)?, wanted)?;
        self.volume(name)
    }

    /// Opens a volume again, so that a failed sync is forgotten.
    pub(crate) fn reopen_volume(&self, name: &str) -> Result<VolumeAnswer, VolumeError> {
        let _turn = self.turn(name)?;
        let wanted = self.state().made(name)?.of.clone();
        self.remount(self.pool_of(&wanted)?, &wanted, "it is reopened: that")?;
        self.volume(name)
    }

    /// Has a volume be as it is wanted, all of it or nothing but its size.
    pub(super) fn change(&self, pool: &Pool, wanted: NewVolume) -> Result<(), VolumeError> {
        let name = wanted.name.clone();
        let (before, size) = {
            let mut state = self.state();
            let volume = state.made(&name)?;
            (volume.of.clone(), volume.size)
        };
        if wanted == before {
            return Ok(());
        }
        let new_size = wanted.more.size.unwrap_or(size);
        if new_size != size {
            check_size(new_size)?;
        }
        let limits = wanted.body().get("limits").and_then(Value::as_object).cloned();
        pool.check_limits(&limits.unwrap_or_default())?;
        let away = [
            (wanted.keys.group != before.keys.group).then_some("group"),
            (wanted.keys.ioprio != before.keys.ioprio).then_some("ioprio"),
            (wanted.keys.read_only != before.keys.read_only).then_some("read_only"),
            (new_size < size).then_some("a smaller size"),
        ];
        let away: Vec<_> = away.into_iter().flatten().collect();
        if new_size > size {
            self.grow(pool, &wanted, new_size)?;
        }
        if !away.is_empty() {
            return self.remount(pool, &wanted, &away.join(", "));
        }
        if wanted.group_keys() != before.group_keys() {
            self.set_own_group(&wanted)?;
        }
        if wanted.keys.description != before.keys.description {
            let description = wanted.keys.description.clone();
            self.exports.change(&name, |entry| entry.info.description = description);
        }
        self.state().made(&name)?.of = wanted;
        Ok(())
    }

    /// Has an image and its volume have more bytes: new sessions see them.
    fn grow(&self, pool: &Pool, wanted: &NewVolume, size: u64) -> Result<(), VolumeError> {
        let name = &wanted.name;
        let (path, before) = {
            let mut state = self.state();
            let volume = state.made(name)?;
            let (path, before) = (volume.path.clone(), volume.size);
            state.check_room(pool, size - before, 0)?;
            // What others ask for meanwhile has to fit beside it.
            state.made(name)?.size = size;
            (path, before)
        };
        let allocated = matches!(wanted.more.source, Source::New { allocated: true });
        let grown = check_free(pool, if allocated { size - before } else { 0 }).and_then(|()| {
            let failed = |error: std::io::Error| image_error(&path, &error);
            let file = OpenOptions::new().write(true).open(&path).map_err(failed)?;
            if allocated {
                fallocate(&file, FallocateFlags::empty(), before, size - before)
                    .map_err(|errno| failed(errno.into()))?;
            }
            file.set_len(size).map_err(failed)?;
            let Some(served) = self.state().made(name)?.served() else { return Ok(()) };
            let refused = |allowed| VolumeError::Size { size, allowed };
            let answer = pool.answer(&pool.owner.grow_volume(served, size))?;
            answer.map_err(|error| refused(error.to_string()))
        });
        if let Err(error) = grown {
            self.state().made(name)?.size = before;
            return Err(error);
        }
        self.exports.change(name, |entry| entry.info.size = size);
        self.state().made(name)?.of.more.size = Some(size);
        Ok(())
    }

    /// Sets weight and limits of a volume's own group, on every disk where it is.
    fn set_own_group(&self, wanted: &NewVolume) -> Result<(), VolumeError> {
        let (group, keys) = (wanted.group(), wanted.group_keys());
        let weight = keys.weight.unwrap_or_default();
        let limits = GroupKeys::part("limits").map(|key| (key.name, (key.show)(&keys)));
        let all = [("weight", weight.value().into()), ("leaf_weight", weight.value().into())];
        let set = all.into_iter().chain(limits).map(|(name, value)| (name.to_owned(), value));
        let change = GroupChange { group: group.clone(), set: set.collect(), disk: None };
        let (settings, disks) = {
            let mut state = self.state();
            let settings = change.check(state.groups.weights(&group));
            let settings = settings.map_err(|error| VolumeError::Value(error.to_string()))?;
            state.groups.set_keys(&group, |of| {
                (of.weight, of.leaf_weight) = (Some(weight), Some(weight));
                of.limits = keys.limits;
            });
            let disks = 0..self.disks.len();
            let disks = disks.filter(|&disk| state.groups.is_on(&group, disk));
            (settings, disks.collect::<Vec<_>>())
        };
        for disk in disks {
            let Disk { name, owner } = &self.disks[disk];
            let (group, settings) = (group.clone(), settings.clone());
            let answer = owner.set_group(GroupSettings { group, settings });
            let late = |_| VolumeError::Unanswered(name.clone());
            let answer = answer.recv_timeout(crate::control::PATIENCE).map_err(late)?;
            answer.map_err(|error| VolumeError::Value(error.to_string()))?;
        }
        Ok(())
    }

    /// Takes a volume that has no clients from its owner, and gives it back as it is wanted.
    fn remount(&self, pool: &Pool, wanted: &NewVolume, what: &str) -> Result<(), VolumeError> {
        let name = &wanted.name;
        let (served, before) = {
            let mut state = self.state();
            let volume = state.made(name)?;
            (volume.served(), volume.of.clone())
        };
        if let Some(served) = served {
            self.take_away(pool, &before, served, what)?;
        }
        let (path, size) = {
            let mut state = self.state();
            let volume = state.made(name)?;
            volume.stage = Stage::Missing("it is being opened again".to_owned());
            (volume.path.clone(), volume.size)
        };
        let new_size = wanted.more.size.unwrap_or(size);
        let served = if new_size < size {
            let file = OpenOptions::new().write(true).open(&path);
            let cut = file.and_then(|file| file.set_len(new_size));
            cut.map_err(|error| image_error(&path, &error))
        } else {
            Ok(())
        };
        let served = served.and_then(|()| self.serve(pool, wanted, new_size));
        let mut state = self.state();
        let volume = state.made(name)?;
        match served {
            Ok(served) => {
                (volume.stage, volume.size) = (Stage::Ready(served), new_size);
                volume.of = wanted.clone();
                volume.of.more.size = Some(new_size);
                Ok(())
            }
            Err(error) => {
                volume.stage = Stage::Missing(error.to_string());
                Err(error)
            }
        }
    }

    /// Has a volume go from its owner, if it has no clients.
    fn take_away(
        &self,
        pool: &Pool,
        of: &NewVolume,
        served: VolumeId,
        what: &str,
    ) -> Result<(), VolumeError> {
        let name = &of.name;
        self.exports.change(name, |entry| entry.is_leaving = true);
        let states = pool.answer(&pool.owner.volume_states(vec![served]));
        let state = states.map(|states| states.get(&served).copied());
        let state = match state {
            Ok(Some(state)) if state.clients == 0 => state,
            other => {
                self.exports.change(name, |entry| entry.is_leaving = false);
                let clients = other?.map_or(0, |state| state.clients);
                let (name, what) = (name.clone(), what.to_owned());
                return Err(VolumeError::InUse { name, clients, what });
            }
        };
        // After a failed sync there is nothing that another would tell.
        let sync = !state.sync_failed;
        let removal = Removal { volume: served, drain: Nanos::ZERO, sync };
        let removed = pool.answer(&pool.owner.remove_volume(removal))?;
        self.exports.remove(name);
        self.change_groups(|groups| groups.leave(&of.group(), pool.disk));
        if let Err(errno) = removed.synced {
            let why = errno.to_string();
            self.state().made(name)?.stage = Stage::Missing(format!("a sync failed: {why}"));
            return Err(VolumeError::NotDurable { name: name.clone(), why });
        }
        Ok(())
    }
}
