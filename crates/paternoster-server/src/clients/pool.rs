//! The memory of a tenant of a disk, as all threads that serve its clients share it.
//!
//! ```text
//!   thread 0   held ≤ leased ─┐             ┌─ credit: what all threads have leased
//!   thread 1   held ≤ leased ─┼─ lock ─▶ account
//!   …                         ┘             └─ queues: claims that wait, in order of arrival
//!                                                │ room for one: its thread gets a notice
//! ```
//!
//! A tenant has one account, under a lock. A thread leases from it what its connections need, for
//! small amounts a part at a time, so that most commands take from the part and no lock is taken.
//! Twice a round, before it takes commands in and at the end, the thread gives back what its
//! connections do not hold. So between rounds every thread has leased exactly what is held, and an
//! idle thread keeps nothing from another. A thread that serves all clients of the disk keeps its
//! part while none of them waits: there is nobody else to take it.
//!
//! - **Bound.** What is held is leased, and what is leased is in the account. Only what a
//!   connection holds before it can be counted (replies that grew) is counted afterwards: before
//!   the thread leases anything else, and where others share the account at the end of the round.
//! - **Order.** Claims for which there is no room wait in the account, whichever thread they are
//!   of, small and large ones in a queue each (`account.rs`). Nobody passes them in their queue but
//!   by a part that was leased before they came, in the rest of that round. What a thread gives
//!   back is for the first in the queue, not its own to take again.
//! - **No lost wake-up.** Whoever changes the account calls, before it unlocks it, every claim for
//!   which there is room then; so no claim waits for credit that is there. The thread of a called
//!   claim gets a notice after the call. A thread takes notices twice a round and then looks under
//!   the lock; a wake-up between its look and its wait ends the wait (the crossing's `Notice`,
//!   which a model checker checks). With the first claim that waits every other thread gets a
//!   notice too, so that it watches clients that hold memory without progress (`stalled.rs`).
//!
//! Rejected: an account at the owner of the disk, asked by messages, as parts and shortages then
//! cross late and each needs a state on both sides. Amounts and a bit for those that wait in one
//! atomic word: it saves one of the two atomic operations of a lock, twice or three times a round,
//! and the queues need the lock all the same. Parts that are kept between rounds: each shortage
//! then has to call them in from threads that sleep.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use paternoster_crossing::Notice;

use super::account::{Account, Grant};
use super::connection::ConnectionId;
use super::credit::{Amount, Credit, Held};

/// Bytes that are leased at a time for small amounts.
const PART: Amount = Amount::Small(256 << 10);

/// Wakes the threads that serve a disk's clients; nobody where one is alone.
#[derive(Debug, Default)]
pub(crate) struct Notices(Vec<Notice>);

/// The memory of one tenant.
#[derive(Debug)]
pub(crate) struct Pool {
    notices: Arc<Notices>,
    shared: Mutex<Shared>,
}

/// What is shared of it.
#[derive(Debug)]
struct Shared {
    account: Account<Claim>,
    /// Claims that were called, until their threads take them, with what was leased for each.
    called: Vec<(Claim, Amount)>,
}

/// A connection that needs credit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Claim {
    pub(super) thread: usize,
    pub(super) connection: ConnectionId,
}

impl Notices {
    /// One for each thread, in their order.
    pub(crate) fn new(notices: Vec<Notice>) -> Arc<Self> {
        Arc::new(Self(notices))
    }

    /// Returns whether the thread is to look at its tenants: a claim of it was called, or one of
    /// another thread waits.
    pub(super) fn take(&self, thread: usize) -> bool {
        self.0.get(thread).is_some_and(Notice::take)
    }

    /// One thread gives another notice.
    fn give(&self, thread: usize, other: usize) {
        if thread != other {
            self.0[other].give();
        }
    }

    /// One thread gives all others notice.
    fn give_all(&self, thread: usize) {
        (0..self.0.len()).for_each(|other| self.give(thread, other));
    }
}

impl Pool {
    /// Of a tenant that may hold so many bytes, whose clients these threads serve.
    pub(crate) fn new(bytes: usize, notices: &Arc<Notices>) -> Arc<Self> {
        let shared = Shared { account: Account::new(Credit::new(bytes)), called: Vec::new() };
        Arc::new(Self { notices: Arc::clone(notices), shared: Mutex::new(shared) })
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        // A thread that panics ends the server; until then the others go on.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What one thread has of a tenant's memory.
#[derive(Debug)]
pub(super) struct Lease {
    pool: Arc<Pool>,
    thread: usize,
    /// By connections of this thread.
    held: Held,
    /// What the account counts for this thread.
    leased: Held,
    /// Connections of this thread that wait.
    waiting: usize,
    /// Those of them that were called, with what is held for each.
    called: VecDeque<(ConnectionId, Amount)>,
}

impl Lease {
    /// That of a thread, which has leased nothing yet.
    pub(super) fn new(pool: Arc<Pool>, thread: usize) -> Self {
        Self {
            pool,
            thread,
            held: Held::default(),
            leased: Held::default(),
            waiting: 0,
            called: VecDeque::new(),
        }
    }

    /// Takes the amount for a connection, or has the connection wait in order of arrival. It is
    /// called once the amount has been taken for it.
    pub(super) fn take_or_wait(&mut self, connection: ConnectionId, amount: Amount) -> Grant {
        if self.is_in_part(amount) {
            self.held.take(amount);
            return Grant::Taken;
        }
        let claim = self.claim(connection);
        // It may be called at once, behind others for which the update makes room.
        self.waiting += 1;
        let leased = self.update(|account| {
            let is_small = matches!(amount, Amount::Small(_)) && amount.bytes() < PART.bytes();
            let wished = if is_small && account.has_spare(PART) { PART } else { amount };
            (account.take_or_wait(claim, wished) == Grant::Taken).then_some(wished)
        });
        let Some(leased) = leased else { return Grant::Waits };
        self.waiting -= 1;
        self.leased.take(leased);
        self.held.take(amount);
        Grant::Taken
    }

    /// Returns whether the amount fits that nobody waits for; it is then leased.
    pub(super) fn has_spare(&mut self, amount: Amount) -> bool {
        if self.is_in_part(amount) {
            return true;
        }
        let has_spare = self.update(|account| {
            let has_spare = account.has_spare(amount);
            if has_spare {
                account.take(amount);
            }
            has_spare
        });
        if has_spare {
            self.leased.take(amount);
        }
        has_spare
    }

    /// Returns whether a small amount fits into what is leased already.
    fn is_in_part(&self, amount: Amount) -> bool {
        matches!(amount, Amount::Small(bytes) if self.held.small + bytes <= self.leased.small)
    }

    /// Takes an amount, whether it fits or not: a connection holds it already.
    pub(super) fn take(&mut self, amount: Amount) {
        self.held.take(amount);
    }

    /// Gives back an amount that was taken.
    pub(super) fn give_back(&mut self, amount: Amount) {
        self.held.give_back(amount);
    }

    /// Gives back to the account what is not held, and takes from it what is held beyond the lease.
    pub(super) fn settle(&mut self) {
        if self.held != self.leased && self.may_be_wanted() {
            self.look();
        }
    }

    /// Returns the next connection that was called, with what has been taken for it.
    pub(super) fn next_called(&mut self) -> Option<(ConnectionId, Amount)> {
        self.called.pop_front()
    }

    /// Returns whether anybody but this thread's own commands could use what is not held.
    fn may_be_wanted(&self) -> bool {
        self.anyone_waits() || !self.pool.notices.0.is_empty()
    }

    /// Looks for connections that were called by other threads.
    pub(super) fn look(&mut self) {
        self.update(|_| ());
    }

    /// Forgets a connection that waits, and is gone.
    pub(super) fn forget(&mut self, connection: ConnectionId) {
        let claim = self.claim(connection);
        if self.update(|account| account.forget(claim)) {
            self.waiting -= 1;
        } else {
            let place = self.called.iter().position(|&(other, _)| other == connection);
            let called = place.and_then(|place| self.called.remove(place));
            let (_, amount) = called.expect("who does not wait was called");
            self.held.give_back(amount);
        }
    }

    /// Returns whether a connection of this thread waits.
    pub(super) fn anyone_waits(&self) -> bool {
        self.waiting > 0
    }

    /// Returns all that wait, on whichever thread.
    pub(super) fn claims(&self) -> Vec<Claim> {
        self.pool.lock().account.waiting().collect()
    }

    /// The claim of a connection of this thread.
    pub(super) fn claim(&self, connection: ConnectionId) -> Claim {
        Claim { thread: self.thread, connection }
    }

    /// Has the account count what is held, changes it, and calls those for whom there is room then.
    fn update<R>(&mut self, change: impl FnOnce(&mut Account<Claim>) -> R) -> R {
        let Self { pool, thread, held, leased, waiting, called: own } = self;
        let mut shared = pool.lock();
        let Shared { account, called } = &mut *shared;
        let had_claims = account.anyone_waits();
        account.replace(*leased, *held);
        *leased = *held;
        let result = change(account);
        if account.anyone_waits() {
            while let Some((claim, amount)) = account.call_next() {
                called.push((claim, amount));
                pool.notices.give(*thread, claim.thread);
            }
            if !had_claims && account.anyone_waits() {
                pool.notices.give_all(*thread);
            }
        }
        for (claim, amount) in called.extract_if(.., |(claim, _)| claim.thread == *thread) {
            *waiting -= 1;
            leased.take(amount);
            held.take(amount);
            own.push_back((claim.connection, amount));
        }
        result
    }

    /// Returns whether nothing is held, and nobody waits.
    pub(super) fn is_unused(&self) -> bool {
        self.held.is_nothing() && self.waiting == 0
    }

    /// Asserts that these amounts are all that is held and leased, that so many connections wait,
    /// and that no claim waits for credit that is there.
    #[cfg(test)]
    pub(super) fn check(&self, amounts: impl Iterator<Item = Amount>, waiting: usize) {
        let mut held = Held::default();
        amounts.for_each(|amount| held.take(amount));
        assert_eq!(self.held, held, "what is counted is what is held");
        assert!(self.leased == held || !self.may_be_wanted(), "nothing is kept from others");
        assert!(
            self.pool.lock().account.has_called_all(),
            "somebody waits for credit that is there"
        );
        assert_eq!((self.waiting, self.called.len()), (waiting, 0), "who waits is called once");
    }
}

#[cfg(test)]
#[path = "pool_tests.rs"]
mod tests;
