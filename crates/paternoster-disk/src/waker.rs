//! Wakes a thread that waits in its ring.

use std::io;
use std::sync::Arc;

use rustix::event::{EventfdFlags, eventfd};

use crate::ring::Fd;

/// Wakes a thread from another one.
#[derive(Clone, Debug)]
pub struct Waker {
    event: Fd,
}

impl Waker {
    /// Makes a waker, for [`Owner::new`](crate::Owner::new) or for a ring of one's own.
    pub fn new() -> io::Result<Self> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { event: Arc::new(event) })
    }

    /// Wakes the thread; an owner then calls its front's [`Front::woken`](crate::Front::woken).
    pub fn wake(&self) {
        // Full means that a call is pending already.
        let _ = rustix::io::write(&*self.event, &1u64.to_ne_bytes());
    }

    /// Takes all wake-ups until now, before [`fd`](Self::fd) is polled again.
    pub fn clear(&self) {
        let _ = rustix::io::read(&*self.event, &mut [0; 8]);
    }

    /// Returns the descriptor that becomes readable, to be polled on a ring.
    pub fn fd(&self) -> &Fd {
        &self.event
    }
}
