//! `paternoster serve`: a server from its start to a signal.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use anyhow::{Context as _, Result, bail, ensure};
use paternoster_disk::Fd;

use crate::acquire::{ControlSocket, ForControl, HandOverSocket, Obstacles, acquire};
use crate::admission::raise_descriptors;
use crate::catalogue::Records;
use crate::config::{Config, ListenAddress};
use crate::control::ControlHandle;
use crate::ctl::{self, Control, CtlServer, ReloadMode};
use crate::handover::{self, HandOver, Source, Successor};
use crate::page;
use crate::passed::Passed;
use crate::sandbox;
use crate::server::Server;
use crate::service_manager::ServiceManager;
use crate::signals;
use crate::sockets::{Patience, SocketFile};

/// How a server begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Start {
    /// By itself.
    Anew,
    /// In the place of one that runs, whose clients it goes on with.
    TakeOver {
        /// Where that one waits; beside its control socket, which is that of the configuration, if
        /// nothing is said.
        at: Option<PathBuf>,
        /// Whether it is only tried: then it ends when it could serve.
        is_tried: bool,
    },
}

/// Serves until SIGTERM, SIGINT or SIGQUIT, or until another server has taken over. Standard output
/// is the URI of each export on each socket that offers it, a line each, and then `vhost-user PATH`
/// for each export to which virtual machines attach, written when clients can connect. An error
/// where the end was not a good one: a disk's last flush failed, or something was stuck and is left
/// behind, for the process to end without it.
///
/// `file` is where the configuration was read; SIGHUP and the control socket have it read again.
pub fn run(config: &Config, file: Option<&Path>, start: &Start) -> Result<()> {
    for notice in config.notices() {
        tracing::warn!("{notice}");
    }
    let passed = Passed::of_process().context("cannot take the sockets of LISTEN_FDS")?;
    let passed = Arc::new(passed);
    // Before anything is started, so that no signal is missed.
    let caught = signals::catch().context("cannot wait for signals")?;
    let stored = passed.stored();
    let before = connect(config, start, &passed)?;
    let (ends, end) = mpsc::channel();
    let (hang_ups, hang_up) = mpsc::channel();
    let to_end = ends.clone();
    let begin = || {
        sandbox::enter(config, file)?;
        caught.forward(to_end, hang_ups).context("cannot wait for signals")
    };
    let (mut for_server, for_control) =
        acquire(config, &passed, Patience::a_while(), begin).map_err(Obstacles::into_error)?;
    let (successor, records) = before.unzip();
    if let Some(records) = records {
        ensure_none(&records.mistakes(config))?;
        for_server.records = records;
    }
    let mut server = Server::prepare(config, for_server, Arc::clone(&passed), &ends)?;
    let manager = ServiceManager::OF_PROCESS;
    let control = server.control().with_manager(manager);
    let control = match file {
        Some(file) => control.with_file(file),
        None => control,
    };
    match (successor, start) {
        (Some(successor), Start::TakeOver { is_tried: true, .. }) => return successor.leave(),
        (Some(successor), _) => take_over(successor, &server, &control, (&passed, &stored))?,
        (None, _) => {}
    }
    server.open()?;
    sandbox::serves();
    reload_at(hang_up, control.clone()).context("cannot start the thread of reloads")?;
    let hand_over = HandOver::new(for_control.waits_at());
    let control = control.with_hand_over(hand_over.clone());
    let (answering, waiting) = Answering::start(config, for_control, &control)?;
    let recordings = control.recordings_here();
    let source =
        Source { control, gate: server.gate(), sockets: sockets(config, &server, &answering) };
    if let Some(listener) = waiting {
        handover::serve(listener, source.clone(), hand_over.clone(), ends.clone())
            .context("cannot start the thread of hand-overs")?;
    }
    let lines = [server.uris(), server.machines()].concat();
    manager.ready(config.exports.iter().filter(|export| export.keys.export).count());
    let printed = print_lines(lines, ends).context("cannot start the thread of output")?;
    let why = end.recv().context("nobody is left who could end the server")?;
    // What is not written when this process ends is lost.
    recordings.end();
    if why == "SIGTERM" && hand_over.armed_for().is_some() {
        handover::leave_to_manager(manager, &source, &hand_over);
    }
    if !hand_over.forbid() {
        tracing::info!("handed over: {why}");
        // All of it is the other server's, which waits for no answer that this one has begun.
        std::mem::forget((server, answering));
        return Ok(());
    }
    tracing::info!("{why}: shutting down");
    manager.stopping(&why);
    server.begin_shutdown();
    answering.stop();
    let ended = server.shut_down();
    // Where nobody reads, it still tries: that ends with the process.
    match printed.is_finished().then(|| printed.join()) {
        Some(Ok(Err(error))) => ended.and(Err(error).context("cannot write to standard output")),
        _ => ended,
    }
}

/// What answers the operator.
struct Answering {
    ctl: Option<CtlServer>,
    metrics: Option<CtlServer>,
    /// The sockets of both, and the one on which another server takes over; with the name that a
    /// service manager has for it, if it has passed it.
    sockets: Vec<(Option<String>, Fd)>,
    files: Vec<SocketFile>,
}

impl Answering {
    /// Answers from now on. Returns where another server may take over, if there is such a place.
    fn start(
        config: &Config,
        of: ForControl,
        control: &ControlHandle,
    ) -> Result<(Self, Option<Fd>)> {
        let control: Arc<dyn Control> = Arc::new(control.clone());
        let (mut sockets, mut files) = (Vec::new(), Vec::new());
        let (mut ctl, mut waiting) = (None, None);
        if let Some(ControlSocket { listener, file, handover }) = of.ctl {
            let name = config.ctl.as_ref().and_then(name_of);
            sockets.push((name, Fd::new(listener.try_clone()?.into())));
            ctl = Some(ctl::serve(listener, Arc::clone(&control))?);
            files.extend(file);
            if let Some(HandOverSocket { listener, file, .. }) = handover {
                let listener = Fd::new(listener);
                sockets.push((None, listener.clone()));
                waiting = Some(listener);
                files.push(file);
            }
        }
        let mut metrics = None;
        if let Some(listener) = of.metrics {
            tracing::info!("metrics are at http://{}/metrics", listener.local_addr()?);
            sockets.push((None, Fd::new(listener.try_clone()?.into())));
            let page = config.keys.page.then(|| page::router(Arc::clone(&control)));
            let router = ctl::metrics_router(control).merge(page.unwrap_or_default());
            metrics = Some(ctl::serve_metrics(listener, router)?);
        }
        Ok((Self { ctl, metrics, sockets, files }, waiting))
    }

    /// Answers what was asked, and nobody any more.
    fn stop(self) {
        drop(self.files);
        self.ctl.into_iter().chain(self.metrics).for_each(CtlServer::stop);
    }
}

/// All sockets that listen but those of virtual machines, with the name that a service manager has
/// for each, if it has passed it.
fn sockets(config: &Config, server: &Server, answering: &Answering) -> Vec<(Option<String>, Fd)> {
    let of_clients = config.listen.iter().map(|listen| name_of(&listen.address));
    of_clients.zip(server.sockets()).chain(answering.sockets.iter().cloned()).collect()
}

/// Connects to the server that is to be taken over from, if one is.
fn connect(
    config: &Config,
    start: &Start,
    passed: &Passed,
) -> Result<Option<(Successor, Records)>> {
    let Start::TakeOver { at, .. } = start else {
        let store = passed.take_store();
        if store.is_whole() {
            return Successor::of_store(store, passed).map(Some);
        }
        let left = store.names();
        if !left.is_empty() {
            tracing::warn!(
                "the server before has left a part of what it had to the service manager: it \
                 cannot be gone on with"
            );
            ServiceManager::OF_PROCESS.forget(&left);
        }
        return Ok(None);
    };
    let at = match (at, &config.ctl) {
        (Some(at), _) => at.clone(),
        (None, Some(ListenAddress::Unix { path, .. })) => handover::socket_of(path),
        (None, ctl) => {
            let ctl = ctl.as_ref().map_or("none".to_owned(), ToString::to_string);
            bail!(
                "ctl = \"{ctl}\" does not say where the server before waits: --take-over=SOCKET is \
                 allowed"
            )
        }
    };
    // All images and sockets come at once.
    raise_descriptors();
    Successor::connect(&at, passed).map(Some)
}

/// Goes on where another server stops. From here on its sockets are this one's.
fn take_over(
    successor: Successor,
    server: &Server,
    control: &ControlHandle,
    (passed, stored): (&Passed, &[String]),
) -> Result<()> {
    let prepared = successor.prepared()?;
    prepared.set(control);
    prepared.take_over()?;
    passed.inherited.take_over();
    passed.inherited.end();
    // Before anything is done of it: it must not be done again.
    ServiceManager::OF_PROCESS.forget(stored);
    let clients = prepared.serve_clients(server.exports());
    tracing::info!("has taken over from another server, with {clients} clients");
    Ok(())
}

fn ensure_none(mistakes: &[String]) -> Result<()> {
    ensure!(mistakes.is_empty(), "{}", mistakes.join("\n"));
    Ok(())
}

/// What a service manager calls a socket that it passes.
fn name_of(address: &ListenAddress) -> Option<String> {
    match address {
        ListenAddress::Passed { name } => Some(name.clone()),
        ListenAddress::Unix { .. } | ListenAddress::Tcp(_) => None,
    }
}

/// Has the file read again at each SIGHUP, on a thread of its own, which ends with the process.
fn reload_at(hang_up: mpsc::Receiver<()>, control: ControlHandle) -> io::Result<()> {
    let work = move || {
        while hang_up.recv().is_ok() {
            // What has changed is logged where it is done.
            if let Err(error) = control.reload(ReloadMode::Apply) {
                for line in error.to_string().lines() {
                    tracing::error!("SIGHUP: {line}");
                }
            }
        }
    };
    thread::Builder::new().name("reload".to_owned()).spawn(work)?;
    Ok(())
}

/// Prints the lines on a thread of its own: where nobody reads them, signals are heard all the
/// same. If it fails, that ends the server.
fn print_lines(
    lines: Vec<String>,
    ends: mpsc::Sender<String>,
) -> io::Result<JoinHandle<io::Result<()>>> {
    let work = move || {
        let mut out = io::stdout().lock();
        let written = lines.iter().try_for_each(|line| writeln!(out, "{line}"));
        let printed = written.and_then(|()| out.flush());
        if printed.is_err() {
            // The server may have ended already.
            let _ = ends.send("standard output takes nothing".to_owned());
        }
        printed
    };
    thread::Builder::new().name("output".to_owned()).spawn(work)
}
