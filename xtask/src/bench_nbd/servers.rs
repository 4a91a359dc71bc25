//! The servers that are compared: how each is started, and when it is ready.

use super::DISK_SIZE;
use crate::cargo;
use anyhow::{Context, Result, bail};
use paternoster::SchedulerKind;
use std::fs;
use std::io::Read as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a server may take until it greets a client.
const READY_WITHIN: Duration = Duration::from_secs(10);
/// Requests that our server keeps in its disk.
const OUR_DEPTH: &str = "16";

/// What a server keeps its disk in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Backing {
    /// Its own memory.
    Memory,
    /// A file in the page cache.
    File,
}

/// The programs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Program {
    /// What others are measured by.
    Nbdkit,
    /// The block server of QEMU.
    QemuNbd,
    /// Ours.
    Paternoster,
}

/// A server with its backing, not started.
pub(super) struct Kind {
    /// The program.
    pub(super) program: Program,
    /// What its disk is in.
    pub(super) backing: Backing,
}

/// A server that is up; it ends when this is dropped.
pub(super) struct Server {
    /// Which one.
    pub(super) kind: &'static Kind,
    /// Where its export is.
    pub(super) uri: String,
    /// Its process.
    process: Child,
}

/// All that are compared. Only nbdkit and ours serve memory.
pub(super) const KINDS: [Kind; 5] = [
    Kind { program: Program::Nbdkit, backing: Backing::Memory },
    Kind { program: Program::Paternoster, backing: Backing::Memory },
    Kind { program: Program::Nbdkit, backing: Backing::File },
    Kind { program: Program::QemuNbd, backing: Backing::File },
    Kind { program: Program::Paternoster, backing: Backing::File },
];

impl Backing {
    /// For people.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::File => "file",
        }
    }
}

impl Program {
    /// For people and for the search path.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Nbdkit => "nbdkit",
            Self::QemuNbd => "qemu-nbd",
            Self::Paternoster => "paternoster",
        }
    }
}

impl Kind {
    /// For people.
    pub(super) fn name(&self) -> String {
        format!("{} with its disk in {}", self.program.name(), self.backing.name())
    }

    /// Starts the server, with its socket in `dir`, and waits until it greets a client.
    pub(super) fn start(
        &'static self,
        dir: &Path,
        disk: &Path,
        scheduler: SchedulerKind,
    ) -> Result<Server> {
        let socket = dir.join(format!("{}-{}.sock", self.program.name(), self.backing.name()));
        let process = self
            .command(dir, disk, &socket, scheduler)?
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .with_context(|| format!("{} does not start", self.program.name()))?;
        let export = if self.program == Program::Paternoster { "disk" } else { "" };
        let uri = format!("nbd+unix:///{export}?socket={}", socket.display());
        let mut server = Server { kind: self, uri, process };
        server.wait_ready(&socket)?;
        Ok(server)
    }

    /// The command that serves at `socket`; the scheduler is that of our server.
    fn command(
        &self,
        dir: &Path,
        disk: &Path,
        socket: &Path,
        scheduler: SchedulerKind,
    ) -> Result<Command> {
        let mut command = match self.program {
            Program::Paternoster => Command::new(cargo::paternoster()?),
            program => Command::new(program.name()),
        };
        match (self.program, self.backing) {
            (Program::Nbdkit, Backing::Memory) => {
                command.args(["--foreground", "--unix"]).arg(socket);
                command.args(["memory", &DISK_SIZE.to_string()]);
            }
            (Program::Nbdkit, Backing::File) => {
                command.args(["--foreground", "--unix"]).arg(socket).arg("file").arg(disk);
            }
            (Program::QemuNbd, _) => {
                // Persistent: it goes on when a client leaves.
                command.args(["--persistent", "--format=raw", "--cache=writeback"]);
                command.arg("--socket").arg(socket).arg(disk);
            }
            (Program::Paternoster, Backing::Memory) => {
                command
                    .args(["serve", "--log", "warn"])
                    .arg(memory_config(dir, socket, scheduler)?);
            }
            (Program::Paternoster, Backing::File) => {
                command.args(["serve", "--log", "warn", "--export", "disk", "--depth", OUR_DEPTH]);
                command.args(["--scheduler", scheduler.name()]);
                command.args(["--ctl", "none", "--disk"]).arg(disk).arg("--unix").arg(socket);
            }
        }
        Ok(command)
    }
}

/// Writes the configuration of ours that serves memory; the command line cannot say that.
fn memory_config(dir: &Path, socket: &Path, scheduler: SchedulerKind) -> Result<PathBuf> {
    let path = dir.join("memory.toml");
    let text = format!(
        "unix = {:?}\nctl = \"none\"\n\n[disks.disk0]\nbackend = \"memory\"\nsize = \"{}M\"\n\
         scheduler = \"{scheduler}\"\ndepth = {OUR_DEPTH}\n\n\
         [exports.disk]\ndisk = \"disk0\"\n",
        socket.display().to_string(),
        DISK_SIZE >> 20,
    );
    fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
    Ok(path)
}

impl Server {
    /// Returns once an NBD server greets at `socket`.
    fn wait_ready(&mut self, socket: &Path) -> Result<()> {
        let start = Instant::now();
        while !is_greeted(socket) {
            if let Some(status) = self.process.try_wait().context("asking for the server")? {
                bail!("it ended at once: {status}");
            }
            if start.elapsed() > READY_WITHIN {
                bail!("it has sent no greeting after {} s", READY_WITHIN.as_secs());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }
}

/// Returns whether a client that connects to `socket` receives the first words of the NBD protocol.
fn is_greeted(socket: &Path) -> bool {
    let Ok(mut stream) = UnixStream::connect(socket) else { return false };
    // To the end of the greeting: a server complains of a client that goes away before.
    let mut greeting = [0; 18];
    let timeout = stream.set_read_timeout(Some(READY_WITHIN));
    let read = timeout.and_then(|()| stream.read_exact(&mut greeting));
    read.is_ok() && greeting.starts_with(b"NBDMAGIC")
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself, and then neither has an effect.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
