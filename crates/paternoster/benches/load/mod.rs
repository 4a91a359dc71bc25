//! A closed loop of readers on a device that serves in the order in which it was given requests.
//!
//! One step is the life of a request under the law of the elevator: the oldest request in the
//! device completes, what is next goes there, and the task whose read it was submits another one.
//! Each submission looks for a merge and, the reads being random, hardly ever finds one.
//!
//! Under BFQ the tasks begin a second apart, so that their queues are not merged at their birth,
//! and `low_latency` is off: else each of them would be raised for longer than is measured.

use std::collections::VecDeque;
use std::fmt;

use paternoster::scheduler::Scheduler;
use paternoster::{
    Arrival, Bio, Device, Driver, Elevator, Instant, IoPrio, IocId, Nanos, RequestId, RingRecorder,
    Sector, SectorCount, TimeAccounts, Weight,
};

/// Requests in the device at once.
const DEVICE_DEPTH: u32 = 32;
/// The length of a read.
const READ: SectorCount = SectorCount(8);
/// Reads start at one of 2²⁸ places, so that the device holds a TiB.
const PLACES_BITS: u32 = 28;
/// From one completion to the next.
const STEP: Nanos = Nanos::from_micros(10);
/// From one task's first read to the next one's, under BFQ.
const APART: Nanos = Nanos::from_millis(1000);

/// How many read, and how much at once.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    /// Groups with tasks, of equal weight; 0 leaves all tasks in the root.
    pub(crate) groups: u32,
    /// How far below the root they are, each below groups of its own.
    pub(crate) levels: u32,
    /// Tasks of each group.
    pub(crate) tasks: u32,
    /// Reads that each task keeps outstanding.
    pub(crate) outstanding: u32,
}

impl Shape {
    /// One task, some, many, and very many, in one group; ten with one read each are post 5's load.
    pub(crate) const ALONE: [Self; 5] = [
        Self::flat(0, 1, 64),
        Self::flat(0, 10, 1),
        Self::flat(0, 16, 16),
        Self::flat(0, 256, 2),
        Self::flat(0, 4096, 1),
    ];
    /// As many as the device holds and more, one read each: BFQ changes queues with each of them.
    pub(crate) const MANY_SHALLOW: Self = Self::flat(0, 256, 1);
    /// One group, some, and many.
    pub(crate) const GROUPED: [Self; 3] =
        [Self::flat(1, 16, 16), Self::flat(8, 16, 4), Self::flat(64, 4, 4)];
    /// As many groups as a server has tenants at most.
    pub(crate) const TENANTS: Self = Self::flat(400, 1, 4);

    const fn flat(groups: u32, tasks: u32, outstanding: u32) -> Self {
        Self { groups, levels: 1, tasks, outstanding }
    }

    /// The same with its groups four levels below the root.
    const fn deep(self) -> Self {
        Self { levels: 4, ..self }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.groups > 0 {
            write!(f, "{}x", self.groups)?;
        }
        write!(f, "{}x{}", self.tasks, self.outstanding)?;
        if self.levels > 1 {
            write!(f, "-deep{}", self.levels)?;
        }
        Ok(())
    }
}

/// The sink of a server's scheduler.
pub(crate) type ServerSink = (Option<Box<RingRecorder>>, TimeAccounts);

/// The same, with a recording or without.
pub(crate) fn server_sink(is_traced: bool) -> ServerSink {
    (is_traced.then(|| Box::new(RingRecorder::new(1 << 15))), TimeAccounts::default())
}

/// The schedulers that are measured.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    None,
    MqDeadline,
    Kyber,
    Cfq,
    /// CFQ, chosen at run time.
    AnyCfq,
    /// The same with the accounts of groups and a recording that nobody has asked for, as a server
    /// has it.
    ServedCfq,
    /// The same with a recording, which nobody empties: the oldest events go.
    TracedCfq,
    /// BFQ where it does not merge queues: the device does not rotate, and queues.
    Bfq,
    /// BFQ where it may: the device rotates. These readers seek too much to be merged, so this is
    /// the cost of keeping the queues by position.
    BfqMerging,
    Wfq,
}

impl Kind {
    fn is_bfq(self) -> bool {
        matches!(self, Self::Bfq | Self::BfqMerging)
    }

    fn device(self) -> Device {
        match self {
            Self::BfqMerging => Device::disk(DEVICE_DEPTH),
            Self::Bfq => Device::solid_state(DEVICE_DEPTH).with_native_queueing(true),
            _ => Device::solid_state(DEVICE_DEPTH),
        }
    }
}

/// A scheduler under a load.
#[derive(Clone, Copy)]
pub(crate) struct Config {
    pub(crate) kind: Kind,
    pub(crate) shape: Shape,
}

impl Config {
    /// All that is measured.
    pub(crate) fn all() -> Vec<Self> {
        let mut all = vec![];
        for kind in [
            Kind::None,
            Kind::MqDeadline,
            Kind::Kyber,
            Kind::Cfq,
            Kind::Bfq,
            Kind::BfqMerging,
            Kind::Wfq,
        ] {
            all.extend(Shape::ALONE.map(|shape| Self { kind, shape }));
        }
        all.extend([Shape::MANY_SHALLOW].map(|shape| Self { kind: Kind::Bfq, shape }));
        for kind in [Kind::Cfq, Kind::Wfq] {
            for shape in Shape::GROUPED {
                all.extend([shape, shape.deep()].map(|shape| Self { kind, shape }));
            }
            all.push(Self { kind, shape: Shape::TENANTS });
        }
        let kinds = [Kind::AnyCfq, Kind::ServedCfq, Kind::TracedCfq];
        all.extend(kinds.map(|kind| Self { kind, shape: Shape::GROUPED[1] }));
        let groups = [Shape::GROUPED[1], Shape::GROUPED[1].deep()];
        all.extend(groups.map(|shape| Self { kind: Kind::Bfq, shape }));
        all
    }
}

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.kind {
            Kind::None => "none",
            Kind::MqDeadline => "mq-deadline",
            Kind::Kyber => "kyber",
            Kind::Cfq => "cfq",
            Kind::AnyCfq => "any-cfq",
            Kind::ServedCfq => "any-cfq-served",
            Kind::TracedCfq => "any-cfq-traced",
            Kind::Bfq => "bfq",
            Kind::BfqMerging => "bfq-merging",
            Kind::Wfq => "wfq",
        };
        write!(f, "{name}/{}", self.shape)
    }
}

/// An elevator whose readers are at work.
pub(crate) struct Load<S> {
    driver: Driver<S>,
    /// A task is named by its place here, and so are its bios.
    tasks: Vec<IocId>,
    in_device: VecDeque<RequestId>,
    now: Instant,
    random: u64,
}

impl<S: Scheduler> Load<S> {
    /// Every task has submitted all that it may, and the device is full.
    pub(crate) fn new(scheduler: S, Config { kind, shape }: Config) -> Self {
        let mut elevator = Elevator::new(scheduler, kind.device(), Instant::START);
        elevator.set_nr_requests(None);
        let now = Instant::START;
        if kind.is_bfq() {
            elevator.set_tunable(now, "low_latency", 0).expect("BFQ has it");
        }
        let root = elevator.groups().root();
        let groups = match shape.groups {
            0 => vec![root],
            count => (0..count)
                .map(|_| {
                    (0..shape.levels)
                        .fold(root, |parent, _| elevator.add_group(now, parent, Weight::default()))
                })
                .collect(),
        };
        // Neighbours in memory are of different groups, as tasks come and go.
        let tasks = (0..shape.tasks).flat_map(|_| &groups);
        let tasks =
            tasks.map(|&group| elevator.add_io_context(now, IoPrio::default(), group)).collect();
        let driver = Driver::new(elevator);
        let mut load = Self { driver, tasks, in_device: VecDeque::new(), now, random: 1 };
        for read in 0..shape.outstanding {
            for task in 0..load.tasks.len() {
                load.submit(task);
                if read == 0 && kind.is_bfq() {
                    load.now = load.now + APART;
                }
            }
        }
        load
    }

    /// Serves that many requests.
    pub(crate) fn serve(&mut self, requests: u32) {
        for _ in 0..requests {
            self.step();
        }
    }

    /// Serves one request, in place of which its task submits another.
    pub(crate) fn step(&mut self) {
        self.now = self.now + STEP;
        while let Some(at) = self.driver.poll_timeout()
            && (at <= self.now || self.in_device.is_empty())
        {
            self.now = self.now.max(at);
            self.driver.handle_timeout(self.now);
            self.fill_device();
        }
        let rq = self.in_device.pop_front().expect("the device is empty only for a time");
        let bios = self.driver.complete(self.now, rq);
        self.fill_device();
        for task in bios {
            self.submit(usize::try_from(task).expect("it was an index"));
        }
    }

    fn submit(&mut self, task: usize) {
        let place = self.random_place();
        let bio = Bio::read(self.tasks[task], place, READ).with_user_data(task as u64);
        let taken = self.driver.submit(self.now, bio);
        assert_ne!(taken, Arrival::Waiting, "requests are not limited");
        self.fill_device();
    }

    /// Gives the device what it takes.
    fn fill_device(&mut self) {
        self.driver.dispatch(self.now, |_, rq| self.in_device.push_back(rq));
    }

    /// The next number of Marsaglia's xorshift, as a place.
    fn random_place(&mut self) -> Sector {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        Sector((self.random >> (u64::BITS - PLACES_BITS)) * u64::from(READ.0))
    }
}
