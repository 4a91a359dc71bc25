//! `paternoster serve`: a server from its start to a signal.

use std::io::{self, Write as _};
use std::sync::{Arc, mpsc};

use anyhow::{Context as _, Result};

use crate::config::Config;
use crate::ctl;
use crate::server::Server;
use crate::signals;
use crate::sockets::{self, SocketFile};

/// Only the user who runs the server may ask it.
const CTL_MODE: u32 = 0o600;

/// Serves until SIGTERM, SIGINT or SIGQUIT. Standard output is the URI of each export, a line each,
/// written when clients can connect. An error where the end was not a good one: a disk's last flush
/// failed, or something was stuck and is left behind, for the process to end without it.
pub fn run(config: &Config) -> Result<()> {
    for notice in config.notices() {
        tracing::warn!("{notice}");
    }
    // Before anything is started, so that no signal is missed.
    let (ends, end) = mpsc::channel();
    signals::forward(ends.clone()).context("cannot wait for signals")?;
    let ctl_listener = match &config.ctl {
        Some(path) => {
            let listener = sockets::bind_unix(path, CTL_MODE)
                .context("no control socket: name another as ctl, or \"none\"")?;
            Some((listener, SocketFile::new(path)))
        }
        None => None,
    };
    let mut server = Server::start_watched(config, &ends)?;
    let ctl_server = match ctl_listener {
        Some((listener, file)) => Some((ctl::serve(listener, Arc::new(server.control()))?, file)),
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
    server.shut_down()
}

fn print_uris(uris: &[String]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for uri in uris {
        writeln!(out, "{uri}")?;
    }
    out.flush()
}
