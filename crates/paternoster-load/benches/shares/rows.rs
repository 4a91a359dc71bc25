//! The set-ups: everything that is measured, as data.

use paternoster_load::Asks;

use crate::row::{Aim, Disk, Row, Tenant, Variant};

const FOUR: Disk = Disk::Modelled { servers: 4, service_us: 200, ns_per_kib: 0 };
const SIXTEEN_FAST: Disk = Disk::Modelled { servers: 16, service_us: 80, ns_per_kib: 0 };
const SIXTEEN: Disk = Disk::Modelled { servers: 16, service_us: 400, ns_per_kib: 0 };
const SIXTY_FOUR: Disk = Disk::Modelled { servers: 64, service_us: 1000, ns_per_kib: 0 };
/// 50 KiB take as long as a request of none.
const BY_SIZE: Disk = Disk::Modelled { servers: 4, service_us: 400, ns_per_kib: 8000 };

/// Reads of 4 KiB, 32 outstanding.
const DEEP: Tenant = Tenant {
    count: 1,
    weight: 100,
    connections: 4,
    depth: 8,
    block: 4 << 10,
    write_percent: 0,
    asks: Asks::ReadsAndWrites,
    think_us: (0, 0),
    reconnects: false,
    mib: 64,
    light: false,
};
/// One read of 4 KiB outstanding.
const ONE: Tenant = Tenant { connections: 1, depth: 1, light: true, ..DEEP };
const ONE_TO_FOUR: [Tenant; 3] =
    [DEEP, Tenant { weight: 200, ..DEEP }, Tenant { weight: 400, ..DEEP }];

const K1: Tenant = Tenant { connections: 1, ..DEEP };
const K16: Tenant = Tenant { connections: 16, ..DEEP };
/// So many that fewer blocks would have them merge.
const K1000: Tenant = Tenant { connections: 1000, depth: 1, mib: 1024, ..DEEP };

const SMALL: Tenant = DEEP;
const KIB_64: Tenant = Tenant { block: 64 << 10, ..DEEP };
const MIB_1: Tenant = Tenant { block: 1 << 20, depth: 4, ..DEEP };
const WRITER: Tenant = Tenant { write_percent: 100, ..DEEP };

/// What a row is where it says nothing else.
const ROW: Row = Row {
    name: "",
    about: "",
    disk: FOUR,
    tenants: &[],
    aim: Aim::Shares,
    variants: &[],
    hogs: false,
};

/// The set-ups, in the order in which they are measured.
pub(crate) static ROWS: [Row; 33] = [
    Row {
        name: "purpose",
        about: "weights 100:200:400, 32 reads outstanding each",
        disk: SIXTEEN_FAST,
        tenants: &ONE_TO_FOUR,
        ..ROW
    },
    Row {
        name: "victim1-k16",
        about: "one read outstanding beside 16 connections of 8",
        tenants: &[ONE, K16],
        aim: Aim::Soon,
        ..ROW
    },
    Row {
        name: "victim1-k1",
        about: "one read outstanding beside a connection of 8",
        tenants: &[ONE, K1],
        aim: Aim::Soon,
        ..ROW
    },
    Row {
        name: "victim1-k4",
        about: "one read outstanding beside 4 connections of 8",
        tenants: &[ONE, DEEP],
        aim: Aim::Soon,
        ..ROW
    },
    Row {
        name: "victim1-k1000",
        about: "one read outstanding beside 1000 connections of 1",
        tenants: &[ONE, K1000],
        aim: Aim::Soon,
        ..ROW
    },
    Row {
        name: "victim32-k1",
        about: "32 reads outstanding beside a connection of 8",
        tenants: &[DEEP, K1],
        ..ROW
    },
    Row {
        name: "victim32-k4",
        about: "32 reads outstanding beside 4 connections of 8",
        tenants: &[DEEP, DEEP],
        ..ROW
    },
    Row {
        name: "victim32-k16",
        about: "32 reads outstanding beside 16 connections of 8",
        tenants: &[DEEP, K16],
        ..ROW
    },
    Row {
        name: "victim32-k1000",
        about: "32 reads outstanding beside 1000 connections of 1",
        tenants: &[DEEP, K1000],
        ..ROW
    },
    Row {
        name: "tenants-2",
        about: "2 readers, weights 100 and 300",
        tenants: &[DEEP, Tenant { weight: 300, ..DEEP }],
        ..ROW
    },
    Row {
        name: "tenants-4",
        about: "4 readers, weights 100 to 400",
        tenants: &[
            DEEP,
            Tenant { weight: 200, ..DEEP },
            Tenant { weight: 300, ..DEEP },
            Tenant { weight: 400, ..DEEP },
        ],
        ..ROW
    },
    Row {
        name: "tenants-16",
        about: "16 readers, weights 100 and 200",
        tenants: &[Tenant { count: 8, ..DEEP }, Tenant { count: 8, weight: 200, ..DEEP }],
        ..ROW
    },
    Row {
        name: "writers-4",
        about: "4 writers, weights 100 and 300",
        tenants: &[Tenant { count: 2, ..WRITER }, Tenant { count: 2, weight: 300, ..WRITER }],
        ..ROW
    },
    Row {
        name: "both-4",
        about: "4 that read and write, weights 100 and 300",
        tenants: &[
            Tenant { count: 2, write_percent: 50, ..DEEP },
            Tenant { count: 2, write_percent: 50, weight: 300, ..DEEP },
        ],
        ..ROW
    },
    Row {
        name: "disk-16x400",
        about: "weights 100:200:400, 32 reads outstanding each",
        disk: SIXTEEN,
        tenants: &ONE_TO_FOUR,
        ..ROW
    },
    Row {
        name: "disk-4x200",
        about: "weights 100:200:400, 32 reads outstanding each",
        tenants: &ONE_TO_FOUR,
        ..ROW
    },
    Row {
        name: "disk-64x1000",
        about: "weights 100:200:400, 128 reads outstanding each",
        disk: SIXTY_FOUR,
        tenants: &[
            Tenant { depth: 32, ..DEEP },
            Tenant { depth: 32, weight: 200, ..DEEP },
            Tenant { depth: 32, weight: 400, ..DEEP },
        ],
        ..ROW
    },
    Row {
        name: "disk-memory",
        about: "weights 100:200:400, 32 reads outstanding each",
        disk: Disk::Memory,
        tenants: &ONE_TO_FOUR,
        ..ROW
    },
    Row {
        name: "disk-tmpfs",
        about: "weights 100:200:400, 32 reads outstanding each",
        disk: Disk::Tmpfs,
        tenants: &ONE_TO_FOUR,
        ..ROW
    },
    Row {
        name: "sizes-64k",
        about: "32 reads of 4 KiB beside 32 of 64 KiB",
        disk: BY_SIZE,
        tenants: &[SMALL, KIB_64],
        aim: Aim::Times,
        variants: PRICED,
        hogs: false,
    },
    Row {
        name: "sizes-1m",
        about: "32 reads of 4 KiB beside 16 of 1 MiB",
        disk: BY_SIZE,
        tenants: &[SMALL, MIB_1],
        aim: Aim::Times,
        variants: PRICED,
        hogs: false,
    },
    Row {
        name: "sizes-writes-64k",
        about: "32 reads of 4 KiB beside 32 writes of 64 KiB",
        disk: BY_SIZE,
        tenants: &[SMALL, Tenant { write_percent: 100, ..KIB_64 }],
        aim: Aim::Times,
        variants: PRICED,
        hogs: false,
    },
    Row {
        name: "sizes-writes-1m",
        about: "32 writes of 4 KiB beside 16 of 1 MiB",
        disk: BY_SIZE,
        tenants: &[WRITER, Tenant { write_percent: 100, ..MIB_1 }],
        aim: Aim::Times,
        variants: PRICED,
        hogs: false,
    },
    Row {
        name: "directions",
        about: "32 reads beside 32 writes, all of 4 KiB",
        tenants: &[DEEP, WRITER],
        aim: Aim::Times,
        variants: ALIKE,
        ..ROW
    },
    Row {
        name: "client-thinks",
        about: "one read outstanding, 100 to 1000 µs after the last reply, beside 32",
        tenants: &[Tenant { think_us: (100, 1000), ..ONE }, DEEP],
        aim: Aim::Soon,
        ..ROW
    },
    Row {
        name: "client-reconnects",
        about: "one read outstanding on a new connection each, beside 32",
        tenants: &[Tenant { reconnects: true, ..ONE }, DEEP],
        aim: Aim::Soon,
        ..ROW
    },
    Row {
        name: "client-byte",
        about: "32 reads of one byte beside 32 of 4 KiB",
        tenants: &[Tenant { block: 1, ..DEEP }, DEEP],
        aim: Aim::Times,
        variants: ALIKE,
        ..ROW
    },
    Row {
        name: "client-fua",
        about: "32 writes with FUA beside 32 reads",
        tenants: &[Tenant { asks: Asks::DurableWrites, ..DEEP }, DEEP],
        aim: Aim::Times,
        variants: ALIKE,
        ..ROW
    },
    Row {
        name: "client-trim",
        about: "32 trims of 4 KiB beside 32 reads",
        tenants: &[Tenant { asks: Asks::Trims, ..DEEP }, DEEP],
        aim: Aim::Times,
        variants: ALIKE,
        ..ROW
    },
    Row {
        name: "client-cache",
        about: "32 of the command CACHE beside 32 reads",
        tenants: &[Tenant { asks: Asks::Caches, ..DEEP }, DEEP],
        aim: Aim::Times,
        variants: ALIKE,
        ..ROW
    },
    Row {
        name: "depth-hog",
        about: "3 readers, 32 outstanding each, on a machine that is busy",
        disk: SIXTEEN,
        tenants: &[Tenant { count: 3, ..DEEP }],
        aim: Aim::Depth,
        variants: FIXED_DEPTHS,
        hogs: true,
    },
    Row {
        name: "depth-direct",
        about: "3 readers, 32 outstanding each",
        disk: Disk::Direct,
        tenants: &[Tenant { count: 3, ..DEEP }],
        aim: Aim::Depth,
        variants: FIXED_DEPTHS,
        ..ROW
    },
    Row {
        name: "depth-direct-hog",
        about: "3 readers, 32 outstanding each, on a machine that is busy",
        disk: Disk::Direct,
        tenants: &[Tenant { count: 3, ..DEEP }],
        aim: Aim::Depth,
        variants: FIXED_DEPTHS,
        hogs: true,
    },
];

/// The right prices where a request costs the disk 50 KiB and its bytes.
const PRICED: &[Variant] =
    &[Variant { scheduler: "wfq", tunables: &[("cost", 3), ("cost_op_bytes", 50 << 10)] }];

/// What the learned depth is compared with.
const FIXED_DEPTHS: &[Variant] = &[
    Variant { scheduler: "wfq", tunables: &[("depth", 4)] },
    Variant { scheduler: "wfq", tunables: &[("depth", 16)] },
    Variant { scheduler: "wfq", tunables: &[("depth", 64)] },
];

/// The right prices where all requests cost the disk the same.
const ALIKE: &[Variant] = &[Variant { scheduler: "wfq", tunables: &[("cost", 1)] }];
