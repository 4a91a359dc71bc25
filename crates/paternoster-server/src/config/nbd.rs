//! A disk that is an export of another NBD server: `backend = "nbd"`.
//!
//! The server is asked for the export's size when the configuration is checked, and left again.
//! Where it cannot be asked, `size` has to say it; where it can, both have to agree. Of a disk that
//! is served with the same URI, what is known is taken: a reload asks nobody.

use std::net::{SocketAddr, TcpListener, ToSocketAddrs as _};
use std::path::Path;

use paternoster::Nanos;
use paternoster_disk::{AfterReconnect, NbdOptions, NbdPlace, NbdUri, ask_far};

use super::disk::{BackendConfig, Behind, Beside, Checked, OfKind};
use super::draft::{At, Bounds, DraftDisk};
use super::error::{Mistake, Problem};
use super::listen::{self, ListenAddress};
use super::mistakes::Mistakes;
use super::size;

/// The keys that such a disk takes beside those of every disk.
pub(super) const KEYS: [&str; 7] =
    ["size", "uri", "connections", "reconnect", "resends", "answer_timeout", "after_reconnect"];

/// Connections where nothing is written, if the server says that there may be several.
const DEFAULT_CONNECTIONS: u32 = 4;

const CONNECTIONS: Bounds = Bounds { key: "connections", min: 1, max: 64, unit: "connections" };

/// How long requests wait for a lost connection where nothing is written.
const DEFAULT_RECONNECT: Nanos = Nanos::from_millis(30_000);

/// How often a request is sent again where nothing is written.
const DEFAULT_RESENDS: u32 = 10;

const RESENDS: Bounds = Bounds { key: "resends", min: 0, max: 1000, unit: "times" };

/// How long a request waits for its answer where nothing is written.
const DEFAULT_ANSWER_TIMEOUT: Nanos = Nanos::from_millis(30_000);

/// The longest `reconnect` and `answer_timeout`, in milliseconds: a day.
const SPAN_MAX_MS: u64 = 86_400_000;

/// The units of a span of time, in milliseconds.
const UNITS: [(&str, u64); 3] = [("ms", 1), ("s", 1_000), ("m", 60_000)];

/// A disk of this kind, as far as it is right; `is_written` says whether clients may write to it.
pub(super) fn check(
    of: OfKind<'_>,
    beside: Beside<'_>,
    is_written: bool,
    mistakes: &mut Mistakes,
) -> Behind {
    let DraftDisk { uri, size, .. } = of.draft;
    let parsed = of.required("uri", uri, mistakes, check_uri);
    let size = size.check(mistakes, |found| size::check("size", found));
    let options = check_options(of.draft, parsed.as_ref(), mistakes);
    let (Some(parsed), Some(place), Some(size)) = (parsed, uri.place(), size) else {
        return Behind::default();
    };
    let at = At { value: &parsed, place: place.clone() };
    let known = beside.served.iter().find_map(|disk| known(&disk.backend, &parsed, size));
    let looked = check_other(&at, beside.sockets)
        .and_then(|()| known.map_or_else(|| look_at(&at, size, is_written), Ok));
    let Some(Look { size: bytes, rotational, block }) = mistakes.note(looked) else {
        return Behind::default();
    };
    let backend = options.map(|options| BackendConfig::Nbd { options, size: bytes, rotational });
    Behind::no_file(backend, Some(bytes), rotational).with_block(block)
}

/// How a server is used; none where something is wrong.
fn check_options(
    draft: &DraftDisk,
    uri: Option<&NbdUri>,
    mistakes: &mut Mistakes,
) -> Option<NbdOptions> {
    let DraftDisk { connections, reconnect, resends, answer_timeout, after_reconnect, .. } = draft;
    let connections = connections
        .check_or(DEFAULT_CONNECTIONS, mistakes, |connections| CONNECTIONS.check(connections));
    let reconnect =
        reconnect.check_or(DEFAULT_RECONNECT, mistakes, |span| check_span("reconnect", 0, span));
    let resends = resends.check_or(DEFAULT_RESENDS, mistakes, |resends| RESENDS.check(resends));
    let answer_timeout = answer_timeout
        .check_or(DEFAULT_ANSWER_TIMEOUT, mistakes, |span| check_span("answer_timeout", 1, span));
    let after_reconnect =
        after_reconnect.check_or(AfterReconnect::default(), mistakes, check_after_reconnect);
    Some(NbdOptions {
        uri: uri?.clone(),
        connections: connections?,
        reconnect: reconnect?,
        resends: resends?,
        answer_timeout: answer_timeout?,
        after_reconnect: after_reconnect?,
    })
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
    draft: &DraftDisk,
    disk: &Checked,
    before: &[Checked],
) -> Result<(), Mistake> {
    let (Some(uri), Some(place)) = (uri_of(disk), draft.uri.place()) else { return Ok(()) };
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

fn check_uri(text: &At<String>) -> Result<NbdUri, Mistake> {
    let parsed = parse_uri(text)?;
    match &parsed.place {
        NbdPlace::Unix(path) if path.is_relative() => {
            text.refuse(Problem::RelativeUri { path: path.clone() })
        }
        _ => Ok(parsed),
    }
}

fn parse_uri(text: &At<String>) -> Result<NbdUri, Mistake> {
    text.value
        .parse()
        .or_else(|error| text.refuse(Problem::BadUri { found: text.value.clone(), error }))
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

/// A span of at least so many milliseconds.
fn check_span(key: &'static str, least: u64, text: &At<String>) -> Result<Nanos, Mistake> {
    let span = UNITS.iter().find_map(|(unit, millis)| {
        let digits = text.value.strip_suffix(unit)?;
        let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        digits.parse::<u64>().ok().filter(|_| plain)?.checked_mul(*millis)
    });
    match span.filter(|millis| (least..=SPAN_MAX_MS).contains(millis)) {
        Some(millis) => Ok(Nanos::from_millis(millis)),
        None => text.refuse(Problem::BadSpan { key, found: text.value.clone(), least }),
    }
}

fn check_after_reconnect(name: &At<String>) -> Result<AfterReconnect, Mistake> {
    let named = AfterReconnect::ALL.into_iter().find(|known| known.name() == name.value);
    named.map_or_else(
        || name.refuse(Problem::UnknownAfterReconnect { found: name.value.clone() }),
        Ok,
    )
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
    use super::super::error::Place;
    use super::*;

    #[test]
    fn spans_of_time_have_a_unit() {
        let at_least = |least, text: &str| {
            let text = At { value: text.to_owned(), place: Place::default() };
            check_span("reconnect", least, &text).ok()
        };
        let of = |text: &str| at_least(0, text);
        assert_eq!(of("30s"), Some(Nanos::from_millis(30_000)));
        assert_eq!(of("250ms"), Some(Nanos::from_millis(250)));
        assert_eq!(of("2m"), Some(Nanos::from_millis(120_000)));
        assert_eq!(of("0s"), Some(Nanos::ZERO));
        assert_eq!(at_least(1, "0s"), None, "nothing is answered at once");
        assert_eq!(at_least(1, "1ms"), Some(Nanos::from_millis(1)));
        for wrong in ["", "s", "30", "-1s", "1.5s", "1441m", "3h", "+3s", "99999999999999999999s"] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
    }

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
