//! `paternoster serve`: a server from its start to a signal.

use std::io::{self, Write as _};
use std::sync::{Arc, mpsc};
use std::thread;

use anyhow::{Context as _, Result};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::config::Config;
use crate::ctl;
use crate::server::Server;
use crate::sockets::{self, SocketFile};

/// Only the user who runs the server may ask it.
const CTL_MODE: u32 = 0o600;

/// Serves until SIGTERM or SIGINT. Standard output is the URI of each export, a line each, written
/// when clients can connect.
pub fn run(config: &Config) -> Result<()> {
    log_to_stderr();
    for notice in config.notices() {
        tracing::warn!("{notice}");
    }
    // Before anything is started, so that no signal is missed.
    let (ends, end) = mpsc::channel();
    forward_signals(ends.clone()).context("cannot wait for signals")?;
    let ctl_listener = match &config.ctl {
        Some(path) => {
            let listener = sockets::bind_unix(path, CTL_MODE)
                .context("no control socket: name another as ctl, or \"none\"")?;
            Some((listener, SocketFile::new(path)))
        }
        None => None,
    };
    let server = Server::start_watched(config, &ends)?;
    let ctl_server = match ctl_listener {
        Some((listener, file)) => Some((ctl::serve(listener, Arc::new(server.control()))?, file)),
        None => None,
    };
    print_uris(server.uris()).context("cannot write to standard output")?;
    let why = end.recv().context("nobody is left who could end the server")?;
    tracing::info!("{why}: shutting down");
    if let Some((ctl_server, _file)) = ctl_server {
        ctl_server.stop();
    }
    server.shut_down()
}

/// Has SIGTERM and SIGINT told by their names.
fn forward_signals(ends: mpsc::Sender<String>) -> io::Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGINT])?;
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for signal in signals.forever() {
            let name = signal_hook::low_level::signal_name(signal).unwrap_or("a signal");
            if ends.send(name.to_owned()).is_err() {
                return;
            }
        }
    })?;
    Ok(())
}

fn print_uris(uris: &[String]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for uri in uris {
        writeln!(out, "{uri}")?;
    }
    out.flush()
}

/// Logs what `RUST_LOG` asks for, else what is worth telling an operator.
fn log_to_stderr() {
    use tracing_subscriber::EnvFilter;
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    // Where a program has its own subscriber, that one stays.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_target(false)
        .try_init();
}
