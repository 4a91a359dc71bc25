//! The clients: tenants with much outstanding, and a victim with one request.
//!
//! ```text
//!   tenant ┐
//!   tenant ├ connections, on each of which so many requests are always outstanding
//!   tenant ┘
//!   victim   one connection, one request; there may be none
//!
//!   a place:  asks ──▶ is answered ── 20 µs + 20 µs at random ──▶ asks again
//! ```
//!
//! What is outstanding of a client is a number of *places*: each holds one request, and asks again
//! some time after it was answered. So the load never ends, and never grows.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use paternoster::{Instant, Nanos, Sector, SectorCount};

use paternoster_model::{Draws, Op};

/// What a client needs at least until it asks again, and what it needs at random besides, on
/// average, in µs.
const TURNAROUND: (Nanos, f64) = (Nanos::from_micros(20), 20.0);
/// Within which time all places ask for the first time, in µs.
const BEGIN_US: f64 = 100.0;

/// A tenant that always asks for more.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tenant {
    /// Its weight.
    pub weight: u32,
    /// Its connections.
    pub connections: u32,
    /// How many requests are outstanding on each.
    pub outstanding: u32,
    /// How long they are.
    pub sectors: u32,
    /// The part of them that writes.
    pub writes: f64,
    /// Its writes are durable (FUA).
    pub durable: bool,
}

impl Tenant {
    /// A tenant that reads 4 KiB.
    pub const fn reads(weight: u32, connections: u32, outstanding: u32) -> Self {
        Self { weight, connections, outstanding, sectors: 8, writes: 0.0, durable: false }
    }
}

/// What the clients of a run ask for.
#[derive(Clone, Debug, PartialEq)]
pub struct Clients {
    /// The tenants; at least one. The victim's requests are as the first one's.
    pub tenants: Vec<Tenant>,
    /// The weight of the victim, if there is one.
    pub victim_weight: Option<u32>,
}

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Client {
    Tenant(usize),
    Victim,
}

/// A place of what is outstanding.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) client: Client,
    /// The index of its connection.
    pub(super) connection: usize,
    /// When it asked; valid while its request is outstanding.
    pub(super) asked: Instant,
    /// What that does.
    pub(super) op: Op,
    /// It is a durable write.
    pub(super) durable: bool,
}

/// What a place asks for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ask {
    /// Its index.
    pub(super) place: usize,
    pub(super) connection: usize,
    pub(super) op: Op,
    pub(super) durable: bool,
    pub(super) sector: Sector,
    pub(super) sectors: SectorCount,
}

/// The places of all clients, and when each asks again.
#[derive(Debug)]
pub(super) struct Places {
    clients: Clients,
    list: Vec<Place>,
    /// The clients of the connections.
    connections: Vec<Client>,
    /// When places ask.
    due: BinaryHeap<Reverse<(Instant, usize)>>,
    /// The end of the device.
    end: Sector,
    draws: Draws,
}

impl Places {
    pub(super) fn new(clients: Clients, end: Sector, mut draws: Draws) -> Self {
        let of_tenants = clients.tenants.iter().enumerate().flat_map(|(index, tenant)| {
            (0..tenant.connections).map(move |_| Client::Tenant(index))
        });
        let connections: Vec<_> =
            of_tenants.chain(clients.victim_weight.map(|_| Client::Victim)).collect();
        let mut list = Vec::new();
        for (connection, client) in connections.iter().copied().enumerate() {
            let count = match client {
                Client::Tenant(tenant) => clients.tenants[tenant].outstanding,
                Client::Victim => 1,
            };
            let asked = Instant::START;
            let place = Place { client, connection, asked, op: Op::Read, durable: false };
            list.extend((0..count).map(|_| place));
        }
        let begin = |place| Reverse((Instant::START + draws.time_up_to(BEGIN_US), place));
        let due = (0..list.len()).map(begin).collect();
        Self { clients, list, connections, due, end, draws }
    }

    /// The clients of the connections, by their index.
    pub(super) fn connections(&self) -> &[Client] {
        &self.connections
    }

    /// When the next place asks.
    pub(super) fn next(&self) -> Option<Instant> {
        self.due.peek().map(|Reverse((at, _))| *at)
    }

    /// What the next place asks for that is due by `now`.
    pub(super) fn ask(&mut self, now: Instant) -> Option<Ask> {
        let &Reverse((at, index)) = self.due.peek()?;
        if at > now {
            return None;
        }
        self.due.pop();
        let Tenant { writes, durable, sectors, .. } = *self.requests_of(self.list[index].client);
        let writes = writes > 0.0 && self.draws.happens(writes);
        let op = if writes { Op::Write } else { Op::Read };
        let place = &mut self.list[index];
        (place.asked, place.op, place.durable) = (at, op, durable && writes);
        let (connection, durable) = (place.connection, place.durable);
        let spots = self.end.0 / u64::from(sectors);
        let sector = Sector(self.draws.below(spots) * u64::from(sectors));
        let sectors = SectorCount(sectors);
        Some(Ask { place: index, connection, op, durable, sector, sectors })
    }

    /// A place is answered at `now`. Returns what it is and what it had.
    pub(super) fn answered(&mut self, place: usize, now: Instant) -> Place {
        let (least, mean_us) = TURNAROUND;
        let turnaround = least + self.draws.exponential(mean_us);
        self.due.push(Reverse((now + turnaround, place)));
        self.list[place]
    }

    /// How long the requests of a client are.
    pub(super) fn sectors(&self, client: Client) -> SectorCount {
        SectorCount(self.requests_of(client).sectors)
    }

    /// The tenant whose requests are as the client's.
    fn requests_of(&self, client: Client) -> &Tenant {
        match client {
            Client::Tenant(tenant) => &self.clients.tenants[tenant],
            Client::Victim => &self.clients.tenants[0],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paternoster_model::Who;

    fn places(writes: f64) -> Places {
        let tenant = |sectors| Tenant { sectors, writes, ..Tenant::reads(100, 4, 8) };
        let tenants = [8, 8, 64].map(tenant).to_vec();
        let clients = Clients { tenants, victim_weight: Some(100) };
        Places::new(clients, Sector(1 << 20), Draws::new(1, Who::Tenants, 0))
    }

    /// All ask at first, and then nobody until it is answered.
    #[test]
    fn place_asks_again_only_after_its_answer() {
        let mut places = places(0.0);
        let soon = Instant::START + Nanos::from_micros(100);
        let asks: Vec<_> = std::iter::from_fn(|| places.ask(soon)).collect();
        assert_eq!(asks.len(), 3 * 32 + 1);
        assert_eq!(places.next(), None);
        let answered = places.answered(asks[0].place, soon);
        assert_eq!(answered.connection, asks[0].connection);
        let next = places.next().expect("it asks again");
        assert!(next >= soon + Nanos::from_micros(20));
    }

    #[test]
    fn requests_are_as_long_as_their_tenants_have_them_and_within_the_device() {
        let mut places = places(0.3);
        let soon = Instant::START + Nanos::from_micros(100);
        let mut writes = 0;
        for _ in 0..10_000 {
            let ask = places.ask(soon + Nanos::from_secs(1000)).expect("somebody asks");
            let place = places.answered(ask.place, soon);
            writes += u32::from(place.op == Op::Write);
            let long = if place.client == Client::Tenant(2) { 64 } else { 8 };
            assert_eq!(ask.sectors, SectorCount(long));
            assert!(ask.sector.0 + u64::from(long) <= 1 << 20);
        }
        // 3000 of 10,000, with a deviation of 46.
        assert!((2800..3200).contains(&writes), "{writes}");
    }
}
