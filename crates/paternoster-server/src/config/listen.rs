//! Where clients and operators connect, and which exports each socket offers.
//!
//! ```text
//!   unix, unix_mode, tcp   of the file or as options: sockets that offer every export
//!   [[listen]]             further ones, each with the exports that it offers, or every one;
//!                          of each the place, or the name by which a service manager passes it
//!   nothing of these       paternoster.sock, in the current directory
//! ```
//!
//! A client that reaches a socket may enter what that offers, and hears of nothing else. So tenants
//! who do not trust each other share a disk where each reaches a socket of its own.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::draft::Draft;
use super::error::{Mistake, Place, Problem};
use super::keys::{At, ListenKeys, ListenStates, ListenTls, NO_PATH, Object, PASSED, State};
use super::machine;
use super::mistakes::Mistakes;
use crate::sockets::UNIX_PATH_MAX;
use crate::{ctl, uri};

/// A socket on which clients connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    /// Where it is.
    pub address: ListenAddress,
    /// The exports that it offers, as indices into [`Config::exports`](super::Config::exports);
    /// all of them if nothing was written.
    pub exports: Option<Vec<usize>>,
    /// Whether clients have to begin TLS.
    pub tls: ListenTls,
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
    /// Where the service manager listens that passes it.
    Passed {
        /// What the service manager calls it.
        name: String,
    },
}

impl Listen {
    /// Returns a sentence about a socket that can be served and may not be meant so: a unix socket
    /// by a relative path whose URI no client can use, or one that other machines reach without
    /// certificates.
    pub(super) fn notice(&self, exports: usize, has_client_ca: bool) -> Option<String> {
        match &self.address {
            ListenAddress::Unix { path, .. } => {
                too_long_for_clients(path, &std::path::absolute(path).ok()?)
            }
            ListenAddress::Tcp(address) => {
                let (needed, more) = match self.tls {
                    ListenTls::Off => (true, "tls = \"require\" with client_ca"),
                    ListenTls::Require => (!has_client_ca, "client_ca under [tls]"),
                };
                let is_open = needed && !address.ip().is_loopback();
                let offered = self.exports.as_ref().map_or(exports, Vec::len);
                is_open.then(|| {
                    format!(
                        "tcp = \"{address}\": whoever reaches it may use {offered} {}; {more} \
                         says who",
                        if offered == 1 { "export" } else { "exports" }
                    )
                })
            }
            ListenAddress::Passed { .. } => None,
        }
    }

    /// The unix socket, in the current directory, when nothing was written.
    pub const DEFAULT_UNIX: &str = "paternoster.sock";
    /// The mode of a unix socket when none was written.
    pub const DEFAULT_MODE: u32 = 0o600;

    /// Makes a unix socket of the default mode, which offers every export.
    pub fn unix(path: PathBuf) -> Self {
        let address = ListenAddress::Unix { path, mode: Self::DEFAULT_MODE };
        Self { address, exports: None, tls: ListenTls::Off }
    }

    /// Returns whether it offers an export, which is an index into
    /// [`Config::exports`](super::Config::exports).
    pub fn offers(&self, export: usize) -> bool {
        self.exports.as_ref().is_none_or(|exports| exports.contains(&export))
    }
}

impl ListenAddress {
    /// What is written of the control socket.
    fn of_ctl(path: &At<PathBuf>) -> Result<Self, Mistake> {
        let passed = path.value.to_str().and_then(|text| text.strip_prefix(PASSED));
        match passed {
            Some(name) if is_fd_name(name) => Ok(Self::Passed { name: name.to_owned() }),
            Some(name) => path.refuse(Problem::BadFdName { found: name.to_owned() }),
            None => Ok(Self::Unix { path: path.value.clone(), mode: ctl::MODE }),
        }
    }

    /// Returns where it is, as far as that is known before it listens.
    pub(super) fn place(&self) -> Option<uri::Place> {
        match self {
            Self::Unix { path, .. } => Some(uri::Place::Unix(path.clone())),
            Self::Tcp(address) => Some(uri::Place::Tcp(*address)),
            Self::Passed { .. } => None,
        }
    }

    /// Whether both would be one socket; of two free ports they are not.
    fn is_that_of(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Unix { path, .. }, Self::Unix { path: other, .. }) => path == other,
            (Self::Tcp(address), Self::Tcp(other)) => address == other && address.port() != 0,
            (Self::Passed { name }, Self::Passed { name: other }) => name == other,
            _ => false,
        }
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix { path, .. } => path.display().fmt(f),
            Self::Tcp(address) => address.fmt(f),
            Self::Passed { name } => write!(f, "{PASSED}{name}"),
        }
    }
}

/// Returns whether a service manager may call a socket so: `FileDescriptorName=` of systemd.
pub(super) fn is_fd_name(text: &str) -> bool {
    let is_allowed = |byte: u8| (b' '..=b'~').contains(&byte) && byte != b':';
    (1..=255).contains(&text.len()) && text.bytes().all(is_allowed)
}

/// The sockets of clients, as far as they are right, and whether that is all of them.
pub(super) struct Checked {
    sockets: Vec<(Listen, Place)>,
    are_all: bool,
}

/// The sockets of clients.
pub(super) fn check(draft: &Draft, mistakes: &mut Mistakes) -> Checked {
    let mut checked = Checked { sockets: Vec::new(), are_all: true };
    let mut whole =
        Object::<ListenKeys>::new(At { value: String::new(), place: draft.whole.clone() });
    let (keys, states) = (&draft.server.keys, &draft.server.states);
    (whole.keys.unix, whole.states.unix) = (keys.unix.clone(), states.unix.clone());
    (whole.keys.unix_mode, whole.states.unix_mode) = (keys.unix_mode, states.unix_mode.clone());
    (whole.keys.tcp, whole.states.tcp) = (keys.tcp, states.tcp.clone());
    if states.unix.is_missing() && states.tcp.is_missing() && draft.listen.is_empty() {
        whole.keys.unix = Some(Listen::DEFAULT_UNIX.into());
        whole.states.unix = State::Written(draft.whole.clone());
    }
    checked.add(&whole, draft, mistakes);
    for listen in &draft.listen {
        let ListenStates { unix, tcp, fd, .. } = &listen.states;
        let addresses = [("unix", unix), ("tcp", tcp), ("fd", fd)];
        if addresses.iter().all(|(_, state)| state.is_missing()) && !listen.has_gaps {
            mistakes.add(&listen.name.place, Problem::NoListenAddress);
            checked.are_all = false;
        }
        let written = addresses.iter().filter_map(|(key, state)| Some((*key, state.place()?)));
        if let [(one, _), (two, place), ..] = written.collect::<Vec<_>>()[..] {
            mistakes.add(place, Problem::TwoListenAddresses { one, two });
            checked.are_all = false;
        }
        checked.add(listen, draft, mistakes);
    }
    checked
}

impl Checked {
    /// Adds the sockets that are written there, each if it is right and its own.
    fn add(&mut self, listen: &Object<ListenKeys>, draft: &Draft, mistakes: &mut Mistakes) {
        let Object { keys, states, .. } = listen;
        let before = mistakes.count();
        let exports = keys.exports.as_ref().map(|names| {
            mistakes.note(check_offered(names, states.exports.place(), draft)).unwrap_or_default()
        });
        if states.unix.is_missing() {
            mistakes.note(states.unix_mode.refuse(Problem::ModeWithoutSocket));
        }
        let unix = keys.unix.as_ref().zip(states.unix.place()).and_then(|(path, place)| {
            let path = At { value: path.clone(), place: place.clone() };
            mistakes.note(check_socket(&path))
        });
        let is_wrong = |state: &State| state.is_wrong();
        let ListenStates { unix: of_unix, unix_mode, tcp, fd, tls: _, exports: offered } = states;
        let any_wrong = [of_unix, unix_mode, tcp, fd, offered].into_iter().any(is_wrong);
        self.are_all &= mistakes.count() == before && !any_wrong;
        let unix = unix.map(|path| ListenAddress::Unix { path, mode: keys.unix_mode });
        let tcp = keys.tcp.map(ListenAddress::Tcp);
        let passed = keys.fd.clone().map(|name| ListenAddress::Passed { name });
        let addresses = [(unix, &states.unix), (tcp, &states.tcp), (passed, &states.fd)];
        for (address, state) in addresses {
            let place = state.place();
            let (Some(address), Some(place)) = (address, place) else { continue };
            if self.sockets.iter().any(|(other, _)| other.address.is_that_of(&address)) {
                mistakes.add(place, Problem::ListenTwice { address: address.to_string() });
                self.are_all = false;
            }
            let listen = Listen { address, exports: exports.clone(), tls: keys.tls };
            self.sockets.push((listen, place.clone()));
        }
    }

    /// Notes exports that no socket offers, where it is known what all of them do.
    pub(super) fn check_reached(&self, draft: &Draft, mistakes: &mut Mistakes) {
        for (index, export) in draft.exports.iter().enumerate() {
            let is_offered = self.sockets.iter().any(|(listen, _)| listen.offers(index));
            if self.are_all && !is_offered && export.keys.export {
                let name = export.name.value.clone();
                mistakes.add(&export.name.place, Problem::NotOffered { export: name });
            }
        }
    }

    /// The control socket, which is none of these; [`ctl::default_path`] if none was written.
    pub(super) fn check_ctl(
        &self,
        draft: &Draft,
        mistakes: &mut Mistakes,
    ) -> Option<ListenAddress> {
        let (path, place, check): (_, _, fn(&At<PathBuf>) -> _) = match &draft.server.states.ctl {
            State::Wrong(_) => return None,
            State::Written(place) => (draft.server.keys.ctl.clone()?, place, check_socket),
            State::Missing => (ctl::default_path(), &draft.whole, check_default_socket),
        };
        if path.as_os_str() == NO_PATH {
            return None;
        }
        let path = At { value: path, place: place.clone() };
        mistakes.note(self.check_apart(&path, check))
    }

    /// A control socket that is none of these.
    fn check_apart(
        &self,
        path: &At<PathBuf>,
        check: fn(&At<PathBuf>) -> Result<PathBuf, Mistake>,
    ) -> Result<ListenAddress, Mistake> {
        let own = ListenAddress::of_ctl(path)?;
        if matches!(own, ListenAddress::Unix { .. }) {
            check(path)?;
        }
        if self.addresses().any(|address| address.is_that_of(&own)) {
            return path.refuse(Problem::SameSocket { address: own });
        }
        Ok(own)
    }

    /// Checks the sockets of virtual machines: each is one of its own.
    pub(super) fn check_vhost(
        &self,
        draft: &Draft,
        ctl: Option<&ListenAddress>,
        mistakes: &mut Mistakes,
    ) {
        let clients = self.addresses().map(|address| (address, "one of clients"));
        let others = clients.chain(ctl.map(|address| (address, "the control socket")));
        let mut taken: BTreeMap<_, _> = others
            .filter_map(|(address, of)| match address {
                ListenAddress::Unix { path, .. } => Some((path.clone(), of.to_owned())),
                ListenAddress::Tcp(_) | ListenAddress::Passed { .. } => None,
            })
            .collect();
        for export in &draft.exports {
            let Object { name, keys, states, .. } = export;
            if states.vhost_user.is_missing() {
                export.refuse_keys_of_socket(mistakes);
            }
            let Some((path, place)) = keys.vhost_user.as_ref().zip(states.vhost_user.place())
            else {
                continue;
            };
            let at = At { value: path.clone(), place: place.clone() };
            mistakes.note(check_socket(&at));
            match taken.entry(path.clone()) {
                Entry::Vacant(free) => _ = free.insert(format!("that of export {:?}", name.value)),
                Entry::Occupied(of) => {
                    let (path, of) = (path.clone(), of.get().clone());
                    mistakes.add(place, Problem::SameVhostSocket { path, of });
                }
            }
        }
    }

    /// Refuses an address of metrics that is one of these.
    pub(super) fn check_metrics(&self, draft: &Draft) -> Result<(), Mistake> {
        let Some(address) = draft.server.keys.metrics else { return Ok(()) };
        let own = ListenAddress::Tcp(address);
        if self.sockets.iter().any(|(listen, _)| listen.address.is_that_of(&own)) {
            return draft.server.states.metrics.refuse(Problem::SameAddress { address });
        }
        Ok(())
    }

    /// Where those are that are right, as far as it is known.
    pub(super) fn places(&self) -> impl Iterator<Item = uri::Place> + '_ {
        self.addresses().filter_map(ListenAddress::place)
    }

    /// The addresses of those that are right.
    fn addresses(&self) -> impl Iterator<Item = &ListenAddress> {
        self.sockets.iter().map(|(listen, _)| &listen.address)
    }

    /// The same, for good.
    pub(super) fn into_sockets(self) -> Vec<Listen> {
        self.sockets.into_iter().map(|(listen, _)| listen).collect()
    }
}

/// The exports of these names, as indices in their order.
fn check_offered(
    names: &[At<String>],
    place: Option<&Place>,
    draft: &Draft,
) -> Result<Vec<usize>, Mistake> {
    if let (true, Some(place)) = (names.is_empty(), place) {
        return Err(place.mistake(Problem::OffersNothing));
    }
    let mut exports = Vec::new();
    for name in names {
        let found = draft.exports.iter().position(|export| export.name == *name);
        match found {
            Some(export) if exports.contains(&export) => {
                return name.refuse(Problem::OfferedTwice { export: name.value.clone() });
            }
            Some(export) if !draft.exports[export].keys.export => {
                return name.refuse(Problem::OffersVolume { volume: name.value.clone() });
            }
            Some(export) => exports.push(export),
            // It may be what is misspelt, and where there is none that is told.
            None if draft.has_gaps || draft.exports.is_empty() => {}
            None => {
                let known = draft.exports.iter().filter(|export| export.keys.export);
                let known = known.map(|export| format!("{:?}", export.name.value));
                let known = known.collect::<Vec<_>>().join(", ");
                return name.refuse(Problem::UnknownExport { export: name.value.clone(), known });
            }
        }
    }
    Ok(exports)
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
