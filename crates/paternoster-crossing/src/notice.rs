//! Tells a thread that something which it shares with others has changed.
//!
//! ```text
//!   another thread                    the thread
//!     change                            given? ── yes ─▶ given := false, look at what is shared
//!     given := true                     wait
//!     was it false? ── yes ─▶ wake
//! ```
//!
//! The flag changes by swaps alone. Where a swap finds that it was given already, the thread has
//! not looked yet: it is still to take the notice, and will see this change too. Where it was not,
//! the thread is woken after the flag is set, and a wake-up before it waits is not lost.

use std::fmt;

use crate::bell::Wake;
use crate::sync::{AtomicBool, Ordering};

/// Whether a thread is to look at what it shares, and how it is woken.
pub struct Notice {
    given: AtomicBool,
    wake: Box<dyn Wake>,
}

impl Notice {
    /// None is given yet.
    pub fn new(wake: impl Wake + 'static) -> Self {
        Self { given: AtomicBool::new(false), wake: Box::new(wake) }
    }

    /// Gives notice of what has changed before. The thread is woken unless it is still to look.
    pub fn give(&self) {
        if !self.given.swap(true, Ordering::AcqRel) {
            self.wake.wake();
        }
    }

    /// Returns whether there is something to look at, which the thread then does.
    pub fn take(&self) -> bool {
        self.given.load(Ordering::Relaxed) && self.given.swap(false, Ordering::AcqRel)
    }
}

impl fmt::Debug for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notice").finish_non_exhaustive()
    }
}
