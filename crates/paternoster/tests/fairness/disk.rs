//! Clients of a disk in virtual time: what each of them gets.
//!
//! The disk is the demo's: 4 servers of 200 µs, 20,000 requests a second, given 8 at once. A client
//! keeps some requests outstanding and asks for the next a while after each reply: the way there
//! and back, and what it thinks.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use paternoster::{
    AnyScheduler, Arrival, Bio, BioFlags, Device, Driver, Elevator, GroupId, Instant, IoPrio,
    IocId, Medium, Nanos, NoTrace, Op, RequestId, SchedulerKind, Sector, SectorCount, Weight,
};

const SERVERS: usize = 4;
const DEPTH: u32 = 8;
const SERVICE: Nanos = Nanos::from_micros(200);
/// What the disk does when it never stands still, a second.
pub(crate) const PEAK: u64 = 20_000;
/// Nobody is counted until services and estimates have settled.
const SETTLED: Nanos = Nanos::from_millis(1000);
const COUNTED_S: u64 = 4;
/// Sectors of an export.
const EXPORT: u64 = 1 << 17;

/// The way of a reply to the client and of its next request to the disk, in microseconds.
const ROUND_TRIP_US: u64 = 30;

/// What one client of a tenant does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Client {
    outstanding: u32,
    /// From a reply to the next request.
    pause: Nanos,
    /// Each request is from a connection of its own, which ends so long after the reply.
    reconnects: Option<Nanos>,
    sectors: u32,
    op: Op,
}

/// Who has 64 requests of 4 KiB outstanding.
pub(crate) const GREEDY: Client = Client {
    outstanding: 64,
    pause: Nanos::from_micros(ROUND_TRIP_US),
    reconnects: None,
    sectors: 8,
    op: Op::Read,
};

impl Client {
    /// One request outstanding, and that long a thought before the next.
    pub(crate) const fn thinking(micros: u64) -> Self {
        let pause = Nanos::from_micros(ROUND_TRIP_US + micros);
        Self { outstanding: 1, pause, ..GREEDY }
    }

    pub(crate) const fn outstanding(self, outstanding: u32) -> Self {
        Self { outstanding, ..self }
    }

    /// Each connection ends that long after its only reply.
    pub(crate) const fn reconnecting(self, micros: u64) -> Self {
        Self { reconnects: Some(Nanos::from_micros(micros)), ..self }
    }

    pub(crate) const fn of_sectors(self, sectors: u32) -> Self {
        Self { sectors, ..self }
    }

    pub(crate) const fn that_does(self, op: Op) -> Self {
        Self { op, ..self }
    }
}

/// A tenant: its weight and its clients.
#[derive(Clone, Debug)]
pub(crate) struct Tenant {
    pub(crate) weight: u32,
    clients: Vec<Client>,
}

/// So many clients of that kind.
pub(crate) fn tenant(weight: u32, connections: usize, client: Client) -> Tenant {
    Tenant { weight, clients: vec![client; connections] }
}

impl Tenant {
    pub(crate) fn and(mut self, connections: usize, client: Client) -> Self {
        self.clients.extend(vec![client; connections]);
        self
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    Completion(RequestId),
    Exit(IocId),
    Arrival(usize),
}

#[derive(Clone, Copy)]
struct Connected {
    client: Client,
    tenant: usize,
    group: GroupId,
    ioc: IocId,
}

/// The disk and all clients.
pub(crate) struct Disk {
    driver: Driver<AnyScheduler<NoTrace>>,
    now: Instant,
    ahead: BinaryHeap<Reverse<(Instant, u64, Happening)>>,
    happenings: u64,
    free_at: BinaryHeap<Reverse<Instant>>,
    clients: Vec<Connected>,
    random: u64,
    replies: Vec<u64>,
}

impl Disk {
    /// What it is taken for says `medium`, and so do the tunables.
    pub(crate) fn new(kind: SchedulerKind, medium: Medium, tenants: &[Tenant]) -> Self {
        let device = match medium {
            Medium::Rotational => Device::disk(DEPTH),
            _ => Device::solid_state(DEPTH).with_native_queueing(true),
        };
        let scheduler = AnyScheduler::new(kind, NoTrace);
        let mut elevator = Elevator::fitted(scheduler, device, medium, Instant::START);
        elevator.set_nr_requests(None);
        let mut clients = vec![];
        let now = Instant::START;
        for (tenant, Tenant { weight, clients: of_tenant }) in tenants.iter().enumerate() {
            let weight = Weight::new(*weight).expect("a weight");
            let group = elevator.add_group(now, elevator.groups().root(), weight);
            for &client in of_tenant {
                let ioc = elevator.add_io_context(now, IoPrio::default(), group);
                clients.push(Connected { client, tenant, group, ioc });
            }
        }
        Self {
            driver: Driver::new(elevator),
            now,
            ahead: BinaryHeap::new(),
            happenings: 0,
            free_at: (0..SERVERS).map(|_| Reverse(now)).collect(),
            clients,
            random: 1,
            replies: vec![0; tenants.len()],
        }
    }

    pub(crate) fn set(mut self, tunable: &str, value: i64) -> Self {
        let now = self.now;
        let set = self.driver.administer(|elevator| elevator.set_tunable(now, tunable, value));
        set.expect("a tunable");
        self.dispatch();
        self
    }

    /// What each tenant gets, in replies a second.
    pub(crate) fn rates(mut self) -> Vec<u64> {
        for index in 0..self.clients.len() {
            for _ in 0..self.clients[index].client.outstanding {
                self.schedule(self.now, Happening::Arrival(index));
            }
        }
        self.run_until(Instant::START + SETTLED);
        self.replies.fill(0);
        self.run_until(Instant::START + SETTLED + Nanos::from_millis(1000 * COUNTED_S));
        self.driver.check();
        self.replies.iter().map(|replies| replies / COUNTED_S).collect()
    }

    fn run_until(&mut self, end: Instant) {
        loop {
            let timer = self.driver.poll_timeout();
            let next = self.ahead.peek().map(|Reverse((at, ..))| *at);
            let timer_first = timer.filter(|&timer| next.is_none_or(|next| timer < next));
            let at = timer_first.or(next).expect("somebody asks or is waited for");
            if at > end {
                return;
            }
            self.now = self.now.max(at);
            if timer_first.is_some() {
                self.driver.handle_timeout(self.now);
            } else {
                let Reverse((_, _, happening)) = self.ahead.pop().expect("it was looked at");
                match happening {
                    Happening::Completion(rq) => self.complete(rq),
                    Happening::Exit(ioc) => self.exit(ioc),
                    Happening::Arrival(index) => self.ask(index),
                }
            }
            self.dispatch();
        }
    }

    fn dispatch(&mut self) {
        while let Some(rq) = self.driver.dispatch_next(self.now) {
            let Reverse(free) = self.free_at.pop().expect("there are servers");
            let done = self.now.max(free) + SERVICE;
            self.free_at.push(Reverse(done));
            self.schedule(done, Happening::Completion(rq));
        }
    }

    fn exit(&mut self, ioc: IocId) {
        self.driver.administer(|elevator| elevator.exit_io_context(self.now, ioc));
    }

    fn schedule(&mut self, at: Instant, happening: Happening) {
        self.happenings += 1;
        self.ahead.push(Reverse((at, self.happenings, happening)));
    }

    fn ask(&mut self, index: usize) {
        // Knuth's generator of 64 bits.
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let Connected { client, tenant, ioc, .. } = self.clients[index];
        let sector = (self.random >> 33) % (EXPORT / u64::from(client.sectors))
            * u64::from(client.sectors)
            + EXPORT * tenant as u64;
        // As the server has them.
        let flags = match client.op {
            Op::Write => BioFlags::SYNC | BioFlags::IDLE,
            _ => BioFlags::empty(),
        };
        let bio = Bio::new(client.op, ioc, Sector(sector), SectorCount(client.sectors))
            .with_flags(flags)
            .with_user_data(index as u64);
        let arrival = self.driver.submit(self.now, bio);
        assert_ne!(arrival, Arrival::Waiting, "requests are not bounded");
    }

    fn complete(&mut self, rq: RequestId) {
        for index in self.driver.complete(self.now, rq) {
            let index = usize::try_from(index).expect("a client's number");
            let Connected { client, tenant, group, ioc } = self.clients[index];
            self.replies[tenant] += 1;
            if let Some(after) = client.reconnects {
                self.schedule(self.now + after, Happening::Exit(ioc));
                self.clients[index].ioc = self.driver.administer(|elevator| {
                    elevator.add_io_context(self.now, IoPrio::default(), group)
                });
            }
            self.schedule(self.now + client.pause, Happening::Arrival(index));
        }
    }
}
