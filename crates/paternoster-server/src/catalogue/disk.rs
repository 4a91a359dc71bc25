//! The disks and pools that are served, and what is known of each without asking its owner.

use std::collections::BTreeSet;
use std::sync::{Arc, mpsc};

use paternoster_disk::VolumeId;

use super::exports::Export;
use super::{Asked, Catalogue, Stage, State, Volume};
use crate::common::Common;
use crate::config::{
    BackendConfig, Config, DiskConfig, PoolKind, VolumeConfig, Wanted, devices_of,
};
use crate::control::PATIENCE;
use crate::ctl::{CatalogueError, GroupError};
use crate::export_table::Entry;
use crate::messages::OwnerHandle;
use crate::owners::{OfConfig, ServedDisk};

/// The keys that say which bytes a disk has.
const BYTES: [&str; 4] = ["backend", "path", "size", "uri"];

/// A disk or pool.
#[derive(Debug)]
pub(crate) struct Disk {
    pub(crate) name: String,
    /// Which one it is, also if another comes to have its name.
    pub(crate) number: usize,
    pub(super) is_pool: bool,
    /// As it was started.
    pub(super) config: DiskConfig,
    /// The devices that it is on; empty if they are not known.
    pub(super) devices: BTreeSet<String>,
    /// The volume that is all of it; none of a pool.
    pub(super) whole: Option<ServedVolume>,
    pub(crate) owner: OwnerHandle,
    /// What its volumes have in common behind them.
    pub(super) common: Common,
}

/// A volume that an owner serves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServedVolume {
    pub(crate) id: VolumeId,
    pub(crate) flushes: bool,
    pub(crate) size: u64,
    /// Whether it may be written.
    pub(crate) writes: bool,
}

impl ServedVolume {
    /// The volume of that size that this export is on.
    pub(super) fn of(export: &Entry, size: u64, writes: bool) -> Self {
        Self { id: export.export.volume, flushes: export.flushes(), size, writes }
    }
}

impl Disk {
    fn new(of: OfConfig<'_>, served: ServedDisk) -> Self {
        let ServedDisk { handle, volumes, common } = served;
        let config = of.disk();
        let is_pool = config.is_pool;
        Self {
            name: config.name.clone(),
            number: of.number,
            is_pool,
            config: DiskConfig { volumes: Vec::new(), ..config.clone() },
            devices: devices_of(config).unwrap_or_default(),
            whole: volumes.first().copied().filter(|_| !is_pool),
            owner: handle,
            common,
        }
    }

    /// What the volumes of a pool are.
    pub(super) fn kind(&self) -> PoolKind {
        self.config.keys.pool_kind().unwrap_or(PoolKind::Local)
    }

    /// Whether it is that one of a configuration.
    pub(crate) fn is_that(&self, of: &DiskConfig) -> bool {
        (self.is_pool, &self.name) == (of.is_pool, &of.name)
    }

    /// What its owner answers, however long that takes: what was asked for is done then, and can be
    /// undone.
    pub(super) fn certain_answer<T>(
        &self,
        answer: &mpsc::Receiver<T>,
    ) -> Result<T, CatalogueError> {
        answer.recv().map_err(|_| CatalogueError::Unanswered(self.name.clone()))
    }

    /// What its owner answers.
    pub(super) fn answer<T>(&self, answer: &mpsc::Receiver<T>) -> Result<T, CatalogueError> {
        let late = |_| CatalogueError::Unanswered(self.name.clone());
        answer.recv_timeout(PATIENCE).map_err(late)
    }

    /// Refuses limits where the scheduler that is in force has none.
    pub(super) fn check_has_limits(&self) -> Result<(), CatalogueError> {
        let scheduler = self.answer(&self.owner.settings())?.scheduler();
        if scheduler.has_group_limits() {
            return Ok(());
        }
        let (pool, scheduler) = (self.name.clone(), scheduler.name().to_owned());
        Err(CatalogueError::NoLimits { pool, scheduler })
    }
}

impl Catalogue {
    /// All disks and pools, in the order in which they came.
    pub(crate) fn disks(&self) -> Vec<Arc<Disk>> {
        self.state().disks.clone()
    }

    /// All disks and pools as they were started; their volumes are those on other servers, of
    /// which a reload does not ask again.
    pub(crate) fn disk_configs(&self) -> Vec<DiskConfig> {
        let state = self.state();
        let of = |disk: &Arc<Disk>| {
            let volumes = state.volumes.iter().filter(|(_, volume)| {
                let is_far = matches!(volume.backend, BackendConfig::Nbd { .. });
                is_far && volume.asked.of.keys.pool.as_ref() == Some(&disk.name)
            });
            let volumes = volumes.map(|(name, volume)| VolumeConfig {
                name: name.clone(),
                backend: volume.backend.clone(),
            });
            DiskConfig { volumes: volumes.collect(), ..disk.config.clone() }
        };
        state.disks.iter().map(of).collect()
    }

    pub(super) fn pool(&self, name: &str) -> Result<Arc<Disk>, CatalogueError> {
        self.state().pool(name)
    }

    pub(super) fn pool_of(&self, of: &Wanted) -> Result<Arc<Disk>, CatalogueError> {
        self.state().pool_of(of)
    }
}

impl State {
    /// A disk is served, with what the configuration has of it.
    pub(super) fn add_disk(&mut self, of: OfConfig<'_>, served: ServedDisk) {
        self.disks_so_far = self.disks_so_far.max(of.number + 1);
        self.numbers.remove(&of.disk().name);
        for export in of.config.exports.iter().filter(|export| export.disk == of.index) {
            let (name, wanted) = (export.name.clone(), Wanted::of_file(export));
            if export.keys.pool.is_none() {
                let (bytes, stage) = (export.bytes(), Stage::Ready(of.number));
                let asked = Asked::of_file(wanted);
                self.exports.insert(name, Export { asked, bytes, stage });
                continue;
            }
            let Some(volume) = served.volumes.get(export.volume) else { continue };
            let backend = of.disk().volumes[export.volume].backend.clone();
            let mut asked = Asked::of_file(wanted);
            asked.of.more.size = Some(export.size);
            let (size, writes) = (export.size, volume.writes);
            let (stage, room) = (Stage::Ready(volume.id), None);
            let sync_failed = false;
            let volume = Volume { asked, backend, size, writes, stage, sync_failed, room };
            self.volumes.insert(name, volume);
        }
        self.disks.push(Arc::new(Disk::new(of, served)));
    }

    /// The number of a disk that comes, which no disk has had.
    pub(super) fn number_of_new(&mut self, name: &str) -> usize {
        let Self { numbers, disks_so_far, .. } = self;
        *numbers.entry(name.to_owned()).or_insert_with(|| {
            *disks_so_far += 1;
            *disks_so_far - 1
        })
    }

    /// The disks of a file that are served, and have other bytes than it says until a restart.
    pub(super) fn stale_disks<'f>(&self, file: &'f Config) -> BTreeSet<&'f str> {
        let bytes = |of: &DiskConfig| {
            let keys = of.at_start().filter(|(key, _)| BYTES.contains(key));
            keys.collect::<Vec<_>>()
        };
        let is_stale = |of: &&DiskConfig| {
            let mut served = self.disks.iter();
            served.any(|disk| disk.is_that(of) && bytes(&disk.config) != bytes(of))
        };
        file.disks.iter().filter(is_stale).map(|disk| &*disk.name).collect()
    }

    pub(super) fn pools(&self) -> impl Iterator<Item = &Arc<Disk>> {
        self.disks.iter().filter(|disk| disk.is_pool)
    }

    pub(super) fn pool(&self, name: &str) -> Result<Arc<Disk>, CatalogueError> {
        self.pools().find(|pool| pool.name == name).cloned().ok_or_else(|| {
            let known: Vec<_> = self.pools().map(|pool| format!("{:?}", pool.name)).collect();
            CatalogueError::NoSuchPool { pool: name.to_owned(), known: known.join(", ") }
        })
    }

    pub(super) fn pool_of(&self, of: &Wanted) -> Result<Arc<Disk>, CatalogueError> {
        self.pool(of.keys.pool.as_deref().unwrap_or_default())
    }

    /// The disk or pool of that number.
    pub(super) fn disk(&self, number: usize) -> Option<&Arc<Disk>> {
        self.disks.iter().find(|disk| disk.number == number)
    }
}

/// Refuses limits on disks of which one has a scheduler without, so that all of them have the
/// change or none has.
pub(crate) fn check_have_limits(disks: &[Arc<Disk>]) -> Result<(), GroupError> {
    let asked: Vec<_> = disks.iter().map(|disk| (disk, disk.owner.settings())).collect();
    for (disk, answer) in asked {
        let late = |_| GroupError::Unanswered { disk: disk.name.clone() };
        let scheduler = answer.recv_timeout(PATIENCE).map_err(late)?.scheduler();
        if !scheduler.has_group_limits() {
            let (disk, scheduler) = (disk.name.clone(), scheduler.name().to_owned());
            return Err(GroupError::NoLimits { disk, scheduler });
        }
    }
    Ok(())
}
