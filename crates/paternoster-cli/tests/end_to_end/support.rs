//! A server that runs for a test, and tools that act on it.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// How long a server may take to say where it is.
const START: Duration = Duration::from_secs(20);

/// How long a tool may run, in seconds.
const TOOL: &str = "60";

/// What listens.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    Unix,
    Tcp,
}

/// A running server; dropping it kills it.
pub(crate) struct Served {
    child: Child,
    pub(crate) dir: TempDir,
    /// What it printed: the URI of each export.
    pub(crate) uris: Vec<String>,
    /// Further lines, which should not come.
    lines: mpsc::Receiver<String>,
}

pub(crate) fn temp_dir() -> TempDir {
    tempfile::tempdir().expect("a directory")
}

/// Has each server and its `ctl` find each other in their own folder, where many run at once.
pub(crate) const CONTROL: (&str, &str) = ("PATERNOSTER_CTL", "paternoster-ctl.sock");

/// By what servers carry operations out: `TEST_ENGINE`, or what the machine permits.
fn engine() -> Option<String> {
    std::env::var("TEST_ENGINE").ok()
}

/// Has the server that is started with these arguments carry operations out as `TEST_ENGINE` says.
fn engine_option(dir: &Path, args: &[&str]) -> Option<String> {
    let engine = engine()?;
    let file = args.iter().find(|arg| Path::new(arg).extension().is_some_and(|end| end == "toml"));
    let Some(file) = file.map(|file| dir.join(file)) else {
        return Some(format!("--engine={engine}"));
    };
    let text = fs::read_to_string(&file).expect("a configuration");
    fs::write(file, format!("engine = {engine:?}\n{text}")).expect("room for a line");
    None
}

/// The program, with `dir` as its current directory.
pub(crate) fn paternoster(dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_paternoster"));
    command.current_dir(dir).env("RUST_LOG", "info").env(CONTROL.0, CONTROL.1);
    command
}

impl Served {
    /// `paternoster serve ARGS` in `dir`, which must print so many URIs.
    pub(crate) fn start(dir: TempDir, args: &[&str], uris: usize) -> Self {
        let mut command = paternoster(dir.path());
        command.arg("serve").args(args).args(engine_option(dir.path(), args));
        let served = Self::spawn(dir, command, uris);
        if let Some(engine) = engine() {
            assert!(served.log().contains(&format!("engine=\"{engine}\"")), "{}", served.log());
        }
        served
    }

    /// The same, by a command that becomes the server.
    pub(crate) fn spawn(dir: TempDir, mut command: Command, uris: usize) -> Self {
        let log = File::create(dir.path().join("server.log")).expect("a log");
        command.stdout(Stdio::piped()).stderr(log);
        let mut child = command.spawn().expect("the binary runs");
        let stdout = BufReader::new(child.stdout.take().expect("it is piped"));
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || stdout.lines().map_while(Result::ok).all(|l| sender.send(l).is_ok()));
        let mut served = Self { child, dir, uris: Vec::new(), lines };
        for _ in 0..uris {
            let line = served.lines.recv_timeout(START);
            let line = line.unwrap_or_else(|_| panic!("no URI; it says:\n{}", served.log()));
            served.uris.push(line);
        }
        served
    }

    /// Serves `disk.img` of `dir` as the export `disk`, with more options.
    pub(crate) fn file(dir: TempDir, place: Place, more: &[&str]) -> Self {
        let mut args = vec!["--disk", "disk.img", "--export", "disk"];
        match place {
            Place::Unix => args.extend(["--unix", "nbd.sock"]),
            Place::Tcp => args.extend(["--tcp", "127.0.0.1:0"]),
        }
        args.extend(more);
        Self::start(dir, &args, 1)
    }

    /// Serves a new file of so many bytes, all of them a hole.
    pub(crate) fn empty_file(place: Place, bytes: u64, more: &[&str]) -> Self {
        let dir = temp_dir();
        let disk = File::create(dir.path().join("disk.img")).expect("a disk");
        disk.set_len(bytes).expect("room for it");
        Self::file(dir, place, more)
    }

    /// Serves so many bytes of memory as the export `disk`.
    pub(crate) fn memory(place: Place, bytes: u64) -> Self {
        Self::memory_with("", place, bytes)
    }

    /// The same, with keys of the server before.
    pub(crate) fn memory_with(keys: &str, place: Place, bytes: u64) -> Self {
        let dir = temp_dir();
        let listen = match place {
            Place::Unix => "unix = \"nbd.sock\"",
            Place::Tcp => "tcp = \"127.0.0.1:0\"",
        };
        let toml = format!(
            "{keys}{listen}\n[disks.d]\nbackend = \"memory\"\nsize = {bytes}\n\
             [exports.disk]\ndisk = \"d\"\n"
        );
        fs::write(dir.path().join("c.toml"), toml).expect("a file");
        Self::start(dir, &["c.toml"], 1)
    }

    /// The URI of the first export.
    pub(crate) fn uri(&self) -> &str {
        &self.uris[0]
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// What it has written to standard error.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.path("server.log")).expect("the log")
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("a child").is_none()
    }

    /// Its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Asks it to end.
    pub(crate) fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it is not waited for yet");
    }

    /// Waits until it has ended: how it did, and how long that took.
    pub(crate) fn wait(&mut self, patience: Duration) -> (ExitStatus, Duration) {
        let begin = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("a child") {
                return (status, begin.elapsed());
            }
            assert!(begin.elapsed() < patience, "it does not end; it says:\n{}", self.log());
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Gives its folder back once it has been killed.
    pub(crate) fn leave(mut self) -> TempDir {
        self.wait(Duration::from_secs(10));
        std::mem::replace(&mut self.dir, temp_dir())
    }

    /// Starts a server of the file that takes over from this one, which must print so many URIs.
    /// The log of this one is `before.log` from here on.
    pub(crate) fn successor(&mut self, file: &str, uris: usize) -> Self {
        fs::rename(self.path("server.log"), self.path("before.log")).expect("it has a log");
        let dir = std::mem::replace(&mut self.dir, temp_dir());
        let mut command = paternoster(dir.path());
        command.args(["serve", file, "--take-over"]);
        Self::spawn(dir, command, uris)
    }

    /// Has such a server take over, which must go well. Returns it, and what this one has logged.
    pub(crate) fn hand_over(mut self, file: &str) -> (Self, String) {
        let next = self.successor(file, self.uris.len());
        let (status, _) = self.wait(Duration::from_secs(10));
        let log = fs::read_to_string(next.path("before.log")).expect("a log");
        assert!(status.success(), "{status}:\n{log}");
        (next, log)
    }

    /// Ends it by SIGTERM, which must go well and promptly.
    pub(crate) fn end(mut self) {
        assert!(self.is_running(), "it has ended; it says:\n{}", self.log());
        self.terminate();
        let (status, _) = self.wait(Duration::from_secs(10));
        assert!(status.success(), "{status}:\n{}", self.log());
        let further: Vec<String> = self.lines.try_iter().collect();
        assert_eq!(further, [""; 0], "standard output has the URIs alone");
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a tool of a Debian package in `dir`, for a minute at most.
pub(crate) fn tool<A: AsRef<OsStr>>(
    package: &str,
    program: &str,
    args: impl IntoIterator<Item = A>,
    dir: &Path,
) -> Output {
    let output = tool_command(program, dir).args(args).output();
    let output = output.expect("timeout, of the package coreutils, runs");
    check_found(package, program, output.status);
    output
}

/// The command that runs a tool and ends it, with what it started, after a minute.
pub(crate) fn tool_command(program: &str, dir: &Path) -> Command {
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new("timeout");
    command.args(["--kill-after=1", TOOL, program]).current_dir(dir).stdin(Stdio::null());
    command.env("PATH", format!("{path}:/usr/sbin:/sbin"));
    command
}

pub(crate) fn check_found(package: &str, program: &str, status: ExitStatus) {
    match status.code() {
        Some(126 | 127) => panic!("{program} does not start: install the Debian package {package}"),
        Some(124 | 137) => panic!("{program} did not end within {TOOL} s"),
        _ => assert_eq!(status.signal(), None, "{program} was killed"),
    }
}

/// Runs a tool, which must succeed; what it says on standard output.
pub(crate) fn run(package: &str, program: &str, args: &[&str], dir: &Path) -> String {
    let output = tool(package, program, args, dir);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {args:?}: {}\n{said}{complained}", output.status);
    said
}

/// fio writes 64 MiB in random order to `uri`, and reads back and checks all that it wrote;
/// `more` are options beside those.
pub(crate) fn fio_verify(uri: &str, more: &[&str], dir: &Path) -> String {
    let uri = format!("--uri={uri}");
    let mut args = vec![
        "--name=v",
        "--ioengine=nbd",
        &uri,
        "--rw=randwrite",
        "--iodepth=32",
        "--size=64M",
        "--verify=crc32c",
        "--verify_fatal=1",
        "--verify_backlog=256",
        "--verify_state_save=0",
    ];
    args.extend(more);
    run("fio", "fio", &args, dir)
}

/// Asks until it is so, for ten seconds.
pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < Duration::from_secs(10), "not within 10 s: {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Bytes with nothing in them that repeats.
pub(crate) fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; len];
    Rng::with_seed(seed).fill(&mut bytes);
    bytes
}

/// A request's header.
pub(crate) fn request(flags: u16, code: u16, cookie: u64, offset: u64, len: u32) -> Vec<u8> {
    let mut bytes = 0x2560_9513_u32.to_be_bytes().to_vec();
    bytes.extend(flags.to_be_bytes());
    bytes.extend(code.to_be_bytes());
    bytes.extend(cookie.to_be_bytes());
    bytes.extend(offset.to_be_bytes());
    bytes.extend(len.to_be_bytes());
    bytes
}

/// The program of the laboratory, which is built beside ours with the whole workspace.
pub(crate) fn laboratory() -> String {
    let beside = Path::new(env!("CARGO_BIN_EXE_paternoster")).with_file_name("paternoster-lab");
    assert!(beside.exists(), "{}: cargo build --workspace makes it", beside.display());
    beside.display().to_string()
}
