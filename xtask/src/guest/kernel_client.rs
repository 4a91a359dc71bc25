//! The kernel's own NBD client mounts ext4 on an export. While files are written, ten servers go on
//! where the one before stops, and then the server is killed and started again. At last a write
//! fails behind the page cache, which the next server tells.
//!
//! nbd-client connects it. That requests are to wait for the server that comes after the kill, and
//! where that is, the kernel is told over netlink (`nbd_netlink.rs`): nbd-client 3.24 of Debian 12
//! does neither, not even with `-persist`, and the device then fails all requests once its
//! connections are gone.

use anyhow::{Result, ensure};

use super::machine::Machine;

/// Bytes of the disk.
const DISK: u64 = 64 << 20;
/// What the guest has to have said, in this order, as the beginnings of its lines.
const EXPECTED: [&str; 7] = [
    "kernel ",
    "connections 2",
    "hand-overs 10",
    "clean after a restart ",
    "served 60 files",
    "on the disk 60 files",
    "errors of a sync in the log 1",
];

/// Runs the guest, and says what it said.
pub(super) fn check(machine: &Machine) -> Result<String> {
    let disk = machine.disk("kernel-client.disk", DISK)?;
    let said = machine.run("kernel-client", "part=kernel_client", &[&disk])?;
    let as_expected = said.len() == EXPECTED.len()
        && said.iter().zip(EXPECTED).all(|(line, expected)| line.starts_with(expected));
    ensure!(as_expected, "the guest said {said:?}, where {EXPECTED:?} were expected");
    Ok(said[1..].join(", "))
}
