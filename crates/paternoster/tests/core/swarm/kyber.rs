//! Random loads under Kyber on a device that holds far more than it serves well: who goes next, how
//! many of a domain are in the device, and when nothing goes, beside a model that counts.
//!
//! The model does not know which token is which. When a depth falls, it marks what is in the device
//! of that domain: such a request may or may not be counted. So it knows a bound from either side:
//!
//! ```text
//!   one goes:    in the device, those marked left out  ≤  depth      (less than, before it went)
//!   none goes:   in the device, all of them            ≥  depth
//! ```

use std::collections::VecDeque;

use paternoster::{
    Bio, BioFlags, Device, Domain, Elevator, ElevatorEvent, Event, Instant, IoPrio, IocId, Kyber,
    KyberEvent, LatencyKind, Nanos, NoMerges, Op, Recorder, RequestId, Sector, SectorCount,
    Submitted, WaitReason,
};

use crate::swarm::random::Random;

const EVENTS: u32 = 60_000;
/// So many events long, the load is as it is.
const PHASE: u32 = 2500;
const TOKENS: [u32; Domain::COUNT] = [256, 128, 64, 16];
const BATCHES: [u32; Domain::COUNT] = [16, 8, 1, 1];
const OPS: [Op; Domain::COUNT] = [Op::Read, Op::Write, Op::Discard, Op::WriteZeroes];

/// What was seen, so that a test knows that it tests anything.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    pub(crate) dispatched: u64,
    /// Times that no request went though some waited.
    pub(crate) silent: u64,
    /// Depths that fell, and that rose.
    pub(crate) fell: u64,
    pub(crate) rose: u64,
    /// Dispatches while more of the domain were in the device than its depth.
    pub(crate) beyond: u64,
    /// The most requests of others that went before one of a domain that had a token, in percent of
    /// the bound.
    pub(crate) longest: u32,
}

impl Shown {
    pub(crate) fn add(&mut self, other: &Self) {
        self.dispatched += other.dispatched;
        self.silent += other.silent;
        self.fell += other.fell;
        self.rose += other.rose;
        self.beyond += other.beyond;
        self.longest = self.longest.max(other.longest);
    }
}

/// What is known of a domain from outside.
#[derive(Debug)]
struct Known {
    depth: u32,
    /// The bios that wait, in order of arrival.
    waiting: VecDeque<u64>,
    in_flight: u32,
    /// Of them, those that were there when the depth last fell.
    marked: u32,
    /// Requests of other domains dispatched since one waits here that was not refused a token.
    passed: u32,
}

/// A request in the device.
struct InFlight {
    rq: RequestId,
    domain: usize,
    /// How often the depth of its domain had fallen before it went.
    era: u32,
}

struct Load {
    elevator: Elevator<Kyber<Recorder>>,
    now: Instant,
    random: Random,
    ioc: IocId,
    known: [Known; Domain::COUNT],
    in_flight: Vec<InFlight>,
    /// How often the depth of each domain has fallen.
    eras: [u32; Domain::COUNT],
    /// The operation of each bio.
    ops: Vec<usize>,
    shown: Shown,
}

/// Runs a load and asserts what holds at each event.
pub(crate) fn run(seed: u64) -> Shown {
    let mut load = Load::new(seed);
    let mut favoured = 0;
    let mut crowd = 100;
    for event in 0..EVENTS {
        if event.is_multiple_of(PHASE) {
            favoured = load.random.index(OPS.len());
            crowd = load.random.pick(&[5, 60, 300, 500]);
            load.change();
        }
        load.pass();
        if load.outstanding() < crowd {
            load.submit(favoured);
        } else {
            load.complete();
        }
        load.follow_up();
    }
    load.finish()
}

impl Load {
    fn new(seed: u64) -> Self {
        let device = Device::solid_state(1);
        let scheduler = Kyber::new(Recorder::default());
        let mut elevator = Elevator::new(scheduler, device, Instant::START);
        elevator.set_nomerges(NoMerges::All);
        elevator.set_nr_requests(Some(u32::MAX));
        let root = elevator.groups().root();
        let ioc = elevator.add_io_context(Instant::START, IoPrio::default(), root);
        let known = TOKENS.map(|depth| Known {
            depth,
            waiting: VecDeque::new(),
            in_flight: 0,
            marked: 0,
            passed: 0,
        });
        Self {
            elevator,
            now: Instant::START,
            random: Random::new(seed),
            ioc,
            known,
            in_flight: vec![],
            eras: [0; Domain::COUNT],
            ops: vec![],
            shown: Shown::default(),
        }
    }

    /// Targets of which some are missed and some are kept, and a device that takes more or less.
    fn change(&mut self) {
        for name in ["read_lat_nsec", "write_lat_nsec"] {
            let target = self.random.pick(&[0, 2_000_000, 20_000_000, 1_000_000_000]);
            self.elevator.set_tunable(self.now, name, target).expect("Kyber has it");
        }
        self.elevator.set_depth(self.random.pick(&[4, 40, 600, 600]));
    }

    /// Requests that wait or are in the device.
    fn outstanding(&self) -> usize {
        let waiting: usize = self.known.iter().map(|known| known.waiting.len()).sum();
        waiting + self.in_flight.len()
    }

    /// A moment passes; the timer fires when it is due.
    fn pass(&mut self) {
        let then = self.now + Nanos::new(self.random.below(200_000));
        if let Some(at) = self.elevator.poll_timeout().filter(|&at| at <= then) {
            self.now = self.now.max(at);
            self.elevator.handle_timeout(self.now);
            self.follow_up();
        }
        self.now = then;
    }

    /// Half of the bios are of the favoured domain.
    fn submit(&mut self, favoured: usize) {
        let op = if self.random.one_in(2) { favoured } else { self.random.index(OPS.len()) };
        let flags = self.random.pick(&[BioFlags::empty(), BioFlags::SYNC]);
        let name = self.ops.len() as u64;
        let bio = Bio::new(OPS[op], self.ioc, Sector(100 * name), SectorCount(8))
            .with_flags(flags)
            .with_user_data(name);
        self.ops.push(op);
        let submitted = self.elevator.submit(self.now, bio);
        assert!(matches!(submitted, Submitted::Queued(_)), "nothing merges or is turned away");
        self.known[op].waiting.push_back(name);
    }

    fn complete(&mut self) {
        let which = self.random.index(self.in_flight.len());
        let InFlight { rq, domain, era } = self.in_flight.swap_remove(which);
        let known = &mut self.known[domain];
        known.in_flight -= 1;
        known.marked -= u32::from(era < self.eras[domain]);
        let _ = self.elevator.complete(self.now, rq);
    }

    /// Dispatches, and judges each dispatch and the end of them.
    fn follow_up(&mut self) {
        self.hear();
        loop {
            let given = self.elevator.dispatch(self.now);
            let (throttled, why) = self.hear();
            match given {
                Some(rq) => self.judge_dispatch(rq),
                None => return self.judge_silence(throttled, why),
            }
        }
    }

    /// Takes in the events; which domains were refused a token, and why none goes.
    fn hear(&mut self) -> ([bool; Domain::COUNT], Option<WaitReason>) {
        let mut throttled = [false; Domain::COUNT];
        let mut reason = None;
        for (_, event) in self.elevator.trace().take() {
            match event {
                Event::Kyber(KyberEvent::Throttled { domain, .. }) => {
                    let known = &mut self.known[domain as usize];
                    assert!(!known.waiting.is_empty(), "a request of {domain:?} waits");
                    assert!(known.in_flight >= known.depth, "{domain:?} has a token: {known:?}");
                    known.passed = 0;
                    throttled[domain as usize] = true;
                }
                Event::Elevator(ElevatorEvent::Waiting { why, .. }) => reason = Some(why),
                Event::Kyber(KyberEvent::DepthChanged { domain, depth, .. }) => {
                    self.change_depth(domain, depth);
                }
                Event::Kyber(KyberEvent::Latency { domain, quarters, samples, kind, .. }) => {
                    assert!(domain != Domain::Other && (1..=8).contains(&quarters) && samples > 0);
                    assert!(matches!(kind, LatencyKind::Total | LatencyKind::Device));
                }
                _ => {}
            }
        }
        (throttled, reason)
    }

    fn change_depth(&mut self, domain: Domain, depth: u32) {
        let which = domain as usize;
        assert!((1..=TOKENS[which]).contains(&depth) && domain != Domain::Other);
        let known = &mut self.known[which];
        if depth < known.depth {
            known.marked = known.in_flight;
            self.eras[which] += 1;
            self.shown.fell += 1;
        } else {
            self.shown.rose += 1;
        }
        known.depth = depth;
    }

    fn judge_dispatch(&mut self, rq: RequestId) {
        let name = self.elevator.request(rq).name();
        let domain = self.ops[usize::try_from(name).expect("an index")];
        let known = &mut self.known[domain];
        assert_eq!(known.waiting.pop_front(), Some(name), "requests of a domain keep their order");
        assert!(known.in_flight - known.marked < known.depth, "no token is left: {known:?}");
        self.shown.beyond += u64::from(known.in_flight >= known.depth);
        known.in_flight += 1;
        known.passed = 0;
        self.in_flight.push(InFlight { rq, domain, era: self.eras[domain] });
        self.shown.dispatched += 1;
        for (other, known) in self.known.iter_mut().enumerate() {
            if other != domain && !known.waiting.is_empty() {
                known.passed += 1;
                let bound = BATCHES.iter().sum::<u32>() - BATCHES[other];
                assert!(known.passed <= bound, "domain {other} starves: {known:?}");
                self.shown.longest = self.shown.longest.max(known.passed * 100 / bound);
            }
        }
    }

    /// Nothing goes only where nothing waits, or where the device is full, or where each domain
    /// with requests lacks a token.
    fn judge_silence(&mut self, throttled: [bool; Domain::COUNT], why: Option<WaitReason>) {
        let waiting = self.known.each_ref().map(|known| !known.waiting.is_empty());
        match why {
            None => assert_eq!(waiting, [false; Domain::COUNT], "a reason is given"),
            Some(WaitReason::DeviceFull) => {
                let depth = self.elevator.device().queue_depth;
                assert!(self.elevator.in_flight() >= depth && throttled == [false; 4]);
            }
            why => {
                assert_eq!(why, Some(WaitReason::NoToken), "Kyber waits for nothing else");
                assert_eq!(throttled, waiting, "each was asked: {:?}", self.known);
                self.shown.silent += 1;
            }
        }
    }

    fn finish(mut self) -> Shown {
        while !self.in_flight.is_empty() {
            self.complete();
            self.follow_up();
        }
        assert!(self.known.iter().all(|known| known.waiting.is_empty()), "all have been served");
        self.elevator.check();
        self.shown
    }
}
