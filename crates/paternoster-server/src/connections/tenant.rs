//! A tenant on one disk: its group, its connections, and those of them that wait for memory.
//!
//! A group above tenants that has no export itself is a tenant without clients.

use std::collections::VecDeque;

use paternoster::{GroupId, Outside};
use paternoster_nbd::Command;

use super::connection::ConnectionId;
use super::credit::{Amount, Credit};

/// Bytes that a command holds beside its data: its pieces, of which there are a few at a time, and
/// its places in the tables.
const COMMAND_COST: usize = 4096;

/// What there has to be room for before a client is listened to: a command without data, or the
/// refusals of a few illegal ones.
pub(super) const LEAST: Amount = Amount::Small(COMMAND_COST);

/// What a command that moves no data of a client's may hold in buffers of its pieces.
const PIECES_COST: usize = 4 * (1280 << 10);

/// What became of a connection's request for credit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Grant {
    /// The credit is taken.
    Taken,
    /// The connection waits for it.
    Waits,
}

/// A tenant on one disk.
#[derive(Debug)]
pub(crate) struct Tenant {
    pub(crate) path: String,
    pub(crate) group: GroupId,
    /// The number of its connections now.
    pub(super) connections: u32,
    /// Those of them with a send in flight.
    pub(super) sending: u32,
    /// What the accounts were told last.
    pub(super) told: Outside,
    /// Whether that may be something else now.
    pub(super) may_tell: bool,
    credit: Credit,
    /// Connections that wait for credit, and for how much, in order of arrival: for small amounts
    /// and for large ones.
    waiting: [VecDeque<(ConnectionId, Amount)>; 2],
}

impl Tenant {
    /// `memory` is how many bytes it may hold.
    pub(crate) fn new(path: String, group: GroupId, memory: usize) -> Self {
        Self {
            path,
            group,
            connections: 0,
            sending: 0,
            told: Outside::Free,
            may_tell: false,
            credit: Credit::new(memory),
            waiting: Default::default(),
        }
    }

    /// Takes so much for a connection, behind those that wait. If that does not fit now, the
    /// connection waits, and is called when it has been taken.
    pub(super) fn take_or_wait(&mut self, id: ConnectionId, amount: Amount) -> Grant {
        if self.queue(amount).is_empty() && self.has_room(amount) {
            self.credit.take(amount);
            Grant::Taken
        } else {
            self.queue(amount).push_back((id, amount));
            Grant::Waits
        }
    }

    /// Returns whether so much fits, for whoever comes first of those that want amounts of its
    /// kind.
    fn has_room(&self, amount: Amount) -> bool {
        let [_, large] = &self.waiting;
        match amount {
            Amount::Small(bytes) if !large.is_empty() => self.credit.fits_in_quarter(bytes),
            _ => self.credit.fits(amount),
        }
    }

    /// Returns whether so much fits that nobody waits for.
    pub(super) fn has_spare(&self, amount: Amount) -> bool {
        self.waiting.iter().all(VecDeque::is_empty) && self.credit.fits(amount)
    }

    /// Takes credit for the next connection for which there is enough now. Returns both.
    pub(super) fn call_next(&mut self) -> Option<(ConnectionId, Amount)> {
        let (id, amount) = self.waiting[self.next_fits()?].pop_front()?;
        self.credit.take(amount);
        Some((id, amount))
    }

    /// Returns the queue whose first connection may be called.
    fn next_fits(&self) -> Option<usize> {
        let fits = |queue: &VecDeque<(_, Amount)>| {
            queue.front().is_some_and(|&(_, amount)| self.has_room(amount))
        };
        self.waiting.iter().position(fits)
    }

    /// Removes a connection that is gone from those that wait.
    pub(super) fn forget(&mut self, id: ConnectionId) {
        self.waiting.iter_mut().for_each(|queue| queue.retain(|&(other, _)| other != id));
    }

    /// Returns whether it has connections, or else holds nothing and waits for nothing.
    pub(super) fn is_settled(&self) -> bool {
        self.connections > 0
            || (self.credit.is_unused() && self.waiting.iter().all(VecDeque::is_empty))
    }

    /// Returns the connections that wait.
    pub(super) fn waiting(&self) -> impl Iterator<Item = ConnectionId> {
        self.waiting.iter().flatten().map(|&(id, _)| id)
    }

    /// Returns whether everybody is called for whom there is room.
    #[cfg(test)]
    pub(super) fn has_called_all(&self) -> bool {
        self.next_fits().is_none()
    }

    /// Returns whether these amounts are all that it holds.
    #[cfg(test)]
    pub(super) fn holds(&self, amounts: impl Iterator<Item = Amount>) -> bool {
        let mut credit = self.credit;
        amounts.for_each(|amount| credit.give_back(amount));
        credit.is_unused()
    }

    pub(super) fn take(&mut self, amount: Amount) {
        self.credit.take(amount);
    }

    pub(super) fn give_back(&mut self, amount: Amount) {
        self.credit.give_back(amount);
    }

    fn queue(&mut self, amount: Amount) -> &mut VecDeque<(ConnectionId, Amount)> {
        &mut self.waiting[usize::from(matches!(amount, Amount::Large(_)))]
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

#[cfg(test)]
mod tests {
    use paternoster::{AnyScheduler, Device, Elevator, SchedulerKind, TimeAccounts};
    use slotmap::SlotMap;

    use super::*;

    const MIB: usize = 1 << 20;

    fn tenant(memory: usize) -> Tenant {
        let scheduler = AnyScheduler::new(SchedulerKind::None, TimeAccounts::default());
        let elevator =
            Elevator::new(scheduler, Device::solid_state(1), paternoster::Instant::START);
        Tenant::new("/t".to_owned(), elevator.groups().root(), memory)
    }

    /// Small ones that came and went kept a large one waiting for ever.
    #[test]
    fn large_amount_has_its_turn_though_small_ones_never_end() {
        let mut ids = SlotMap::<ConnectionId, ()>::with_key();
        let mut id = || ids.insert(());
        let mut tenant = tenant(64 * MIB);
        let small = Amount::Small(MIB);
        for _ in 0..64 {
            assert_eq!(tenant.take_or_wait(id(), small), Grant::Taken);
        }
        let (large, amount) = (id(), Amount::Large(32 * MIB));
        assert_eq!(tenant.take_or_wait(large, amount), Grant::Waits);
        let mut given_back = 0;
        loop {
            tenant.give_back(small);
            given_back += 1;
            tenant.take_or_wait(id(), small);
            if let Some(called) = tenant.call_next() {
                assert_eq!(called, (large, amount));
                break;
            }
            assert!(given_back < 64, "the large one has waited for all of them");
        }
        // Who had to stand back is called again.
        tenant.give_back(amount);
        assert!(tenant.call_next().is_some_and(|(_, amount)| amount == small));
    }
}
