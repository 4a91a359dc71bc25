//! One scene of the demo: a server with one scheduler, three tenants' clients, and what they got.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use paternoster::{IoPrio, Nanos, SchedulerKind, Weight};
use paternoster_load::{Load, Measured, TenantLoad, Window};
use paternoster_server::Server;
use paternoster_server::config::{
    AtStop, BackendConfig, Config, DiskConfig, EngineChoice, ExportConfig, GroupConfig, Listen,
    Polling,
};
use tempfile::TempDir;

/// A tenant of the demo.
pub(super) struct Tenant {
    pub(super) name: &'static str,
    pub(super) weight: u32,
    pub(super) connections: u32,
    pub(super) depth: u32,
}

impl Tenant {
    /// The part of a disk that its weight entitles it to.
    pub(super) fn entitled(&self) -> f64 {
        let weights: u32 = TENANTS.iter().map(|tenant| tenant.weight).sum();
        f64::from(self.weight) / f64::from(weights)
    }
}

/// The lighter, the more it asks for.
pub(super) const TENANTS: [Tenant; 3] = [
    Tenant { name: "light", weight: 100, connections: 16, depth: 16 },
    Tenant { name: "middle", weight: 200, connections: 4, depth: 16 },
    Tenant { name: "heavy", weight: 400, connections: 2, depth: 32 },
];

/// A modelled disk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Disk {
    /// Requests that it serves at once.
    pub(super) servers: u32,
    /// How long each takes.
    pub(super) service: Nanos,
}

impl Disk {
    /// What it is, for people.
    pub(super) fn in_words(self) -> String {
        let micros = self.service.as_nanos() / 1_000;
        format!("A disk that serves {} requests at once, {micros} µs each:", self.servers)
    }
}

/// 20,000 IOPS.
pub(super) const DISK: Disk = Disk { servers: 4, service: Nanos::from_micros(200) };

/// 40,000 IOPS, if it always has sixteen requests.
pub(super) const PARALLEL: Disk = Disk { servers: 16, service: Nanos::from_micros(400) };

const EXPORT_BYTES: u64 = 64 << 20;
const BLOCK: u32 = 4096;

/// Where the clients' addresses come from.
const SEED: u64 = 0x7061_7465;

/// A server and its clients.
pub(super) struct Scene {
    scheduler: SchedulerKind,
    server: Server,
    load: Load,
    /// Holds the socket.
    _folder: TempDir,
}

impl Scene {
    pub(super) fn new(disk: Disk, scheduler: SchedulerKind) -> Result<Self> {
        let folder = tempfile::tempdir().context("there is no room for the demo's socket")?;
        let socket = folder.path().join("nbd.sock");
        let server = Server::start(&config(disk, scheduler, socket.clone())?)?;
        let tenants = TENANTS.map(|tenant| TenantLoad {
            export: tenant.name.to_owned(),
            connections: tenant.connections,
            depth: tenant.depth,
            block: BLOCK,
            write_percent: 0,
        });
        let load = Load::connect(&socket, &tenants, SEED)?;
        Ok(Self { scheduler, server, load, _folder: folder })
    }

    /// Lets the tenants ask for as much as they can, for so long.
    pub(super) fn play(mut self, span: Duration, show: &dyn Fn(String)) -> Result<Window> {
        let end = Instant::now() + span;
        show(format!("{}: waiting until all tenants have requests waiting", self.scheduler));
        let stat = self.server.control();
        let scheduler = self.scheduler;
        let progress = |slice: &[Measured]| show(line(scheduler, slice, end));
        let window = self.load.measure(&stat, span, progress)?;
        self.load.finish()?;
        self.server.shut_down()?;
        Ok(window)
    }
}

fn line(scheduler: SchedulerKind, slice: &[Measured], end: Instant) -> String {
    let left = end.saturating_duration_since(Instant::now()).as_secs_f64();
    let total: u64 = slice.iter().map(|measured| measured.replies).sum();
    let mut line = format!("{:11} {left:4.1} s left", scheduler.name());
    for (tenant, measured) in TENANTS.iter().zip(slice) {
        let share = 100 * measured.replies / total.max(1);
        let Tenant { name, weight, .. } = tenant;
        write!(line, "   {name} (weight {weight}) {share:2} %").expect("a string takes it");
    }
    line
}

fn config(disk: Disk, scheduler: SchedulerKind, socket: std::path::PathBuf) -> Result<Config> {
    let size = EXPORT_BYTES * TENANTS.len() as u64;
    let Disk { servers, service } = disk;
    let backend = BackendConfig::Modelled { size, servers, service, per_kib: Nanos::ZERO };
    let mut groups = Vec::new();
    let mut exports = Vec::new();
    for (index, tenant) in TENANTS.iter().enumerate() {
        let weight = Weight::new(tenant.weight)?;
        groups.push(GroupConfig::new(format!("/{}", tenant.name), weight));
        exports.push(ExportConfig {
            name: tenant.name.to_owned(),
            disk: 0,
            offset: EXPORT_BYTES * index as u64,
            size: EXPORT_BYTES,
            group: index,
            io_prio: IoPrio::default(),
            read_only: false,
            description: None,
        });
    }
    Ok(Config {
        listen: vec![Listen::unix(socket)],
        ctl: None,
        metrics: None,
        disks: vec![DiskConfig {
            name: "modelled".to_owned(),
            backend,
            scheduler: scheduler.into(),
            hierarchy: None,
            depth: None,
            plug: true,
            poll: Polling::Auto,
            cpu_dma_latency: None,
            rotational: None,
            tunables: Vec::new(),
        }],
        groups,
        exports,
        payload_timeout: Config::PAYLOAD_TIMEOUT,
        engine: EngineChoice::Auto,
        at_stop: AtStop::Close,
        threads: 1,
    })
}
