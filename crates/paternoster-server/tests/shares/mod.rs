//! A server whose disk is shared, what real NBD clients get of it, and how far off that is.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use paternoster_load::{Got, Load, STARVED, TenantLoad, Window, judges_figures};
use paternoster_server::config::{Config, Listen};
use paternoster_server::{ControlHandle, Server};
use tempfile::TempDir;

/// The least part of the time with a request waiting of a tenant that asks all the time.
pub(crate) const DEMAND: f64 = 0.98;

/// A running server.
pub(crate) struct Rig {
    folder: TempDir,
    server: Server,
}

impl Rig {
    /// A server of what `config` makes of the path of its socket.
    pub(crate) fn start(config: impl FnOnce(PathBuf) -> Config) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let server = Server::start(&config(folder.path().join("nbd.sock")))?;
        Ok(Self { folder, server })
    }

    /// A server of a configuration in TOML, which lacks the path of its socket.
    pub(crate) fn from_toml(text: &str) -> anyhow::Result<Self> {
        let mut config = Config::from_toml(text, Path::new("test.toml"))?;
        Self::start(|socket| {
            config.listen = vec![Listen::unix(socket)];
            config
        })
    }

    /// Clients that have not asked yet; `seed` decides for what they will.
    pub(crate) fn connect(&self, loads: &[TenantLoad], seed: u64) -> anyhow::Result<Load> {
        Load::connect(&self.folder.path().join("nbd.sock"), loads, seed)
    }

    /// What asks the server, and changes it.
    pub(crate) fn control(&self) -> ControlHandle {
        self.server.control()
    }

    /// What these clients get while all of them ask, for `span` in all.
    pub(crate) fn measure(
        &self,
        loads: &[TenantLoad],
        seed: u64,
        span: Duration,
    ) -> anyhow::Result<Window> {
        let mut load = self.connect(loads, seed)?;
        let window = load.measure(&self.control(), span, |_| {})?;
        load.finish()?;
        Ok(window)
    }

    pub(crate) fn end(self) -> anyhow::Result<()> {
        self.server.shut_down()
    }
}

/// A file of two tenants of `d`, a modelled disk of four servers, each with a half of it; `/b` is
/// also on `e`, a disk in memory, by its group `/b/c`. `d` and `e` are further lines of the disks,
/// `group` is a table.
pub(crate) fn two_tenants(d: &str, e: &str, group: &str) -> String {
    format!(
        r#"
[disks.d]
backend = "modelled"
size = "128M"
servers = 4
{d}
[disks.e]
backend = "memory"
size = "1M"
{e}
{group}
[exports.a]
disk = "d"
size = "64M"
[exports.b]
disk = "d"
offset = "64M"
[exports.c]
disk = "e"
group = "/b/c"
"#
    )
}

/// Replies, as a number to make parts of.
pub(crate) fn replies<'a>(tenants: impl IntoIterator<Item = &'a Got>) -> f64 {
    #[allow(clippy::cast_precision_loss)] // some thousands
    tenants.into_iter().map(|got| got.measured.replies as f64).sum()
}

/// What somebody got of what there was, and should have got; in parts of 1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share {
    pub(crate) entitled: f64,
    pub(crate) got: f64,
}

impl Share {
    /// Returns whether it is within `tolerance`, which is in parts of what it should be. Where
    /// safety alone is judged, whether neither it nor all others together are starved.
    pub(crate) fn holds(self, tolerance: f64) -> bool {
        if judges_figures() {
            return self.error().abs() <= tolerance;
        }
        let others = (1.0 - self.got, 1.0 - self.entitled);
        self.got >= STARVED * self.entitled && others.0 >= STARVED * others.1
    }

    fn error(self) -> f64 {
        self.got / self.entitled - 1.0
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { entitled, got } = self;
        let [entitled, got, error] = [*entitled, *got, self.error()].map(|part| part * 100.0);
        write!(f, "entitled {entitled:5.2} %, got {got:5.2} % ({error:+.1} %)")
    }
}
