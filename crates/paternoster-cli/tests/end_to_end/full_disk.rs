//! A file system without room for what clients write.

use std::process::Command;

use crate::support::{CONTROL, Place, Served, temp_dir};
use crate::wire::{Wire, request};

const MIB: u32 = 1 << 20;

pub(crate) const WRITE: u16 = 1;
pub(crate) const FLUSH: u16 = 3;
const TRIM: u16 = 4;

const FUA: u16 = 1;

/// What the protocol calls ENOSPC.
const NO_SPACE: u32 = 28;

/// Serves an image of 64 MiB, as `disk` and `other`, on a file system of its own that has room for
/// 8 MiB.
fn served_where_8_mib_fit() -> Served {
    let dir = temp_dir();
    // In a mount namespace of its own, where nothing is left behind; below a root that is no mount,
    // as in a chroot, what is there is private already.
    let mount = "{ mount --make-rprivate / || true; } 2>/dev/null; \
                 mkdir full && mount -t tmpfs -o size=8M none full && \
                 truncate -s 64M full/disk.img && exec \"$@\"";
    let mut command = Command::new("unshare");
    command.current_dir(dir.path()).env(CONTROL.0, CONTROL.1).args([
        "--mount",
        "--propagation",
        "unchanged",
    ]);
    if !rustix::process::geteuid().is_root() {
        command.arg("--map-root-user");
    }
    command.args(["sh", "-c", mount, "sh"]);
    command.args([env!("CARGO_BIN_EXE_paternoster"), "serve", "--disk", "full/disk.img"]);
    command.args(["--export", "disk,size=32M", "--export", "other,offset=32M"]);
    command.args(["--unix", "nbd.sock"]);
    Served::spawn(dir, command, 2)
}

/// Sends a command, with zeroes if it is a write: its error.
pub(crate) fn ask(wire: &mut Wire, flags: u16, command: u16, offset: u64, len: u32) -> u32 {
    wire.send(&request(flags, command, 7, offset, len));
    if command == WRITE {
        wire.send(&vec![1; len as usize]);
    }
    wire.simple_reply(7)
}

/// A FUA write of 9 MiB where 8 fit got EIO; from then on so did FLUSH and FUA of every tenant,
/// also after space was freed. Without FUA it was EIO where ENOSPC is due.
#[test]
fn write_that_fits_in_part_gets_enospc_and_nobody_else_gets_an_error() {
    for flags in [FUA, 0] {
        let served = served_where_8_mib_fit();
        let mut greedy = Wire::enter(&served, Place::Unix);
        let mut other = Wire::connect(&served, Place::Unix);
        other.enter_by_name(3, "other");
        assert_eq!(ask(&mut other, FUA, WRITE, 0, 4096), 0);
        assert_eq!(ask(&mut greedy, flags, WRITE, 0, 9 * MIB), NO_SPACE);
        assert_eq!(ask(&mut other, 0, FLUSH, 0, 0), 0);
        assert_eq!(ask(&mut other, FUA, WRITE, 0, 4096), 0, "it has room there");
        assert_eq!(ask(&mut other, FUA, WRITE, u64::from(MIB), 4096), NO_SPACE);
        assert_eq!(ask(&mut greedy, FUA, TRIM, 0, 9 * MIB), 0);
        assert_eq!(ask(&mut other, FUA, WRITE, u64::from(MIB), 4096), 0, "there is room again");
        assert_eq!(ask(&mut greedy, 0, FLUSH, 0, 0), 0);
        served.end();
    }
}
