//! What a request costs beside its time in the device, measured with one request outstanding on
//! disks that are idle but for it.
//!
//! ```text
//!   in memory   client ──▶ server ──▶ client                          way
//!   modelled    client ──▶ server, device, its end is heard of ──▶ client
//!                                  ├ service ┤├ lateness ┤           way + service + lateness
//! ```

use std::time::Duration;

use anyhow::Result;
use paternoster::SchedulerKind;

use crate::scenes::{Disk, ONE, Scene, Tenant};
use crate::server::round_trip;

/// What a request costs beside its time in the device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Costs {
    /// Between client and server, there and back.
    pub(crate) way: Duration,
    /// Between the end of a transfer and when the server hears of it.
    pub(crate) lateness: Duration,
}

const SERVICE_US: u32 = 2_000;

/// One client on a disk of its own; its requests take 2 ms in the disk.
const IDLE: Scene = Scene {
    name: "idle",
    scheduler: SchedulerKind::None,
    tunables: &[],
    disk: Disk { servers: 1, service_us: SERVICE_US, ns_per_kib: 0 },
    tenants: &[Tenant { name: "one", ..ONE }],
};

/// Measures them.
pub(crate) fn measure() -> Result<Costs> {
    let memory = Scene { disk: Disk { service_us: 1, ..IDLE.disk }, ..IDLE };
    let way = round_trip(&memory)?;
    let service = Duration::from_micros(SERVICE_US.into());
    Ok(Costs { way, lateness: round_trip(&IDLE)?.saturating_sub(service + way) })
}
