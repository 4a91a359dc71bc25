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
use super::stat::elevator_now;
use super::tenant::Tenant;
use super::{Connections, DiskOwner};

impl Connections {
    /// Counts whether a send of the connection is in flight.
    pub(super) fn note_sending(&mut self, id: ConnectionId) {
        let tenant = self.tenant_of(id);
        let client = &mut self.clients[id];
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

    /// Tells what has changed.
    pub(super) fn tell_outside(&mut self, owner: &mut DiskOwner) {
        let Self { changed, tenants, .. } = self;
        let changed = changed.drain(..).filter(|&tenant| tenants[tenant].begins_to_tell());
        let changed: Vec<_> = changed.collect();
        if changed.is_empty() {
            return;
        }
        let now = elevator_now(owner);
        for tenant in changed {
            let Tenant { group, told, .. } = self.tenants[tenant];
            owner.trace().note_outside(now, group, told);
        }
    }
}

impl Tenant {
    /// Returns whether there is something else to be told than before.
    fn begins_to_tell(&mut self) -> bool {
        self.may_tell = false;
        let outside = self.outside();
        std::mem::replace(&mut self.told, outside) != outside
    }

    /// Returns what holds its commands back. Memory that replies take until they are read is not
    /// told apart from other memory: where both are short, the client that does not read is why.
    fn outside(&self) -> Outside {
        let holds = self.waiting().next().is_some();
        match (self.sending > 0, holds) {
            (true, holds) => Outside::Unread { holds },
            (false, true) => Outside::Memory,
            (false, false) => Outside::Free,
        }
    }
}
