//! A running server: its threads, and the handles on them.
//!
//! ```text
//!   acceptor ──NewConnection──▶ owner of disk0, owner of disk1, …        a thread each
//!   control plane ──Stat──────▶      ▲ ▼
//!                               connection threads, where there are any
//! ```
//!
//! The order of starting: `acquire.rs` binds sockets and opens disks, then threads run; so that
//! whatever is refused is refused before anything is changed.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant as SystemInstant};

use anyhow::{Context as _, Result, anyhow, bail};
use paternoster::{Device, Instant, PlugLimits};
use paternoster_disk::{
    Backend, CpuLatency, Engine, Fd, FileBackend, IoEngine, MonotonicClock, Owner, Ring, VolumeId,
    VolumePlace, Waker, is_rotational,
};
use paternoster_nbd::ExportInfo;
use rustix::net::{Shutdown, shutdown};

use crate::acceptor::{Acceptor, Listener, StopFlag};
use crate::acquire::{ForServer, Obstacles, acquire_for_server};
use crate::admission::{Rooms, raise_descriptors};
use crate::announce;
use crate::catalogue::{Catalogue, Groups, ServedVolume};
use crate::clients::Export;
use crate::config::{AtStop, Config, ExportConfig, devices_of, sharing_devices};
use crate::connections::{Connections, DiskLabel, Scheduler, Tenants, Volumes, nbd};
use crate::control::ControlHandle;
use crate::depth::Depth;
use crate::export_table::{Entry, ExportTable, ServedExports, Told, offer_of};
use crate::messages::{NewExport, OwnerHandle};
use crate::rings;
use crate::sockets::{BoundSocket, SocketFile};
use crate::threads::{Plugged, Thread};
use crate::tuned;
use crate::uri;

/// How long threads have to end: a moment more than the owner of a disk gives its device.
const PATIENCE: Duration = Duration::from_millis(9_500);

/// A server that runs until it is shut down.
#[derive(Debug)]
pub struct Server {
    owners: Vec<OwnerHandle>,
    control: ControlHandle,
    owner_threads: Vec<JoinHandle<io::Result<()>>>,
    /// Connection threads; each ends when all disks have.
    client_threads: Vec<JoinHandle<io::Result<()>>>,
    acceptor_thread: JoinHandle<io::Result<()>>,
    /// Closed when every thread has ended.
    running: mpsc::Receiver<()>,
    stop: StopFlag,
    uris: Vec<String>,
    /// The listening sockets, and the files of those of them that are unix sockets: closed and
    /// removed when the end begins.
    listening: Vec<Fd>,
    sockets: Vec<SocketFile>,
    at_stop: AtStop,
    /// When that was.
    end_begun: Option<SystemInstant>,
    /// What the kernel is asked for while it serves.
    _latencies: Vec<CpuLatency>,
}

impl Server {
    /// Starts to serve; clients can connect when this returns.
    pub fn start(config: &Config) -> Result<Self> {
        let (failures, _) = mpsc::channel();
        Self::start_watched(config, &failures)
    }

    /// Starts to serve; a thread that fails sends a sentence about that to `failures`.
    pub fn start_watched(config: &Config, failures: &mpsc::Sender<String>) -> Result<Self> {
        let acquired = acquire_for_server(config).map_err(Obstacles::into_error)?;
        Self::start_with(config, acquired, failures)
    }

    /// The same with what has been acquired for the server.
    pub(crate) fn start_with(
        config: &Config,
        acquired: ForServer,
        failures: &mpsc::Sender<String>,
    ) -> Result<Self> {
        let ForServer { io, bound, backends, state, latencies } = acquired;
        let places = uri::places(&bound)?;
        let mut uris = uri::of_exports(config, &places);
        let rooms = Rooms::new(config, raise_descriptors());
        let groups = Groups::new(config, rooms.clone());
        let (alive, running) = mpsc::channel();
        let watch = Watchers { failures: failures.clone(), alive };
        let threads = (0..config.connection_threads()).map(|_| Thread::new(io));
        let mut threads = threads.collect::<io::Result<Vec<_>>>()?;
        let (mut owners, mut volumes, mut served) = (Vec::new(), Vec::new(), BTreeMap::new());
        let (mut owner_threads, mut client_threads) = (Vec::new(), Vec::new());
        for (index, backends) in backends.into_iter().enumerate() {
            let StartedOwner { exports, volumes: of_disk, handle, thread } =
                start_owner(config, index, backends, &groups, io, &mut threads, &watch)?;
            for (number, export) in exports {
                let flushes = of_disk[config.exports[number].volume].flushes;
                served.insert(number, entry(&config.exports[number], export, &handle, flushes));
            }
            owners.push(handle);
            volumes.push(of_disk);
            owner_threads.push(thread);
        }
        let offers = config.listen.iter().map(|listen| offer_of(config, listen));
        let exports = Arc::new(ServedExports::on(offers.collect()));
        for (number, (info, export, owner)) in served {
            let room = groups.room(&config.groups[config.exports[number].group].path);
            exports.insert(Entry { info, export, owner, room, is_leaving: false });
        }
        for (number, thread) in threads.into_iter().enumerate() {
            let name = format!("clients {number}");
            client_threads.push(spawn(&name, &watch, move || thread.run())?);
        }
        let (listeners, sockets) = offer(&exports, bound);
        let (groups, exports) = ((groups, rooms), (exports, places));
        let (store, records) = state.unzip();
        let catalogue = Catalogue::new(config, &owners, &volumes, groups, exports, store);
        // Before anybody asks for one of them.
        uris.extend(catalogue.restore(records.unwrap_or_default()));
        let stop = StopFlag::new()?;
        let listening = listeners.iter().map(Listener::socket).collect();
        let acceptor_thread = start_acceptor(listeners, &stop, io, &watch)?;
        let control = ControlHandle::new(config, catalogue);
        let end_begun = None;
        Ok(Self {
            owners,
            control,
            owner_threads,
            client_threads,
            acceptor_thread,
            running,
            stop,
            uris,
            listening,
            sockets,
            at_stop: config.keys.at_stop,
            end_begun,
            _latencies: latencies,
        })
    }

    /// Returns the NBD URI of each export on each socket that offers it, in the order of exports
    /// and then of sockets.
    pub fn uris(&self) -> &[String] {
        &self.uris
    }

    /// Returns the handle that asks the disks for their statistics and changes weights.
    pub fn control(&self) -> ControlHandle {
        self.control.clone()
    }

    /// Stops accepting, and has every disk begin its end.
    pub fn begin_shutdown(&mut self) {
        if self.end_begun.is_some() {
            return;
        }
        self.end_begun = Some(SystemInstant::now());
        // Before any client is closed: one that connects anew must find the next server.
        self.sockets.clear();
        self.stop.stop();
        for listening in self.listening.drain(..) {
            // Whoever still has the socket accepts nobody on it any more.
            let _ = shutdown(&*listening, Shutdown::Both);
        }
        for owner in &self.owners {
            owner.shut_down(self.at_stop);
        }
    }

    /// Stops accepting, lets what is in the devices finish, flushes, and closes all clients; what
    /// waits gets no answer, or ESHUTDOWN, as [`AtStop`] says.
    ///
    /// An error where a thread failed or a last flush did; and after some ten seconds where a disk
    /// does not end, because something is stuck in the kernel: its thread is then left behind, and
    /// ends with the process.
    pub fn shut_down(mut self) -> Result<()> {
        self.begin_shutdown();
        let spent = self.end_begun.map(|begun| begun.elapsed()).unwrap_or_default();
        let left = PATIENCE.saturating_sub(spent);
        if self.running.recv_timeout(left) == Err(mpsc::RecvTimeoutError::Timeout) {
            let threads = self.owner_threads.iter().chain(&self.client_threads);
            let threads = threads.chain([&self.acceptor_thread]);
            let stuck = threads.filter(|thread| !thread.is_finished());
            let stuck: Vec<_> = stuck.filter_map(|thread| thread.thread().name()).collect();
            bail!("{} did not end in {PATIENCE:?} and is left behind", stuck.join(", "));
        }
        let mut ended = join(self.acceptor_thread).context("the acceptor failed");
        // The first failure is reported.
        for thread in self.owner_threads.into_iter().chain(self.client_threads) {
            let name = thread.thread().name().unwrap_or_default().to_owned();
            ended = ended.and(join(thread).context(name));
        }
        ended
    }
}

fn join(thread: JoinHandle<io::Result<()>>) -> Result<()> {
    let result = thread.join().map_err(|_| anyhow!("its thread panicked"))?;
    Ok(result?)
}

/// Whether the device of a directory rotates.
fn rotates(directory: &Path) -> bool {
    fs::metadata(directory).is_ok_and(|seen| is_rotational(directory, &seen).yes)
}

/// The exports of a disk, by their indices in the configuration.
type ExportsByIndex = BTreeMap<usize, Arc<Export>>;

/// Adds the tenants of a disk and its exports, which has those volumes, in the order of the
/// configuration.
fn add_exports(
    config: &Config,
    index: usize,
    engine: &mut Engine<Scheduler>,
    volumes: &[(VolumeId, VolumePlace)],
    groups: &Groups,
    tenants: &mut Tenants,
) -> ExportsByIndex {
    let now = Instant::START;
    engine.administer(|elevator| {
        let root = elevator.groups().root();
        elevator.set_group_limits(now, root, config.root);
        for group in config.groups_on(index) {
            for tenant in groups.tenants(&config.groups[group].path, index) {
                tenants.add(elevator, now, &tenant);
            }
        }
        let exports = config.exports.iter().enumerate().filter(|(_, export)| export.disk == index);
        let exports = exports.map(|(number, export)| {
            let (volume, place) = volumes[export.volume];
            let (name, offset) = (export.name.clone(), export.offset);
            let io_prio = export.keys.ioprio;
            let lineage = groups.tenants(&config.groups[export.group].path, index);
            let new = NewExport { name, volume, offset, io_prio, lineage };
            (number, tenants.add_export(elevator, now, new, place))
        });
        exports.collect()
    })
}

/// What clients are told of an export, the export, and its owner.
type ServedExport = (ExportInfo, Arc<Export>, OwnerHandle);

fn entry(
    config: &ExportConfig,
    export: Arc<Export>,
    owner: &OwnerHandle,
    flushes: bool,
) -> ServedExport {
    let ExportConfig { name, size, keys, .. } = config;
    let (description, read_only) = (keys.description.as_deref(), keys.read_only);
    let told = Told { name, description, size: *size, read_only, flushes };
    (told.info(), export, owner.clone())
}

/// An owner that runs, and what it serves.
struct StartedOwner {
    exports: ExportsByIndex,
    volumes: Vec<ServedVolume>,
    handle: OwnerHandle,
    thread: JoinHandle<io::Result<()>>,
}

fn start_owner(
    config: &Config,
    index: usize,
    backends: Vec<Box<dyn Backend>>,
    groups: &Groups,
    io: IoEngine,
    threads: &mut [Thread],
    watch: &Watchers,
) -> Result<StartedOwner> {
    let disk = &config.disks[index];
    let capabilities: Vec<_> = backends.iter().map(|backend| backend.capabilities()).collect();
    let kind = disk.scheduler.kind();
    let busy = capabilities.iter().map(|one| one.depth).max().unwrap_or(FileBackend::DEPTH);
    let depth = Depth::in_force(kind, disk.keys.depth, busy).bound();
    let rotates = || match capabilities[..] {
        [] => disk.keys.path.as_deref().is_some_and(rotates),
        _ => capabilities.iter().any(|one| one.rotational),
    };
    let device = if disk.keys.rotational.unwrap_or_else(rotates) {
        Device::disk(depth)
    } else {
        // What does not seek has always something to do at once. Linux finds that out, and is wrong
        // about a disk that is given few; what groups were charged then counts no more.
        Device::solid_state(depth).with_native_queueing(true)
    };
    let elevator = tuned::elevator(disk, device)?;
    announce::disk(disk, &backends, io, &elevator);
    let notices = Thread::notices(threads);
    let sync_depth = usize::try_from(disk.keys.sync_depth).unwrap_or(usize::MAX);
    let mut engine = Engine::new(elevator).with_sync_depth(sync_depth);
    let mut volumes = Vec::new();
    for (volume, capabilities) in disk.volumes.iter().zip(&capabilities) {
        let named = || format!("{} {:?}", disk.what_of_volume(), volume.name);
        let id = engine.add_volume(capabilities).with_context(named)?;
        volumes.push((id, engine.place(id)));
    }
    let mut tenants = Tenants::new(&notices);
    let exports = add_exports(config, index, &mut engine, &volumes, groups, &mut tenants);
    let ids = || volumes.iter().map(|&(id, _)| id);
    let label = DiskLabel {
        config: disk.clone(),
        volumes: Volumes::new(disk.is_pool, ids().zip(&disk.volumes)),
        devices: devices_of(disk),
        shares: sharing_devices(&config.disks).remove(&index),
    };
    let (sender, inbox) = mpsc::channel();
    let waker = Waker::new()?;
    let handle = OwnerHandle::new(sender, waker.clone());
    let limits = if disk.keys.plug { PlugLimits::default() } else { PlugLimits::OFF };
    let plugged = Plugged { limits, rules: engine.elevator().plug_rules() };
    let transport = nbd(&waker, threads, &notices, plugged, config.keys.payload_timeout);
    let mut connections = Connections::new(label, tenants, inbox, transport);
    let (policy, beside) = (disk.keys.polling.policy(), threads.len());
    let backends: Vec<_> = ids().zip(backends).collect();
    let thread = spawn(&format!("disk {}", disk.name), watch, move || {
        let clock = MonotonicClock::start();
        let owner = Owner::new(engine, backends, Ring::new(io)?, clock, waker)?;
        owner.with_polling(policy, beside).run(&mut connections)?;
        connections.ended()
    })?;
    let served = volumes.into_iter().zip(capabilities);
    let served = served.map(|((id, _), of)| ServedVolume { id, flushes: of.flushes });
    let volumes = served.collect();
    Ok(StartedOwner { exports, volumes, handle, thread })
}

/// Has each socket offer its exports. Returns the files of unix sockets beside.
fn offer(served: &Arc<ServedExports>, bound: Vec<BoundSocket>) -> (Vec<Listener>, Vec<SocketFile>) {
    let (mut listeners, mut files) = (Vec::new(), Vec::new());
    for (number, socket) in bound.into_iter().enumerate() {
        let exports = ExportTable::new(number, Arc::clone(served));
        listeners.push(match socket {
            BoundSocket::Unix(listener, file) => {
                files.push(file);
                Listener::unix(listener, exports)
            }
            BoundSocket::Tcp(listener) => Listener::tcp(listener, exports),
        });
    }
    (listeners, files)
}

fn start_acceptor(
    listeners: Vec<Listener>,
    stop: &StopFlag,
    io: IoEngine,
    watch: &Watchers,
) -> Result<JoinHandle<io::Result<()>>> {
    let stop = stop.clone();
    spawn("acceptor", watch, move || Acceptor::new(listeners, stop, io)?.run())
}

/// Starts a thread that reports when it fails, by an error or by a panic.
fn spawn(
    name: &str,
    watch: &Watchers,
    work: impl FnOnce() -> io::Result<()> + Send + 'static,
) -> Result<JoinHandle<io::Result<()>>> {
    let Watchers { failures, alive } = watch.clone();
    let watch = Watch { name: name.to_owned(), failures: Some(failures), _alive: alive };
    let watched = move || {
        let result = work().map_err(rings::explained);
        match &result {
            Ok(()) => watch.ended_well(),
            Err(error) => tracing::error!("{}: {error}", watch.name),
        }
        result
    };
    let builder = thread::Builder::new().name(name.to_owned());
    builder.spawn(watched).with_context(|| format!("cannot start the thread of {name}"))
}

/// Where the ends of threads are reported.
#[derive(Clone)]
struct Watchers {
    /// Takes a sentence where one has failed.
    failures: mpsc::Sender<String>,
    /// Closed when all of them have ended.
    alive: mpsc::Sender<()>,
}

/// Reports the end of a thread: every one by dropping `_alive`, and a failure in words too.
struct Watch {
    name: String,
    failures: Option<mpsc::Sender<String>>,
    _alive: mpsc::Sender<()>,
}

impl Watch {
    fn ended_well(mut self) {
        self.failures = None;
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(failures) = self.failures.take() {
            // Where nobody watches, the end is seen when the thread is joined.
            let _ = failures.send(format!("the thread of {} has failed", self.name));
        }
    }
}
