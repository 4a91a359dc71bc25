//! Where clients and operators connect.

use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::draft::{At, Number};
use super::error::{ConfigError, Problem};
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

pub(super) fn check(
    unix: Option<At<PathBuf>>,
    unix_mode: Option<At<Number>>,
    tcp: Option<At<String>>,
    ctl: Option<At<PathBuf>>,
) -> Result<(Listen, Option<PathBuf>), ConfigError> {
    let unix = unix.map(|path| check_socket_path(&path).map(|()| path.value)).transpose()?;
    let tcp = tcp.map(|address| check_address(&address)).transpose()?;
    let unix = unix.or_else(|| tcp.is_none().then(|| Listen::DEFAULT_UNIX.into()));
    let unix_mode = match unix_mode {
        Some(mode) if unix.is_none() => return mode.refuse(Problem::ModeWithoutSocket),
        Some(mode) => check_mode(&mode)?,
        None => Listen::DEFAULT_MODE,
    };
    if let Some(ctl) = &ctl {
        check_socket_path(ctl)?;
        if unix.as_ref() == Some(&ctl.value) {
            return ctl.refuse(Problem::SameSocket { path: ctl.value.clone() });
        }
    }
    Ok((Listen { unix, unix_mode, tcp }, ctl.map(|path| path.value)))
}

fn check_socket_path(path: &At<PathBuf>) -> Result<(), ConfigError> {
    if is_socket_path(&path.value) {
        return Ok(());
    }
    let len = path.value.as_os_str().len();
    path.refuse(Problem::BadSocketPath { path: path.value.clone(), len, max: UNIX_PATH_MAX })
}

fn is_socket_path(path: &Path) -> bool {
    let bytes = path.as_os_str().as_bytes();
    (1..=UNIX_PATH_MAX).contains(&bytes.len()) && !bytes.contains(&0)
}

fn check_address(text: &At<String>) -> Result<SocketAddr, ConfigError> {
    text.value.parse().or_else(|_| text.refuse(Problem::BadAddress { found: text.value.clone() }))
}

fn check_mode(mode: &At<Number>) -> Result<u32, ConfigError> {
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
