//! What has to hold after every round, for tests.

use super::Clients;
use super::connection::Waiting;

impl Clients {
    /// Asserts that nobody is forgotten, and that what is charged is what is held.
    pub(crate) fn check(&self) {
        let Self { connections: clients, exports, tenants, in_flight, .. } = self;
        let of = |tenant: usize| {
            clients.iter().filter(move |(_, client)| exports[client.export].tenant == tenant)
        };
        for (index, tenant) in tenants.iter().enumerate() {
            assert!(tenant.has_called_all(), "somebody waits for credit that is there");
            let mut waits = tenant.waiting();
            waits.sort_unstable();
            let waiting = of(index).filter(|(_, client)| client.waiting == Waiting::ForCredit);
            let mut waiting: Vec<_> = waiting.map(|(id, _)| id).collect();
            waiting.sort_unstable();
            assert_eq!(waits, waiting, "who waits is called once");
            let by_clients = of(index).flat_map(|(_, client)| client.charged());
            let costs = in_flight
                .values()
                .filter(|command| exports[clients[command.connection].export].tenant == index);
            assert!(tenant.holds(by_clients.chain(costs.map(|command| command.cost))));
        }
        for client in clients.values() {
            assert!(client.queued.for_work || !client.has_work(), "nobody works for {client:?}");
        }
    }
}
