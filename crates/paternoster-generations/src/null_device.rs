//! The null device and its elevator, which all ways end at: what is dispatched is done at once.

use paternoster::{
    AnyScheduler, Batch, Bio, Device, Elevator, Instant, IoPrio, IocId, NoTrace, SchedulerKind,
    Submitted,
};

use crate::completions::Done;

/// How many requests the device takes at once. No way has so many in flight.
const DEPTH: u32 = 1 << 16;

/// The scheduler before the null device: those that hold nothing back, as nobody asks a null device
/// again later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scheduler {
    /// In order of arrival.
    None,
    /// In sector order, with deadlines.
    #[default]
    MqDeadline,
}

impl Scheduler {
    /// Both.
    pub const ALL: [Self; 2] = [Self::None, Self::MqDeadline];

    /// Its name in sysfs.
    pub fn name(self) -> &'static str {
        self.kind().name()
    }

    fn kind(self) -> SchedulerKind {
        match self {
            Self::None => SchedulerKind::None,
            Self::MqDeadline => SchedulerKind::MqDeadline,
        }
    }
}

/// An elevator and its null device.
#[derive(Debug)]
pub(crate) struct NullDevice {
    elevator: Elevator<AnyScheduler<NoTrace>>,
    ioc: IocId,
    /// The latest time that it was told. Submitters' clocks are read before they wait for a lock,
    /// so an earlier time may come later.
    latest: Instant,
}

impl NullDevice {
    pub(crate) fn new(scheduler: Scheduler, now: Instant) -> Self {
        let scheduler = AnyScheduler::new(scheduler.kind(), NoTrace);
        let mut elevator = Elevator::new(scheduler, Device::solid_state(DEPTH), now);
        // The load bounds what is outstanding.
        elevator.set_nr_requests(None);
        let root = elevator.groups().root();
        let ioc = elevator.add_io_context(now, IoPrio::default(), root);
        Self { elevator, ioc, latest: now }
    }

    /// The I/O context of all bios.
    pub(crate) fn ioc(&self) -> IocId {
        self.ioc
    }

    /// Requests that wait.
    pub(crate) fn queued(&self) -> u32 {
        self.elevator.queued()
    }

    pub(crate) fn in_flight(&self) -> u32 {
        self.elevator.in_flight()
    }

    fn advance(&mut self, now: Instant) -> Instant {
        self.latest = self.latest.max(now);
        self.latest
    }

    pub(crate) fn add(&mut self, now: Instant, bio: Bio) {
        let now = self.advance(now);
        let submitted = self.elevator.submit(now, bio);
        assert!(!matches!(submitted, Submitted::Later(_)), "all may enter");
    }

    pub(crate) fn add_batch(&mut self, now: Instant, batch: Batch) {
        let now = self.advance(now);
        for chain in batch.chains {
            self.elevator.submit_chain(now, chain).expect("all may enter");
        }
    }

    /// Dispatches as many requests at most, each of which is done at once. Returns how many there
    /// were.
    pub(crate) fn run(&mut self, now: Instant, most: u32, done: &mut Done) -> u32 {
        let now = self.advance(now);
        for number in 0..most {
            let Some(rq) = self.elevator.dispatch(now) else { return number };
            for name in self.elevator.complete(now, rq).user_data {
                done.add(name);
            }
        }
        most
    }

    /// Dispatches all that waits.
    pub(crate) fn run_all(&mut self, now: Instant, done: &mut Done) -> u32 {
        self.run(now, u32::MAX, done)
    }
}
