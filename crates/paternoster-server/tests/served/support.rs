//! A server for a test, and a client that does one thing after the other.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use paternoster_nbd::client::{
    Answer, ClientOptions, Handshake, HandshakeError, Progress, Replies, Reply, Target,
    Transmission,
};
use paternoster_nbd::{Command, ExportInfo, NbdError, Request, Session};
use paternoster_server::config::Config;
use paternoster_server::ctl::Control as _;
use paternoster_server::stat::{Detail, Stat};
use paternoster_server::{ControlHandle, Server};
use tempfile::TempDir;

use crate::THREADS;

/// How long an answer may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// One disk of memory, shared by the tenants `a` and `b`, half each; `r` reads all of `ro`.
pub(crate) const TWO_TENANTS: &str = r#"
[disks.d]
backend = "memory"
size = "16M"
[exports.a]
disk = "d"
size = "8M"
[exports.b]
disk = "d"
offset = "8M"
[disks.ro]
backend = "memory"
size = "1M"
[exports.r]
disk = "ro"
read_only = true
"#;

/// By what servers carry operations out: `TEST_ENGINE`, or what the machine permits.
fn engine() -> String {
    std::env::var("TEST_ENGINE").unwrap_or_else(|_| "auto".to_owned())
}

/// A running server.
pub(crate) struct Rig {
    pub(crate) dir: TempDir,
    pub(crate) server: Server,
}

impl Rig {
    /// A server of these disks and exports, on a unix socket; `DIR` in the text is its folder.
    pub(crate) fn start(toml: &str) -> Self {
        Self::prepared(toml, |_| {})
    }

    /// The same, with what `prepare` puts into the folder.
    pub(crate) fn prepared(toml: &str, prepare: impl FnOnce(&Path)) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        prepare(dir.path());
        let server = start_in(dir.path(), toml).expect("a server");
        let rig = Self { dir, server };
        if engine() != "auto" {
            assert!(rig.stat().disks.iter().all(|disk| disk.engine == engine()), "it has taken it");
        }
        rig
    }

    /// A file of so many bytes is served by `[disks.d]`, which the text goes on with.
    pub(crate) fn with_file(bytes: u64, toml: &str) -> Self {
        Self::prepared(&format!("[disks.d]\npath = \"DIR/disk.img\"\n{toml}"), |dir| {
            let disk = File::create(dir.join("disk.img")).expect("a disk");
            disk.set_len(bytes).expect("room");
        })
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.dir.path().join("nbd.sock")
    }

    /// A connection on which nothing has been said.
    pub(crate) fn connect(&self) -> UnixStream {
        let stream = UnixStream::connect(self.socket()).expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream.set_write_timeout(Some(PATIENCE)).expect("a timeout");
        stream
    }

    /// A client of this export.
    pub(crate) fn client(&self, export: &str) -> Client {
        Client::enter(self.connect(), export, true)
    }

    /// A client of this export that its disk has taken in, and not only been told that it may
    /// enter: whoever removes the export finds it there.
    pub(crate) fn served_client(&self, export: &str) -> Client {
        let mut client = self.client(export);
        client.read(0, 1);
        client
    }

    /// What asks the server and changes it.
    pub(crate) fn control(&self) -> ControlHandle {
        self.server.control()
    }

    pub(crate) fn stat(&self) -> Stat {
        self.detailed_stat(Detail::Groups)
    }

    pub(crate) fn detailed_stat(&self, detail: Detail) -> Stat {
        self.server.control().stat(detail).expect("every disk answers")
    }

    /// Waits until no connection and no request is left.
    pub(crate) fn until_empty(&self) {
        let begin = Instant::now();
        loop {
            let stat = self.stat();
            let busy = stat.disks.iter().any(|d| d.connections + d.queued + d.in_device > 0);
            if !busy {
                return;
            }
            assert!(begin.elapsed() < PATIENCE, "left behind: {stat:?}");
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Shuts the server down, which must go well: no thread of it has panicked. How long it took.
    pub(crate) fn end(self) -> Duration {
        let begin = Instant::now();
        self.server.shut_down().expect("no thread failed");
        begin.elapsed()
    }
}

/// Starts a server in a folder.
pub(crate) fn start_in(folder: &Path, toml: &str) -> anyhow::Result<Server> {
    let text = whole(folder, toml);
    let config = Config::from_toml(&text, Path::new("test.toml")).expect("a configuration");
    Server::start(&config)
}

/// The file of a server in a folder.
pub(crate) fn whole(folder: &Path, toml: &str) -> String {
    let head = format!("unix = \"DIR/nbd.sock\"\nthreads = {THREADS}\nengine = {:?}\n", engine());
    format!("{head}{toml}").replace("DIR", folder.to_str().expect("UTF-8"))
}

/// A client in the transmission phase.
pub(crate) struct Client {
    pub(crate) stream: UnixStream,
    transmission: Transmission,
    input: BytesMut,
    cookie: u64,
}

impl Client {
    pub(crate) fn enter(mut stream: UnixStream, export: &str, structured: bool) -> Self {
        let target = Target::Go(export.to_owned());
        let replies = if structured { Replies::StructuredWithAllocation } else { Replies::Simple };
        let options = ClientOptions { target, replies };
        let mut handshake = Handshake::new(options);
        let (mut input, mut output) = (BytesMut::new(), BytesMut::new());
        loop {
            let progress = handshake.receive(&mut input, &mut output).expect("the server agrees");
            stream.write_all(&output.split()).expect("the server takes it");
            match progress {
                Progress::Entered(session) => return Self::of(stream, session),
                Progress::NeedMore => receive(&mut stream, &mut input),
                other => panic!("{other:?}"),
            }
        }
    }

    /// One that has entered already.
    pub(crate) fn of(stream: UnixStream, session: Session) -> Self {
        let transmission = Transmission::new(session);
        Self { stream, transmission, input: BytesMut::new(), cookie: 0 }
    }

    pub(crate) fn export(&self) -> &ExportInfo {
        &self.transmission.session().export
    }

    /// The bytes of a request, which is in flight from now on; and its cookie.
    pub(crate) fn encode(&mut self, command: Command) -> (u64, BytesMut) {
        self.cookie += 1;
        let mut output = BytesMut::new();
        let request = Request { cookie: self.cookie, command };
        self.transmission.encode(&request, &mut output).expect("it can be sent");
        (self.cookie, output)
    }

    /// Sends a request: its cookie.
    pub(crate) fn ask(&mut self, command: Command) -> u64 {
        let (cookie, output) = self.encode(command);
        self.stream.write_all(&output).expect("the server takes it");
        cookie
    }

    /// The next reply.
    pub(crate) fn reply(&mut self) -> Reply {
        loop {
            if let Some(reply) = self.transmission.decode(&mut self.input).expect("a reply") {
                return reply;
            }
            receive(&mut self.stream, &mut self.input);
        }
    }

    /// Sends a request and waits for its reply; nothing else is in flight.
    pub(crate) fn call(&mut self, command: Command) -> Result<Answer, NbdError> {
        let cookie = self.ask(command);
        let reply = self.reply();
        assert_eq!(reply.cookie, cookie);
        reply.result.map_err(|error| error.error)
    }

    pub(crate) fn read(&mut self, offset: u64, len: u32) -> Bytes {
        match self.call(Command::Read { offset, len, df: false }) {
            Ok(Answer::Data(data)) => data,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn write(&mut self, offset: u64, data: &[u8]) {
        let data = Bytes::copy_from_slice(data);
        let answer = self.call(Command::Write { offset, data, fua: false });
        assert_eq!(answer, Ok(Answer::Done));
    }

    /// Returns whether it is served as if nothing was the matter.
    pub(crate) fn check_served(&mut self, seed: u64) {
        let data = seed.to_be_bytes().repeat(500);
        self.write(4096, &data);
        assert_eq!(self.read(4096, 4000), data[..]);
    }
}

pub(crate) fn receive(stream: &mut UnixStream, input: &mut BytesMut) {
    let mut chunk = vec![0; 64 << 10];
    let received = loop {
        match stream.read(&mut chunk) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            received => break received.expect("the server answers"),
        }
    };
    assert!(received > 0, "the server has closed the connection");
    input.extend_from_slice(&chunk[..received]);
}

/// The reply that refuses a client who asks to enter the export.
pub(crate) fn refusal(mut stream: UnixStream, export: &str) -> (u32, String) {
    let target = Target::Go(export.to_owned());
    let options = ClientOptions { target, replies: Replies::Simple };
    let mut handshake = Handshake::new(options);
    let (mut input, mut output) = (BytesMut::new(), BytesMut::new());
    loop {
        match handshake.receive(&mut input, &mut output) {
            Ok(Progress::NeedMore) => {
                stream.write_all(&output.split()).expect("the server takes it");
                receive(&mut stream, &mut input);
            }
            Err(HandshakeError::Refused { reply, message, .. }) => return (reply, message),
            other => panic!("{other:?}"),
        }
    }
}

/// What comes until the server closes, however it does.
pub(crate) fn rest(stream: &mut UnixStream) -> Vec<u8> {
    let mut rest = Vec::new();
    match stream.read_to_end(&mut rest) {
        Err(error) if error.kind() != io::ErrorKind::ConnectionReset => panic!("{error}"),
        _ => rest,
    }
}

/// A request's header, whatever it means.
pub(crate) fn header(flags: u16, code: u16, cookie: u64, offset: u64, len: u32) -> Vec<u8> {
    let mut bytes = 0x2560_9513_u32.to_be_bytes().to_vec();
    bytes.extend(flags.to_be_bytes());
    bytes.extend(code.to_be_bytes());
    bytes.extend(cookie.to_be_bytes());
    bytes.extend(offset.to_be_bytes());
    bytes.extend(len.to_be_bytes());
    bytes
}

/// Takes a simple reply to `cookie`: its error.
pub(crate) fn simple_reply(stream: &mut UnixStream, cookie: u64) -> u32 {
    let (answered, error) = any_simple_reply(stream);
    assert_eq!(answered, cookie);
    error
}

/// Takes a simple reply: the cookie that it answers, and its error.
pub(crate) fn any_simple_reply(stream: &mut UnixStream) -> (u64, u32) {
    let mut reply = [0; 16];
    stream.read_exact(&mut reply).expect("a reply");
    assert_eq!(reply[..4], [0x67, 0x44, 0x66, 0x98], "a simple reply");
    let [_, _, _, _, error @ .., _, _, _, _, _, _, _, _] = reply;
    let cookie = reply[8..].try_into().expect("8 bytes");
    (u64::from_be_bytes(cookie), u32::from_be_bytes(error))
}
