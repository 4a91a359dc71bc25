//! QEMU's front-end attaches to an export by shared memory, Debian's kernel puts ext4 on it, and
//! the server is killed and started again while files are written.
//!
//! The server runs on the host, so what is left on the disk is looked at here too.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use paternoster_bench::KilledOnDrop;
use rustix::process::{Pid, Signal, kill_process};

use super::machine::Machine;
use crate::cargo;

/// Bytes of the disk.
const DISK: u64 = 64 << 20;
/// Behind how many files the server goes.
const GOES: [usize; 3] = [10, 25, 40];
/// What the guest has to have said at last, as the beginnings of its lines.
const EXPECTED: [&str; 2] = ["written 60", "read 60 files"];

/// A server on the host.
struct Server<'d> {
    dir: &'d Path,
    process: KilledOnDrop,
}

impl<'d> Server<'d> {
    /// Starts it, and waits until front-ends can attach.
    fn start(dir: &'d Path) -> Result<Self> {
        let mut command = Command::new(cargo::tested()?);
        command.arg("serve").arg("server.toml").current_dir(dir).stdin(Stdio::null());
        let log = fs::OpenOptions::new().create(true).append(true).open(dir.join("server.log"))?;
        let mut child = command.stdout(Stdio::piped()).stderr(log).spawn().context("the server")?;
        let said = child.stdout.take().context("it is piped")?;
        let process = KilledOnDrop(child);
        // A URI of NBD, and then this.
        let line = BufReader::new(said).lines().nth(1).context("the server has not started")??;
        ensure!(line == "vhost-user gold.vhost", "the server said {line}");
        Ok(Self { dir, process })
    }

    /// Kills it while requests wait for it.
    fn kill(mut self) -> Result<&'d Path> {
        let pid = Pid::from_child(&self.process);
        kill_process(pid, Signal::STOP)?;
        std::thread::sleep(Duration::from_millis(300));
        kill_process(pid, Signal::KILL)?;
        self.process.wait()?;
        Ok(self.dir)
    }
}

/// Runs the guest, and says what it said.
pub(super) fn check(machine: &Machine) -> Result<String> {
    let dir: PathBuf = machine.dir.join("shared-memory");
    fs::create_dir_all(&dir)?;
    let toml = "unix = \"nbd.sock\"\nctl = \"none\"\n\
                [disks.d]\npath = \"disk.img\"\nscheduler = \"wfq\"\n\
                [exports.gold]\ndisk = \"d\"\nvhost_user = \"gold.vhost\"\n\
                vhost_user_memory = \"sealed\"\n";
    fs::write(dir.join("server.toml"), toml)?;
    fs::File::create(dir.join("disk.img"))?.set_len(DISK)?;
    let mut server = Some(Server::start(&dir)?);
    let mut goes = GOES.into_iter().peekable();
    let socket = dir.join("gold.vhost");
    let arguments = [
        "-chardev".to_owned(),
        format!("socket,id=gold,path={},reconnect=1", socket.display()),
        "-device".to_owned(),
        "vhost-user-blk-pci,chardev=gold,num-queues=2".to_owned(),
    ];
    let said = machine.run_with("shared-memory", "part=shared_memory", &arguments, |console| {
        let written =
            console.lines().filter_map(|line| line.trim().strip_prefix("guest: written "));
        let written = written.filter_map(|number| number.parse::<usize>().ok()).max();
        if goes.next_if(|behind| written >= Some(*behind)).is_some()
            && let Some(running) = server.take()
        {
            server = Some(Server::start(running.kill()?)?);
        }
        Ok(())
    })?;
    ensure!(goes.next().is_none(), "the server has not gone so often");
    let last: Vec<_> = said[said.len().saturating_sub(EXPECTED.len())..].to_vec();
    let as_expected = last.iter().zip(EXPECTED).all(|(line, words)| line.starts_with(words));
    ensure!(as_expected && last.len() == EXPECTED.len(), "the guest said {said:?}");
    let running = server.take().context("a server runs")?;
    kill_process(Pid::from_child(&running.process), Signal::TERM)?;
    let mut process = running.process;
    ensure!(process.wait()?.success(), "the server did not end well");
    cargo::run(Command::new("/usr/sbin/e2fsck").arg("-fn").arg(dir.join("disk.img")))?;
    Ok(format!("{}; killed {} times; {}", said[1], GOES.len(), last[1]))
}
