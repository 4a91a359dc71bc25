//! The scenes: disks, schedulers, and tenants that differ in weight, depth, size and demand.

use std::time::Duration;

use paternoster::SchedulerKind::{self, Bfq, Cfq, MqDeadline};

/// A disk and its tenants.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scene {
    pub(crate) name: &'static str,
    pub(crate) scheduler: SchedulerKind,
    /// What is set beside the server's own values.
    pub(crate) tunables: &'static [(&'static str, i64)],
    pub(crate) disk: Disk,
    pub(crate) tenants: &'static [Tenant],
}

/// A modelled disk. It takes twice as many requests at once as it has servers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Disk {
    pub(crate) servers: u32,
    /// Time of any request.
    pub(crate) service_us: u32,
    /// Further time for each sector.
    pub(crate) ns_per_kib: u32,
}

/// A tenant: an export, a group of its own, and clients that ask for random blocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tenant {
    pub(crate) name: &'static str,
    pub(crate) weight: u32,
    pub(crate) connections: u32,
    /// Requests outstanding on each connection; 1 where it thinks.
    pub(crate) depth: u32,
    pub(crate) block: u32,
    pub(crate) write_percent: u32,
    /// How long a connection waits between a reply and its next request.
    pub(crate) think: Duration,
}

/// One that reads blocks of 4 KiB, one at a time, without a pause.
pub(crate) const ONE: Tenant = Tenant {
    name: "",
    weight: 100,
    connections: 1,
    depth: 1,
    block: 4 << 10,
    write_percent: 0,
    think: Duration::ZERO,
};

pub(crate) static SCENES: [Scene; 5] = [
    Scene {
        name: "demo",
        scheduler: Cfq,
        tunables: &[],
        disk: Disk { servers: 4, service_us: 1_000, ns_per_kib: 0 },
        tenants: &[
            Tenant { name: "light", connections: 16, depth: 16, ..ONE },
            Tenant { name: "middle", weight: 200, connections: 4, depth: 16, ..ONE },
            Tenant { name: "heavy", weight: 400, connections: 2, depth: 32, ..ONE },
        ],
    },
    Scene {
        name: "sizes",
        scheduler: Cfq,
        tunables: &[("slice_idle", 0), ("group_idle", 0)],
        disk: Disk { servers: 8, service_us: 4_000, ns_per_kib: 60_000 },
        tenants: &[
            Tenant { name: "small", weight: 300, connections: 3, depth: 16, ..ONE },
            Tenant { name: "large", weight: 150, depth: 48, block: 64 << 10, ..ONE },
            Tenant {
                name: "middle",
                weight: 550,
                connections: 4,
                depth: 16,
                block: 16 << 10,
                ..ONE
            },
        ],
    },
    Scene {
        name: "bytes",
        scheduler: Bfq,
        tunables: &[],
        disk: Disk { servers: 4, service_us: 2_500, ns_per_kib: 40_000 },
        tenants: &[
            Tenant { name: "reader", weight: 500, connections: 4, depth: 8, ..ONE },
            Tenant { name: "writer", weight: 200, depth: 16, write_percent: 100, ..ONE },
            Tenant { name: "large", weight: 100, depth: 32, block: 32 << 10, ..ONE },
        ],
    },
    Scene {
        name: "short",
        scheduler: Cfq,
        tunables: &[],
        disk: Disk { servers: 4, service_us: 2_000, ns_per_kib: 0 },
        tenants: &[
            Tenant {
                name: "thinker",
                weight: 500,
                connections: 4,
                think: Duration::from_millis(15),
                ..ONE
            },
            Tenant { name: "reader", weight: 300, connections: 2, depth: 16, ..ONE },
            Tenant { name: "deep", depth: 64, ..ONE },
        ],
    },
    Scene {
        name: "deadlines",
        scheduler: MqDeadline,
        tunables: &[],
        disk: Disk { servers: 6, service_us: 2_500, ns_per_kib: 0 },
        tenants: &[
            Tenant { name: "mixed", connections: 2, depth: 12, write_percent: 30, ..ONE },
            Tenant { name: "reader", connections: 5, depth: 4, block: 8 << 10, ..ONE },
            Tenant { name: "thinker", connections: 6, think: Duration::from_millis(40), ..ONE },
        ],
    },
];
