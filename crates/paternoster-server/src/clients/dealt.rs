//! Clients whose tenants' credit the owner of the disk deals out (`lease.rs`): what it has dealt,
//! and what is to be said to it.

use super::connection::ConnectionId;
use super::credit::Amount;
use super::site::Site;
use super::{Clients, CreditMessage, Shortage};

impl Clients {
    /// The owner has dealt so much for small amounts.
    pub(crate) fn credit_dealt(&mut self, tenant: usize, bytes: usize) {
        let Some(lease) = self.tenants[tenant].lease() else { return };
        lease.dealt(bytes);
        // At once: what has come was asked for by those who wait.
        self.call_waiting_of(tenant);
        self.settle_later(tenant);
    }

    /// The owner has counted a large amount, for which the connection has asked.
    pub(crate) fn large_credit_dealt(&mut self, tenant: usize, id: ConnectionId, bytes: usize) {
        let Some(lease) = self.tenants[tenant].lease() else { return };
        if lease.large_dealt(id, bytes) {
            self.call(tenant, id, Amount::Large(bytes));
        }
        self.settle_later(tenant);
    }

    /// Somebody waits for credit of the tenant at the owner, or nobody does any more.
    pub(crate) fn set_shortage(&mut self, site: &mut impl Site, tenant: usize, shortage: Shortage) {
        let Some(lease) = self.tenants[tenant].lease() else { return };
        lease.set_shortage(shortage);
        if shortage != Shortage::None {
            self.stalled.look_soon(site.now());
            for id in self.tenants[tenant].waiting() {
                self.connections[id].watch(site.sockets(), id);
            }
        }
        self.note_outside(tenant);
        self.settle_later(tenant);
    }

    /// Notes that something of the tenant's credit has changed.
    pub(super) fn settle_later(&mut self, tenant: usize) {
        if !std::mem::replace(&mut self.tenants[tenant].to_settle, true) {
            self.to_settle.push(tenant);
        }
    }

    /// Takes what there is to be said to the owner, with the tenant that it is about.
    pub(crate) fn settle(&mut self) -> Vec<(usize, CreditMessage)> {
        let mut messages = Vec::new();
        for index in std::mem::take(&mut self.to_settle) {
            let tenant = &mut self.tenants[index];
            tenant.to_settle = false;
            let has_connections = tenant.connections > 0;
            if let Some(lease) = tenant.lease() {
                let said = lease.settle(has_connections);
                messages.extend(said.into_iter().map(|message| (index, message)));
            }
        }
        messages
    }
}
