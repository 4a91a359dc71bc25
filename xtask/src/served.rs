//! A server of volumes by shared memory, as the tests of other people's front-ends start it.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use paternoster_bench::KilledOnDrop;
use rustix::process::{Pid, Signal, kill_process};

use crate::cargo;

/// The socket of its export `gold`, in its directory.
pub(crate) const SOCKET: &str = "gold.vhost";
/// Bytes of its disk.
const DISK: u64 = 64 << 20;

/// A server that runs, with a disk `d` and an export `gold`.
pub(crate) struct Server {
    dir: PathBuf,
    process: KilledOnDrop,
}

/// Where its disk is.
pub(crate) fn disk(dir: &Path) -> PathBuf {
    dir.join("disk.img")
}

/// Makes a directory with a disk of zeroes and a configuration, to which go these lines of the
/// server, of the disk and of the export.
pub(crate) fn prepare(dir: &Path, server: &str, of_disk: &str, of_export: &str) -> Result<()> {
    fs::create_dir_all(dir).with_context(|| format!("making {}", dir.display()))?;
    let toml = format!(
        "unix = \"nbd.sock\"\nctl = \"none\"\n{server}\n\
         [disks.d]\npath = \"disk.img\"\n{of_disk}\n\
         [exports.gold]\ndisk = \"d\"\nvhost_user = \"{SOCKET}\"\n{of_export}\n"
    );
    fs::write(dir.join("server.toml"), toml)?;
    fs::File::create(disk(dir))?.set_len(DISK)?;
    Ok(())
}

impl Server {
    /// Starts it in a directory that was prepared, and waits until front-ends can attach.
    pub(crate) fn start(dir: PathBuf) -> Result<Self> {
        let mut command = Command::new(cargo::tested()?);
        command.arg("serve").arg("server.toml").current_dir(&dir).stdin(Stdio::null());
        let log = fs::OpenOptions::new().create(true).append(true).open(dir.join("server.log"))?;
        let mut child = command.stdout(Stdio::piped()).stderr(log).spawn().context("the server")?;
        let said = child.stdout.take().context("it is piped")?;
        let process = KilledOnDrop(child);
        // A URI of NBD, and then this.
        let line = BufReader::new(said).lines().nth(1).context("the server has not started")??;
        ensure!(line == format!("vhost-user {SOCKET}"), "the server said {line}");
        Ok(Self { dir, process })
    }

    /// Kills it while requests wait for it, and starts the next.
    pub(crate) fn replace(mut self) -> Result<Self> {
        let pid = Pid::from_child(&self.process);
        kill_process(pid, Signal::STOP)?;
        std::thread::sleep(Duration::from_millis(300));
        kill_process(pid, Signal::KILL)?;
        self.process.wait()?;
        Self::start(self.dir)
    }

    /// Asks it to end, which it does without an error.
    pub(crate) fn end(mut self) -> Result<()> {
        kill_process(Pid::from_child(&self.process), Signal::TERM)?;
        let status = self.process.wait()?;
        ensure!(status.success(), "the server ended by {status}");
        Ok(())
    }
}
