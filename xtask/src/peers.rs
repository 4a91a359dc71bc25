//! `cargo xtask test --peers`: a front-end of other people's that Debian 12 does not have yet.
//!
//! ```text
//!   fio ── NBD ──▶ nbdkit, blkio ── shared memory ──▶ our server ──▶ disk.img
//!   └──────── in a Debian 13 ────┘
//! ```
//!
//! fio writes at random, reads all of it back and compares. Then the whole disk is copied by way of
//! the device, and has to be what is in the file. So it goes under each scheduler here, with one
//! thread of connections and with two.
//!
//! The Debian is kept below the target directory. Where it cannot be had, the check is not run.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use crate::cargo;
use crate::debian::{self, Debian, Shared};
use crate::served::{self, SOCKET, Server};
use paternoster_bench::NotRun;

/// Debian's release 13.
const SUITE: &str = "trixie";
/// nbdkit with its plugin of libblkio, fio with its engine of libnbd, and nbdcopy.
const PACKAGES: [&str; 3] = ["nbdkit", "fio", "libnbd-bin"];
/// Schedulers and threads of connections.
const SERVERS: [(&str, u32); 6] =
    [("none", 1), ("none", 2), ("cfq", 1), ("cfq", 2), ("wfq", 1), ("wfq", 2)];
/// Where the server's directory is in the Debian.
const SRV: &str = "/srv";

/// Runs the command: fio writes for so long under each scheduler.
pub(crate) fn run(time: Duration) -> Result<()> {
    debian::require("it")?;
    let dir = std::path::absolute(cargo::target_dir())?.join("peers");
    let start = Instant::now();
    let name = [&[SUITE], &PACKAGES[..]].concat().join("+");
    let debian = Debian::kept(dir.join(name), SUITE, &PACKAGES);
    let debian = debian.map_err(|error| NotRun(format!("no Debian 13: {error:#}")))?;
    println!("== peers: Debian 13 is ready: {:.1} s", start.elapsed().as_secs_f64());
    for (scheduler, threads) in SERVERS {
        let name = format!("nbdkit-blkio, {scheduler}, threads {threads}");
        let start = Instant::now();
        let dir = dir.join("run");
        if dir.exists() {
            fs::remove_dir_all(&dir).with_context(|| format!("emptying {}", dir.display()))?;
        }
        served::prepare(
            &dir,
            &format!("threads = {threads}"),
            &format!("scheduler = \"{scheduler}\""),
            "",
        )?;
        let server = Server::start(dir.clone())?;
        let shared = Shared { from: &dir, at: SRV, options: "rw" };
        cargo::run(&mut debian.shell(&shared, &line(time))).with_context(|| name.clone())?;
        server.end()?;
        let copy = fs::read(dir.join("copy"))?;
        ensure!(copy == fs::read(served::disk(&dir))?, "{name}: the copy differs from the disk");
        println!("== peers: {name}: {:.1} s", start.elapsed().as_secs_f64());
    }
    Ok(())
}

/// What the shell of Debian runs.
fn line(time: Duration) -> String {
    let fio = format!(
        "fio --name=verify --ioengine=nbd --uri=\\$uri --rw=randwrite --bsrange=4k-1m \
         --iodepth=32 --size=64m --time_based --runtime={} --verify=crc32c --verify_fatal=1 \
         --verify_backlog=64 --verify_state_save=0 --output=fio.log",
        time.as_secs()
    );
    format!(
        "cd {SRV}; nbdkit -U - blkio virtio-blk-vhost-user path={SOCKET} \
         --run \"{fio} && nbdcopy \\$uri copy\""
    )
}
