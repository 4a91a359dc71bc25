//! A scheduler that a thread of its own drives in turns, as the server's owner of a disk does.
//!
//! ```text
//!   something is due ──▶ all that the device has completed, each followed by dispatch
//!                        the scheduler's timer, followed by dispatch
//!                        all that has come from tasks, then one dispatch
//! ```
//!
//! A turn itself takes no time. A thread that is stalled begins its next turn later.

use paternoster::Instant;
use paternoster::scheduler::Scheduler;
use paternoster_model::{Model, Pauses};

use super::Simulation;
use super::setup::Driven;
use super::workload::Workload;

/// The thread.
#[derive(Debug)]
pub(super) struct Turns {
    /// When it is stalled.
    stalls: Option<Pauses>,
    dispatch: Dispatch,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dispatch {
    AtOnce,
    /// At the end of the turn, if anything has come.
    AtEnd,
    /// At the end of the turn.
    Owed,
}

impl Turns {
    /// The thread, if one drives the scheduler.
    pub(super) fn new(driven: &Driven) -> Option<Self> {
        let Driven::InTurns { stalls } = driven else { return None };
        Some(Self { stalls: stalls.clone(), dispatch: Dispatch::AtOnce })
    }

    /// The first moment from `at` on at which the thread is not stalled.
    pub(super) fn free_at(&mut self, at: Instant) -> Instant {
        self.stalls.as_mut().map_or(at, |stalls| stalls.free_at(at))
    }

    /// Whether a dispatch is to come at the end of the turn; notes that it is wanted.
    pub(super) fn puts_off_dispatch(&mut self) -> bool {
        if self.dispatch == Dispatch::AtEnd {
            self.dispatch = Dispatch::Owed;
        }
        self.dispatch == Dispatch::Owed
    }
}

impl<W: Workload, M: Model, S: Scheduler> Simulation<W, M, S> {
    /// A turn of the thread that drives the scheduler.
    pub(super) fn turn(&mut self) {
        self.device_is_due();
        if self.stack.driver.poll_timeout().is_some_and(|at| at <= self.now) {
            self.stack.driver.handle_timeout(self.now);
            self.dispatch();
        }
        self.set_dispatch(Dispatch::AtEnd);
        loop {
            let due = self.agenda.take_due(self.now);
            if due.is_empty() {
                break;
            }
            for due in due {
                self.handle(due);
            }
        }
        if self.set_dispatch(Dispatch::AtOnce) == Some(Dispatch::Owed) {
            self.dispatch();
        }
    }

    /// Says when dispatch is; what it was before.
    fn set_dispatch(&mut self, dispatch: Dispatch) -> Option<Dispatch> {
        let turns = self.turns.as_mut()?;
        Some(std::mem::replace(&mut turns.dispatch, dispatch))
    }
}
