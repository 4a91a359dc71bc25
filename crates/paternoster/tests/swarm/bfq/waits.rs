//! Every wait of BFQ has a reason that holds, and so has the end of every turn; and a queue that
//! has a claim to be waited for is.
//!
//! Tasks are sync, far apart, and have a queue each, so that a naive model (`claim.rs`) knows who
//! is busy and raised, with what in flight. It does not know their habits, by which a queue may be
//! waited for besides, where the device serves more by that.
//!
//! ```text
//!   waits for what is in flight    some is, of the queue in service, which is empty and may be
//!                                  waited for
//!   waits by the idle timer        none is; the timer runs, for as long as is due to the queue
//!   NoMoreRequests                 it need not be waited for, or was put in service though empty
//!   TooIdle                        the timer ran for its time
//!   Timeout                        the turn had its time
//!   Exhausted                      what is left does not suffice for another request
//!   Preempted                      by another queue, as was told
//!   Injected                       the queue in service is empty; the two wake each other, or the
//!                                  limit is not reached
//! ```

use std::collections::{BTreeMap, BTreeSet};

use paternoster::{
    Bfq, BudgetEnd, Device, Event, GroupId, Hz, Instant, IoPrio, Nanos, Recorder, SectorCount,
    WaitReason, Weight,
};

use crate::bfq::claim::{Claim, Queue, Turn};
use crate::load::{Load, Pace, Task};
use crate::random::Random;

/// So many events a seed.
const EVENTS: u32 = 10_000;
/// Queues that come farther apart than this, in ms, do not merge.
const APART: u64 = 650;
/// For so long a raised queue is waited for at least, and a seeky one at most.
const RAISED: Nanos = Nanos::from_millis(20);
const SEEKY: Nanos = Nanos::from_millis(2);

/// By which a weight is raised.
const INTERACTIVE: u64 = 30;
const SOFT_RT: u64 = 3000;

/// What was shown.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Shown {
    pub(crate) waits: u64,
    pub(crate) turns: u64,
    pub(crate) injected: u64,
}

impl Shown {
    pub(crate) fn add(&mut self, other: &Self) {
        self.waits += other.waits;
        self.turns += other.turns;
        self.injected += other.injected;
    }
}

struct Waits {
    load: Load<Bfq<Recorder>>,
    claim: Claim,
    turn: Option<Turn>,
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
        let device = Device {
            rotational: random.below(2) == 0,
            queue_depth: random.pick(&[1, 2, 8, 32]),
            queues: None,
            hz,
        };
        let service = Nanos::from_micros(random.pick(&[200, 1000, 3000]));
        let strict = random.one_in(6);
        let slice_idle = random.pick(&[0, 2, 8, 8, 8, 16]);
        let slice_idle = if strict { slice_idle.max(8) } else { slice_idle };
        let low_latency = random.below(2);
        let max_budget = random.pick(&[0, 512, 4096]);
        let mut load = Load::new(Bfq::new(Recorder::default()), random, device, service);
        load.tune("strict_guarantees", strict.into());
        load.tune("slice_idle", slice_idle);
        load.tune("low_latency", low_latency);
        load.tune("max_budget", max_budget);
        let claim = Claim::new(device.rotational, Nanos::from_millis(slice_idle), strict);
        let (limits, woken) = (BTreeMap::new(), BTreeSet::new());
        let mut waits =
            Self { load, claim, turn: None, hz, limits, woken, shown: Shown::default() };
        waits.add_tasks();
        waits
    }

    fn add_tasks(&mut self) {
        let (elevator, now) = (&mut self.load.elevator, self.load.now);
        let root = elevator.groups().root();
        let outer = elevator.add_group(now, root, Weight::default());
        let inner = elevator.add_group(now, outer, Weight::default());
        let places = [(root, vec![]), (outer, vec![outer]), (inner, vec![inner, outer])];
        let grouped = self.load.random.one_in(3);
        let mixed = self.load.random.one_in(3);
        for _ in 0..self.load.random.pick(&[1, 2, 3, 5]) {
            let place = if grouped { self.load.random.index(places.len()) } else { 0 };
            self.add_task(&places[place], mixed);
        }
    }

    fn add_task(&mut self, place: &(GroupId, Vec<GroupId>), mixed: bool) {
        let random = &mut self.load.random;
        let texts: &[_] = if mixed { &["be/4", "be/0", "be/7", "rt/4", "idle"] } else { &["be/4"] };
        let io_prio: IoPrio = random.pick(texts).parse().expect("an I/O priority");
        let longest = random.pick(&[10, 500, 5000, 30_000]);
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
        let events = self.load.step();
        // A completion is told of after what follows from it.
        for &(_, event) in &events {
            if let Event::Completed { rq } = event {
                let queue = self.load.task_of_request(rq);
                self.claim.queues[queue].in_flight -= 1;
                self.claim.rests(queue);
            }
        }
        for (position, &(at, event)) in events.iter().enumerate() {
            self.hear(at, event, &events[position + 1..]);
        }
    }

    fn hear(&mut self, at: Instant, event: Event, later: &[(Instant, Event)]) {
        match event {
            Event::Listed { queue } => self.claim.becomes_busy(self.load.task_of(queue.ioc)),
            Event::Unlisted { queue } => {
                let queue = self.load.task_of(queue.ioc);
                self.claim.queues[queue].busy = false;
                // The last request of a queue is told of after that it has none.
                if !self.is_sent(queue, later) {
                    self.claim.rests(queue);
                }
            }
            Event::Raised { queue, factor, .. } => {
                let queue = self.load.task_of(queue.ioc);
                assert!([1, INTERACTIVE, SOFT_RT].contains(&factor.into()), "by {factor}");
                self.claim.queues[queue].factor = factor.into();
            }
            Event::HardwareQueueing { now, .. } => self.claim.device_queues = Some(now),
            Event::InjectionLimit { queue, limit } => {
                self.limits.insert(self.load.task_of(queue.ioc), limit);
            }
            Event::WakerFound { queue, waker } => {
                let [queue, waker] = [queue, waker].map(|name| self.load.task_of(name.ioc));
                self.woken.retain(|&(other, _)| other != queue);
                self.woken.insert((queue, waker));
            }
            Event::Dispatched { rq } => self.send(self.load.task_of_request(rq)),
            Event::Injected { queue, .. } => self.judge_injected(self.load.task_of(queue.ioc)),
            Event::InService { queue, weight, .. } => {
                let queue = self.load.task_of(queue.ioc);
                let Queue { weight: own, factor, .. } = self.claim.queues[queue];
                assert_eq!(u64::from(weight), own * factor, "it is raised, or is not");
                let (sent, idle_until, preempted) = (0, None, false);
                self.turn = Some(Turn { queue, begun: at, factor, sent, idle_until, preempted });
            }
            Event::Preempted { over, .. } => {
                let over = self.load.task_of(over.ioc);
                let turn = self.turn.as_mut().expect("somebody is preempted");
                assert_eq!(turn.queue, over, "it is whose turn it is");
                turn.preempted = true;
            }
            Event::Idling { length, .. } => self.judge_idling(at, length),
            Event::BudgetExpired { why, slow, service, budget, .. } => {
                self.judge_end(at, why, slow, [budget, service]);
                self.end_turn(later);
            }
            Event::Waiting { why } => self.judge_wait(at, why),
            _ => {}
        }
    }

    /// Whether a request of the queue is sent, before it becomes busy again.
    fn is_sent(&self, queue: usize, later: &[(Instant, Event)]) -> bool {
        let first = later.iter().find_map(|&(_, event)| match event {
            Event::Dispatched { rq } if self.load.task_of_request(rq) == queue => Some(true),
            Event::Listed { queue: name } if self.load.task_of(name.ioc) == queue => Some(false),
            _ => None,
        });
        first == Some(true)
    }

    fn send(&mut self, queue: usize) {
        self.claim.queues[queue].in_flight += 1;
        if let Some(turn) = self.turn.as_mut().filter(|turn| turn.queue == queue) {
            turn.sent += u64::from(self.load.task(queue).sectors);
            turn.idle_until = None;
            self.claim.apply_raising(queue);
        }
    }

    fn end_turn(&mut self, later: &[(Instant, Event)]) {
        let turn = self.turn.take().expect("a turn that ends has begun");
        let leaves = matches!(
            later.first(),
            Some(&(_, Event::Unlisted { queue })) if self.load.task_of(queue.ioc) == turn.queue
        );
        if !leaves {
            self.claim.apply_raising(turn.queue);
        }
        self.shown.turns += 1;
    }

    fn judge_injected(&mut self, queue: usize) {
        let turn = self.turn.expect("a queue is in service");
        assert_eq!(self.load.waiting(turn.queue), 0, "the queue in service is empty");
        let related =
            [(queue, turn.queue), (turn.queue, queue)].iter().any(|pair| self.woken.contains(pair));
        let limit = self.limits.get(&turn.queue).copied().unwrap_or(0);
        assert!(related || self.claim.in_flight() < limit, "injected beyond {limit}");
        self.shown.injected += 1;
    }

    fn judge_idling(&mut self, at: Instant, length: Nanos) {
        let turn = self.turn.as_mut().expect("a queue is in service");
        let queue = &self.claim.queues[turn.queue];
        assert_eq!(queue.in_flight, 0, "nothing of it is in flight");
        assert!(self.claim.may_wait(turn.queue), "it may be waited for: {turn:?}");
        let slice_idle = self.claim.slice_idle;
        let seeky = queue.factor == 1 && !self.claim.is_asymmetric(turn.queue);
        let due = if queue.factor > 1 { slice_idle.max(RAISED) } else { slice_idle };
        assert!(length == due || (seeky && length == slice_idle.min(SEEKY)), "{length:?} is due");
        turn.idle_until = Some(at + length);
    }

    fn judge_wait(&mut self, at: Instant, why: WaitReason) {
        if why == WaitReason::DeviceFull {
            return;
        }
        if why == WaitReason::OneAtATime {
            return assert!(
                self.claim.strict && self.claim.in_flight() > 0,
                "one is in the device"
            );
        }
        let turn = self.turn.expect("a queue is in service");
        assert_eq!(self.load.waiting(turn.queue), 0, "it is empty");
        let in_flight = self.claim.queues[turn.queue].in_flight;
        if why == WaitReason::IdleTimer {
            assert_eq!(in_flight, 0, "nothing of it is in flight");
            assert!(turn.idle_until.is_some_and(|until| at <= until), "the timer runs: {turn:?}");
        } else {
            assert_eq!(why, WaitReason::InFlight);
            assert!(in_flight > 0, "something of it is in flight");
            assert!(self.claim.may_wait(turn.queue), "it may be waited for: {turn:?}");
        }
        self.shown.waits += 1;
    }

    fn judge_end(&mut self, at: Instant, why: BudgetEnd, slow: bool, of: [SectorCount; 2]) {
        let turn = self.turn.expect("a turn that ends has begun");
        let queue = &self.claim.queues[turn.queue];
        let [budget, service] = of.map(|sectors| u64::from(sectors.0));
        match why {
            BudgetEnd::TooIdle => {
                let ended = turn.idle_until.is_some_and(|until| until <= at);
                assert!(ended, "it was waited for in vain: {turn:?}");
            }
            BudgetEnd::Timeout => {
                let ticks = self.hz.jiffies(at) - self.hz.jiffies(turn.begun);
                let times = if turn.factor == INTERACTIVE { 30 } else { 1 };
                let timeout = times * i64::from(self.hz.ticks_per_s() / 8);
                assert!(ticks.count() >= timeout, "too early");
            }
            BudgetEnd::Exhausted => {
                let next = u64::from(self.load.task(turn.queue).sectors);
                let one_by_one = queue.class == paternoster::IoClass::Idle && self.claim.busy() > 1;
                assert!(
                    one_by_one || slow || budget < service + next,
                    "{budget} suffice: {turn:?}"
                );
            }
            BudgetEnd::NoMoreRequests => {
                let empty_at_first = turn.begun == at && queue.in_flight == 0 && turn.sent == 0;
                let must_wait = self.claim.must_wait(turn.queue);
                assert!(empty_at_first || !must_wait, "it has a claim: {turn:?}");
            }
            BudgetEnd::Preempted => assert!(turn.preempted, "somebody preempts"),
        }
    }
}

/// Runs the tasks of a seed.
pub(crate) fn run(seed: u64) -> Shown {
    Waits::new(seed).run()
}
