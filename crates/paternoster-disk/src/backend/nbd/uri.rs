//! Where a server and its export are, as an NBD URI says it.
//!
//! ```text
//!   nbd+unix:///EXPORT?socket=PATH      a unix socket
//!   nbd://HOST[:PORT]/EXPORT            TCP, by default port 10809
//!   nbds+unix://…, nbds://…             the same within TLS, with &tls-certificates=FOLDER and,
//!                                       where the host's name is not the certificate's,
//!                                       &tls-hostname=NAME
//! ```
//!
//! What is special in a URI is percent-encoded in an export's name and in a path. An empty name is
//! the server's default export.

use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;
use std::str::FromStr;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode};
use thiserror::Error;

use super::tls::NbdTls;

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
    /// How TLS is spoken there; none in the clear.
    pub tls: Option<NbdTls>,
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
    #[error(
        "nbd+unix:///EXPORT?socket=PATH or nbd://HOST[:PORT]/EXPORT is allowed, and nbds+unix or \
         nbds within TLS"
    )]
    Scheme,
    /// TLS without its files.
    #[error("nbds needs tls-certificates=FOLDER behind the ?, with ca-cert.pem in it")]
    NoCertificates,
    /// TLS over a unix socket, which has no name.
    #[error("nbds+unix needs tls-hostname=NAME behind the ?, which the server's certificate has")]
    NoHostname,
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

impl NbdUri {
    /// Returns the same without how TLS is spoken there: two of one export are one then.
    #[must_use]
    pub fn in_the_clear(&self) -> Self {
        Self { tls: None, ..self.clone() }
    }
}

impl FromStr for NbdUri {
    type Err = NbdUriError;

    fn from_str(text: &str) -> Result<Self, NbdUriError> {
        let (scheme, rest) = text.split_once("://").ok_or(NbdUriError::Scheme)?;
        let (rest, query) = rest.split_once('?').map_or((rest, None), |(r, q)| (r, Some(q)));
        let (host, export) = rest.split_once('/').unwrap_or((rest, ""));
        let export = percent_decode_str(export).decode_utf8().map_err(|_| NbdUriError::Name)?;
        let (is_unix, allowed) = match scheme {
            "nbd+unix" => (true, &[SOCKET][..]),
            "nbds+unix" => (true, &[SOCKET, CERTIFICATES, HOSTNAME][..]),
            "nbd" => (false, &[][..]),
            "nbds" => (false, &[CERTIFICATES, HOSTNAME][..]),
            _ => return Err(NbdUriError::Scheme),
        };
        let query = Query::of(query, allowed)?;
        let place = if is_unix { unix(host, &query)? } else { tcp(host)? };
        let tls = allowed.contains(&CERTIFICATES).then(|| query.tls(is_unix)).transpose()?;
        Ok(Self { place, export: export.into_owned(), tls })
    }
}

const SOCKET: &str = "socket";
const CERTIFICATES: &str = "tls-certificates";
const HOSTNAME: &str = "tls-hostname";

/// What is behind the question mark: names and values that are not empty, each name once.
struct Query<'t>(Vec<(&'t str, &'t str)>);

impl<'t> Query<'t> {
    fn of(query: Option<&'t str>, allowed: &[&'static str]) -> Result<Self, NbdUriError> {
        let mut found = Self(Vec::new());
        for part in query.into_iter().flat_map(|query| query.split('&')) {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let is_new = allowed.contains(&name) && found.get(name).is_none();
            if !is_new && !part.is_empty() {
                let allowed = match allowed {
                    [] => "nothing",
                    [_] => "socket=PATH",
                    [_, _] => "tls-certificates=FOLDER, tls-hostname=NAME",
                    _ => "socket=PATH, tls-certificates=FOLDER, tls-hostname=NAME",
                };
                return Err(NbdUriError::Query { found: part.to_owned(), allowed });
            }
            if !value.is_empty() {
                found.0.push((name, value));
            }
        }
        Ok(found)
    }

    fn get(&self, name: &str) -> Option<Vec<u8>> {
        let (_, value) = self.0.iter().find(|(known, _)| *known == name)?;
        Some(percent_decode_str(value).collect())
    }

    fn tls(&self, is_unix: bool) -> Result<NbdTls, NbdUriError> {
        let folder = self.get(CERTIFICATES).ok_or(NbdUriError::NoCertificates)?;
        let hostname = self.get(HOSTNAME).map(|name| String::from_utf8_lossy(&name).into_owned());
        if is_unix && hostname.is_none() {
            return Err(NbdUriError::NoHostname);
        }
        Ok(NbdTls { certificates: OsString::from_vec(folder).into(), hostname })
    }
}

fn unix(host: &str, query: &Query<'_>) -> Result<NbdPlace, NbdUriError> {
    if !host.is_empty() {
        return Err(NbdUriError::UnixHost { host: host.to_owned() });
    }
    let path = query.get(SOCKET).ok_or(NbdUriError::NoSocket)?;
    Ok(NbdPlace::Unix(OsString::from_vec(path).into()))
}

fn tcp(authority: &str) -> Result<NbdPlace, NbdUriError> {
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
        let scheme = if self.tls.is_some() { "nbds" } else { "nbd" };
        let mut separator = '?';
        match &self.place {
            NbdPlace::Unix(path) => {
                let path = percent_encode(path.as_os_str().as_bytes(), SPECIAL);
                write!(f, "{scheme}+unix:///{export}?{SOCKET}={path}")?;
                separator = '&';
            }
            NbdPlace::Tcp { host, port } if host.contains(':') => {
                write!(f, "{scheme}://[{host}]:{port}/{export}")?;
            }
            NbdPlace::Tcp { host, port } => write!(f, "{scheme}://{host}:{port}/{export}")?,
        }
        let Some(NbdTls { certificates, hostname }) = &self.tls else { return Ok(()) };
        let folder = percent_encode(certificates.as_os_str().as_bytes(), SPECIAL);
        write!(f, "{separator}{CERTIFICATES}={folder}")?;
        let Some(name) = hostname else { return Ok(()) };
        write!(f, "&{HOSTNAME}={}", percent_encode(name.as_bytes(), SPECIAL))
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
            let expected = NbdUri { place, export: export.to_owned(), tls: None };
            assert_eq!(parsed(text), Ok(expected.clone()), "{text}");
            assert_eq!(parsed(&expected.to_string()), Ok(expected), "{text}");
        }
    }

    #[test]
    fn files_of_tls_and_the_server_s_name_are_behind_the_question_mark() {
        let unix = NbdPlace::Unix("/a".into());
        let cases = [
            ("nbds://host/x?tls-certificates=/etc/a%26b", tcp_at("host", 10809), "/etc/a&b", None),
            (
                "nbds://1.2.3.4/x?tls-hostname=n&tls-certificates=t",
                tcp_at("1.2.3.4", 10809),
                "t",
                Some("n"),
            ),
            ("nbds+unix:///x?socket=/a&tls-certificates=t&tls-hostname=n", unix, "t", Some("n")),
        ];
        for (text, place, folder, hostname) in cases {
            let hostname = hostname.map(str::to_owned);
            let tls = Some(NbdTls { certificates: folder.into(), hostname });
            let expected = NbdUri { place, export: "x".to_owned(), tls };
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
            ("nbds://host/", NbdUriError::NoCertificates),
            ("nbds+unix:///?socket=a&tls-certificates=b", NbdUriError::NoHostname),
            (
                "nbds://host/?tls-psk-file=a",
                query("tls-psk-file=a", "tls-certificates=FOLDER, tls-hostname=NAME"),
            ),
            ("nbd://host/?tls-hostname=a", query("tls-hostname=a", "nothing")),
            ("nbd+unix:///disk", NbdUriError::NoSocket),
            ("nbd+unix:///disk?socket=", NbdUriError::NoSocket),
            ("nbd+unix:///?sock=a", query("sock=a", "socket=PATH")),
            (
                "nbd+unix:///?socket=a&tls-certificates=b",
                query("tls-certificates=b", "socket=PATH"),
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
