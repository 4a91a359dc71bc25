//! What has to hold after every round, for tests.

use super::Clients;
use super::connection::{Connection, Waiting};

impl Clients {
    /// Asserts that nobody is forgotten, and that what is charged is what is held.
    pub(crate) fn check(&self) {
        let Self { connections: clients, exports, tenants, in_flight, .. } = self;
        let of = |tenant: usize| {
            clients.iter().filter(move |(_, client)| exports[client.export].tenant == tenant)
        };
        for (index, tenant) in tenants.iter().enumerate() {
            let waits = |client: &Connection| client.waiting == Waiting::ForCredit;
            let waiting = of(index).filter(|(_, client)| waits(client)).count();
            let by_clients = of(index).flat_map(|(_, client)| client.charged());
            let costs = in_flight
                .values()
                .filter(|command| exports[clients[command.connection].export].tenant == index);
            tenant.credit.check(by_clients.chain(costs.map(|command| command.cost)), waiting);
        }
        for client in clients.values() {
            assert!(client.queued.for_work || !client.has_work(), "nobody works for {client:?}");
        }
    }
}
