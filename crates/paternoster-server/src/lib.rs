//! The block server: tenants, connections, control plane.

pub mod config;
pub mod ctl;
pub mod sockets;
pub mod stat;

use config::Config;

/// Serves until it is told to stop.
pub fn run(_config: Config) -> anyhow::Result<()> {
    anyhow::bail!("the server is not built yet")
}
