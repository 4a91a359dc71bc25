//! Where clients and operators connect.

use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::draft::{At, Draft, Key, Number};
use super::error::{Mistake, Problem};
use super::machine;
use super::mistakes::Mistakes;
use crate::ctl;
use crate::sockets::UNIX_PATH_MAX;

/// Where clients connect; at least one of the two is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    /// A unix socket; `paternoster.sock` when neither it nor `tcp` was written.
    pub unix: Option<PathBuf>,
    /// The permission bits of `unix`.
    pub unix_mode: u32,
    /// A TCP address; port 0 is any free one.
    pub tcp: Option<SocketAddr>,
}

impl Listen {
    /// The socket, in the current directory, when nothing else was written.
    pub const DEFAULT_UNIX: &str = "paternoster.sock";
    /// The mode of `unix` when none was written.
    pub const DEFAULT_MODE: u32 = 0o600;
}

const MODE_MAX: u32 = 0o777;

/// The sockets of clients, and that of control.
pub(super) fn check(draft: &Draft, mistakes: &mut Mistakes) -> Option<(Listen, Option<PathBuf>)> {
    let unix = draft.unix.check(mistakes, check_socket);
    let tcp = draft.tcp.check(mistakes, check_address);
    let by_default = draft.unix.is_missing() && draft.tcp.is_missing();
    let unix = unix.and_then(|unix| match unix {
        None if by_default => {
            mistakes.note(check_socket(&unwritten(draft, Listen::DEFAULT_UNIX))).map(Some)
        }
        unix => Some(unix),
    });
    let unix_mode = draft.unix_mode.check_or(Listen::DEFAULT_MODE, mistakes, |mode| {
        if unix == Some(None) {
            return mode.refuse(Problem::ModeWithoutSocket);
        }
        check_mode(mode)
    });
    let ctl = match &draft.ctl {
        Key::Unreadable => None,
        Key::Written(At { value: None, .. }) => Some(None),
        Key::Written(At { value: Some(path), place }) => {
            let path = At { value: path.clone(), place: place.clone() };
            mistakes.note(check_ctl(&path, unix.as_ref())).map(Some)
        }
        // What is wrong with the directory is told already.
        Key::Missing if by_default && unix.is_none() => None,
        Key::Missing => {
            let path = unwritten(draft, ctl::DEFAULT_PATH);
            mistakes.note(check_ctl(&path, unix.as_ref())).map(Some)
        }
    };
    Some((Listen { unix: unix?, unix_mode: unix_mode?, tcp: tcp? }, ctl?))
}

/// The address of metrics, which is not that of clients.
#[expect(clippy::option_option, reason = "one is whether it is right, one whether it is there")]
pub(super) fn check_metrics(draft: &Draft, mistakes: &mut Mistakes) -> Option<Option<SocketAddr>> {
    let clients = draft.tcp.value().and_then(|tcp| tcp.value.parse::<SocketAddr>().ok());
    draft.metrics.check(mistakes, |text| {
        let address = check_address(text)?;
        if address.port() != 0 && clients == Some(address) {
            return text.refuse(Problem::SameAddress { address });
        }
        Ok(address)
    })
}

/// The control socket beside that of clients, as far as that is known.
fn check_ctl(path: &At<PathBuf>, unix: Option<&Option<PathBuf>>) -> Result<PathBuf, Mistake> {
    let checked = check_socket(path)?;
    if unix.is_some_and(|unix| unix.as_ref() == Some(&checked)) {
        return path.refuse(Problem::SameSocket { path: checked });
    }
    Ok(checked)
}

/// The path of a socket that is there unwritten.
fn unwritten(draft: &Draft, path: &str) -> At<PathBuf> {
    At { value: path.into(), place: draft.whole.clone() }
}

fn check_socket(path: &At<PathBuf>) -> Result<PathBuf, Mistake> {
    if !is_socket_path(&path.value) {
        let (shown, len) = (path.value.clone(), path.value.as_os_str().len());
        return path.refuse(Problem::BadSocketPath { path: shown, len, max: UNIX_PATH_MAX });
    }
    machine::check_socket(path)?;
    Ok(path.value.clone())
}

fn is_socket_path(path: &Path) -> bool {
    let bytes = path.as_os_str().as_bytes();
    (1..=UNIX_PATH_MAX).contains(&bytes.len()) && !bytes.contains(&0)
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
