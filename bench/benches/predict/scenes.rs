//! The scenes: disks, schedulers, and tenants that differ in weight, depth, size and demand.

use paternoster::{Nanos, Sector};
use paternoster_load::Live;
use paternoster_model::{Kind, ServersParameters, Service};
use paternoster_scene::{Scene, Scheduler, Tenant};

use crate::{COUNTED, WARM_UP};

/// A scene, and its scheduler beside the server's own values.
pub(crate) struct Entry {
    pub(crate) scene: Scene,
    pub(crate) scheduler: Scheduler,
}

/// Servers that take so many µs for a request, and so many for a KiB.
pub(crate) fn disk(servers: u32, service_us: u64, us_per_kib: u64) -> ServersParameters {
    let per_kib = Nanos::from_micros(us_per_kib);
    let service = Service { per_kib, ..Service::constant(Nanos::from_micros(service_us)) };
    ServersParameters::new(servers, service)
}

/// A tenant that reads blocks of 4 KiB without a pause.
fn reads(name: &str, weight: u32, connections: u32, depth: u32) -> Tenant {
    Tenant::reads(weight, connections, depth).named(name)
}

/// A scene under a scheduler. The disk has room for the tenants' exports, and no more.
pub(crate) fn entry(
    name: &str,
    scheduler: &str,
    disk: ServersParameters,
    tenants: Vec<Tenant>,
) -> Entry {
    let depth = disk.room.depth;
    let end = Sector(Live::EXPORT_BYTES / 512 * tenants.len() as u64);
    let device = Kind::Servers(disk.with_room(depth, end));
    let scene = Scene::new(device, tenants);
    let scene = Scene { name: name.to_owned(), warm_up: WARM_UP, counted: COUNTED, ..scene };
    Entry { scene, scheduler: scheduler.parse().expect("it is one") }
}

/// All of them.
pub(crate) fn scenes() -> Vec<Entry> {
    let thinker = |name, weight, connections, ms| {
        let think = Nanos::from_millis(ms);
        Tenant { think, ..reads(name, weight, connections, 1) }
    };
    vec![
        entry(
            "demo",
            "cfq",
            disk(4, 1000, 0),
            vec![
                reads("light", 100, 16, 16),
                reads("middle", 200, 4, 16),
                reads("heavy", 400, 2, 32),
            ],
        ),
        entry(
            "sizes",
            "cfq:slice_idle=0,group_idle=0",
            disk(8, 4000, 60),
            vec![
                reads("small", 300, 3, 16),
                Tenant { block: 64 << 10, ..reads("large", 150, 1, 48) },
                Tenant { block: 16 << 10, ..reads("middle", 550, 4, 16) },
            ],
        ),
        entry(
            "bytes",
            "bfq",
            disk(4, 2500, 40),
            vec![
                reads("reader", 500, 4, 8),
                Tenant { write_percent: 100, ..reads("writer", 200, 1, 16) },
                Tenant { block: 32 << 10, ..reads("large", 100, 1, 32) },
            ],
        ),
        entry(
            "short",
            "cfq",
            disk(4, 2000, 0),
            vec![
                thinker("thinker", 500, 4, 15),
                reads("reader", 300, 2, 16),
                reads("deep", 100, 1, 64),
            ],
        ),
        entry(
            "deadlines",
            "mq-deadline",
            disk(6, 2500, 0),
            vec![
                Tenant { write_percent: 30, ..reads("mixed", 100, 2, 12) },
                Tenant { block: 8 << 10, ..reads("reader", 100, 5, 4) },
                thinker("thinker", 100, 6, 40),
            ],
        ),
    ]
}
