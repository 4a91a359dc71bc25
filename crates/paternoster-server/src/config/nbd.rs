//! A disk, or a volume of a pool, that is an export of another NBD server: `backend = "nbd"`.
//!
//! The server is asked for the export's size when the configuration is checked, and left again.
//! Where it cannot be asked, `size` has to say it; where it can, both have to agree. Of a disk that
//! is served with the same URI, what is known is taken: a reload asks nobody.

use std::net::{SocketAddr, TcpListener, ToSocketAddrs as _};
use std::path::Path;
use std::time::{Duration, Instant};

use paternoster_disk::{NbdOptions, NbdPlace, NbdUri, ask_far};

use super::disk::{BackendConfig, Behind, Beside, OfKind};
use super::error::Problem;
use super::keys::{At, DISK, DiskKeys, ExportKeys, Object, State, VOLUME};
use super::locations::Locations;
use super::mistakes::Mistakes;
use crate::uri::Place;

/// Connections to the server of a disk, and to that of a volume of a pool.
const OF_DISK: u32 = 4;
const OF_VOLUME: u32 = 1;

/// How long it takes at least to find out that a server is silent.
pub(crate) const SILENT: Duration = Duration::from_secs(1);

/// A disk of this kind, as far as it is right; `is_written` says whether clients may write to it.
pub(super) fn check_disk(
    of: OfKind<'_>,
    beside: Beside<'_>,
    is_written: bool,
    locations: &mut Locations,
    mistakes: &mut Mistakes,
) -> Behind {
    let Object { keys, states, .. } = of.draft;
    of.required("uri", keys.uri.clone(), &states.uri, mistakes);
    let written = (keys.uri.as_ref(), &states.uri, keys.size, &states.size);
    check(written, keys, (DISK, is_written), (beside, locations), mistakes)
}

/// The same of a volume of a pool.
pub(super) fn check_volume(
    (volume, pool): (&Object<ExportKeys>, &Object<DiskKeys>),
    beside: Beside<'_>,
    is_written: bool,
    locations: &mut Locations,
    mistakes: &mut Mistakes,
) -> Behind {
    let Object { name, keys, states, has_gaps, .. } = volume;
    if states.uri.is_missing() && !has_gaps {
        let problem = Problem::NoVolumeKey { volume: name.value.clone(), key: "uri" };
        mistakes.add(&name.place, problem);
    }
    let written = (keys.uri.as_ref(), &states.uri, keys.size, &states.size);
    check(written, &pool.keys, (VOLUME, is_written), (beside, locations), mistakes)
}

/// How a server is used, by the keys of its disk, or of the pool of its volume.
pub(crate) fn options(of: &DiskKeys, uri: &NbdUri) -> NbdOptions {
    let &DiskKeys { connections, reconnect, resends, answer_timeout, after_reconnect, .. } = of;
    // A pool has none itself.
    let default = if of.uri.is_some() { OF_DISK } else { OF_VOLUME };
    let (uri, connections) = (uri.clone(), connections.unwrap_or(default));
    NbdOptions { uri, connections, reconnect, resends, answer_timeout, after_reconnect }
}

fn check(
    (uri, of_uri, written, of_size): (Option<&NbdUri>, &State, Option<u64>, &State),
    keys: &DiskKeys,
    (what, is_written): (&'static str, bool),
    (beside, locations): (Beside<'_>, &mut Locations),
    mistakes: &mut Mistakes,
) -> Behind {
    let uri = uri.zip(of_uri.place()).filter(|_| !of_size.is_wrong());
    let Some((uri, place)) = uri else { return Behind::default() };
    let at = At { value: uri, place: place.clone() };
    let known = beside.served.disks.iter().flat_map(|disk| {
        let volumes = disk.volumes.iter().map(|volume| &volume.backend);
        volumes.chain([&disk.backend])
    });
    let known = known.into_iter().find_map(|backend| known_as(backend, uri, written));
    let own = beside.sockets.places().chain(beside.served.places.iter().cloned());
    let looked = check_absolute(uri).and_then(|()| check_other(uri, own)).and_then(|()| {
        known.map_or_else(|| look_once(uri, written, (what, is_written), locations), Ok)
    });
    let looked = looked.or_else(|problem| at.refuse(problem));
    let Some(Look { size, rotational, block }) = mistakes.note(looked) else {
        return Behind::default();
    };
    let backend = BackendConfig::Nbd { options: options(keys, uri), size, rotational };
    Behind::no_file(Some(backend), Some(size), rotational).with_block(block)
}

/// Refuses a pool whose volumes are on several servers, unless it says what these have in common.
pub(super) fn check_one_server<'v>(
    pool: &Object<DiskKeys>,
    volumes: impl Iterator<Item = &'v Object<ExportKeys>>,
    mistakes: &mut Mistakes,
) {
    if !pool.states.device.is_missing() {
        return;
    }
    let mut uris = volumes.filter_map(|volume| Some((volume.keys.uri.as_ref()?, &volume.states)));
    let Some((first, _)) = uris.next() else { return };
    let other = uris.find(|(uri, _)| server(uri) != server(first));
    if let Some((other, states)) = other {
        let problem = Problem::SeveralServers {
            pool: pool.name.value.clone(),
            one: first.to_string(),
            other: other.to_string(),
        };
        mistakes.note(states.uri.refuse(problem));
    }
}

/// What tells two servers from one: the host, or the path of the socket.
pub(crate) fn server(uri: &NbdUri) -> String {
    match &uri.place {
        NbdPlace::Unix(path) => path.display().to_string(),
        NbdPlace::Tcp { host, .. } => host.clone(),
    }
}

/// The bytes of a far export; else why it cannot be a volume.
pub(crate) fn far_size(uri: &NbdUri, is_written: bool) -> Result<u64, String> {
    let looked = look_at(uri, None, VOLUME, is_written);
    looked.map(|look| look.size).map_err(|problem| problem.to_string())
}

/// What the far export of a volume that is made by request is; else why it cannot be one.
pub(crate) fn ask(
    pool: &DiskKeys,
    (uri, size, is_written): (&NbdUri, Option<u64>, bool),
    own: &[Place],
) -> Result<BackendConfig, String> {
    let looked = check_absolute(uri)
        .and_then(|()| check_other(uri, own.iter().cloned()))
        .and_then(|()| look_at(uri, size, VOLUME, is_written));
    let Look { size, rotational, .. } = looked.map_err(|problem| problem.to_string())?;
    Ok(BackendConfig::Nbd { options: options(pool, uri), size, rotational })
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
fn known_as(served: &BackendConfig, uri: &NbdUri, written: Option<u64>) -> Option<Look> {
    let &BackendConfig::Nbd { ref options, size, rotational } = served else { return None };
    let is_it = options.uri == *uri && written.is_none_or(|written| written == size);
    is_it.then_some(Look { size, rotational, block: None })
}

/// Refuses a far disk of this server itself, which clients find at those places; they are all known
/// when its sockets listen.
pub(crate) fn check_far(backend: &BackendConfig, own: &[Place]) -> Result<(), String> {
    let BackendConfig::Nbd { options, .. } = backend else { return Ok(()) };
    check_other(&options.uri, own.iter().cloned()).map_err(|problem| problem.to_string())
}

/// Refuses a server that is this one: it would wait for itself.
fn check_other(uri: &NbdUri, own: impl IntoIterator<Item = Place>) -> Result<(), Problem> {
    let own = own.into_iter().find(|own| is_at(&uri.place, own));
    own.map_or(Ok(()), |own| {
        Err(Problem::OwnSocket { uri: uri.to_string(), address: own.to_string() })
    })
}

fn check_absolute(uri: &NbdUri) -> Result<(), Problem> {
    let socket = match &uri.place {
        NbdPlace::Unix(path) => Some(("socket", path)),
        NbdPlace::Tcp { .. } => None,
    };
    let folder = uri.tls.as_ref().map(|tls| ("tls-certificates", &tls.certificates));
    match socket.into_iter().chain(folder).find(|(_, path)| path.is_relative()) {
        Some((what, path)) => Err(Problem::RelativeUri { what, path: path.clone() }),
        None => Ok(()),
    }
}

/// What a far export is: of a server that is silent it is asked once, and of others what is written
/// holds.
fn look_once(
    uri: &NbdUri,
    written: Option<u64>,
    (what, is_written): (&'static str, bool),
    locations: &mut Locations,
) -> Result<Look, Problem> {
    if let Some(size) = written.filter(|_| locations.silent.contains(&uri.place)) {
        return Ok(Look { size, rotational: false, block: None });
    }
    let begun = Instant::now();
    let look = look_at(uri, written, what, is_written);
    if begun.elapsed() >= SILENT {
        locations.silent.push(uri.place.clone());
    }
    look
}

/// The far export, where it can be asked for and is as it has to be.
fn look_at(
    uri: &NbdUri,
    size: Option<u64>,
    what: &'static str,
    is_written: bool,
) -> Result<Look, Problem> {
    let text = || uri.to_string();
    let far = match (ask_far(uri), size) {
        (Ok(far), _) => far,
        (Err(_), Some(size)) => return Ok(Look { size, rotational: false, block: None }),
        (Err(error), None) => {
            return Err(Problem::FarNotShown { uri: text(), what, reason: error.to_string() });
        }
    };
    if let Some(size) = size.filter(|&size| size != far.size()) {
        return Err(Problem::FarSize { uri: text(), size, found: far.size() });
    }
    if is_written && far.is_read_only() {
        return Err(Problem::FarReadOnly { uri: text(), what });
    }
    let block = Some(far.capabilities().block);
    Ok(Look { size: far.size(), rotational: far.is_rotational(), block })
}

/// Whether the server's place is that of this socket.
fn is_at(place: &NbdPlace, socket: &Place) -> bool {
    match (place, socket) {
        (NbdPlace::Unix(path), Place::Unix(own)) => are_one(path, own),
        (NbdPlace::Tcp { host, port }, Place::Tcp(own)) => {
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
            is_at(&place, &Place::Tcp(own.parse().expect("an address")))
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
