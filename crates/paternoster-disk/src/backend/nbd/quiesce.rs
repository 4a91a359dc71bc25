//! Disconnects from the server for its planned restart, and connects again.
//!
//! ```text
//!   in use ─quiesce─▶ draining ─answered─▶ flushing ─FLUSH succeeds─▶ quiesced ─resume─▶ in use
//!      ▲                 │                    │
//!      └─────────────────┴────────────────────┘ a connection is lost, or the FLUSH fails
//! ```
//!
//! Requests wait from the first step on. Nothing is unflushed when the connections end, so nothing
//! is in doubt when there are new ones, and the time of [`NbdOptions::reconnect`] begins with
//! `resume`. A server that cannot flush has promised nothing, and is not asked to.
//!
//! [`NbdOptions::reconnect`]: super::NbdOptions::reconnect

use paternoster::Instant;
use paternoster_nbd::client::{Answer, RemoteError};
use paternoster_nbd::{Command, NbdError};
use rustix::io::Errno;
use thiserror::Error;

use super::link::Link;
use super::notices::Subject;
use super::outage::Outage;
use super::wire::errno;
use super::{FarStats, NbdBackend};

/// Whether the server behind a volume may restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quiesced {
    /// It is in use.
    No,
    /// Requests in flight are being answered and flushed.
    UnderWay,
    /// There is no connection, and requests wait for `resume`.
    Yes,
    /// It is in use, as the last attempt failed.
    Failed(QuiesceError),
}

/// Why a volume cannot be quiesced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum QuiesceError {
    /// It has no server.
    #[error("it is not backed by a remote NBD server")]
    NoServer,
    /// There is no connection on which to flush.
    #[error("its server is not connected")]
    NotConnected,
    /// An earlier loss may have taken writes that a FLUSH now would call durable.
    #[error("writes that were not flushed may be lost already: reopen it first")]
    InDoubt,
    /// The connection ended before everything was durable.
    #[error("a connection to its server was lost before everything was durable")]
    Lost,
    /// The server failed to flush.
    #[error("its server failed to flush: {0}")]
    Flush(Errno),
    /// It was resumed, or is removed, or the server ends.
    #[error("it was resumed before everything was durable")]
    Resumed,
}

/// How far that is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stage {
    InUse,
    Draining,
    Flushing,
    Quiesced { since: Instant },
    Failed(QuiesceError),
}

/// The FLUSH after which the server is disconnected. Its error is told also when the attempt has
/// been given up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flush {
    cookie: u64,
    pub(super) link: usize,
    pub(super) since: Instant,
    /// What it covers.
    covers: u64,
}

impl Stage {
    /// Whether requests wait.
    pub(super) fn holds(self) -> bool {
        matches!(self, Self::Draining | Self::Flushing | Self::Quiesced { .. })
    }

    pub(super) fn is_quiesced(self) -> bool {
        matches!(self, Self::Quiesced { .. })
    }

    pub(super) fn shown(self) -> Quiesced {
        match self {
            Self::InUse => Quiesced::No,
            Self::Draining | Self::Flushing => Quiesced::UnderWay,
            Self::Quiesced { .. } => Quiesced::Yes,
            Self::Failed(error) => Quiesced::Failed(error),
        }
    }
}

impl FarStats {
    /// Returns whether the server is disconnected for a restart.
    pub fn is_quiesced(&self) -> bool {
        self.quiesced == Quiesced::Yes
    }
}

impl NbdBackend {
    /// Has requests wait, unless they do.
    pub(super) fn begin_quiesce(&mut self) -> Result<(), QuiesceError> {
        match () {
            () if self.quiesce.holds() => return Ok(()),
            () if self.doubt.is_raised() => return Err(QuiesceError::InDoubt),
            () if self.changed.is_some() || !self.may_ask() => {
                return Err(QuiesceError::NotConnected);
            }
            () => self.quiesce = Stage::Draining,
        }
        Ok(())
    }

    /// Flushes when everything that was sent is answered, and disconnects where nothing is to be
    /// flushed.
    pub(super) fn go_on_quiescing(&mut self) {
        let is_busy = !self.sent.is_empty() || self.probe.is_some() || self.flush.is_some();
        if is_busy || !matches!(self.quiesce, Stage::Draining) {
            return;
        }
        if !self.far.flushes() || self.doubt.is_durable() {
            return self.disconnect();
        }
        let open = |link: &Option<Link>| link.as_ref().is_some_and(Link::is_open);
        let Some(index) = self.links.iter().position(open) else { return };
        let cookie = self.next_cookie;
        self.next_cookie += 1;
        let link = self.links[index].as_mut().expect("it is open");
        if link.ask(cookie, Command::Flush).is_ok() {
            let (since, covers) = (self.now, self.doubt.covered());
            self.flush = Some(Flush { cookie, link: index, since, covers });
            self.quiesce = Stage::Flushing;
        }
    }

    /// Takes the answer to the FLUSH. Returns whether it is one.
    pub(super) fn handle_quiesce_flush(
        &mut self,
        cookie: u64,
        result: &Result<Answer, RemoteError>,
    ) -> bool {
        let Some(flush) = self.flush.take_if(|flush| flush.cookie == cookie) else {
            return false;
        };
        match result {
            Ok(_) => {
                self.doubt.handle_flush(flush.covers);
                if matches!(self.quiesce, Stage::Flushing) {
                    self.disconnect();
                }
            }
            // It was not carried out, and the attempt has failed by that.
            Err(remote) if remote.error == NbdError::Shutdown => {}
            Err(remote) => {
                // A later FLUSH may succeed without what this one has lost.
                self.doubt.raise();
                self.fail_quiesce(QuiesceError::Flush(errno(remote.error)));
                self.fail_doubtful_syncs();
            }
        }
        true
    }

    fn disconnect(&mut self) {
        self.quiesce = Stage::Quiesced { since: self.now };
        self.outage = None;
        self.leave_all();
        self.close_left();
        self.end_syncs(Ok(0));
        let uri = &self.options.uri;
        let text = format!("{uri} is quiesced: requests wait until it is resumed");
        self.notices.info(Subject::Quiesced, text);
    }

    /// Gives the attempt up, if one is under way.
    pub(super) fn fail_quiesce(&mut self, error: QuiesceError) {
        if self.quiesce.holds() && !self.quiesce.is_quiesced() {
            self.quiesce = Stage::Failed(error);
            let text = format!("{} is not quiesced: {error}", self.options.uri);
            self.notices.warn(Subject::Quiesced, text);
        }
    }

    /// Has requests go on.
    pub(super) fn end_quiesce(&mut self) {
        self.fail_quiesce(QuiesceError::Resumed);
        if self.quiesce.is_quiesced() {
            self.quiesce = Stage::InUse;
            self.outage = Some(Outage::new(self.now));
            self.useful_since = None;
            self.dialer.want_first(true);
        }
    }
}
