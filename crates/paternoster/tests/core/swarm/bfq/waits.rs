//! Whenever BFQ idles or ends a service, it has a reason that holds; and it idles for every queue
//! that has a claim to that.
//!
//! The tasks are synchronous, far apart on the device, and have a queue each. So naive models know
//! which queues are busy and raised (`raising.rs`), and which have a claim (`claim.rs`). The models
//! do not know the I/O patterns, for which BFQ may idle as well where that boosts the throughput.
//!
//! ```text
//!   modelled, and the trace has to     which queues are busy; by which factor and for how long a
//!   say the same                       queue is raised; the weight of a queue put in service
//!   read in the trace, and judged      why nothing is dispatched; for how long the device idles;
//!                                      why a service ends; which queue preempts, and that it may
//!   read in the trace, and believed    which queue is put in service, and when; whether a service
//!                                      was slow; the peak rate; whether the device queues; limits
//!                                      of injection; wakers
//! ```
//!
//! ```text
//!   waits: InFlight        the queue in service is empty and has requests in flight, and the
//!                          device may idle for it
//!   waits: IdleTimer       it has none in flight; the timer runs for as long as the queue is due
//!   NoMoreRequests         the device need not idle for the queue, or it was put in service empty
//!   TooIdle                the timer ran for its time
//!   Timeout                the service had its time
//!   Exhausted              the rest of the budget does not suffice for another request
//!   Preempted              the trace named the queue that preempts
//!   Injected               the queue in service is empty; one of the two queues wakes the other,
//!                          or the limit is not reached
//! ```

use std::collections::{BTreeMap, BTreeSet};

use paternoster::{
    Bfq, BfqEvent, BudgetEnd, ElevatorEvent, Event, GroupId, Hz, Instant, IoClass, IoPrio, Nanos,
    QueueEvent, QueueName, Recorder, SectorCount, WaitReason, Weight,
};

use crate::swarm::bfq::claim::{Claim, Queue, Service};
use crate::swarm::bfq::raising::{INTERACTIVE, Raising, Range, Rules, SOFT_RT};
use crate::swarm::load::{Load, Pace, Task};
use crate::swarm::random::Random;

/// So many events a seed.
const EVENTS: u32 = 10_000;
/// Queues that come farther apart than this, in ms, do not merge.
const APART: u64 = 650;
/// The device idles for a raised queue at least so long, and for a seeky one at most so long.
const RAISED: Nanos = Nanos::from_millis(20);
const SEEKY: Nanos = Nanos::from_millis(2);
/// Tasks that begin together, each so many milliseconds after the one before.
const CROWD: usize = 10;
const CROWDED: u64 = 5;

/// What was shown.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Shown {
    pub(crate) waits: u64,
    pub(crate) services: u64,
    pub(crate) injected: u64,
    /// How often a queue was raised as interactive and as soft real time, and began in a burst.
    pub(crate) interactive: u64,
    pub(crate) soft_rt: u64,
    pub(crate) in_burst: u64,
}

impl Shown {
    pub(crate) fn add(&mut self, other: &Self) {
        self.waits += other.waits;
        self.services += other.services;
        self.injected += other.injected;
        self.interactive += other.interactive;
        self.soft_rt += other.soft_rt;
        self.in_burst += other.in_burst;
    }
}

/// What the trace says of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Heard {
    busy: bool,
    factor: u64,
}

struct Waits {
    load: Load<Bfq<Recorder>>,
    claim: Claim,
    raising: Raising,
    heard: Vec<Heard>,
    /// A request of the queue in service was told of after the service that it ended.
    dispatched_early: bool,
    service: Option<Service>,
    hz: Hz,
    /// How many requests may be injected while a queue is empty.
    limits: BTreeMap<usize, u32>,
    /// Queues and their wakers.
    woken: BTreeSet<(usize, usize)>,
    shown: Shown,
}

impl Waits {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let hz = Hz::new(random.pick(&[1000, 250])).expect("a clock");
        let device = random.device(&[1, 2, 8, 32]).with_hz(hz);
        let service = Nanos::from_micros(random.pick(&[200, 1000, 3000]));
        let strict = random.one_in(6);
        let slice_idle = random.pick(&[0, 2, 8, 8, 8, 16]);
        let slice_idle = if strict { slice_idle.max(8) } else { slice_idle };
        let low_latency = u64::from(!random.one_in(4));
        let max_budget = random.pick(&[0, 512, 4096]);
        let mut load = Load::new(Bfq::new(Recorder::default()), random, device, service);
        load.tune("strict_guarantees", strict.into());
        load.tune("slice_idle", slice_idle);
        load.tune("low_latency", low_latency);
        load.tune("max_budget", max_budget);
        let claim = Claim::new(device.rotational, Nanos::from_millis(slice_idle), strict);
        let rules = Rules {
            hz,
            rotational: device.rotational,
            slice_idle: claim.slice_idle,
            low_latency: low_latency == 1,
        };
        let mut waits = Self {
            load,
            claim,
            raising: Raising::new(rules),
            heard: vec![],
            dispatched_early: false,
            service: None,
            hz,
            limits: BTreeMap::new(),
            woken: BTreeSet::new(),
            shown: Shown::default(),
        };
        waits.add_tasks();
        waits
    }

    fn add_tasks(&mut self) {
        let root = self.load.root();
        let outer = self.load.add_group(root, Weight::default());
        let inner = self.load.add_group(outer, Weight::default());
        let places = [(root, vec![]), (outer, vec![outer]), (inner, vec![inner, outer])];
        let grouped = self.load.random.one_in(3);
        let mixed = self.load.random.one_in(3);
        if self.load.random.one_in(4) {
            let place = if grouped { self.load.random.index(places.len()) } else { 0 };
            for n in 0..CROWD {
                // Two of one level that begin together would be merged.
                self.add_task(&places[place], ["be/4", "be/3"][n % 2], &[10, 500], CROWDED);
            }
        }
        let texts: &[_] = if mixed { &["be/4", "be/0", "be/7", "rt/4", "idle"] } else { &["be/4"] };
        for _ in 0..self.load.random.pick(&[1, 2, 3, 5]) {
            let place = if grouped { self.load.random.index(places.len()) } else { 0 };
            let io_prio = self.load.random.pick(texts);
            self.add_task(
                &places[place],
                io_prio,
                &[10, 500, 5000, 30_000, 100_000, 800_000],
                APART,
            );
        }
    }

    /// A task comes and begins, and a while passes.
    fn add_task(
        &mut self,
        place: &(GroupId, Vec<GroupId>),
        io_prio: &str,
        longest: &[u64],
        millis: u64,
    ) {
        let random = &mut self.load.random;
        let io_prio: IoPrio = io_prio.parse().expect("an I/O priority");
        let longest = random.pick(longest);
        let task = Task {
            group: place.0,
            io_prio,
            writes: random.below(2) == 0,
            sequential: random.below(2) == 0,
            sectors: random.pick(&[8, 16, 128]),
            pace: Pace::Thinks {
                requests: random.pick(&[1, 1, 2, 6]),
                up_to: Nanos::from_micros(longest),
            },
        };
        let weight = 10 * (8 - u64::from(io_prio.level()));
        self.claim.queues.push(Queue::new(io_prio.class(), place.1.clone(), weight));
        self.raising.add(weight, place.1.first().copied());
        self.heard.push(Heard { busy: false, factor: 1 });
        self.load.add(task);
        let queue = self.heard.len() - 1;
        while self.raising.is_new(queue) {
            self.step();
        }
        let until = self.load.now + Nanos::from_millis(millis);
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
        let events = self.load.step();
        // The trace has a completion after what follows from it.
        for &(_, event) in &events {
            if let Event::Elevator(ElevatorEvent::Completed { rq, .. }) = event {
                let queue = self.load.task_of_request(rq);
                self.raising.complete(queue, self.load.now);
                self.claim.queues[queue].in_flight -= 1;
                self.claim.rests(queue);
            }
        }
        for (position, &(at, event)) in events.iter().enumerate() {
            self.hear(at, event, &events[position + 1..]);
        }
        self.compare(&events);
    }

    /// Asserts that the model agrees with the trace about busy and raised queues.
    fn compare(&mut self, events: &[(Instant, Event)]) {
        for (queue, heard) in self.heard.iter().enumerate() {
            let (busy, factor) = (self.raising.busy(queue), self.raising.factor(queue));
            let state = self.raising.queue(queue);
            assert_eq!(
                *heard,
                Heard { busy, factor },
                "as the trace says, queue {queue}: {state:?}"
            );
        }
        let raised = events.iter().rev().find_map(|&(_, event)| match event {
            Event::Bfq(BfqEvent::Raised { queue, length, .. }) => {
                Some((self.load.task_of(queue.ioc), length))
            }
            _ => None,
        });
        if let Some((queue, length)) = raised {
            let state = self.raising.queue(queue);
            assert_eq!(length, self.raising.length(queue), "so long, {queue}: {state:?}");
        }
    }

    /// The claim follows the model.
    fn learn(&mut self, queue: usize) {
        let (factor, busy) = (self.raising.factor(queue), self.raising.busy(queue));
        let before = std::mem::replace(&mut self.claim.queues[queue].factor, factor);
        self.shown.interactive += u64::from(factor == INTERACTIVE && before != factor);
        self.shown.soft_rt += u64::from(factor == SOFT_RT && before != factor);
        self.claim.queues[queue].busy = busy;
    }

    fn arrive(&mut self, at: Instant, queue: usize, request: Range) {
        let begins = self.raising.arrive(queue, request, at);
        self.shown.in_burst += u64::from(begins && self.raising.in_large_burst(queue));
        self.learn(queue);
        if begins {
            self.claim.becomes_busy(queue);
        }
    }

    fn hear(&mut self, at: Instant, event: Event, later: &[(Instant, Event)]) {
        match event {
            Event::Elevator(ElevatorEvent::Queued { bio, sector, sectors, .. }) => {
                let request = Range { start: sector.0, sectors: sectors.0.into() };
                self.arrive(at, self.load.task_of_request(bio), request);
            }
            Event::Queue(QueueEvent::Busy { queue, .. }) => self.heard_of(queue).busy = true,
            Event::Queue(QueueEvent::NotBusy { queue, .. }) => self.heard_of(queue).busy = false,
            Event::Bfq(BfqEvent::Raised { queue, factor, .. }) => {
                self.heard_of(queue).factor = factor.into();
            }
            Event::Bfq(BfqEvent::PeakRate { rate, .. }) => self.raising.peak_rate = rate,
            Event::Queue(QueueEvent::HardwareQueueing { now, .. }) => {
                self.claim.device_queues = Some(now);
            }
            Event::Bfq(BfqEvent::InjectionLimit { queue, limit, .. }) => {
                self.limits.insert(self.load.task_of(queue.ioc), limit);
            }
            Event::Bfq(BfqEvent::WakerFound { queue, waker, .. }) => {
                let [queue, waker] = [queue, waker].map(|name| self.load.task_of(name.ioc));
                self.woken.retain(|&(other, _)| other != queue);
                self.woken.insert((queue, waker));
            }
            Event::Elevator(ElevatorEvent::Dispatched { .. })
                if std::mem::take(&mut self.dispatched_early) => {}
            Event::Elevator(ElevatorEvent::Dispatched { rq, .. }) => {
                self.dispatch(at, self.load.task_of_request(rq));
            }
            Event::Bfq(BfqEvent::Injected { queue, .. }) => {
                self.judge_injected(self.load.task_of(queue.ioc));
            }
            Event::Bfq(BfqEvent::InService { queue, weight, .. }) => {
                self.begin_service(at, self.load.task_of(queue.ioc), weight.into());
            }
            Event::Queue(QueueEvent::Preempted { over, .. }) => {
                let over = self.load.task_of(over.ioc);
                let service = self.service.as_mut().expect("a queue in service is preempted");
                assert_eq!(service.queue, over, "only the queue in service is preempted");
                service.preempted = true;
            }
            Event::Bfq(BfqEvent::BudgetIdling { length, .. }) => self.judge_idling(at, length),
            Event::Bfq(BfqEvent::BudgetExpired { why, slow, service, budget, .. }) => {
                self.dispatch_early(at, why, later);
                self.judge_end(at, why, slow, [budget, service]);
                self.end_service(at, why, service);
            }
            Event::Elevator(ElevatorEvent::Waiting { why, .. }) => self.judge_wait(at, why),
            _ => {}
        }
    }

    /// A queue whose raising changed while it waited for its service may still have the weight from
    /// before.
    fn begin_service(&mut self, at: Instant, queue: usize, weight: u64) {
        let Queue { weight: own, factor, applied, .. } = self.claim.queues[queue];
        assert!(
            [own * factor, own * applied].contains(&weight),
            "{weight}: it is raised, or is not"
        );
        if weight == own * factor {
            self.claim.apply_raising(queue);
        }
        self.raising.begin_service(queue, weight / own, at);
        let (dispatched, idle_until, preempted) = (0, None, false);
        self.service =
            Some(Service { queue, begun: at, factor, dispatched, idle_until, preempted });
    }

    fn heard_of(&mut self, queue: QueueName) -> &mut Heard {
        &mut self.heard[self.load.task_of(queue.ioc)]
    }

    fn dispatch(&mut self, at: Instant, queue: usize) {
        let sectors = u64::from(self.load.task(queue).sectors);
        let in_service = self.service.is_some_and(|service| service.queue == queue);
        self.raising.dispatch(queue, sectors, in_service, at);
        self.learn(queue);
        self.claim.queues[queue].in_flight += 1;
        if let Some(service) = self.service.as_mut().filter(|_| in_service) {
            service.dispatched += sectors;
            service.idle_until = None;
            let state = &self.claim.queues[queue];
            // The weight changes at once if it is no longer raised, or only now.
            if (state.applied > 1) != (state.factor > 1) {
                self.claim.apply_raising(queue);
            }
        }
    }

    /// The service of a queue of the idle class ends with each request while others are busy, and
    /// the request is told of after that.
    fn dispatch_early(&mut self, at: Instant, why: BudgetEnd, later: &[(Instant, Event)]) {
        let queue = self.service.expect("a service that ends has begun").queue;
        let next = later.iter().find_map(|&(_, event)| match event {
            Event::Elevator(ElevatorEvent::Dispatched { rq, .. }) => {
                Some(self.load.task_of_request(rq))
            }
            Event::Bfq(BfqEvent::InService { .. }) => Some(usize::MAX),
            _ => None,
        });
        let is_idle = self.claim.queues[queue].class == IoClass::Idle;
        if is_idle && why == BudgetEnd::Exhausted && next == Some(queue) {
            self.dispatch(at, queue);
            self.dispatched_early = true;
        }
    }

    fn end_service(&mut self, at: Instant, why: BudgetEnd, service: SectorCount) {
        let Service { queue, .. } = self.service.take().expect("a service that ends has begun");
        let stays = why == BudgetEnd::Preempted && self.claim.is_guaranteed(queue);
        self.raising.end_service(queue, service.0.into(), stays, at);
        self.learn(queue);
        if self.raising.busy(queue) {
            self.claim.apply_raising(queue);
        } else {
            self.claim.rests(queue);
        }
        self.shown.services += 1;
    }

    fn judge_injected(&mut self, queue: usize) {
        let service = self.service.expect("a queue is in service");
        assert_eq!(self.load.waiting(service.queue), 0, "the queue in service is empty");
        let related = [(queue, service.queue), (service.queue, queue)]
            .iter()
            .any(|pair| self.woken.contains(pair));
        let limit = self.limits.get(&service.queue).copied().unwrap_or(0);
        assert!(related || self.claim.in_flight() < limit, "injected beyond {limit}");
        self.shown.injected += 1;
    }

    fn judge_idling(&mut self, at: Instant, length: Nanos) {
        let service = self.service.as_mut().expect("a queue is in service");
        let queue = &self.claim.queues[service.queue];
        assert_eq!(queue.in_flight, 0, "nothing of it is in flight");
        assert!(self.claim.may_idle(service.queue), "the device may idle for it: {service:?}");
        let slice_idle = self.claim.slice_idle;
        let seeky = queue.factor == 1 && !self.claim.is_asymmetric(service.queue);
        let due = if queue.factor > 1 { slice_idle.max(RAISED) } else { slice_idle };
        assert!(length == due || (seeky && length == slice_idle.min(SEEKY)), "{length:?} is due");
        service.idle_until = Some(at + length);
    }

    fn judge_wait(&mut self, at: Instant, why: WaitReason) {
        if why == WaitReason::DeviceFull {
            return;
        }
        if why == WaitReason::OneAtATime {
            return assert!(self.claim.strict && self.claim.in_flight() > 0, "one is in flight");
        }
        let service = self.service.expect("a queue is in service");
        assert_eq!(self.load.waiting(service.queue), 0, "it is empty");
        let in_flight = self.claim.queues[service.queue].in_flight;
        if why == WaitReason::IdleTimer {
            assert_eq!(in_flight, 0, "nothing of it is in flight");
            assert!(
                service.idle_until.is_some_and(|until| at <= until),
                "the timer runs: {service:?}"
            );
        } else {
            assert_eq!(why, WaitReason::InFlight);
            assert!(in_flight > 0, "something of it is in flight");
            assert!(self.claim.may_idle(service.queue), "the device may idle for it: {service:?}");
        }
        self.shown.waits += 1;
    }

    fn judge_end(&mut self, at: Instant, why: BudgetEnd, slow: bool, of: [SectorCount; 2]) {
        let service = self.service.expect("a service that ends has begun");
        let queue = &self.claim.queues[service.queue];
        let [budget, charged] = of.map(|sectors| u64::from(sectors.0));
        match why {
            BudgetEnd::TooIdle => {
                let ended = service.idle_until.is_some_and(|until| until <= at);
                assert!(ended, "the device idled in vain: {service:?}");
            }
            BudgetEnd::Timeout => {
                let ticks = self.hz.jiffies(at) - self.hz.jiffies(service.begun);
                let times = if service.factor == INTERACTIVE { 30 } else { 1 };
                let timeout = times * i64::from(self.hz.ticks_per_s() / 8);
                assert!(ticks.count() >= timeout, "too early");
            }
            BudgetEnd::Exhausted => {
                let next = u64::from(self.load.task(service.queue).sectors);
                let one_by_one = queue.class == IoClass::Idle && self.claim.busy() > 1;
                assert!(
                    one_by_one || slow || budget < charged + next,
                    "{budget} suffice: {service:?}"
                );
            }
            BudgetEnd::NoMoreRequests => {
                let empty_at_first =
                    service.begun == at && queue.in_flight == 0 && service.dispatched == 0;
                let must_idle = self.claim.must_idle(service.queue);
                assert!(empty_at_first || !must_idle, "it has a claim: {service:?}");
            }
            BudgetEnd::Preempted => assert!(service.preempted, "another queue preempts"),
            _ => panic!("{why:?} is not judged"),
        }
    }
}

/// Runs the tasks of a seed.
pub(crate) fn run(seed: u64) -> Shown {
    Waits::new(seed).run()
}
