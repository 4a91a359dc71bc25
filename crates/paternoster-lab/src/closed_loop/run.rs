//! A run: clients, a scheduler and a device, in virtual time.
//!
//! The scheduler is driven in turns, as the server's owner of a disk does it; an owner that is
//! stalled begins its next turn later.

use paternoster::scheduler::{Dump, Scheduler as _};
use paternoster::{
    AnyScheduler, BioFlags, GroupId, Instant, Nanos, NoTrace, SchedulerKind, SectorCount, Weight,
};
use paternoster_model::disk::LayoutError;
use paternoster_model::{Behind, Described, Kind, Lateness, Model, Pauses, PausesParameters, Who};
use paternoster_scene::{Outcome, Scene, Scheduler, Tenant, Unfit, World};
use thiserror::Error;

use super::outcome::{Prices, Sample, Watched};
use super::tenants::{Parts, Places, Turnaround, groups};
use crate::sim::{Driven, GroupSetup, Setup, SetupError, SimError, Simulation};

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
    /// The device is impossible.
    #[error(transparent)]
    Device(#[from] LayoutError),
    /// A tenant asks for what the device does not have or do.
    #[error(transparent)]
    Unfit(#[from] Unfit),
    /// The scheduler cannot be set up.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// Nothing would ever happen though requests wait.
    #[error(transparent)]
    Stuck(#[from] SimError),
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

/// The laboratory as a world: it plays scenes in virtual time. The same seed gives the same
/// outcome.
#[derive(Clone, Copy, Debug, Default)]
pub struct Virtual {
    /// Whoever drives the scheduler.
    pub owner: Owner,
    /// What a client needs between an answer and its next request.
    pub turnaround: Turnaround,
    /// How long a request is on its way to the scheduler.
    pub way: Nanos,
    /// How late the owner hears of what the device has completed.
    pub lateness: Nanos,
    /// Whether it is all as the server has it. Each tenant has a part of the device for itself, as
    /// exports are, and all parts are alike. What does not rotate queues by itself, and servers
    /// take twice as many requests as they are, unless the depth is learned. Otherwise all tenants
    /// ask for blocks of the whole device, which takes all that it can, and only what rotates is
    /// known to queue.
    pub served: bool,
    /// Whether the scheduler takes the device for one that rotates; none is as the device is.
    pub rotational: Option<bool>,
}

impl World for Virtual {
    type Error = ClosedLoopError;

    fn play(
        &mut self,
        scene: &Scene,
        scheduler: &Scheduler,
        seed: u64,
    ) -> Result<Outcome, ClosedLoopError> {
        let mut run = Run::new(self, scene, scheduler, seed)?;
        while run.turn(false)? {}
        Ok(run.end().outcome)
    }
}

impl Virtual {
    /// Plays a scene, and looks at the scheduler each 10 ms.
    pub fn watch(
        &self,
        scene: &Scene,
        scheduler: &Scheduler,
        seed: u64,
    ) -> Result<Watched, ClosedLoopError> {
        let mut run = Run::new(self, scene, scheduler, seed)?;
        while run.turn(true)? {}
        Ok(run.end())
    }
}

/// A run, as far as it has come.
struct Run {
    sim: Simulation<Places, Box<dyn Model + Send>, AnyScheduler<NoTrace>>,
    /// Of the tenants.
    groups: Vec<GroupId>,
    counted_from: Instant,
    until: Instant,
    /// The backlogged time of each tenant at the end of the warm-up; none until then.
    backlogged_before: Option<Vec<Nanos>>,
    /// The time in the device of all requests while it counts, in ns.
    in_flight_ns: u128,
    samples: Vec<Sample>,
    next_sample: Instant,
}

impl Run {
    fn new(
        world: &Virtual,
        scene: &Scene,
        scheduler: &Scheduler,
        seed: u64,
    ) -> Result<Self, ClosedLoopError> {
        let mut model = device(world, scene, scheduler).open(seed)?;
        if world.lateness > Nanos::ZERO {
            model = Box::new(Behind::new(Lateness(world.lateness), model));
        }
        let counted_from = Instant::START + scene.warm_up;
        let parts = if world.served { scene.tenants.len() as u64 } else { 1 };
        let part = model.end().0 / parts;
        check_fit(scene, &*model, part)?;
        let parts = Parts { parts, part };
        // As the server has them: who writes does not wait for more.
        let flags = if world.served { BioFlags::SYNC | BioFlags::IDLE } else { BioFlags::empty() };
        let places = Places::new(scene, world.turnaround, parts, flags, seed);
        let setup = setup(world, scene, scheduler, &*model, seed);
        let sim = Simulation::new(&setup, places, model, NoTrace)?;
        let of_tenant = |group: usize| sim.groups()[1 + group];
        let groups = groups(&scene.tenants).into_iter().map(of_tenant).collect();
        Ok(Self {
            sim,
            groups,
            counted_from,
            until: counted_from + scene.counted,
            backlogged_before: None,
            in_flight_ns: 0,
            samples: Vec::new(),
            next_sample: Instant::START,
        })
    }

    /// Has the owner's next turn, after samples up to it if they are wanted. Returns whether there
    /// was one before the end.
    fn turn(&mut self, samples: bool) -> Result<bool, ClosedLoopError> {
        let next = self.sim.next_at()?.min(self.until);
        if samples {
            self.sample_until(next);
        }
        self.look(next);
        Ok(next < self.until && self.sim.step()?)
    }

    /// Looks at the scheduler as it is until `to`.
    fn sample_until(&mut self, to: Instant) {
        while self.next_sample <= to {
            self.sample();
            self.next_sample = self.next_sample + SAMPLE;
        }
    }

    /// Counts what there is until `to`.
    fn look(&mut self, to: Instant) {
        if self.backlogged_before.is_none() && to >= self.counted_from {
            self.backlogged_before = Some(self.backlogged(self.counted_from));
        }
        let counted = to.saturating_since(self.sim.now().max(self.counted_from));
        let in_flight = u128::from(self.sim.elevator().in_flight());
        self.in_flight_ns += u128::from(counted.as_nanos()) * in_flight;
    }

    fn sample(&mut self) {
        let elevator = self.sim.elevator();
        let mut state = State::default();
        elevator.scheduler().dump(&mut state);
        self.samples.push(Sample {
            at: self.next_sample.since_start(),
            depth: state.depth,
            prices: state.prices(),
            in_flight: elevator.in_flight(),
            completed: self.sim.workload().completed,
        });
    }

    /// How long each tenant had a request waiting so far.
    fn backlogged(&self, now: Instant) -> Vec<Nanos> {
        let stats = self.sim.elevator().stats();
        self.groups.iter().map(|group| stats.group(*group).backlogged(now)).collect()
    }

    fn end(self) -> Watched {
        let mut backlogged = self.backlogged(self.until);
        let before = self.backlogged_before.unwrap_or_default();
        for (all, before) in backlogged.iter_mut().zip(before) {
            *all = all.saturating_sub(before);
        }
        let counted = self.until.saturating_since(self.counted_from).as_nanos();
        #[allow(clippy::cast_precision_loss, reason = "a mean needs no more than 53 bits")]
        let in_flight = self.in_flight_ns as f64 / counted as f64;
        let counting = self.sim.into_workload().counting;
        let outcome = counting.end(self.until, &backlogged, in_flight);
        let counted_from = self.counted_from.since_start();
        Watched { outcome, samples: self.samples, counted_from }
    }
}

/// The scheduler in front of the device, with the tunables that fit it, as the server has it.
fn setup(
    world: &Virtual,
    scene: &Scene,
    scheduler: &Scheduler,
    model: &dyn Model,
    seed: u64,
) -> Setup {
    let rotational = world.rotational.unwrap_or(model.rotational());
    let stalls = match world.owner {
        Owner::Prompt => None,
        Owner::Noisy => Some(Pauses::new(NOISE, seed, Who::Owner)),
        Owner::Busy => Some(Pauses::new(BUSY, seed, Who::Owner)),
    };
    let mut setup = Setup::new(scheduler.kind).as_served(rotational);
    setup.tunables.extend(scheduler.tunables.iter().cloned());
    if !world.served {
        // Only what rotates is known to queue.
        setup.native_queueing = rotational.then_some(true);
    }
    Setup {
        rotational: world.rotational,
        groups: group_setups(&scene.tenants),
        way: world.way,
        driven: Driven::InTurns { stalls },
        ..setup
    }
}

/// The device of a scene as the world has it.
fn device(world: &Virtual, scene: &Scene, scheduler: &Scheduler) -> Described {
    let mut device = scene.device.clone();
    if let Kind::Servers(parameters) = &mut device.kind {
        let is_bound = world.served && scheduler.kind != SchedulerKind::Wfq;
        if let Some(servers) = parameters.constant().filter(|_| is_bound) {
            parameters.room.depth = parameters.room.depth.min(2 * servers);
        }
    }
    device
}

/// Refuses tenants that the device cannot serve.
fn check_fit(scene: &Scene, model: &dyn Model, part: u64) -> Result<(), Unfit> {
    scene.check(model, part * u64::from(SectorCount::SECTOR_BYTES))?;
    let is_odd = |tenant: &&Tenant| !tenant.block.is_multiple_of(SectorCount::SECTOR_BYTES);
    scene.tenants.iter().find(is_odd).map_or(Ok(()), |tenant| {
        let what = format!("has blocks of {} bytes: whole sectors are allowed", tenant.block);
        Err(Unfit { tenant: tenant.name.clone(), what })
    })
}

/// The groups of the tenants, each with the weight of its first.
fn group_setups(tenants: &[Tenant]) -> Vec<GroupSetup> {
    let mut setups: Vec<GroupSetup> = vec![];
    for (tenant, group) in tenants.iter().zip(groups(tenants)) {
        if group == setups.len() {
            let weight = Weight::new(tenant.weight).expect("1 to 1000");
            setups.push(GroupSetup { path: format!("/{}", tenant.name), weights: weight.into() });
        }
    }
    setups
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
