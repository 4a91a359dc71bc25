//! A page of `stat`: of ten thousand groups, those that are asked for.
//!
//! ```text
//!   paths, from the catalogue ─▶ a page ─▶ owner: the disk ─▶ four groups ─▶ four groups …
//! ```
//!
//! An owner is asked for little at once, and clients are served in between: what one answer says is
//! of one moment, and the next of another.

use std::collections::BTreeSet;
use std::sync::Arc;

use paternoster_disk::VolumeId;

use super::{Catalogue, Disk};
use crate::config::is_in;
use crate::ctl::{CatalogueError, StatPage, StatQuestion, page_limit};
use crate::stat::{Detail, DiskStat, Stat, VolumeStat};

/// Groups that an owner tells of at once.
const GROUPS: usize = 4;
/// Volumes likewise.
pub(super) const VOLUMES_AT_ONCE: usize = 64;
/// Where a disk has no more groups than that, it tells of all at once.
const FEW: usize = 64;

impl Catalogue {
    /// The state of the groups that are asked for, in the order of their paths, on each disk.
    pub(crate) fn stat_page(&self, question: &StatQuestion) -> Result<StatPage, CatalogueError> {
        let limit = page_limit(question.limit)?;
        let mut disks = self.disks();
        if let Some(name) = &question.pool {
            let known: Vec<_> = disks.iter().map(|disk| format!("{:?}", disk.name)).collect();
            disks.retain(|disk| disk.name == *name);
            if disks.is_empty() {
                let (disk, known) = (name.clone(), known.join(", "));
                return Err(CatalogueError::NoSuchDisk { disk, known });
            }
        }
        let mut paths = self.paths_on(&disks, question).into_iter();
        let page: Vec<_> = paths.by_ref().take(limit).collect();
        let next = page.last().cloned().filter(|_| paths.next().is_some());
        let mut stats = Vec::new();
        for disk in &disks {
            stats.extend(self.still(disk, self.disk_page(disk, &page, question.volumes))?);
        }
        self.warn(&mut stats);
        Ok(StatPage { stat: Stat::new(stats), next })
    }

    /// The paths of the groups on disks that are asked for, in order.
    fn paths_on(&self, disks: &[Arc<Disk>], question: &StatQuestion) -> BTreeSet<String> {
        let is_asked_for = |path: &&str| {
            let is_behind = question.after.as_deref().is_none_or(|after| *path > after);
            is_behind && question.group.as_ref().is_none_or(|group| is_in(path, group))
        };
        self.groups(|groups| {
            let all = disks.iter().flat_map(|disk| groups.on(disk.number));
            all.filter(is_asked_for).map(str::to_owned).collect()
        })
    }

    /// The state of each disk with all its groups. Of many these are asked for some at a time, so
    /// that no owner is kept for long; they are without what is of all groups below them.
    pub(crate) fn stat_in_parts(&self) -> Result<Stat, CatalogueError> {
        let mut stats = Vec::new();
        for disk in &self.disks() {
            let paths: BTreeSet<_> =
                self.groups(|groups| groups.on(disk.number).map(str::to_owned).collect());
            let stat = if paths.len() <= FEW {
                disk.answer(&disk.owner.stat(Detail::Groups))
            } else {
                self.disk_page(disk, &paths.into_iter().collect::<Vec<_>>(), false)
            };
            stats.extend(self.still(disk, stat)?);
        }
        Ok(Stat::new(stats))
    }

    fn disk_page(
        &self,
        disk: &Disk,
        page: &[String],
        volumes: bool,
    ) -> Result<DiskStat, CatalogueError> {
        let mut stat = disk.answer(&disk.owner.stat_without_groups())?;
        let here: Vec<_> = self.groups(|groups| {
            page.iter().filter(|path| groups.is_on(path, disk.number)).cloned().collect()
        });
        for some in here.chunks(GROUPS) {
            stat.groups.extend(disk.answer(&disk.owner.group_stats(some.to_vec()))?);
        }
        if volumes {
            let page: BTreeSet<_> = page.iter().map(String::as_str).collect();
            stat.volumes = self.volume_stats(disk, |group| page.contains(group))?;
        }
        Ok(stat)
    }

    /// The state of all volumes of pools, by their disks.
    pub(crate) fn add_volumes(&self, stat: &mut Stat) -> Result<(), CatalogueError> {
        for disk in self.disks() {
            let Some(of) = stat.disks.iter_mut().find(|of| of.name == disk.name) else { continue };
            let volumes = self.still(&disk, self.volume_stats(&disk, |_| true))?;
            of.volumes = volumes.unwrap_or_default();
        }
        Ok(())
    }

    /// The volumes of a pool whose groups are meant, in the order of their names.
    fn volume_stats(
        &self,
        disk: &Disk,
        is_meant: impl Fn(&str) -> bool,
    ) -> Result<Vec<VolumeStat>, CatalogueError> {
        let meant: Vec<VolumeId> = {
            let state = self.state();
            let of_pool = state.volumes.values().filter(|volume| {
                let of = &volume.asked.of;
                of.keys.pool.as_ref() == Some(&disk.name) && is_meant(&of.group())
            });
            of_pool.filter_map(|volume| volume.stage.served()).collect()
        };
        let mut stats = Vec::new();
        for some in meant.chunks(VOLUMES_AT_ONCE) {
            stats.extend(disk.answer(&disk.owner.volume_stats(some.to_vec()))?);
        }
        Ok(stats)
    }

    /// What a disk has answered; none if it has gone since it was asked.
    fn still<T>(
        &self,
        disk: &Disk,
        answer: Result<T, CatalogueError>,
    ) -> Result<Option<T>, CatalogueError> {
        match answer {
            Err(_) if !self.disks().iter().any(|still| still.number == disk.number) => Ok(None),
            answer => answer.map(Some),
        }
    }
}
