//! Sockets on which a service manager listens and which it passes to the server that it starts,
//! such as systemd of a service with socket units: `sd_listen_fds(3)`.
//!
//! ```text
//!   nbd.socket:  ListenStream=/run/nbd.sock, FileDescriptorName=nbd ──▶ [[listen]] fd = "nbd"
//!   ctl.socket:  ListenStream=/run/ctl.sock, FileDescriptorName=ctl ──▶ ctl = "fd:ctl"
//! ```
//!
//! The manager goes on listening when the server has ended, and clients that connect meanwhile wait
//! for the next one. So a server neither removes the file of such a socket nor shuts it down.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::net::{AddressFamily, SocketType, sockopt};
use thiserror::Error;

use crate::handover::DescriptorStore;
use crate::inherited::Inherited;
use crate::uri::Place;

/// What a socket is called where the manager says no name.
const UNNAMED: &str = "unknown";

/// The error of a socket that was not passed as the configuration says.
#[derive(Debug, Error)]
pub enum NotPassed {
    /// There is none of that name.
    #[error("no socket {name:?} was passed to this server; passed: {passed}")]
    Missing {
        /// What the configuration calls it.
        name: String,
        /// The names of those that were passed.
        passed: String,
    },
    /// There are several.
    #[error(
        "{count} sockets {name:?} were passed to this server, and one is allowed: give each \
         ListenStream= a socket unit with a FileDescriptorName= of its own"
    )]
    Several {
        /// Their name.
        name: String,
        /// How many have it.
        count: usize,
    },
    /// Nobody can connect to it as to an NBD server.
    #[error("{name:?}, which was passed, {what}; a stream socket that listens is allowed")]
    Unfit {
        /// Its name.
        name: String,
        /// What is wrong with it.
        what: String,
    },
}

/// What was passed and has not been taken.
#[derive(Debug, Default)]
pub(crate) struct Passed {
    /// Sockets of the service manager, by its names for them.
    named: Mutex<Vec<(String, OwnedFd)>>,
    /// What the server before has handed over.
    pub(crate) inherited: Inherited,
    /// What it has left to the service manager.
    store: Mutex<DescriptorStore>,
}

impl Passed {
    /// Those of this process; none a second time.
    pub(crate) fn of_process() -> io::Result<Self> {
        static TAKEN: AtomicBool = AtomicBool::new(false);
        if TAKEN.swap(true, Ordering::Relaxed) {
            return Ok(Self::default());
        }
        let passed = sd_listen_fds::get();
        let passed = passed.map_err(|error| io::Error::other(error.to_string()))?;
        let (mut sockets, mut missing, mut store) = (Vec::new(), 0, DescriptorStore::default());
        for (name, fd) in passed {
            let fd = fd.into_std();
            // Nobody else is to have it.
            if fcntl_setfd(&fd, FdFlags::CLOEXEC) == Err(Errno::BADF) {
                // There is no such descriptor: it must not be closed when another has its number.
                std::mem::forget(fd);
                missing += 1;
                continue;
            }
            let name = name.unwrap_or_else(|| UNNAMED.to_owned());
            sockets.extend(store.take(&name, fd).map(|fd| (name, fd)));
        }
        if missing > 0 {
            let message = format!("LISTEN_FDS says {missing} more than were passed");
            return Err(io::Error::other(message));
        }
        Ok(Self { store: Mutex::new(store), ..Self::named(sockets) })
    }

    fn named(sockets: Vec<(String, OwnedFd)>) -> Self {
        Self { named: Mutex::new(sockets), ..Self::default() }
    }

    /// The names of what the server before has left to the service manager.
    pub(crate) fn stored(&self) -> Vec<String> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner).names()
    }

    /// What the server before has left to the service manager.
    pub(crate) fn take_store(&self) -> DescriptorStore {
        std::mem::take(&mut *self.store.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn sockets(&self) -> MutexGuard<'_, Vec<(String, OwnedFd)>> {
        self.named.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A socket that the manager had passed to the server before, by that name.
    pub(crate) fn add(&self, name: String, socket: OwnedFd) {
        self.sockets().push((name, socket));
    }

    /// Takes the socket of that name, and where clients find it.
    pub(crate) fn take(&self, name: &str) -> Result<(OwnedFd, Place), NotPassed> {
        let mut sockets = self.sockets();
        let named = sockets.iter().filter(|(of, _)| of == name).count();
        let at = sockets.iter().position(|(of, _)| of == name);
        match (at, named) {
            (Some(at), 1) => {
                let (name, socket) = sockets.remove(at);
                match stream_place(&socket) {
                    Ok(place) => Ok((socket, place)),
                    Err(what) => Err(NotPassed::Unfit { name, what }),
                }
            }
            (Some(_), count) => {
                sockets.retain(|(of, _)| of != name);
                Err(NotPassed::Several { name: name.to_owned(), count })
            }
            (None, _) => Err(NotPassed::Missing { name: name.to_owned(), passed: names(&sockets) }),
        }
    }

    /// Logs what nobody has taken of the manager's sockets, and closes it.
    pub(crate) fn end_named(&self) {
        for (name, _) in std::mem::take(&mut *self.sockets()) {
            tracing::warn!(
                "socket {name:?} was passed, and neither `ctl` nor a [[listen]] has it: \
                 nobody answers there"
            );
        }
    }
}

fn names(sockets: &[(String, OwnedFd)]) -> String {
    let names: Vec<_> = sockets.iter().map(|(name, _)| format!("{name:?}")).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// Where clients find a stream socket that listens; else what is wrong with it.
fn stream_place(socket: &OwnedFd) -> Result<Place, String> {
    let kind = sockopt::socket_type(socket).map_err(|errno| match errno {
        Errno::NOTSOCK => "is no socket".to_owned(),
        errno => errno.to_string(),
    })?;
    if kind != SocketType::STREAM {
        return Err(format!("is of socket type {}", kind.as_raw()));
    }
    place(socket)
}

/// Where others find a socket that listens; else what is wrong with it.
pub(crate) fn place(socket: &OwnedFd) -> Result<Place, String> {
    let said = |errno: Errno| errno.to_string();
    if !sockopt::socket_acceptconn(socket).map_err(said)? {
        return Err("does not listen (Accept=no is needed in its socket unit)".to_owned());
    }
    let socket = socket.try_clone().map_err(|error| error.to_string())?;
    match sockopt::socket_domain(&socket).map_err(said)? {
        AddressFamily::UNIX => {
            let address = UnixListener::from(socket).local_addr();
            let address = address.map_err(|error| error.to_string())?;
            let path = address.as_pathname().ok_or("has no path, by which clients find it")?;
            if let Err(error) = std::fs::symlink_metadata(path) {
                return Err(format!("cannot be reached any more at {}: {error}", path.display()));
            }
            std::path::absolute(path).map(Place::Unix).map_err(|error| error.to_string())
        }
        AddressFamily::INET | AddressFamily::INET6 => {
            let address = std::net::TcpListener::from(socket).local_addr();
            address.map(Place::Tcp).map_err(|error| error.to_string())
        }
        family => Err(format!("is of address family {}", family.as_raw())),
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::unix::net::{UnixDatagram, UnixStream};

    use super::*;

    fn passed(sockets: Vec<(&str, OwnedFd)>) -> Passed {
        let named = sockets.into_iter().map(|(name, socket)| (name.to_owned(), socket));
        Passed::named(named.collect())
    }

    #[test]
    fn socket_is_taken_by_its_name_once_with_where_it_is() {
        let dir = tempfile::tempdir().expect("a directory");
        let at = dir.path().join("nbd.sock");
        let unix = UnixListener::bind(&at).expect("a socket");
        let tcp = TcpListener::bind("127.0.0.1:0").expect("a socket");
        let address = tcp.local_addr().expect("an address");
        let passed = passed(vec![("nbd", unix.into()), ("nbd-tcp", tcp.into())]);
        assert_eq!(
            passed.take("nbd").expect("it is there").1.to_string(),
            at.display().to_string()
        );
        let refused = passed.take("nbd").expect_err("it is taken").to_string();
        assert_eq!(refused, "no socket \"nbd\" was passed to this server; passed: \"nbd-tcp\"");
        assert_eq!(passed.take("nbd-tcp").expect("it is").1.to_string(), address.to_string());
        let refused = passed.take("nbd").expect_err("none is left").to_string();
        assert!(refused.ends_with("passed: none"), "{refused}");
    }

    #[test]
    fn what_nobody_can_connect_to_is_refused_with_what_it_is() {
        let file = || OwnedFd::from(std::fs::File::open("/dev/null").expect("a file"));
        let (connected, _other) = UnixStream::pair().expect("sockets");
        let datagrams = UnixDatagram::unbound().expect("a socket");
        let dir = tempfile::tempdir().expect("a directory");
        let gone = UnixListener::bind(dir.path().join("gone")).expect("a socket");
        std::fs::remove_file(dir.path().join("gone")).expect("it is there");
        for (sockets, said) in [
            (vec![("nbd", gone.into())], "cannot be reached any more at "),
            (vec![("nbd", file())], "is no socket; a stream socket"),
            (vec![("nbd", connected.into())], "does not listen (Accept=no"),
            (vec![("nbd", datagrams.into())], "is of socket type 2"),
            (vec![("nbd", file()), ("nbd", file())], "2 sockets \"nbd\" were passed"),
        ] {
            let passed = passed(sockets);
            let refused = passed.take("nbd").expect_err(said).to_string();
            assert!(refused.contains(said), "{refused}");
            assert_eq!(
                names(&passed.sockets()),
                "none",
                "of nothing else is to be said that it is unused"
            );
        }
    }
}
