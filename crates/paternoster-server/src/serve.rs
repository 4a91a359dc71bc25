//! `paternoster serve`: a server from its start to a signal.

use std::io::{self, Write as _};
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use anyhow::{Context as _, Result};

use crate::acquire::{ForControl, Obstacles, acquire};
use crate::config::Config;
use crate::control::ControlHandle;
use crate::ctl::{self, Control, ReloadMode};
use crate::page;
use crate::passed::PassedSockets;
use crate::sandbox;
use crate::server::Server;
use crate::service_manager::ServiceManager;
use crate::signals;
use crate::sockets::Patience;

/// Serves until SIGTERM, SIGINT or SIGQUIT. Standard output is the URI of each export on each
/// socket that offers it, a line each, and then `vhost-user PATH` for each export to which virtual
/// machines attach, written when clients can connect. An error where the end was
/// not a good one: a disk's last flush failed, or something was stuck and is left behind, for the
/// process to end without it.
///
/// `file` is where the configuration was read; SIGHUP and the control socket have it read again.
pub fn run(config: &Config, file: Option<&Path>) -> Result<()> {
    for notice in config.notices() {
        tracing::warn!("{notice}");
    }
    let passed = PassedSockets::of_process().context("cannot take the sockets of LISTEN_FDS")?;
    // Before anything is started, so that no signal is missed.
    let caught = signals::catch().context("cannot wait for signals")?;
    let (ends, end) = mpsc::channel();
    let (hang_ups, hang_up) = mpsc::channel();
    let to_end = ends.clone();
    let begin = || {
        sandbox::enter(config, file)?;
        caught.forward(to_end, hang_ups).context("cannot wait for signals")
    };
    let (for_server, ForControl { ctl: ctl_listener, metrics: metrics_listener }) =
        acquire(config, passed, Patience::a_while(), begin).map_err(Obstacles::into_error)?;
    let mut server = Server::start_with(config, for_server, &ends)?;
    sandbox::serves();
    let manager = ServiceManager::OF_PROCESS;
    let control = server.control().with_manager(manager);
    let control = match file {
        Some(file) => control.with_file(file),
        None => control,
    };
    reload_at(hang_up, control.clone()).context("cannot start the thread of reloads")?;
    let control: Arc<dyn Control> = Arc::new(control);
    let ctl_server = match ctl_listener {
        Some((listener, file)) => Some((ctl::serve(listener, Arc::clone(&control))?, file)),
        None => None,
    };
    let metrics_server = match metrics_listener {
        Some(listener) => {
            tracing::info!("metrics are at http://{}/metrics", listener.local_addr()?);
            let page = config.keys.page.then(|| page::router(Arc::clone(&control)));
            let router = ctl::metrics_router(control).merge(page.unwrap_or_default());
            Some(ctl::serve_metrics(listener, router)?)
        }
        None => None,
    };
    let lines = [server.uris(), server.machines()].concat();
    manager.ready(config.exports.iter().filter(|export| export.keys.export).count());
    let printed = print_lines(lines, ends).context("cannot start the thread of output")?;
    let why = end.recv().context("nobody is left who could end the server")?;
    tracing::info!("{why}: shutting down");
    manager.stopping(&why);
    server.begin_shutdown();
    if let Some((ctl_server, file)) = ctl_server {
        drop(file);
        ctl_server.stop();
    }
    if let Some(metrics_server) = metrics_server {
        metrics_server.stop();
    }
    let ended = server.shut_down();
    // Where nobody reads, it still tries: that ends with the process.
    match printed.is_finished().then(|| printed.join()) {
        Some(Ok(Err(error))) => ended.and(Err(error).context("cannot write to standard output")),
        _ => ended,
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
