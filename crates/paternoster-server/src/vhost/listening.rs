//! The sockets on which front-ends connect, and the thread that has them: it begins with the first.

use std::io;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::JoinHandle;

use anyhow::Result;
use paternoster_disk::{Fd, IoEngine, Waker};
use paternoster_vhost::Sealed;
use rustix::net::{Shutdown, shutdown};

use super::ToFrontEnds;
use super::front_ends::FrontEnds;
use crate::admission::{Descriptors, Rooms};
use crate::config::{ExportKeys, VhostMemory};
use crate::export_table::ServedExports;
use crate::passed::Passed;
use crate::sockets::{BindError, Patience, SocketFile, take_unix};
use crate::watched::{Watchers, join, spawn};

/// A unix socket on which the front-end of an export connects.
#[derive(Debug)]
pub(crate) struct VhostSocket {
    pub(crate) listener: UnixListener,
    pub(crate) file: SocketFile,
    /// The place of its descriptor, once it has one.
    pub(crate) room: Option<Descriptors>,
    /// Whether memory may be such as can be taken away.
    pub(crate) sealed: Sealed,
}

impl VhostSocket {
    /// Listens on that path, as an export says that it is to be.
    pub(crate) fn bind(
        path: &Path,
        keys: &ExportKeys,
        passed: &Passed,
        patience: Patience,
    ) -> Result<Self, BindError> {
        let (listener, file) = take_unix(path, keys.vhost_user_mode, passed, patience)?;
        let sealed = match keys.vhost_user_memory {
            VhostMemory::Any => Sealed::Any,
            VhostMemory::Sealed => Sealed::Required,
        };
        Ok(Self { listener, file, room: None, sealed })
    }
}

/// The same, as the thread has it.
#[derive(Debug)]
pub(super) struct Listener {
    /// Its name on that thread.
    pub(super) number: u64,
    pub(super) socket: Fd,
    pub(super) export: String,
    pub(super) sealed: Sealed,
}

impl Drop for Listener {
    fn drop(&mut self) {
        // An operation that waits for a connection keeps the socket open, and ends by this.
        let _ = shutdown(&*self.socket, Shutdown::Both);
    }
}

/// All sockets of front-ends.
#[derive(Debug)]
pub(crate) struct Sockets {
    io: IoEngine,
    /// Where those are of what is made by request, if it may have any.
    pub(crate) dir: Option<PathBuf>,
    rooms: Rooms,
    exports: Arc<ServedExports>,
    failures: mpsc::Sender<String>,
    /// Sockets on which nobody is accepted before this is opened; none afterwards.
    waiting: Mutex<Option<Vec<(String, VhostSocket)>>>,
    /// None until a socket is there, and once the server has ended.
    thread: Mutex<Option<Running>>,
}

#[derive(Debug)]
pub(crate) struct Running {
    to: Handle,
    thread: JoinHandle<io::Result<()>>,
    /// Sockets so far.
    sockets: u64,
}

/// Sends messages to the thread.
#[derive(Clone, Debug)]
pub(super) struct Handle {
    pub(super) sender: mpsc::Sender<ToFrontEnds>,
    pub(super) waker: Waker,
}

impl Handle {
    pub(super) fn send(&self, message: ToFrontEnds) {
        // Where that thread has ended, so has the server.
        let _ = self.sender.send(message);
        self.waker.wake();
    }
}

/// Front-ends of an export connect for as long as this is there.
#[derive(Debug)]
pub(crate) struct Listening {
    number: u64,
    to: Handle,
    pub(crate) socket: Fd,
    _file: SocketFile,
    _room: Option<Descriptors>,
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.to.send(ToFrontEnds::Forget(self.number));
    }
}

impl Sockets {
    /// None yet; front-ends find these exports.
    pub(crate) fn new(
        io: IoEngine,
        dir: Option<PathBuf>,
        rooms: Rooms,
        exports: Arc<ServedExports>,
        failures: mpsc::Sender<String>,
    ) -> Self {
        let waiting = Mutex::new(Some(Vec::new()));
        Self { io, dir, rooms, exports, failures, waiting, thread: Mutex::default() }
    }

    fn waiting(&self) -> MutexGuard<'_, Option<Vec<(String, VhostSocket)>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Accepts front-ends from now on.
    pub(crate) fn open(&self) -> Result<()> {
        let waiting = self.waiting().take();
        waiting.into_iter().flatten().try_for_each(|(export, socket)| self.listen(&export, socket))
    }

    fn thread(&self) -> MutexGuard<'_, Option<Running>> {
        self.thread.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has a socket have the place of its descriptor, so that nothing can go wrong once its export
    /// is served.
    pub(crate) fn admit(&self, mut socket: VhostSocket) -> Result<VhostSocket> {
        if socket.room.is_none() {
            socket.room = Some(self.rooms.volume(1)?);
        }
        drop(self.begin()?);
        Ok(socket)
    }

    /// Has front-ends of an export, which is served, connect on that socket.
    pub(crate) fn listen(&self, export: &str, socket: VhostSocket) -> Result<()> {
        let socket = self.admit(socket)?;
        if let Some(waiting) = &mut *self.waiting() {
            waiting.push((export.to_owned(), socket));
            return Ok(());
        }
        let VhostSocket { listener, file, room, sealed } = socket;
        let mut thread = self.begin()?;
        let running = thread.as_mut().expect("it has begun");
        running.sockets += 1;
        let (number, to) = (running.sockets, running.to.clone());
        let socket: Fd = Arc::new(listener.into());
        let listening =
            Listening { number, to: to.clone(), socket: socket.clone(), _file: file, _room: room };
        self.exports.change(export, |entry| entry.listening = Some(Arc::new(listening)));
        let export = export.to_owned();
        to.send(ToFrontEnds::Listen(Listener { number, socket, export, sealed }));
        Ok(())
    }

    /// Starts the thread, unless it is there.
    fn begin(&self) -> Result<MutexGuard<'_, Option<Running>>> {
        let mut thread = self.thread();
        if thread.is_none() {
            *thread = Some(self.start()?);
        }
        Ok(thread)
    }

    fn start(&self) -> Result<Running> {
        let (sender, inbox) = mpsc::channel();
        let to = Handle { sender, waker: Waker::new()? };
        // The server waits for its end by itself, when all disks have ended.
        let watch = Watchers { failures: self.failures.clone(), alive: mpsc::channel().0 };
        let (io, of_thread, exports) = (self.io, to.clone(), Arc::clone(&self.exports));
        let thread =
            spawn("vhost", &watch, move || FrontEnds::new(io, of_thread, inbox, exports)?.run())?;
        Ok(Running { to, thread, sockets: 0 })
    }

    /// Tells front-ends of an export that it has so many bytes now.
    pub(crate) fn resize(&self, export: &str, size: u64) {
        if let Some(running) = &*self.thread() {
            running.to.send(ToFrontEnds::Resize(export.to_owned(), size));
        }
    }

    /// Nobody connects any more, and the files of the sockets are gone; front-ends that have
    /// connected stay.
    pub(crate) fn stop_listening(&self) {
        self.exports.stop_listening();
    }

    /// Ends the thread; all disks have ended, and so all sessions.
    pub(crate) fn end(&self) -> Result<()> {
        let Some(running) = self.thread().take() else { return Ok(()) };
        running.to.send(ToFrontEnds::End);
        join(running.thread)
    }
}
