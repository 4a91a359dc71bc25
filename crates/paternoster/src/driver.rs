//! The law of the elevator in code: an event, or several arrivals, then dispatch, then the next
//! timeout.
//!
//! ```text
//!   submit, …  ──▶ ┌──────────┐
//!   complete   ──▶ │  Driver  │ ──▶ dispatch: start(request), until nothing may start
//!   timeout    ──▶ │          │ ──▶ poll_timeout
//!                  └────┬─────┘
//!                       └ bios that got `Later`, in order of arrival
//! ```

use std::collections::VecDeque;

use crate::administration::Administration;
use crate::arena::RequestId;
use crate::elevator::{Completed, Elevator, Submitted};
use crate::plug::{Batch, Chain};
use crate::request::{Bio, UserDataList};
use crate::scheduler::Scheduler;
use crate::time::Instant;
use crate::trace::MergeKind;

/// What became of a bio that was given to a [`Driver`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Arrival {
    /// A request was made of it.
    Queued(RequestId),
    /// It is part of this request.
    Merged {
        /// The request.
        into: RequestId,
        /// At which of its ends.
        kind: MergeKind,
    },
    /// It waits in the driver until it may enter.
    Waiting,
}

/// Drives an elevator by its law ([`Elevator`]), so that a program that embeds it does not have to
/// keep the law itself.
///
/// After each event ([`submit`](Self::submit), [`complete`](Self::complete),
/// [`requeue`](Self::requeue), [`handle_timeout`](Self::handle_timeout)) call
/// [`dispatch`](Self::dispatch), which has every request started that may start, and then
/// [`poll_timeout`](Self::poll_timeout), which says when to come back at the latest. A bio that is
/// turned away ([`Later`](Submitted::Later)) waits in the driver, which submits it again when the
/// elevator asks for that.
///
/// Several bios, each with its own time, and changes of the elevator may come before one dispatch,
/// which then chooses among all of them: a program that hears of many arrivals at once, as a server
/// does when it has looked at its sockets, has them all enter first. (So does Linux with the bios
/// of a plug.) A completion is followed by dispatch before anything else: where a client asks again
/// as soon as it is answered, dispatch, then submit, then dispatch again. So is a timeout. An I/O
/// context that ends with a completion exits before that dispatch. Debug builds panic where a
/// dispatch was left out.
///
/// ```
/// use paternoster::{
///     AnyScheduler, Bio, Device, Driver, Elevator, Instant, IoPrio, Nanos, NoTrace, SchedulerKind,
///     Sector, SectorCount,
/// };
///
/// let scheduler = AnyScheduler::new(SchedulerKind::Bfq, NoTrace);
/// let mut now = Instant::START;
/// let mut driver = Driver::new(Elevator::new(scheduler, Device::solid_state(1), now));
/// let ioc = driver.administer(|elevator| {
///     elevator.add_io_context(now, IoPrio::default(), elevator.groups().root())
/// });
/// driver.submit(now, Bio::read(ioc, Sector(8), SectorCount(8)).with_user_data(1));
/// driver.submit(now, Bio::read(ioc, Sector(0), SectorCount(8)).with_user_data(2));
/// let mut started = vec![];
/// driver.dispatch(now, |_, rq| started.push(rq));
/// assert_eq!(driver.elevator().request(started[0]).user_data(), [1, 2], "they have merged");
///
/// now = now + Nanos::from_micros(80);
/// assert_eq!(driver.complete(now, started[0]).as_slice(), [1, 2]);
/// driver.dispatch(now, |_, rq| unreachable!("{rq:?}: nothing else waits"));
/// assert!(driver.poll_timeout().is_some(), "BFQ idles for the reader's next request");
/// ```
#[derive(Debug)]
pub struct Driver<S> {
    elevator: Elevator<S>,
    /// Bios, and chains of them, that were turned away, in order of arrival.
    turned_away: VecDeque<Chain>,
    /// Those of them that may be submitted again.
    called: VecDeque<Chain>,
    owed: Owed,
}

/// What the caller of the driver has to do before the next event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owed {
    Nothing,
    /// It has to dispatch; more bios and changes may come before.
    Dispatch,
    /// It has to dispatch, or to go on dispatching, before the next bio.
    DispatchFirst,
}

impl<S: Scheduler> Driver<S> {
    /// Makes a driver of that elevator.
    pub fn new(elevator: Elevator<S>) -> Self {
        let (turned_away, called) = (VecDeque::new(), VecDeque::new());
        Self { elevator, turned_away, called, owed: Owed::Nothing }
    }

    /// Submits a bio. The driver keeps it where it may not enter yet.
    ///
    /// # Panics
    ///
    /// As [`Elevator::submit`]; in debug builds, too, without a dispatch after a completion.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn submit(&mut self, now: Instant, bio: Bio) -> Arrival {
        let owes = self.owed == Owed::DispatchFirst;
        debug_assert!(!owes, "a completion is followed by dispatch, before the next bio");
        self.owe(Owed::Dispatch);
        self.enter(now, bio)
    }

    /// Submits what a plug held of this device. The driver keeps chains that may not enter yet.
    ///
    /// # Panics
    ///
    /// As [`submit`](Self::submit).
    pub fn submit_batch(&mut self, now: Instant, batch: Batch) {
        let owes = self.owed == Owed::DispatchFirst;
        debug_assert!(!owes, "a completion is followed by dispatch, before the next bio");
        self.owe(Owed::Dispatch);
        let Batch { chains, reason, age } = batch;
        self.elevator.unplugged(now, chains.len(), reason, age);
        for chain in chains {
            self.enter_chain(now, chain);
        }
    }

    /// Completes a request. Returns the user data of its bios in the order in which they merged.
    /// The next dispatch may submit bios that waited here.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn complete(&mut self, now: Instant, rq: RequestId) -> UserDataList {
        self.event();
        let Completed { user_data, wake_waiters } = self.elevator.complete(now, rq);
        if wake_waiters {
            self.called.append(&mut self.turned_away);
        }
        user_data
    }

    /// Requeues a request that the device could not take ([`Elevator::requeue`]).
    pub fn requeue(&mut self, now: Instant, rq: RequestId) {
        self.event();
        self.elevator.requeue(now, rq);
    }

    /// Handles the timeout that [`poll_timeout`](Self::poll_timeout) named.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.event();
        self.elevator.handle_timeout(now);
    }

    /// Changes the elevator: groups, weights, I/O contexts, tunables, bounds, or the scheduler. A
    /// dispatch follows.
    pub fn administer<R>(&mut self, change: impl FnOnce(&mut Administration<'_, S>) -> R) -> R {
        self.owe_dispatch();
        change(&mut Administration::new(&mut self.elevator))
    }

    /// Has `start` begin every request that is dispatched now. Then bios that may be submitted
    /// again are, one after the other, each followed by what is dispatched because of it.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn dispatch(&mut self, now: Instant, mut start: impl FnMut(&Elevator<S>, RequestId)) {
        while let Some(rq) = self.dispatch_next(now) {
            start(&self.elevator, rq);
        }
    }

    /// Does the same a request at a time: the caller starts each that this returns, and calls it
    /// until it returns none. Debug builds panic if it leaves that out.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub fn dispatch_next(&mut self, now: Instant) -> Option<RequestId> {
        self.owe(Owed::DispatchFirst);
        loop {
            if let Some(rq) = self.elevator.dispatch(now) {
                return Some(rq);
            }
            let Some(chain) = self.called.pop_front() else { break };
            self.enter_chain(now, chain);
        }
        self.owe(Owed::Nothing);
        None
    }

    /// When [`handle_timeout`](Self::handle_timeout) wants to be called, if nothing else happens
    /// before. The moment may have passed already; then call it at once.
    pub fn poll_timeout(&self) -> Option<Instant> {
        debug_assert!(self.owed == Owed::Nothing, "an event is followed by dispatch");
        self.elevator.poll_timeout()
    }

    /// Drops all requests and bios that are not in flight. Returns the user data of the bios; those
    /// that waited here come last. A dispatch follows.
    pub fn cancel_queued(&mut self, now: Instant) -> Vec<u64> {
        self.owe_dispatch();
        let queued = self.elevator.cancel_queued(now).into_iter();
        let queued = queued.flat_map(|completed| completed.user_data);
        let outside = self.called.drain(..).chain(self.turned_away.drain(..));
        let outside = outside.flat_map(Chain::into_bios);
        queued.chain(outside.map(|bio| bio.user_data)).collect()
    }

    /// Returns the bios that were turned away and wait here, in order of arrival.
    pub fn turned_away(&self) -> impl Iterator<Item = &Bio> {
        self.called.iter().chain(&self.turned_away).flat_map(Chain::bios)
    }

    /// The elevator, for looking only.
    pub fn elevator(&self) -> &Elevator<S> {
        &self.elevator
    }

    /// The sink of all events.
    pub fn trace(&mut self) -> &mut S::Trace {
        self.elevator.trace()
    }

    /// Asserts all invariants by walking over everything.
    ///
    /// # Panics
    ///
    /// As [`Elevator::check`].
    pub fn check(&mut self) {
        self.elevator.check();
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn enter(&mut self, now: Instant, bio: Bio) -> Arrival {
        match self.elevator.submit(now, bio) {
            Submitted::Queued(rq) => Arrival::Queued(rq),
            Submitted::Merged { into, kind } => Arrival::Merged { into, kind },
            Submitted::Later(bio) => {
                self.turned_away.push_back(bio.into());
                Arrival::Waiting
            }
        }
    }

    // Out of the way of single bios.
    #[inline(never)]
    fn enter_chain(&mut self, now: Instant, chain: Chain) {
        if let Err(chain) = self.elevator.submit_chain(now, chain) {
            self.turned_away.push_back(chain);
        }
    }

    /// Notes a change after which dispatch has to come, perhaps after more changes and bios.
    fn owe_dispatch(&mut self) {
        if self.owed == Owed::Nothing {
            self.owe(Owed::Dispatch);
        }
    }

    /// Notes an event after which dispatch has to come first.
    fn event(&mut self) {
        debug_assert!(self.owed == Owed::Nothing, "an event is followed by dispatch");
        self.owe(Owed::DispatchFirst);
    }

    /// Notes what the caller has to do, where that is asserted.
    fn owe(&mut self, owed: Owed) {
        if cfg!(debug_assertions) {
            self.owed = owed;
        }
    }
}
