//! `cargo xtask test --ceph`: this server in front of a Ceph cluster.
//!
//! ```text
//!   fio, libnbd ──▶ paternoster ──NBD──▶ qemu-nbd, one for each image ──librbd──▶ OSD, monitor
//! ```
//!
//! - [`cluster`]: the cluster, in a temporary directory: a monitor, an OSD in memory, three images.
//! - [`weights`]: tenants of one image, and images of a pool, get what is due by their weights.
//! - [`outage`]: the OSD stops, a qemu-nbd dies, and one restarts as planned.

mod cluster;
mod outage;
mod weights;

use std::time::Instant;

use anyhow::{Context as _, Result};

use self::cluster::Cluster;
use crate::packages;

/// The cluster, its command line, and what qemu-nbd needs for it.
const PACKAGES: [&str; 4] = ["ceph-mon", "ceph-osd", "ceph-common", "qemu-block-extra"];

/// Runs the command.
pub(crate) fn run() -> Result<()> {
    packages::ensure()?;
    packages::require(&PACKAGES)?;
    let start = Instant::now();
    let took = |what: &str| println!("== ceph: {what}: {:.1} s", start.elapsed().as_secs_f64());
    let cluster = Cluster::start().context("the cluster does not start")?;
    took("the cluster has its images");
    weights::check(&cluster)?;
    took("weights hold");
    outage::check(&cluster)?;
    took("outages pass");
    cluster.end()?;
    println!("ceph: all passed");
    Ok(())
}
