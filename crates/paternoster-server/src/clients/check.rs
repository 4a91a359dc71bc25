//! What has to hold after every round, for tests.

use super::connection::{Connection, Waiting};
use super::{Clients, TenantId};

impl Clients {
    /// Asserts that nobody is forgotten, and that what is charged is what is held.
    pub(crate) fn check(&self) {
        let Self { connections: clients, tenants, in_flight, .. } = self;
        let of = |tenant: TenantId| {
            clients.iter().filter(move |(_, client)| client.export.tenant == tenant)
        };
        for (id, tenant) in tenants {
            let waits = |client: &Connection| client.waiting == Waiting::ForCredit;
            let waiting = of(id).filter(|(_, client)| waits(client)).count();
            let by_clients = of(id).flat_map(|(_, client)| client.charged());
            let costs = in_flight
                .values()
                .filter(|command| clients[command.connection].export.tenant == id);
            tenant.credit.check(by_clients.chain(costs.map(|command| command.cost)), waiting);
        }
        for client in clients.values() {
            assert!(client.queued.for_work || !client.has_work(), "nobody works for {client:?}");
        }
    }
}
