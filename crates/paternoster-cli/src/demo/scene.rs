//! The scenes of the demo: two disks, and the same three tenants on each.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use anyhow::Result;
use paternoster::{Nanos, SchedulerKind};
use paternoster_load::{Live, Measured};
use paternoster_model::{Kind, ServersParameters, Service};
use paternoster_scene::{Outcome, Scene, Tenant};

/// A disk that serves some requests at once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Disk {
    pub(super) servers: u32,
    /// How long each takes, in microseconds.
    pub(super) service_us: u64,
}

/// 20,000 IOPS.
pub(super) const DISK: Disk = Disk { servers: 4, service_us: 200 };

/// 40,000 IOPS, if it always has sixteen requests.
pub(super) const PARALLEL: Disk = Disk { servers: 16, service_us: 400 };

/// How many tenants, the last ones, come as virtual machines do.
const MACHINES: usize = 1;

/// Where the clients' addresses come from.
const SEED: u64 = 0x7061_7465;

impl Disk {
    /// What it is, for people.
    pub(super) fn in_words(self) -> String {
        let Self { servers, service_us } = self;
        format!("A disk that serves {servers} requests at once, {service_us} µs each:")
    }

    /// Has the tenants ask for as much as they can, for so long in all.
    pub(super) fn play(
        self,
        kind: SchedulerKind,
        span: Duration,
        show: &dyn Fn(String),
    ) -> Result<Outcome> {
        let end = Instant::now() + span;
        show(format!("{kind}: waiting until all tenants have requests waiting"));
        let nanos = Nanos::new(u64::try_from(span.as_nanos()).expect("an hour at most"));
        let scene = self.scene().lasting(nanos);
        Live { machines: MACHINES, ..Live::default() }.watch(&scene, &kind.into(), SEED, |slice| {
            show(line(&scene, kind, slice, end));
        })
    }

    fn scene(self) -> Scene {
        let service = Service::constant(Nanos::from_micros(self.service_us));
        Scene::new(Kind::Servers(ServersParameters::new(self.servers, service)), tenants())
    }
}

/// The protocol of the tenant at that place.
pub(super) fn protocol(place: usize) -> &'static str {
    if place + MACHINES < tenants().len() { "nbd" } else { "vhost-user" }
}

/// The lighter, the more it asks for.
pub(super) fn tenants() -> Vec<Tenant> {
    vec![
        Tenant::reads(100, 16, 16).named("light"),
        Tenant::reads(200, 4, 16).named("middle"),
        Tenant::reads(400, 2, 32).named("heavy"),
    ]
}

fn line(scene: &Scene, scheduler: SchedulerKind, slice: &[Measured], end: Instant) -> String {
    let left = end.saturating_duration_since(Instant::now()).as_secs_f64();
    let total: u64 = slice.iter().map(|measured| measured.replies).sum();
    let mut line = format!("{:11} {left:4.1} s left", scheduler.name());
    for (Tenant { name, weight, .. }, measured) in scene.tenants.iter().zip(slice) {
        let share = 100 * measured.replies / total.max(1);
        write!(line, "   {name} (weight {weight}) {share:2} %").expect("a string takes it");
    }
    line
}
