//! What a request costs beside its time in the device, measured with one request outstanding on
//! disks that are idle but for it.
//!
//! ```text
//!   1 µs    client ──▶ server ──▶ client                               way
//!   2 ms    client ──▶ server, device, its end is heard of ──▶ client
//!                                  ├ service ┤├ lateness ┤            way + service + lateness
//! ```

use anyhow::Result;
use paternoster::Nanos;
use paternoster_lab::closed_loop::{Turnaround, Virtual};
use paternoster_load::Live;
use paternoster_scene::{Tenant, World as _};

use crate::scenes::{Entry, disk, entry};

const SERVICE_US: u64 = 2_000;

/// Measures them, and returns the laboratory that has them.
pub(crate) fn measure() -> Result<Virtual> {
    let way = round_trip(1)?;
    let lateness = round_trip(SERVICE_US)?.saturating_sub(Nanos::from_micros(SERVICE_US) + way);
    // A client asks again as it is answered: what that takes is a part of the way.
    let turnaround = Turnaround { least: Nanos::ZERO, mean_us: 0.0 };
    Ok(Virtual { way, lateness, turnaround, served: true, ..Virtual::default() })
}

/// The median time from a request to its reply, for one client on a disk of its own.
fn round_trip(service_us: u64) -> Result<Nanos> {
    let one = Tenant::reads(100, 1, 1).named("one");
    let Entry { scene, scheduler } = entry("idle", "none", disk(1, service_us, 0), vec![one]);
    let outcome = Live::default().play(&scene, &scheduler, 0)?;
    Ok(Nanos::new(outcome.tenants[0].latency.value_at_quantile(0.5)))
}
