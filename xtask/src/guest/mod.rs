//! `cargo xtask test --guest`: what only a kernel of one's own can show, in a virtual machine.
//!
//! ```text
//!   packages, kernel ──▶ image: busybox, the server, this program, tools, modules, scripts
//!                          │
//!                          ├──▶ durability.sh      clients of a server on dm-log-writes
//!                          │      └─▶ log, record ─▶ judge: what was promised is there
//!                          ├──▶ the same, where no flush reaches the device: the judge must see it
//!                          ├──▶ kernel_client.sh   ext4 on the kernel's client, over hand-overs
//!                          │                         and a restart, and a write that fails
//!                          └──▶ shared_memory.sh   ext4 on a server outside, by shared memory
//! ```
//!
//! No hardware virtualisation is needed: QEMU interprets the guest. A guest that has its power off
//! when it is asked has said on its console what it found; its disks are files that are read here.
//! The kernel stays below the target directory, as do the files of the last run.

mod clients;
mod connection;
mod durability;
mod front;
mod image;
mod judge;
mod kernel;
mod kernel_client;
mod log;
mod machine;
mod nbd_netlink;
mod record;
mod shared_memory;

use std::fs;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result, anyhow};
use clap::Subcommand;

use self::front::By;
use self::image::Image;
use self::kernel::Kernel;
use self::machine::Machine;
use crate::{cargo, packages};
use paternoster_bench::NotRun;

/// The packages: the machine, the guest's shell and tools, and binutils' `strip`.
const PACKAGES: [&str; 6] =
    ["qemu-system-x86", "busybox-static", "dmsetup", "nbd-client", "e2fsprogs", "binutils"];
/// Programs of Debian that the guest has, and where they are.
const PROGRAMS: [(&str, &str); 5] = [
    ("busybox", "/usr/bin/busybox"),
    ("dmsetup", "/usr/sbin/dmsetup"),
    ("nbd-client", "/usr/sbin/nbd-client"),
    ("mkfs.ext4", "/usr/sbin/mkfs.ext4"),
    ("e2fsck", "/usr/sbin/e2fsck"),
];
/// The guest's own files.
const SCRIPTS: [(&str, &str); 6] = [
    ("/init", include_str!("init.sh")),
    ("/durability.sh", include_str!("durability.sh")),
    ("/failed_write.sh", include_str!("failed_write.sh")),
    ("/files.sh", include_str!("files.sh")),
    ("/kernel_client.sh", include_str!("kernel_client.sh")),
    ("/shared_memory.sh", include_str!("shared_memory.sh")),
];
/// Directories that are mounted over.
const MOUNT_POINTS: [&str; 6] = ["/dev", "/proc", "/sys", "/tmp", "/run", "/mnt"];
/// The schedulers and connection threads under which durability is shown, and by what.
const DURABLE: [(&str, u32, By); 5] = [
    ("mq-deadline", 1, By::Nbd),
    ("cfq", 1, By::Nbd),
    ("wfq", 2, By::Nbd),
    ("wfq", 1, By::Machine),
    ("mq-deadline", 1, By::MachineWritesThrough),
];

/// What this program does within the guest.
#[derive(Subcommand)]
pub(crate) enum Inside {
    /// Write and flush at random, and set marks in the log of the device
    Clients(clients::Args),
    /// Tell the kernel's NBD client of a server that is gone or back
    NbdNetlink(nbd_netlink::Args),
}

/// Does what is to be done within the guest.
pub(crate) fn run_inside(inside: &Inside) -> Result<()> {
    match inside {
        Inside::Clients(args) => clients::run(args),
        Inside::NbdNetlink(args) => nbd_netlink::run(args),
    }
}

/// Runs the command. What cannot be run is a failure where everything has to be.
pub(crate) fn run() -> Result<()> {
    let must_run = std::env::var("CI").is_ok_and(|ci| ci == "true");
    check().map_err(|error| match error.downcast::<NotRun>() {
        Ok(not_run) if must_run => anyhow!("{not_run}; as CI is set, that is a failure"),
        Ok(not_run) => not_run.into(),
        Err(error) => error,
    })
}

/// Makes the machine ready and runs every guest.
fn check() -> Result<()> {
    let mut passed = Vec::new();
    let machine = step("the guest is ready", &mut passed, || {
        let machine = prepare()?;
        let kernel = machine.kernel.image.file_name().unwrap_or_default().display().to_string();
        Ok((machine, kernel))
    })?;
    for (scheduler, threads, by) in DURABLE {
        let name = format!(
            "what was promised is on the device, {scheduler}, threads {threads}, {}",
            by.name()
        );
        let check = || durability::check(&machine, scheduler, threads, by);
        step(&name, &mut passed, || Ok(((), check()?)))?;
    }
    let name = "a device without flushes is found out";
    step(name, &mut passed, || Ok(((), durability::check_control(&machine)?)))?;
    let name = "ext4 on the kernel's client survives ten hand-overs and a restart of the server";
    step(name, &mut passed, || Ok(((), kernel_client::check(&machine)?)))?;
    let name = "ext4 by shared memory survives five kills of the server";
    step(name, &mut passed, || Ok(((), shared_memory::check(&machine)?)))?;
    println!("== guest: all passed: {}", passed.join(", "));
    Ok(())
}

/// Does a step; says what it found and how long it took, and notes the latter.
fn step<T>(
    name: &str,
    passed: &mut Vec<String>,
    act: impl FnOnce() -> Result<(T, String)>,
) -> Result<T> {
    println!("== guest: {name}");
    let start = Instant::now();
    let (made, found) = act().with_context(|| name.to_owned())?;
    let took = format!("{:.1} s", start.elapsed().as_secs_f64());
    println!("== guest: {name}: {took}; {found}");
    passed.push(format!("{name} ({took})"));
    Ok(made)
}

/// Gets packages, kernel and programs, and makes the image of them.
fn prepare() -> Result<Machine> {
    packages::require(&PACKAGES).map_err(|error| NotRun(format!("{error:#}")))?;
    let root = std::path::absolute(cargo::target_dir())?.join("guest");
    let dir = root.join("run");
    if dir.exists() {
        fs::remove_dir_all(&dir).with_context(|| format!("emptying {}", dir.display()))?;
    }
    fs::create_dir_all(&dir).with_context(|| format!("making {}", dir.display()))?;
    let kernel = Kernel::fetch(&root)?;
    let image = dir.join("image");
    let content = make_image(&kernel)?;
    fs::write(&image, content).with_context(|| format!("writing {}", image.display()))?;
    Ok(Machine { dir, kernel, image })
}

/// The guest's file system.
fn make_image(kernel: &Kernel) -> Result<Vec<u8>> {
    let mut image = Image::new();
    for path in MOUNT_POINTS {
        image.add_directory(path);
    }
    image.add_program("paternoster", &cargo::tested()?)?;
    image.add_program("xtask", &std::env::current_exe().context("where this program is")?)?;
    for (name, path) in PROGRAMS {
        image.add_program(name, Path::new(path))?;
    }
    for (path, script) in SCRIPTS {
        image.add(path, script.as_bytes());
    }
    let mut names = String::new();
    for path in &kernel.modules {
        let name = path.file_name().context("a module has a name")?.display().to_string();
        let module = fs::read(path).with_context(|| format!("reading {}", path.display()))?;
        image.add(&format!("/lib/modules/{name}"), &module);
        names = names + &name + "\n";
    }
    image.add("/modules", names.as_bytes());
    Ok(image.finish())
}
