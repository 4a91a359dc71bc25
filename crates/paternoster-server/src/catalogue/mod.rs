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
mod disk;
mod durable;
mod export_config;
mod exports;
mod group;
mod groups;
mod image;
mod leaving;
mod record;
mod remove;
mod show;
mod store;
mod turnover;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use paternoster_disk::VolumeId;

pub(crate) use self::disk::{Disk, ServedVolume, check_have_limits};
use self::exports::Export;
pub(crate) use self::groups::Groups;
use self::record::MadeRecord;
pub(crate) use self::record::{Records, declared_too};
pub(crate) use self::store::Store;
pub(crate) use self::turnover::{FirstSteps, Turnover};
use crate::admission::{Rooms, VolumeRoom};
use crate::config::{BackendConfig, Config, VOLUME, Wanted};
use crate::ctl::{CatalogueError, VolumeStage};
use crate::export_table::ServedExports;
use crate::messages::OwnerHandle;
use crate::uri::Place;

/// How long a request waits for another one that changes the same name.
const TURN: Duration = Duration::from_secs(2);

/// What is served.
#[derive(Debug)]
pub(crate) struct Catalogue {
    /// Where the sockets are, in the order of the configuration.
    places: Vec<Place>,
    pub(crate) exports: Arc<ServedExports>,
    rooms: Rooms,
    /// Where durable volumes and groups are recorded, if anywhere.
    store: Option<Store>,
    state: Mutex<State>,
    /// Told when a name is free to be changed again.
    freed: Condvar,
}

#[derive(Debug)]
struct State {
    disks: Vec<Arc<Disk>>,
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
        volumes: &[Vec<ServedVolume>],
        (groups, rooms): (Groups, Rooms),
        (exports, places): (Arc<ServedExports>, Vec<Place>),
        store: Option<Store>,
    ) -> Self {
        let of_disk = |number: usize| volumes.get(number).map_or(&[][..], |all| all);
        let disks = config.disks.iter().zip(owners).enumerate();
        let disks = disks.map(|(number, (disk, owner))| {
            Arc::new(Disk::new(number, disk, owner, of_disk(number)))
        });
        let (of_pools, others): (Vec<_>, Vec<_>) =
            config.exports.iter().partition(|export| export.keys.pool.is_some());
        let known = of_pools.into_iter().filter_map(|export| {
            let backend = &config.disks[export.disk].volumes[export.volume].backend;
            let BackendConfig::File { path, .. } = backend else { return None };
            let id = of_disk(export.disk).get(export.volume)?.id;
            let mut asked = Asked::of_file(Wanted::of_file(export));
            asked.of.more.size = Some(export.size);
            let (path, size, stage) = (path.clone(), export.size, Stage::Ready(id));
            let volume = Volume { asked, path, size, stage, room: None };
            Some((export.name.clone(), volume))
        });
        let state = State {
            disks: disks.collect(),
            groups,
            volumes: known.collect(),
            exports: others.into_iter().map(|of| (of.name.clone(), Export::of_file(of))).collect(),
            changing: BTreeSet::new(),
        };
        Self { places, exports, rooms, store, state: Mutex::new(state), freed: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where clients reach an export of that name.
    fn uris(&self, name: &str) -> Vec<String> {
        let offering = self.places.iter().enumerate();
        let offering = offering.filter(|(socket, _)| self.exports.offers(*socket, name));
        offering.map(|(_, place)| place.of_export(name)).collect()
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

    /// Waits until nobody else changes that name.
    fn turn(&self, name: &str) -> Result<Turn<'_>, CatalogueError> {
        self.turn_within(name, TURN)
    }

    /// The same, no longer than that.
    fn turn_within(&self, name: &str, wait: Duration) -> Result<Turn<'_>, CatalogueError> {
        let begun = Instant::now();
        let mut state = self.state();
        while !state.changing.insert(name.to_owned()) {
            let left = wait.saturating_sub(begun.elapsed());
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

    /// A volume of a pool.
    fn volume(&mut self, name: &str) -> Result<&mut Volume, CatalogueError> {
        let found = self.volumes.get_mut(name);
        found.ok_or_else(|| CatalogueError::NoSuchVolume(name.to_owned()))
    }

    /// A volume that was made by request.
    fn made(&mut self, name: &str) -> Result<&mut Volume, CatalogueError> {
        let volume = self.volume(name)?;
        if volume.asked.is_of_file {
            return Err(CatalogueError::DeclaredInFile { what: VOLUME, name: name.to_owned() });
        }
        Ok(volume)
    }
}

impl Asked {
    /// What the file declares.
    fn of_file(of: Wanted) -> Self {
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

    /// Whether its clients are leaving.
    fn is_going(&self) -> bool {
        matches!(self, Self::Draining(_))
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
