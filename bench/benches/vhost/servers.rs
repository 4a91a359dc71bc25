//! The servers, each a process of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use paternoster_bench::KilledOnDrop;

/// Bytes of the disk.
const SIZE: u64 = 256 << 20;

/// Where the disk is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Backing {
    Memory,
    /// In a file that is in the page cache.
    File,
}

impl Backing {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::File => "page cache",
        }
    }
}

/// How a client reaches it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Door {
    Nbd,
    VhostUser,
}

/// A server as one of its sockets offers it.
pub(crate) struct Server {
    pub(crate) name: String,
    pub(crate) is_ours: bool,
    /// The scheduler of ours.
    pub(crate) scheduler: &'static str,
    pub(crate) door: Door,
    pub(crate) socket: PathBuf,
    process: Rc<KilledOnDrop>,
}

impl Server {
    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }
}

/// Ours under `none` and `wfq`, by either door, and qemu-storage-daemon.
pub(crate) fn start(dir: &Path, program: &Path, backing: Backing) -> Result<Vec<Server>> {
    let mut servers = Vec::new();
    for scheduler in ["none", "wfq"] {
        let dir = dir.join(format!("{scheduler}-{}", backing.name().replace(' ', "-")));
        fs::create_dir(&dir)?;
        let disk = match backing {
            Backing::Memory => format!("backend = \"memory\"\nsize = {SIZE}"),
            Backing::File => {
                make_file(&dir.join("disk.img"))?;
                "path = \"disk.img\"\ncache = \"page\"".to_owned()
            }
        };
        let toml = format!(
            "unix = \"nbd.sock\"\nctl = \"none\"\n[disks.d]\n{disk}\nscheduler = \"{scheduler}\"\n\
             [exports.disk]\ndisk = \"d\"\nvhost_user = \"disk.vhost\"\n"
        );
        fs::write(dir.join("c.toml"), toml)?;
        let mut command = Command::new(program);
        command.args(["serve", "--log", "warn", "c.toml"]).current_dir(&dir);
        let process = Rc::new(spawn(command, &dir.join("disk.vhost"))?);
        for (door, socket, name) in
            [(Door::VhostUser, "disk.vhost", "vhost-user"), (Door::Nbd, "nbd.sock", "NBD")]
        {
            servers.push(Server {
                name: format!("ours, {scheduler}, {name}"),
                is_ours: true,
                scheduler,
                door,
                socket: dir.join(socket),
                process: Rc::clone(&process),
            });
        }
    }
    servers.push(theirs(dir, backing)?);
    Ok(servers)
}

fn theirs(dir: &Path, backing: Backing) -> Result<Server> {
    let dir = dir.join(format!("qemu-{}", backing.name().replace(' ', "-")));
    fs::create_dir(&dir)?;
    let disk = match backing {
        Backing::Memory => format!("driver=null-co,node-name=d,size={SIZE},read-zeroes=on"),
        Backing::File => {
            make_file(&dir.join("disk.img"))?;
            "driver=file,node-name=d,filename=disk.img,aio=io_uring".to_owned()
        }
    };
    let export = "type=vhost-user-blk,id=e,node-name=d,addr.type=unix,addr.path=disk.vhost,\
                  writable=on,num-queues=1";
    let mut command = Command::new("qemu-storage-daemon");
    command.args(["--blockdev", &disk, "--export", export]).current_dir(&dir);
    let socket = dir.join("disk.vhost");
    let process = Rc::new(spawn(command, &socket)?);
    let (door, name) = (Door::VhostUser, "qemu-storage-daemon".to_owned());
    Ok(Server { name, is_ours: false, scheduler: "", door, socket, process })
}

/// A file whose bytes are all there, and in the page cache.
fn make_file(path: &Path) -> Result<()> {
    let block = vec![7; 1 << 20];
    let blocks = usize::try_from(SIZE)? / block.len();
    fs::write(path, block.repeat(blocks)).with_context(|| format!("writing {}", path.display()))
}

/// Starts it, and waits until its socket is there.
pub(crate) fn spawn(mut command: Command, socket: &Path) -> Result<KilledOnDrop> {
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let name = command.get_program().to_owned();
    let child = command.spawn().with_context(|| format!("{} does not start", name.display()))?;
    let mut process = KilledOnDrop(child);
    let begun = Instant::now();
    while !socket.exists() {
        if let Some(status) = process.try_wait()? {
            bail!("{} ended at once: {status}", name.display());
        }
        if begun.elapsed() > Duration::from_secs(10) {
            bail!("{} has no socket after ten seconds", name.display());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    // It is bound a moment before it listens.
    std::thread::sleep(Duration::from_millis(100));
    Ok(process)
}
