//! The tenants of a scene as tasks of a simulation.
//!
//! ```text
//!   a place:  asks ──▶ is answered ── turnaround, and what the tenant thinks ──▶ asks again
//! ```
//!
//! What is outstanding of a tenant is a number of *places*: each holds one request, and asks again
//! some time after it was answered. So the load never ends, and never grows. A place is a task of
//! the simulation; those of a connection share its I/O context.

use paternoster::{BioFlags, Instant, IoPrio, Nanos, Op, Sector};
use paternoster_model::{Draws, Service, Who};
use paternoster_scene::{Ask, Counting, Scene, Tenant};

use crate::sim::{Action, Ended, Io, Moment, TaskId, TaskSetup, Workload};

/// What a client needs from an answer to its next request, beside what its tenant thinks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Turnaround {
    /// At least.
    pub least: Nanos,
    /// At random besides, exponentially distributed with this mean, in µs.
    pub mean_us: f64,
}

impl Default for Turnaround {
    /// 20 µs and 20 more on average.
    fn default() -> Self {
        Self { least: Nanos::from_micros(20), mean_us: 20.0 }
    }
}

/// Within which time all places ask for the first time, in µs.
const BEGIN_US: f64 = 100.0;

/// A place of what is outstanding.
#[derive(Clone, Debug)]
struct Place {
    /// The index of its tenant.
    tenant: usize,
    /// The first place of its connection.
    first: TaskId,
    /// When it asks next, or asked.
    asks: Instant,
    doing: Doing,
    draws: Draws,
}

#[derive(Clone, Copy, Debug)]
enum Doing {
    /// It has been answered.
    Answered,
    /// It has been answered, and connects anew where its tenant does.
    Connected,
    /// Nothing until it asks.
    Sleeping,
    /// It has asked.
    Outstanding,
}

/// Into how many parts the device is split, a tenant's behind the one before, and the sectors of a
/// part. A single one is everybody's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parts {
    pub(super) parts: u64,
    pub(super) part: u64,
}

/// The places of all clients, and what has been counted of their requests.
#[derive(Debug)]
pub(super) struct Places {
    tenants: Vec<Tenant>,
    turnaround: Turnaround,
    list: Vec<Place>,
    parts: Parts,
    /// The flags of its writes, beside FUA.
    write_flags: BioFlags,
    /// What a request costs.
    service: Option<Service>,
    pub(super) counting: Counting,
    /// Requests that have completed so far.
    pub(super) completed: u64,
}

impl Places {
    pub(super) fn new(
        scene: &Scene,
        turnaround: Turnaround,
        parts: Parts,
        write_flags: BioFlags,
        seed: u64,
    ) -> Self {
        let mut list = Vec::new();
        for (tenant, Tenant { connections, depth, .. }) in scene.tenants.iter().enumerate() {
            for _ in 0..*connections {
                let first = TaskId(u32::try_from(list.len()).expect("places are counted in u32"));
                list.extend((0..*depth).map(|number| {
                    let number = first.0 + number;
                    let mut draws = Draws::new(seed, Who::Tenants, number.into());
                    let asks = Instant::START + draws.time_up_to(BEGIN_US);
                    Place { tenant, first, asks, doing: Doing::Sleeping, draws }
                }));
            }
        }
        let counting = Counting::new(Instant::START + scene.warm_up, scene);
        let (tenants, service) = (scene.tenants.clone(), scene.service());
        let completed = 0;
        Self { tenants, turnaround, list, parts, write_flags, service, counting, completed }
    }

    /// What a place asks for.
    fn ask(&mut self, place: usize) -> Io {
        let Place { tenant, ref mut draws, .. } = self.list[place];
        let sectors = self.tenants[tenant].sectors();
        let happens = |percent| draws.happens(f64::from(percent) / 100.0);
        let (op, flags) = match self.tenants[tenant].next_ask(happens) {
            Ask::Read | Ask::Cache => (Op::Read, BioFlags::empty()),
            Ask::Write { fua: false } => (Op::Write, self.write_flags),
            Ask::Write { fua: true } => (Op::Write, self.write_flags | BioFlags::FUA),
            Ask::Zeroes => (Op::WriteZeroes, BioFlags::empty()),
            Ask::Trim => (Op::Discard, BioFlags::empty()),
        };
        let Parts { parts, part } = self.parts;
        let begin = part * (tenant as u64 % parts);
        let blocks = part / u64::from(sectors.0);
        let sector = Sector(begin + draws.below(blocks) * u64::from(sectors.0));
        Io { name: 0, op, flags, sector, sectors, io_prio: None }
    }

    /// How long it takes until a place asks again.
    fn rest(&mut self, place: usize) -> Nanos {
        let Place { tenant, ref mut draws, .. } = self.list[place];
        let Turnaround { least, mean_us } = self.turnaround;
        let Tenant { think, think_more, .. } = self.tenants[tenant];
        let mut rest = least + think;
        if mean_us > 0.0 {
            rest += draws.exponential(mean_us);
        }
        if think_more > Nanos::ZERO {
            rest += draws.time_between((Nanos::ZERO, think_more));
        }
        rest
    }
}

/// The index of each tenant's group, in the order of their first tenants.
pub(super) fn groups(tenants: &[Tenant]) -> Vec<usize> {
    let mut names: Vec<&str> = vec![];
    let mut groups = vec![];
    for Tenant { name, .. } in tenants {
        let known = names.iter().position(|known| known == name);
        groups.push(known.unwrap_or(names.len()));
        if known.is_none() {
            names.push(name);
        }
    }
    groups
}

impl Workload for Places {
    fn tasks(&self) -> Vec<TaskSetup> {
        let groups = groups(&self.tenants);
        let tasks = self.list.iter().map(|place| {
            let (io_prio, start) = (IoPrio::default(), place.asks);
            TaskSetup { group: Some(groups[place.tenant]), io_prio, start }
        });
        tasks.collect()
    }

    fn context_of(&self, task: TaskId) -> TaskId {
        self.list[task.index()].first
    }

    fn next(&mut self, moment: &mut Moment<'_>, task: TaskId) -> Action {
        let place = &mut self.list[task.index()];
        match place.doing {
            Doing::Answered => {
                place.doing = Doing::Connected;
                let reconnects = self.tenants[place.tenant].reconnects;
                match reconnects {
                    Some(later) => Action::Reconnect(moment.now + later),
                    None => self.next(moment, task),
                }
            }
            Doing::Connected => {
                place.doing = Doing::Sleeping;
                Action::Sleep(place.asks)
            }
            Doing::Sleeping => {
                place.doing = Doing::Outstanding;
                Action::Submit(self.ask(task.index()))
            }
            Doing::Outstanding => Action::Wait,
        }
    }

    fn completed(&mut self, moment: &mut Moment<'_>, ended: &Ended) {
        let Ended { task, io, .. } = *ended;
        let Place { tenant, asks, .. } = self.list[task.index()];
        let is_durable = io.flags.contains(BioFlags::FUA);
        let op = match io.op {
            Op::Write => paternoster_model::Op::Write,
            Op::Discard | Op::WriteZeroes => paternoster_model::Op::Discard,
            _ => paternoster_model::Op::Read,
        };
        let cost = self.service.map_or(1.0, |law| law.cost(op, is_durable, io.sectors));
        self.counting.completed(moment.now, tenant, asks, cost);
        self.completed += 1;
        let asks = moment.now + self.rest(task.index());
        let place = &mut self.list[task.index()];
        place.asks = asks;
        place.doing = Doing::Answered;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paternoster_model::{Kind, ServersParameters};

    fn places(write_percent: u32) -> Places {
        let tenant =
            |(name, block)| Tenant { block, write_percent, ..Tenant::reads(100, 4, 8).named(name) };
        let mut tenants = [("a", 4096), ("b", 4096), ("c", 32_768)].map(tenant).to_vec();
        tenants.push(Tenant::reads(100, 1, 1).named("victim"));
        let device = Kind::Servers(ServersParameters::new(1, Service::constant(Nanos::ZERO)));
        let scene = Scene::new(device, tenants);
        let parts = Parts { parts: 1, part: 1 << 20 };
        Places::new(&scene, Turnaround::default(), parts, BioFlags::empty(), 1)
    }

    fn next(places: &mut Places, task: TaskId, woken: &mut Vec<TaskId>) -> Action {
        places.next(&mut Moment::new(Instant::START, woken), task)
    }

    /// Three tenants with 32 outstanding, and the victim with one. A connection's places share an
    /// I/O context.
    #[test]
    fn every_request_outstanding_is_a_task_and_a_connection_is_one_context() {
        let places = places(0);
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
        let (mut places, mut woken) = (places(0), vec![]);
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
        let mut places = places(30);
        let mut writes = 0;
        for number in 0..10_000 {
            let Io { op, sector, sectors, .. } = places.ask(number % 96);
            writes += u32::from(op == Op::Write);
            assert_eq!(sectors.0, if number % 96 >= 64 { 64 } else { 8 });
            assert!(sector.0 + u64::from(sectors.0) <= 1 << 20);
        }
        // 3000 of 10,000, with a deviation of 46.
        assert!((2800..3200).contains(&writes), "{writes}");
    }
}
