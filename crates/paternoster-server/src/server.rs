//! A running server: its threads, and the handles on them.
//!
//! ```text
//!   acceptor ──NewConnection──▶ owner of disk0, owner of disk1, …        a thread each
//!   control plane ──Stat──────▶      ▲ ▼
//!                               connection threads, where there are any
//!   thread `vhost` ──orders───▶ the owners, where virtual machines attach
//! ```
//!
//! The order of starting: `acquire.rs` binds sockets and opens disks, then threads run; so that
//! whatever is refused is refused before anything is changed.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant as SystemInstant};

use anyhow::{Context as _, Result, bail};
use paternoster_disk::{Fd, IoEngine};
use rustix::net::{Shutdown, shutdown};
use uuid::Uuid;

use crate::acceptor::{Acceptor, Listener};
use crate::acquire::{ForServer, Obstacles, acquire_for_server};
use crate::admission::{Rooms, raise_descriptors};
use crate::catalogue::{Catalogue, Groups, Store};
use crate::config::{AtStop, Config};
use crate::control::ControlHandle;
use crate::export_table::{ExportTable, ServedExports, offer_of};
use crate::gate::Gate;
use crate::owners::{OfConfig, Owners, Starter};
use crate::passed::Passed;
use crate::sockets::{BoundSocket, SocketFile};
use crate::threads::Thread;
use crate::tls::{self, InForce};
use crate::uri::{self, Place};
use crate::vhost::Sockets;
use crate::watched::{Watchers, join, spawn};

/// How long threads have to end: a moment more than the owner of a disk gives its device.
const PATIENCE: Duration = Duration::from_millis(9_500);

/// A server that runs until it is shut down.
#[derive(Debug)]
pub struct Server {
    owners: Arc<Owners>,
    control: ControlHandle,
    /// Where virtual machines attach.
    machines: Arc<Sockets>,
    /// Connection threads; each ends when all disks have.
    client_threads: Vec<JoinHandle<io::Result<()>>>,
    acceptor_thread: JoinHandle<io::Result<()>>,
    /// Closed when every thread has ended.
    running: mpsc::Receiver<()>,
    gate: Gate,
    uris: Vec<String>,
    of_machines: Vec<String>,
    exports: Arc<ServedExports>,
    /// The listening sockets, and the files of those of its own that are unix sockets: closed and
    /// removed when the end begins.
    listening: Vec<Listening>,
    sockets: Vec<SocketFile>,
    at_stop: AtStop,
    /// When that was.
    end_begun: Option<SystemInstant>,
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
        let server = Self::prepare(config, acquired, Arc::default(), failures)?;
        server.open()?;
        Ok(server)
    }

    /// Has everything run with what has been acquired for the server, and what was passed of what
    /// requests have made; but no client connects before it is [opened](Self::open).
    pub(crate) fn prepare(
        config: &Config,
        acquired: ForServer,
        passed: Arc<Passed>,
        failures: &mpsc::Sender<String>,
    ) -> Result<Self> {
        let ForServer { io, bound, disks, store, records } = acquired;
        let instance = store.as_ref().and_then(instance_of);
        let places: Vec<_> = bound.iter().map(|socket| socket.place.clone()).collect();
        let mut uris = uri::of_exports(config, &places);
        let rooms = Rooms::new(config, raise_descriptors());
        let groups = Groups::new(config, rooms.clone());
        let (alive, running) = mpsc::channel();
        let watch = Watchers { failures: failures.clone(), alive };
        let threads = (0..config.connection_threads()).map(|_| Thread::new(io));
        let threads = threads.collect::<io::Result<Vec<_>>>()?;
        let (threads, handles) = threads.into_iter().unzip::<_, _, Vec<_>, Vec<_>>();
        let payload_timeout = config.keys.payload_timeout;
        let starter = Starter { io, threads: handles, watch: watch.clone(), payload_timeout };
        let owners = Arc::new(Owners::new(starter));
        let (mut disks_served, mut entries) = (Vec::new(), BTreeMap::new());
        let mut sockets_of_machines = BTreeMap::new();
        for (index, acquired) in disks.into_iter().enumerate() {
            let one = owners.start(OfConfig { config, index, number: index }, acquired, &groups)?;
            entries.append(&mut one.entries(config, &groups));
            sockets_of_machines.extend(one.sockets);
            disks_served.push(one.served);
        }
        let exports = exports_of(config, &groups)?;
        let dir = config.keys.vhost_user_dir.clone();
        let of_exports = Arc::clone(&exports);
        let machines = Arc::new(Sockets::new(io, dir, rooms.clone(), of_exports, failures.clone()));
        // In the order of the configuration.
        for entry in entries.into_values() {
            exports.insert(entry);
        }
        for (index, socket) in sockets_of_machines {
            machines.listen(&config.exports[index].name, socket)?;
        }
        let mut client_threads = Vec::new();
        for (number, thread) in threads.into_iter().enumerate() {
            let name = format!("clients {number}");
            client_threads.push(spawn(&name, &watch, move || thread.run())?);
        }
        let Offered { listeners, sockets: listening, files: sockets } =
            offer(config, &exports, bound);
        let (groups, of) = ((groups, rooms), (Arc::clone(&exports), places, Arc::clone(&machines)));
        let catalogue = Catalogue::new(
            config,
            (Arc::clone(&owners), disks_served),
            groups,
            of,
            (store, passed),
        );
        // Before anybody asks for one of them.
        let (restored, sockets_restored) = catalogue.restore(records);
        uris.extend(restored);
        let gate = Gate::new()?;
        let acceptor_thread = start_acceptor(listeners, &gate, io, &watch)?;
        let control = ControlHandle::new(config, catalogue).with_instance(instance);
        let end_begun = None;
        Ok(Self {
            owners,
            control,
            machines,
            client_threads,
            acceptor_thread,
            running,
            gate,
            uris,
            of_machines: machines_of(config, &sockets_restored),
            exports,
            listening,
            sockets,
            at_stop: config.keys.at_stop,
            end_begun,
        })
    }

    /// Clients can connect from now on.
    pub(crate) fn open(&self) -> Result<()> {
        self.gate.open();
        self.machines.open()
    }

    /// What is served, for clients that do not negotiate.
    pub(crate) fn exports(&self) -> &ServedExports {
        &self.exports
    }

    /// Has clients be accepted or not.
    pub(crate) fn gate(&self) -> Gate {
        self.gate.clone()
    }

    /// The sockets on which clients of NBD connect, in the order of the configuration.
    pub(crate) fn sockets(&self) -> impl Iterator<Item = Fd> {
        self.listening.iter().map(|listening| listening.socket.clone())
    }

    /// Returns the NBD URI of each export on each socket that offers it, in the order of exports
    /// and then of sockets.
    pub fn uris(&self) -> &[String] {
        &self.uris
    }

    /// Returns the line that tells of each socket of virtual machines, in the order of exports.
    pub fn machines(&self) -> &[String] {
        &self.of_machines
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
        self.gate.stop();
        self.machines.stop_listening();
        for listening in self.listening.drain(..).filter(|listening| !listening.is_passed) {
            // Whoever still has the socket accepts nobody on it any more.
            let _ = shutdown(&*listening.socket, Shutdown::Both);
        }
        self.owners.begin_shutdown(self.at_stop);
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
            let threads = self.client_threads.iter().chain([&self.acceptor_thread]);
            let others = threads.filter(|thread| !thread.is_finished());
            let others = others.filter_map(|thread| thread.thread().name().map(str::to_owned));
            let stuck: Vec<_> = self.owners.stuck().into_iter().chain(others).collect();
            bail!("{} did not end in {PATIENCE:?} and is left behind", stuck.join(", "));
        }
        let mut ended = join(self.acceptor_thread).context("the acceptor failed");
        // All disks have ended, and told front-ends so.
        ended = ended.and(self.machines.end().context("vhost"));
        // The first failure is reported.
        for thread in self.owners.take_threads().into_iter().chain(self.client_threads) {
            let name = thread.thread().name().unwrap_or_default().to_owned();
            ended = ended.and(join(thread).context(name));
        }
        ended
    }
}

/// What is to be served: nothing yet, on sockets that offer what the configuration says.
fn exports_of(config: &Config, groups: &Groups) -> Result<Arc<ServedExports>> {
    let offers = config.listen.iter().map(|listen| offer_of(config, listen));
    let tls = tls::load(&config.tls).map_err(tls::Unusable::into_error)?;
    let (tls, identities) = (InForce::new(tls), groups.identities());
    Ok(Arc::new(ServedExports::on(offers.collect(), tls, identities)))
}

/// The UUID of the directory of records. That it has none is no reason not to serve.
fn instance_of(store: &Store) -> Option<Uuid> {
    let made = store.read_or_make_instance();
    made.inspect_err(|error| tracing::warn!("answers will name no instance: {error:#}")).ok()
}

/// Where virtual machines attach, a line each.
fn machines_of(config: &Config, restored: &[PathBuf]) -> Vec<String> {
    let paths = config.exports.iter().filter_map(|export| export.keys.vhost_user.as_ref());
    paths.chain(restored).map(|path| format!("vhost-user {}", path.display())).collect()
}

/// A socket on which clients connect.
#[derive(Debug)]
struct Listening {
    socket: Fd,
    /// Whether somebody else listens on it too.
    is_passed: bool,
}

/// Sockets that offer their exports.
#[derive(Default)]
struct Offered {
    listeners: Vec<Listener>,
    sockets: Vec<Listening>,
    files: Vec<SocketFile>,
}

/// Has each socket offer its exports.
fn offer(config: &Config, served: &Arc<ServedExports>, bound: Vec<BoundSocket>) -> Offered {
    let mut offered = Offered::default();
    let tls = config.listen.iter().map(|listen| listen.tls);
    for ((number, bound), tls) in bound.into_iter().enumerate().zip(tls) {
        let BoundSocket { socket, place, file, is_passed } = bound;
        let (socket, is_tcp) = (Fd::new(socket), matches!(place, Place::Tcp(_)));
        offered.sockets.push(Listening { socket: socket.clone(), is_passed });
        let exports = ExportTable::new(number, tls, Arc::clone(served));
        offered.listeners.push(Listener::new(socket, is_tcp, exports));
        offered.files.extend(file);
    }
    offered
}

fn start_acceptor(
    listeners: Vec<Listener>,
    gate: &Gate,
    io: IoEngine,
    watch: &Watchers,
) -> Result<JoinHandle<io::Result<()>>> {
    let gate = gate.clone();
    spawn("acceptor", watch, move || Acceptor::new(listeners, gate, io)?.run())
}
