//! The load: tenants with much outstanding, and a victim with one request.
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
//! some time after it was answered. So the load never ends, and never grows. A place is a task of
//! the simulation; those of a connection share its I/O context.

use paternoster::{BioFlags, Instant, IoPrio, Nanos, Op, Sector, SectorCount, Weight};
use paternoster_model::{Draws, Service};

use super::outcome::Counting;
use crate::sim::{Action, Ended, GroupSetup, Io, Moment, TaskId, TaskSetup, Workload};

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

impl Clients {
    /// The groups, one each, those of the tenants first.
    pub(super) fn groups(&self) -> Vec<GroupSetup> {
        let weights = self.tenants.iter().map(|tenant| tenant.weight).chain(self.victim_weight);
        let groups = weights.enumerate().map(|(index, weight)| {
            let weight = Weight::new(weight).expect("1 to 1000");
            GroupSetup { path: format!("/{index}"), weights: weight.into() }
        });
        groups.collect()
    }
}

/// A place of what is outstanding.
#[derive(Clone, Copy, Debug)]
struct Place {
    client: Client,
    /// The first place of its connection.
    first: TaskId,
    /// When it asks next, or asked.
    asks: Instant,
    doing: Doing,
}

#[derive(Clone, Copy, Debug)]
enum Doing {
    /// It has been answered.
    Answered,
    /// Nothing until it asks.
    Sleeping,
    /// It has asked.
    Outstanding,
}

/// The places of all clients, and what has been counted of their requests.
#[derive(Debug)]
pub(super) struct Places {
    clients: Clients,
    list: Vec<Place>,
    /// The end of the device.
    end: Sector,
    draws: Draws,
    /// What a request costs.
    service: Service,
    pub(super) counting: Counting,
    /// Requests that have completed so far.
    pub(super) completed: u64,
}

impl Places {
    pub(super) fn new(
        clients: Clients,
        end: Sector,
        mut draws: Draws,
        service: Service,
        counting: Counting,
    ) -> Self {
        let of_tenants = clients.tenants.iter().enumerate().flat_map(|(index, tenant)| {
            let client = Client::Tenant(index);
            (0..tenant.connections).map(move |_| (client, tenant.outstanding))
        });
        let victim = clients.victim_weight.map(|_| (Client::Victim, 1));
        let mut list = Vec::new();
        for (client, outstanding) in of_tenants.chain(victim) {
            let first = TaskId(u32::try_from(list.len()).expect("places are counted in u32"));
            list.extend((0..outstanding).map(|_| {
                let asks = Instant::START + draws.time_up_to(BEGIN_US);
                Place { client, first, asks, doing: Doing::Sleeping }
            }));
        }
        Self { clients, list, end, draws, service, counting, completed: 0 }
    }

    /// The tenant whose requests are as the client's.
    fn requests_of(&self, client: Client) -> Tenant {
        match client {
            Client::Tenant(tenant) => self.clients.tenants[tenant],
            Client::Victim => self.clients.tenants[0],
        }
    }

    /// What the place of a client asks for.
    fn ask(&mut self, client: Client) -> Io {
        let Tenant { sectors, writes, durable, .. } = self.requests_of(client);
        let is_write = writes > 0.0 && self.draws.happens(writes);
        let op = if is_write { Op::Write } else { Op::Read };
        let flags = if is_write && durable { BioFlags::FUA } else { BioFlags::empty() };
        let blocks = self.end.0 / u64::from(sectors);
        let sector = Sector(self.draws.below(blocks) * u64::from(sectors));
        Io { name: 0, op, flags, sector, sectors: SectorCount(sectors), io_prio: None }
    }
}

impl Workload for Places {
    fn tasks(&self) -> Vec<TaskSetup> {
        let tasks = self.list.iter().map(|place| {
            let group = match place.client {
                Client::Tenant(tenant) => tenant,
                Client::Victim => self.clients.tenants.len(),
            };
            let (io_prio, start) = (IoPrio::default(), place.asks);
            TaskSetup { group: Some(group), io_prio, start }
        });
        tasks.collect()
    }

    fn context_of(&self, task: TaskId) -> TaskId {
        self.list[task.index()].first
    }

    fn next(&mut self, _: &mut Moment<'_>, task: TaskId) -> Action {
        let place = &mut self.list[task.index()];
        match place.doing {
            Doing::Answered => {
                place.doing = Doing::Sleeping;
                Action::Sleep(place.asks)
            }
            Doing::Sleeping => {
                place.doing = Doing::Outstanding;
                let client = place.client;
                Action::Submit(self.ask(client))
            }
            Doing::Outstanding => Action::Wait,
        }
    }

    fn completed(&mut self, moment: &mut Moment<'_>, ended: &Ended) {
        let Ended { task, io, .. } = *ended;
        let Place { client, asks, .. } = self.list[task.index()];
        let is_durable = io.flags.contains(BioFlags::FUA);
        let op = match io.op {
            Op::Write => paternoster_model::Op::Write,
            _ => paternoster_model::Op::Read,
        };
        let cost = self.service.cost(op, is_durable, io.sectors);
        self.counting.completed(moment.now, client, asks, cost);
        self.completed += 1;
        let (least, mean_us) = TURNAROUND;
        let place = &mut self.list[task.index()];
        place.asks = moment.now + (least + self.draws.exponential(mean_us));
        place.doing = Doing::Answered;
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
        let counting = Counting::new(Instant::START, &clients);
        let draws = Draws::new(1, Who::Tenants, 0);
        Places::new(clients, Sector(1 << 20), draws, Service::constant(Nanos::ZERO), counting)
    }

    fn next(places: &mut Places, task: TaskId, woken: &mut Vec<TaskId>) -> Action {
        places.next(&mut Moment::new(Instant::START, woken), task)
    }

    /// Three tenants with 32 outstanding, and the victim with one. A connection's places share an
    /// I/O context.
    #[test]
    fn every_request_outstanding_is_a_task_and_a_connection_is_one_context() {
        let places = places(0.0);
        let tasks = places.tasks();
        assert_eq!(tasks.len(), 3 * 32 + 1);
        let contexts = [0, 7, 8, 95, 96].map(|task| places.context_of(TaskId(task)).0);
        assert_eq!(contexts, [0, 0, 8, 88, 96]);
        assert_eq!(
            (tasks[31].group, tasks[32].group, tasks[96].group),
            (Some(0), Some(1), Some(3))
        );
    }

    #[test]
    fn place_asks_again_only_after_its_answer() {
        let (mut places, mut woken) = (places(0.0), vec![]);
        let task = TaskId(0);
        let Action::Submit(io) = next(&mut places, task, &mut woken) else { panic!("it asks") };
        assert_eq!(next(&mut places, task, &mut woken), Action::Wait);
        let soon = Instant::START + Nanos::from_micros(100);
        let (submitted, entered, cpu) = (Instant::START, Instant::START, Nanos::ZERO);
        let ended = Ended { task, io, submitted, entered, completed: soon, cpu };
        places.completed(&mut Moment::new(soon, &mut woken), &ended);
        let Action::Sleep(at) = next(&mut places, task, &mut woken) else { panic!("it rests") };
        assert!(at >= soon + Nanos::from_micros(20));
        assert!(matches!(next(&mut places, task, &mut woken), Action::Submit(_)));
    }

    #[test]
    fn requests_are_as_long_as_their_tenants_have_them_and_within_the_device() {
        let mut places = places(0.3);
        let mut writes = 0;
        for number in 0..10_000 {
            let client = Client::Tenant(number % 3);
            let Io { op, sector, sectors, .. } = places.ask(client);
            writes += u32::from(op == Op::Write);
            assert_eq!(sectors.0, if client == Client::Tenant(2) { 64 } else { 8 });
            assert!(sector.0 + u64::from(sectors.0) <= 1 << 20);
        }
        // 3000 of 10,000, with a deviation of 46.
        assert!((2800..3200).contains(&writes), "{writes}");
    }
}
