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

use super::Clients;
use super::connection::ConnectionId;
use super::tenant::Tenant;

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
        self.note_outside(tenant);
    }

    /// Notes that something of the tenant may have changed.
    pub(super) fn note_outside(&mut self, tenant: usize) {
        if !std::mem::replace(&mut self.tenants[tenant].may_tell, true) {
            self.changed.push(tenant);
        }
    }

    /// Takes what holds each tenant's commands back now, of those of which it has changed.
    pub(crate) fn take_changed(&mut self) -> Vec<(usize, Outside)> {
        let Self { changed, tenants, .. } = self;
        changed
            .drain(..)
            .filter_map(|tenant| Some((tenant, tenants[tenant].take_change()?)))
            .collect()
    }
}

impl Tenant {
    /// Returns what is to be told, if it is something else than before.
    fn take_change(&mut self) -> Option<Outside> {
        self.may_tell = false;
        let outside = self.outside();
        (std::mem::replace(&mut self.told, outside) != outside).then_some(outside)
    }

    /// Returns what holds its commands back. Memory that replies take until they are read is not
    /// told apart from other memory: where both are short, the client that does not read is why.
    fn outside(&self) -> Outside {
        let holds = self.anyone_waits() && self.is_short();
        match (self.sending > 0, holds) {
            (true, holds) => Outside::Unread { holds },
            (false, true) => Outside::Memory,
            (false, false) => Outside::Free,
        }
    }
}
