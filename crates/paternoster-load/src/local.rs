//! A server in this process, on a socket of its own.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use paternoster_scene::{Outcome, Scene, Tenant};
use paternoster_server::config::{Config, Listen};
use paternoster_server::{ControlHandle, Server};
use tempfile::TempDir;

use crate::Load;

/// How long tenants have been backlogged before anything counts, and how long is counted at least.
const WARM_UP: Duration = Duration::from_nanos(Scene::WARM_UP.as_nanos());
const LEAST: Duration = Duration::from_millis(200);

/// The server.
pub struct LocalServer {
    /// Of the socket.
    folder: TempDir,
    server: Server,
}

impl LocalServer {
    /// Starts one with a configuration in TOML that lacks the path of its socket.
    pub fn from_toml(text: &str) -> Result<Self> {
        Self::with_machines(text, &[])
    }

    /// The same, and machines can attach to the exports of these names by shared memory.
    pub fn with_machines(text: &str, exports: &[&str]) -> Result<Self> {
        let folder = tempfile::tempdir().context("there is no room for a socket")?;
        let mut config = Config::from_toml(text, Path::new("config.toml"))?;
        for export in &mut config.exports {
            if exports.contains(&export.name.as_str()) {
                export.keys.vhost_user = Some(socket_of(&folder, &export.name));
            }
        }
        config.listen = vec![Listen::unix(socket_in(&folder))];
        let server = Server::start(&config)?;
        Ok(Self { folder, server })
    }

    /// Connects clients that have not asked yet; `seed` decides for what they will.
    pub fn connect(&self, tenants: &[Tenant], seed: u64) -> Result<Load> {
        Load::connect(&socket_in(&self.folder), tenants, seed)
    }

    /// Where a machine attaches to that export.
    pub fn socket_of(&self, export: &str) -> PathBuf {
        socket_of(&self.folder, export)
    }

    /// Where clients connect.
    pub fn socket(&self) -> PathBuf {
        socket_in(&self.folder)
    }

    /// What asks the server, and changes it.
    pub fn control(&self) -> ControlHandle {
        self.server.control()
    }

    /// What these tenants get while all of them ask, for some `span` in all.
    pub fn measure(&self, tenants: &[Tenant], seed: u64, span: Duration) -> Result<Outcome> {
        let mut load = self.connect(tenants, seed)?;
        let counted = span.saturating_sub(WARM_UP).max(LEAST);
        let outcome = load.play(&self.control(), WARM_UP, counted, |_| {})?;
        load.finish()?;
        Ok(outcome)
    }

    /// Ends it as a signal does.
    pub fn end(self) -> Result<()> {
        self.server.shut_down()
    }
}

fn socket_of(folder: &TempDir, export: &str) -> PathBuf {
    folder.path().join(format!("{export}.vhost"))
}

fn socket_in(folder: &TempDir) -> PathBuf {
    folder.path().join("nbd.sock")
}
