//! Listening sockets: bound before any disk is opened, and never taken from somebody else.

use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use thiserror::Error;

use crate::config::ListenAddress;
use crate::holder;
use crate::inherited::Ownership;
use crate::passed::{NotPassed, Passed};
use crate::uri::Place;

/// The longest path of a unix socket, in bytes: what `sun_path` holds beside its final 0.
pub const UNIX_PATH_MAX: usize = 107;

/// How long a socket that is in use is tried again: one of a server that was killed stays until the
/// kernel has taken that server's rings apart, a moment after the process has gone.
const SOCKET_IN_USE: Duration = Duration::from_secs(1);

/// The same of a lock: a server that was killed keeps it until its last write has ended, and the
/// device may take its time for that.
const LOCKED: Duration = Duration::from_secs(5);

/// The pause before the second trial; each that follows is twice as long. They are few, as each
/// trial of a socket is a connection that waits to be accepted.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// No pause is longer.
const LONGEST_PAUSE: Duration = Duration::from_millis(400);

/// Connections that wait to be accepted.
const BACKLOG: i32 = 128;

/// The error of a socket that cannot listen.
#[derive(Debug, Error)]
pub enum BindError {
    /// Somebody listens on the unix socket.
    #[error("socket {path:?} is in use: {holder} accepts connections on it")]
    UnixInUse {
        /// Its path.
        path: PathBuf,
        /// Who that is, as far as it is known.
        holder: String,
    },
    /// The path leads to something that is not removed to make room.
    #[error("{path:?} exists and is not a socket; it stays as it is: name another path")]
    NotASocket {
        /// That path.
        path: PathBuf,
    },
    /// The unix socket could not be made.
    #[error("cannot listen on socket {path:?}")]
    Unix {
        /// Its path.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Somebody listens on the TCP port.
    #[error("{address} is in use: {holder} listens on it")]
    TcpInUse {
        /// The address and the port.
        address: SocketAddr,
        /// Who that is, as far as it is known.
        holder: String,
    },
    /// The TCP socket could not be made.
    #[error("cannot listen on {address}")]
    Tcp {
        /// The address and the port.
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// It was not passed to this server.
    #[error(transparent)]
    NotPassed(#[from] NotPassed),
}

/// Listens on a unix socket, or takes it from the server before.
pub(crate) fn take_unix(
    path: &Path,
    mode: u32,
    passed: &Passed,
    patience: Patience,
) -> Result<(UnixListener, SocketFile), BindError> {
    let (socket, file) = take_unix_of(SocketType::STREAM, path, mode, passed, patience)?;
    Ok((socket.into(), file))
}

/// The same of any type.
pub(crate) fn take_unix_of(
    kind: SocketType,
    path: &Path,
    mode: u32,
    passed: &Passed,
    patience: Patience,
) -> Result<(OwnedFd, SocketFile), BindError> {
    let Some(socket) = passed.inherited.unix_socket(path) else {
        let socket = patience.bind(|| bind_unix_now(kind, path, mode))?;
        return Ok((socket, SocketFile::new(path)));
    };
    passed.inherited.set_mode_later(path, mode);
    Ok((socket, SocketFile::inherited(path, passed.inherited.ours())))
}

/// Listens on a TCP address, or takes the socket from the server before.
pub(crate) fn take_tcp(
    address: SocketAddr,
    passed: &Passed,
    patience: Patience,
) -> Result<TcpListener, BindError> {
    let inherited = passed.inherited.tcp_socket(address).map(TcpListener::from);
    inherited.map_or_else(|| patience.bind_tcp(address), Ok)
}

/// Listens on a unix socket with these permission bits. A socket that a dead program left behind is
/// replaced; one in use, and anything else at this path, is refused.
pub fn bind_unix(path: &Path, mode: u32) -> Result<UnixListener, BindError> {
    let bind = || bind_unix_now(SocketType::STREAM, path, mode);
    Patience::a_while().bind(bind).map(UnixListener::from)
}

fn bind_unix_now(kind: SocketType, path: &Path, mode: u32) -> Result<OwnedFd, BindError> {
    let failed = |source: io::Error| BindError::Unix { path: path.to_owned(), source };
    // Two starters must not both find the same dead socket and then remove each other's.
    let _lock = lock_directory(path).map_err(failed)?;
    let address = SocketAddrUnix::new(path).map_err(|errno| failed(errno.into()))?;
    let socket = new_socket(kind, SocketFlags::CLOEXEC).map_err(|errno| failed(errno.into()))?;
    match rustix::net::bind(&socket, &address) {
        Ok(()) => {}
        Err(Errno::ADDRINUSE) => {
            remove_dead_socket(path, &address)?;
            rustix::net::bind(&socket, &address).map_err(|errno| failed(errno.into()))?;
        }
        Err(errno) => return Err(failed(errno.into())),
    }
    // Nobody can connect before `listen`, so there is no moment with another mode.
    set_mode(path, mode)
        .and_then(|()| rustix::net::listen(&socket, BACKLOG))
        .map_err(|errno| failed(errno.into()))?;
    Ok(socket)
}

/// Sets the permission bits of the socket at this path; of nothing else that somebody has put there
/// meanwhile, nor of what a link there leads to.
pub(crate) fn set_mode(path: &Path, mode: u32) -> Result<(), Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty())?;
    if FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode) != FileType::Socket {
        return Err(Errno::EXIST);
    }
    let at = format!("/proc/self/fd/{}", file.as_raw_fd());
    rustix::fs::chmod(at, Mode::from_bits_truncate(mode))
}

/// A socket that listens.
#[derive(Debug)]
pub(crate) struct BoundSocket {
    pub(crate) socket: OwnedFd,
    /// Where clients find it.
    pub(crate) place: Place,
    /// The file of a unix socket of ours, which goes with it.
    pub(crate) file: Option<SocketFile>,
    /// Whether somebody else listens on it too, before this server and after it.
    pub(crate) is_passed: bool,
}

impl BoundSocket {
    /// Listens there, or takes what was passed.
    pub(crate) fn new(
        address: &ListenAddress,
        passed: &Passed,
        patience: Patience,
    ) -> Result<Self, BindError> {
        match address {
            ListenAddress::Unix { path, mode } => {
                let (socket, file) = take_unix(path, *mode, passed, patience)?;
                let (socket, file) = (socket.into(), Some(file));
                let place = std::path::absolute(path).map(Place::Unix);
                let place =
                    place.map_err(|source| BindError::Unix { path: path.clone(), source })?;
                Ok(Self { socket, place, file, is_passed: false })
            }
            ListenAddress::Tcp(address) => {
                let listener = take_tcp(*address, passed, patience)?;
                let place = listener.local_addr().map(Place::Tcp);
                let place = place.map_err(|source| BindError::Tcp { address: *address, source })?;
                Ok(Self { socket: listener.into(), place, file: None, is_passed: false })
            }
            ListenAddress::Passed { name } => {
                let (socket, place) = passed.take(name)?;
                Ok(Self { socket, place, file: None, is_passed: true })
            }
        }
    }
}

/// The file of a unix socket of ours, removed when this is dropped.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    /// Whether it is ours, if another server had it.
    is_ours: Option<Ownership>,
}

impl SocketFile {
    /// Of a socket that we have bound.
    pub(crate) fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), is_ours: None }
    }

    /// Of a socket of the server before, which has it until it is ours.
    fn inherited(path: &Path, is_ours: Ownership) -> Self {
        Self { path: path.to_owned(), is_ours: Some(is_ours) }
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if self.is_ours.as_ref().is_none_or(Ownership::is_set) {
            // Where somebody else has removed it, so much the better.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Listens on a TCP address.
pub fn bind_tcp(address: SocketAddr) -> Result<TcpListener, BindError> {
    Patience::a_while().bind_tcp(address)
}

fn bind_tcp_now(address: SocketAddr) -> Result<TcpListener, BindError> {
    TcpListener::bind(address).map_err(|source| match source.kind() {
        io::ErrorKind::AddrInUse => {
            BindError::TcpInUse { address, holder: or_another(holder::of_port(address)) }
        }
        _ => BindError::Tcp { address, source },
    })
}

/// Whether what is in use is tried again: for a while from when that was said, however much there
/// is to take.
#[derive(Clone, Copy, Debug, Default)]
pub struct Patience(Option<Instant>);

impl Patience {
    /// It is not.
    pub const NONE: Self = Self(None);

    /// It is, for a while from now on.
    pub fn a_while() -> Self {
        Self(Some(Instant::now()))
    }

    fn bind<T>(self, bind: impl FnMut() -> Result<T, BindError>) -> Result<T, BindError> {
        let in_use = |error: &BindError| {
            matches!(error, BindError::UnixInUse { .. } | BindError::TcpInUse { .. })
        };
        self.take(SOCKET_IN_USE, bind, in_use)
    }

    /// Takes a lock, which is an error of that kind where somebody has it.
    pub(crate) fn lock<T>(self, lock: impl FnMut() -> io::Result<T>) -> io::Result<T> {
        self.take(LOCKED, lock, |error| error.kind() == io::ErrorKind::WouldBlock)
    }

    /// Listens on a TCP address.
    pub(crate) fn bind_tcp(self, address: SocketAddr) -> Result<TcpListener, BindError> {
        self.bind(|| bind_tcp_now(address))
    }

    /// Takes something that may be in use, for that long.
    fn take<T, E>(
        self,
        longest: Duration,
        mut take: impl FnMut() -> Result<T, E>,
        in_use: impl Fn(&E) -> bool,
    ) -> Result<T, E> {
        let is_over = |pause| self.0.is_none_or(|since| since.elapsed() + pause > longest);
        let mut pause = FIRST_PAUSE;
        loop {
            match take() {
                Err(error) if in_use(&error) && !is_over(pause) => std::thread::sleep(pause),
                taken => return taken,
            }
            pause = LONGEST_PAUSE.min(pause * 2);
        }
    }
}

fn or_another(holder: Option<String>) -> String {
    holder.unwrap_or_else(|| "another program".to_owned())
}

/// Holds the lock of the directory of `path` until it is dropped; waits a second for it.
fn lock_directory(path: &Path) -> io::Result<fs::File> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let file = fs::File::open(directory)?;
    for _ in 0..100 {
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => std::thread::sleep(Duration::from_millis(10)),
            Err(errno) => return Err(errno.into()),
            Ok(()) => return Ok(file),
        }
    }
    let message = format!("another program keeps {} locked", directory.display());
    Err(io::Error::new(io::ErrorKind::WouldBlock, message))
}

fn remove_dead_socket(path: &Path, address: &SocketAddrUnix) -> Result<(), BindError> {
    let failed = |source: io::Error| BindError::Unix { path: path.to_owned(), source };
    let seen = fs::symlink_metadata(path).map_err(failed)?;
    if !seen.file_type().is_socket() {
        return Err(BindError::NotASocket { path: path.to_owned() });
    }
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let probe = new_socket(SocketType::STREAM, flags).map_err(|errno| failed(errno.into()))?;
    match rustix::net::connect(&probe, address) {
        Err(Errno::CONNREFUSED) => fs::remove_file(path).map_err(failed),
        // EAGAIN is a full backlog, EPROTOTYPE a socket of another type: both have an owner.
        Ok(()) | Err(Errno::AGAIN | Errno::PROTOTYPE) => {
            let holder = or_another(holder::of_other_end(&probe));
            Err(BindError::UnixInUse { path: path.to_owned(), holder })
        }
        Err(errno) => Err(failed(errno.into())),
    }
}

fn new_socket(kind: SocketType, flags: SocketFlags) -> Result<OwnedFd, Errno> {
    rustix::net::socket_with(AddressFamily::UNIX, kind, flags, None)
}
