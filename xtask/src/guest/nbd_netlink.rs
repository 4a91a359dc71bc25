//! What the kernel's NBD client is told over netlink that nbd-client does not tell it: how long to
//! wait for a server that is gone, and where it is when it is back.
//!
//! The messages are those of `linux/nbd-netlink.h`, in the frames of generic netlink:
//!
//! ```text
//!   message     length, type, flags, sequence, port │ command, version │ attributes
//!   attribute   length, type │ value, filled up to four bytes; or attributes
//! ```

use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use bytes::{Buf as _, BufMut as _};
use rustix::io::Errno;
use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketType, bind, recv, send, socket};

use super::connection::Connection;

/// The type of messages to the family that knows the others.
const CONTROLLER: u16 = 16;
/// Its command that asks for a family, and the attributes of question and answer.
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;
/// Commands and attributes of the family "nbd".
const RECONFIGURE: u8 = 3;
const INDEX: u16 = 1;
const SOCKETS: u16 = 7;
const DEAD_CONNECTION_TIMEOUT: u16 = 8;
const SOCKET_ITEM: u16 = 1;
const SOCKET_FD: u16 = 1;
/// The attribute has attributes.
const NESTED: u16 = 1 << 15;
/// It is a request, and is to be acknowledged.
const REQUEST_AND_ACKNOWLEDGE: u16 = 1 | 4;
/// The type of an answer that is an error, or says that there is none.
const ERROR: u16 = 2;
/// Bytes before the attributes of a message, and before the value of an attribute.
const HEADER: usize = 20;
const ATTRIBUTE: usize = 4;

/// What the kernel's client is told.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Which device: 0 is /dev/nbd0
    #[arg(long)]
    device: u32,
    /// How long requests wait for a new connection once all are gone, in seconds
    #[arg(long)]
    dead_connection_timeout: u64,
    /// The server's socket, to which new connections are made
    #[arg(long)]
    socket: Option<PathBuf>,
    /// How many
    #[arg(long, default_value_t = 0)]
    connections: u32,
}

/// Tells it.
pub(super) fn run(args: &Args) -> Result<()> {
    let mut sockets: Vec<OwnedFd> = Vec::new();
    for path in args.socket.iter().flat_map(|path| (0..args.connections).map(move |_| path)) {
        sockets.push(Connection::enter(path)?.into_socket()?);
    }
    let kernel = socket(AddressFamily::NETLINK, SocketType::RAW, Some(netlink::GENERIC));
    let kernel = kernel.context("there is no generic netlink")?;
    bind(&kernel, &SocketAddrNetlink::new(0, 0))?;

    let name = attribute(FAMILY_NAME, b"nbd\0");
    let answer = ask(&kernel, CONTROLLER, GET_FAMILY, &name).context("looking for nbd")?;
    let family = value(&answer, FAMILY_ID).context("the kernel does not say what nbd is")?;
    let family = u16::from_ne_bytes(family.try_into().context("the family's number")?);

    let mut attributes = attribute(INDEX, &args.device.to_ne_bytes());
    let timeout = args.dead_connection_timeout.to_ne_bytes();
    attributes.extend(attribute(DEAD_CONNECTION_TIMEOUT, &timeout));
    let items = sockets.iter().flat_map(|socket| {
        let number = attribute(SOCKET_FD, &socket.as_raw_fd().to_ne_bytes());
        attribute(SOCKET_ITEM | NESTED, &number)
    });
    let items: Vec<u8> = items.collect();
    if !items.is_empty() {
        attributes.extend(attribute(SOCKETS | NESTED, &items));
    }
    ask(&kernel, family, RECONFIGURE, &attributes).context("telling the kernel's NBD client")?;
    Ok(())
}

/// Sends a message, and returns the attributes of its answer; none where it is acknowledged.
fn ask(kernel: &OwnedFd, kind: u16, command: u8, attributes: &[u8]) -> Result<Vec<u8>> {
    let mut message = Vec::new();
    message.put_u32_ne(u32::try_from(HEADER + attributes.len())?);
    message.put_u16_ne(kind);
    message.put_u16_ne(REQUEST_AND_ACKNOWLEDGE);
    message.put_u64_ne(0);
    message.put_slice(&[command, 1, 0, 0]);
    message.put_slice(attributes);
    send(kernel, &message, SendFlags::empty())?;
    let mut data = Vec::new();
    loop {
        let mut buffer = [0; 8192];
        let (received, _) = recv(kernel, &mut buffer, RecvFlags::empty())?;
        let mut answer = &buffer[..received];
        ensure!(answer.len() >= HEADER, "an answer of {received} bytes");
        answer.advance(4);
        let kind = answer.get_u16_ne();
        answer.advance(10);
        if kind != ERROR {
            data = answer[4..].to_vec();
            continue;
        }
        return match answer.get_i32_ne() {
            0 => Ok(data),
            error => Err(Errno::from_raw_os_error(-error).into()),
        };
    }
}

/// An attribute of that type and value.
fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let len = u16::try_from(ATTRIBUTE + value.len()).expect("attributes are short");
    let mut bytes = [len.to_ne_bytes(), kind.to_ne_bytes()].concat();
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// The value of the first attribute of that type.
fn value(mut attributes: &[u8], wanted: u16) -> Option<&[u8]> {
    while attributes.len() >= ATTRIBUTE {
        let len = usize::from((&attributes[..]).get_u16_ne());
        let kind = (&attributes[2..]).get_u16_ne();
        let value = attributes.get(ATTRIBUTE..len)?;
        if kind == wanted {
            return Some(value);
        }
        attributes = attributes.get(len.next_multiple_of(4)..)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attribute_is_found_behind_others() {
        let attributes = [attribute(2, b"nbd\0"), attribute(9, b"x"), attribute(1, &[7, 0])];
        let attributes = attributes.concat();
        assert_eq!(attributes.len(), 8 + 8 + 8);
        assert_eq!(value(&attributes, 1), Some(&[7, 0][..]));
        assert_eq!(value(&attributes, 9), Some(&b"x"[..]));
        assert_eq!(value(&attributes, 3), None);
        assert_eq!(value(&attributes[..6], 2), None);
        assert_eq!(value(&[0; 8], 2), None);
    }
}
