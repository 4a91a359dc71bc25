//! Leaves the server in good order for its planned restart, and comes back to it.
//!
//! ```text
//!   in use ─quiesce─▶ draining ─all is answered─▶ flushing ─FLUSH succeeds─▶ away ─resume─▶ in use
//!      ▲                 │                           │
//!      └─────────────────┴───────────────────────────┘ a connection is lost, or the FLUSH fails
//! ```
//!
//! Requests wait from the first step on. Nothing is unflushed when the connections end, so nothing
//! is in doubt when there are new ones, and the time of [`NbdOptions::reconnect`] begins with
//! `resume`.
//!
//! [`NbdOptions::reconnect`]: super::NbdOptions::reconnect

use paternoster::Instant;
use paternoster_nbd::Command;
use paternoster_nbd::client::{Answer, RemoteError};
use rustix::io::Errno;
use thiserror::Error;

use super::NbdBackend;
use super::link::Link;
use super::notices::Subject;
use super::outage::Outage;
use super::wire::errno;

/// Whether the server behind a volume may restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quiesced {
    /// It is in use.
    No,
    /// What it was asked is being answered and flushed.
    UnderWay,
    /// Everything is durable, and there is no connection: requests wait for `resume`.
    Yes,
    /// It is in use, as the last attempt failed.
    Failed(QuiesceError),
}

/// Why a volume cannot be quiesced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum QuiesceError {
    /// It is no export of another server.
    #[error("it is no export of another server")]
    NoServer,
    /// There is no connection on which to flush.
    #[error("its server is not connected")]
    NotConnected,
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
    Running,
    Draining,
    Flushing(Flush),
    Away { since: Instant },
    Failed(QuiesceError),
}

/// The FLUSH behind which the server is left.
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
        matches!(self, Self::Draining | Self::Flushing(_) | Self::Away { .. })
    }

    pub(super) fn is_away(self) -> bool {
        matches!(self, Self::Away { .. })
    }

    /// The FLUSH that is not answered.
    pub(super) fn flush(self) -> Option<Flush> {
        if let Self::Flushing(flush) = self { Some(flush) } else { None }
    }

    pub(super) fn shown(self) -> Quiesced {
        match self {
            Self::Running => Quiesced::No,
            Self::Draining | Self::Flushing(_) => Quiesced::UnderWay,
            Self::Away { .. } => Quiesced::Yes,
            Self::Failed(error) => Quiesced::Failed(error),
        }
    }
}

impl NbdBackend {
    /// Has requests wait, unless they do.
    pub(super) fn begin_quiesce(&mut self) -> Result<(), QuiesceError> {
        if self.quiesce.holds() {
            return Ok(());
        }
        let is_lost = self.outage.is_some() || self.changed.is_some();
        if is_lost || !self.is_connected() {
            return Err(QuiesceError::NotConnected);
        }
        self.quiesce = Stage::Draining;
        Ok(())
    }

    /// Flushes when everything that was sent is answered, and leaves where nothing is to be
    /// flushed.
    pub(super) fn go_on_quiescing(&mut self) {
        let is_busy = !self.sent.is_empty() || self.probe.is_some();
        if is_busy || !matches!(self.quiesce, Stage::Draining) {
            return;
        }
        if !self.doubt.has_unflushed() {
            return self.leave_server();
        }
        let open = |link: &Option<Link>| link.as_ref().is_some_and(Link::is_open);
        let Some(index) = self.links.iter().position(open) else { return };
        let cookie = self.next_cookie;
        self.next_cookie += 1;
        let link = self.links[index].as_mut().expect("it is open");
        if link.ask(cookie, Command::Flush).is_ok() {
            let (since, covers) = (self.now, self.doubt.covered());
            self.quiesce = Stage::Flushing(Flush { cookie, link: index, since, covers });
        }
    }

    /// Takes the answer to the FLUSH. Returns whether it is one.
    pub(super) fn handle_quiesce_flush(
        &mut self,
        cookie: u64,
        result: &Result<Answer, RemoteError>,
    ) -> bool {
        let Some(flush) = self.quiesce.flush().filter(|flush| flush.cookie == cookie) else {
            return false;
        };
        match result {
            Ok(_) => {
                self.doubt.handle_flush(flush.covers);
                self.leave_server();
            }
            Err(remote) => {
                // A later FLUSH may succeed without what this one has lost.
                self.doubt.raise();
                self.fail_quiesce(QuiesceError::Flush(errno(remote.error)));
                self.fail_doubtful_syncs();
            }
        }
        true
    }

    fn leave_server(&mut self) {
        self.quiesce = Stage::Away { since: self.now };
        self.leave_all();
        self.close_left();
        self.end_syncs(Ok(0));
        let text = format!(
            "{} is quiesced: everything is durable, and requests wait until it is resumed",
            self.options.uri
        );
        self.notices.info(Subject::Quiesced, text);
    }

    /// Gives up to leave the server, if that is under way.
    pub(super) fn fail_quiesce(&mut self, error: QuiesceError) {
        if self.quiesce.holds() && !self.quiesce.is_away() {
            self.quiesce = Stage::Failed(error);
            let text = format!("{} is not quiesced: {error}", self.options.uri);
            self.notices.warn(Subject::Quiesced, text);
        }
    }

    /// Has requests go on.
    pub(super) fn end_quiesce(&mut self) {
        self.fail_quiesce(QuiesceError::Resumed);
        if self.quiesce.is_away() {
            self.quiesce = Stage::Running;
            self.outage = Some(Outage::new(self.now));
            self.useful_since = None;
            self.dialer.want_first(true);
        }
    }
}
