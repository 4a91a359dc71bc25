//! Closes clients that hold their tenant's memory and make no progress, while others wait for it.
//!
//! A payload that does not come, or replies that are not read, for the stall timeout: the
//! connection is closed if another one of its tenant waits for credit, and only then. A stopped
//! virtual machine alone does not lose its disk.

use paternoster::{Instant, Nanos};

use super::connection::{Connection, ConnectionId, State};
use super::pool::Claim;
use super::{Clients, Leave, TenantId};

/// The least time between two looks.
const LOOK: Nanos = Nanos::from_millis(250);

/// When to look for them.
#[derive(Debug)]
pub(super) struct Stalled {
    /// How long a client may make no progress.
    timeout: Nanos,
    /// When to look next; none while no connection waits for credit, on any thread.
    due: Option<Instant>,
}

impl Stalled {
    pub(super) fn new(timeout: Nanos) -> Self {
        Self { timeout, due: None }
    }

    /// Notes that a connection waits for credit.
    pub(super) fn look_soon(&mut self, now: Instant) {
        self.due.get_or_insert(now + LOOK);
    }

    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }
}

impl Clients {
    /// Closes those that others have waited for too long.
    pub(super) fn close_stalled(&mut self, now: Instant) {
        // What another server is to go on with stays as it is.
        if self.is_held || self.stalled.due.is_none_or(|due| now < due) {
            return;
        }
        self.stalled.due = None;
        let timeout = self.stalled.timeout;
        let then = now.saturating_sub(timeout);
        let mut anyone_waits = false;
        for tenant in self.tenants.keys().collect::<Vec<_>>() {
            let waiting = self.waiting_of(tenant);
            anyone_waits |= !waiting.is_empty();
            let credit = &self.tenants[tenant].credit;
            let is_stalled = |id: ConnectionId, client: &Connection| {
                client.export.tenant == tenant
                    && client.is_stalled_since(then)
                    && waiting.iter().any(|&claim| claim != credit.claim(id))
            };
            let clients = self.connections.iter();
            let stalled = clients.filter(|(id, client)| is_stalled(*id, client)).map(|(id, _)| id);
            for id in stalled.collect::<Vec<_>>() {
                self.connections[id].fail(Leave::Stalled(timeout));
                self.update_charge(id);
                self.queue(id);
            }
        }
        if anyone_waits {
            self.stalled.look_soon(now);
        }
    }

    /// Returns the connections of a tenant that wait for credit and can use it, on all threads.
    fn waiting_of(&self, tenant: TenantId) -> Vec<Claim> {
        let is_of_use = |claim: &Claim| {
            claim.thread != self.thread || self.connections[claim.connection].state != State::Failed
        };
        let claims = self.tenants[tenant].credit.claims();
        claims.into_iter().filter(is_of_use).collect()
    }
}
