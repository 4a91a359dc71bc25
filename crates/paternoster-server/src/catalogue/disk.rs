//! The disks and pools that are served, and what is known of each without asking its owner.

use std::collections::BTreeSet;
use std::sync::{Arc, mpsc};

use paternoster_disk::VolumeId;

use super::{Catalogue, State};
use crate::config::{DiskConfig, DiskKeys, Wanted, devices_of};
use crate::control::PATIENCE;
use crate::ctl::{CatalogueError, GroupError};
use crate::export_table::Entry;
use crate::messages::OwnerHandle;

/// A disk or pool.
#[derive(Debug)]
pub(crate) struct Disk {
    pub(crate) name: String,
    /// Which one it is, also if another comes to have its name.
    pub(crate) number: usize,
    pub(super) is_pool: bool,
    pub(super) keys: DiskKeys,
    /// The devices that it is on; empty if they are not known.
    pub(super) devices: BTreeSet<String>,
    /// The volume that is all of it; none of a pool.
    pub(super) whole: Option<ServedVolume>,
    pub(crate) owner: OwnerHandle,
}

/// A volume that an owner serves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServedVolume {
    pub(crate) id: VolumeId,
    pub(crate) flushes: bool,
}

impl ServedVolume {
    /// The volume that this export is on.
    pub(super) fn of(export: &Entry) -> Self {
        Self { id: export.export.volume, flushes: export.flushes() }
    }
}

impl Disk {
    /// The disk of that number, with those volumes.
    pub(super) fn new(
        number: usize,
        config: &DiskConfig,
        owner: &OwnerHandle,
        volumes: &[ServedVolume],
    ) -> Self {
        let is_pool = config.is_pool;
        Self {
            name: config.name.clone(),
            number,
            is_pool,
            keys: config.keys.clone(),
            devices: devices_of(config).unwrap_or_default(),
            whole: volumes.first().copied().filter(|_| !is_pool),
            owner: owner.clone(),
        }
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

    pub(super) fn pool(&self, name: &str) -> Result<Arc<Disk>, CatalogueError> {
        self.state().pool(name)
    }

    pub(super) fn pool_of(&self, of: &Wanted) -> Result<Arc<Disk>, CatalogueError> {
        self.state().pool_of(of)
    }
}

impl State {
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
