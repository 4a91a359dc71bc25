//! Where a server and its export are, as an NBD URI says it.
//!
//! ```text
//!   nbd+unix:///EXPORT?socket=PATH      a unix socket
//!   nbd://HOST[:PORT]/EXPORT            TCP, by default port 10809
//! ```
//!
//! What is special in a URI is percent-encoded in an export's name and in a path. An empty name is
//! the server's default export.

use std::fmt;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;
use std::str::FromStr;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode};
use thiserror::Error;

/// NBD's own TCP port.
const PORT: u16 = 10809;

/// What is percent-encoded in names and paths.
const SPECIAL: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// The URI of an export of an NBD server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NbdUri {
    /// Where the server is.
    pub place: NbdPlace,
    /// The name of the export.
    pub export: String,
}

/// Where an NBD server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NbdPlace {
    /// At a unix socket.
    Unix(PathBuf),
    /// At a TCP port of a host, which is a name or an address.
    Tcp {
        /// The host; an address of IPv6 without brackets.
        host: String,
        /// The port.
        port: u16,
    },
}

/// The error of a text that is no URI of an NBD server that can be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NbdUriError {
    /// It begins otherwise.
    #[error("nbd+unix:///EXPORT?socket=PATH or nbd://HOST[:PORT]/EXPORT is allowed")]
    Scheme,
    /// It asks for TLS.
    #[error("there is no TLS yet: nbd+unix:// or nbd:// is allowed")]
    Tls,
    /// A unix socket is a file of this machine.
    #[error("{host:?} stands where nbd+unix:/// has nothing, behind the second slash")]
    UnixHost {
        /// What stands there.
        host: String,
    },
    /// No path of the socket.
    #[error("nbd+unix:// needs ?socket=PATH")]
    NoSocket,
    /// Something else behind the question mark.
    #[error("{found:?} has no meaning behind the ?; {allowed} is allowed")]
    Query {
        /// What stands there.
        found: String,
        /// What may.
        allowed: &'static str,
    },
    /// No host, or what is none.
    #[error("host {found:?}: a name or an address is allowed, one of IPv6 as [::1]")]
    Host {
        /// What stands there.
        found: String,
    },
    /// Something else behind the host than a port.
    #[error("{found:?} behind the host: a port of :1 to :65535 is allowed")]
    Port {
        /// What stands there.
        found: String,
    },
    /// A name that is not UTF-8 when it is decoded.
    #[error("the export's name is not UTF-8")]
    Name,
}

impl FromStr for NbdUri {
    type Err = NbdUriError;

    fn from_str(text: &str) -> Result<Self, NbdUriError> {
        let (scheme, rest) = text.split_once("://").ok_or(NbdUriError::Scheme)?;
        let (rest, query) = rest.split_once('?').map_or((rest, None), |(r, q)| (r, Some(q)));
        let (host, export) = rest.split_once('/').unwrap_or((rest, ""));
        let export = percent_decode_str(export).decode_utf8().map_err(|_| NbdUriError::Name)?;
        let place = match scheme {
            "nbd+unix" => unix(host, query)?,
            "nbd" => tcp(host, query)?,
            "nbds" | "nbds+unix" => return Err(NbdUriError::Tls),
            _ => return Err(NbdUriError::Scheme),
        };
        Ok(Self { place, export: export.into_owned() })
    }
}

fn unix(host: &str, query: Option<&str>) -> Result<NbdPlace, NbdUriError> {
    if !host.is_empty() {
        return Err(NbdUriError::UnixHost { host: host.to_owned() });
    }
    let socket = match query.unwrap_or_default().split_once('=') {
        Some(("socket", path)) if !path.is_empty() && !path.contains('&') => path,
        Some(("socket", "")) | None if query.unwrap_or_default().len() <= "socket=".len() => {
            return Err(NbdUriError::NoSocket);
        }
        _ => {
            let found = query.unwrap_or_default().to_owned();
            return Err(NbdUriError::Query { found, allowed: "socket=PATH" });
        }
    };
    let path = percent_decode_str(socket).collect::<Vec<u8>>();
    Ok(NbdPlace::Unix(std::ffi::OsString::from_vec(path).into()))
}

fn tcp(authority: &str, query: Option<&str>) -> Result<NbdPlace, NbdUriError> {
    if let Some(query) = query {
        return Err(NbdUriError::Query { found: query.to_owned(), allowed: "nothing" });
    }
    let (host, rest) = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some(split) => split,
        None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
    };
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:".contains(&byte);
    if host.is_empty() || !host.bytes().all(is_name) {
        return Err(NbdUriError::Host { found: host.to_owned() });
    }
    let port = match rest.strip_prefix(':') {
        None if rest.is_empty() => PORT,
        digits => {
            let digits = digits.filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
            let port = digits.and_then(|digits| digits.parse().ok()).filter(|&port| port > 0);
            port.ok_or_else(|| NbdUriError::Port { found: rest.to_owned() })?
        }
    };
    Ok(NbdPlace::Tcp { host: host.to_owned(), port })
}

impl fmt::Display for NbdUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let export = percent_encode(self.export.as_bytes(), SPECIAL);
        match &self.place {
            NbdPlace::Unix(path) => {
                let path = percent_encode(path.as_os_str().as_bytes(), SPECIAL);
                write!(f, "nbd+unix:///{export}?socket={path}")
            }
            NbdPlace::Tcp { host, port } if host.contains(':') => {
                write!(f, "nbd://[{host}]:{port}/{export}")
            }
            NbdPlace::Tcp { host, port } => write!(f, "nbd://{host}:{port}/{export}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<NbdUri, NbdUriError> {
        text.parse()
    }

    fn tcp_at(host: &str, port: u16) -> NbdPlace {
        NbdPlace::Tcp { host: host.to_owned(), port }
    }

    #[test]
    fn places_and_names_are_what_the_uri_says() {
        let unix = |path: &str| NbdPlace::Unix(path.into());
        let cases = [
            ("nbd+unix:///disk?socket=/run/a.sock", unix("/run/a.sock"), "disk"),
            ("nbd+unix://?socket=a%20b.sock", unix("a b.sock"), ""),
            ("nbd+unix:///?socket=x", unix("x"), ""),
            ("nbd://host", tcp_at("host", 10809), ""),
            ("nbd://10.0.0.1:7/vm%2F1", tcp_at("10.0.0.1", 7), "vm/1"),
            ("nbd://[::1]/a/b", tcp_at("::1", 10809), "a/b"),
            ("nbd://[::1]:9/", tcp_at("::1", 9), ""),
        ];
        for (text, place, export) in cases {
            let expected = NbdUri { place, export: export.to_owned() };
            assert_eq!(parsed(text), Ok(expected.clone()), "{text}");
            assert_eq!(parsed(&expected.to_string()), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_uri_of_a_server_is_refused_with_the_reason() {
        let port = |found: &str| NbdUriError::Port { found: found.to_owned() };
        let query = |found: &str, allowed| NbdUriError::Query { found: found.to_owned(), allowed };
        let cases = [
            ("/run/a.sock", NbdUriError::Scheme),
            ("http://host/", NbdUriError::Scheme),
            ("nbds://host/", NbdUriError::Tls),
            ("nbd+unix:///disk", NbdUriError::NoSocket),
            ("nbd+unix:///disk?socket=", NbdUriError::NoSocket),
            ("nbd+unix:///?sock=a", query("sock=a", "socket=PATH")),
            (
                "nbd+unix:///?socket=a&tls-certificates=b",
                query("socket=a&tls-certificates=b", "socket=PATH"),
            ),
            ("nbd+unix://host/?socket=a", NbdUriError::UnixHost { host: "host".to_owned() }),
            ("nbd://host/?socket=a", query("socket=a", "nothing")),
            ("nbd:///disk", NbdUriError::Host { found: String::new() }),
            ("nbd://::1/", NbdUriError::Host { found: String::new() }),
            ("nbd://user@host/", NbdUriError::Host { found: "user@host".to_owned() }),
            ("nbd://host:0/", port(":0")),
            ("nbd://host:+7/", port(":+7")),
            ("nbd://host:70000/", port(":70000")),
            ("nbd://[::1]junk/", port("junk")),
            ("nbd://host/%ff", NbdUriError::Name),
        ];
        for (text, error) in cases {
            assert_eq!(parsed(text), Err(error), "{text}");
        }
    }
}
