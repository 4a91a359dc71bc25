//! Where clients and operators connect, and which exports each socket offers.
//!
//! ```text
//!   unix, unix_mode, tcp   of the file or as options: sockets that offer every export
//!   [[listen]]             further ones, each with the exports that it offers, or every one
//!   nothing of these       paternoster.sock, in the current directory
//! ```
//!
//! A client that reaches a socket may enter what that offers, and hears of nothing else. So tenants
//! who do not trust each other share a disk where each reaches a socket of its own.

use std::fmt;
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::draft::{At, Draft, DraftListen, Key, NO_PATH, Number};
use super::error::{Mistake, Place, Problem};
use super::machine;
use super::mistakes::Mistakes;
use crate::ctl;
use crate::sockets::UNIX_PATH_MAX;

/// A socket on which clients connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    /// Where it is.
    pub address: ListenAddress,
    /// The exports that it offers, as indices into [`Config::exports`](super::Config::exports);
    /// all of them if nothing was written.
    pub exports: Option<Vec<usize>>,
}

/// Where a socket is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenAddress {
    /// A unix socket.
    Unix {
        /// Its path.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// A TCP address; port 0 is any free one.
    Tcp(SocketAddr),
}

impl Listen {
    /// Returns a sentence about a unix socket that can be served, by a relative path, and whose URI
    /// no client can use.
    pub(super) fn notice(&self) -> Option<String> {
        let ListenAddress::Unix { path, .. } = &self.address else { return None };
        too_long_for_clients(path, &std::path::absolute(path).ok()?)
    }

    /// The unix socket, in the current directory, when nothing was written.
    pub const DEFAULT_UNIX: &str = "paternoster.sock";
    /// The mode of a unix socket when none was written.
    pub const DEFAULT_MODE: u32 = 0o600;

    /// Makes a unix socket of the default mode, which offers every export.
    pub fn unix(path: PathBuf) -> Self {
        let address = ListenAddress::Unix { path, mode: Self::DEFAULT_MODE };
        Self { address, exports: None }
    }

    /// Returns whether it offers an export, which is an index into
    /// [`Config::exports`](super::Config::exports).
    pub fn offers(&self, export: usize) -> bool {
        self.exports.as_ref().is_none_or(|exports| exports.contains(&export))
    }
}

impl ListenAddress {
    /// Whether both would be one socket; of two free ports they are not.
    fn is_that_of(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Unix { path, .. }, Self::Unix { path: other, .. }) => path == other,
            (Self::Tcp(address), Self::Tcp(other)) => address == other && address.port() != 0,
            _ => false,
        }
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix { path, .. } => path.display().fmt(f),
            Self::Tcp(address) => address.fmt(f),
        }
    }
}

const MODE_MAX: u32 = 0o777;

/// The sockets of clients, as far as they are right, and whether that is all of them.
pub(super) struct Checked {
    sockets: Vec<(Listen, Place)>,
    are_all: bool,
}

/// The sockets of clients.
pub(super) fn check(draft: &Draft, mistakes: &mut Mistakes) -> Checked {
    let mut checked = Checked { sockets: Vec::new(), are_all: true };
    let by_default = draft.unix.is_missing() && draft.tcp.is_missing() && draft.listen.is_empty();
    let of_whole = DraftListen {
        place: draft.whole.clone(),
        unix: if by_default { unwritten(draft, Listen::DEFAULT_UNIX) } else { draft.unix.clone() },
        unix_mode: draft.unix_mode.clone(),
        tcp: draft.tcp.clone(),
        ..DraftListen::default()
    };
    checked.add(&of_whole, draft, mistakes);
    for listen in &draft.listen {
        match (&listen.unix, &listen.tcp) {
            (Key::Missing, Key::Missing) if !listen.has_gaps => {
                mistakes.add(&listen.place, Problem::NoListenAddress);
                checked.are_all = false;
            }
            (Key::Written(_), Key::Written(tcp)) => {
                mistakes.add(&tcp.place, Problem::TwoListenAddresses);
                checked.are_all = false;
            }
            _ => {}
        }
        checked.add(listen, draft, mistakes);
    }
    checked
}

impl Checked {
    /// Adds the sockets that are written there, each if it is right and its own.
    fn add(&mut self, written: &DraftListen, draft: &Draft, mistakes: &mut Mistakes) {
        let exports = written.exports.check(mistakes, |names| check_offered(names, draft));
        let unix = written.unix.check(mistakes, check_socket);
        let mode = written.unix_mode.check_or(Listen::DEFAULT_MODE, mistakes, |mode| {
            if written.unix.is_missing() {
                return mode.refuse(Problem::ModeWithoutSocket);
            }
            check_mode(mode)
        });
        let tcp = written.tcp.check(mistakes, check_address);
        self.are_all &= exports.is_some() && unix.is_some() && mode.is_some() && tcp.is_some();
        let Some(exports) = exports else { return };
        let unix = unix.flatten().zip(mode);
        let unix = unix.map(|(path, mode)| ListenAddress::Unix { path, mode });
        let tcp = tcp.flatten().map(ListenAddress::Tcp);
        for (address, place) in [(unix, written.unix.place()), (tcp, written.tcp.place())] {
            let (Some(address), Some(place)) = (address, place) else { continue };
            if self.sockets.iter().any(|(other, _)| other.address.is_that_of(&address)) {
                mistakes.add(place, Problem::ListenTwice { address: address.to_string() });
                self.are_all = false;
            }
            self.sockets.push((Listen { address, exports: exports.clone() }, place.clone()));
        }
    }

    /// Notes exports that no socket offers, where it is known what all of them do.
    pub(super) fn check_reached(&self, draft: &Draft, mistakes: &mut Mistakes) {
        for (index, export) in draft.exports.iter().enumerate() {
            let is_offered = self.sockets.iter().any(|(listen, _)| listen.offers(index));
            if self.are_all && !is_offered {
                let name = export.name.value.clone();
                mistakes.add(&export.name.place, Problem::NotOffered { export: name });
            }
        }
    }

    /// The control socket, which is none of these; [`ctl::default_path`] if none was written.
    #[expect(clippy::option_option, reason = "one is whether it is right, one whether it is there")]
    pub(super) fn check_ctl(
        &self,
        draft: &Draft,
        mistakes: &mut Mistakes,
    ) -> Option<Option<PathBuf>> {
        match &draft.ctl {
            Key::Unreadable => None,
            Key::Written(At { value: None, .. }) => Some(None),
            Key::Written(At { value: Some(path), place }) => {
                let path = At { value: path.clone(), place: place.clone() };
                mistakes.note(self.check_apart(&path, check_socket)).map(Some)
            }
            Key::Missing if ctl::default_path().as_os_str() == NO_PATH => Some(None),
            Key::Missing => {
                let path = At { value: ctl::default_path(), place: draft.whole.clone() };
                mistakes.note(self.check_apart(&path, check_default_socket)).map(Some)
            }
        }
    }

    /// A socket that is none of these.
    fn check_apart(
        &self,
        path: &At<PathBuf>,
        check: fn(&At<PathBuf>) -> Result<PathBuf, Mistake>,
    ) -> Result<PathBuf, Mistake> {
        let checked = check(path)?;
        let own = ListenAddress::Unix { path: checked.clone(), mode: 0 };
        if self.sockets.iter().any(|(listen, _)| listen.address.is_that_of(&own)) {
            return path.refuse(Problem::SameSocket { path: checked });
        }
        Ok(checked)
    }

    /// The address of metrics, which is none of these.
    #[expect(clippy::option_option, reason = "one is whether it is right, one whether it is there")]
    pub(super) fn check_metrics(
        &self,
        draft: &Draft,
        mistakes: &mut Mistakes,
    ) -> Option<Option<SocketAddr>> {
        draft.metrics.check(mistakes, |text| {
            let address = check_address(text)?;
            let own = ListenAddress::Tcp(address);
            if self.sockets.iter().any(|(listen, _)| listen.address.is_that_of(&own)) {
                return text.refuse(Problem::SameAddress { address });
            }
            Ok(address)
        })
    }

    /// Those that are right.
    pub(super) fn sockets(&self) -> impl Iterator<Item = &Listen> {
        self.sockets.iter().map(|(listen, _)| listen)
    }

    /// All of them, if they are right.
    pub(super) fn into_sockets(self) -> Option<Vec<Listen>> {
        self.are_all.then(|| self.sockets.into_iter().map(|(listen, _)| listen).collect())
    }
}

/// The exports of these names, as indices in their order.
fn check_offered(names: &At<Vec<At<String>>>, draft: &Draft) -> Result<Vec<usize>, Mistake> {
    if names.value.is_empty() {
        return names.refuse(Problem::OffersNothing);
    }
    let mut exports = Vec::new();
    for name in &names.value {
        let found = draft.exports.iter().position(|export| export.name.value == name.value);
        match found {
            Some(export) if exports.contains(&export) => {
                return name.refuse(Problem::OfferedTwice { export: name.value.clone() });
            }
            Some(export) => exports.push(export),
            // It may be what is misspelt, and where there is none that is told.
            None if draft.has_gaps || draft.exports.is_empty() => {}
            None => {
                let known = draft.exports.iter().map(|export| format!("{:?}", export.name.value));
                let known = known.collect::<Vec<_>>().join(", ");
                return name.refuse(Problem::UnknownExport { export: name.value.clone(), known });
            }
        }
    }
    Ok(exports)
}

/// The path of a socket that is there unwritten.
fn unwritten(draft: &Draft, path: &str) -> Key<PathBuf> {
    Key::Written(At { value: path.into(), place: draft.whole.clone() })
}

fn check_socket(path: &At<PathBuf>) -> Result<PathBuf, Mistake> {
    check_path(path)?;
    machine::check_socket(path)?;
    Ok(path.value.clone())
}

/// The same of the control socket's default place, of which the server makes the directory.
fn check_default_socket(path: &At<PathBuf>) -> Result<PathBuf, Mistake> {
    check_path(path)?;
    if ctl::is_directory_to_be_made(&path.value) {
        return Ok(path.value.clone());
    }
    check_socket(path)
}

fn check_path(path: &At<PathBuf>) -> Result<(), Mistake> {
    if is_socket_path(&path.value) {
        return Ok(());
    }
    let (shown, len) = (path.value.clone(), path.value.as_os_str().len());
    path.refuse(Problem::BadSocketPath { path: shown, len, max: UNIX_PATH_MAX })
}

fn is_socket_path(path: &Path) -> bool {
    let bytes = path.as_os_str().as_bytes();
    (1..=UNIX_PATH_MAX).contains(&bytes.len()) && !bytes.contains(&0)
}

fn too_long_for_clients(path: &Path, absolute: &Path) -> Option<String> {
    let len = absolute.as_os_str().len();
    (len > UNIX_PATH_MAX).then(|| {
        format!(
            "unix = \"{}\": with its directory the path has {len} bytes, and clients can use \
             {UNIX_PATH_MAX} at most: the URIs of this socket are of no use; choose a shorter path",
            path.display()
        )
    })
}

fn check_address(text: &At<String>) -> Result<SocketAddr, Mistake> {
    text.value.parse().or_else(|_| text.refuse(Problem::BadAddress { found: text.value.clone() }))
}

fn check_mode(mode: &At<Number>) -> Result<u32, Mistake> {
    let (bits, found) = match &mode.value {
        Number::Plain(value) => (u32::try_from(*value).ok(), value.to_string()),
        Number::Text(text) => (parse_octal(text), format!("{text:?}")),
    };
    match bits.filter(|&bits| bits <= MODE_MAX) {
        Some(bits) => Ok(bits),
        None => mode.refuse(Problem::BadMode { found }),
    }
}

fn parse_octal(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("0o").unwrap_or(text);
    if digits.starts_with('+') { None } else { u32::from_str_radix(digits, 8).ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn socket_that_no_client_can_name_is_told() {
        let said = |len: usize| {
            let absolute = format!("/{}/s.sock", "d".repeat(len - "//s.sock".len()));
            too_long_for_clients(Path::new("s.sock"), Path::new(&absolute))
        };
        // `sun_path` has 108 bytes, and a zero ends it.
        assert_eq!(said(107), None);
        let told = said(160).expect("it is too long");
        assert!(told.contains("the path has 160 bytes, and clients can use 107 at most"), "{told}");
    }
}
