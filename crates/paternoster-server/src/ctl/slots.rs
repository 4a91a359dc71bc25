//! The slots of connections to a control plane: who has to go where all are taken.
//!
//! ```text
//!   silent ──its request is read──▶ asked ──its answer is made──▶ answered ──▶ over
//!     │ goes first, the oldest        stays                    │     │ goes next, the oldest
//!                                                              └─▶ goes on ──▶ over
//!                                                                    │ goes last, the oldest
//! ```
//!
//! So connections that never ask, or never read what they are answered, keep nobody out.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::AbortHandle;

/// How far a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Stage {
    /// Its request has not come, or not all of its head.
    Silent,
    /// Its answer is being made.
    Asked,
    /// It is being sent its answer.
    Answered,
    /// It is being sent an answer that goes on for as long as it wants.
    GoesOn,
}

/// The stage of one connection, which its service moves on.
#[derive(Clone, Debug)]
pub(super) struct Progress(Arc<AtomicU8>);

impl Progress {
    pub(super) fn new() -> Self {
        Self(Arc::new(AtomicU8::new(Stage::Silent as u8)))
    }

    pub(super) fn set(&self, stage: Stage) {
        self.0.store(stage as u8, Ordering::Relaxed);
    }

    pub(super) fn is(&self, stage: Stage) -> bool {
        self.0.load(Ordering::Relaxed) == stage as u8
    }
}

/// The connections that there are, the oldest first; some may be over.
#[derive(Debug)]
pub(super) struct Slots {
    free: Arc<Semaphore>,
    count: u32,
    taken: Vec<(Progress, AbortHandle)>,
}

impl Slots {
    /// So many.
    pub(super) fn new(count: u32) -> Self {
        let free = Semaphore::new(usize::try_from(count).expect("a few"));
        Self { free: Arc::new(free), count, taken: Vec::new() }
    }

    /// Returns a free slot. Where there is none, the connection that may go is closed; where none
    /// may, one of them will be over soon.
    pub(super) async fn take(&mut self) -> OwnedSemaphorePermit {
        self.taken.retain(|(_, connection)| !connection.is_finished());
        if self.free.available_permits() == 0 {
            let oldest = |stage| self.taken.iter().position(|(progress, _)| progress.is(stage));
            let may_go = [Stage::Silent, Stage::Answered, Stage::GoesOn];
            if let Some(oldest) = may_go.into_iter().find_map(oldest) {
                self.taken.remove(oldest).1.abort();
            }
        }
        Arc::clone(&self.free).acquire_owned().await.expect("it is never closed")
    }

    /// Notes who has the slot that was taken last.
    pub(super) fn note(&mut self, progress: Progress, connection: AbortHandle) {
        self.taken.push((progress, connection));
    }

    /// Waits until all are free.
    pub(super) async fn all_free(&self) {
        let _ = self.free.acquire_many(self.count).await;
    }
}
