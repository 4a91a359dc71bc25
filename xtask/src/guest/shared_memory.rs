//! QEMU's front-end attaches to an export by shared memory, Debian's kernel puts ext4 on it, and
//! the server is killed and started again while files are written.
//!
//! The server runs on the host, so what is left on the disk is looked at here too.

use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::machine::Machine;
use crate::cargo;
use crate::served::{self, SOCKET, Server};

/// Behind how many files the server goes: early, as the guest does not wait for a host that is busy
/// and hears of its files late.
const GOES: [usize; 5] = [4, 9, 14, 20, 26];
/// What the guest has to have said at last, as the beginnings of its lines.
const EXPECTED: [&str; 2] = ["written 60", "read 60 files"];

/// Runs the guest, and says what it said.
pub(super) fn check(machine: &Machine) -> Result<String> {
    let dir = machine.dir.join("shared-memory");
    served::prepare(&dir, "", "scheduler = \"wfq\"", "vhost_user_memory = \"sealed\"")?;
    let mut server = Some(Server::start(dir.clone())?);
    let mut goes = GOES.into_iter().peekable();
    let socket = dir.join(SOCKET);
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
            server = Some(running.replace()?);
        }
        Ok(())
    })?;
    ensure!(goes.next().is_none(), "the server has not gone so often");
    let last: Vec<_> = said[said.len().saturating_sub(EXPECTED.len())..].to_vec();
    let as_expected = last.iter().zip(EXPECTED).all(|(line, words)| line.starts_with(words));
    ensure!(as_expected && last.len() == EXPECTED.len(), "the guest said {said:?}");
    server.context("a server runs")?.end()?;
    cargo::run(Command::new("/usr/sbin/e2fsck").arg("-fn").arg(served::disk(&dir)))?;
    Ok(format!("{}; killed {} times; {}", said[1], GOES.len(), last[1]))
}
