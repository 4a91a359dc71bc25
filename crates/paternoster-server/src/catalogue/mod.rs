//! What is served, as it changes while clients are served: the groups, exports and volumes of the
//! configuration, and the volumes that are made by request.
//!
//! ```text
//!   name reserved ─▶ image made, opened, locked ─▶ owner: volume, group, export ─▶ clients enter
//!        ▲                                                                              │
//!        └──── out of the catalogue ◀── owner: drained, synced, closed ◀── no new client┘
//! ```
//!
//! Each name is changed by one request at a time; others wait for it. All that takes time is done
//! on the threads of requests, without the lock: owners of disks get back ends that are ready.

mod change;
mod create;
mod durable;
mod export_config;
mod exports;
mod group;
mod groups;
mod image;
mod record;
mod remove;
mod show;
mod store;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};

use paternoster_disk::VolumeId;

use self::exports::Export;
pub(crate) use self::groups::Groups;
use self::record::MadeRecord;
pub(crate) use self::record::{Records, declared_too};
pub(crate) use self::store::Store;
use crate::admission::{Rooms, VolumeRoom};
use crate::config::{BackendConfig, Config, DiskKeys, ExportConfig, VOLUME, Wanted, devices_of};
use crate::control::PATIENCE;
use crate::ctl::{CatalogueError, GroupError, VolumeStage};
use crate::export_table::ServedExports;
use crate::messages::OwnerHandle;
use crate::uri::Place;

/// How long a request waits for another one that changes the same name.
const TURN: Duration = Duration::from_secs(2);

/// What is served.
#[derive(Debug)]
pub(crate) struct Catalogue {
    pub(crate) disks: Vec<Disk>,
    pools: Vec<Pool>,
    /// Where clients reach every export.
    places: Vec<Place>,
    pub(crate) exports: Arc<ServedExports>,
    rooms: Rooms,
    /// Where durable volumes and groups are recorded, if anywhere.
    store: Option<Store>,
    state: Mutex<State>,
    /// Told when a name is free to be changed again.
    freed: Condvar,
}

/// A disk, and what is known of it without asking its owner.
#[derive(Clone, Debug)]
pub(crate) struct Disk {
    pub(crate) name: String,
    pub(crate) owner: OwnerHandle,
}

/// A pool.
#[derive(Debug)]
struct Pool {
    name: String,
    /// Its index among the disks.
    disk: usize,
    keys: DiskKeys,
    /// The devices that it is on; empty if they are not known.
    devices: BTreeSet<String>,
    owner: OwnerHandle,
}

#[derive(Debug)]
struct State {
    groups: Groups,
    /// Those of pools.
    volumes: BTreeMap<String, Volume>,
    /// Those that are not a volume's own.
    exports: BTreeMap<String, Export>,
    /// Names that a request changes.
    changing: BTreeSet<String>,
}

/// A volume of a pool.
#[derive(Debug)]
struct Volume {
    asked: Asked,
    path: PathBuf,
    size: u64,
    /// With what its owner calls it.
    stage: Stage<VolumeId>,
    /// The place of its descriptor; none of the file's.
    room: Option<VolumeRoom>,
}

/// A volume or an export as it was asked for.
#[derive(Debug)]
struct Asked {
    of: Wanted,
    is_of_file: bool,
    /// Whether its group has come with it, so that weight and limits are its own.
    has_own_group: bool,
    /// What its record says, if it has one.
    recorded: Option<MadeRecord>,
}

/// How a volume or an export is, with where it is served.
#[derive(Clone, Debug)]
enum Stage<S> {
    Creating,
    Ready(S),
    Draining(S),
    /// It could not be served again, for this reason.
    Missing(String),
}

/// A name that one request changes.
struct Turn<'c> {
    catalogue: &'c Catalogue,
    name: String,
}

impl Catalogue {
    /// What the configuration serves, with the owners of its disks; `volumes` are those of each
    /// disk, in its order.
    pub(crate) fn new(
        config: &Config,
        owners: &[OwnerHandle],
        volumes: &[Vec<VolumeId>],
        (groups, rooms): (Groups, Rooms),
        (exports, places): (Arc<ServedExports>, Vec<Place>),
        store: Option<Store>,
    ) -> Self {
        let disks = config.disks.iter().zip(owners);
        let disks =
            disks.map(|(disk, owner)| Disk { name: disk.name.clone(), owner: owner.clone() });
        let pools =
            config.disks.iter().zip(owners).enumerate().filter(|(_, (disk, _))| disk.is_pool);
        let pools = pools.map(|(index, (disk, owner))| Pool {
            name: disk.name.clone(),
            disk: index,
            keys: disk.keys.clone(),
            devices: devices_of(disk).unwrap_or_default(),
            owner: owner.clone(),
        });
        let (of_pools, others): (Vec<_>, Vec<_>) =
            config.exports.iter().partition(|export| export.keys.pool.is_some());
        let known = of_pools.into_iter().filter_map(|export| {
            let backend = &config.disks[export.disk].volumes[export.volume].backend;
            let BackendConfig::File { path, .. } = backend else { return None };
            let id = *volumes.get(export.disk)?.get(export.volume)?;
            let mut asked = Asked::of_file(export);
            asked.of.more.size = Some(export.size);
            let (path, size, stage) = (path.clone(), export.size, Stage::Ready(id));
            let volume = Volume { asked, path, size, stage, room: None };
            Some((export.name.clone(), volume))
        });
        let state = State {
            groups,
            volumes: known.collect(),
            exports: others.into_iter().map(|of| (of.name.clone(), Export::of_file(of))).collect(),
            changing: BTreeSet::new(),
        };
        Self {
            disks: disks.collect(),
            pools: pools.collect(),
            places,
            exports,
            rooms,
            store,
            state: Mutex::new(state),
            freed: Condvar::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at the groups.
    pub(crate) fn groups<T>(&self, look: impl FnOnce(&Groups) -> T) -> T {
        look(&self.state().groups)
    }

    /// Changes what is known of the groups.
    pub(crate) fn change_groups(&self, change: impl FnOnce(&mut Groups)) {
        change(&mut self.state().groups);
    }

    /// The names of volumes and exports that were made by request, and what each is.
    pub(crate) fn made_by_request(&self) -> BTreeMap<String, &'static str> {
        let state = self.state();
        let made = state.all_asked().filter(|asked| !asked.is_of_file);
        made.map(|asked| (asked.of.name.clone(), asked.of.kind())).collect()
    }

    fn pool(&self, name: &str) -> Result<&Pool, CatalogueError> {
        self.pools.iter().find(|pool| pool.name == name).ok_or_else(|| {
            let known: Vec<_> = self.pools.iter().map(|pool| format!("{:?}", pool.name)).collect();
            CatalogueError::NoSuchPool { pool: name.to_owned(), known: known.join(", ") }
        })
    }

    fn pool_of(&self, of: &Wanted) -> Result<&Pool, CatalogueError> {
        self.pool(of.keys.pool.as_deref().unwrap_or_default())
    }

    /// Waits until nobody else changes that name.
    fn turn(&self, name: &str) -> Result<Turn<'_>, CatalogueError> {
        let begun = Instant::now();
        let mut state = self.state();
        while !state.changing.insert(name.to_owned()) {
            let left = TURN.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return Err(CatalogueError::Busy(name.to_owned()));
            }
            let waited = self.freed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(Turn { catalogue: self, name: name.to_owned() })
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.catalogue.state().changing.remove(&self.name);
        self.catalogue.freed.notify_all();
    }
}

impl State {
    /// All volumes and exports as they were asked for.
    fn all_asked(&self) -> impl Iterator<Item = &Asked> {
        let volumes = self.volumes.values().map(|volume| &volume.asked);
        volumes.chain(self.exports.values().map(|export| &export.asked))
    }

    /// A volume or an export that was made by request.
    fn asked(&mut self, kind: &str, name: &str) -> Result<&mut Asked, CatalogueError> {
        if kind == VOLUME {
            return Ok(&mut self.made(name)?.asked);
        }
        Ok(&mut self.made_export(name)?.asked)
    }

    /// A volume that was made by request.
    fn made(&mut self, name: &str) -> Result<&mut Volume, CatalogueError> {
        match self.volumes.get_mut(name) {
            Some(volume) if volume.asked.is_of_file => {
                Err(CatalogueError::DeclaredInFile { what: VOLUME, name: name.to_owned() })
            }
            Some(volume) => Ok(volume),
            None => Err(CatalogueError::NoSuchVolume(name.to_owned())),
        }
    }
}

impl Asked {
    /// What the file declares.
    fn of_file(export: &ExportConfig) -> Self {
        let of = Wanted::of_file(export);
        Self { of, is_of_file: true, has_own_group: false, recorded: None }
    }

    /// What a request asks for.
    fn by_request(of: Wanted, has_own_group: bool) -> Self {
        Self { of, is_of_file: false, has_own_group, recorded: None }
    }

    /// What a record says.
    fn recorded(of: Wanted, record: MadeRecord, groups: &Groups) -> Self {
        // By now the group may be the file's.
        let has_own_group = record.own_group && !groups.is_of_file(&of.group());
        Self { of, is_of_file: false, has_own_group, recorded: Some(record) }
    }
}

impl<S: Copy> Stage<S> {
    /// Where it is served, if it is.
    fn served(&self) -> Option<S> {
        match *self {
            Self::Ready(served) | Self::Draining(served) => Some(served),
            Self::Creating | Self::Missing(_) => None,
        }
    }

    /// The same as answers have it, with what is wrong.
    fn shown(&self) -> (VolumeStage, Option<String>) {
        match self {
            Self::Creating => (VolumeStage::Creating, None),
            Self::Ready(_) => (VolumeStage::Ready, None),
            Self::Draining(_) => (VolumeStage::Draining, None),
            Self::Missing(why) => (VolumeStage::Missing, Some(why.clone())),
        }
    }
}

impl Pool {
    /// What its owner answers, however long that takes: what was asked for is done then, and can be
    /// undone.
    fn certain_answer<T>(&self, answer: &mpsc::Receiver<T>) -> Result<T, CatalogueError> {
        answer.recv().map_err(|_| CatalogueError::Unanswered(self.name.clone()))
    }

    /// What its owner answers.
    fn answer<T>(&self, answer: &mpsc::Receiver<T>) -> Result<T, CatalogueError> {
        let late = |_| CatalogueError::Unanswered(self.name.clone());
        answer.recv_timeout(PATIENCE).map_err(late)
    }

    /// Refuses limits where the scheduler that is in force has none.
    fn check_has_limits(&self) -> Result<(), CatalogueError> {
        let scheduler = self.answer(&self.owner.settings())?.scheduler();
        if scheduler.has_group_limits() {
            return Ok(());
        }
        let (pool, scheduler) = (self.name.clone(), scheduler.name().to_owned());
        Err(CatalogueError::NoLimits { pool, scheduler })
    }
}

/// Refuses limits on disks of which one has a scheduler without, so that all of them have the
/// change or none has.
pub(crate) fn check_have_limits(disks: &[&Disk]) -> Result<(), GroupError> {
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
