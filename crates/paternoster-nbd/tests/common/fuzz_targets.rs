//! The fuzz targets: each takes any bytes and panics if a promise of the protocol is broken. The
//! tests call them here, and the fuzzer in `fuzz/`.
//!
//! The promises: no panic; however a stream is cut into pieces, the same events and the same
//! output come of it; output and kept input are bounded; nothing happens before as many bytes
//! have come as a machine says it wants.

#![allow(dead_code, reason = "each test and each fuzzer uses some of it")]

use bytes::{Bytes, BytesMut};
use paternoster_nbd::client::{self, ClientOptions, Replies, Reply, ReplyError, Target};
use paternoster_nbd::proto::{
    MAX_OPTION_LEN, MAX_PAYLOAD, NbdError, OPTION_HEADER_LEN, REQUEST_LEN,
};
use paternoster_nbd::server::{self, Fatal};
use paternoster_nbd::{
    BlockSize, Command, ExportInfo, Request, Session, StatusQuery, TransmissionFlags,
};

/// Streams longer than this are not fed byte by byte.
const SLOW_LIMIT: usize = 4096;
/// Most bytes of output for each byte of input: a short name is quoted in a message.
const AMPLIFICATION: usize = 64;

/// What a server makes of a stream.
#[derive(Debug, PartialEq)]
enum ServerEvent {
    Entered(Session),
    Aborted,
    Refused(server::HandshakeError),
    Request(Request),
    Fatal(Fatal),
}

/// What a client makes of a stream.
#[derive(Debug, PartialEq)]
enum ClientEvent {
    Progress(client::Progress),
    Failed(client::HandshakeError),
    Reply(Reply),
    Broken(ReplyError),
}

/// A server's connection, from its greeting on.
pub(crate) fn server_session(stream: &[u8]) {
    check_splits(stream, || Server::new(ServerPhase::Options(server::Handshake::new())));
}

/// A server's connection after the handshake. The first byte says what was agreed on.
pub(crate) fn server_transmission(data: &[u8]) {
    let Some((&kind, stream)) = data.split_first() else { return };
    check_splits(stream, || {
        let mut export = disk();
        export.flags.set(TransmissionFlags::READ_ONLY, kind & 1 != 0);
        export.block_size.min = if kind & 2 == 0 { 1 } else { 512 };
        let structured_replies = kind & 4 != 0;
        let allocation_context = (kind & 8 != 0).then_some(1);
        let session = Session { export, structured_replies, allocation_context };
        let mut transmission = server::Transmission::new(session);
        if kind & 16 != 0 {
            transmission.begin_shutdown();
        }
        Server::new(ServerPhase::Transmission(transmission))
    });
}

/// The option phase where TLS is required, with STARTTLS put anywhere into what a client sends: the
/// first two bytes say where. Nothing is told before, and nothing from before counts afterwards.
pub(crate) fn server_starttls(data: &[u8]) {
    let Some((place, stream)) = data.split_first_chunk() else { return };
    let cut = usize::from(u16::from_be_bytes(*place)) % (stream.len() + 1);
    let (clear, within) = stream.split_at(cut);
    let (mut handshake, mut input) = (server::Handshake::requiring_tls(), BytesMut::new());
    let mut received = |bytes: &[u8]| {
        input.extend_from_slice(bytes);
        receive_all(&mut handshake, &mut input)
    };
    let (_, told) = received(clear);
    let secret = disk().name.into_bytes();
    assert!(!told.windows(secret.len()).any(|part| part == secret), "an export is told of");
    // Who has asked as often as it may is told so.
    if clear.len() > OPTION_HEADER_LEN * 8 || received(&STARTTLS).0 != START_TLS {
        return;
    }
    let mut other = server::Handshake::requiring_tls();
    let first = [&clear[..4], &STARTTLS].concat();
    assert_eq!(receive_all(&mut other, &mut BytesMut::from(&first[..])).0, START_TLS);
    let rest = &within[..within.len().min(OPTION_HEADER_LEN * 8)];
    assert_eq!(received(rest), receive_all(&mut other, &mut BytesMut::from(rest)));
}

/// What a client sends to begin TLS, and what becomes of that.
const STARTTLS: [u8; OPTION_HEADER_LEN] = *b"IHAVEOPT\0\0\0\x05\0\0\0\0";
const START_TLS: Received = Ok(server::Progress::StartTls);

type Received = Result<server::Progress, server::HandshakeError>;

/// What a handshake makes of its input, and its output.
fn receive_all(handshake: &mut server::Handshake, input: &mut BytesMut) -> (Received, Vec<u8>) {
    let (mut output, mut all) = (BytesMut::new(), Vec::new());
    loop {
        let end = handshake.receive(input, &disk(), &mut output);
        all.extend_from_slice(&output.split());
        if end != Ok(server::Progress::SendOutput) {
            return (end, all);
        }
    }
}

/// A client's connection, with some requests in flight once it has entered the transmission phase.
/// The first byte gives the client's options.
pub(crate) fn client_session(data: &[u8]) {
    let Some((&kind, stream)) = data.split_first() else { return };
    let options = client_options(kind);
    check_splits(stream, || Client {
        phase: ClientPhase::Options(client::Handshake::new(options.clone())),
        input: BytesMut::new(),
        output: BytesMut::new(),
        events: Vec::new(),
    });
}

/// The options of the client in [`client_session`].
pub(crate) fn client_options(kind: u8) -> ClientOptions {
    let name = disk().name;
    let target = match kind & 3 {
        0 => Target::Go(name),
        1 => Target::ExportName(name),
        2 => Target::Info(name),
        _ => Target::List,
    };
    let replies = match kind >> 2 & 3 {
        1 => Replies::Structured,
        3 => Replies::StructuredWithAllocation,
        _ => Replies::Simple,
    };
    ClientOptions { target, replies }
}

/// The export the targets know, which the recorded clients were given too.
pub(crate) fn disk() -> ExportInfo {
    ExportInfo {
        name: "memory".to_owned(),
        description: Some("a disk in memory".to_owned()),
        size: 256 << 10,
        flags: TransmissionFlags::all() - TransmissionFlags::READ_ONLY,
        block_size: BlockSize::default(),
    }
}

/// The requests a client in [`client_session`] has in flight; their cookies are their places.
pub(crate) fn client_requests() -> Vec<Command> {
    let data = Bytes::from_static(b"eight by");
    vec![
        Command::Read { offset: 0, len: 4096, df: false },
        Command::Read { offset: 100, len: 50, df: true },
        Command::Write { offset: 0, data, fua: true },
        Command::BlockStatus(StatusQuery { offset: 0, len: 65536, one: false }),
        Command::BlockStatus(StatusQuery { offset: 8192, len: 4096, one: true }),
        Command::Flush,
        Command::Read { offset: 4096, len: 0, df: false },
    ]
}

/// One side of a connection that is fed piece by piece.
trait Side {
    type Event: PartialEq + std::fmt::Debug;

    fn feed(&mut self, piece: &[u8]);

    /// How many more bytes it wants before anything can happen.
    fn wanted(&self) -> usize;

    fn events(&self) -> &[Self::Event];

    fn sent(&self) -> &[u8];
}

/// Feeds `stream` whole, in pieces, and byte by byte, and compares what comes of it.
fn check_splits<S: Side>(stream: &[u8], new: impl Fn() -> S) {
    let mut whole = new();
    whole.feed(stream);
    let mut pieces = new();
    let mut state = stream.len() as u64 | 1;
    let mut rest = stream;
    while !rest.is_empty() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let len = rest.len().min(1 + (state >> 58) as usize);
        let (piece, after) = rest.split_at(len);
        feed_checked(&mut pieces, piece);
        rest = after;
    }
    assert_same(&whole, &pieces);
    if stream.len() <= SLOW_LIMIT {
        let mut bytes = new();
        stream.chunks(1).for_each(|byte| feed_checked(&mut bytes, byte));
        assert_same(&whole, &bytes);
    }
}

fn feed_checked<S: Side>(side: &mut S, piece: &[u8]) {
    let before = (side.wanted(), side.events().len(), side.sent().len());
    side.feed(piece);
    if piece.len() < before.0 {
        let after = (side.events().len(), side.sent().len());
        assert_eq!(after, (before.1, before.2), "something came of less than what was wanted");
    }
}

fn assert_same<S: Side>(one: &S, other: &S) {
    assert_eq!(one.events(), other.events());
    assert_eq!(one.sent(), other.sent());
}

struct Server {
    phase: ServerPhase,
    input: BytesMut,
    /// Received in all.
    received: usize,
    output: BytesMut,
    /// Sent in all.
    sent: BytesMut,
    events: Vec<ServerEvent>,
}

enum ServerPhase {
    Options(server::Handshake),
    Transmission(server::Transmission),
    Closed,
}

impl Server {
    fn new(phase: ServerPhase) -> Self {
        let (input, output, sent) = (BytesMut::new(), BytesMut::new(), BytesMut::new());
        Self { phase, input, received: 0, output, sent, events: Vec::new() }
    }

    /// Lets the machines do one thing; false if they need more input.
    fn step(&mut self) -> bool {
        let (phase, event) = match &mut self.phase {
            ServerPhase::Options(handshake) => {
                match handshake.receive(&mut self.input, &disk(), &mut self.output) {
                    Ok(server::Progress::NeedMore) => {
                        assert!(self.input.len() < OPTION_HEADER_LEN + MAX_OPTION_LEN as usize);
                        return false;
                    }
                    Ok(server::Progress::SendOutput) => return true,
                    Ok(server::Progress::StartTls) => unreachable!("there is no TLS here"),
                    Ok(server::Progress::Entered(session)) => {
                        let transmission = server::Transmission::new(session.clone());
                        let phase = ServerPhase::Transmission(transmission);
                        (phase, ServerEvent::Entered(session))
                    }
                    Ok(server::Progress::Aborted) => (ServerPhase::Closed, ServerEvent::Aborted),
                    Err(error) => (ServerPhase::Closed, ServerEvent::Refused(error)),
                }
            }
            ServerPhase::Transmission(transmission) => {
                match transmission.decode(&mut self.input, &mut self.output) {
                    Ok(None) if transmission.has_more() => return true,
                    Ok(None) => {
                        assert!(self.input.len() < REQUEST_LEN.max(MAX_PAYLOAD as usize));
                        return false;
                    }
                    Ok(Some(request)) => {
                        let cookie = request.cookie;
                        let message = "answered by the fuzz target";
                        let error = NbdError::Io;
                        transmission.reply_error(cookie, error, message, &mut self.output);
                        self.events.push(ServerEvent::Request(request));
                        return true;
                    }
                    Err(fatal) => (ServerPhase::Closed, ServerEvent::Fatal(fatal)),
                }
            }
            ServerPhase::Closed => return false,
        };
        self.phase = phase;
        self.events.push(event);
        true
    }
}

impl Side for Server {
    type Event = ServerEvent;

    fn feed(&mut self, piece: &[u8]) {
        self.input.extend_from_slice(piece);
        self.received += piece.len();
        while self.step() {
            let bound = AMPLIFICATION * (self.received + OPTION_HEADER_LEN);
            assert!(self.sent.len() + self.output.len() <= bound, "output is not bounded");
            self.sent.unsplit(self.output.split());
        }
        self.sent.unsplit(self.output.split());
    }

    fn wanted(&self) -> usize {
        match &self.phase {
            ServerPhase::Options(handshake) => handshake.wanted(),
            ServerPhase::Transmission(transmission) => transmission.wanted(),
            ServerPhase::Closed => usize::MAX,
        }
    }

    fn events(&self) -> &[ServerEvent] {
        &self.events
    }

    fn sent(&self) -> &[u8] {
        &self.sent
    }
}

struct Client {
    phase: ClientPhase,
    input: BytesMut,
    output: BytesMut,
    events: Vec<ClientEvent>,
}

enum ClientPhase {
    Options(client::Handshake),
    Transmission(client::Transmission),
    Closed,
}

impl Client {
    /// Lets the machines do one thing; false if they need more input.
    fn step(&mut self) -> bool {
        let (phase, event) = match &mut self.phase {
            ClientPhase::Options(handshake) => {
                match handshake.receive(&mut self.input, &mut self.output) {
                    Ok(client::Progress::NeedMore) => return false,
                    Ok(client::Progress::Entered(session)) => {
                        let phase = Self::enter(session.clone(), &mut self.output);
                        (phase, ClientEvent::Progress(client::Progress::Entered(session)))
                    }
                    Ok(progress) => (ClientPhase::Closed, ClientEvent::Progress(progress)),
                    Err(error) => (ClientPhase::Closed, ClientEvent::Failed(error)),
                }
            }
            ClientPhase::Transmission(transmission) => match transmission.decode(&mut self.input) {
                Ok(None) => return false,
                Ok(Some(reply)) => {
                    self.events.push(ClientEvent::Reply(reply));
                    return true;
                }
                Err(error) => (ClientPhase::Closed, ClientEvent::Broken(error)),
            },
            ClientPhase::Closed => return false,
        };
        self.phase = phase;
        self.events.push(event);
        true
    }

    /// Sends all requests that the session allows.
    fn enter(session: Session, output: &mut BytesMut) -> ClientPhase {
        let mut transmission = client::Transmission::new(session);
        for (cookie, command) in (0..).zip(client_requests()) {
            let sent = transmission.encode(&Request { cookie, command }, output);
            assert!(matches!(sent, Ok(()) | Err(client::EncodeError::NoContext)));
        }
        ClientPhase::Transmission(transmission)
    }
}

impl Side for Client {
    type Event = ClientEvent;

    fn feed(&mut self, piece: &[u8]) {
        self.input.extend_from_slice(piece);
        while self.step() {}
    }

    fn wanted(&self) -> usize {
        match &self.phase {
            ClientPhase::Options(handshake) => handshake.wanted(),
            ClientPhase::Transmission(transmission) => transmission.wanted(),
            ClientPhase::Closed => usize::MAX,
        }
    }

    fn events(&self) -> &[ClientEvent] {
        &self.events
    }

    fn sent(&self) -> &[u8] {
        &self.output
    }
}
