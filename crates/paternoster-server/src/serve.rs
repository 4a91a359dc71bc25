//! `paternoster serve`: a server from its start to a signal.

use std::io::{self, Write as _};
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::thread;

use anyhow::{Context as _, Result};

use crate::config::Config;
use crate::control::ControlHandle;
use crate::ctl::{self, Control, ReloadMode};
use crate::server::Server;
use crate::signals;
use crate::sockets::{self, SocketFile};

/// Only the user who runs the server may ask it.
const CTL_MODE: u32 = 0o600;

/// Serves until SIGTERM, SIGINT or SIGQUIT. Standard output is the URI of each export on each
/// socket that offers it, a line each, written when clients can connect. An error where the end was
/// not a good one: a disk's last flush failed, or something was stuck and is left behind, for the
/// process to end without it.
///
/// `file` is where the configuration was read; SIGHUP and the control socket have it read again.
pub fn run(config: &Config, file: Option<&Path>) -> Result<()> {
    for notice in config.notices() {
        tracing::warn!("{notice}");
    }
    // Before anything is started, so that no signal is missed.
    let (ends, end) = mpsc::channel();
    let (hang_ups, hang_up) = mpsc::channel();
    signals::forward(ends.clone(), hang_ups).context("cannot wait for signals")?;
    let ctl_listener = match &config.ctl {
        Some(path) => {
            ctl::make_directory(path).with_context(|| {
                format!("no directory for the control socket {}", path.display())
            })?;
            let listener = sockets::bind_unix(path, CTL_MODE)
                .context("no control socket: name another as ctl, or \"none\"")?;
            Some((listener, SocketFile::new(path)))
        }
        None => None,
    };
    let metrics_listener = config.metrics.map(sockets::bind_tcp).transpose()?;
    let mut server = Server::start_watched(config, &ends)?;
    let control = match file {
        Some(file) => server.control().with_file(file),
        None => server.control(),
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
            Some(ctl::serve_metrics(listener, control)?)
        }
        None => None,
    };
    print_uris(server.uris()).context("cannot write to standard output")?;
    let why = end.recv().context("nobody is left who could end the server")?;
    tracing::info!("{why}: shutting down");
    server.begin_shutdown();
    if let Some((ctl_server, file)) = ctl_server {
        drop(file);
        ctl_server.stop();
    }
    if let Some(metrics_server) = metrics_server {
        metrics_server.stop();
    }
    server.shut_down()
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

fn print_uris(uris: &[String]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for uri in uris {
        writeln!(out, "{uri}")?;
    }
    out.flush()
}
