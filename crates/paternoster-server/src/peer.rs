//! The peer of a client's socket, as log lines name it.

use std::fmt;
use std::net::SocketAddr;
use std::os::fd::AsFd;

use rustix::net::{getpeername, sockopt};

/// The other end of a client's socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    /// Its address and port.
    Tcp(SocketAddr),
    /// The process that connected, and its user then.
    Unix { pid: i32, uid: u32 },
    /// It has gone already, or its process is in a PID namespace that cannot be seen from here.
    Unknown,
}

impl Peer {
    /// Of a socket that has just been accepted.
    pub(crate) fn of(socket: &impl AsFd, is_tcp: bool) -> Self {
        if is_tcp {
            let address = getpeername(socket).ok().flatten();
            let address = address.and_then(|address| SocketAddr::try_from(address).ok());
            address.map_or(Self::Unknown, Self::Tcp)
        } else {
            let credentials = sockopt::socket_peercred(socket);
            credentials.map_or(Self::Unknown, |peer| Self::Unix {
                pid: peer.pid.as_raw_pid(),
                uid: peer.uid.as_raw(),
            })
        }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix { pid, uid } => write!(f, "pid {pid} of uid {uid}"),
            Self::Unknown => f.write_str("unknown"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn client_of_a_unix_socket_is_named_by_its_process_and_user() {
        let (ours, _theirs) = UnixStream::pair().expect("a pair");
        let pid = std::process::id();
        let uid = rustix::process::geteuid().as_raw();
        assert_eq!(Peer::of(&ours, false).to_string(), format!("pid {pid} of uid {uid}"));
    }

    #[test]
    fn client_of_tcp_is_named_by_its_address() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let client = TcpStream::connect(listener.local_addr().expect("one")).expect("connects");
        let (accepted, _) = listener.accept().expect("a client");
        let address = client.local_addr().expect("one");
        assert_eq!(Peer::of(&accepted, true), Peer::Tcp(address));
        assert_eq!(Peer::of(&accepted, true).to_string(), address.to_string());
    }
}
