//! Queues and groups that always have requests waiting are charged by their weights, on each level.
//!
//! For an entity of weight `w` that competes with others for what a group gets, the *lag* is its
//! share, `w` in the sum of their weights, of what all of them are charged, less what it is itself.
//! By B-WF2Q+ it is within the greatest charge of a service, `C`, and a request, at any time after
//! they have come, whatever it was as the last of them came. So from any time on
//!
//! ```text
//!   |Δ(share) − Δ(charge)| ≤ 2 × (C + request)
//! ```
//!
//! `C` is as charged, be it for sectors or for time. That Linux keeps a candidate from service to
//! service and looks greedily is within that as well (unit tests of `wf2q` measure by how much it
//! misses).
//!
//! Weights are the test's own, and charges and budgets are worked out from the course of each
//! service (`service.rs`); who is put in service, and when and why that ends, is heard from the
//! trace.

use paternoster::{
    Bfq, BfqEvent, ElevatorEvent, Event, GroupId, Hz, Instant, IoPrio, Nanos, QueueEvent, Recorder,
    Weight,
};

use crate::swarm::bfq::service::Service;
use crate::swarm::load::{Load, Pace, Task};
use crate::swarm::random::Random;

/// So many events a seed, once all have come.
const EVENTS: u32 = 30_000;
/// Queues that come farther apart than this, in ms, do not merge.
const APART: u64 = 650;
/// While they come, the device is slow, so that this does not take long.
const SLOW: Nanos = Nanos::from_millis(20);

/// Who competes for service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entity {
    Group(usize),
    Task(usize),
}

/// What an entity is charged, to be measured with its rivals.
#[derive(Debug)]
struct Account {
    entity: Entity,
    /// The group for whose service it competes.
    parent: usize,
    weight: u64,
    charged: u64,
    services: u32,
}

struct Group {
    id: GroupId,
    parent: Option<usize>,
    weight: u64,
}

pub(super) struct Shares {
    pub(super) load: Load<Bfq<Recorder>>,
    /// The root first.
    groups: Vec<Group>,
    accounts: Vec<Account>,
    service: Service,
    in_service: Option<usize>,
    /// The largest charge of a service and the largest request.
    largest: u64,
    longest: u64,
}

/// What was shown.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Shown {
    pub(crate) services: u32,
    /// The greatest lag, in percent of the largest charge and request together.
    pub(crate) lag: u64,
}

impl Shares {
    fn new(seed: u64, flat: bool) -> Self {
        let mut random = Random::new(seed);
        let hz = Hz::new(random.pick(&[1000, 250])).expect("a clock");
        let device = random.device(&[1, 2, 8]).with_hz(hz);
        let service_time = Nanos::from_micros(random.pick(&[100, 500, 1000]));
        let scheduler = Bfq::new(Recorder::default());
        let mut load = Load::new(scheduler, random, device, SLOW);
        load.tune("low_latency", 0);
        let max_budget = load.random.pick(&[0, 512, 1024, 4096]);
        load.tune("max_budget", max_budget);
        let root = Group { id: load.root(), parent: None, weight: 0 };
        let service = Service::new(hz, device.rotational);
        let (accounts, in_service) = (vec![], None);
        let (largest, longest) = (0, 0);
        let groups = vec![root];
        let mut shares = Self { load, groups, accounts, service, in_service, largest, longest };
        if !flat {
            for _ in 0..2 + shares.load.random.below(4) {
                shares.add_group();
            }
        }
        shares.add_tasks(flat, device.queue_depth);
        shares.load.service = service_time;
        shares
    }

    fn add_group(&mut self) {
        let parent = self.load.random.index(self.groups.len());
        let weight = self.load.random.pick(&[1, 10, 50, 100, 100, 250, 500, 1000]);
        let value = Weight::new(weight).expect("a weight");
        let id = self.load.add_group(self.groups[parent].id, value);
        self.groups.push(Group { id, parent: Some(parent), weight: weight.into() });
    }

    /// To the first two groups below the root, or to the root alone, and to any of the others.
    fn add_tasks(&mut self, flat: bool, queue_depth: u32) {
        let class = self.load.random.pick(&[IoPrio::be as fn(u8) -> _, IoPrio::rt]);
        for group in 0..self.groups.len() {
            let random = &mut self.load.random;
            let tasks = match group {
                0 if flat => 2 + random.below(4),
                1 | 2 => 1 + random.below(2),
                _ => random.pick(&[0, 1, 1, 2]),
            };
            for _ in 0..tasks {
                let random = &mut self.load.random;
                let level = u8::try_from(random.below(8)).expect("a level");
                let task = Task {
                    group: self.groups[group].id,
                    // Groups compete as best effort.
                    io_prio: if flat { class(level) } else { IoPrio::be(level) }.expect("a level"),
                    writes: random.below(2) == 0,
                    sequential: random.below(2) == 0,
                    sectors: random.pick(&[8, 64, 512]),
                    // What is dispatched in one moment does not exhaust it.
                    pace: Pace::Backlogged(queue_depth + 2),
                };
                self.longest = self.longest.max(task.sectors.into());
                self.open_accounts(group, 10 * (8 - u64::from(level)));
                self.load.add(task);
                let until = self.load.now + Nanos::from_millis(APART);
                while self.load.now < until {
                    self.step();
                }
            }
        }
    }

    /// Opens accounts for the next task, which is in `group`, and for its parents that have none.
    fn open_accounts(&mut self, group: usize, weight: u64) {
        let tasks = self.accounts.iter().filter(|account| account.is_task()).count();
        let mut entity = (Entity::Task(tasks), group, weight);
        while self.account_of(entity.0).is_none() {
            let (of, group, weight) = entity;
            let (parent, charged, services) = (group, 0, 0);
            self.accounts.push(Account { entity: of, parent, weight, charged, services });
            let Some(parent) = self.groups[group].parent else { return };
            entity = (Entity::Group(group), parent, self.groups[group].weight);
        }
    }

    fn account_of(&self, entity: Entity) -> Option<usize> {
        self.accounts.iter().position(|account| account.entity == entity)
    }

    fn step(&mut self) {
        for (at, event) in self.load.step() {
            self.hear(at, event);
        }
    }

    fn hear(&mut self, at: Instant, event: Event) {
        self.service.hear(at, event);
        match event {
            Event::Bfq(BfqEvent::InService { queue, budget, .. }) => {
                let task = self.load.task_of(queue.ioc);
                let next = u64::from(self.load.task(task).sectors);
                if let Some(next_budget) = self.service.next_budget(queue.ioc) {
                    assert_eq!(
                        u64::from(budget.0),
                        next_budget.max(next),
                        "its budget is as adapted"
                    );
                }
                self.in_service = Some(task);
            }
            Event::Elevator(ElevatorEvent::Dispatched { rq, .. }) => {
                let task = self.load.task_of_request(rq);
                assert_eq!(self.in_service, Some(task), "only the queue in service is served");
                self.service.dispatch(self.load.task(task).sectors.into());
            }
            Event::Bfq(BfqEvent::BudgetExpired { queue, service, .. }) => {
                let task = self.load.task_of(queue.ioc);
                self.charge(task, service.0.into());
            }
            _ => {}
        }
    }

    fn charge(&mut self, task: usize, charge: u64) {
        self.largest = self.largest.max(charge);
        let mut entity = Some(Entity::Task(task));
        while let Some(account) = entity.and_then(|entity| self.account_of(entity)) {
            let account = &mut self.accounts[account];
            account.charged += charge;
            account.services += 1;
            entity = Some(Entity::Group(account.parent));
        }
    }

    fn run(mut self) -> Shown {
        for account in &mut self.accounts {
            account.charged = 0;
            account.services = 0;
        }
        let mut shown = Shown::default();
        for _ in 0..EVENTS {
            for (at, event) in self.load.step() {
                self.hear(at, event);
                assert!(
                    !matches!(event, Event::Queue(QueueEvent::NotBusy { .. })),
                    "all stay backlogged"
                );
                if matches!(event, Event::Bfq(BfqEvent::BudgetExpired { .. })) {
                    shown.services += 1;
                    shown.lag = shown.lag.max(self.greatest_lag());
                }
            }
        }
        shown
    }

    /// In percent of the largest charge and request together.
    fn greatest_lag(&self) -> u64 {
        let lags = self.accounts.iter().map(|account| {
            let rivals = || self.accounts.iter().filter(|other| other.parent == account.parent);
            let charged: u64 = rivals().map(|other| other.charged).sum();
            let weights: u64 = rivals().map(|other| other.weight).sum();
            let share = charged * account.weight / weights;
            share.abs_diff(account.charged) * 100 / (self.largest + self.longest)
        });
        lags.max().expect("there are tasks")
    }
}

impl Account {
    fn is_task(&self) -> bool {
        matches!(self.entity, Entity::Task(_))
    }
}

/// Runs queues and groups of a seed, or queues alone.
pub(crate) fn run(seed: u64, flat: bool) -> Shown {
    Shares::new(seed, flat).run()
}
