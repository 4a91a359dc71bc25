//! Tells the accounts of the scheduler what holds a tenant's commands back before they reach it.
//!
//! ```text
//!   a connection waits for credit ──┐
//!   a send is in flight ────────────┴─▶ note ──▶ changed ──end of the round──▶ TimeAccounts
//! ```
//!
//! Replies of a client that reads are gone by the next round. What is told is what holds at the end
//! of a round, so that a tenant costs as much as a round however many replies are sent in it.

use paternoster::Outside;

use super::connection::ConnectionId;
use super::tenant::Tenant;
use super::{Clients, TenantId};
use crate::stat::TimeStat;

/// What keeps commands of a tenant from reaching the scheduler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HeldBack {
    /// Replies wait to be read.
    unread: bool,
    /// Commands wait until memory is free.
    memory: bool,
}

impl HeldBack {
    /// That memory does, or nothing.
    pub(crate) fn by_memory(memory: bool) -> Self {
        Self { unread: false, memory }
    }

    /// What holds on either of two threads, or at either of two doors.
    pub(crate) fn or(self, other: Self) -> Self {
        Self { unread: self.unread || other.unread, memory: self.memory || other.memory }
    }

    /// The same in the words of the scheduler's accounts. Memory that replies take until they are
    /// read is not told apart from other memory: where both are short, the client that does not
    /// read is why.
    pub(crate) fn outside(self) -> Outside {
        match (self.unread, self.memory) {
            (true, true) => Outside::Holds(TimeStat::UNREAD),
            (true, false) => Outside::IfIdle(TimeStat::UNREAD),
            (false, true) => Outside::Holds(TimeStat::MEMORY),
            (false, false) => Outside::Free,
        }
    }
}

impl Clients {
    /// Counts whether a send of the connection is in flight.
    pub(super) fn note_sending(&mut self, id: ConnectionId) {
        let tenant = self.tenant_of(id);
        let client = &mut self.connections[id];
        let sends = client.is_sending();
        if std::mem::replace(&mut client.counted_sending, sends) == sends {
            return;
        }
        let sending = &mut self.tenants[tenant].sending;
        *sending = if sends { *sending + 1 } else { *sending - 1 };
        self.note_change(tenant);
    }

    /// Takes what holds each tenant's commands back now, of those of which it has changed.
    pub(crate) fn take_changed(&mut self) -> Vec<(TenantId, HeldBack)> {
        let Self { changed, tenants, .. } = self;
        changed
            .drain(..)
            .filter_map(|tenant| Some((tenant, tenants[tenant].take_change()?)))
            .collect()
    }
}

impl Tenant {
    /// Returns what is to be told, if it is something else than before.
    fn take_change(&mut self) -> Option<HeldBack> {
        self.has_changed = false;
        let now = HeldBack { unread: self.sending > 0, memory: self.credit.anyone_waits() };
        (std::mem::replace(&mut self.told, now) != now).then_some(now)
    }
}
