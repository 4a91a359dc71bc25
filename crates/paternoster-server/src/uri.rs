//! The NBD URI of an export, as clients take it.

use std::fmt::{self, Write as _};
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use crate::config::{Config, ListenTls};

/// The URI of each export on each socket that offers it; the sockets are those of
/// [`Config::listen`].
pub(crate) fn of_exports(config: &Config, places: &[Place]) -> Vec<String> {
    let mut uris = Vec::new();
    let exports = config.exports.iter().enumerate();
    for (index, export) in exports.filter(|(_, export)| export.keys.export) {
        let offering = config.listen.iter().zip(places).filter(|(listen, _)| listen.offers(index));
        uris.extend(offering.map(|(listen, place)| place.of_export(&export.name, listen.tls)));
    }
    uris
}

/// Where clients find a socket.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// A path; an absolute one, once the socket listens.
    Unix(PathBuf),
    /// An address; with the port that the socket got, once it listens.
    Tcp(SocketAddr),
}

impl Place {
    /// The URI of an export there.
    pub(crate) fn of_export(&self, name: &str, tls: ListenTls) -> String {
        let export = encode(name.as_bytes(), b"/");
        let scheme = match tls {
            ListenTls::Off => "nbd",
            ListenTls::Require => "nbds",
        };
        match self {
            Self::Unix(path) => {
                let socket = encode(path.as_os_str().as_bytes(), b"/");
                format!("{scheme}+unix:///{export}?socket={socket}")
            }
            Self::Tcp(address) => format!("{scheme}://{address}/{export}"),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => path.display().fmt(f),
            Self::Tcp(address) => address.fmt(f),
        }
    }
}

/// Percent-encodes all but letters, digits, `-._~` and what is `also` allowed.
pub(crate) fn encode(bytes: &[u8], also: &[u8]) -> String {
    let mut text = String::new();
    for &byte in bytes {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || also.contains(&byte) {
            text.push(char::from(byte));
        } else {
            write!(text, "%{byte:02X}").expect("a string can be written to");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_uri_cannot_hold_is_percent_encoded() {
        assert_eq!(encode("vm 1/ü?".as_bytes(), b"/"), "vm%201/%C3%BC%3F");
    }
}
