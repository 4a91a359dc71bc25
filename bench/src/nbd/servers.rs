//! The servers that are compared: how each is started, and when it is ready.

use super::DISK_SIZE;
use super::load::CONNECTIONS;
use crate::KilledOnDrop;
use anyhow::{Context, Result, bail};
use paternoster::SchedulerKind;
use std::fs;
use std::io::Read as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long a server may take until it greets a client.
const READY_WITHIN: Duration = Duration::from_secs(10);

/// What a server keeps its disk in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Backing {
    /// Its own memory.
    Memory,
    /// A file in the page cache.
    File,
    /// A file past the page cache.
    Direct,
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

/// Whether the thread of our disk looks for what comes before it sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Poll {
    /// Where it has learned that this is worth it; the default.
    Auto,
    /// It sleeps at once.
    Interrupt,
}

/// How ours is set up.
#[derive(Clone, Copy)]
pub(super) struct Ours<'a> {
    /// The executable.
    pub(super) program: &'a Path,
    pub(super) scheduler: SchedulerKind,
    /// Requests in its disk; its own default where absent.
    pub(super) depth: Option<u32>,
    /// In what it differs from others of ours that are measured.
    pub(super) variant: Variant,
    /// Of a disk in memory; one in a file has the default.
    pub(super) poll: Poll,
}

/// What ours is started with several times to be compared; its own default where absent.
#[derive(Clone, Copy, Default)]
pub(super) struct Variant {
    /// Connection threads.
    pub(super) threads: Option<u32>,
    /// By what it carries operations out.
    pub(super) engine: Option<Engine>,
}

/// By what our server carries operations out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Engine {
    #[value(name = "io_uring")]
    IoUring,
    Threads,
}

impl Engine {
    /// In the configuration.
    fn name(self) -> &'static str {
        match self {
            Self::IoUring => "io_uring",
            Self::Threads => "threads",
        }
    }
}

impl Variant {
    /// For people, behind the program's name: nothing, `/2`, `/io_uring` or `/2/io_uring`.
    fn suffix(self) -> String {
        let threads = self.threads.map(|threads| format!("/{threads}"));
        let engine = self.engine.map(|engine| format!("/{}", engine.name()));
        [threads, engine].into_iter().flatten().collect()
    }
}

/// A server that is up; it ends when this is dropped.
pub(super) struct Server {
    /// Which one.
    pub(super) kind: &'static Kind,
    /// What was said of ours; of others nothing.
    variant: Variant,
    /// Where its export is.
    pub(super) uri: String,
    /// Its control socket: that of ours with its disk in memory, else there is none.
    pub(super) ctl: PathBuf,
    /// Its process.
    process: KilledOnDrop,
}

/// All that are compared. Only nbdkit and ours serve memory.
pub(super) const KINDS: [Kind; 7] = [
    Kind { program: Program::Nbdkit, backing: Backing::Memory },
    Kind { program: Program::Paternoster, backing: Backing::Memory },
    Kind { program: Program::Nbdkit, backing: Backing::File },
    Kind { program: Program::QemuNbd, backing: Backing::File },
    Kind { program: Program::Paternoster, backing: Backing::File },
    Kind { program: Program::QemuNbd, backing: Backing::Direct },
    Kind { program: Program::Paternoster, backing: Backing::Direct },
];

impl Backing {
    /// For people.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::File => "file",
            Self::Direct => "direct",
        }
    }

    /// What others with this backing are measured by. nbdkit does no direct I/O.
    pub(super) fn peer(self) -> Program {
        match self {
            Self::Memory | Self::File => Program::Nbdkit,
            Self::Direct => Program::QemuNbd,
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

impl Poll {
    /// In the configuration.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Interrupt => "interrupt",
        }
    }
}

impl Kind {
    /// For people.
    pub(super) fn name(&self) -> String {
        format!("{} with its disk in {}", self.program.name(), self.backing.name())
    }

    /// Starts the server, with its socket in `dir`, and waits until it greets a client.
    pub(super) fn start(&'static self, dir: &Path, disk: &Path, ours: Ours<'_>) -> Result<Server> {
        let is_ours = self.program == Program::Paternoster;
        let variant = if is_ours { ours.variant } else { Variant::default() };
        let suffix = variant.suffix().replace('/', "-");
        let name = format!("{}-{}{suffix}", self.program.name(), self.backing.name());
        let socket = dir.join(name).with_extension("sock");
        let process = self
            .command(disk, &socket, ours)?
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .with_context(|| format!("{} does not start", self.program.name()))?;
        let export = if self.program == Program::Paternoster { "disk" } else { "" };
        let uri = format!("nbd+unix:///{export}?socket={}", socket.display());
        let ctl = control(&socket);
        let mut server = Server { kind: self, variant, uri, ctl, process: KilledOnDrop(process) };
        server.wait_ready(&socket)?;
        Ok(server)
    }

    /// The command that serves at `socket`.
    fn command(&self, disk: &Path, socket: &Path, ours: Ours<'_>) -> Result<Command> {
        let mut command = match self.program {
            Program::Paternoster => Command::new(ours.program),
            program => Command::new(program.name()),
        };
        match (self.program, self.backing) {
            (Program::Nbdkit, Backing::Memory) => {
                command.args(["--foreground", "--unix"]).arg(socket);
                command.args(["memory", &DISK_SIZE.to_string()]);
            }
            (Program::Nbdkit, _) => {
                command.args(["--foreground", "--unix"]).arg(socket).arg("file").arg(disk);
            }
            (Program::QemuNbd, backing) => {
                // Persistent: it goes on when a client leaves. Unless told it serves one at a time,
                // and the connections of a load would have their turns one after the other.
                let shared = format!("--shared={}", CONNECTIONS.end());
                command.args(["--persistent", &shared, "--format=raw"]);
                command.args(match backing {
                    Backing::Direct => ["--cache=none", "--aio=native"].as_slice(),
                    _ => &["--cache=writeback"],
                });
                command.arg("--socket").arg(socket).arg(own(disk, socket)?);
            }
            (Program::Paternoster, Backing::Memory) => {
                command.args(["serve", "--log", "warn"]).arg(memory_config(socket, ours)?);
            }
            (Program::Paternoster, backing) => {
                let cache = if backing == Backing::Direct { "direct" } else { "page" };
                command.args(["serve", "--log", "warn", "--export", "disk"]);
                command.args(ours.depth.map(|depth| format!("--depth={depth}")));
                command.args(["--scheduler", ours.scheduler.name(), "--cache", cache]);
                let Variant { threads, engine } = ours.variant;
                command.args(threads.map(|threads| format!("--threads={threads}")));
                command.args(engine.map(|engine| format!("--engine={}", engine.name())));
                command.args(["--ctl", "none", "--unix"]).arg(socket);
                command.arg("--disk").arg(own(disk, socket)?);
            }
        }
        Ok(command)
    }
}

/// A copy of the disk beside the socket: ours and qemu-nbd lock their disks.
fn own(disk: &Path, socket: &Path) -> Result<PathBuf> {
    let own = socket.with_extension("img");
    fs::copy(disk, &own).with_context(|| format!("copying {}", disk.display()))?;
    Ok(own)
}

/// Writes the configuration of ours that serves memory, beside its socket; the command line cannot
/// say that.
fn memory_config(socket: &Path, ours: Ours<'_>) -> Result<PathBuf> {
    let Ours { scheduler, depth, variant: Variant { threads, engine }, poll, .. } = ours;
    let path = socket.with_extension("toml");
    let threads = threads.map_or(String::new(), |threads| format!("threads = {threads}\n"));
    let engine = engine.map(|engine| format!("engine = {:?}\n", engine.name()));
    let engine = engine.unwrap_or_default();
    let depth = depth.map_or(String::new(), |depth| format!("depth = {depth}\n"));
    let text = format!(
        "unix = {:?}\nctl = {:?}\n{threads}{engine}\n[disks.disk0]\nbackend = \"memory\"\n\
         size = \"{}M\"\nscheduler = \"{scheduler}\"\n{depth}poll = \"{}\"\n\n\
         [exports.disk]\ndisk = \"disk0\"\n",
        socket.display().to_string(),
        control(socket).display().to_string(),
        DISK_SIZE >> 20,
        poll.name(),
    );
    fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
    Ok(path)
}

/// Where a server with that socket is controlled.
fn control(socket: &Path) -> PathBuf {
    socket.with_extension("ctl")
}

impl Server {
    /// The number of its process.
    pub(super) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// For people.
    pub(super) fn name(&self) -> String {
        format!("{} with its disk in {}", self.title(), self.kind.backing.name())
    }

    /// The program's name, with what was said of it: `paternoster/2/io_uring`.
    pub(super) fn title(&self) -> String {
        format!("{}{}", self.kind.program.name(), self.variant.suffix())
    }

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
