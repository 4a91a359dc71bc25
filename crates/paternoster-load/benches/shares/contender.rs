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
use paternoster_load::{Habit, Load, TenantLoad, Window};
use paternoster_server::Server;
use paternoster_server::config::{Config, Listen};
use paternoster_server::ctl::Control as _;
use paternoster_server::stat::Detail;
use tempfile::TempDir;

use crate::cpu::{Cores, Cpu};
use crate::row::{Aim, Disk, Row, Tenant};

/// Where files are that shall be in memory.
const TMPFS: &str = "/dev/shm";
/// How long clients ask after a pause before anything counts.
const RAMP: Duration = Duration::from_millis(200);
/// What decides where clients read.
const SEED: u64 = 13;

/// A scheduler and what is set of it.
#[derive(Clone, Debug)]
pub(crate) struct Contender {
    pub(crate) scheduler: SchedulerKind,
    pub(crate) tunables: Vec<(&'static str, i64)>,
}

impl Contender {
    /// The contenders of a row: these schedulers, and the row's own variants of them.
    pub(crate) fn of(row: &Row, schedulers: &[SchedulerKind]) -> Vec<Self> {
        let plain = schedulers.iter().map(|&scheduler| Self { scheduler, tunables: Vec::new() });
        let variants = row.variants.iter().filter_map(|variant| {
            let mut known = schedulers.iter();
            let scheduler = *known.find(|kind| kind.name() == variant.scheduler)?;
            Some(Self { scheduler, tunables: variant.tunables.to_vec() })
        });
        plain.chain(variants).collect()
    }

    /// Its name, and what is set.
    pub(crate) fn label(&self) -> String {
        let mut label = self.scheduler.to_string();
        for (name, value) in &self.tunables {
            write!(label, ", {name} = {value}").expect("a string takes it");
        }
        label
    }

    /// Whether it is the scheduler that the aims are for, with the settings that they are for.
    pub(crate) fn is_aimed_at(&self, row: &Row) -> bool {
        let name = self.scheduler.name();
        name == AIMED_AT && self.tunables.is_empty() != row.aims_at_variants(name)
    }

    /// How long it is given to learn before anything counts.
    fn settles_in(&self, row: &Row) -> Duration {
        let learns_prices = row.aim == Aim::Times && self.tunables.is_empty();
        Duration::from_millis(match self.scheduler.name() {
            "none" => 500,
            AIMED_AT if learns_prices => 12_000,
            AIMED_AT if row.aim == Aim::Depth && self.tunables.is_empty() => 8_000,
            AIMED_AT => 3_000,
            _ => 1_000,
        })
    }
}

/// The scheduler that is to have shares without idling.
pub(crate) const AIMED_AT: &str = "wfq";

/// What a window has shown.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    pub(crate) window: Window,
    pub(crate) cores: Cores,
    /// The most requests that the scheduler then had in the disk at once.
    pub(crate) depth: i64,
}

/// A contender at work, or pausing.
pub(crate) struct Running {
    contender: Contender,
    server: Server,
    load: Load,
    /// Holds the socket.
    _folder: TempDir,
    /// Holds the disk's file, where it has one.
    _file: Option<TempDir>,
}

impl Running {
    /// Starts a server, connects the clients, lets them ask until the scheduler has settled, and
    /// has them pause.
    pub(crate) fn start(row: &Row, contender: Contender) -> Result<Self> {
        let folder = tempfile::tempdir().context("there is no room for a socket")?;
        let socket = folder.path().join("nbd.sock");
        let file = match row.disk {
            Disk::Tmpfs => Some(disk_file(Path::new(TMPFS), size_mib(row))?),
            Disk::Direct => Some(disk_file(&std::env::temp_dir(), size_mib(row))?),
            Disk::Modelled { .. } | Disk::Memory => None,
        };
        let text = config(row, &contender, file.as_ref().map(TempDir::path));
        let mut config = Config::from_toml(&text, Path::new("shares.toml"))?;
        config.listen = vec![Listen::unix(socket.clone())];
        let server = Server::start(&config)?;

        let loads: Vec<_> = row.each().map(|(name, tenant)| load(name, tenant)).collect();
        let mut load = Load::connect(&socket, &loads, SEED)?;
        for (index, (_, tenant)) in row.each().enumerate() {
            load.set_asks(index, tenant.asks);
            load.set_habit(index, habit(tenant));
        }
        load.start()?;
        load.run_for(contender.settles_in(row))?;
        load.pause()?;
        Ok(Self { contender, server, load, _folder: folder, _file: file })
    }

    /// Who it is.
    pub(crate) fn contender(&self) -> &Contender {
        &self.contender
    }

    /// Has the clients ask, and counts a window.
    pub(crate) fn window(&mut self, span: Duration) -> Result<Sample> {
        self.load.resume()?;
        self.load.run_for(RAMP)?;
        let before = Cpu::now()?;
        let window = self.load.count(&self.server.control(), span, |_| {})?;
        let cores = Cpu::now()?.since(&before);
        let depth = self.depth()?;
        self.load.pause()?;
        Ok(Sample { window, cores, depth })
    }

    /// A scheduler that learns its depth says what it has learned.
    fn depth(&self) -> Result<i64> {
        let stat = self.server.control().stat(Detail::Groups)?;
        let disk = stat.disks.first().context("a server without a disk")?;
        Ok(disk.internals.get("depth_in_force").copied().unwrap_or(disk.depth.into()))
    }

    /// Ends the server, and says who it was.
    pub(crate) fn end(self) -> Result<Contender> {
        self.load.finish()?;
        self.server.shut_down()?;
        Ok(self.contender)
    }
}

fn load(export: String, tenant: &Tenant) -> TenantLoad {
    let &Tenant { connections, depth, block, write_percent, .. } = tenant;
    TenantLoad { export, connections, depth, block, write_percent }
}

fn habit(tenant: &Tenant) -> Habit {
    let (least, most) = tenant.think_us;
    Habit {
        think: Duration::from_micros(least),
        think_more: Duration::from_micros(most - least),
        reconnects: tenant.reconnects,
    }
}

fn size_mib(row: &Row) -> u32 {
    row.each().map(|(_, tenant)| tenant.mib).sum()
}

/// A file, every page of it written, in a folder below that one that goes with it.
fn disk_file(below: &Path, mib: u32) -> Result<TempDir> {
    let shown = below.display();
    let folder = tempfile::tempdir_in(below).with_context(|| format!("a folder on {shown}"))?;
    let mut file = File::create(folder.path().join(FILE))?;
    for _ in 0..mib {
        file.write_all(&vec![1; 1 << 20]).with_context(|| format!("{mib} MiB on {shown}"))?;
    }
    file.sync_all().with_context(|| format!("{mib} MiB on {shown}"))?;
    Ok(folder)
}

/// The disk's file in its folder.
const FILE: &str = "disk.img";

/// The configuration of the server, but for its socket.
fn config(row: &Row, contender: &Contender, file: Option<&Path>) -> String {
    let size = size_mib(row);
    let disk = match (row.disk, file) {
        (Disk::Modelled { servers, service_us, ns_per_kib }, _) => format!(
            "backend = \"modelled\"\nsize = \"{size}M\"\nservers = {servers}\n\
             service_us = {service_us}\nns_per_kib = {ns_per_kib}\n"
        ),
        (Disk::Memory, _) => format!("backend = \"memory\"\nsize = \"{size}M\"\n"),
        (Disk::Tmpfs | Disk::Direct, file) => {
            let path = file.expect("it was made").join(FILE);
            let cache = if row.disk == Disk::Direct { "cache = \"direct\"\n" } else { "" };
            format!("path = \"{}\"\n{cache}", path.display())
        }
    };
    let mut text = format!("[disks.d]\n{disk}scheduler = \"{}\"\n", contender.scheduler);
    // The depth is a key of the disk, whatever the scheduler.
    let (depth, tunables): (Vec<_>, Vec<_>) =
        contender.tunables.iter().partition(|(name, _)| *name == "depth");
    for (name, value) in depth {
        writeln!(text, "{name} = {value}").expect("a string takes it");
    }
    text.push_str("[disks.d.tunables]\n");
    for (name, value) in tunables {
        writeln!(text, "{name} = {value}").expect("a string takes it");
    }
    let mut offset = 0;
    for (name, Tenant { weight, mib, .. }) in row.each() {
        write!(
            text,
            "[groups.\"/{name}\"]\nweight = {weight}\n\
             [exports.{name}]\ndisk = \"d\"\noffset = \"{offset}M\"\nsize = \"{mib}M\"\n"
        )
        .expect("a string takes it");
        offset += mib;
    }
    text
}
