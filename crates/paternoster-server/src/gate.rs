//! Whether clients are accepted: it is opened and closed while the acceptor runs on its thread.
//!
//! ```text
//!   closed ──open──▶ open ──close──▶ closing ──no negotiation is left──▶ closed ──stop──▶ ended
//! ```
//!
//! New connections wait in the backlog of the socket while it is closed.

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use paternoster_disk::{Fd, Waker};

/// What the acceptor is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Accept.
    Open,
    /// Accept nobody, and let those enter who have been accepted.
    Close,
    /// End.
    Stop,
}

#[derive(Debug)]
struct State {
    order: Order,
    /// Whether nobody is on the way in.
    is_closed: bool,
}

/// The way to give an acceptor its orders.
#[derive(Clone, Debug)]
pub(crate) struct Gate {
    shared: Arc<(Mutex<State>, Condvar)>,
    waker: Waker,
}

impl Gate {
    /// A closed one.
    pub(crate) fn new() -> io::Result<Self> {
        let state = State { order: Order::Close, is_closed: true };
        Ok(Self { shared: Arc::new((Mutex::new(state), Condvar::new())), waker: Waker::new()? })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn give(&self, order: Order) {
        let mut state = self.state();
        if state.order != Order::Stop {
            *state = State { order, is_closed: false };
        }
        drop(state);
        self.waker.wake();
    }

    /// Accepts from now on.
    pub(crate) fn open(&self) {
        self.give(Order::Open);
    }

    /// Accepts nobody any more. Returns whether nobody is on the way in, for which it waits that
    /// long at most.
    pub(crate) fn close(&self, patience: Duration) -> bool {
        self.give(Order::Close);
        let (_, told) = &*self.shared;
        let waited = told.wait_timeout_while(self.state(), patience, |state| {
            !state.is_closed && state.order == Order::Close
        });
        waited.unwrap_or_else(PoisonError::into_inner).0.is_closed
    }

    /// Ends the acceptor.
    pub(crate) fn stop(&self) {
        self.give(Order::Stop);
    }

    /// What the acceptor is to do.
    pub(crate) fn order(&self) -> Order {
        self.state().order
    }

    /// Nobody is on the way in.
    pub(crate) fn note_closed(&self) {
        let mut state = self.state();
        if state.order == Order::Close && !state.is_closed {
            state.is_closed = true;
            self.shared.1.notify_all();
        }
    }

    /// Becomes readable when there is another order.
    pub(crate) fn fd(&self) -> &Fd {
        self.waker.fd()
    }

    /// Says that the acceptor is awake.
    pub(crate) fn awake(&self) {
        self.waker.clear();
    }
}
