//! The disks and pools of the file, as they come and go when it is read again.
//!
//! ```text
//!   gone from the file   what is on it goes ─▶ its owner flushes and ends
//!   new in the file      acquired as at the start ─▶ its owner starts ─▶ clients enter
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::follow::{Followed, IN_WAY, UnderWay};
use super::turnover::{Named, Taken, Turnover, come, gone, named};
use super::{Catalogue, Disk, State};
use crate::acquire::{Acquired, acquire_for_disk};
use crate::admission::RESERVED_FOR_DISK;
use crate::config::{Config, DiskConfig, GroupKeys, VOLUME};
use crate::ctl::{CatalogueError, ReloadNote};
use crate::owners::OfConfig;

/// A disk or pool that comes, with what the file has on it.
#[derive(Debug)]
pub(super) struct NewDisk {
    /// The file, without what is on other disks.
    config: Config,
    index: usize,
    number: usize,
}

impl NewDisk {
    fn of(&self) -> OfConfig<'_> {
        OfConfig { config: &self.config, index: self.index, number: self.number }
    }

    pub(super) fn config(&self) -> &DiskConfig {
        self.of().disk()
    }

    pub(super) fn named(&self) -> Named<'_> {
        (self.config().what(), &self.config().name)
    }

    /// The names of it and of what is on it.
    pub(super) fn all(&self) -> impl Iterator<Item = Named<'_>> {
        let exports = self.config.exports.iter();
        let exports = exports.map(|export| (export.what(), &*export.name));
        std::iter::once(self.named()).chain(exports)
    }

    /// Whether it cannot be served beside these.
    fn has_in_way(&self, taken: &Taken<'_>) -> bool {
        let mut exports = self.config.exports.iter();
        exports.any(|export| taken.has_name(&export.name))
            || self.locations().any(|location| taken.has_location(&location))
    }

    /// The same of another disk.
    fn has_disk_in_way(&self, other: &Disk) -> bool {
        let taken = other.location();
        self.config().name == other.name || self.locations().any(|location| Some(location) == taken)
    }

    /// What no other disk or volume may have.
    fn locations(&self) -> impl Iterator<Item = String> {
        self.config().volumes.iter().filter_map(|volume| volume.backend.location())
    }
}

impl Disk {
    /// The path or URI of one that is no pool.
    fn location(&self) -> Option<String> {
        self.config.backend.location().filter(|_| !self.is_pool)
    }

    fn named(&self) -> Named<'_> {
        (self.config.what(), &self.name)
    }

    fn note(&self, why: String) -> ReloadNote {
        ReloadNote::new(self.config.what(), &self.name, why)
    }
}

/// Drops the volumes of a pool on which the configuration has nothing.
fn drop_other_volumes(config: &mut Config, index: usize) {
    let Config { disks, exports, .. } = config;
    let disk = &mut disks[index];
    if !disk.is_pool {
        return;
    }
    let used: BTreeSet<_> = exports.iter().map(|export| export.volume).collect();
    let place: BTreeMap<_, _> = used.iter().copied().zip(0..).collect();
    let mut volume = 0..;
    disk.volumes.retain(|_| volume.next().is_some_and(|volume| used.contains(&volume)));
    for export in exports {
        export.volume = place[&export.volume];
    }
}

impl State {
    /// The disks of the file that are not served, without what stays elsewhere; each has a number
    /// by which it will be known.
    pub(super) fn new_disks(&mut self, file: &Config) -> Vec<NewDisk> {
        let is_served = |disk: &DiskConfig| self.disks.iter().any(|served| served.is_that(disk));
        let new = file.disks.iter().enumerate().filter(|(_, disk)| !is_served(disk));
        let mut new: Vec<_> = new
            .map(|(index, _)| {
                let mut config = file.clone();
                config.exports.retain(|export| {
                    let stays = |what, name| self.declared_as(what, name).is_some();
                    let volume_stays = export.keys.volume.as_deref();
                    let volume_stays = volume_stays.is_some_and(|name| stays(VOLUME, name));
                    export.disk == index && !volume_stays && !stays(export.what(), &export.name)
                });
                drop_other_volumes(&mut config, index);
                NewDisk { config, index, number: 0 }
            })
            .collect();
        for disk in &mut new {
            disk.number = self.number_of_new(&disk.config.disks[disk.index].name);
        }
        new
    }

    /// Returns whether a disk cannot come before a restart: something that stays until then has its
    /// name or its image, or all that the file has on it.
    pub(super) fn blocks(
        &self,
        new: &NewDisk,
        going: &[Arc<Disk>],
        beside: &Taken<'_>,
        file: &Config,
    ) -> bool {
        let goes = |disk: &Disk| going.iter().any(|going| going.number == disk.number);
        let mut staying = self.disks.iter().filter(|disk| !goes(disk));
        let is_empty = new.config.exports.is_empty() && !new.config().is_pool;
        let had_some = || file.exports.iter().any(|export| export.disk == new.index);
        staying.any(|disk| new.has_disk_in_way(disk))
            || new.locations().any(|location| beside.has_location(&location))
            || is_empty && had_some()
    }

    /// The disks that the file does not have any more, and on which nothing stays.
    pub(super) fn old_disks(&self, file: &Config, going: &BTreeSet<Named<'_>>) -> Vec<Arc<Disk>> {
        let in_file = |disk: &Disk| file.disks.iter().any(|of_file| disk.is_that(of_file));
        let has_on = |disk: &Disk| {
            let volumes = self.volumes.values().filter(|volume| !volume.stage.is_draining());
            let volumes = volumes.map(|volume| &volume.asked.of);
            let volumes = volumes.filter(|of| of.keys.pool.as_ref() == Some(&disk.name));
            let exports = self.exports.values().filter(|export| !export.stage.is_draining());
            let exports = exports.filter(|export| export.stage.served() == Some(disk.number));
            let all = volumes.chain(exports.map(|export| &export.asked.of));
            all.map(named).any(|one| !going.contains(&one))
        };
        let old = self.disks.iter().filter(|disk| !in_file(disk) && !has_on(disk));
        old.cloned().collect()
    }

    fn has_any_on(&self, disk: &Disk) -> bool {
        self.groups.on(disk.number).next().is_some()
    }
}

impl Catalogue {
    /// Ends the owners of disks on which nothing is left, and reports those that have ended.
    pub(super) fn end_disks(
        &self,
        following: &mut UnderWay,
        disks: Vec<Arc<Disk>>,
        followed: &mut Followed,
    ) {
        for disk in disks {
            let mut state = self.state();
            if state.has_any_on(&disk) {
                followed.goes_on(disk.named(), "it ends when nothing is left on it");
                continue;
            }
            state.disks.retain(|served| served.number != disk.number);
            self.owners.begin_to_end(disk.number);
            following.ending.push(disk);
        }
        let ended = following.ending.extract_if(.., |disk| self.owners.has_ended(disk.number));
        for disk in ended.collect::<Vec<_>>() {
            match self.owners.forget(disk.number) {
                Ok(()) => followed.changed(vec![gone(disk.named())]),
                Err(error) => followed.failed.push(disk.note(format!("{error:#}"))),
            }
        }
        for disk in &following.ending {
            followed.goes_on(disk.named(), "its owner ends");
        }
    }

    /// Has a disk come, unless something is in its way.
    pub(super) fn come_disk(
        &self,
        following: &mut UnderWay,
        new: &NewDisk,
        in_way: &Taken<'_>,
        until: Instant,
        followed: &mut Followed,
    ) {
        let is_in_way = |disk: &Disk| new.has_disk_in_way(disk);
        let ending = following.ending.iter().any(|disk| is_in_way(disk));
        if ending || new.has_in_way(in_way) || self.disks().iter().any(|disk| is_in_way(disk)) {
            followed.goes_on(new.named(), IN_WAY);
        } else if Instant::now() >= until {
            following.is_busy = true;
            followed.goes_on(new.named(), "it is not opened yet");
        } else if !following.has_failed(&come(new.named())) {
            let done = self.add_disk(new);
            following.note(new.named(), new.all().map(come).collect(), done, followed);
        }
    }

    /// Starts the owner of a disk, and has clients enter what the file has on it.
    fn add_disk(&self, new: &NewDisk) -> Result<(), CatalogueError> {
        let of = new.of();
        let names = || of.config.exports.iter().map(|export| &*export.name);
        let turns = names().map(|name| self.turn_within(name, Duration::ZERO));
        let _turns = turns.collect::<Result<Vec<_>, _>>()?;
        let acquired = acquire_for_disk(of.config, of.index);
        let mut acquired =
            acquired.map_err(|refused| CatalogueError::Value(refused.into_text()))?;
        check_sizes(of, &acquired)?;
        self.take_rooms(of.disk(), &mut acquired)?;
        let groups = of.config.exports.iter().map(|export| &of.config.groups[export.group].path);
        {
            let mut state = self.state();
            names().try_for_each(|name| state.check_name_is_free(name))?;
            let mut volumes = of.disk().volumes.iter();
            volumes.try_for_each(|of| state.check_far_is_free(&of.name, &of.backend))?;
            for path in groups.clone() {
                state.groups.enter(path, of.number, &GroupKeys::default());
            }
            let started = self.owners.start(of, acquired, &state.groups).map_err(|error| {
                groups.for_each(|path| state.groups.leave(path, of.number));
                CatalogueError::Value(format!("{error:#}"))
            })?;
            started.entries(of.config, &state.groups).into_values().for_each(|entry| {
                self.exports.insert(entry);
            });
            for (index, socket) in started.sockets {
                self.listen(&of.config.exports[index].name, Some(socket))?;
            }
            state.add_disk(of, started.served);
        }
        names().for_each(|name| self.serve_exports_of(name));
        Ok(())
    }

    /// Takes the places of descriptors that clients could have had.
    fn take_rooms(&self, disk: &DiskConfig, acquired: &mut Acquired) -> Result<(), CatalogueError> {
        let volumes = disk.volumes.iter().map(|volume| volume.backend.descriptors());
        let room = self.rooms.volume(volumes.fold(RESERVED_FOR_DISK, u32::saturating_add));
        let room = room.map_err(|full| CatalogueError::NoDescriptor(full.to_string()))?;
        acquired.room = Some(room);
        Ok(())
    }
}

/// Refuses images that have fewer bytes than when the file was read.
fn check_sizes(of: OfConfig<'_>, acquired: &Acquired) -> Result<(), CatalogueError> {
    for export in of.config.exports.iter().filter(|export| export.disk == of.index) {
        let (has, end) = (acquired.backends[export.volume].capabilities().size, export.bytes().end);
        if has < end {
            let why = format!("{:?} ends at byte {end}, and its image has {has}", export.name);
            return Err(CatalogueError::Value(why));
        }
    }
    Ok(())
}

impl Turnover {
    /// The numbers of the disks of the file.
    pub(super) fn numbers(&self, state: &State, file: &Config) -> Vec<Option<usize>> {
        let number = |disk: &DiskConfig| {
            let served = state.disks.iter().find(|served| served.is_that(disk));
            let new = || self.disks_coming.iter().find(|new| new.config().name == disk.name);
            served.map(|served| served.number).or_else(|| new().map(|new| new.number))
        };
        file.disks.iter().map(number).collect()
    }
}
