//! Connects to the server and enters the export.

use std::io;
use std::net::{TcpStream, ToSocketAddrs as _};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use paternoster_nbd::client::{
    ClientOptions, Handshake, HandshakeError, Progress, Replies, Target, Transmission,
};
use paternoster_nbd::proto::{opt, rep};
use paternoster_nbd::tls::{Opened, Tls};
use paternoster_nbd::{Command, Request, Session};
use rustix::net::sockopt::{self, Timeout};
use rustix::net::{AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType};
use thiserror::Error;

use super::far::{Far, Unusable};
use super::uri::{NbdPlace, NbdUri};

/// How long it may take until the export is entered.
const PATIENCE: Duration = Duration::from_secs(5);

/// Bytes that are opened at once.
const OPENED: usize = 4096;

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
    /// It takes no connection in time.
    #[error("cannot connect: no answer within {} s", PATIENCE.as_secs())]
    NoConnection,
    /// It says nothing at all.
    #[error(
        "it takes the connection and says nothing within {} s: it is stopped, or no NBD server",
        PATIENCE.as_secs()
    )]
    Silent,
    /// It begins as an NBD server, and does not come to an end.
    #[error("it does not show the export within {} s", PATIENCE.as_secs())]
    Slow,
    /// It closes the connection without a word.
    #[error(
        "it takes the connection and closes it without a word: what serves there is not up yet, or \
         lets nobody in"
    )]
    Empty,
    /// It closes the connection where an export that is not there leads to that.
    #[error(
        "it closes the connection when it is asked for export {export:?}: it has none of that name"
    )]
    NoExport {
        /// The name.
        export: String,
    },
    /// It closes the connection in the middle.
    #[error("it closes the connection before it has shown the export")]
    Closed,
    /// The connection is lost before the export is entered.
    #[error("it is lost before it has shown the export: {0}")]
    Lost(#[source] io::Error),
    /// It refuses the export.
    #[error("export {export:?}: {error}")]
    Refused {
        /// The name.
        export: String,
        /// What it says.
        error: HandshakeError,
    },
    /// It wants TLS.
    #[error("{error}; nbds:// with tls-certificates=FOLDER is needed")]
    Tls {
        /// What it says.
        error: HandshakeError,
    },
    /// It has no TLS.
    #[error("it has no TLS: {error}")]
    NoTls {
        /// What it says.
        error: HandshakeError,
    },
    /// A file of TLS cannot be used.
    #[error("{}: {why}", path.display())]
    TlsFile {
        /// The file.
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// A name that no certificate can have.
    #[error("{name:?} is no name of a certificate: tls-hostname=NAME says another")]
    TlsName {
        /// The name.
        name: String,
    },
    /// The keys are not agreed on, as one refuses the other.
    #[error("TLS: {0}")]
    TlsSession(#[source] rustls::Error),
    /// It is no NBD server that can be used.
    #[error(transparent)]
    Handshake(HandshakeError),
    /// The export cannot be a disk.
    #[error(transparent)]
    Unusable(#[from] Unusable),
}

/// Asks a server for the export, and leaves it again; in five seconds or not at all.
pub fn ask_far(uri: &NbdUri) -> Result<Far, DialError> {
    let Dialed { socket, session, far, mut tls, .. } = dial(uri)?;
    leave(&socket, &mut Transmission::new(session), tls.as_deref_mut());
    Ok(far)
}

/// A connection that has entered the export.
#[derive(Debug)]
pub(super) struct Dialed {
    pub(super) socket: OwnedFd,
    pub(super) tls: Option<Box<Tls>>,
    pub(super) session: Session,
    pub(super) far: Far,
    /// What has come behind the handshake.
    pub(super) input: BytesMut,
}

/// Connects and enters the export; in five seconds or not at all.
pub(super) fn dial(uri: &NbdUri) -> Result<Dialed, DialError> {
    dial_within(uri, PATIENCE)
}

fn dial_within(uri: &NbdUri, patience: Duration) -> Result<Dialed, DialError> {
    let deadline = Instant::now() + patience;
    let socket = connect(&uri.place, deadline).map_err(|error| {
        if is_too_late(&error) { DialError::NoConnection } else { DialError::Connect(error) }
    })?;
    let (session, tls, input) = enter(&socket, uri, deadline)?;
    let far = Far::of(&session)?;
    limit(&socket, None).map_err(DialError::Lost)?;
    Ok(Dialed { socket, tls, session, far, input })
}

/// Tells the server that the client goes, where that can be told at once.
pub(super) fn leave(socket: &OwnedFd, transmission: &mut Transmission, tls: Option<&mut Tls>) {
    let mut bye = BytesMut::new();
    let request = Request { cookie: u64::MAX, command: Command::Disconnect };
    if transmission.encode(&request, &mut bye).is_err() {
        return;
    }
    let bye = match tls {
        None => bye.freeze(),
        Some(tls) => {
            let sealed = tls.seal(&[&bye]).unwrap_or_default();
            tls.end();
            [sealed, tls.say()].concat().into()
        }
    };
    let _ = rustix::net::send(socket, &bye, SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
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

/// The option phase, within TLS where the URI says so.
fn enter(
    socket: &OwnedFd,
    uri: &NbdUri,
    deadline: Instant,
) -> Result<(Session, Option<Box<Tls>>, BytesMut), DialError> {
    let export = &*uri.export;
    let target = Target::Go(export.to_owned());
    let mut handshake = Handshake::new(ClientOptions { target, replies: Replies::Structured });
    if uri.tls.is_some() {
        handshake = handshake.within_tls();
    }
    let (mut input, mut output) = (BytesMut::new(), BytesMut::new());
    let mut way = Way { socket, tls: None, deadline };
    let mut has_spoken = false;
    loop {
        let progress = handshake.receive(&mut input, &mut output);
        let sent = way.send(&output.split());
        match progress.map_err(|error| refused(export, error))? {
            Progress::Entered(session) => {
                sent.map_err(DialError::Lost)?;
                return Ok((session, way.tls, input));
            }
            Progress::NeedMore => {
                let received = sent.and_then(|()| way.receive(&mut input));
                received.map_err(|error| lost(error, export, &handshake, has_spoken))?;
                has_spoken = true;
            }
            Progress::StartTls => {
                let tls = uri.tls.as_ref().expect("it was asked for");
                let host = match &uri.place {
                    NbdPlace::Tcp { host, .. } => host.as_str(),
                    NbdPlace::Unix(_) => "",
                };
                way.tls = Some(Box::new(tls.begin(socket, host, deadline)?));
            }
            Progress::Described(_) | Progress::Listed(_) => unreachable!("it enters the export"),
        }
    }
}

/// The way to the server, in the clear until TLS has begun.
struct Way<'s> {
    socket: &'s OwnedFd,
    tls: Option<Box<Tls>>,
    deadline: Instant,
}

impl Way<'_> {
    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.tls {
            None => send_all(self.socket, bytes, self.deadline),
            Some(tls) => {
                let sealed = tls.seal(&[bytes]).map_err(io::Error::other)?;
                send_all(self.socket, &sealed, self.deadline)
            }
        }
    }

    /// Receives at least a byte.
    fn receive(&mut self, input: &mut BytesMut) -> io::Result<()> {
        let Some(tls) = &mut self.tls else { return receive(self.socket, input, self.deadline) };
        loop {
            match tls.open(input, OPENED).map_err(io::Error::other)? {
                Opened::Data(0) => {}
                Opened::Data(_) => return Ok(()),
                Opened::Missing => receive(self.socket, tls.sealed(), self.deadline)?,
                Opened::Ended => return Err(io::ErrorKind::UnexpectedEof.into()),
            }
        }
    }
}

/// What it means that the server ends the handshake.
fn refused(export: &str, error: HandshakeError) -> DialError {
    match error {
        HandshakeError::Refused { reply: rep::ERR_TLS_REQD, .. } => DialError::Tls { error },
        HandshakeError::Refused { option: opt::STARTTLS, reply: rep::ERR_UNSUP, .. } => {
            DialError::NoTls { error }
        }
        HandshakeError::Refused { .. } => DialError::Refused { export: export.to_owned(), error },
        error => DialError::Handshake(error),
    }
}

/// What it means that the connection fails in the handshake; `has_spoken` says whether anything has
/// come on it.
fn lost(error: io::Error, export: &str, handshake: &Handshake, has_spoken: bool) -> DialError {
    let is_closed = matches!(
        error.kind(),
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe
    );
    let of_tls = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    if let Some(error) = of_tls {
        return DialError::TlsSession(error.clone());
    }
    match (is_closed, has_spoken) {
        (true, false) => DialError::Empty,
        (true, true) if handshake.asks_by_export_name() => {
            DialError::NoExport { export: export.to_owned() }
        }
        (true, true) => DialError::Closed,
        (false, false) if is_too_late(&error) => DialError::Silent,
        (false, true) if is_too_late(&error) => DialError::Slow,
        (false, _) => DialError::Lost(error),
    }
}

/// The same while keys are agreed on.
pub(super) fn lost_within(error: io::Error) -> DialError {
    match error.kind() {
        _ if is_too_late(&error) => DialError::Slow,
        io::ErrorKind::UnexpectedEof
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::BrokenPipe => DialError::Closed,
        _ => DialError::Lost(error),
    }
}

/// Whether a call on the socket ended because its time was over.
fn is_too_late(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock)
}

pub(super) fn send_all(socket: &OwnedFd, mut bytes: &[u8], deadline: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        limit(socket, Some(deadline))?;
        let send = || rustix::net::send(socket, bytes, SendFlags::NOSIGNAL);
        bytes = &bytes[rustix::io::retry_on_intr(send)?..];
    }
    Ok(())
}

pub(super) fn receive(socket: &OwnedFd, input: &mut BytesMut, deadline: Instant) -> io::Result<()> {
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

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::os::unix::net::{UnixListener, UnixStream};

    use paternoster_nbd::proto::OPTION_REPLY_MAGIC;

    use super::*;

    const GREETING: &[u8] = b"NBDMAGICIHAVEOPT\0\x03";

    fn refusal(option: u32, code: u32, words: &[u8]) -> Vec<u8> {
        let len = u32::try_from(words.len()).expect("short");
        let header = [option, code, len].map(u32::to_be_bytes).concat();
        [&OPTION_REPLY_MAGIC.to_be_bytes()[..], &header, words].concat()
    }

    /// What is said of a server that does this with the connection it takes, and closes it then.
    fn said_of(does: impl FnOnce(&mut UnixStream) + Send + 'static) -> String {
        let dir = tempfile::tempdir().expect("a folder");
        let socket = dir.path().join("s");
        let listener = UnixListener::bind(&socket).expect("a socket");
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a connection");
            does(&mut stream);
        });
        let place = NbdPlace::Unix(socket);
        let uri = NbdUri { place, export: "disk".to_owned(), tls: None };
        let error = dial_within(&uri, Duration::from_millis(300)).expect_err("it cannot be used");
        server.join().expect("it does what it is to do");
        error.to_string()
    }

    /// What is said of one that says this, and reads on until the client goes.
    fn said_of_words(words: Vec<u8>) -> String {
        said_of(move |stream| {
            stream.write_all(&words).expect("it is taken");
            // An error is a client that has gone, too.
            let _ = stream.read_to_end(&mut Vec::new());
        })
    }

    #[test]
    fn server_that_cannot_be_used_is_told_with_what_is_wrong() {
        let empty = said_of(|_| {});
        assert!(empty.contains("closes it without a word"), "{empty}");
        let silent = said_of_words(Vec::new());
        assert!(silent.contains("says nothing within"), "{silent}");
        let slow = said_of_words(GREETING.to_vec());
        assert!(slow.contains("does not show the export within"), "{slow}");
        let old = [b"NBDMAGIC\0\0\x42\x02\x81\x86\x12\x53".as_slice(), &[0; 136]].concat();
        let old = said_of_words(old);
        assert!(old.contains("the old handshake"), "{old}");
        let mail = said_of_words(b"220 mail\r\n".to_vec());
        assert!(mail.contains("no NBD server: it says \"220 mail\""), "{mail}");
        let refused = |code, words: &[u8]| {
            let go = refusal(opt::GO, code, words);
            [GREETING, &refusal(opt::STRUCTURED_REPLY, code, words)[..], &go[..]].concat()
        };
        let unknown = said_of_words(refused(rep::ERR_UNKNOWN, &[b'\n'; 9000]));
        assert!(unknown.contains("export \"disk\": the server has no such export"), "{unknown}");
        assert!(unknown.len() < 500 && !unknown.contains('\n'), "{unknown}");
        let tls = said_of_words(refused(rep::ERR_TLS_REQD, b"TLS!"));
        assert!(
            tls.contains("wants TLS")
                && tls.contains("nbds:// with tls-certificates=FOLDER is needed"),
            "{tls}"
        );
    }

    #[test]
    fn server_that_knows_no_options_closes_where_it_has_no_such_export() {
        let said = said_of(|stream| {
            stream.write_all(b"NBDMAGICIHAVEOPT\0\0").expect("it is taken");
            // The client's flags, and EXPORT_NAME with "disk".
            stream.read_exact(&mut [0; 4 + 16 + 4]).expect("it is asked for");
        });
        assert!(said.contains("asked for export \"disk\": it has none of that name"), "{said}");
    }

    #[test]
    fn server_that_is_not_there_or_takes_nobody_is_told() {
        let dir = tempfile::tempdir().expect("a folder");
        let place = NbdPlace::Unix(dir.path().join("s"));
        let uri = NbdUri { place, export: String::new(), tls: None };
        let absent = dial_within(&uri, Duration::from_millis(100)).expect_err("nobody is there");
        assert!(absent.to_string().starts_with("cannot connect: No such file"), "{absent}");
        let error = DialError::NoConnection.to_string();
        assert_eq!(error, "cannot connect: no answer within 5 s");
    }
}
