//! Whether a server ends by itself or is handed over, where both come at once.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Whether the server serves, ends, or has been handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Serving {
    Serves,
    Ends,
    HandedOver,
}

/// How long SIGTERM leaves all to the service manager after that was asked for.
const ARMED: Duration = Duration::from_secs(60);

/// Decides between a hand-over and an end that come at once.
#[derive(Clone, Debug)]
pub(crate) struct HandOver(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    serving: Mutex<Serving>,
    /// Until when SIGTERM leaves all to the service manager.
    armed_until: Mutex<Option<Instant>>,
    /// Where the server waits for another one.
    socket: Option<PathBuf>,
}

impl HandOver {
    /// That of a server which waits there for another one, if it does.
    pub(crate) fn new(socket: Option<PathBuf>) -> Self {
        let (serving, armed_until) = (Mutex::new(Serving::Serves), Mutex::default());
        Self(Arc::new(Shared { serving, armed_until, socket }))
    }

    /// Where the server waits for another one.
    pub(crate) fn socket(&self) -> Option<&Path> {
        self.0.socket.as_deref()
    }

    /// How it is with the server; nobody else decides while this is there.
    pub(super) fn serving(&self) -> MutexGuard<'_, Serving> {
        self.0.serving.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn armed_until(&self) -> MutexGuard<'_, Option<Instant>> {
        self.0.armed_until.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has SIGTERM leave all to the service manager, for a minute.
    pub(crate) fn arm(&self) {
        *self.armed_until() = Some(Instant::now() + ARMED);
    }

    /// For how long it still does.
    pub(crate) fn armed_for(&self) -> Option<Duration> {
        let until = (*self.armed_until())?;
        let left = until.saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(left)
    }

    /// The server ends by itself. Returns whether it does: not where another one serves already.
    pub(crate) fn forbid(&self) -> bool {
        let mut serving = self.serving();
        if *serving == Serving::HandedOver {
            return false;
        }
        *serving = Serving::Ends;
        true
    }
}
