//! An elevator, and the little that must be known of it to drive it and to judge what it does.
//!
//! It has no `Driver` on purpose: it judges each answer by itself, [`Submitted::Later`], whether a
//! completion or a cancel wakes the waiters, and the one reason for each dispatch that gives
//! nothing.

use std::collections::{BTreeSet, VecDeque};

use paternoster::scheduler::Scheduler;
use paternoster::{
    AnyScheduler, Batch, Bio, BioFlags, Chain, DeviceWeights, Elevator, GroupId, Hierarchy, Hz,
    Instant, IoPrio, IocId, Kernel, Limits, Nanos, NoMerges, Op, Plug, PlugLimits, Recorder,
    Request, RequestId, SchedulerKind, Submitted, Weight, Weights,
};

use crate::swarm::habit::{Habit, Streams};
use crate::swarm::judge::{Given, Silence, Witness, depth_of_wfq};
use crate::swarm::random::Random;

/// The elevator's invariants are asserted every so many events.
const CHECK_EVERY: u64 = 16;
/// So many events long, the swarm is as busy as it is.
const PHASE: u64 = 250;

/// Contexts that have not exited; more only for a while after many began together.
const CONTEXTS: usize = 6;

/// How busy the swarm is.
struct Phase {
    /// Of 880 events, how many are arrivals; the others are completions.
    arrivals: u64,
    /// About how long it is from one event to the next.
    pause: Pause,
}

#[derive(Clone, Copy)]
enum Pause {
    Short,
    Long,
    /// About as long as idling is worth it.
    Thinking,
}

impl Phase {
    fn draw(random: &mut Random) -> Self {
        let pauses = [Pause::Short, Pause::Short, Pause::Long, Pause::Thinking];
        Self { arrivals: random.pick(&[250, 400, 470, 600]), pause: random.pick(&pauses) }
    }

    fn pause(&self, random: &mut Random) -> Nanos {
        match self.pause {
            Pause::Short => Nanos::from_micros(random.below(300)),
            Pause::Long => Nanos::from_micros(random.below(3000)),
            Pause::Thinking => {
                let millis = random.pick(&[0, 0, 1, 1, 2, 4, 8, 8, 16]);
                Nanos::new(Nanos::from_millis(millis).as_nanos() + random.below(3))
            }
        }
    }
}

struct Context {
    ioc: IocId,
    group: GroupId,
    habit: Habit,
    exited: bool,
    /// Bios that have not come back.
    outstanding: u32,
    /// Of them, those that got `Later`.
    later: u32,
}

impl Context {
    /// Whether the elevator may have forgotten it.
    fn is_gone(&self) -> bool {
        self.exited && self.outstanding == 0
    }
}

pub(crate) struct Swarm {
    random: Random,
    /// The schedulers between which it switches.
    kinds: &'static [SchedulerKind],
    phase: Phase,
    streams: Streams,
    elevator: Elevator<AnyScheduler<Recorder>>,
    now: Instant,
    /// A timeout that has passed, and of which the elevator was not notified.
    overdue: Option<Instant>,
    contexts: Vec<Context>,
    /// The root first.
    groups: Vec<GroupId>,
    in_flight: Vec<RequestId>,
    given: Given,
    /// Requests that wfq took as they arrived.
    taken: BTreeSet<RequestId>,
    /// Bios, and chains of them, that got `Later`, in order of arrival.
    later: VecDeque<Chain>,
    /// For each bio its context, until it has come back.
    bios: Vec<Option<usize>>,
    events: u64,
    witness: Witness,
}

fn count(chain: &Chain) -> u32 {
    u32::try_from(chain.bios().len()).expect("a few")
}

/// A scheduler of one of these kinds; CFQ as every other kernel but mostly v4.20.
fn scheduler(random: &mut Random, kinds: &[SchedulerKind]) -> AnyScheduler<Recorder> {
    let kind = random.pick(kinds);
    if kind == SchedulerKind::Cfq && random.below(2) == 0 {
        let kernel = random.pick(&Kernel::ALL);
        return AnyScheduler::with_kernel(kind, Recorder::default(), kernel).expect("it has them");
    }
    AnyScheduler::new(kind, Recorder::default())
}

impl Swarm {
    /// Of one seed in three with all schedulers, of one with CFQ alone, of one with BFQ alone.
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let kinds: &[_] = match seed % 3 {
            0 => &SchedulerKind::ALL,
            1 => &[SchedulerKind::Cfq],
            _ => &[SchedulerKind::Bfq],
        };
        let device = random
            .device(&[1, 2, 8, 32])
            .with_hz(Hz::new(random.pick(&[1000, 250])).expect("a clock"));
        let scheduler = scheduler(&mut random, kinds);
        let elevator = Elevator::new(scheduler, device, Instant::START);
        let root = elevator.groups().root();
        let mut swarm = Self {
            phase: Phase::draw(&mut random),
            random,
            kinds,
            streams: Streams::default(),
            elevator,
            now: Instant::START,
            overdue: None,
            contexts: vec![],
            groups: vec![root],
            in_flight: vec![],
            given: Given::default(),
            taken: BTreeSet::new(),
            later: VecDeque::new(),
            bios: vec![],
            events: 0,
            witness: Witness::default(),
        };
        swarm.add_group();
        for _ in 0..4 {
            swarm.add_context();
        }
        swarm
    }

    /// One random event, and what follows by the law.
    pub(crate) fn event(&mut self) {
        if self.events.is_multiple_of(PHASE) {
            self.phase = Phase::draw(&mut self.random);
        }
        let pause = self.phase.pause(&mut self.random);
        self.pass(pause);
        match self.random.below(1000) {
            event if event < self.phase.arrivals => self.submit(),
            0..880 => self.complete(),
            880..900 => self.requeue(),
            900..903 => self.switch(),
            903..910 => self.tune(),
            910..915 => self.limit(),
            915..917 => self.cancel(),
            917..935 => self.wait_long(),
            _ => self.administrate(),
        }
        self.events += 1;
        self.follow_up();
        if self.events.is_multiple_of(CHECK_EVERY) {
            self.check();
        }
    }

    /// Time passes; timers fire at their very moments, or now and then late.
    fn pass(&mut self, pause: Nanos) {
        let then = self.now + pause;
        while let Some(at) = self.elevator.poll_timeout().filter(|&at| at <= then) {
            if self.random.one_in(8) {
                break;
            }
            self.now = self.now.max(at);
            self.elevator.handle_timeout(self.now);
            self.follow_up();
        }
        self.now = then;
        self.overdue = self.elevator.poll_timeout().filter(|&at| at <= then);
    }

    /// Lets everything come to its end, those who were turned away when they are called; the
    /// what was seen of the trace.
    pub(crate) fn finish(mut self) -> Witness {
        self.follow_up();
        while !self.bios.iter().all(Option::is_none) {
            if self.in_flight.is_empty() {
                let at = self.elevator.poll_timeout().expect("it waits for something");
                self.now = self.now.max(at);
                self.elevator.handle_timeout(self.now);
            } else {
                self.complete();
            }
            self.follow_up();
        }
        assert_eq!((self.elevator.queued(), self.elevator.in_flight()), (0, 0));
        self.check();
        self.witness
    }

    /// Dispatches, and judges.
    fn follow_up(&mut self) {
        self.look_at_trace();
        while let Some(rq) = self.elevator.dispatch(self.now) {
            assert!(!self.in_flight.contains(&rq), "a request is dispatched once");
            self.in_flight.push(rq);
            let request = self.elevator.request(rq);
            let bypasses = bypasses(request) && !self.taken.contains(&rq);
            self.given.note(rq, request, bypasses);
        }
        let asked = self.elevator.trace().take();
        let kind = self.kind();
        self.witness.see(kind, &asked);
        // mq-deadline lets a lower class wait for what a higher one has in flight, without an
        // event.
        let reports = !matches!(kind, SchedulerKind::None | SchedulerKind::MqDeadline);
        if reports && self.elevator.queued() > 0 {
            let strict = self.elevator.scheduler().tunable("strict_guarantees");
            let moves_queues = self.elevator.tunable("group_isolation").is_ok();
            let silence = Silence {
                kind,
                now: self.now,
                in_flight: self.elevator.in_flight(),
                queue_depth: self.elevator.device().queue_depth,
                depth_of_wfq: depth_of_wfq(self.elevator.scheduler()),
                given: &self.given,
                timeout: self.elevator.poll_timeout(),
                overdue: self.overdue,
                one_at_a_time: strict == Ok(1),
                group_of_async: moves_queues.then(|| self.elevator.groups().root()),
            };
            silence.judge(&asked, &self.witness);
        }
    }

    fn look_at_trace(&mut self) {
        let events = self.elevator.trace().take();
        self.witness.see(self.kind(), &events);
    }

    fn kind(&self) -> SchedulerKind {
        self.elevator.scheduler().name().parse().expect("its own name")
    }

    fn check(&mut self) {
        self.elevator.check();
        assert_eq!(self.elevator.in_flight() as usize, self.in_flight.len());
        let stats = self.groups.iter().map(|&group| self.elevator.stats().group(group));
        let (queued, in_flight) =
            stats.fold((0, 0), |sum, group| (sum.0 + group.queued, sum.1 + group.in_flight));
        assert_eq!(queued, self.elevator.queued(), "what waits, by group");
        assert_eq!(in_flight, self.elevator.in_flight(), "requests in flight, by group");
    }

    fn submit(&mut self) {
        let context = self.live_context();
        if self.random.one_in(16) {
            self.submit_by_plug(context);
        } else {
            self.submit_of(context);
        }
    }

    fn submit_of(&mut self, context: usize) {
        let bio = self.make_bio(context);
        self.submit_bio(bio);
    }

    /// Several bios of a context come by way of a plug.
    fn submit_by_plug(&mut self, context: usize) {
        let rules = self.elevator.plug_rules();
        let mut batches = vec![];
        let mut plug = Plug::new(PlugLimits::default(), |(), batch: Batch| batches.push(batch));
        for _ in 0..2 + self.random.below(40) {
            plug.submit(self.now, (), self.make_bio(context), &rules);
        }
        drop(plug);
        for chain in batches.into_iter().flat_map(|batch| batch.chains) {
            if let &[bio] = chain.bios()
                && bio.bypasses()
            {
                self.submit_bio(bio);
            } else if let Err(chain) = self.elevator.submit_chain(self.now, chain) {
                self.contexts[context].later += count(&chain);
                self.later.push_back(chain);
            }
        }
    }

    fn make_bio(&mut self, context: usize) -> Bio {
        let habit = &mut self.contexts[context].habit;
        let op = habit.op(&mut self.random);
        let flags = habit.flags(&mut self.random);
        let (sector, sectors) = habit.range(&mut self.random, &mut self.streams);
        let ioc = self.contexts[context].ioc;
        let bio = match op {
            Op::Flush => Bio::flush(ioc),
            _ => Bio::new(op, ioc, sector, sectors).with_flags(flags),
        };
        let segments = 1 + u16::try_from(self.random.below(3)).expect("a few");
        let bio = bio.with_segments(segments).with_user_data(self.bios.len() as u64);
        self.bios.push(Some(context));
        self.contexts[context].outstanding += 1;
        bio
    }

    fn submit_bio(&mut self, bio: Bio) {
        if let Err(bio) = self.try_bio(bio) {
            let context = self.context_of(&bio);
            self.contexts[context].later += 1;
            self.later.push_back(bio.into());
        }
    }

    /// Submits a bio; it is returned if it has to come again later.
    fn try_bio(&mut self, bio: Bio) -> Result<(), Bio> {
        match self.elevator.submit(self.now, bio) {
            Submitted::Later(bio) => return Err(bio),
            // wfq takes what is durable; it stays with the scheduler after a switch.
            Submitted::Queued(rq) if self.kind() == SchedulerKind::Wfq => {
                let preflush = bio.op == Op::Flush || bio.flags.contains(BioFlags::PREFLUSH);
                self.taken.extend((!preflush).then_some(rq));
            }
            _ => {}
        }
        Ok(())
    }

    /// Those who were turned away try again, in order, until one is turned away again.
    fn resubmit(&mut self) {
        while let Some(chain) = self.later.pop_front() {
            let (bios, context) = (count(&chain), self.context_of(&chain.bios()[0]));
            let submitted = match chain.bios() {
                &[bio] if bio.bypasses() => self.try_bio(bio).map_err(Into::into),
                _ => self.elevator.submit_chain(self.now, chain),
            };
            if let Err(chain) = submitted {
                self.later.push_front(chain);
                return;
            }
            self.contexts[context].later -= bios;
            self.follow_up();
        }
    }

    fn context_of(&self, bio: &Bio) -> usize {
        let index = usize::try_from(bio.user_data).expect("an index");
        self.bios[index].expect("it has not come back")
    }

    fn complete(&mut self) {
        if self.in_flight.is_empty() {
            return;
        }
        let which = self.random.index(self.in_flight.len());
        let rq = self.in_flight.swap_remove(which);
        self.given.forget(rq);
        let bios = self.elevator.complete(self.now, rq);
        for &bio in &bios.user_data {
            self.come_back(bio);
        }
        if bios.wake_waiters {
            self.resubmit();
        }
    }

    fn come_back(&mut self, bio: u64) {
        let bio = usize::try_from(bio).expect("an index");
        let context = self.bios[bio].take().expect("a bio comes back once");
        self.contexts[context].outstanding -= 1;
    }

    fn requeue(&mut self) {
        if self.in_flight.is_empty() {
            return;
        }
        let which = self.random.index(self.in_flight.len());
        let rq = self.in_flight.swap_remove(which);
        self.given.requeue(rq, self.kind());
        self.elevator.requeue(self.now, rq);
    }

    fn switch(&mut self) {
        self.look_at_trace();
        let to = scheduler(&mut self.random, self.kinds);
        let kind = self.kind();
        let mut old = self.elevator.switch(self.now, to);
        self.witness.see(kind, &old.trace().take());
        self.given.clear();
        self.witness.moved_among.clear();
    }

    fn tune(&mut self) {
        if self.elevator.hierarchy().is_some() && self.random.one_in(3) {
            let hierarchy = self.random.pick(&Hierarchy::ALL);
            self.elevator.set_hierarchy(self.now, hierarchy).expect("it has one");
            return;
        }
        let tunables = self.elevator.scheduler().tunables();
        if tunables.is_empty() {
            return;
        }
        let name = tunables[self.random.index(tunables.len())].name;
        let value = self.random.pick(&[-1, 0, 1, 2, 16, 500]);
        self.elevator.set_tunable(self.now, name, value).expect("one of its own");
    }

    fn limit(&mut self) {
        match self.random.below(5) {
            0 => self.elevator.set_depth(self.random.pick(&[1, 2, 8, 32])),
            1 => self.elevator.set_nr_requests(self.random.pick(&[None, Some(1), Some(64)])),
            2 => {
                let levels = [NoMerges::Off, NoMerges::Off, NoMerges::SimpleOnly, NoMerges::All];
                self.elevator.set_nomerges(self.random.pick(&levels));
            }
            3 => self.elevator.set_scan_depth(self.random.pick(&[1, 8, 100])),
            _ => {
                let limits = Limits::default()
                    .with_max_sectors(self.random.pick(&[24, 64, 2560]))
                    .with_max_segments(self.random.pick(&[3, 8, 128]))
                    .with_chunk_sectors(self.random.pick(&[0, 0, 128]))
                    .with_virt_boundary(self.random.pick(&[0, 0, 8191]));
                self.elevator.set_limits(limits);
            }
        }
    }

    fn cancel(&mut self) {
        let cancelled = self.elevator.cancel_queued(self.now);
        let called = cancelled.iter().any(|bios| bios.wake_waiters);
        let bios: Vec<u64> = cancelled.into_iter().flat_map(|bios| bios.user_data).collect();
        for bio in bios {
            self.come_back(bio);
        }
        if called {
            self.resubmit();
        }
    }

    /// Long enough for deadlines; up to the elevator's own timeout, where it has one.
    fn wait_long(&mut self) {
        let later = self.now + Nanos::from_millis(self.random.below(1000));
        self.now = match self.elevator.poll_timeout() {
            Some(at) if self.random.below(2) == 0 => self.now.max(at),
            _ => later,
        };
        self.overdue = None;
        self.elevator.handle_timeout(self.now);
    }

    fn administrate(&mut self) {
        let which = self.live_context();
        let Context { ioc, later, .. } = self.contexts[which];
        match self.random.below(9) {
            0 => self.add_context(),
            8 if self.random.one_in(2) && self.live() <= CONTEXTS => self.crowd(),
            1 => self.add_group(),
            2 => self.remove_a_group(),
            3 => self.weigh(),
            4 => {
                let io_prio = self.io_prio();
                self.elevator.set_io_priority(self.now, ioc, io_prio);
            }
            5 => {
                let group = self.some_group();
                self.elevator.move_to_group(self.now, ioc, group);
                self.contexts[which].group = group;
            }
            7 => self.contexts[which].habit = Habit::draw(&mut self.random),
            // One that waits outside keeps its context.
            6 if later == 0 => {
                self.elevator.exit_io_context(self.now, ioc);
                self.contexts[which].exited = true;
                self.add_context();
            }
            _ => {}
        }
    }

    fn weigh(&mut self) {
        let group = self.random.pick(&self.groups);
        let (weight, leaf) = (self.weight(), self.weight());
        if self.random.below(2) == 0 {
            return self.elevator.set_weight(self.now, group, Weights { weight, leaf });
        }
        let weights = DeviceWeights {
            weight: self.random.pick(&[None, Some(weight)]),
            leaf: self.random.pick(&[None, Some(leaf)]),
        };
        self.elevator.set_device_weights(self.now, group, weights);
    }

    /// Contexts that have not exited.
    fn live(&self) -> usize {
        self.contexts.iter().filter(|context| !context.exited).count()
    }

    /// One that has not exited; there always is one.
    fn live_context(&mut self) -> usize {
        let live = self.contexts.iter().enumerate().filter(|(_, context)| !context.exited);
        let live: Vec<usize> = live.map(|(index, _)| index).collect();
        self.random.pick(&live)
    }

    /// Many tasks begin together.
    fn crowd(&mut self) {
        let group = self.some_group();
        for _ in 0..10 {
            self.add_context_to(group);
            self.submit_of(self.contexts.len() - 1);
            self.follow_up();
        }
    }

    fn add_context(&mut self) {
        if self.live() < CONTEXTS {
            let group = self.some_group();
            self.add_context_to(group);
        }
    }

    fn add_context_to(&mut self, group: GroupId) {
        let io_prio = self.io_prio();
        let ioc = self.elevator.add_io_context(self.now, io_prio, group);
        let habit = Habit::draw(&mut self.random);
        let context = Context { ioc, group, habit, exited: false, outstanding: 0, later: 0 };
        self.contexts.push(context);
    }

    /// The root as often as any other, so that tasks meet.
    fn some_group(&mut self) -> GroupId {
        if self.random.below(2) == 0 { self.groups[0] } else { self.random.pick(&self.groups) }
    }

    fn add_group(&mut self) {
        if self.groups.len() < 10 {
            let parent = self.random.pick(&self.groups);
            let weight = self.weight();
            self.groups.push(self.elevator.add_group(self.now, parent, weight));
        }
    }

    fn remove_a_group(&mut self) {
        let which = self.random.index(self.groups.len());
        let group = self.groups[which];
        let groups = self.elevator.groups();
        let is_parent = groups.iter().any(|(_, other)| other.parent == Some(group));
        let stats = self.elevator.stats().group(group);
        let is_used = stats.queued > 0
            || stats.in_flight > 0
            || self.contexts.iter().any(|context| context.group == group && !context.is_gone());
        if which > 0 && !is_parent && !is_used {
            self.elevator.remove_group(self.now, group);
            self.groups.swap_remove(which);
        }
    }

    fn weight(&mut self) -> Weight {
        Weight::new(self.random.pick(&[1, 10, 100, 500, 1000])).expect("a weight")
    }

    fn io_prio(&mut self) -> IoPrio {
        let texts = ["rt/0", "rt/7", "be/0", "be/4", "be/4", "be/4", "be/7", "idle"];
        self.random.pick(&texts).parse().expect("an I/O priority")
    }
}

/// Returns whether the scheduler was never notified of it.
fn bypasses(rq: &Request) -> bool {
    rq.op == Op::Flush || rq.flags.intersects(BioFlags::FUA | BioFlags::PREFLUSH)
}
