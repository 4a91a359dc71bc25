//! An elevator, and the little that must be known of it to drive it and to judge what it does.

use std::collections::VecDeque;

use paternoster::{
    AnyScheduler, Bio, BioFlags, Device, Elevator, GroupId, Instant, IoPrio, IocId, Limits, Nanos,
    NoMerges, Op, Recorder, RequestId, SchedulerKind, Sector, SectorCount, Submitted, Weight,
};

use crate::random::Random;

/// The elevator's invariants are asserted every so many events.
const CHECK_EVERY: u64 = 32;
/// Sectors that are used, in units of 8: few, so that much merges.
const UNITS: u64 = 150;

struct Context {
    ioc: IocId,
    group: GroupId,
    exited: bool,
    /// Bios that have not come back.
    outstanding: u32,
    /// Of them, those that were told `Later`.
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
    elevator: Elevator<AnyScheduler<Recorder>>,
    now: Instant,
    contexts: Vec<Context>,
    /// The root first.
    groups: Vec<GroupId>,
    in_device: Vec<RequestId>,
    /// Bios that were told `Later`, in order of arrival.
    later: VecDeque<Bio>,
    /// For each bio its context, until it has come back.
    bios: Vec<Option<usize>>,
    events: u64,
    digest: u64,
}

fn scheduler(kind: SchedulerKind) -> AnyScheduler<Recorder> {
    AnyScheduler::new(kind, Recorder::default())
}

impl Swarm {
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let kind = random.pick(&SchedulerKind::ALL);
        let depth = random.pick(&[1, 2, 8, 32]);
        let elevator = Elevator::new(scheduler(kind), Device::disk(depth));
        let root = elevator.groups().root();
        let mut swarm = Self {
            random,
            elevator,
            now: Instant::START,
            contexts: vec![],
            groups: vec![root],
            in_device: vec![],
            later: VecDeque::new(),
            bios: vec![],
            events: 0,
            digest: 0,
        };
        swarm.add_group();
        for _ in 0..4 {
            swarm.add_context();
        }
        swarm
    }

    /// One random event, and what follows by the law.
    pub(crate) fn event(&mut self) {
        self.now = self.now + Nanos::from_micros(self.random.below(300));
        match self.random.below(1000) {
            0..470 => self.submit(),
            470..880 => self.complete(),
            880..920 => self.requeue(),
            920..925 => self.switch(),
            925..935 => self.tune(),
            935..940 => self.limit(),
            940..942 => self.cancel(),
            942..960 => self.wait_long(),
            _ => self.administrate(),
        }
        self.follow_up();
    }

    /// Lets everything come to its end, those who were turned away when they are called; the
    /// digest of the trace.
    pub(crate) fn finish(mut self) -> u64 {
        self.follow_up();
        while !self.bios.iter().all(Option::is_none) {
            if self.in_device.is_empty() {
                let at = self.elevator.poll_timeout().expect("it waits for something");
                self.now = self.now.max(at);
                self.elevator.handle_timeout(self.now);
            } else {
                self.complete();
            }
            self.follow_up();
        }
        assert_eq!((self.elevator.queued(), self.elevator.in_device()), (0, 0));
        self.digest
    }

    /// Dispatches, and judges.
    fn follow_up(&mut self) {
        while let Some(rq) = self.elevator.dispatch(self.now) {
            assert!(!self.in_device.contains(&rq), "a request is dispatched once");
            self.in_device.push(rq);
        }
        for (at, event) in self.elevator.trace().take() {
            for byte in format!("{at:?}{event:?}").bytes() {
                self.digest = (self.digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
            }
        }
        self.events += 1;
        if self.events.is_multiple_of(CHECK_EVERY) {
            self.check();
        }
    }

    fn check(&mut self) {
        self.elevator.check();
        assert_eq!(self.elevator.in_device() as usize, self.in_device.len());
        let stats = self.groups.iter().map(|&group| self.elevator.stats().group(group));
        let (queued, in_device) =
            stats.fold((0, 0), |sum, group| (sum.0 + group.queued, sum.1 + group.in_device));
        assert_eq!(queued, self.elevator.queued(), "what waits, by group");
        assert_eq!(in_device, self.elevator.in_device(), "what runs, by group");
    }

    fn submit(&mut self) {
        let context = self.live_context();
        let op = self.random.pick(&[
            Op::Read,
            Op::Read,
            Op::Read,
            Op::Write,
            Op::Write,
            Op::Discard,
            Op::WriteZeroes,
            Op::Flush,
        ]);
        let flag = match self.random.below(20) {
            0 => BioFlags::FUA,
            1 => BioFlags::PREFLUSH,
            2 => BioFlags::NO_MERGE,
            3..8 => BioFlags::SYNC,
            _ => BioFlags::empty(),
        };
        let units = if op == Op::Flush { 0 } else { 1 + self.random.below(3) };
        let bio = Bio {
            op,
            flags: if op == Op::Flush { BioFlags::empty() } else { flag },
            sector: Sector(8 * self.random.below(UNITS)),
            sectors: SectorCount(u32::try_from(8 * units).expect("a few sectors")),
            segments: 1 + u16::try_from(self.random.below(3)).expect("a few"),
            ioc: self.contexts[context].ioc,
            user_data: self.bios.len() as u64,
        };
        self.bios.push(Some(context));
        self.contexts[context].outstanding += 1;
        if let Submitted::Later(bio) = self.elevator.submit(self.now, bio) {
            self.contexts[context].later += 1;
            self.later.push_back(bio);
        }
    }

    /// Those who were turned away try again, in order, until one is turned away again.
    fn resubmit(&mut self) {
        while let Some(bio) = self.later.pop_front() {
            if let Submitted::Later(bio) = self.elevator.resubmit(self.now, bio) {
                self.later.push_front(bio);
                return;
            }
            let index = usize::try_from(bio.user_data).expect("an index");
            let context = self.bios[index].expect("it has not come back");
            self.contexts[context].later -= 1;
            self.follow_up();
        }
    }

    fn complete(&mut self) {
        if self.in_device.is_empty() {
            return;
        }
        let which = self.random.index(self.in_device.len());
        let rq = self.in_device.swap_remove(which);
        let bios = self.elevator.complete(self.now, rq);
        for &bio in &bios.user_data {
            self.come_back(bio);
        }
        if bios.call_waiters {
            self.resubmit();
        }
    }

    fn come_back(&mut self, bio: u64) {
        let bio = usize::try_from(bio).expect("an index");
        let context = self.bios[bio].take().expect("a bio comes back once");
        self.contexts[context].outstanding -= 1;
    }

    fn requeue(&mut self) {
        if self.in_device.is_empty() {
            return;
        }
        let which = self.random.index(self.in_device.len());
        let rq = self.in_device.swap_remove(which);
        self.elevator.requeue(self.now, rq);
    }

    fn switch(&mut self) {
        let to = self.random.pick(&SchedulerKind::ALL);
        self.elevator.switch(self.now, scheduler(to));
    }

    fn tune(&mut self) {
        let kind = paternoster::Scheduler::name(self.elevator.scheduler()).parse();
        let tunables = SchedulerKind::tunables(kind.expect("its own name"));
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
                let limits = Limits {
                    max_sectors: self.random.pick(&[24, 64, 2560]),
                    max_segments: self.random.pick(&[3, 8, 128]),
                    chunk_sectors: self.random.pick(&[0, 0, 128]),
                    virt_boundary: self.random.pick(&[0, 0, 8191]),
                    ..Limits::default()
                };
                self.elevator.set_limits(limits);
            }
        }
    }

    fn cancel(&mut self) {
        let cancelled = self.elevator.cancel_queued(self.now);
        let called = cancelled.iter().any(|bios| bios.call_waiters);
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
        self.elevator.handle_timeout(self.now);
    }

    fn administrate(&mut self) {
        let which = self.live_context();
        let Context { ioc, later, .. } = self.contexts[which];
        match self.random.below(7) {
            0 => self.add_context(),
            1 => self.add_group(),
            2 => self.remove_a_group(),
            3 => {
                let group = self.random.pick(&self.groups);
                let (weight, leaf) = (self.weight(), self.weight());
                self.elevator.set_weight(self.now, group, weight, leaf);
            }
            4 => {
                let io_prio = self.io_prio();
                self.elevator.set_io_priority(self.now, ioc, io_prio);
            }
            5 => {
                let group = self.random.pick(&self.groups);
                self.elevator.move_to_group(self.now, ioc, group);
                self.contexts[which].group = group;
            }
            // One that waits outside keeps its context.
            6 if later == 0 => {
                self.elevator.exit_io_context(self.now, ioc);
                self.contexts[which].exited = true;
                self.add_context();
            }
            _ => {}
        }
    }

    /// One that has not exited; there always is one.
    fn live_context(&mut self) -> usize {
        let live = self.contexts.iter().enumerate().filter(|(_, context)| !context.exited);
        let live: Vec<usize> = live.map(|(index, _)| index).collect();
        self.random.pick(&live)
    }

    fn add_context(&mut self) {
        if self.contexts.iter().filter(|context| !context.exited).count() >= 6 {
            return;
        }
        let (io_prio, group) = (self.io_prio(), self.random.pick(&self.groups));
        let ioc = self.elevator.io_context(self.now, io_prio, group);
        self.contexts.push(Context { ioc, group, exited: false, outstanding: 0, later: 0 });
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
            || stats.in_device > 0
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
