//! Makes a volume by request: its image, the volume of its pool's owner, its group and its export.
//!
//! Each step is undone by what it has left being dropped, as long as the next one fails.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use paternoster::GroupLimits;
use paternoster_disk::{Backend, NbdUri, NoVolume, VolumeId};
use serde_json::Value;

use super::durable::logged;
use super::image::{Plan, check_free, check_least, check_size, other_source};
use super::{Asked, Catalogue, Disk, Stage, State, Volume};
use crate::config::{
    BackendConfig, EXPORT, GroupKeys, OneDevice, PoolKind, SameDevice, Source, VOLUME, Wanted,
    apart_from, ask_far, check_volume_name, far_server, is_in,
};
use crate::ctl::{CatalogueError, Put, VolumeAnswer};
use crate::export_table::{Entry, Told};
use crate::messages::NewVolume;
use crate::sandbox;
use crate::sockets::Patience;
use crate::vhost::VhostSocket;

/// A volume in the catalogue that is no volume yet; it is taken out again unless it becomes one.
pub(super) struct Reserved<'c> {
    catalogue: &'c Catalogue,
    name: &'c str,
    is_kept: bool,
}

impl Catalogue {
    /// Makes the volume that the body says, or has the one of that name be as it says.
    pub(crate) fn put_volume(
        &self,
        name: &str,
        body: &Value,
        only_new: bool,
    ) -> Result<Put<VolumeAnswer>, CatalogueError> {
        check_volume_name(name).map_err(CatalogueError::Name)?;
        let mut wanted = Wanted::read(VOLUME, name, body).map_err(CatalogueError::Value)?;
        let pool = self.pool_of(&wanted)?;
        self.decide_durable(&pool, &mut wanted)?;
        let _turn = self.turn(name)?;
        let known = self.state().volumes.contains_key(name);
        if !known {
            self.create(&pool, &wanted)?;
            return Ok(Put { shown: self.new_volume(name)?, is_new: true });
        }
        let (before, size) = {
            let mut state = self.state();
            let volume = state.made(name)?;
            (volume.asked.of.clone(), volume.size)
        };
        if only_new {
            return Err(CatalogueError::NotNew { what: VOLUME, name: name.to_owned() });
        }
        if !wanted.is_made_as(&before) {
            let show = |volume: &Wanted| Value::Object(volume.body()).to_string();
            let how = format!("and was made as {}, not {}", show(&before), show(&wanted));
            return Err(CatalogueError::Exists { what: VOLUME, name: name.to_owned(), how });
        }
        // Without one it is as it is.
        wanted.more.size = wanted.more.size.or(before.more.size.and(Some(size)));
        self.change(&pool, wanted)?;
        Ok(Put { shown: self.volume(name)?, is_new: false })
    }

    fn create(&self, pool: &Disk, wanted: &Wanted) -> Result<(), CatalogueError> {
        self.check_own_group(pool, wanted)?;
        self.check_socket(wanted)?;
        let plan = self.plan(pool, wanted)?;
        check_free(pool, plan.takes_at_once())?;
        let reserved = self.reserve(pool, wanted, None, (&plan.backend, plan.size))?;
        let (size, mut image) = (plan.size, plan.carry_out(pool)?);
        let recorded = self.record(VOLUME, &wanted.name);
        let named = recorded.and_then(|()| image.finish());
        let served = named.and_then(|()| self.serve(pool, wanted, size, Patience::NONE));
        let served = served.inspect_err(|_| logged(&wanted.name, self.forget(wanted)))?;
        image.keep();
        reserved.keep(served);
        Ok(())
    }

    /// Refuses limits, of its own or of a group, and identities, where they would have no effect.
    pub(super) fn check_own_group(
        &self,
        pool: &Disk,
        wanted: &Wanted,
    ) -> Result<(), CatalogueError> {
        self.check_identities(&wanted.more.identities)?;
        let own = wanted.more.limits != GroupLimits::NONE;
        if own || self.groups(|groups| groups.is_limited(&wanted.group())) {
            pool.check_has_limits()?;
        }
        Ok(())
    }

    /// What a volume is to be that is asked for.
    fn plan(&self, pool: &Disk, wanted: &Wanted) -> Result<Plan, CatalogueError> {
        match (pool.kind(), &wanted.more.source) {
            (PoolKind::Local, source) if !matches!(source, Source::Far(_)) => {
                return Plan::of(pool, wanted, |name| self.template(pool, name));
            }
            (PoolKind::Modelled, Source::New { allocated: false }) => {}
            (PoolKind::Far, Source::Far(uri)) => {
                let asked = (uri, wanted.more.size, !wanted.keys.read_only);
                let backend = ask_far(&pool.config.keys, asked, &self.places);
                let backend = backend.map_err(CatalogueError::Value)?;
                let size = backend.size().unwrap_or_default();
                check_least(size)?;
                return Ok(Plan::without_image(backend, size));
            }
            _ => return Err(other_source(pool)),
        }
        let size = wanted.more.size;
        let size = size.ok_or_else(|| CatalogueError::Value("missing key `size`".to_owned()))?;
        check_size(size)?;
        Ok(Plan::without_image(pool.config.backend.with_size(size), size))
    }

    /// The path of a template that is a volume; none if there is no volume of that name.
    fn template(&self, pool: &Disk, name: &str) -> Result<Option<PathBuf>, CatalogueError> {
        let state = self.state();
        let Some(volume) = state.volumes.get(name) else { return Ok(None) };
        let why = match () {
            () if volume.asked.of.keys.pool.as_deref() != Some(&pool.name) => "is of another pool",
            () if volume.writes => "is not read-only, as a template is",
            () => return Ok(volume.image().map(Path::to_owned)),
        };
        let path = volume.image().unwrap_or(Path::new(name)).to_owned();
        Err(CatalogueError::Image { path, why: format!("volume {name:?} {why}") })
    }

    /// Takes the volume on that back end, of that size, into the catalogue, if its pool has room
    /// and its name is free. One of the file says whether somebody writes to it.
    pub(super) fn reserve<'c>(
        &'c self,
        pool: &Disk,
        wanted: &'c Wanted,
        of_file: Option<bool>,
        (backend, size): (&BackendConfig, u64),
    ) -> Result<Reserved<'c>, CatalogueError> {
        let room = self.rooms.volume(backend.descriptors());
        let room = room.map_err(|full| CatalogueError::NoDescriptor(full.to_string()))?;
        let name = wanted.name.clone();
        let mut state = self.state();
        if of_file.is_none() && state.leaving.contains(&pool.number) {
            let (pool, known) = (pool.name.clone(), "others than this, which goes".to_owned());
            return Err(CatalogueError::NoSuchPool { pool, known });
        }
        if state.exports.contains_key(&name) {
            state.made_export(&name)?;
            let how = "and a volume has an export of its own name".to_owned();
            return Err(CatalogueError::Exists { what: EXPORT, name, how });
        }
        state.check_name_is_free(&name)?;
        let has_own_group = state.gets_own_group(wanted)?;
        state.check_far(pool, &wanted.name, backend)?;
        state.check_room(pool, &wanted.name, size)?;
        state.check_quotas(&wanted.group(), &wanted.name, size)?;
        let mut of = wanted.clone();
        of.more.size = Some(size);
        let is_of_file = of_file.is_some();
        let writes = of_file.unwrap_or(!of.keys.read_only);
        let asked = Asked { is_of_file, ..Asked::by_request(of, has_own_group) };
        let (backend, room) = (backend.clone(), Some(room));
        let (creating, sync_failed) = (Stage::Creating, false);
        let volume = Volume { asked, backend, size, writes, stage: creating, sync_failed, room };
        state.volumes.insert(name, volume);
        Ok(Reserved { catalogue: self, name: &wanted.name, is_kept: false })
    }

    /// Opens what stands behind a volume that is in the catalogue, and has clients enter it.
    pub(super) fn serve(
        &self,
        pool: &Disk,
        wanted: &Wanted,
        size: u64,
        patience: Patience,
    ) -> Result<VolumeId, CatalogueError> {
        let name = &wanted.name;
        let (of, writes) = {
            let mut state = self.state();
            let volume = state.volume(name)?;
            if !volume.asked.is_of_file {
                volume.writes = !wanted.keys.read_only;
            }
            (volume.backend.clone(), volume.writes)
        };
        let opened = pool.common.open(&of, !writes, &self.passed, patience);
        let opened = opened.map_err(|error| match &of {
            BackendConfig::File { path, .. } => {
                let cause = error.root_cause();
                let why =
                    cause.downcast_ref().map_or_else(|| cause.to_string(), sandbox::explained);
                CatalogueError::Image { path: path.clone(), why }
            }
            BackendConfig::Modelled { .. } | BackendConfig::Device { .. } => {
                let why = format!("{error:#}");
                CatalogueError::NoMemory { pool: pool.name.clone(), why }
            }
            _ => CatalogueError::NotOpened { name: name.clone(), why: format!("{error:#}") },
        })?;
        if let BackendConfig::File { path, .. } = &of {
            check_device(pool, name, path)?;
        }
        let has = opened.capabilities().size;
        if has < size {
            let why = format!("it has {has} bytes, and the volume {size}");
            return Err(CatalogueError::NotOpened { name: name.clone(), why });
        }
        let socket = self.bind(wanted)?;
        self.serve_on(pool, wanted, size, (opened, socket))
    }

    /// Has clients enter a volume that is in the catalogue, on that back end and that socket.
    pub(super) fn serve_on(
        &self,
        pool: &Disk,
        wanted: &Wanted,
        size: u64,
        (backend, socket): (Box<dyn Backend>, Option<VhostSocket>),
    ) -> Result<VolumeId, CatalogueError> {
        let name = &wanted.name;
        let flushes = backend.capabilities().flushes;
        let group = wanted.group();
        let (lineage, room) = {
            let mut state = self.state();
            state.groups.enter(&group, pool.number, &wanted.group_keys());
            (state.groups.tenants(&group, pool.number), state.groups.room(&group))
        };
        let io_prio = wanted.keys.ioprio;
        let is_offered = wanted.keys.export;
        let new = NewVolume { name: name.clone(), backend, io_prio, is_offered, lineage };
        let refused =
            |refused: NoVolume| CatalogueError::Size { size, allowed: refused.to_string() };
        let added = pool.certain_answer(&pool.owner.add_volume(new));
        let export = added.and_then(|added| added.map_err(refused)).inspect_err(|_| {
            self.change_groups(|groups| groups.leave(&group, pool.number));
        })?;
        let id = export.volume;
        let told = Told {
            name,
            description: wanted.keys.description.as_deref(),
            size,
            read_only: wanted.keys.read_only,
            flushes,
        };
        let (info, owner) = (told.info(), pool.owner.clone());
        let (is_leaving, listening) = (false, None);
        self.exports.insert(Entry { info, export, owner, room, is_leaving, listening });
        self.listen(name, socket)?;
        Ok(id)
    }
}

impl State {
    /// Returns whether a group comes with what is wanted; refuses to set anything of another.
    pub(super) fn gets_own_group(&self, wanted: &Wanted) -> Result<bool, CatalogueError> {
        let own = wanted.group();
        let is_new = wanted.keys.group.is_none() && !self.groups.has(&own);
        if wanted.keys.group.is_none() && !is_new && wanted.group_keys() != GroupKeys::default() {
            return Err(not_own(wanted));
        }
        Ok(is_new)
    }

    /// Refuses a far export that is a disk or another volume already: nobody locks it.
    pub(super) fn check_far_is_free(
        &self,
        name: &str,
        backend: &BackendConfig,
    ) -> Result<(), CatalogueError> {
        let Some(uri) = backend.uri() else { return Ok(()) };
        let disks = self.disks.iter().map(|disk| (&disk.name, &disk.config.backend));
        let volumes = self.volumes.iter().filter(|(other, _)| *other != name);
        let volumes = volumes.map(|(name, volume)| (name, &volume.backend));
        let is_same = |other: &NbdUri| other.in_the_clear() == uri.in_the_clear();
        match disks.chain(volumes).find(|(_, other)| other.uri().is_some_and(is_same)) {
            Some((other, _)) => Err(CatalogueError::Value(format!("{uri} is {other:?} already"))),
            None => Ok(()),
        }
    }

    /// The same, and one on another server than its pool.
    pub(super) fn check_far(
        &self,
        pool: &Disk,
        name: &str,
        backend: &BackendConfig,
    ) -> Result<(), CatalogueError> {
        self.check_far_is_free(name, backend)?;
        let Some(uri) = backend.uri() else { return Ok(()) };
        if pool.config.keys.device.is_some() {
            return Ok(());
        }
        let of_pool = self.volumes.iter().filter(|(other, volume)| {
            *other != name && volume.asked.of.keys.pool.as_ref() == Some(&pool.name)
        });
        let mut uris = of_pool.filter_map(|(_, volume)| volume.backend.uri());
        match uris.find(|other| far_server(other) != far_server(uri)) {
            Some(other) => Err(CatalogueError::Value(format!(
                "{uri} is on another server than {other}, and pool {:?} is one device: device = \
                 NAME in the file says that they are, and what it is called",
                pool.name
            ))),
            None => Ok(()),
        }
    }

    /// Refuses a volume of that name and size for which the pool has no room beside the others.
    pub(super) fn check_room(
        &self,
        pool: &Disk,
        volume: &str,
        size: u64,
    ) -> Result<(), CatalogueError> {
        let (most, capacity) = (pool.config.keys.volumes as usize, pool.config.keys.capacity);
        if capacity.is_none() && self.volumes.len() < most {
            return Ok(());
        }
        let is_other = |of: &Wanted| of.name != volume && of.keys.pool.as_ref() == Some(&pool.name);
        let (count, used) = self.used_by(is_other);
        let name = || pool.name.clone();
        if count >= most {
            return Err(CatalogueError::TooMany {
                pool: name(),
                volumes: pool.config.keys.volumes,
            });
        }
        let Some(capacity) = capacity else { return Ok(()) };
        let left = capacity.saturating_sub(used);
        if size > left {
            return Err(CatalogueError::OverCapacity { pool: name(), left, capacity, asked: size });
        }
        Ok(())
    }

    /// Refuses a volume of that name and size in a group that may not have it beside the others, or
    /// one above it.
    pub(super) fn check_quotas(
        &self,
        group: &str,
        volume: &str,
        size: u64,
    ) -> Result<(), CatalogueError> {
        for (above, keys) in self.groups.lineage(group) {
            if (keys.capacity, keys.volumes) == (None, None) {
                continue;
            }
            let is_other = |of: &Wanted| of.name != volume && is_in(&of.group(), above);
            let (count, used) = self.used_by(is_other);
            let most = keys.volumes.map_or(usize::MAX, |most| most as usize);
            let left = keys.capacity.unwrap_or(u64::MAX).saturating_sub(used);
            if count >= most || size > left {
                let (group, volumes, asked) = (above.to_owned(), count, size);
                return Err(CatalogueError::OverQuota { group, volumes, left, asked });
            }
        }
        Ok(())
    }
}

/// That nothing is to be set of a group by what has come into it.
pub(super) fn not_own(wanted: &Wanted) -> CatalogueError {
    let (group, kind) = (wanted.group(), wanted.kind());
    CatalogueError::Value(format!(
        "group {group:?} was there before the {kind}, so its weight, limits and identities are not \
         the {kind}'s: leave them out, or name another group"
    ))
}

/// Refuses an image that is on another device than its pool.
fn check_device(pool: &Disk, volume: &str, path: &Path) -> Result<(), CatalogueError> {
    // Mostly it is on the same file system.
    let number = |path: &Path| std::fs::metadata(path).ok().map(|seen| (seen.dev(), seen.rdev()));
    if pool.config.keys.path.as_deref().and_then(number) == number(path) {
        return Ok(());
    }
    let mut device = OneDevice::of(pool.devices.clone());
    let Err([on, of_pool]) = device.add(paternoster_disk::devices_of(path)) else {
        return Ok(());
    };
    if pool.config.keys.same_device == SameDevice::Warn {
        tracing::warn!("{}", apart_from(&pool.name, volume, &on, &of_pool));
        return Ok(());
    }
    let why = format!(
        "it is on {on}, and pool {:?} is on {of_pool}: a pool is one device (same_device = \
         \"warn\" allows it)",
        pool.name
    );
    Err(CatalogueError::Image { path: path.to_owned(), why })
}

impl Reserved<'_> {
    /// It is a volume now.
    pub(super) fn keep(mut self, served: VolumeId) {
        self.is_kept = true;
        if let Some(volume) = self.catalogue.state().volumes.get_mut(self.name) {
            volume.stage = Stage::Ready(served);
        }
    }
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        if !self.is_kept {
            self.catalogue.state().volumes.remove(self.name);
        }
    }
}
