//! Connects to the server and enters the export.

use std::io;
use std::net::{TcpStream, ToSocketAddrs as _};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use paternoster_nbd::client::{
    ClientOptions, Handshake, HandshakeError, Progress, Replies, Target, Transmission,
};
use paternoster_nbd::{Command, Request, Session};
use rustix::net::sockopt::{self, Timeout};
use rustix::net::{AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType};
use thiserror::Error;

use super::far::{Far, Unusable};
use super::uri::{NbdPlace, NbdUri};

/// How long it may take until the export is entered.
const PATIENCE: Duration = Duration::from_secs(5);

/// TCP's answer to a server that says nothing: after so much silence it asks, so often, and gives
/// up; as it does where what was sent is not acknowledged for so long.
const KEEP_IDLE: Duration = Duration::from_secs(10);
const KEEP_INTERVAL: Duration = Duration::from_secs(5);
const KEEP_COUNT: u32 = 4;
const UNACKNOWLEDGED_MS: u32 = 30_000;

/// The error of a server that cannot be used.
#[derive(Debug, Error)]
pub enum DialError {
    /// There is no connection to it.
    #[error("cannot connect: {0}")]
    Connect(#[source] io::Error),
    /// The connection is lost before the export is entered.
    #[error("it is lost before it has shown the export: {0}")]
    Lost(#[source] io::Error),
    /// It is no NBD server, or refuses the export.
    #[error(transparent)]
    Handshake(#[from] HandshakeError),
    /// The export cannot be a disk.
    #[error(transparent)]
    Unusable(#[from] Unusable),
}

/// Asks a server for the export, and leaves it again; in five seconds or not at all.
pub fn ask_far(uri: &NbdUri) -> Result<Far, DialError> {
    let Dialed { socket, session, far, .. } = dial(uri)?;
    leave(&socket, &mut Transmission::new(session));
    Ok(far)
}

/// A connection that has entered the export.
#[derive(Debug)]
pub(super) struct Dialed {
    pub(super) socket: OwnedFd,
    pub(super) session: Session,
    pub(super) far: Far,
    /// What has come behind the handshake.
    pub(super) input: BytesMut,
}

/// Connects and enters the export; in five seconds or not at all.
pub(super) fn dial(uri: &NbdUri) -> Result<Dialed, DialError> {
    let deadline = Instant::now() + PATIENCE;
    let socket = connect(&uri.place, deadline).map_err(DialError::Connect)?;
    let (session, input) = enter(&socket, &uri.export, deadline)?;
    let far = Far::of(&session)?;
    limit(&socket, None).map_err(DialError::Lost)?;
    Ok(Dialed { socket, session, far, input })
}

/// Tells the server that the client goes, where that can be told at once.
pub(super) fn leave(socket: &OwnedFd, transmission: &mut Transmission) {
    let mut bye = BytesMut::new();
    let request = Request { cookie: u64::MAX, command: Command::Disconnect };
    if transmission.encode(&request, &mut bye).is_ok() {
        let _ = rustix::net::send(socket, &bye, SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
    }
}

fn connect(place: &NbdPlace, deadline: Instant) -> io::Result<OwnedFd> {
    match place {
        NbdPlace::Unix(path) => {
            let (family, flags) = (AddressFamily::UNIX, SocketFlags::CLOEXEC);
            let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
            // A server that accepts nobody lets a client wait.
            limit(&socket, Some(deadline))?;
            rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
            Ok(socket)
        }
        NbdPlace::Tcp { host, port } => {
            let mut refused = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
            for address in (host.as_str(), *port).to_socket_addrs()? {
                match TcpStream::connect_timeout(&address, left_until(deadline)?) {
                    Ok(stream) => {
                        let socket = OwnedFd::from(stream);
                        prepare_tcp(&socket)?;
                        return Ok(socket);
                    }
                    Err(error) => refused = error,
                }
            }
            Err(refused)
        }
    }
}

/// Requests are sent at once, and a server that has vanished is noticed.
fn prepare_tcp(socket: &OwnedFd) -> io::Result<()> {
    sockopt::set_tcp_nodelay(socket, true)?;
    sockopt::set_socket_keepalive(socket, true)?;
    sockopt::set_tcp_keepidle(socket, KEEP_IDLE)?;
    sockopt::set_tcp_keepintvl(socket, KEEP_INTERVAL)?;
    sockopt::set_tcp_keepcnt(socket, KEEP_COUNT)?;
    sockopt::set_tcp_user_timeout(socket, UNACKNOWLEDGED_MS)?;
    Ok(())
}

/// The option phase.
fn enter(
    socket: &OwnedFd,
    export: &str,
    deadline: Instant,
) -> Result<(Session, BytesMut), DialError> {
    let target = Target::Go(export.to_owned());
    let mut handshake = Handshake::new(ClientOptions { target, replies: Replies::Structured });
    let (mut input, mut output) = (BytesMut::new(), BytesMut::new());
    loop {
        let progress = handshake.receive(&mut input, &mut output);
        send_all(socket, &output.split(), deadline).map_err(DialError::Lost)?;
        match progress? {
            Progress::Entered(session) => return Ok((session, input)),
            Progress::NeedMore => {
                receive(socket, &mut input, deadline).map_err(DialError::Lost)?;
            }
            Progress::Described(_) | Progress::Listed(_) => unreachable!("it enters the export"),
        }
    }
}

fn send_all(socket: &OwnedFd, mut bytes: &[u8], deadline: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        limit(socket, Some(deadline))?;
        let send = || rustix::net::send(socket, bytes, SendFlags::NOSIGNAL);
        bytes = &bytes[rustix::io::retry_on_intr(send)?..];
    }
    Ok(())
}

fn receive(socket: &OwnedFd, input: &mut BytesMut, deadline: Instant) -> io::Result<()> {
    limit(socket, Some(deadline))?;
    let mut bytes = [0; 4096];
    match rustix::io::retry_on_intr(|| rustix::io::read(socket, &mut bytes))? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        received => {
            input.extend_from_slice(&bytes[..received]);
            Ok(())
        }
    }
}

/// Has the next call on the socket end by then.
fn limit(socket: &OwnedFd, deadline: Option<Instant>) -> io::Result<()> {
    let left = deadline.map(left_until).transpose()?;
    sockopt::set_socket_timeout(socket, Timeout::Recv, left)?;
    Ok(sockopt::set_socket_timeout(socket, Timeout::Send, left)?)
}

/// The time until then, of which there is some left.
fn left_until(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}
