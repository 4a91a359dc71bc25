//! The bell of an owner: whether it sleeps, and who wakes it.
//!
//! ```text
//!   submitter                         owner
//!     send                              asleep := true
//!     fence                             fence
//!     asleep? ── yes ─▶ wake            anything there? ── yes ─▶ goes on
//! ```
//!
//! Each writes, then reads what the other writes. Without the fences both reads could come before
//! both writes, and a batch would wait for an owner that waits. The word changes by swaps alone, so
//! that all of its changes are in one order: a submitter that is late with its wake-up for an
//! earlier sleep does not undo a later one unseen.

use crate::sync::{AtomicBool, AtomicU64, Ordering, fence};

/// Wakes a thread that waits. A wake-up before it waits is not lost: it then does not wait.
pub trait Wake: Send + Sync {
    /// Wakes it.
    fn wake(&self);
}

impl<W: Wake + ?Sized> Wake for std::sync::Arc<W> {
    fn wake(&self) {
        (**self).wake();
    }
}

/// Whether an owner sleeps, and who wakes it. Every submitter reads it with every batch, so it has
/// cache lines of its own: two, as processors fetch them in pairs.
#[repr(align(128))]
pub(crate) struct Bell {
    asleep: AtomicBool,
    /// Wake-ups that were sent.
    rung: AtomicU64,
    wake: Box<dyn Wake>,
}

impl Bell {
    pub(crate) fn new(wake: Box<dyn Wake>) -> Self {
        Self { asleep: AtomicBool::new(false), rung: AtomicU64::new(0), wake }
    }

    /// Wakes the owner if it sleeps. Call it after what it is to see. Returns whether it was woken.
    pub(crate) fn ring(&self) -> bool {
        fence(Ordering::SeqCst);
        let wakes = self.asleep.load(Ordering::Relaxed)
            // Of several that see it sleep one wakes it.
            && self.asleep.swap(false, Ordering::AcqRel);
        if wakes {
            self.rung.fetch_add(1, Ordering::Relaxed);
            self.wake.wake();
        }
        wakes
    }

    /// Says that the owner sleeps. It has to look once more for what it may have missed.
    pub(crate) fn fall_asleep(&self) {
        self.asleep.swap(true, Ordering::AcqRel);
        fence(Ordering::SeqCst);
    }

    /// Says that the owner is awake.
    pub(crate) fn awake(&self) {
        self.asleep.swap(false, Ordering::AcqRel);
    }

    /// How often the owner was woken.
    pub(crate) fn rung(&self) -> u64 {
        self.rung.load(Ordering::Relaxed)
    }
}
