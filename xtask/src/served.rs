//! A server as tests start it, and the configuration of one whose volume is served by shared
//! memory, for other people's front-ends.

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

/// A server that runs in a directory.
pub(crate) struct Server {
    dir: PathBuf,
    program: PathBuf,
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
        // A URI of NBD, and then this.
        let (server, said) = Self::launch(dir, 2)?;
        let line = said.last().map_or("", String::as_str);
        ensure!(line == format!("vhost-user {SOCKET}"), "the server said {line}");
        Ok(server)
    }

    /// Starts it, and waits until it has said where clients reach so many exports: its lines.
    pub(crate) fn launch(dir: PathBuf, exports: usize) -> Result<(Self, Vec<String>)> {
        let program = cargo::tested()?;
        let mut command = Command::new(&program);
        command.arg("serve").arg("server.toml").current_dir(&dir).stdin(Stdio::null());
        let log = fs::OpenOptions::new().create(true).append(true).open(dir.join("server.log"))?;
        let mut child = command.stdout(Stdio::piped()).stderr(log).spawn().context("the server")?;
        let said = child.stdout.take().context("it is piped")?;
        let process = KilledOnDrop(child);
        let said = BufReader::new(said).lines().take(exports).collect::<Result<Vec<_>, _>>()?;
        ensure!(said.len() == exports, "the server has not started: see {}", dir.display());
        Ok((Self { dir, program, process }, said))
    }

    /// Asks it something by `paternoster ctl`: what that prints.
    pub(crate) fn ctl(&self, args: &[&str]) -> Result<String> {
        let mut command = Command::new(&self.program);
        command.args(["ctl", "--ctl", "ctl.sock"]).args(args).current_dir(&self.dir);
        cargo::output(&mut command)
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
