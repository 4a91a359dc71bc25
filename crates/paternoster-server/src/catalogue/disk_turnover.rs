//! The disks and pools of the file, as they come and go when it is read again.
//!
//! ```text
//!   gone from the file   what is on it goes ─▶ its owner flushes and ends
//!   new in the file      acquired as at the start ─▶ its owner starts ─▶ clients enter
//! ```

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::follow::{Followed, Following, IN_WAY};
use super::turnover::{Named, Taken, Turnover, come, gone, named};
use super::{Catalogue, Disk, State};
use crate::acquire::{Acquired, Obstacles, acquire_for_disk};
use crate::admission::RESERVED_FOR_DISK;
use crate::config::{BackendConfig, Config, DiskConfig, GroupKeys};
use crate::ctl::ReloadNote;
use crate::owners::{Ending, OfConfig};

/// A disk or pool that comes, with what the file has on it.
#[derive(Debug)]
pub(super) struct NewDisk {
    /// The file, without what is on other disks.
    config: Config,
    index: usize,
    number: usize,
}

/// One whose owner ends.
#[derive(Debug)]
pub(super) struct EndingDisk {
    disk: Arc<Disk>,
    ending: Ending,
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
            || self.images().any(|path| taken.has_image(path))
    }

    /// The same of another disk.
    fn has_disk_in_way(&self, other: &Disk) -> bool {
        let taken = other.image();
        self.config().name == other.name || self.images().any(|path| Some(path) == taken)
    }

    fn images(&self) -> impl Iterator<Item = &std::path::PathBuf> {
        let volumes = self.config().volumes.iter();
        volumes.filter_map(|volume| match &volume.backend {
            BackendConfig::File { path, .. } => Some(path),
            _ => None,
        })
    }
}

impl Disk {
    /// The image of one that is no pool.
    fn image(&self) -> Option<&std::path::PathBuf> {
        match &self.config.backend {
            BackendConfig::File { path, .. } if !self.is_pool => Some(path),
            _ => None,
        }
    }

    fn named(&self) -> Named<'_> {
        (self.config.what(), &self.name)
    }

    fn note(&self, why: String) -> ReloadNote {
        ReloadNote::new(self.config.what(), &self.name, why)
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
                    let is_new = self.declared_as(export.what(), &export.name).is_none();
                    export.disk == index && is_new
                });
                NewDisk { config, index, number: 0 }
            })
            .collect();
        for disk in &mut new {
            disk.number = self.number_of_new(&disk.config.disks[disk.index].name);
        }
        new
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
    /// Has owners end on whose disks nothing is left, and takes those in that have ended.
    pub(super) fn end_disks(
        &self,
        following: &mut Following,
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
            let ending = self.owners.begin_to_end(disk.number);
            following.ending.extend(ending.map(|ending| EndingDisk { disk, ending }));
        }
        let now = Instant::now();
        let ended = following.ending.extract_if(.., |one| one.has_ended_by(now));
        for EndingDisk { disk, ending } in ended.collect::<Vec<_>>() {
            match ending.join() {
                Ok(()) => followed.changed(vec![gone(disk.named())]),
                Err(error) => followed.failed.push(disk.note(format!("{error:#}"))),
            }
        }
        for one in &following.ending {
            followed.goes_on(one.disk.named(), "its owner ends");
        }
    }

    /// Has a disk come, unless something is in its way.
    pub(super) fn come_disk(
        &self,
        following: &mut Following,
        new: &NewDisk,
        in_way: &Taken<'_>,
        until: Instant,
        followed: &mut Followed,
    ) {
        let is_in_way = |disk: &Disk| new.has_disk_in_way(disk);
        let ending = following.ending.iter().any(|one| is_in_way(&one.disk));
        if ending || new.has_in_way(in_way) || self.disks().iter().any(|disk| is_in_way(disk)) {
            followed.goes_on(new.named(), IN_WAY);
        } else if Instant::now() >= until {
            following.set_busy();
            followed.goes_on(new.named(), "it is not opened yet");
        } else if !following.has_failed(new.named()) {
            match self.add_disk(new) {
                Ok(()) => followed.changed(new.all().map(come).collect()),
                Err(why) => {
                    following.leave_alone(new.named());
                    followed.failed.push(ReloadNote::new(
                        new.config().what(),
                        &new.config().name,
                        why,
                    ));
                }
            }
        }
    }

    /// Starts the owner of a disk, and has clients enter what the file has on it.
    pub(super) fn add_disk(&self, new: &NewDisk) -> Result<(), String> {
        let of = new.of();
        let names = of.config.exports.iter().map(|export| &*export.name);
        let turns = names.map(|name| self.turn_within(name, Duration::ZERO));
        let _turns = turns.collect::<Result<Vec<_>, _>>().map_err(|error| error.to_string())?;
        let mut acquired = acquire_for_disk(of.config, of.index).map_err(Obstacles::into_text)?;
        self.take_rooms(&mut acquired)?;
        let groups = of.config.exports.iter().map(|export| &of.config.groups[export.group].path);
        let mut state = self.state();
        for path in groups.clone() {
            state.groups.enter(path, of.number, &GroupKeys::default());
        }
        let started = self.owners.start(of, acquired, &state.groups).map_err(|error| {
            groups.for_each(|path| state.groups.leave(path, of.number));
            format!("{error:#}")
        })?;
        state.add_disk(of, &started.handle, &started.volumes);
        started.entries(of.config, &state.groups).into_values().for_each(|entry| {
            self.exports.insert(entry);
        });
        Ok(())
    }

    /// Takes the places of descriptors that clients could have had.
    fn take_rooms(&self, acquired: &mut Acquired) -> Result<(), String> {
        let count = acquired.backends.len() + RESERVED_FOR_DISK as usize;
        let rooms = (0..count).map(|_| self.rooms.volume()).collect::<Result<_, _>>();
        acquired.rooms = rooms.map_err(|full| full.to_string())?;
        Ok(())
    }
}

impl EndingDisk {
    /// Waits until the owner has ended, no longer than that. Returns whether it has.
    pub(super) fn has_ended_by(&self, until: Instant) -> bool {
        self.ending.is_over_by(until)
    }
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
