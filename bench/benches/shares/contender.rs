//! A scheduler that serves a set-up: a server of its own, its clients, and what they got.
//!
//! ```text
//!   none   ▒▒▓▓▓▓        ▒▓▓▓▓        ▒▓▓▓▓          ▒ asks, not counted
//!   cfq          ▒▒▓▓▓▓        ▒▓▓▓▓        ▒▓▓▓▓    ▓ counted: a window
//!                              time ──▶
//! ```
//!
//! All contenders of a row are connected at once, and one of them works: so what the machine does
//! besides meets all alike, and a scheduler keeps what it has learned.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use paternoster::SchedulerKind;
use paternoster_load::{Layout, Load, LocalServer, server_toml};
use paternoster_scene::{Outcome, Scheduler};
use paternoster_server::ctl::Control as _;
use paternoster_server::stat::Detail;
use tempfile::TempDir;

use crate::cpu::{Cores, Cpu};
use crate::row::{Aim, Disk, Row};

/// Where files are that shall be in memory.
const TMPFS: &str = "/dev/shm";
/// How long clients ask after a pause before anything counts.
const RAMP: Duration = Duration::from_millis(200);
/// What decides where clients read.
const SEED: u64 = 13;

/// The contenders of a row: these schedulers, and the row's own variants of them.
pub(crate) fn contenders(row: &Row, schedulers: &[SchedulerKind]) -> Vec<Scheduler> {
    let plain = schedulers.iter().map(|&kind| Scheduler::from(kind));
    let is_asked_for = |variant: &&Scheduler| schedulers.contains(&variant.kind);
    plain.chain(row.variants.iter().filter(is_asked_for).cloned()).collect()
}

/// Whether it is the scheduler that the aims are for, with the settings that they are for.
pub(crate) fn is_aimed_at(contender: &Scheduler, row: &Row) -> bool {
    let name = contender.kind.name();
    name == AIMED_AT && contender.tunables.is_empty() != row.aims_at_variants(name)
}

/// How long it is given to learn before anything counts.
fn settles_in(contender: &Scheduler, row: &Row) -> Duration {
    let learns = contender.tunables.is_empty();
    Duration::from_millis(match contender.kind.name() {
        "none" => 500,
        AIMED_AT if row.aim == Aim::Times && learns => 12_000,
        AIMED_AT if row.aim == Aim::Depth && learns => 8_000,
        AIMED_AT => 3_000,
        _ => 1_000,
    })
}

/// The scheduler that is to have shares without idling.
pub(crate) const AIMED_AT: &str = "wfq";

/// What a window has shown.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    pub(crate) outcome: Outcome,
    pub(crate) cores: Cores,
    /// The most requests that the scheduler then had in the disk at once.
    pub(crate) depth: i64,
}

/// A contender at work, or pausing.
pub(crate) struct Running {
    contender: Scheduler,
    server: LocalServer,
    load: Load,
    /// Holds the disk's file, where it has one.
    _file: Option<TempDir>,
}

impl Running {
    /// Starts a server, connects the clients, lets them ask until the scheduler has settled, and
    /// has them pause.
    pub(crate) fn start(row: &Row, contender: Scheduler) -> Result<Self> {
        let sizes = row.export_bytes();
        let size = sizes.iter().sum();
        let file = match row.disk {
            Disk::Tmpfs => Some(disk_file(Path::new(TMPFS), size)?),
            Disk::Direct => Some(disk_file(&std::env::temp_dir(), size)?),
            Disk::Modelled { .. } | Disk::Memory => None,
        };
        let mut disk = disk(row.disk, file.as_ref().map(TempDir::path));
        if row.layout == Layout::Ranges && file.is_none() {
            writeln!(disk, "size = {size}")?;
        }
        let text = server_toml(row.layout, &disk, &contender, &row.tenants, &sizes);
        let server = LocalServer::from_toml(&text)?;
        let mut load = server.connect(&row.tenants, SEED)?;
        load.start()?;
        load.run_for(settles_in(&contender, row))?;
        load.pause()?;
        Ok(Self { contender, server, load, _file: file })
    }

    /// Who it is.
    pub(crate) fn contender(&self) -> &Scheduler {
        &self.contender
    }

    /// Has the clients ask, and counts a window.
    pub(crate) fn window(&mut self, span: Duration) -> Result<Sample> {
        self.load.resume()?;
        self.load.run_for(RAMP)?;
        let before = Cpu::now()?;
        let outcome = self.load.count(&self.server.control(), span, |_| {})?;
        let cores = Cpu::now()?.since(&before);
        let depth = self.depth()?;
        self.load.pause()?;
        Ok(Sample { outcome, cores, depth })
    }

    /// A scheduler that learns its depth says what it has learned.
    fn depth(&self) -> Result<i64> {
        let stat = self.server.control().stat(Detail::Groups)?;
        let disk = stat.disks.first().context("a server without a disk")?;
        Ok(disk.internals.get("depth_in_force").copied().unwrap_or(disk.depth.into()))
    }

    /// Ends the server, and says who it was.
    pub(crate) fn end(self) -> Result<Scheduler> {
        self.load.finish()?;
        self.server.end()?;
        Ok(self.contender)
    }
}

/// A file of that many bytes, every page of it written, in a folder below that one that goes with
/// it.
fn disk_file(below: &Path, size: u64) -> Result<TempDir> {
    let shown = below.display();
    let folder = tempfile::tempdir_in(below).with_context(|| format!("a folder on {shown}"))?;
    let mut file = File::create(folder.path().join(FILE))?;
    for _ in 0..size >> 20 {
        file.write_all(&vec![1; 1 << 20]).with_context(|| format!("{size} bytes on {shown}"))?;
    }
    file.sync_all().with_context(|| format!("{size} bytes on {shown}"))?;
    Ok(folder)
}

/// The disk's file in its folder.
const FILE: &str = "disk.img";

/// The keys of the server's disk, but for its size.
fn disk(disk: Disk, folder: Option<&Path>) -> String {
    match disk {
        Disk::Modelled { servers, service_us, ns_per_kib } => format!(
            "backend = \"modelled\"\nservers = {servers}\nservice_us = {service_us}\n\
             ns_per_kib = {ns_per_kib}\n"
        ),
        Disk::Memory => "backend = \"memory\"\n".to_owned(),
        Disk::Tmpfs | Disk::Direct => {
            let path = folder.expect("it was made").join(FILE);
            let cache = if disk == Disk::Direct { "cache = \"direct\"\n" } else { "" };
            format!("path = \"{}\"\n{cache}", path.display())
        }
    }
}
