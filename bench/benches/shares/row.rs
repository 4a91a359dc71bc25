//! What a set-up is made of: a disk, its tenants, and what a scheduler should make of them.

use std::fmt;
use std::time::Duration;

use paternoster_load::Layout;
use paternoster_scene::{Scheduler, Tenant};
use serde::Serialize;

/// One set-up: every scheduler serves it in turn.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// What the command line calls it.
    pub(crate) name: &'static str,
    /// What it is, for people.
    pub(crate) about: &'static str,
    pub(crate) disk: Disk,
    /// What of it each tenant has.
    pub(crate) layout: Layout,
    /// The first is the one whose latency is printed.
    pub(crate) tenants: Vec<Tenant>,
    pub(crate) aim: Aim,
    /// Schedulers that serve it once more, with other settings. Where there are any, the aim is
    /// theirs: without settings they have yet to learn what they are told here.
    pub(crate) variants: Vec<Scheduler>,
    /// Each processor has a thread beside the server that does nothing but compute.
    pub(crate) hogs: bool,
}

/// What stands behind the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Disk {
    Modelled {
        servers: u32,
        /// Time of any request.
        service_us: u32,
        /// Further nanoseconds for each KiB.
        ns_per_kib: u32,
    },
    /// Memory, which completes at once.
    Memory,
    /// A file on a tmpfs.
    Tmpfs,
    /// A file in the directory of temporary files, with direct I/O.
    Direct,
}

/// What a scheduler should make of a set-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Aim {
    /// Requests by weight, and a busy disk.
    Shares,
    /// The disk's time by weight, and a busy disk.
    Times,
    /// The first tenant waits little longer than for an idle disk; the disk is busy.
    Soon,
    /// The depth that is learned does what the best of the variants does, whose depths are fixed.
    Depth,
}

impl Row {
    /// Whether the aim is for the scheduler with the settings of the variants.
    pub(crate) fn aims_at_variants(&self, scheduler: &str) -> bool {
        let mut variants = self.variants.iter();
        self.aim != Aim::Depth && variants.any(|variant| variant.kind.name() == scheduler)
    }

    /// Whether every tenant that is not light must have had something waiting all the time, so
    /// that a machine on which that is not so cannot pass.
    pub(crate) fn must_be_short(&self) -> bool {
        matches!(
            self.disk,
            Disk::Modelled { servers: 4, service_us: 200, .. }
                | Disk::Modelled { servers: 16, service_us: 400, .. }
        )
    }

    /// The bytes of each tenant's export: on fewer the requests of a thousand clients would merge.
    pub(crate) fn export_bytes(&self) -> Vec<u64> {
        let bytes = |tenant: &Tenant| if tenant.connections < 1000 { 64 << 20 } else { 1 << 30 };
        self.tenants.iter().map(bytes).collect()
    }

    /// What the disk takes for a request of the first tenant, where that is known.
    pub(crate) fn service_of_first(&self) -> Option<Duration> {
        let Disk::Modelled { service_us, ns_per_kib, .. } = self.disk else { return None };
        let bytes = u64::from(self.tenants[0].block);
        let further = u64::from(ns_per_kib) * bytes / 1024;
        Some(Duration::from_nanos(u64::from(service_us) * 1000 + further))
    }
}

impl fmt::Display for Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Modelled { servers, service_us, ns_per_kib: 0 } => {
                write!(f, "{servers} × {service_us} µs")
            }
            Self::Modelled { servers, service_us, ns_per_kib } => {
                write!(f, "{servers} × ({service_us} µs + {} µs/KiB)", ns_per_kib / 1000)
            }
            Self::Memory => f.write_str("memory"),
            Self::Tmpfs => f.write_str("a file on tmpfs"),
            Self::Direct => f.write_str("a file, direct I/O"),
        }
    }
}
