//! The set-ups: everything that is measured, as data.

use paternoster::Nanos;
use paternoster_load::Layout;
use paternoster_scene::{Scheduler, Tenant};

use crate::row::{Aim, Disk, Row};

const FOUR: Disk = Disk::Modelled { servers: 4, service_us: 200, ns_per_kib: 0 };
const SIXTEEN_FAST: Disk = Disk::Modelled { servers: 16, service_us: 80, ns_per_kib: 0 };
const SIXTEEN: Disk = Disk::Modelled { servers: 16, service_us: 400, ns_per_kib: 0 };
const SIXTY_FOUR: Disk = Disk::Modelled { servers: 64, service_us: 1000, ns_per_kib: 0 };
/// 50 KiB take as long as a request of none.
const BY_SIZE: Disk = Disk::Modelled { servers: 4, service_us: 400, ns_per_kib: 8000 };

/// Reads of 4 KiB, 32 outstanding.
fn deep() -> Tenant {
    Tenant::reads(100, 4, 8)
}

/// One read of 4 KiB outstanding.
fn one() -> Tenant {
    Tenant { light: true, ..Tenant::reads(100, 1, 1) }
}

fn one_to_four() -> Vec<Tenant> {
    [100, 200, 400].map(|weight| Tenant { weight, ..deep() }).to_vec()
}

fn k1() -> Tenant {
    Tenant { connections: 1, ..deep() }
}

fn k16() -> Tenant {
    Tenant { connections: 16, ..deep() }
}

/// A thousand clients.
fn k1000() -> Tenant {
    Tenant { connections: 1000, depth: 1, ..deep() }
}

fn kib_64() -> Tenant {
    Tenant { block: 64 << 10, ..deep() }
}

fn mib_1() -> Tenant {
    Tenant { block: 1 << 20, depth: 4, ..deep() }
}

fn writer() -> Tenant {
    Tenant { write_percent: 100, ..deep() }
}

/// What a row is where it says nothing else.
fn row() -> Row {
    Row {
        name: "",
        about: "",
        disk: FOUR,
        layout: Layout::Ranges,
        tenants: vec![],
        aim: Aim::Shares,
        variants: vec![],
        hogs: false,
    }
}

/// The set-ups, in the order in which they are measured.
pub(crate) fn rows() -> Vec<Row> {
    let parts = [
        of_victims(),
        of_shares(),
        of_disks(),
        of_volumes(),
        of_sizes(),
        of_clients(),
        of_depths(),
    ];
    let mut rows = parts.concat();
    for row in &mut rows {
        for (index, tenant) in row.tenants.iter_mut().enumerate() {
            tenant.name = format!("tenant{index}");
        }
    }
    rows
}

/// Volumes of a pool in place of ranges of a disk.
fn of_volumes() -> Vec<Row> {
    let volumes = |name, disk| Row {
        name,
        about: "volumes, weights 100:200:400, 64 reads outstanding each",
        disk,
        layout: Layout::Volumes,
        tenants: one_to_four().into_iter().map(|of| Tenant { connections: 8, ..of }).collect(),
        ..row()
    };
    vec![volumes("volumes-4x200", FOUR), volumes("volumes-16x80", SIXTEEN_FAST)]
}

/// The purpose, and a client with few requests outstanding beside one with many.
fn of_victims() -> Vec<Row> {
    vec![
        Row {
            name: "purpose",
            about: "weights 100:200:400, 32 reads outstanding each",
            disk: SIXTEEN_FAST,
            tenants: one_to_four(),
            ..row()
        },
        Row {
            name: "victim1-k16",
            about: "one read outstanding beside 16 connections of 8",
            tenants: vec![one(), k16()],
            aim: Aim::Soon,
            ..row()
        },
        Row {
            name: "victim1-k1",
            about: "one read outstanding beside a connection of 8",
            tenants: vec![one(), k1()],
            aim: Aim::Soon,
            ..row()
        },
        Row {
            name: "victim1-k4",
            about: "one read outstanding beside 4 connections of 8",
            tenants: vec![one(), deep()],
            aim: Aim::Soon,
            ..row()
        },
        Row {
            name: "victim1-k1000",
            about: "one read outstanding beside 1000 connections of 1",
            tenants: vec![one(), k1000()],
            aim: Aim::Soon,
            ..row()
        },
        Row {
            name: "victim32-k1",
            about: "32 reads outstanding beside a connection of 8",
            tenants: vec![deep(), k1()],
            ..row()
        },
        Row {
            name: "victim32-k4",
            about: "32 reads outstanding beside 4 connections of 8",
            tenants: vec![deep(), deep()],
            ..row()
        },
        Row {
            name: "victim32-k16",
            about: "32 reads outstanding beside 16 connections of 8",
            tenants: vec![deep(), k16()],
            ..row()
        },
        Row {
            name: "victim32-k1000",
            about: "32 reads outstanding beside 1000 connections of 1",
            tenants: vec![deep(), k1000()],
            ..row()
        },
    ]
}

/// Weights of two to sixteen tenants.
fn of_shares() -> Vec<Row> {
    vec![
        Row {
            name: "tenants-2",
            about: "2 readers, weights 100 and 300",
            tenants: vec![deep(), Tenant { weight: 300, ..deep() }],
            ..row()
        },
        Row {
            name: "tenants-4",
            about: "4 readers, weights 100 to 400",
            tenants: vec![
                deep(),
                Tenant { weight: 200, ..deep() },
                Tenant { weight: 300, ..deep() },
                Tenant { weight: 400, ..deep() },
            ],
            ..row()
        },
        Row {
            name: "tenants-16",
            about: "16 readers, weights 100 and 200",
            tenants: [vec![deep(); 8], vec![Tenant { weight: 200, ..deep() }; 8]].concat(),
            ..row()
        },
        Row {
            name: "writers-4",
            about: "4 writers, weights 100 and 300",
            tenants: [vec![writer(); 2], vec![Tenant { weight: 300, ..writer() }; 2]].concat(),
            ..row()
        },
        Row {
            name: "both-4",
            about: "4 that read and write, weights 100 and 300",
            tenants: {
                let both = Tenant { write_percent: 50, ..deep() };
                [vec![both.clone(); 2], vec![Tenant { weight: 300, ..both }; 2]].concat()
            },
            ..row()
        },
    ]
}

/// Weights on other disks.
fn of_disks() -> Vec<Row> {
    let about = "weights 100:200:400, 32 reads outstanding each";
    let weights = |name, disk| Row { name, about, disk, tenants: one_to_four(), ..row() };
    let deeper = |tenant| Tenant { depth: 32, ..tenant };
    vec![
        weights("disk-16x400", SIXTEEN),
        weights("disk-4x200", FOUR),
        Row {
            name: "disk-64x1000",
            about: "weights 100:200:400, 128 reads outstanding each",
            disk: SIXTY_FOUR,
            tenants: one_to_four().into_iter().map(deeper).collect(),
            ..row()
        },
        weights("disk-memory", Disk::Memory),
        weights("disk-tmpfs", Disk::Tmpfs),
    ]
}

/// Sizes and directions.
fn of_sizes() -> Vec<Row> {
    vec![
        Row {
            name: "sizes-64k",
            about: "32 reads of 4 KiB beside 32 of 64 KiB",
            disk: BY_SIZE,
            tenants: vec![deep(), kib_64()],
            aim: Aim::Times,
            variants: priced(),
            ..row()
        },
        Row {
            name: "sizes-1m",
            about: "32 reads of 4 KiB beside 16 of 1 MiB",
            disk: BY_SIZE,
            tenants: vec![deep(), mib_1()],
            aim: Aim::Times,
            variants: priced(),
            ..row()
        },
        Row {
            name: "sizes-writes-64k",
            about: "32 reads of 4 KiB beside 32 writes of 64 KiB",
            disk: BY_SIZE,
            tenants: vec![deep(), Tenant { write_percent: 100, ..kib_64() }],
            aim: Aim::Times,
            variants: priced(),
            ..row()
        },
        Row {
            name: "sizes-writes-1m",
            about: "32 writes of 4 KiB beside 16 of 1 MiB",
            disk: BY_SIZE,
            tenants: vec![writer(), Tenant { write_percent: 100, ..mib_1() }],
            aim: Aim::Times,
            variants: priced(),
            ..row()
        },
        Row {
            name: "directions",
            about: "32 reads beside 32 writes, all of 4 KiB",
            tenants: vec![deep(), writer()],
            aim: Aim::Times,
            variants: alike(),
            ..row()
        },
    ]
}

/// Habits of clients, and other commands.
fn of_clients() -> Vec<Row> {
    vec![
        Row {
            name: "client-thinks",
            about: "one read outstanding, 100 to 1000 µs after the last reply, beside 32",
            tenants: vec![
                Tenant {
                    think: Nanos::from_micros(100),
                    think_more: Nanos::from_micros(900),
                    ..one()
                },
                deep(),
            ],
            aim: Aim::Soon,
            ..row()
        },
        Row {
            name: "client-reconnects",
            about: "one read outstanding on a new connection each, beside 32",
            tenants: vec![Tenant { reconnects: Some(Nanos::ZERO), ..one() }, deep()],
            aim: Aim::Soon,
            ..row()
        },
        Row {
            name: "client-byte",
            about: "32 reads of one byte beside 32 of 4 KiB",
            tenants: vec![Tenant { block: 1, ..deep() }, deep()],
            aim: Aim::Times,
            variants: alike(),
            ..row()
        },
        Row {
            name: "client-fua",
            about: "32 writes with FUA beside 32 reads",
            tenants: vec![Tenant { fua: true, ..writer() }, deep()],
            aim: Aim::Times,
            variants: alike(),
            ..row()
        },
        Row {
            name: "client-trim",
            about: "32 trims of 4 KiB beside 32 reads",
            tenants: vec![Tenant { trim_percent: 100, ..deep() }, deep()],
            aim: Aim::Times,
            variants: alike(),
            ..row()
        },
        Row {
            name: "client-cache",
            about: "32 of the command CACHE beside 32 reads",
            tenants: vec![Tenant { caches: true, ..deep() }, deep()],
            aim: Aim::Times,
            variants: alike(),
            ..row()
        },
    ]
}

/// The learned depth beside fixed ones.
fn of_depths() -> Vec<Row> {
    vec![
        Row {
            name: "depth-hog",
            about: "3 readers, 32 outstanding each, on a machine that is busy",
            disk: SIXTEEN,
            tenants: vec![deep(); 3],
            aim: Aim::Depth,
            variants: fixed_depths(),
            hogs: true,
            ..row()
        },
        Row {
            name: "depth-direct",
            about: "3 readers, 32 outstanding each",
            disk: Disk::Direct,
            tenants: vec![deep(); 3],
            aim: Aim::Depth,
            variants: fixed_depths(),
            ..row()
        },
        Row {
            name: "depth-direct-hog",
            about: "3 readers, 32 outstanding each, on a machine that is busy",
            disk: Disk::Direct,
            tenants: vec![deep(); 3],
            aim: Aim::Depth,
            variants: fixed_depths(),
            hogs: true,
            ..row()
        },
    ]
}

/// The right prices where a request costs the disk 50 KiB and its bytes.
fn priced() -> Vec<Scheduler> {
    vec!["wfq:cost=fixed,cost_op_bytes=51200".parse().expect("it is one")]
}

/// What the learned depth is compared with.
fn fixed_depths() -> Vec<Scheduler> {
    [4, 16, 64].map(|depth| format!("wfq:depth={depth}").parse().expect("it is one")).to_vec()
}

/// The right prices where all requests cost the disk the same.
fn alike() -> Vec<Scheduler> {
    vec!["wfq:cost=requests".parse().expect("it is one")]
}
