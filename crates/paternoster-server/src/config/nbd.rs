//! A disk that is an export of another NBD server: `backend = "nbd"`.
//!
//! The server is asked for the export's size when the configuration is checked, and left again.
//! Where it cannot be asked, `size` has to say it; where it can, both have to agree. Of a disk that
//! is served with the same URI, what is known is taken: a reload asks nobody.

use std::net::{SocketAddr, TcpListener, ToSocketAddrs as _};
use std::path::Path;

use paternoster_disk::{NbdOptions, NbdPlace, NbdUri, ask_far};

use super::disk::{BackendConfig, Behind, Beside, Checked, OfKind};
use super::error::{Mistake, Problem};
use super::keys::{At, DiskKeys, Object};
use super::listen::{self, ListenAddress};
use super::mistakes::Mistakes;

/// A disk of this kind, as far as it is right; `is_written` says whether clients may write to it.
pub(super) fn check(
    of: OfKind<'_>,
    beside: Beside<'_>,
    is_written: bool,
    mistakes: &mut Mistakes,
) -> Behind {
    let Object { keys, states, .. } = of.draft;
    let uri = of.required("uri", keys.uri.clone(), &states.uri, mistakes);
    let uri = uri.zip(states.uri.place()).filter(|_| !states.size.is_wrong());
    let Some((uri, place)) = uri else { return Behind::default() };
    let at = At { value: &uri, place: place.clone() };
    let known = beside.served.iter().find_map(|disk| known(&disk.backend, &uri, keys.size));
    let looked = check_absolute(&at)
        .and_then(|()| check_other(&at, beside.sockets))
        .and_then(|()| known.map_or_else(|| look_at(&at, keys.size, is_written), Ok));
    let Some(Look { size, rotational, block }) = mistakes.note(looked) else {
        return Behind::default();
    };
    let &DiskKeys { connections, reconnect, resends, answer_timeout, after_reconnect, .. } = keys;
    let uri = uri.clone();
    let options =
        NbdOptions { uri, connections, reconnect, resends, answer_timeout, after_reconnect };
    let backend = BackendConfig::Nbd { options, size, rotational };
    Behind::no_file(Some(backend), Some(size), rotational).with_block(block)
}

/// What is known of the far export.
#[derive(Clone, Copy)]
struct Look {
    size: u64,
    rotational: bool,
    /// Bytes of its smallest block; none where it was not asked.
    block: Option<u32>,
}

/// What is known of it as a disk that is served, unless another size is written.
fn known(served: &BackendConfig, uri: &NbdUri, written: Option<u64>) -> Option<Look> {
    let &BackendConfig::Nbd { ref options, size, rotational } = served else { return None };
    let is_it = options.uri == *uri && written.is_none_or(|written| written == size);
    is_it.then_some(Look { size, rotational, block: None })
}

/// Refuses an export that is one of the disks `before` already.
pub(super) fn check_alone(
    draft: &Object<DiskKeys>,
    disk: &Checked,
    before: &[Checked],
) -> Result<(), Mistake> {
    let (Some(uri), Some(place)) = (uri_of(disk), draft.states.uri.place()) else { return Ok(()) };
    match before.iter().find(|other| uri_of(other) == Some(uri)) {
        Some(other) => {
            let (uri, other) = (uri.to_string(), other.name.clone());
            Err(place.mistake(Problem::SameUri { uri, other }))
        }
        None => Ok(()),
    }
}

fn uri_of(disk: &Checked) -> Option<&NbdUri> {
    match &disk.config.as_ref()?.backend {
        BackendConfig::Nbd { options, .. } => Some(&options.uri),
        _ => None,
    }
}

/// Refuses a server that is this one: it would wait for itself.
fn check_other(uri: &At<&NbdUri>, sockets: &listen::Checked) -> Result<(), Mistake> {
    match sockets.sockets().find(|listen| is_at(&uri.value.place, &listen.address)) {
        Some(listen) => {
            let (uri_text, address) = (uri.value.to_string(), listen.address.to_string());
            uri.refuse(Problem::OwnSocket { uri: uri_text, address })
        }
        None => Ok(()),
    }
}

fn check_absolute(uri: &At<&NbdUri>) -> Result<(), Mistake> {
    match &uri.value.place {
        NbdPlace::Unix(path) if path.is_relative() => {
            uri.refuse(Problem::RelativeUri { path: path.clone() })
        }
        _ => Ok(()),
    }
}

/// The far export, where it can be asked for and is as it has to be.
fn look_at(uri: &At<&NbdUri>, size: Option<u64>, is_written: bool) -> Result<Look, Mistake> {
    let far = match (ask_far(uri.value), size) {
        (Ok(far), _) => far,
        (Err(_), Some(size)) => return Ok(Look { size, rotational: false, block: None }),
        (Err(error), None) => {
            let uri_text = uri.value.to_string();
            return uri.refuse(Problem::FarNotShown { uri: uri_text, reason: error.to_string() });
        }
    };
    let uri_text = || uri.value.to_string();
    if let Some(size) = size.filter(|&size| size != far.size()) {
        return uri.refuse(Problem::FarSize { uri: uri_text(), size, found: far.size() });
    }
    if is_written && far.is_read_only() {
        return uri.refuse(Problem::FarReadOnly { uri: uri_text() });
    }
    let block = Some(far.capabilities().block);
    Ok(Look { size: far.size(), rotational: far.is_rotational(), block })
}

/// Whether the server's place is that of this socket.
fn is_at(place: &NbdPlace, socket: &ListenAddress) -> bool {
    match (place, socket) {
        (NbdPlace::Unix(path), ListenAddress::Unix { path: own, .. }) => are_one(path, own),
        (NbdPlace::Tcp { host, port }, ListenAddress::Tcp(own)) => {
            let resolved = (host.as_str(), *port).to_socket_addrs();
            own.port() == *port && resolved.is_ok_and(|mut all| all.any(|at| reaches(at, *own)))
        }
        _ => false,
    }
}

/// Whether both are one file's path. The socket itself need not be there yet.
fn are_one(one: &Path, other: &Path) -> bool {
    let whole = |path: &Path| {
        let path = std::path::absolute(path).ok()?;
        let directory = || Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?));
        path.canonicalize().ok().or_else(directory)
    };
    one == other || whole(one).is_some_and(|one| whole(other) == Some(one))
}

/// Whether a connection to `at` arrives at a socket that listens on `own`, where ports are equal.
fn reaches(at: SocketAddr, own: SocketAddr) -> bool {
    let [at, own] = [at, own].map(|address| address.ip().to_canonical());
    // Nothing in particular is this machine, for who connects; for who listens, all of it.
    let to_here = at.is_unspecified() || at.is_loopback();
    at == own
        || at.is_unspecified() && own.is_loopback()
        || own.is_unspecified() && (to_here || TcpListener::bind((at, 0)).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_sockets_are_found_behind_other_names_of_theirs() {
        let dir = tempfile::tempdir().expect("a directory");
        std::os::unix::fs::symlink(dir.path(), dir.path().join("again")).expect("a link");
        let at = |name: &str| dir.path().join(name);
        assert!(are_one(&at("a.sock"), &at("again/a.sock")));
        assert!(!are_one(&at("a.sock"), &at("b.sock")));
        let tcp = |host: &str, port, own: &str| {
            let place = NbdPlace::Tcp { host: host.to_owned(), port };
            is_at(&place, &ListenAddress::Tcp(own.parse().expect("an address")))
        };
        assert!(tcp("127.0.0.1", 7, "0.0.0.0:7"));
        assert!(tcp("::1", 7, "[::1]:7"));
        assert!(tcp("0.0.0.0", 7, "127.0.0.1:7"));
        assert!(tcp("::ffff:127.0.0.1", 7, "127.0.0.1:7"));
        assert!(tcp("127.0.0.9", 7, "0.0.0.0:7"));
        assert!(!tcp("127.0.0.1", 8, "0.0.0.0:7"));
        assert!(!tcp("192.0.2.1", 7, "127.0.0.1:7"));
        assert!(!tcp("192.0.2.1", 7, "0.0.0.0:7"), "it is no address of this machine");
    }
}
