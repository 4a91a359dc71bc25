//! No queue starves with low latency: a queue that always has requests waiting has its next service
//! before others were served more than a certain amount, raised or not.
//!
//! Let all queues be of one class and group. As the service of a queue `q` ends, for which it is
//! charged `C`, and it goes on with the budget `B`, both at the weight `w`, it gets
//!
//! ```text
//!   finish ≤ vtime + (C + B) / w
//! ```
//!
//! and its next service begins before vtime is past that by more than a service that goes on.
//! Meanwhile each other queue `j`, of weight `w(j)` at most, is served no more than `w(j)` times
//! what vtime moves on, and what it may have left of a budget from before; so that all of them get
//! at most
//!
//! ```text
//!   Σ w(j) × (C + B) / w  +  (queues + 1) × largest charge
//! ```
//!
//! That is what they get in their own services. What is injected besides, while the device would
//! otherwise wait for the queue in service, is charged to them as well, but is no part of it: that
//! knows no finish times, and others may so get much more.
//!
//! Services, their budgets, charges and weights are as the trace tells them; that weights are
//! raised when they should be is for `waits.rs`. What is judged is the bound, from what the load
//! dispatched.

use std::collections::BTreeMap;

use paternoster::{Bfq, BfqEvent, ElevatorEvent, Event, Hz, IoPrio, Nanos, Recorder};

use crate::swarm::load::{Load, Pace, Task};
use crate::swarm::random::Random;

/// So many events a seed.
const EVENTS: u32 = 20_000;
/// Queues that come farther apart than this, in ms, do not merge.
const APART: u64 = 650;

/// A task, and what its queue gets.
#[derive(Clone, Debug, Default)]
struct Queue {
    backlogged: bool,
    weight: u64,
    /// Sectors dispatched since its last service ended; what was injected counts with the next
    /// service.
    dispatched: u64,
    wait: Option<Wait>,
}

/// A queue waits for its next service.
#[derive(Clone, Debug)]
struct Wait {
    charge: u64,
    weight: u64,
    /// What others were charged meanwhile in their services.
    others: u64,
    /// The greatest weights of the others.
    weights: BTreeMap<usize, u64>,
}

/// What was shown.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Shown {
    pub(crate) waits: u64,
    /// Waits while another queue was raised.
    pub(crate) with_raised: u64,
    /// The most that others got, in percent of the bound.
    pub(crate) longest: u64,
}

impl Shown {
    pub(crate) fn add(&mut self, other: &Self) {
        self.waits += other.waits;
        self.with_raised += other.with_raised;
        self.longest = self.longest.max(other.longest);
    }
}

struct Starving {
    load: Load<Bfq<Recorder>>,
    queues: Vec<Queue>,
    in_service: Option<usize>,
    largest: u64,
    shown: Shown,
}

impl Starving {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let device = random
            .device(&[1, 2, 8, 32])
            .with_hz(Hz::new(random.pick(&[1000, 250])).expect("a clock"));
        let service = Nanos::from_micros(random.pick(&[500, 1000, 3000]));
        let load = Load::new(Bfq::new(Recorder::default()), random, device, service);
        let mut starving =
            Self { load, queues: vec![], in_service: None, largest: 0, shown: Shown::default() };
        let max_budget = starving.load.random.pick(&[0, 512, 1024, 4096]);
        starving.load.tune("max_budget", max_budget);
        for _ in 0..2 + starving.load.random.below(2) {
            starving.add(Pace::Backlogged(device.queue_depth + 2));
        }
        for _ in 0..starving.load.random.below(4) {
            let requests = starving.load.random.pick(&[1, 1, 2]);
            let millis = starving.load.random.pick(&[1, 5, 20, 100]);
            starving.add(Pace::Thinks { requests, up_to: Nanos::from_millis(millis) });
        }
        starving
    }

    fn add(&mut self, pace: Pace) {
        let group = self.load.root();
        let random = &mut self.load.random;
        let level = random.pick(&[4, 4, 4, 0, 7]);
        let task = Task {
            group,
            io_prio: IoPrio::be(level).expect("a level"),
            writes: random.below(2) == 0,
            sequential: random.below(2) == 0,
            sectors: random.pick(&[8, 64, 256]),
            pace,
        };
        let backlogged = matches!(pace, Pace::Backlogged(_));
        let weight = 10 * (8 - u64::from(level));
        self.queues.push(Queue { backlogged, weight, ..Queue::default() });
        self.load.add(task);
        let until = self.load.now + Nanos::from_millis(APART);
        while self.load.now < until {
            self.step();
        }
    }

    fn run(mut self) -> Shown {
        for _ in 0..EVENTS {
            self.step();
        }
        self.shown
    }

    fn step(&mut self) {
        for (_, event) in self.load.step() {
            match event {
                Event::Elevator(ElevatorEvent::Dispatched { rq, .. }) => {
                    let task = self.load.task_of_request(rq);
                    let sectors = u64::from(self.load.task(task).sectors);
                    self.queues[task].dispatched += sectors;
                    if self.in_service == Some(task) {
                        self.charge(task, sectors);
                    }
                }
                Event::Bfq(BfqEvent::InService { queue, budget, weight, .. }) => {
                    let task = self.load.task_of(queue.ioc);
                    self.begin_service(task, budget.0.into(), weight.into());
                }
                Event::Bfq(BfqEvent::BudgetExpired { queue, service, .. }) => {
                    let task = self.load.task_of(queue.ioc);
                    self.end_service(task, service.0.into());
                }
                _ => {}
            }
        }
    }

    /// A queue is charged while others wait.
    fn charge(&mut self, task: usize, charge: u64) {
        for (other, queue) in self.queues.iter_mut().enumerate() {
            if let Some(wait) = queue.wait.as_mut().filter(|_| other != task) {
                wait.others += charge;
            }
        }
    }

    fn end_service(&mut self, task: usize, service: u64) {
        self.in_service = None;
        let dispatched = std::mem::take(&mut self.queues[task].dispatched);
        // What it is charged for its time.
        self.charge(task, service.saturating_sub(dispatched));
        self.largest = self.largest.max(service);
        if !self.queues[task].backlogged {
            return;
        }
        let all = self.queues.iter().map(|queue| queue.weight).enumerate();
        let weights = all.filter(|&(other, _)| other != task).collect();
        let weight = self.queues[task].weight;
        self.queues[task].wait = Some(Wait { charge: service, weight, others: 0, weights });
    }

    fn begin_service(&mut self, task: usize, budget: u64, weight: u64) {
        self.in_service = Some(task);
        self.queues[task].weight = weight;
        let wait = self.queues[task].wait.take();
        for queue in &mut self.queues {
            if let Some(wait) = &mut queue.wait {
                let of_task = wait.weights.entry(task).or_default();
                *of_task = weight.max(*of_task);
            }
        }
        let Some(wait) = wait else { return };
        let weight = weight.min(wait.weight);
        let all_weights: u64 = wait.weights.values().sum();
        let moved = (all_weights + weight) * (wait.charge + budget) / weight;
        let bound = moved + (self.queues.len() as u64 + 1) * self.largest;
        assert!(wait.others <= bound, "others got more than {bound}: {wait:?}");
        let raised = wait.weights.values().any(|&weight| weight > 80);
        self.shown.waits += 1;
        self.shown.with_raised += u64::from(raised);
        self.shown.longest = self.shown.longest.max(wait.others * 100 / bound);
    }
}

/// Runs the tasks of a seed.
pub(crate) fn run(seed: u64) -> Shown {
    Starving::new(seed).run()
}
