//! What there is, as requests are answered.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use paternoster_disk::{FarStats, VolumeId};
use serde_json::Value;

use super::image::{check_free, free};
use super::stat_page::VOLUMES_AT_ONCE;
use super::{Catalogue, Disk, Volume};
use crate::config::{IDENTITIES, is_in, sharing_devices};
use crate::control::PATIENCE;
use crate::ctl::{
    CatalogueError, PoolAnswer, PoolsAnswer, VolumeAnswer, VolumeStage, VolumesAnswer,
    VolumesQuestion, page_limit,
};
use crate::messages::VolumeState;
use crate::stat::{DiskStat, FarStat, Stat};

/// Those of the objects behind a name that are meant, so many at most; and the name to go on
/// behind, if there are more.
pub(super) fn page<'m, T>(
    all: &'m BTreeMap<String, T>,
    after: Option<&str>,
    limit: usize,
    is_meant: impl Fn(&T) -> bool,
) -> (Vec<&'m T>, Option<String>) {
    let after = after.map_or(Bound::Unbounded, Bound::Excluded);
    let mut meant = all.range::<str, _>((after, Bound::Unbounded)).filter(|(_, of)| is_meant(of));
    let page: Vec<_> = meant.by_ref().take(limit).collect();
    let last = page.last().map(|(name, _)| (*name).clone());
    let next = last.filter(|_| meant.next().is_some());
    (page.into_iter().map(|(_, of)| of).collect(), next)
}

impl Catalogue {
    /// Shows one volume.
    pub(crate) fn volume(&self, name: &str) -> Result<VolumeAnswer, CatalogueError> {
        let mut shown = vec![self.known(name)?];
        self.complete(&mut shown)?;
        Ok(shown.pop().expect("there is one").1)
    }

    /// Shows one that has just been made, of which its owner knows no more.
    pub(super) fn new_volume(&self, name: &str) -> Result<VolumeAnswer, CatalogueError> {
        Ok(self.known(name)?.1)
    }

    fn known(&self, name: &str) -> Result<(Option<VolumeId>, VolumeAnswer), CatalogueError> {
        let state = self.state();
        let volume = state.volumes.get(name);
        let volume = volume.ok_or_else(|| CatalogueError::NoSuchVolume(name.to_owned()))?;
        Ok((volume.stage.served(), self.show(volume)))
    }

    /// Shows those that are asked for, in the order of their names.
    pub(crate) fn volumes(
        &self,
        question: &VolumesQuestion,
    ) -> Result<VolumesAnswer, CatalogueError> {
        let limit = page_limit(question.limit)?;
        if let Some(pool) = &question.pool {
            self.pool(pool)?;
        }
        let is_meant = |volume: &Volume| {
            let pool = volume.asked.of.keys.pool.as_ref();
            let group = volume.asked.of.group();
            question.pool.as_ref().is_none_or(|of| pool == Some(of))
                && question.group.as_ref().is_none_or(|of| is_in(&group, of))
        };
        let state = self.state();
        let (meant, next) = page(&state.volumes, question.after.as_deref(), limit, is_meant);
        let shown = meant.into_iter().map(|of| (of.stage.served(), self.show(of)));
        let mut shown: Vec<_> = shown.collect();
        drop(state);
        self.complete(&mut shown)?;
        let volumes = shown.into_iter().map(|(_, shown)| shown).collect();
        Ok(VolumesAnswer { version: Stat::VERSION, volumes, next })
    }

    /// Shows all pools.
    pub(crate) fn pools(&self) -> PoolsAnswer {
        let pools: Vec<_> = self.disks().into_iter().filter(|disk| disk.is_pool).collect();
        self.show_pools(&pools)
    }

    /// Shows one pool.
    pub(crate) fn pool_answer(&self, name: &str) -> Result<PoolAnswer, CatalogueError> {
        let mut shown = self.show_pools(&[self.pool(name)?]).pools;
        Ok(shown.remove(0))
    }

    fn show_pools(&self, pools: &[Arc<Disk>]) -> PoolsAnswer {
        let begun = Instant::now();
        let asked = pools.iter().map(|pool| pool.owner.stat_without_groups());
        let asked: Vec<_> = asked.collect();
        let shown = pools.iter().zip(asked).map(|(pool, asked)| {
            // File systems and owners may take their time, and nobody else waits for them.
            let depth = asked.recv_timeout(PATIENCE.saturating_sub(begun.elapsed())).ok();
            let free = free(pool).map(|(free, _)| free);
            let (volumes, used) =
                self.state().used_by(|volume| volume.keys.pool.as_ref() == Some(&pool.name));
            PoolAnswer {
                version: Stat::VERSION,
                name: pool.name.clone(),
                backend: pool.config.backend.kind().to_owned(),
                path: pool.config.keys.path.clone(),
                devices: pool.devices.clone(),
                capacity: pool.config.keys.capacity,
                used,
                free,
                volumes,
                volumes_max: pool.config.keys.volumes,
                depth: depth.map(|stat| stat.depth),
            }
        });
        PoolsAnswer::new(shown.collect())
    }

    /// Adds what is to be said of disks and pools beside what their owners say: that some are on
    /// one device, and that no volume is made where too little is free.
    pub(crate) fn warn(&self, stats: &mut [DiskStat]) {
        let disks = self.disks();
        let on = |disk: &Arc<Disk>| (disk.config.what(), disk.name.clone(), disk.devices.clone());
        let mut shared = sharing_devices(disks.iter().map(on));
        for (place, disk) in disks.iter().enumerate() {
            let Some(of) = stats.iter_mut().find(|of| of.name == disk.name) else { continue };
            let full = disk.is_pool.then(|| check_free(disk, 0).err()).flatten();
            let full = full.map(|full| full.to_string());
            of.warnings.extend(shared.remove(&place).into_iter().chain(full));
        }
    }

    /// What is known of a volume without asking its owner.
    fn show(&self, volume: &Volume) -> VolumeAnswer {
        let of = &volume.asked.of;
        let mut body = of.body();
        let own = of.keys.group.is_none().then(|| of.group_keys());
        let (stage, why) = volume.stage.shown();
        VolumeAnswer {
            version: Stat::VERSION,
            name: of.name.clone(),
            pool: of.keys.pool.clone().unwrap_or_default(),
            size: volume.size,
            source: body.remove("source").filter(|_| !volume.asked.is_of_file),
            path: volume.image().map(Path::to_owned),
            uri: volume.backend.uri().map(ToString::to_string),
            group: of.group(),
            weight: own.map(|keys| keys.weights().weight.value()),
            limits: body.remove("limits").filter(|limits| *limits != Value::Null),
            identities: body.remove(IDENTITIES),
            ioprio: of.keys.ioprio.to_string(),
            // Of one that is no export its exports say it.
            read_only: of.keys.read_only && (of.keys.export || !volume.writes),
            description: of.keys.description.clone(),
            durable: of.is_durable() || volume.asked.is_of_file,
            of_file: volume.asked.is_of_file,
            export: of.keys.export.then(|| of.name.clone()),
            state: stage,
            why,
            far: None,
            clients: 0,
            vhost_user: self.socket(of).ok().flatten(),
            uris: if of.keys.export { self.uris(&of.name) } else { Vec::new() },
        }
    }

    /// Adds what only owners know.
    fn complete(
        &self,
        shown: &mut [(Option<VolumeId>, VolumeAnswer)],
    ) -> Result<(), CatalogueError> {
        let mut asked = BTreeMap::<String, Vec<VolumeId>>::new();
        for (id, of) in shown.iter() {
            asked.entry(of.pool.clone()).or_default().extend(id);
        }
        let mut states = BTreeMap::<(String, VolumeId), VolumeState>::new();
        for (name, ids) in asked.into_iter().filter(|(_, ids)| !ids.is_empty()) {
            let pool = self.pool(&name)?;
            for some in ids.chunks(VOLUMES_AT_ONCE) {
                let answer = pool.answer(&pool.owner.volume_states(some.to_vec()))?;
                states.extend(answer.into_iter().map(|(id, state)| ((name.clone(), id), state)));
            }
        }
        for (id, of) in shown {
            let Some(state) = id.and_then(|id| states.remove(&(of.pool.clone(), id))) else {
                continue;
            };
            of.clients = state.clients;
            if state.sync_failed && of.state == VolumeStage::Ready {
                of.state = VolumeStage::Poisoned;
                of.why = Some("a sync has failed: reopen it".to_owned());
            }
            let is_quiesced = state.far.as_ref().is_some_and(FarStats::is_quiesced);
            if is_quiesced && of.state == VolumeStage::Ready {
                of.state = VolumeStage::Quiesced;
            }
            let damage = state.damage.map(|damage| damage.to_string());
            let warnings = (!state.warnings.is_empty()).then(|| state.warnings.join("; "));
            of.why = damage.or(of.why.take()).or(warnings);
            of.far = state.far.map(FarStat::of);
        }
        Ok(())
    }
}
