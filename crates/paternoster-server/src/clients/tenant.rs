//! A tenant as one thread serves it: its connections, and the credit that they hold.
//!
//! A group above tenants that has no export itself is a tenant without clients.

use paternoster_nbd::Command;

use super::account::{Account, Grant};
use super::connection::ConnectionId;
use super::credit::{Amount, Credit};
use super::lease::{Lease, Shortage};
use super::outside::HeldBack;

/// Bytes that a command holds beside its data: its pieces, of which there are a few at a time, and
/// its places in the tables.
const COMMAND_COST: usize = 4096;

/// What there has to be room for before a client is listened to: a command without data, or the
/// refusals of a few illegal ones.
pub(super) const LEAST: Amount = Amount::Small(COMMAND_COST);

/// What a command that moves no data of a client's may hold in buffers of its pieces.
const PIECES_COST: usize = 4 * (1280 << 10);

/// A tenant on one disk, as far as one thread serves it.
#[derive(Debug)]
pub(super) struct Tenant {
    /// The number of its connections now.
    pub(super) connections: u32,
    /// Those of them with a send in flight.
    pub(super) sending: u32,
    /// What was told last of what holds its commands back.
    pub(super) told: HeldBack,
    /// Whether that may be something else now.
    pub(super) may_tell: bool,
    /// Whether something of its credit is to be said to the owner of the disk, where that deals it.
    pub(super) to_settle: bool,
    credit: Share,
}

/// How much of a tenant's credit a thread has.
#[derive(Debug)]
enum Share {
    /// All of it: no other thread serves the tenant.
    All(Account<ConnectionId>),
    /// A part, which the owner of the disk deals out.
    Part(Lease),
}

impl Tenant {
    /// `memory` is how many bytes it may hold, on all of so many threads.
    pub(super) fn new(memory: usize, threads: usize) -> Self {
        let credit = match threads {
            1 => Share::All(Account::new(Credit::new(memory))),
            _ => Share::Part(Lease::new(memory / 8 / threads)),
        };
        Self {
            connections: 0,
            sending: 0,
            told: HeldBack::default(),
            may_tell: false,
            to_settle: false,
            credit,
        }
    }

    /// Takes so much for a connection, behind those that wait. If that does not fit now, the
    /// connection waits, and is called when it has been taken.
    pub(super) fn take_or_wait(&mut self, id: ConnectionId, amount: Amount) -> Grant {
        match &mut self.credit {
            Share::All(account) => account.take_or_wait(id, amount),
            Share::Part(lease) => lease.take_or_wait(id, amount),
        }
    }

    /// Returns whether so much fits that nobody waits for.
    pub(super) fn has_spare(&mut self, amount: Amount) -> bool {
        match &mut self.credit {
            Share::All(account) => account.has_spare(amount),
            Share::Part(lease) => lease.has_spare(amount),
        }
    }

    /// Takes credit for the next connection for which there is enough now. Returns both.
    pub(super) fn call_next(&mut self) -> Option<(ConnectionId, Amount)> {
        match &mut self.credit {
            Share::All(account) => account.call_next(),
            Share::Part(lease) => lease.call_next(),
        }
    }

    /// Removes a connection that is gone from those that wait.
    pub(super) fn forget(&mut self, id: ConnectionId) {
        match &mut self.credit {
            Share::All(account) => account.forget(id),
            Share::Part(lease) => lease.forget(id),
        }
    }

    /// Returns the connections that wait.
    pub(super) fn waiting(&self) -> Vec<ConnectionId> {
        match &self.credit {
            Share::All(account) => account.waiting().collect(),
            Share::Part(lease) => lease.waiting().collect(),
        }
    }

    /// Returns whether a connection waits.
    pub(super) fn anyone_waits(&self) -> bool {
        match &self.credit {
            Share::All(account) => account.waiting().next().is_some(),
            Share::Part(lease) => lease.waiting().next().is_some(),
        }
    }

    /// Returns whether those that wait do so because there is no credit left.
    pub(super) fn is_short(&self) -> bool {
        match &self.credit {
            Share::All(_) => true,
            Share::Part(lease) => lease.shortage() != Shortage::None,
        }
    }

    /// Returns whether a connection of another thread waits.
    pub(super) fn waits_elsewhere(&self) -> bool {
        matches!(&self.credit, Share::Part(lease) if lease.shortage() == Shortage::Elsewhere)
    }

    /// Takes so much, whether it fits or not: some is held already when it is counted.
    pub(super) fn take(&mut self, amount: Amount) {
        match &mut self.credit {
            Share::All(account) => account.take(amount),
            Share::Part(lease) => lease.take(amount),
        }
    }

    pub(super) fn give_back(&mut self, amount: Amount) {
        match &mut self.credit {
            Share::All(account) => account.give_back(amount),
            Share::Part(lease) => lease.give_back(amount),
        }
    }

    /// Returns whether it has connections, or else holds nothing and waits for nothing.
    pub(super) fn is_settled(&self) -> bool {
        let is_unused = match &self.credit {
            Share::All(account) => account.is_unused(),
            Share::Part(lease) => lease.is_unused(),
        };
        self.connections > 0 || is_unused
    }

    /// The part that the owner of the disk deals out, if it does.
    pub(super) fn lease(&mut self) -> Option<&mut Lease> {
        match &mut self.credit {
            Share::All(_) => None,
            Share::Part(lease) => Some(lease),
        }
    }

    /// Returns whether everybody is called for whom there is room.
    #[cfg(test)]
    pub(super) fn has_called_all(&self) -> bool {
        match &self.credit {
            Share::All(account) => account.has_called_all(),
            Share::Part(lease) => lease.has_called_all(),
        }
    }

    /// Returns whether these amounts are all that it holds.
    #[cfg(test)]
    pub(super) fn holds(&self, amounts: impl Iterator<Item = Amount>) -> bool {
        match &self.credit {
            Share::All(account) => account.holds(amounts),
            Share::Part(lease) => lease.holds(amounts),
        }
    }
}

/// Returns the credit that a command holds until it is done.
pub(super) fn request_cost(command: &Command) -> Amount {
    let data = match command {
        Command::Read { len, .. } => bytes(*len),
        Command::Write { data, .. } => data.len(),
        Command::Cache { len, .. } | Command::WriteZeroes { len, .. } => {
            bytes(*len).min(PIECES_COST)
        }
        _ => 0,
    };
    Amount::of_data(data, COMMAND_COST)
}

fn bytes(len: u32) -> usize {
    usize::try_from(len).expect("a u32 fits in memory sizes")
}
