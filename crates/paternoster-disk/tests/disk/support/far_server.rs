//! Another NBD server: an export in memory with a volatile cache, which can be killed at any of its
//! events, can hold back what it is asked, and can come back as another one.
//!
//! ```text
//!   request ─▶ event ─▶ carried out in the cache ─▶ event ─▶ answered
//!                                 └── FLUSH ──▶ durable
//!   killed: all connections are closed, and the cache is lost or kept
//! ```

use std::io::{self, Read as _, Write as _};
use std::net::Shutdown;
use std::ops::Range;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use bytes::BytesMut;
use paternoster_disk::{NbdPlace, NbdUri};
use paternoster_nbd::proto::STRUCTURED_REPLY_MAGIC;
use paternoster_nbd::server::{Handshake, Progress, Transmission};
use paternoster_nbd::{
    BlockSize, Command, ExportInfo, NbdError, Request, Session, TransmissionFlags,
};
use tempfile::TempDir;

/// What becomes of the cache when the server is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cache {
    Lost,
    Kept,
}

/// What becomes of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AtWrite {
    Writes,
    /// All connections are closed, and new ones are taken.
    HangsUp,
    /// It is answered with ESHUTDOWN, and others are answered.
    ShutsDown,
    /// It is answered with errors of which none is the last.
    Babbles,
}

/// What the server is asked for on a connection after which it says what means nothing.
pub(crate) const GARBAGE_AT: u64 = 4096 * 7;

/// The server; it serves until it is dropped.
pub(crate) struct FarServer {
    shared: Arc<Shared>,
    folder: TempDir,
}

struct Shared {
    state: Mutex<State>,
    /// Something in the state has changed.
    changed: Condvar,
}

/// What the test may look at and change.
pub(crate) struct State {
    pub(crate) export: ExportInfo,
    pub(crate) cache: Vec<u8>,
    pub(crate) durable: Vec<u8>,
    /// Events so far, and that at which the server is killed, with what that does.
    pub(crate) events: u64,
    pub(crate) killed_at: Option<(u64, Cache)>,
    /// How often it was killed.
    pub(crate) deaths: u64,
    /// Requests for these bytes are neither carried out nor answered.
    pub(crate) held: Option<Range<u64>>,
    /// Whether connections are closed as soon as they are made.
    pub(crate) is_away: bool,
    /// Whether requests are answered with ESHUTDOWN.
    pub(crate) shuts_down: bool,
    /// What it does when it is asked for a write, other than to write.
    pub(crate) at_write: AtWrite,
    /// Whether a request for [`GARBAGE_AT`] is answered with what means nothing.
    pub(crate) sends_garbage: bool,
    /// What it was asked, in the order of arrival.
    pub(crate) asked: Vec<Asked>,
    /// With what it answers a FLUSH, if it fails.
    pub(crate) flush_error: Option<NbdError>,
    /// Connections that were ended by a DISCONNECT.
    pub(crate) left: usize,
    /// Connections that have entered the export, ever.
    pub(crate) entered: usize,
    connections: Vec<UnixStream>,
}

/// A request as it arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) what: &'static str,
    pub(crate) bytes: Range<u64>,
}

impl FarServer {
    /// One with that many bytes, all of them zero.
    pub(crate) fn new(size: usize, flags: TransmissionFlags, block: u32) -> Self {
        let export = ExportInfo {
            name: "far".to_owned(),
            description: None,
            size: size as u64,
            flags,
            block_size: BlockSize { min: block, preferred: 4096, max: 1 << 20 },
        };
        let state = State {
            export,
            cache: vec![0; size],
            durable: vec![0; size],
            events: 0,
            killed_at: None,
            deaths: 0,
            held: None,
            is_away: false,
            shuts_down: false,
            at_write: AtWrite::Writes,
            sends_garbage: false,
            asked: Vec::new(),
            flush_error: None,
            left: 0,
            entered: 0,
            connections: Vec::new(),
        };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
        let server = Self { shared, folder: tempfile::tempdir().expect("a folder") };
        let listener = UnixListener::bind(server.socket()).expect("a socket");
        let shared = server.shared.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let shared = shared.clone();
                std::thread::spawn(move || {
                    // An error is a connection that was lost.
                    let _ = serve(&shared, stream);
                });
            }
        });
        server
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("far.sock")
    }

    pub(crate) fn uri(&self) -> NbdUri {
        NbdUri { place: NbdPlace::Unix(self.socket()), export: "far".to_owned(), tls: None }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().expect("nobody panics")
    }

    /// Changes the state, and has whoever is held look again.
    pub(crate) fn set(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state());
        self.shared.changed.notify_all();
    }

    /// Kills it; it is there again at once, unless it is away.
    pub(crate) fn kill(&self, cache: Cache) {
        self.set(|state| state.die(cache));
    }

    /// Waits until it is so.
    pub(crate) fn wait_until(&self, is_so: impl Fn(&State) -> bool) {
        let state = self.state();
        let waited = self.shared.changed.wait_while(state, |state| !is_so(state));
        drop(waited.expect("nobody panics"));
    }
}

impl State {
    pub(crate) fn die(&mut self, cache: Cache) {
        self.deaths += 1;
        if cache == Cache::Lost {
            self.cache.clone_from(&self.durable);
        }
        for connection in self.connections.drain(..) {
            let _ = connection.shutdown(Shutdown::Both);
        }
    }

    /// Has so many bytes, which connections that are made from now on show.
    pub(crate) fn grow(&mut self, size: u64) {
        self.export.size = size;
        self.cache.resize(index(size), 0);
        self.durable.resize(index(size), 0);
    }

    /// Closes one connection, and lives on.
    pub(crate) fn cut_one(&mut self) {
        if let Some(connection) = self.connections.pop() {
            let _ = connection.shutdown(Shutdown::Both);
        }
    }

    /// An event passes. Whether the server has died of it.
    fn passes(&mut self) -> bool {
        let event = self.events;
        self.events += 1;
        match self.killed_at {
            Some((at, cache)) if at == event => {
                self.die(cache);
                true
            }
            _ => false,
        }
    }

    /// Carries a request out. Whether it is answered: the server lives on.
    fn carry_out(&mut self, session: &Session, request: Request, output: &mut BytesMut) -> bool {
        let replies = Transmission::new(session.clone());
        let Request { cookie, command } = request;
        let Asked { what, bytes } = asked(&command);
        if self.passes() {
            return false;
        }
        let is_write = what == "write";
        if is_write && self.at_write == AtWrite::HangsUp {
            self.die(Cache::Kept);
            return false;
        }
        if self.shuts_down || is_write && self.at_write == AtWrite::ShutsDown {
            replies.reply_error(cookie, NbdError::Shutdown, "it goes", output);
            return true;
        }
        if self.sends_garbage && bytes.start == GARBAGE_AT {
            output.extend_from_slice(b"this is no reply");
            return true;
        }
        if let Some(error) = self.flush_error.filter(|_| what == "flush") {
            replies.reply_error(cookie, error, "it cannot", output);
            return true;
        }
        let at = index(bytes.start)..index(bytes.end);
        match command {
            Command::Read { offset, len, .. } => {
                replies.read_header(cookie, offset, len, output);
                output.extend_from_slice(&self.cache[at]);
            }
            Command::Write { data, .. } => self.cache[at].copy_from_slice(&data),
            Command::Trim { .. } | Command::WriteZeroes { .. } => self.cache[at].fill(0),
            Command::Flush => self.durable.clone_from(&self.cache),
            Command::Cache { .. } | Command::BlockStatus(_) | Command::Disconnect => {}
        }
        if what != "read" {
            replies.reply_ok(cookie, output);
        }
        !self.passes()
    }

    fn is_held(&self, bytes: &Range<u64>) -> bool {
        self.held.as_ref().is_some_and(|held| held.start < bytes.end && bytes.start < held.end)
    }
}

/// One connection, as the threads see it that answer on it.
#[derive(Clone)]
struct Connection {
    shared: Arc<Shared>,
    /// Deaths of the server when it was made: after the next one it is no more.
    born: u64,
    session: Session,
    writer: Arc<Mutex<UnixStream>>,
}

fn serve(shared: &Arc<Shared>, mut stream: UnixStream) -> io::Result<()> {
    let born = {
        let mut state = shared.state.lock().expect("nobody panics");
        if state.is_away {
            return Ok(());
        }
        state.connections.push(stream.try_clone()?);
        state.deaths
    };
    let (mut input, mut output) = (BytesMut::new(), BytesMut::new());
    output.extend_from_slice(&Handshake::greeting());
    let Some(session) = enter(shared, &mut stream, &mut input, &mut output)? else { return Ok(()) };
    shared.state.lock().expect("nobody panics").entered += 1;
    shared.changed.notify_all();
    let writer = Arc::new(Mutex::new(stream.try_clone()?));
    let mut transmission = Transmission::new(session.clone());
    let connection = Connection { shared: shared.clone(), born, session, writer };
    loop {
        match transmission.decode(&mut input, &mut output).map_err(io::Error::other)? {
            Some(Request { command: Command::Disconnect, .. }) => {
                shared.state.lock().expect("nobody panics").left += 1;
                shared.changed.notify_all();
                return Ok(());
            }
            Some(request) if connection.note(&request) => {
                let connection = connection.clone();
                std::thread::spawn(move || connection.answer(request));
            }
            Some(request) => connection.answer(request),
            None if transmission.has_more() => {}
            None if receive(&mut stream, &mut input)? => {}
            None => return Ok(()),
        }
    }
}

impl Connection {
    /// Notes that it was asked for that. Whether it is held, and so answered by another thread.
    fn note(&self, request: &Request) -> bool {
        let mut state = self.shared.state.lock().expect("nobody panics");
        let asked = asked(&request.command);
        let is_held = state.is_held(&asked.bytes);
        if state.deaths == self.born {
            state.asked.push(asked);
        }
        self.shared.changed.notify_all();
        is_held
    }

    /// Carries the request out and answers it, once it is not held, unless the server dies.
    fn answer(&self, request: Request) {
        let bytes = asked(&request.command).bytes;
        let state = self.shared.state.lock().expect("nobody panics");
        let waits = |state: &mut State| state.deaths == self.born && state.is_held(&bytes);
        let mut state = self.shared.changed.wait_while(state, waits).expect("nobody panics");
        if state.deaths != self.born {
            return;
        }
        if state.at_write == AtWrite::Babbles && matches!(request.command, Command::Write { .. }) {
            drop(state);
            return self.babble(request.cookie);
        }
        let mut output = BytesMut::new();
        let lives = state.carry_out(&self.session, request, &mut output);
        self.shared.changed.notify_all();
        if lives {
            // An error is a connection that is no more.
            let _ = self.writer.lock().expect("nobody panics").write_all(&output);
        }
    }
}

impl Connection {
    /// Answers with chunks of type ERROR, none of which is the last, until the client goes.
    fn babble(&self, cookie: u64) {
        let (flags, kind, len, eio) = (0u16, (1u16 << 15) + 1, 6u32, 5u32);
        let mut chunk = STRUCTURED_REPLY_MAGIC.to_be_bytes().to_vec();
        chunk.extend([flags, kind].map(u16::to_be_bytes).concat());
        chunk.extend(cookie.to_be_bytes());
        chunk.extend([len, eio].map(u32::to_be_bytes).concat());
        chunk.extend(0u16.to_be_bytes());
        while self.writer.lock().expect("nobody panics").write_all(&chunk).is_ok() {}
    }
}

fn enter(
    shared: &Shared,
    stream: &mut UnixStream,
    input: &mut BytesMut,
    output: &mut BytesMut,
) -> io::Result<Option<Session>> {
    let exports = vec![shared.state.lock().expect("nobody panics").export.clone()];
    let mut handshake = Handshake::new();
    loop {
        let progress = handshake.receive(input, &exports, output).map_err(io::Error::other)?;
        stream.write_all(&output.split())?;
        match progress {
            Progress::Entered(session) => return Ok(Some(session)),
            Progress::StartTls | Progress::Aborted => return Ok(None),
            Progress::SendOutput => {}
            Progress::NeedMore => {
                if !receive(stream, input)? {
                    return Ok(None);
                }
            }
        }
    }
}

fn receive(stream: &mut UnixStream, input: &mut BytesMut) -> io::Result<bool> {
    let mut bytes = [0; 16 << 10];
    let received = stream.read(&mut bytes)?;
    input.extend_from_slice(&bytes[..received]);
    Ok(received > 0)
}

fn asked(command: &Command) -> Asked {
    let (what, offset, len) = match command {
        Command::Read { offset, len, .. } => ("read", *offset, *len),
        Command::Write { offset, data, .. } => {
            ("write", *offset, u32::try_from(data.len()).expect("short"))
        }
        Command::Trim { offset, len, .. } => ("trim", *offset, *len),
        Command::WriteZeroes { offset, len, .. } => ("zero", *offset, *len),
        Command::Cache { offset, len } => ("cache", *offset, *len),
        Command::BlockStatus(query) => ("status", query.offset, query.len),
        Command::Flush => ("flush", 0, 0),
        Command::Disconnect => ("disconnect", 0, 0),
    };
    Asked { what, bytes: offset..offset + u64::from(len) }
}

fn index(at: u64) -> usize {
    usize::try_from(at).expect("the disk is in memory")
}
