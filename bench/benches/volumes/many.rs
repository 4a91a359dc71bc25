//! What ten thousand volumes take that nobody uses: the start, memory, descriptors, and whether
//! their disk's thread sleeps.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use paternoster_bench::used::Used;
use paternoster_load::LocalServer;

use crate::rig::number;

/// Volumes, each with an export and a group of its own.
const VOLUMES: u32 = 10_000;
/// Of each.
const BYTES: u64 = 1 << 20;
/// Until clients can connect.
const START: Duration = Duration::from_secs(2);
/// What each may take.
const KIB: f64 = 16.0;
const DESCRIPTORS: f64 = 1.01;
/// For how long the thread is watched.
const WATCHED: Duration = Duration::from_secs(10);

/// Returns whether they take no more than they may.
pub(crate) fn measure() -> Result<bool> {
    let dir = tempfile::tempdir().context("there is no room for images")?;
    let folder = dir.path().display();
    let mut toml = format!("[pools.fast]\npath = \"{folder}\"\nscheduler = \"wfq\"\n");
    for volume in 0..VOLUMES {
        File::create(dir.path().join(format!("vm{volume}.img")))?.set_len(BYTES)?;
        writeln!(toml, "[volumes.vm{volume}]\npool = \"fast\"")?;
    }
    let before = Used::by(std::process::id())?;
    let begun = Instant::now();
    let server = LocalServer::from_toml(&toml)?;
    let start = begun.elapsed();
    let after = Used::by(std::process::id())?;
    let slept = wake_ups()?;
    thread::sleep(WATCHED);
    let wake_ups = wake_ups()? - slept;
    server.end()?;
    let each = |more: u64| number(more) / f64::from(VOLUMES);
    let kib = each(after.anonymous_kib.saturating_sub(before.anonymous_kib));
    let descriptors = each((after.descriptors - before.descriptors) as u64);
    println!("{VOLUMES} volumes that nobody uses: started in {start:.2?}");
    println!("{kib:.1} KiB of anonymous memory and {descriptors:.3} descriptors each");
    println!("{wake_ups} wake-ups of their disk's thread in {WATCHED:?}");
    println!("promised: {START:?}, {KIB} KiB, one descriptor, no wake-up");
    Ok(start <= START && kib <= KIB && descriptors <= DESCRIPTORS && wake_ups == 0)
}

/// How often the threads of disks in this process have slept so far.
fn wake_ups() -> Result<u64> {
    let (mut wake_ups, mut threads) = (0, 0);
    for thread in fs::read_dir("/proc/self/task")? {
        let status = fs::read_to_string(thread?.path().join("status"))?;
        let value = |key: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(key));
            line.map(str::trim).context("it is of every thread")
        };
        if value("Name:")?.starts_with("disk ") {
            wake_ups += value("voluntary_ctxt_switches:")?.parse::<u64>()?;
            threads += 1;
        }
    }
    ensure!(threads > 0, "there is no thread of a disk");
    Ok(wake_ups)
}
