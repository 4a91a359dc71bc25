//! What the tests of the engine share: an engine in virtual time, whose transfers the test carries
//! out by hand, in any order and with any result.

pub(crate) mod devices;
pub(crate) mod far;
pub(crate) mod far_server;
pub(crate) mod front;
pub(crate) mod guest;
pub(crate) mod random;
pub(crate) mod recorder;

use std::cell::Cell;
use std::ops::Range;
use std::path::Path;

use bytes::Bytes;
use paternoster::scheduler::Scheduler;
use paternoster::{
    AnyScheduler, Device, Elevator, Instant, IoPrio, IocId, Limits, Nanos, NoTrace, Op,
    SchedulerKind, Weight,
};
use paternoster_disk::{
    Backend, CacheChoice, Capabilities, Command, CommandOp, Engine, FileBackend, FileOptions,
    IoEngine, Outcome, Payload, Ring, SyncRange, Transfer, TransferId, Transferred, VolumeId,
};
use rustix::io::Errno;

/// The engine that is tested.
pub(crate) type TestEngine = Engine<AnyScheduler<NoTrace>>;

/// Its elevator.
pub(crate) type TestElevator = Elevator<AnyScheduler<NoTrace>>;

/// Bytes in a sector.
pub(crate) const SECTOR: u64 = 512;

/// By what the tests have rings carry operations out: io_uring, or what `TEST_ENGINE` says.
pub(crate) fn io_engine() -> IoEngine {
    let Ok(name) = std::env::var("TEST_ENGINE") else { return IoEngine::IoUring };
    let named = IoEngine::ALL.into_iter().find(|engine| engine.name() == name);
    named.unwrap_or_else(|| panic!("TEST_ENGINE={name}: it is io_uring or threads"))
}

/// A ring for the thread that calls this.
pub(crate) fn new_ring<T>() -> Ring<T> {
    Ring::new(io_engine()).expect("a ring")
}

/// A clock that stands until it is moved.
#[derive(Debug)]
pub(crate) struct ManualClock(Cell<Instant>);

impl ManualClock {
    pub(crate) fn advance(&self, span: Nanos) {
        self.0.set(self.0.get() + span);
    }

    pub(crate) fn advance_to(&self, at: Instant) {
        self.0.set(self.0.get().max(at));
    }

    pub(crate) fn now(&self) -> Instant {
        self.0.get()
    }
}

/// An engine whose device is the test: it sees every transfer and says what becomes of it.
pub(crate) struct Rig {
    pub(crate) engine: TestEngine,
    /// Whose commands it submits.
    pub(crate) volume: VolumeId,
    pub(crate) clock: ManualClock,
    /// Connections 0 and 1 are of one tenant, 2 and 3 of another.
    pub(crate) connections: Vec<IocId>,
    /// Transfers in the device, in the order in which they began.
    pub(crate) in_device: Vec<(TransferId, Transfer)>,
    /// Syncs that have begun.
    pub(crate) syncs_begun: usize,
}

/// An engine of one volume whose device can do that.
pub(crate) fn one_volume<S: Scheduler>(
    elevator: Elevator<S>,
    capabilities: &Capabilities,
) -> (Engine<S>, VolumeId) {
    let mut engine = Engine::new(elevator);
    let volume = engine.add_volume(capabilities).expect("there is room");
    (engine, volume)
}

/// An elevator with two tenants of two connections each.
pub(crate) fn elevator(kind: SchedulerKind, depth: u32) -> (TestElevator, Vec<IocId>) {
    elevator_with(kind, Device::solid_state(depth), 2)
}

/// An elevator with two tenants, of so many connections each; the first tenant's come first.
pub(crate) fn elevator_with(
    kind: SchedulerKind,
    device: Device,
    connections_each: usize,
) -> (TestElevator, Vec<IocId>) {
    let mut elevator = Elevator::new(AnyScheduler::new(kind, NoTrace), device, Instant::START);
    let mut connections = Vec::new();
    for weight in [100, 300] {
        let weight = Weight::new(weight).expect("a weight that is allowed");
        let root = elevator.groups().root();
        let tenant = elevator.add_group(Instant::START, root, weight);
        for _ in 0..connections_each {
            connections.push(elevator.add_io_context(Instant::START, IoPrio::default(), tenant));
        }
    }
    (elevator, connections)
}

/// The whole blocks among those bytes of a disk: a trim has no effect on others.
pub(crate) fn trimmed(bytes: Range<usize>, block: usize, disk: usize) -> Range<usize> {
    let start = bytes.start.next_multiple_of(block).min(disk);
    let end = if bytes.end == disk { disk } else { bytes.end / block * block };
    start..end.max(start)
}

/// A file as a disk that is written to.
pub(crate) fn open_file(path: &Path, cache: CacheChoice) -> Box<dyn Backend> {
    let options = FileOptions { read_only: false, cache };
    // A child that a test beside has forked holds the lock of a file closed since, until its exec.
    let opened = (0..500).find_map(|_| match FileBackend::open(path, options) {
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
            std::thread::sleep(std::time::Duration::from_millis(10));
            None
        }
        opened => Some(opened),
    });
    Box::new(opened.expect("nobody has locked it for long").expect("it opens"))
}

/// What a big device can do of which any byte can be written, and that zeroes without writing.
pub(crate) fn any_byte() -> Capabilities {
    Capabilities::new(1 << 50, 4)
}

/// Bios and requests that became part of others.
pub(crate) fn merges(elevator: &TestElevator) -> u64 {
    let groups = elevator.groups().iter().map(|(group, _)| elevator.stats().group(group));
    groups.flat_map(|group| Op::ALL.map(|op| group.op(op).merged)).sum()
}

impl Rig {
    /// On a device that takes `depth` transfers at once and can zero without writing.
    pub(crate) fn new(kind: SchedulerKind, depth: u32) -> Self {
        Self::of(kind, depth, &any_byte())
    }

    /// The same on a device that can do that.
    pub(crate) fn of(kind: SchedulerKind, depth: u32, capabilities: &Capabilities) -> Self {
        let (elevator, connections) = elevator(kind, depth);
        let (engine, volume) = one_volume(elevator, capabilities);
        let clock = ManualClock(Cell::new(Instant::START));
        Self { engine, volume, clock, connections, in_device: Vec::new(), syncs_begun: 0 }
    }

    /// The disk has a further volume, whose device can do that.
    pub(crate) fn add_volume(&mut self, capabilities: &Capabilities) -> VolumeId {
        let volume = self.engine.add_volume(capabilities).expect("there is room");
        self.settle();
        volume
    }

    /// The same, whose requests and discards are cut at so many sectors.
    pub(crate) fn with_short_requests(kind: SchedulerKind, depth: u32, sectors: u32) -> Self {
        let mut rig = Self::new(kind, depth);
        rig.cut_at(sectors, 1);
        rig
    }

    /// Requests and discards are cut at so many sectors, where blocks of so many end.
    pub(crate) fn cut_at(&mut self, sectors: u32, block_sectors: u32) {
        let limits = Limits::default()
            .with_max_sectors(sectors)
            .with_max_discard_sectors(sectors)
            .with_block_sectors(block_sectors);
        self.engine.administer(|elevator| elevator.set_limits(limits));
    }

    /// mq-deadline with one transfer at a time, which is in the device already: what is submitted
    /// now waits and may merge until [`Rig::let_go`].
    pub(crate) fn held_back() -> Self {
        let mut rig = Self::new(SchedulerKind::MqDeadline, 1);
        rig.submit(0, BLOCKER, read(1 << 40, 512));
        assert_eq!(rig.in_device.len(), 1, "the blocker is in the device");
        rig
    }

    /// The same on a device that can do that.
    pub(crate) fn held_back_on(capabilities: &Capabilities) -> Self {
        let mut rig = Self::of(SchedulerKind::MqDeadline, 1, capabilities);
        rig.submit(0, BLOCKER, read(1 << 40, 4096));
        rig
    }

    /// Ends the transfer that holds the others back.
    pub(crate) fn let_go(&mut self) {
        self.finish_next();
        let [outcome] = &self.outcomes()[..] else { panic!("the blocker alone is done") };
        assert_eq!(outcome.tag.key, BLOCKER);
    }

    /// A connection puts a command.
    pub(crate) fn submit(&mut self, connection: usize, tag: u64, op: CommandOp) {
        self.submit_to(self.volume, connection, tag, op);
    }

    /// A connection puts a command to that volume.
    pub(crate) fn submit_to(
        &mut self,
        volume: VolumeId,
        connection: usize,
        tag: u64,
        op: CommandOp,
    ) {
        let ioc = self.connections[connection];
        self.engine.submit(self.clock.now(), Command { tag: tag.into(), volume, ioc, op });
        self.settle();
    }

    /// The transfer of that name is done.
    pub(crate) fn finish(&mut self, id: TransferId, result: Result<u64, Errno>) {
        let index = self.in_device.iter().position(|(of, _)| *of == id).expect("it is in flight");
        self.finish_nth(index, result);
    }

    /// The sync that runs is done.
    pub(crate) fn finish_sync(&mut self, result: Result<u64, Errno>) {
        self.finish(TransferId::Sync(self.volume), result);
    }

    /// The transfer that began as the `index`th of those in the device is done.
    pub(crate) fn finish_nth(&mut self, index: usize, result: Result<u64, Errno>) {
        let (id, transfer) = self.in_device.remove(index);
        let read = match transfer {
            Transfer::Read { parts, .. } => {
                let done = result.map_or(0, |bytes| usize::try_from(bytes).expect("small"));
                in_parts(&parts, &vec![0; done])
            }
            Transfer::ReadInto { parts, .. } => {
                let done = result.map_or(0, |bytes| usize::try_from(bytes).expect("small"));
                guest::in_places(&parts, &vec![0; done])
            }
            _ => Payload::new(),
        };
        let transferred = Transferred::new(result, read);
        self.engine.transfer_done(self.clock.now(), id, transferred);
        self.settle();
    }

    /// The read that began as the `index`th of those in the device has got that.
    pub(crate) fn finish_read(&mut self, index: usize, data: &[u8]) {
        let (id, transfer) = self.in_device.remove(index);
        let read = match transfer {
            Transfer::Read { parts, .. } => in_parts(&parts, data),
            Transfer::ReadInto { parts, .. } => guest::in_places(&parts, data),
            _ => panic!("a read is read"),
        };
        let transferred = Transferred::new(Ok(data.len() as u64), read);
        self.engine.transfer_done(self.clock.now(), id, transferred);
        self.settle();
    }

    /// The earliest transfer in the device succeeds: what it was.
    pub(crate) fn finish_next(&mut self) -> Shape {
        let shape = Shape::of(&self.in_device[0].1);
        let len = self.in_device[0].1.len();
        self.finish_nth(0, Ok(len));
        shape
    }

    /// Everything succeeds in the order in which it began, until nothing is in flight: what it
    /// was.
    pub(crate) fn finish_all(&mut self) -> Vec<Shape> {
        let mut shapes = Vec::new();
        while !self.in_device.is_empty() {
            shapes.push(self.finish_next());
        }
        shapes
    }

    /// What is in the device, in the order in which it began.
    pub(crate) fn shapes(&self) -> Vec<Shape> {
        self.in_device.iter().map(|(_, transfer)| Shape::of(transfer)).collect()
    }

    pub(crate) fn outcomes(&mut self) -> Vec<Outcome> {
        std::iter::from_fn(|| self.engine.poll_outcome()).collect()
    }

    /// What became of the commands that are done, by tag in the order of their ends.
    pub(crate) fn results(&mut self) -> Vec<(u64, Result<(), Errno>)> {
        self.outcomes().into_iter().map(|one| (one.tag.key, one.result.map(drop))).collect()
    }

    pub(crate) fn settle(&mut self) {
        self.step();
        // A scheduler that idles goes on when its timer says so, not before.
        while self.in_device.is_empty()
            && let Some(at) = self.engine.poll_timeout()
        {
            self.clock.advance_to(at);
            self.engine.handle_timeout(self.clock.now());
            self.step();
        }
    }

    /// Has the engine take steps until nothing waits to be submitted.
    pub(crate) fn step(&mut self) {
        let Self { engine, clock, in_device, syncs_begun, .. } = self;
        let mut start = |_, id, transfer| {
            *syncs_begun += usize::from(matches!(id, TransferId::Sync(_)));
            in_device.push((id, transfer));
        };
        while engine.step(|| clock.now(), &mut start).is_continue() {}
    }
}

/// The tag of the command that holds others back.
const BLOCKER: u64 = u64::MAX;

/// A sync of the whole disk.
pub(crate) const SYNC: Shape = Shape::Sync(SyncRange::Whole);

/// What was read, in the buffers of those parts; the last may be short, or there may be none.
pub(crate) fn in_parts(parts: &[u32], data: &[u8]) -> Payload {
    let mut left = data;
    let each = parts.iter().map(|&part| {
        let (of_part, further) = left.split_at(left.len().min(part as usize));
        left = further;
        Bytes::copy_from_slice(of_part)
    });
    each.collect()
}

/// A transfer, as tests compare it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Read { offset: u64, parts: Vec<usize> },
    Cache { offset: u64, len: u64 },
    Write { offset: u64, parts: Vec<usize> },
    Trim { offset: u64, len: u64 },
    Zero { offset: u64, len: u64, allocate: bool },
    Sync(SyncRange),
}

impl Shape {
    pub(crate) fn of(transfer: &Transfer) -> Self {
        match transfer {
            Transfer::Read { offset, parts } => {
                let parts = parts.iter().map(|&part| part as usize).collect();
                Self::Read { offset: *offset, parts }
            }
            Transfer::ReadInto { offset, parts } => {
                let parts = parts.iter().map(|part| part.len() as usize).collect();
                Self::Read { offset: *offset, parts }
            }
            Transfer::Write { offset, from } => {
                Self::Write { offset: *offset, parts: from.iter().map(Bytes::len).collect() }
            }
            Transfer::Cache { offset, len } => Self::Cache { offset: *offset, len: *len },
            Transfer::Trim { offset, len } => Self::Trim { offset: *offset, len: *len },
            Transfer::Zero { offset, len, allocate } => {
                Self::Zero { offset: *offset, len: *len, allocate: *allocate }
            }
            Transfer::Sync { range } => Self::Sync(range.clone()),
        }
    }

    /// A sync of these bytes.
    pub(crate) fn sync_of(bytes: Range<u64>) -> Self {
        Self::Sync(SyncRange::Bytes(bytes))
    }

    /// First byte and the byte behind the last; none of a sync.
    pub(crate) fn range(&self) -> Option<(u64, u64)> {
        let sum = |parts: &[usize]| parts.iter().sum::<usize>() as u64;
        let (offset, len) = match self {
            Self::Read { offset, parts } | Self::Write { offset, parts } => (*offset, sum(parts)),
            Self::Cache { offset, len }
            | Self::Trim { offset, len }
            | Self::Zero { offset, len, .. } => (*offset, *len),
            Self::Sync(_) => return None,
        };
        Some((offset, offset + len))
    }
}

pub(crate) fn read(offset: u64, len: u32) -> CommandOp {
    CommandOp::Read { offset, len }
}

pub(crate) fn cache(offset: u64, len: u32) -> CommandOp {
    CommandOp::Cache { offset, len }
}

/// Writes that many bytes of value `fill`.
pub(crate) fn write(offset: u64, len: usize, fill: u8) -> CommandOp {
    CommandOp::Write { offset, data: Bytes::from(vec![fill; len]), fua: false }
}

/// The same, durable when it is answered.
pub(crate) fn write_fua(offset: u64, len: usize, fill: u8) -> CommandOp {
    CommandOp::Write { offset, data: Bytes::from(vec![fill; len]), fua: true }
}

pub(crate) fn trim(offset: u64, len: u32, fua: bool) -> CommandOp {
    CommandOp::Trim { offset, len, fua }
}

pub(crate) fn zero(offset: u64, len: u32, fua: bool) -> CommandOp {
    CommandOp::Zero { offset, len, fua, allocate: false, fast: false }
}

/// Runs what must not hang on a thread of its own, and fails if it does.
pub(crate) fn within_a_minute(work: impl FnOnce() + Send + 'static) {
    let (ended, end) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        work();
        let _ = ended.send(());
    });
    let hangs = end.recv_timeout(std::time::Duration::from_secs(60))
        == Err(std::sync::mpsc::RecvTimeoutError::Timeout);
    assert!(!hangs, "it hangs");
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}
