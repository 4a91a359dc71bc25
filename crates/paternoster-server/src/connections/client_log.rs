//! The log lines about clients: when they connect, when they leave, and when they are cut off.

use std::fmt;
use std::time::Instant;

use paternoster::Nanos;
use paternoster_nbd::server::Fatal;
use rustix::io::Errno;

use super::Connections;
use super::connection::ConnectionId;

/// Why a connection ended; the first reason is the one.
#[derive(Clone, Copy, Debug)]
pub(super) enum Leave {
    /// The client said that it was done: `NBD_CMD_DISC`.
    Disconnected,
    /// The client closed its end without saying so.
    Closed,
    /// The socket failed.
    Broken(Errno),
    /// What it sent cannot be understood.
    CutOff(Fatal),
    /// It made no progress for so long, while others of its tenant waited for memory.
    Stalled(Nanos),
}

impl fmt::Display for Leave {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disconnected => f.write_str("it sent NBD_CMD_DISC"),
            Self::Closed => f.write_str("it closed the connection without NBD_CMD_DISC"),
            Self::Broken(errno) => errno.fmt(f),
            Self::CutOff(fatal) => fatal.fmt(f),
            Self::Stalled(span) => write!(
                f,
                "it made no progress for {} s while others of its tenant waited for memory",
                span.as_nanos() / 1_000_000_000
            ),
        }
    }
}

impl Connections {
    pub(super) fn log_connected(&mut self, id: ConnectionId) {
        self.log_line("a client has connected", id, None);
    }

    /// The connection is not counted any more.
    pub(super) fn log_left(&mut self, id: ConnectionId) {
        let leave = self.clients[id].leave;
        let kind = match leave {
            Some(Leave::CutOff(_) | Leave::Stalled(_)) => "a client was cut off",
            _ => "a client has left",
        };
        self.log_line(kind, id, leave);
    }

    /// Logs a line about the client; `kind` is its sentence, of which there is one a second.
    fn log_line(&mut self, kind: &'static str, id: ConnectionId, why: Option<Leave>) {
        let Some(line) = self.limits.admit(kind, Instant::now()) else { return };
        let client = &self.clients[id];
        let export = &self.exports[client.export];
        let tenant = &self.tenants[export.tenant];
        let on_disk: u32 = self.tenants.iter().map(|tenant| tenant.connections).sum();
        tracing::info!(
            disk = self.label.name,
            export = export.name,
            peer = client.peer.to_string(),
            why = why.map(|why| why.to_string()),
            tenant = tenant.path,
            of_tenant = tenant.connections,
            of_disk = on_disk,
            left_out = line.left_out,
            "{kind}"
        );
    }
}
