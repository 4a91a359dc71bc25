//! The NBD URI of an export, as clients take it.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt as _;

use anyhow::{Context as _, Result};

use crate::config::Config;

/// The URI of each export: on the unix socket if there is one, else on TCP.
pub(crate) fn of_exports(config: &Config, tcp: Option<SocketAddr>) -> Result<Vec<String>> {
    let socket = match &config.listen.unix {
        Some(path) => {
            let path = std::path::absolute(path)
                .with_context(|| format!("there is no absolute path of {}", path.display()))?;
            Some(encode(path.as_os_str().as_bytes(), b"/"))
        }
        None => None,
    };
    let uris = config.exports.iter().map(|export| {
        let name = encode(export.name.as_bytes(), b"/");
        match (&socket, tcp) {
            (Some(socket), _) => format!("nbd+unix:///{name}?socket={socket}"),
            (None, Some(address)) => format!("nbd://{address}/{name}"),
            (None, None) => unreachable!("a configuration has a socket"),
        }
    });
    Ok(uris.collect())
}

/// Percent-encodes all but letters, digits, `-._~` and what is `also` allowed.
fn encode(bytes: &[u8], also: &[u8]) -> String {
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
