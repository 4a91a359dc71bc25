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
mod disk_turnover;
mod durable;
mod export_config;
mod exports;
mod follow;
mod group;
mod groups;
mod handing_over;
mod image;
mod leaving;
mod quiesce;
mod record;
mod remove;
mod show;
mod stat_page;
mod store;
mod turnover;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use paternoster_disk::VolumeId;

pub(crate) use self::disk::{Disk, ServedVolume, check_have_limits};
use self::exports::Export;
pub(crate) use self::follow::{Followed, UnderWay};
pub(crate) use self::groups::Groups;
use self::record::MadeRecord;
pub(crate) use self::record::{Records, WrittenRecords};
pub(crate) use self::store::{Store, make_state_dir};
pub(crate) use self::turnover::Turnover;
use crate::admission::{Descriptors, Rooms};
use crate::config::{BackendConfig, Config, EXPORT, ListenTls, VOLUME, Wanted};
use crate::ctl::{CatalogueError, VolumeStage};
use crate::export_table::ServedExports;
use crate::owners::{OfConfig, Owners, ServedDisk};
use crate::passed::Passed;
use crate::sockets::{Patience, UNIX_PATH_MAX};
use crate::uri::Place;
use crate::vhost::{Sockets, VhostSocket};

/// How long a request waits for another one that changes the same name.
const TURN: Duration = Duration::from_secs(2);

/// What is served.
#[derive(Debug)]
pub(crate) struct Catalogue {
    owners: Arc<Owners>,
    /// Where the sockets are, in the order of the configuration.
    places: Vec<Place>,
    /// Which of them require TLS.
    tls: Vec<ListenTls>,
    pub(crate) exports: Arc<ServedExports>,
    /// Where virtual machines attach to them.
    machines: Arc<Sockets>,
    rooms: Rooms,
    /// What the server before has handed over of what is served again; empty afterwards.
    passed: Arc<Passed>,
    /// Where durable volumes and groups are recorded, if anywhere.
    store: Option<Store>,
    state: Mutex<State>,
    /// Told when a name is free to be changed again.
    freed: Condvar,
    following: Mutex<UnderWay>,
}

#[derive(Debug)]
struct State {
    disks: Vec<Arc<Disk>>,
    /// How many disks there have been.
    disks_so_far: usize,
    /// The numbers of disks that go: requests make nothing on them any more.
    leaving: BTreeSet<usize>,
    /// The numbers that disks will have which the file has and which are not served yet.
    numbers: BTreeMap<String, usize>,
    groups: Groups,
    /// Those of pools.
    volumes: BTreeMap<String, Volume>,
    /// Those that are not a volume's own.
    exports: BTreeMap<String, Export>,
    /// Names that a request changes.
    changing: BTreeSet<String>,
    /// Whether another server is taking over, so that nothing may change.
    is_handing_over: bool,
}

/// A volume of a pool.
#[derive(Debug)]
struct Volume {
    asked: Asked,
    /// What stands behind it.
    backend: BackendConfig,
    size: u64,
    /// Whether that is open for writing.
    writes: bool,
    /// With what its owner calls it.
    stage: Stage<VolumeId>,
    /// Whether its owner, when it let the volume go, knew of a sync that had failed; until the
    /// volume is reopened.
    sync_failed: bool,
    /// The place of its descriptor; none of the file's.
    room: Option<Descriptors>,
}

/// A volume or an export as it was asked for.
#[derive(Debug)]
struct Asked {
    of: Wanted,
    is_of_file: bool,
    /// Whether its group has come with it, so that what is set of that is its own.
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
    is_kept: bool,
}

impl Catalogue {
    /// What the configuration serves, with the handles and volumes of its disks.
    pub(crate) fn new(
        config: &Config,
        (owners, disks): (Arc<Owners>, Vec<ServedDisk>),
        (groups, rooms): (Groups, Rooms),
        (exports, places, machines): (Arc<ServedExports>, Vec<Place>, Arc<Sockets>),
        (store, passed): (Option<Store>, Arc<Passed>),
    ) -> Self {
        let mut state = State::of(groups);
        for (index, disk) in disks.into_iter().enumerate() {
            state.add_disk(OfConfig { config, index, number: index }, disk);
        }
        let (state, freed, following) = (Mutex::new(state), Condvar::new(), Mutex::default());
        let tls = config.listen.iter().map(|listen| listen.tls).collect();
        Self {
            owners,
            places,
            tls,
            exports,
            machines,
            rooms,
            passed,
            store,
            state,
            freed,
            following,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where clients find the server.
    pub(crate) fn places(&self) -> &[Place] {
        &self.places
    }

    /// Where clients reach an export of that name.
    fn uris(&self, name: &str) -> Vec<String> {
        let offering = self.places.iter().enumerate();
        let offering = offering.filter(|(socket, _)| self.exports.offers(*socket, name));
        offering.map(|(socket, place)| place.of_export(name, self.tls[socket])).collect()
    }

    /// Listens where what is to be served says that virtual machines attach to it, if it does.
    fn bind(&self, wanted: &Wanted) -> Result<Option<VhostSocket>, CatalogueError> {
        let Some(path) = self.socket(wanted)? else { return Ok(None) };
        let bound = VhostSocket::bind(&path, &wanted.keys, &self.passed, Patience::a_while());
        let bound = bound.map_err(anyhow::Error::from);
        let admitted = bound.and_then(|bound| self.machines.admit(bound)).map(Some);
        admitted.map_err(|error| CatalogueError::Value(format!("{:?}: {error:#}", wanted.name)))
    }

    /// Refuses a socket that there cannot be, or that somebody else has here.
    fn check_socket(&self, wanted: &Wanted) -> Result<(), CatalogueError> {
        let Some(path) = self.socket(wanted)? else { return Ok(()) };
        let (bytes, refused) = (path.as_os_str().len(), CatalogueError::Value);
        if bytes > UNIX_PATH_MAX {
            let allowed = UNIX_PATH_MAX;
            let path = path.display();
            return Err(refused(format!("socket {path} has {bytes} bytes: {allowed} at most")));
        }
        let state = self.state();
        let volumes = state.volumes.values().map(|volume| &volume.asked.of);
        let mut others = volumes.chain(state.exports.values().map(|export| &export.asked.of));
        let has_it = |other: &&Wanted| {
            other.name != wanted.name
                && self.socket(other).is_ok_and(|of| of.as_ref() == Some(&path))
        };
        others.find(has_it).map_or(Ok(()), |other| {
            let (path, kind, name) = (path.display(), other.kind(), &other.name);
            Err(refused(format!("socket {path} is that of {kind} {name:?}")))
        })
    }

    /// Where virtual machines attach to what is wanted, if they do.
    fn socket(&self, wanted: &Wanted) -> Result<Option<PathBuf>, CatalogueError> {
        wanted.socket(self.machines.dir.as_deref()).map_err(CatalogueError::Value)
    }

    /// Has virtual machines attach to what is served by that name.
    fn listen(&self, name: &str, socket: Option<VhostSocket>) -> Result<(), CatalogueError> {
        let listening = socket.map_or(Ok(()), |socket| self.machines.listen(name, socket));
        listening.map_err(|error| CatalogueError::Value(format!("{error:#}")))
    }

    /// Looks at the groups.
    pub(crate) fn groups<T>(&self, look: impl FnOnce(&Groups) -> T) -> T {
        look(&self.state().groups)
    }

    /// Changes what is known of the groups.
    pub(crate) fn change_groups(&self, change: impl FnOnce(&mut Groups)) {
        change(&mut self.state().groups);
    }

    /// What requests have made, as the next server would read it.
    pub(crate) fn records(&self) -> Records {
        let state = self.state();
        let made = |asked: &Asked| (!asked.is_of_file).then(|| asked.as_record());
        let groups = state
            .groups
            .made()
            .map(|path| (path.to_owned(), state.groups.keys(path).cloned().unwrap_or_default()));
        Records {
            volumes: state.volumes.values().filter_map(|volume| made(&volume.asked)).collect(),
            exports: state.exports.values().filter_map(|export| made(&export.asked)).collect(),
            groups: groups.collect(),
        }
    }

    /// Waits until nobody else changes that name.
    fn turn(&self, name: &str) -> Result<Turn<'_>, CatalogueError> {
        self.turn_within(name, TURN)
    }

    /// The same, no longer than that.
    fn turn_within(&self, name: &str, wait: Duration) -> Result<Turn<'_>, CatalogueError> {
        let begun = Instant::now();
        let mut state = self.state();
        while state.is_handing_over || !state.changing.insert(name.to_owned()) {
            if state.is_handing_over {
                return Err(CatalogueError::HandingOver);
            }
            let left = wait.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return Err(CatalogueError::Busy(name.to_owned()));
            }
            let waited = self.freed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(Turn { catalogue: self, name: name.to_owned(), is_kept: false })
    }

    /// The turn that was kept.
    fn kept_turn(&self, name: &str) -> Turn<'_> {
        Turn { catalogue: self, name: name.to_owned(), is_kept: false }
    }
}

impl Turn<'_> {
    /// The name is not free when this is gone, until [`Catalogue::kept_turn`].
    fn keep(mut self) {
        self.is_kept = true;
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if self.is_kept {
            return;
        }
        self.catalogue.state().changing.remove(&self.name);
        self.catalogue.freed.notify_all();
    }
}

impl State {
    /// Nothing but groups.
    fn of(groups: Groups) -> Self {
        let (disks, volumes, exports) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
        let (disks_so_far, numbers) = (0, BTreeMap::new());
        let (changing, leaving) = (BTreeSet::new(), BTreeSet::new());
        let is_handing_over = false;
        Self {
            disks,
            disks_so_far,
            leaving,
            numbers,
            groups,
            volumes,
            exports,
            changing,
            is_handing_over,
        }
    }

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

    /// Refuses a name that the file has and that a request has taken.
    fn check_name_is_free(&self, name: &str) -> Result<(), CatalogueError> {
        let what = match () {
            () if self.volumes.contains_key(name) => VOLUME,
            () if self.exports.contains_key(name) => EXPORT,
            () => return Ok(()),
        };
        let (name, how) = (name.to_owned(), "and a request has made it since".to_owned());
        Err(CatalogueError::Exists { what, name, how })
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

    /// It, and what its record would say.
    fn as_record(&self) -> (Wanted, MadeRecord) {
        (self.of.clone(), MadeRecord::of(&self.of, self.has_own_group))
    }

    /// What a record says.
    fn recorded(of: Wanted, record: MadeRecord, groups: &Groups) -> Self {
        // By now the group may be the file's.
        let has_own_group = record.own_group && !groups.is_of_file(&of.group());
        Self { of, is_of_file: false, has_own_group, recorded: Some(record) }
    }
}

impl Volume {
    /// Its image, if it is a file or a block device.
    fn image(&self) -> Option<&Path> {
        match &self.backend {
            BackendConfig::File { path, .. } => Some(path),
            _ => None,
        }
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
    fn is_draining(&self) -> bool {
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
