//! Closes clients that hold their tenant's memory and make no progress, while others wait for it.
//!
//! A payload that does not come, or replies that are not read, for `payload_timeout`: the
//! connection is closed if another one of its tenant waits for credit, and only then. A stopped
//! virtual machine alone does not lose its disk.

use paternoster::{Instant, Nanos};

use super::Clients;
use super::Leave;
use super::connection::{Connection, ConnectionId, State};

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

    /// Returns whether a connection may wait for credit.
    pub(super) fn may_anyone_wait(&self) -> bool {
        self.due.is_some()
    }
}

impl Clients {
    /// Closes those that others have waited for too long.
    pub(super) fn close_stalled(&mut self, now: Instant) {
        if self.stalled.due.is_none_or(|due| now < due) {
            return;
        }
        self.stalled.due = None;
        let timeout = self.stalled.timeout;
        let then = now.saturating_sub(timeout);
        for tenant in 0..self.tenants.len() {
            // Who waits for a moment, until the owner has dealt what there is, does not count.
            if !self.tenants[tenant].is_short() {
                continue;
            }
            let elsewhere = self.tenants[tenant].waits_elsewhere();
            let waiting: Vec<_> = self.waiting_of(tenant).take(2).collect();
            if waiting.is_empty() && !elsewhere {
                continue;
            }
            let is_stalled = |id: ConnectionId, client: &Connection| {
                self.exports[client.export].tenant == tenant
                    && client.is_stalled_since(then)
                    && (elsewhere || waiting.iter().any(|&other| other != id))
            };
            let clients = self.connections.iter();
            let stalled = clients.filter(|(id, client)| is_stalled(*id, client)).map(|(id, _)| id);
            for id in stalled.collect::<Vec<_>>() {
                self.connections[id].fail(Leave::Stalled(timeout));
                self.update_charge(id);
                self.queue(id);
            }
        }
        if self.tenants.iter().any(|tenant| tenant.anyone_waits() || tenant.waits_elsewhere()) {
            self.stalled.look_soon(now);
        }
    }

    /// Returns the connections of a tenant that wait for credit and can use it.
    fn waiting_of(&self, tenant: usize) -> impl Iterator<Item = ConnectionId> {
        let is_alive = |id: &ConnectionId| self.connections[*id].state != State::Failed;
        self.tenants[tenant].waiting().into_iter().filter(is_alive)
    }
}
