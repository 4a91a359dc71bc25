//! What the server before has handed over: sockets that listen, images, the directory of records.
//!
//! ```text
//!   a socket   found by where it listens      ─┐
//!   a file     found by its device and inode  ─┴─▶ taken in place of a new one
//! ```
//!
//! So nothing has to be named between two servers, whose files may differ: what this one's file
//! does not have is closed, and what the other did not have is opened.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::{FileType, fstat};

use crate::passed::place;
use crate::sockets::set_mode;
use crate::uri::Place;

/// Descriptors that were handed over and have not been taken.
#[derive(Debug, Default)]
pub(crate) struct Inherited {
    all: Mutex<Descriptors>,
    is_ours: Ownership,
    /// The permission bits that files of sockets are to have.
    modes: Mutex<Vec<(PathBuf, u32)>>,
}

#[derive(Debug, Default)]
struct Descriptors {
    sockets: Vec<(Place, OwnedFd)>,
    /// By device and inode.
    files: BTreeMap<(u64, u64), Vec<OwnedFd>>,
}

/// Whether what was handed over is this server's: the other one serves until then.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ownership(Arc<AtomicBool>);

impl Ownership {
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

impl Inherited {
    fn all(&self) -> MutexGuard<'_, Descriptors> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it is this server's.
    pub(crate) fn ours(&self) -> Ownership {
        self.is_ours.clone()
    }

    /// The file of a socket is to have these permission bits, once it is this server's.
    pub(crate) fn set_mode_later(&self, path: &Path, mode: u32) {
        let mut modes = self.modes.lock().unwrap_or_else(PoisonError::into_inner);
        modes.push((path.to_owned(), mode));
    }

    /// All of it is this server's from now on.
    pub(crate) fn take_over(&self) {
        self.is_ours.0.store(true, Ordering::Release);
        let modes = std::mem::take(&mut *self.modes.lock().unwrap_or_else(PoisonError::into_inner));
        for (path, mode) in modes {
            if let Err(errno) = set_mode(&path, mode) {
                tracing::warn!("{} does not get the mode {mode:o}: {errno}", path.display());
            }
        }
    }

    /// Another descriptor. What is neither a socket that listens nor a file is an error.
    pub(crate) fn add(&self, fd: OwnedFd) -> io::Result<()> {
        let seen = fstat(&fd)?;
        if FileType::from_raw_mode(seen.st_mode) == FileType::Socket {
            let place = place(&fd).map_err(|what| io::Error::other(format!("a socket {what}")))?;
            self.all().sockets.push((place, fd));
        } else {
            self.all().files.entry((seen.st_dev, seen.st_ino)).or_default().push(fd);
        }
        Ok(())
    }

    /// Takes the socket that listens on that path.
    pub(crate) fn unix_socket(&self, path: &Path) -> Option<OwnedFd> {
        let path = std::path::absolute(path).ok()?;
        self.socket(|at| matches!(at, Place::Unix(at) if *at == path))
    }

    /// Takes the socket that listens on that address.
    pub(crate) fn tcp_socket(&self, address: SocketAddr) -> Option<OwnedFd> {
        self.socket(|at| matches!(at, Place::Tcp(at) if *at == address))
    }

    fn socket(&self, is_it: impl Fn(&Place) -> bool) -> Option<OwnedFd> {
        let mut all = self.all();
        let at = all.sockets.iter().position(|(place, _)| is_it(place))?;
        Some(all.sockets.swap_remove(at).1)
    }

    /// Takes what is open of the file, directory or block device at that path.
    pub(crate) fn file(&self, path: &Path) -> Option<OwnedFd> {
        let mut all = self.all();
        if all.files.is_empty() {
            return None;
        }
        let seen = fs::metadata(path).ok()?;
        all.files.get_mut(&(seen.dev(), seen.ino()))?.pop()
    }

    /// Closes what nobody has taken.
    pub(crate) fn end(&self) {
        let Descriptors { sockets, files } = std::mem::take(&mut *self.all());
        for (place, _) in sockets {
            tracing::warn!("{place}, where the server before listens, is not in this one's file");
        }
        let files = files.into_values().map(|same| same.len()).sum::<usize>();
        if files > 0 {
            tracing::warn!("{files} images of the server before are not in this one's file");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::net::TcpListener;
    use std::os::unix::net::{UnixListener, UnixStream};

    use super::*;

    #[test]
    fn descriptors_are_found_by_what_they_are_and_taken_once() {
        let dir = tempfile::tempdir().expect("a directory");
        let [socket, image] = ["nbd.sock", "vm.img"].map(|name| dir.path().join(name));
        let tcp = TcpListener::bind("127.0.0.1:0").expect("a socket");
        let address = tcp.local_addr().expect("an address");
        let inherited = Inherited::default();
        for fd in [
            OwnedFd::from(UnixListener::bind(&socket).expect("a socket")),
            tcp.into(),
            File::create_new(&image).expect("a file").into(),
            File::open(&image).expect("a file").into(),
        ] {
            inherited.add(fd).expect("it is one of them");
        }
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&image, &link).expect("a link");
        assert!(inherited.unix_socket(&image).is_none());
        assert!(inherited.unix_socket(&socket).is_some());
        assert!(inherited.unix_socket(&socket).is_none(), "it is taken");
        assert!(inherited.tcp_socket(address).is_some());
        assert!(inherited.file(&link).is_some(), "by another name");
        assert!(inherited.file(&image).is_some(), "it is open twice");
        assert!(inherited.file(&image).is_none());
        assert!(inherited.file(dir.path()).is_none());
    }

    #[test]
    fn socket_that_does_not_listen_is_refused() {
        let (one, _other) = UnixStream::pair().expect("sockets");
        let refused = Inherited::default().add(one.into()).expect_err("a client's");
        assert!(refused.to_string().contains("does not listen"), "{refused}");
    }
}
