//! A server with a pool, its control socket, and clients that work meanwhile.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use paternoster_load::{Load, LocalServer, Measured};
use paternoster_scene::Tenant;
use paternoster_server::ctl;
use tempfile::TempDir;

/// Volumes of the file, which those who work use.
pub(crate) const LOADERS: usize = 8;
/// Reads that each of them has outstanding.
pub(crate) const DEPTH: u32 = 8;
/// Of each.
const LOADED: u64 = 64 << 20;
/// How long is measured at a time.
pub(crate) const WINDOW: Duration = Duration::from_secs(1);
/// The keys of a modelled pool that is as fast as a core.
pub(crate) const MODEL: &str = "servers = 16\nservice_us = 80";

/// The server.
pub(crate) struct Rig {
    pub(crate) dir: TempDir,
    pub(crate) server: LocalServer,
    control: ctl::CtlServer,
}

/// What stands behind its pool.
pub(crate) enum Pool<'k> {
    /// Files in the folder for temporary ones.
    Files { durable: bool },
    /// A model with those keys.
    Modelled(&'k str),
}

impl Rig {
    pub(crate) fn start(pool: &Pool<'_>) -> Result<Self> {
        let dir = tempfile::tempdir().context("there is no room for images")?;
        let folder = dir.path().display();
        let mut toml = String::new();
        if let Pool::Files { durable: true } = pool {
            writeln!(toml, "state_dir = \"{folder}/state\"")?;
        }
        writeln!(toml, "[pools.fast]\nscheduler = \"wfq\"")?;
        match pool {
            Pool::Files { .. } => writeln!(toml, "path = \"{folder}\"")?,
            Pool::Modelled(keys) => writeln!(toml, "backend = \"modelled\"\n{keys}")?,
        }
        for loader in 0..LOADERS {
            writeln!(toml, "[volumes.{}]\npool = \"fast\"", loader_name(loader))?;
            match pool {
                Pool::Files { .. } => {
                    let image = format!("{}.img", loader_name(loader));
                    File::create(dir.path().join(image))?.set_len(LOADED)?;
                }
                Pool::Modelled(_) => writeln!(toml, "size = {LOADED}")?,
            }
        }
        let server = LocalServer::from_toml(&toml)?;
        let listener = UnixListener::bind(dir.path().join("ctl.sock"))?;
        let control = ctl::serve(listener, Arc::new(server.control()))?;
        Ok(Self { dir, server, control })
    }

    pub(crate) fn ctl(&self) -> PathBuf {
        self.dir.path().join("ctl.sock")
    }

    /// Clients that read, each of its own volume.
    pub(crate) fn readers(&self, count: usize, depth: u32) -> Result<Load> {
        let of = |loader| Tenant::reads(100, 1, depth).named(loader_name(loader));
        self.server.connect(&(0..count).map(of).collect::<Vec<_>>(), 7)
    }

    pub(crate) fn end(self) -> Result<()> {
        self.control.stop();
        self.server.end()
    }
}

/// The volume of that number.
pub(crate) fn loader_name(number: usize) -> String {
    format!("loader{number}")
}

/// What all clients together got within a window, between two pauses.
pub(crate) fn measured(load: &mut Load) -> Result<Measured> {
    load.resume()?;
    load.take_measured();
    load.run_for(WINDOW)?;
    let measured = load.take_measured();
    load.pause()?;
    measured.into_iter().reduce(|sum, one| sum.and(&one)).context("there are clients")
}

/// A number as one that can be divided.
pub(crate) fn number(of: u64) -> f64 {
    f64::from(u32::try_from(of).unwrap_or(u32::MAX))
}

/// The middle of them, with the least and the greatest.
pub(crate) fn median_of(mut ratios: Vec<f64>) -> [f64; 3] {
    ratios.sort_unstable_by(f64::total_cmp);
    [ratios[ratios.len() / 2], ratios[0], ratios[ratios.len() - 1]]
}

pub(crate) fn put(ctl: &Path, name: &str, size: &str) -> Result<()> {
    let body = format!(r#"{{"pool": "fast", "size": "{size}"}}"#);
    ask(ctl, "PUT", &format!("/v1/volumes/{name}"), &body, "201")
}

pub(crate) fn delete(ctl: &Path, name: &str) -> Result<()> {
    ask(ctl, "DELETE", &format!("/v1/volumes/{name}?drain=0s&data=delete"), "", "200")
}

/// Asks over HTTP, which has to answer with that status.
fn ask(ctl: &Path, method: &str, resource: &str, body: &str, status: &str) -> Result<()> {
    let mut stream = UnixStream::connect(ctl)?;
    let len = body.len();
    let head = format!("{method} {resource} HTTP/1.1\r\nHost: x\r\nContent-Length: {len}");
    // At once, as clients of HTTP do.
    stream.write_all(format!("{head}\r\n\r\n{body}").as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    ensure!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{method} {resource}: {answer}");
    Ok(())
}
