//! What a server takes of its machine before it serves: rings, sockets, disks. One function takes
//! it, for `serve` and for its checks, so that a check finds what `serve` would be refused.
//!
//! ```text
//!   configuration ──▶ acquire ──▶ rings, control socket, metrics, sockets, disks ──▶ Server
//!                        └──────▶ obstacles: all that is refused, with its holder
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Error, Result, anyhow, bail, ensure};
use paternoster_disk::{Backend, CpuLatency, IoEngine};
use rustix::net::SocketType;

use crate::admission::Descriptors;
use crate::borders;
use crate::catalogue::{Records, Store};
use crate::common::Common;
use crate::config::{
    Config, DiskConfig, ExportConfig, ListenAddress, VolumeConfig, check_far, shown_span,
};
use crate::ctl;
use crate::handover;
use crate::passed::Passed;
use crate::rings;
use crate::sandbox;
use crate::sockets::{BoundSocket, Patience, SocketFile, take_tcp, take_unix_of};
use crate::uri::Place;
use crate::vhost::VhostSocket;

/// What serves clients.
pub(crate) struct ForServer {
    pub(crate) io: IoEngine,
    /// The listening sockets, in the order of the configuration.
    pub(crate) bound: Vec<BoundSocket>,
    /// What each disk needs, in the order of the configuration.
    pub(crate) disks: Vec<Acquired>,
    /// Where what requests make is recorded, if there is a place for it.
    pub(crate) store: Option<Store>,
    /// What requests have made before.
    pub(crate) records: Records,
}

/// What a disk needs.
pub(crate) struct Acquired {
    /// What stands behind each of its volumes, in the order of the configuration.
    pub(crate) backends: Vec<Box<dyn Backend>>,
    /// What they have in common.
    pub(crate) common: Common,
    /// How long a processor may take to wake up, if the disk says so.
    pub(crate) latency: Option<CpuLatency>,
    /// Where virtual machines attach to its exports, by their indices in the configuration.
    pub(crate) sockets: BTreeMap<usize, VhostSocket>,
    /// The places of its descriptors, if it comes while others are served.
    pub(crate) room: Option<Descriptors>,
}

/// What answers the operator.
pub(crate) struct ForControl {
    pub(crate) ctl: Option<ControlSocket>,
    pub(crate) metrics: Option<TcpListener>,
}

impl ForControl {
    /// Where the server waits for one that takes over.
    pub(crate) fn waits_at(&self) -> Option<PathBuf> {
        Some(self.ctl.as_ref()?.handover.as_ref()?.path.clone())
    }
}

/// The control socket, and the one beside it by which another server takes over.
pub(crate) struct ControlSocket {
    pub(crate) listener: UnixListener,
    pub(crate) file: Option<SocketFile>,
    /// None where it cannot be had.
    pub(crate) handover: Option<HandOverSocket>,
}

/// Where a server waits for one that takes over.
pub(crate) struct HandOverSocket {
    pub(crate) listener: OwnedFd,
    pub(crate) file: SocketFile,
    pub(crate) path: PathBuf,
}

/// All that a server was refused.
#[derive(Debug, Default)]
pub(crate) struct Obstacles(Vec<Error>);

impl Obstacles {
    fn note<T>(&mut self, taken: Result<T>) -> Option<T> {
        taken.map_err(|error| self.0.push(error)).ok()
    }

    /// The sentences.
    fn lines(&self) -> Vec<String> {
        self.0.iter().map(in_one_line).collect()
    }

    /// The same as a text, a line each.
    pub(crate) fn into_text(self) -> String {
        self.lines().join("\n")
    }

    /// The same as one error, a line each.
    pub(crate) fn into_error(self) -> Error {
        anyhow!(self.into_text())
    }
}

/// The error and its causes, each with why it may be where that is not seen.
fn in_one_line(error: &Error) -> String {
    let cause = |cause: &(dyn std::error::Error + 'static)| match cause.downcast_ref() {
        Some(error) => sandbox::explained(error),
        None => cause.to_string(),
    };
    error.chain().map(cause).collect::<Vec<_>>().join(": ")
}

/// Takes all that `serve` needs; what is in use is asked for again for a while, if there is
/// patience. When all sockets listen, and before anything else is opened or started, it does what
/// comes between.
pub(crate) fn acquire(
    config: &Config,
    passed: &Passed,
    patience: Patience,
    between: impl FnOnce() -> Result<()>,
) -> Result<(ForServer, ForControl), Obstacles> {
    let mut refused = Obstacles::default();
    let control = for_control(config, passed, patience, &mut refused);
    let bound = bind(config, passed, patience, &mut refused);
    passed.end_named();
    if refused.note(between()).is_none() {
        return Err(refused);
    }
    let server = for_server(config, bound, passed, patience, &mut refused);
    server.zip(control).ok_or(refused)
}

/// Takes what clients are served with.
pub(crate) fn acquire_for_server(config: &Config) -> Result<ForServer, Obstacles> {
    let mut refused = Obstacles::default();
    let patience = Patience::a_while();
    let passed = Passed::default();
    let bound = bind(config, &passed, patience, &mut refused);
    for_server(config, bound, &passed, patience, &mut refused).ok_or(refused)
}

/// Returns why `serve` would not start now, a sentence each: what it is refused by the machine, and
/// what others have, with the name of who that is. For a moment what is free is taken. Of sockets
/// that are passed nothing is said: a service manager passes them to the server alone.
pub fn obstacles(config: &Config, patience: Patience) -> Vec<String> {
    let mut config = config.clone();
    let is_passed = |address: &ListenAddress| matches!(address, ListenAddress::Passed { .. });
    config.listen.retain(|listen| !is_passed(&listen.address));
    config.ctl = config.ctl.filter(|address| !is_passed(address));
    let made = match &config.ctl {
        Some(ListenAddress::Unix { path, .. }) if ctl::makes_directory(path) => path.parent(),
        _ => None,
    };
    let state = config.keys.state_dir.as_deref().filter(|path| !path.exists());
    let refused = acquire(&config, &Passed::default(), patience, || Ok(()));
    let refused = refused.err().unwrap_or_default();
    for directory in made.into_iter().chain(state) {
        // It was made to see whether it can be. Where somebody else uses it by now, it stays.
        let _ = fs::remove_dir(directory);
    }
    refused.lines()
}

fn for_control(
    config: &Config,
    passed: &Passed,
    patience: Patience,
    refused: &mut Obstacles,
) -> Option<ForControl> {
    let ctl = config.ctl.as_ref();
    let ctl = ctl.map(|address| control_socket(address, passed, patience)).transpose();
    let ctl = refused.note(ctl);
    let metrics = config.keys.metrics;
    let metrics = metrics.map(|address| take_tcp(address, passed, patience)).transpose();
    let metrics = refused.note(metrics.map_err(Into::into));
    Some(ForControl { ctl: ctl?, metrics: metrics? })
}

fn control_socket(
    address: &ListenAddress,
    passed: &Passed,
    patience: Patience,
) -> Result<ControlSocket> {
    if let ListenAddress::Unix { path, .. } = address {
        ctl::make_directory(path)
            .with_context(|| format!("no directory for the control socket {}", path.display()))?;
    }
    let bound = BoundSocket::new(address, passed, patience)
        .context("no control socket: name another as ctl, or \"none\"")?;
    let BoundSocket { socket, place, file, is_passed } = bound;
    let Place::Unix(path) = place else {
        bail!(
            "no control socket: ctl = \"{address}\" is a TCP socket, and a unix socket is allowed"
        )
    };
    if is_passed {
        warn_if_writable(&path);
    }
    let at = handover::socket_of(&path);
    let kind = SocketType::SEQPACKET;
    let handover = take_unix_of(kind, &at, ctl::MODE, passed, patience);
    let handover = handover.map_err(|error| {
        let error = in_one_line(&error.into());
        tracing::warn!("no other server can take over from this one: {error}");
    });
    let handover =
        handover.ok().map(|(listener, file)| HandOverSocket { listener, file, path: at });
    Ok(ControlSocket { listener: socket.into(), file, handover })
}

/// Warns of a control socket to which the service manager lets every user write.
fn warn_if_writable(path: &Path) {
    let mode = fs::metadata(path).map(|seen| seen.permissions().mode());
    if mode.is_ok_and(|mode| mode & 0o002 != 0) {
        tracing::warn!(
            "every user of this machine may change this server by {}: its socket unit should say \
             SocketMode=0600",
            path.display()
        );
    }
}

/// Listens for clients; none of what is refused.
fn bind(
    config: &Config,
    passed: &Passed,
    patience: Patience,
    refused: &mut Obstacles,
) -> Vec<Option<BoundSocket>> {
    let listen = config.listen.iter();
    let bound = listen.map(|listen| BoundSocket::new(&listen.address, passed, patience));
    bound.map(|bound| refused.note(bound.map_err(Into::into))).collect()
}

fn for_server(
    config: &Config,
    bound: Vec<Option<BoundSocket>>,
    passed: &Passed,
    patience: Patience,
    refused: &mut Obstacles,
) -> Option<ForServer> {
    let rings = config.disks.len() + config.connection_threads() + 1;
    let io = refused.note(rings::choose(config.keys.engine, rings));
    let places: Vec<_> = bound.iter().flatten().map(|socket| socket.place.clone()).collect();
    for volume in config.disks.iter().flat_map(|disk| &disk.volumes) {
        let checked = check_far(&volume.backend, &places);
        refused.note(checked.map_err(|own| anyhow!("{:?}: {own}", volume.name)));
    }
    let exports = config.exports_by_volume();
    let disks: Vec<_> = (0..config.disks.len())
        .map(|disk| for_disk(config, disk, &exports, (passed, patience), refused))
        .collect();
    let state = config.keys.state_dir.as_deref();
    let state = state.map(|path| open_state(config, path, passed, patience)).transpose();
    let state = refused.note(state).map(Option::unzip);
    let sockets = config.keys.vhost_user_dir.as_deref().map_or(Ok(()), check_directory);
    refused.note(sockets.context("vhost_user_dir"))?;
    let (store, records) = state?;
    Some(ForServer {
        store,
        records: records.unwrap_or_default(),
        io: io?,
        bound: bound.into_iter().collect::<Option<_>>()?,
        disks: disks.into_iter().collect::<Option<_>>()?,
    })
}

/// Takes what a disk needs, which is an index; what is in use is asked for again for a while.
pub(crate) fn acquire_for_disk(config: &Config, disk: usize) -> Result<Acquired, Obstacles> {
    let (mut refused, exports) = (Obstacles::default(), config.exports_by_volume());
    let means = (&Passed::default(), Patience::a_while());
    for_disk(config, disk, &exports, means, &mut refused).ok_or(refused)
}

fn for_disk(
    config: &Config,
    disk: usize,
    exports: &BTreeMap<(usize, usize), Vec<&ExportConfig>>,
    (passed, patience): (&Passed, Patience),
    refused: &mut Obstacles,
) -> Option<Acquired> {
    let of = &config.disks[disk];
    let named = || format!("{} {:?}", of.what(), of.name);
    let common = refused.note(Common::of(&of.backend).with_context(named))?;
    // All are tried, so that all that is refused is told.
    let volumes = of.volumes.iter().enumerate();
    let opened: Vec<_> = volumes
        .map(|(volume, VolumeConfig { name, backend })| {
            let place = (disk, volume);
            let exports = exports.get(&place).map_or(&[][..], Vec::as_slice);
            let read_only = exports.iter().all(|export| export.keys.read_only);
            let opened = common.open(backend, read_only, passed, patience);
            let opened = opened.with_context(|| format!("{} {name:?}", of.what_of_volume()));
            refused.note(opened.and_then(|opened| {
                borders::check(config, place, exports, &opened.capabilities())?;
                Ok(opened)
            }))
        })
        .collect();
    let latency = refused.note(hold_latency(of).transpose());
    let exports = config.exports.iter().enumerate().filter(|(_, export)| export.disk == disk);
    let sockets: Vec<_> = exports
        .filter_map(|(index, export)| {
            let (path, keys) = (export.keys.vhost_user.as_ref()?, &export.keys);
            let bound = VhostSocket::bind(path, keys, passed, patience);
            let bound = bound.with_context(|| format!("export {:?}", export.name));
            Some(refused.note(bound.map(|socket| (index, socket))))
        })
        .collect();
    let backends = opened.into_iter().collect::<Option<_>>()?;
    let sockets = sockets.into_iter().collect::<Option<_>>()?;
    Some(Acquired { backends, common, latency: latency?, sockets, room: None })
}

/// Takes the directory of what was made by request, if that goes together with the configuration.
fn open_state(
    config: &Config,
    path: &Path,
    passed: &Passed,
    patience: Patience,
) -> Result<(Store, Records)> {
    let store = Store::open(path, passed, patience)?;
    let records = Records::read(path)?;
    match &records.mistakes(config)[..] {
        [] => Ok((store, records)),
        mistakes => bail!(mistakes.join("\n")),
    }
}

/// Refuses what is no directory.
fn check_directory(path: &Path) -> Result<()> {
    let metadata = fs::metadata(path).with_context(|| path.display().to_string())?;
    ensure!(metadata.is_dir(), "{} is no directory", path.display());
    Ok(())
}

/// Asks the kernel for what the disk says of how long a processor may take to wake up.
fn hold_latency(disk: &DiskConfig) -> Option<Result<CpuLatency>> {
    let longest = disk.keys.cpu_dma_latency?;
    let most_us = u32::try_from(longest.as_nanos() / 1_000).unwrap_or(u32::MAX);
    Some(CpuLatency::hold(most_us).with_context(|| {
        let (name, path, shown) = (&disk.name, CpuLatency::PATH, shown_span(longest));
        let what = disk.what();
        format!(
            "{what} {name:?}: cpu_dma_latency = {shown:?}: cannot write to {path}, root's mostly"
        )
    }))
}
