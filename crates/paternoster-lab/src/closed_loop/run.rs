//! A run: clients, a scheduler and a device, in virtual time.
//!
//! ```text
//!                        ┌────────┐ dispatch ──▶ ┌───────┐
//!   places ── submit ──▶ │ Driver │              │ Model │
//!     ▲                  └────────┘ ◀── complete └───────┘
//!     └────── answered ◀─────┘
//! ```
//!
//! Whoever drives it works in turns, as the server's owner of a disk does. A turn begins when
//! something is due. It takes in what the device has completed, each followed by dispatch; then the
//! scheduler's timer; then all that has come from clients, before one dispatch. A turn itself takes
//! no time; an owner that is stalled begins its next turn later.

use paternoster::scheduler::{Dump, Scheduler as _};
use paternoster::{
    AnyScheduler, Bio, BioFlags, Device, Driver, Elevator, GroupId, Instant, IoPrio, IocId, Medium,
    Nanos, NoTrace, RequestId, TunableError, Weight,
};
use thiserror::Error;

use super::clients::{Client, Clients, Places};
use super::outcome::{Counting, Outcome, Prices, Sample};
use super::scenes::Scene;
use super::scheduler::Scheduler;
use paternoster_model::{Command, Draws, Kind, Model, Op, Pauses, PausesParameters, Service, Who};

/// How often the scheduler is looked at.
const SAMPLE: Nanos = Nanos::from_millis(10);
/// When a noisy owner is stalled.
const NOISE: PausesParameters = PausesParameters::ByChance {
    per_second: 20,
    lengths: (Nanos::from_micros(500), Nanos::from_millis(4)),
};

/// When the owner of a busy machine has no core: more than half of the time, for some slices of
/// the kernel's scheduler at once.
const BUSY: PausesParameters = PausesParameters::ByChance {
    per_second: 250,
    lengths: (Nanos::from_millis(2), Nanos::from_millis(8)),
};

/// The error of a run.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ClosedLoopError {
    /// The scheduler has no such tunable, or it does not take the value.
    #[error(transparent)]
    Tunable(#[from] TunableError),
    /// Nothing would ever happen though requests wait.
    #[error("stuck after {after_ms} ms: {waiting} requests wait")]
    Stuck {
        /// When, since the start.
        after_ms: u64,
        /// How many requests wait.
        waiting: u32,
    },
}

/// Whoever drives the scheduler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Owner {
    /// It is there whenever something happens.
    #[default]
    Prompt,
    /// It is stalled 20 times a second, for 0.5 to 4 ms.
    Noisy,
    /// Others want its core too: it runs for 4 ms on average, then not for 2 to 8 ms.
    Busy,
}

/// Runs a scene under a scheduler. The same seed gives the same outcome.
pub fn run_closed_loop(
    scene: &Scene,
    scheduler: &Scheduler,
    owner: Owner,
    seed: u64,
) -> Result<Outcome, ClosedLoopError> {
    let mut run = Run::new(scene, scheduler, owner, seed)?;
    while run.turn()? {}
    Ok(run.end())
}

/// A run, as far as it has come.
struct Run {
    driver: Driver<AnyScheduler<NoTrace>>,
    model: Box<dyn Model>,
    places: Places,
    /// By connection.
    contexts: Vec<IocId>,
    /// Of the tenants.
    groups: Vec<GroupId>,
    /// The requests in the device, by the tags of their commands.
    in_device: Vec<Option<RequestId>>,
    free_tags: Vec<u32>,
    /// When the owner is stalled.
    stalls: Option<Pauses>,
    service: Service,
    now: Instant,
    counted_from: Instant,
    until: Instant,
    counting: Counting,
    /// What tenants were backlogged before it counted; none until it counts.
    backlogged_before: Option<Vec<Nanos>>,
    /// The time in the device of all requests while it counts, in ns.
    in_flight_ns: u128,
    completed: u64,
    samples: Vec<Sample>,
    next_sample: Instant,
}

impl Run {
    fn new(
        scene: &Scene,
        scheduler: &Scheduler,
        owner: Owner,
        seed: u64,
    ) -> Result<Self, ClosedLoopError> {
        let now = Instant::START;
        let length = scene.warm_up + scene.counted;
        let model = scene.device.open(seed).expect("its layout is possible");
        let places =
            Places::new(scene.clients.clone(), model.end(), Draws::new(seed, Who::Tenants, 0));
        let mut driver = Driver::new(elevator(scheduler, &*model)?);
        let (groups, contexts) = add_clients(&mut driver, &scene.clients, &places);
        driver.dispatch(now, |_, _| {});
        let stalled = |when| Pauses::new(when, seed, Who::Owner);
        let stalls = match owner {
            Owner::Prompt => None,
            Owner::Noisy => Some(stalled(NOISE)),
            Owner::Busy => Some(stalled(BUSY)),
        };
        let counted_from = now + scene.warm_up;
        let depth = model.depth();
        Ok(Self {
            driver,
            model,
            places,
            contexts,
            groups,
            in_device: vec![None; depth as usize],
            free_tags: (0..depth).rev().collect(),
            stalls,
            service: service(&scene.device.kind),
            now,
            counted_from,
            until: now + length,
            counting: Counting::new(counted_from, &scene.clients),
            backlogged_before: None,
            in_flight_ns: 0,
            completed: 0,
            samples: Vec::new(),
            next_sample: now,
        })
    }

    /// Has the owner's next turn. Returns whether there was one before the end.
    fn turn(&mut self) -> Result<bool, ClosedLoopError> {
        let due = [self.model.poll_timeout(), self.driver.poll_timeout(), self.places.next()];
        let Some(next) = due.into_iter().flatten().min() else {
            let after_ms = self.now.since_start().as_nanos() / 1_000_000;
            let waiting = self.driver.elevator().queued();
            return Err(ClosedLoopError::Stuck { after_ms, waiting });
        };
        let mut next = next.max(self.now);
        if let Some(stalls) = &mut self.stalls {
            next = stalls.free_at(next);
        }
        if next >= self.until {
            self.advance(self.until);
            return Ok(false);
        }
        self.advance(next);
        while let Some(done) = self.model.poll(next) {
            self.complete(done.tag);
        }
        if self.driver.poll_timeout().is_some_and(|at| at <= next) {
            self.driver.handle_timeout(next);
            self.dispatch();
        }
        self.take_arrivals();
        Ok(true)
    }

    /// Lets the time go on, and looks at the scheduler where that is due.
    fn advance(&mut self, to: Instant) {
        while self.next_sample <= to {
            self.sample();
            self.next_sample = self.next_sample + SAMPLE;
        }
        if self.backlogged_before.is_none() && to >= self.counted_from {
            self.backlogged_before = Some(self.backlogged(self.counted_from));
        }
        let counted = to.saturating_since(self.now.max(self.counted_from));
        let in_flight = u128::from(self.driver.elevator().in_flight());
        self.in_flight_ns += u128::from(counted.as_nanos()) * in_flight;
        self.now = to;
    }

    /// Submits all that has come, then dispatches.
    fn take_arrivals(&mut self) {
        let now = self.now;
        let mut any = false;
        while let Some(ask) = self.places.ask(now) {
            let context = self.contexts[ask.connection];
            let mut bio = match ask.op {
                Op::Write => Bio::write(context, ask.sector, ask.sectors),
                _ => Bio::read(context, ask.sector, ask.sectors),
            };
            if ask.durable {
                bio.flags |= BioFlags::FUA;
            }
            self.driver.submit(now, bio.with_user_data(ask.place as u64));
            any = true;
        }
        if any {
            self.dispatch();
        }
    }

    /// Gives the device what may start.
    fn dispatch(&mut self) {
        let now = self.now;
        while let Some(rq) = self.driver.dispatch_next(now) {
            let tag = self.free_tags.pop().expect("the elevator keeps to the device's depth");
            self.in_device[tag as usize] = Some(rq);
            let request = self.driver.elevator().request(rq);
            let op = if request.op == paternoster::Op::Write { Op::Write } else { Op::Read };
            let (sector, sectors) = (request.sector, request.sectors);
            let durable = request.flags.contains(BioFlags::FUA);
            self.model.submit(now, Command { tag, op, durable, sector, sectors });
        }
    }

    /// A request leaves the scheduler, and its places are answered.
    fn complete(&mut self, tag: u32) {
        let rq = self.in_device[tag as usize].take();
        self.free_tags.push(tag);
        let rq = rq.expect("a command that completes is in the device");
        for place in self.driver.complete(self.now, rq) {
            let place = usize::try_from(place).expect("it is the index of a place");
            let place = self.places.answered(place, self.now);
            let sectors = self.places.sectors(place.client);
            let cost = self.service.cost(place.op, place.durable, sectors);
            self.counting.completed(self.now, place.client, place.asked, cost);
            self.completed += 1;
        }
        self.dispatch();
    }

    fn sample(&mut self) {
        let elevator = self.driver.elevator();
        let mut state = State::default();
        elevator.scheduler().dump(&mut state);
        self.samples.push(Sample {
            at: self.next_sample.since_start(),
            depth: state.depth,
            prices: state.prices(),
            in_flight: elevator.in_flight(),
            completed: self.completed,
        });
    }

    /// How long each tenant had a request waiting so far.
    fn backlogged(&self, now: Instant) -> Vec<Nanos> {
        let stats = self.driver.elevator().stats();
        self.groups.iter().map(|group| stats.group(*group).backlogged(now)).collect()
    }

    fn end(self) -> Outcome {
        let mut backlogged = self.backlogged(self.until);
        let before = self.backlogged_before.unwrap_or_default();
        for (all, before) in backlogged.iter_mut().zip(before) {
            *all = all.saturating_sub(before);
        }
        let counted = self.until.saturating_since(self.counted_from).as_nanos();
        #[allow(clippy::cast_precision_loss, reason = "a mean needs no more than 53 bits")]
        let in_flight = self.in_flight_ns as f64 / counted as f64;
        self.counting.end(self.until, &backlogged, in_flight, self.samples)
    }
}

/// Makes the elevator in front of a device, with the tunables that fit it.
fn elevator(
    scheduler: &Scheduler,
    model: &dyn Model,
) -> Result<Elevator<AnyScheduler<NoTrace>>, TunableError> {
    let now = Instant::START;
    let (device, medium) = if model.rotational() {
        let device = Device::disk(model.depth()).with_native_queueing(true);
        (device, Medium::Rotational)
    } else {
        (Device::solid_state(model.depth()), Medium::NotRotational)
    };
    let kind = AnyScheduler::new(scheduler.kind, NoTrace);
    let mut elevator = Elevator::fitted(kind, device, medium, now);
    elevator.set_nr_requests(None);
    for (name, value) in &scheduler.tunables {
        elevator.set_tunable(now, name, *value)?;
    }
    Ok(elevator)
}

/// Adds a group for each client and an I/O context for each connection.
fn add_clients(
    driver: &mut Driver<AnyScheduler<NoTrace>>,
    clients: &Clients,
    places: &Places,
) -> (Vec<GroupId>, Vec<IocId>) {
    let now = Instant::START;
    let root = driver.elevator().groups().root();
    driver.administer(|elevator| {
        let mut add = |weight| {
            let weight = Weight::new(weight).expect("1 to 1000");
            elevator.add_group(now, root, weight)
        };
        let groups: Vec<_> = clients.tenants.iter().map(|tenant| add(tenant.weight)).collect();
        let victim = clients.victim_weight.map(&mut add);
        let contexts = places.connections().iter().map(|client| {
            let group = match client {
                Client::Tenant(tenant) => groups[*tenant],
                Client::Victim => victim.expect("it is among the clients"),
            };
            elevator.add_io_context(now, IoPrio::default(), group)
        });
        let contexts = contexts.collect();
        (groups, contexts)
    })
}

/// What commands cost a device, as far as one number for each can say that: one each where nothing
/// is known of it, or where they lack this or that by what else there is (a volume's rates). Of
/// flash it is the channel's time, without the bus.
fn service(kind: &Kind) -> Service {
    match kind {
        Kind::Servers(parameters) => parameters.service,
        Kind::Channels(parameters) => parameters.service,
        Kind::Flash(parameters) => parameters.service,
        _ => Service::constant(Nanos::from_micros(1)),
    }
}

/// The depth and the prices out of what a scheduler says of itself.
#[derive(Default)]
struct State {
    depth: Option<i64>,
    op_bytes: Option<i64>,
    write_percent: Option<i64>,
    fua_percent: Option<i64>,
}

impl State {
    fn prices(&self) -> Option<Prices> {
        let Self { op_bytes, write_percent, fua_percent, .. } = *self;
        Some(Prices {
            op_bytes: op_bytes?,
            write_percent: write_percent?,
            fua_percent: fua_percent?,
        })
    }
}

impl Dump for State {
    fn number(&mut self, name: &'static str, value: i64) {
        let field = match name {
            "depth_in_force" => &mut self.depth,
            "price_op_bytes" => &mut self.op_bytes,
            "price_write_percent" => &mut self.write_percent,
            "price_fua_percent" => &mut self.fua_percent,
            _ => return,
        };
        *field = Some(value);
    }
}
