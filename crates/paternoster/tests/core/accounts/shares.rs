//! Whose requests a group waits for: each neighbour's part is its part of the device's time.
//!
//! Tenants of a device in virtual time, which the test watches itself: at each moment it knows whom
//! each server serves, and who has a request waiting.

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use paternoster::{
    AnyScheduler, Bio, Cause, Device, Driver, Elevator, GroupId, GroupLimits, Instant, IoPrio,
    IocId, Medium, Nanos, Op, RequestId, RequestTime, SchedulerKind, Sector, SectorCount,
    TimeAccounts, Weight,
};

/// How many points of a hundred an account may be off.
const POINTS: f64 = 3.0;

/// How the device serves what it has been given.
#[derive(Clone, Copy, Debug)]
enum Serving {
    /// So many servers, which take one after the other.
    Servers(usize),
    /// A round: what it has is done one after the other, and all of it is said to be done at the
    /// end, as with the page cache.
    Rounds,
}

/// What the disk's clients do.
#[derive(Clone, Copy, Debug)]
struct Tenant {
    outstanding: u32,
    op: Op,
    sectors: u32,
    /// From a completion to the next request.
    thinks: Nanos,
    /// A cap in requests a second: of the scheduler if it has caps, else the tenant keeps to it
    /// itself.
    riops: Option<u64>,
}

const GREEDY: Tenant =
    Tenant { outstanding: 16, op: Op::Read, sectors: 8, thinks: Nanos::ZERO, riops: None };

/// A read of 4 KiB takes 108 µs, one of 64 KiB 228 µs.
const TIME: RequestTime = RequestTime { request: 100_000, per_kib: 2_000, known: true };

/// One in the device: whose, and from when to when it is served.
struct Served {
    rq: RequestId,
    tenant: usize,
    from: Instant,
    to: Instant,
    /// When the device says that it is done.
    done: Instant,
}

struct Bench {
    driver: Driver<AnyScheduler<TimeAccounts>>,
    serving: Serving,
    /// How many requests the device takes.
    depth: u32,
    now: Instant,
    tenants: Vec<(Tenant, GroupId, IocId)>,
    free_at: Vec<Instant>,
    in_device: Vec<Served>,
    /// When a tenant asks again, and which.
    thinking: Vec<(Instant, usize)>,
    random: u64,
    /// The device's time that a tenant was served while another one waited.
    truth: BTreeMap<(usize, usize), u64>,
}

impl Bench {
    fn new(kind: SchedulerKind, serving: Serving, depth: u32, tenants: &[Tenant]) -> Self {
        let now = Instant::START;
        // What is known of a device that works in rounds is what such a test may assume.
        let time = match serving {
            Serving::Servers(_) => TIME,
            Serving::Rounds => RequestTime::default(),
        };
        let scheduler = AnyScheduler::new(kind, TimeAccounts::new(time));
        let device = Device::solid_state(depth);
        let mut elevator = Elevator::fitted(scheduler, device, Medium::NotRotational, now);
        elevator.set_nr_requests(None);
        if kind == SchedulerKind::Wfq {
            elevator.set_tunable(now, "depth", i64::from(depth)).expect("wfq has it");
        }
        let root = elevator.groups().root();
        let tenants = tenants.iter().map(|&tenant| {
            let group = elevator.add_group(now, root, Weight::default());
            if kind.has_group_limits()
                && let Some(riops) = tenant.riops
            {
                let riops = NonZeroU64::new(riops);
                let limits = GroupLimits { riops, ..GroupLimits::NONE };
                elevator.set_group_limits(now, group, limits);
            }
            (tenant, group, elevator.add_io_context(now, IoPrio::default(), group))
        });
        let tenants = tenants.collect();
        let servers = if let Serving::Servers(servers) = serving { servers } else { 1 };
        Self {
            driver: Driver::new(elevator),
            serving,
            depth,
            now,
            tenants,
            free_at: vec![now; servers],
            in_device: Vec::new(),
            thinking: Vec::new(),
            random: 7,
            truth: BTreeMap::new(),
        }
    }

    fn ask(&mut self, tenant: usize) {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let (Tenant { op, sectors, .. }, _, ioc) = self.tenants[tenant];
        let sector = (tenant as u64 * 4000 + (self.random >> 40) % 4000) * 1024;
        let bio = Bio::new(op, ioc, Sector(sector), SectorCount(sectors));
        self.driver.submit(self.now, bio);
    }

    /// Begins what may begin.
    fn dispatch(&mut self) {
        while let Some(rq) = self.driver.dispatch_next(self.now) {
            let request = self.driver.elevator().request(rq);
            let (group, sectors) = (request.group, request.sectors);
            let is_its = |(_, of, _): &(Tenant, GroupId, IocId)| *of == group;
            let tenant = self.tenants.iter().position(is_its).expect("it is a tenant's");
            let server = self.free_at.iter_mut().min().expect("there is one");
            let from = self.now.max(*server);
            let time = match self.serving {
                Serving::Servers(_) => TIME.of(sectors),
                // 2 µs and as much for 16 KiB.
                Serving::Rounds => 2000 + u64::from(sectors.0) * 512 * 2000 / 16_384,
            };
            let to = from + Nanos::new(time);
            *server = to;
            self.in_device.push(Served { rq, tenant, from, to, done: to });
            if matches!(self.serving, Serving::Rounds) {
                self.in_device.iter_mut().for_each(|served| served.done = to);
            }
        }
    }

    /// Goes on to that moment, and watches. A request waits for its turn while all places are
    /// taken: while one is free the device idles for somebody, or a cap holds the request.
    fn pass(&mut self, until: Instant) {
        if self.in_device.len() < self.depth as usize {
            self.now = until;
            return;
        }
        let stats = self.driver.elevator().stats();
        let waits = |group| stats.group(group).queued > 0;
        let waiters = (0..self.tenants.len()).filter(|&at| waits(self.tenants[at].1));
        for waiter in waiters {
            for served in &self.in_device {
                let (from, to) = (served.from.max(self.now), served.to.min(until));
                let time = to.saturating_since(from).as_nanos();
                *self.truth.entry((waiter, served.tenant)).or_default() += time;
            }
        }
        self.now = until;
    }

    fn run(&mut self, length: Nanos) {
        let end = self.now + length;
        for tenant in 0..self.tenants.len() {
            for _ in 0..self.tenants[tenant].0.outstanding {
                self.ask(tenant);
            }
        }
        self.dispatch();
        loop {
            let done = self.in_device.iter().map(|served| served.done).min();
            let thought = self.thinking.iter().map(|&(at, _)| at).min();
            let timeout = self.driver.poll_timeout();
            let next = [done, thought, timeout].into_iter().flatten().min();
            let next = next.expect("something happens").max(self.now);
            if next > end {
                return;
            }
            self.pass(next);
            if timeout.is_some_and(|at| at <= next) {
                self.driver.handle_timeout(next);
                self.dispatch();
            }
            // What is dispatched meanwhile is of the next round.
            let is_done = |served: &mut Served| served.done <= next;
            let done: Vec<_> = self.in_device.extract_if(.., is_done).collect();
            for Served { rq, tenant, .. } in done {
                let bios = self.driver.complete(next, rq);
                self.dispatch();
                for _ in bios.as_slice() {
                    self.thinking.push((next + self.pause(tenant), tenant));
                }
            }
            let thought: Vec<_> = self.thinking.extract_if(.., |(at, _)| *at <= next).collect();
            for (_, tenant) in thought {
                self.ask(tenant);
            }
            self.dispatch();
        }
    }

    /// How long a tenant thinks. One with a cap keeps to it itself where the scheduler has none.
    fn pause(&self, tenant: usize) -> Nanos {
        let Tenant { thinks, riops, outstanding, .. } = self.tenants[tenant].0;
        let is_held = self.driver.elevator().scheduler().kind().has_group_limits();
        match riops.filter(|_| !is_held) {
            Some(riops) => Nanos::new(1_000_000_000 * u64::from(outstanding) / riops),
            None => thinks,
        }
    }

    /// Each tenant's part of the time in which `waiter` waits, in percent: what its account says,
    /// and what the device did.
    #[allow(clippy::cast_precision_loss)] // less than 2⁵³ ns
    fn parts(&mut self, waiter: usize) -> Vec<(f64, f64)> {
        let now = self.driver.elevator().clock().elevator_time(self.now);
        let groups: Vec<_> = self.tenants.iter().map(|(_, group, _)| *group).collect();
        let accounts = self.driver.trace();
        accounts.close(now, groups.iter().copied());
        let times = accounts.times(groups[waiter]);
        let [turn, busy] =
            [Cause::Turn, Cause::Busy].map(|cause| times.of(cause).as_nanos() as f64);
        let behind = accounts.behind(groups[waiter]);
        let behind_all: u64 = behind.iter().map(|(_, served)| served).sum();
        let truth = |of: usize| self.truth.get(&(waiter, of)).copied().unwrap_or(0) as f64;
        let truth_all: f64 = (0..groups.len()).map(truth).sum();
        let said = |of: usize| {
            if of == waiter {
                return busy / (turn + busy);
            }
            let own = behind.iter().filter(|(group, _)| *group == groups[of]);
            let own: u64 = own.map(|(_, served)| served).sum();
            turn / (turn + busy) * own as f64 / behind_all.max(1) as f64
        };
        (0..groups.len()).map(|of| (100.0 * said(of), 100.0 * truth(of) / truth_all)).collect()
    }
}

const SERVERS: [(Serving, u32); 5] = [
    (Serving::Servers(1), 2),
    (Serving::Servers(1), 16),
    (Serving::Servers(4), 4),
    (Serving::Servers(4), 8),
    (Serving::Servers(16), 20),
];

/// Runs the tenants under each of the schedulers on each device, and judges the accounts of those
/// that have no cap.
fn judge(kinds: &[SchedulerKind], devices: &[(Serving, u32)], tenants: &[Tenant]) {
    let mut wrong = Vec::new();
    for &kind in kinds {
        for &(serving, depth) in devices {
            let mut bench = Bench::new(kind, serving, depth, tenants);
            bench.run(Nanos::from_millis(1000));
            for waiter in (0..tenants.len()).filter(|&at| tenants[at].riops.is_none()) {
                let parts = bench.parts(waiter);
                if parts.iter().any(|(said, truth)| (said - truth).abs() > POINTS) {
                    wrong.push(format!(
                        "{kind} on {serving:?} at depth {depth}, said and true of {waiter}: \
                         {parts:.1?}"
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A neighbour of large requests, and one that is capped.
fn neighbours(outstanding: u32) -> [Tenant; 3] {
    [
        Tenant { outstanding, ..GREEDY },
        Tenant { outstanding, sectors: 128, ..GREEDY },
        Tenant { riops: Some(200), outstanding: 4, ..GREEDY },
    ]
}

#[test]
fn neighbours_are_named_by_what_the_device_serves_of_them() {
    judge(&SchedulerKind::ALL, &SERVERS, &neighbours(16));
}

#[test]
fn rounds_that_complete_at_once_are_all_their_tenants() {
    let rounds = [(Serving::Rounds, 4), (Serving::Rounds, 16)];
    judge(&SchedulerKind::ALL, &rounds, &neighbours(32));
    // One whose requests all fit into a round waits now and then alone.
    let [small, large, capped] = neighbours(32);
    for outstanding in [4, 12, 16] {
        let few = Tenant { outstanding, ..small };
        judge(&SchedulerKind::ALL, &rounds, &[few, large, capped]);
    }
}

#[test]
fn tenant_that_waits_now_and_then_is_told_whom_it_waits_behind() {
    let thinker = Tenant { outstanding: 1, thinks: Nanos::from_micros(700), ..GREEDY };
    let [small, large, _] = neighbours(16);
    judge(&SchedulerKind::ALL, &SERVERS, &[small, large, thinker]);
}
