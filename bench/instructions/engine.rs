//! What a command takes from a front to a back end and back, but for the two themselves.
//!
//! Sixteen connections of four tenants read and write blocks of 4 KiB anywhere, four each at once,
//! on one volume or each on its own. The device takes sixteen, and the oldest of them is done at
//! every step.

use std::collections::VecDeque;
use std::fmt;

use bytes::Bytes;
use paternoster::{
    AnyScheduler, Device, Elevator, Instant, IoPrio, IocId, Nanos, NoTrace, SchedulerKind, Weight,
};
use paternoster_disk::{
    Capabilities, Command, CommandOp, Engine, Payload, Transfer, TransferId, Transferred, VolumeId,
};

/// No sink, by another type than that of the other counts: what a compiler makes of those must not
/// depend on what is here.
type Sink = (NoTrace, NoTrace);

const TENANTS: usize = 4;
const CONNECTIONS: usize = 16;
/// Commands of a connection at once.
const OUTSTANDING: u64 = 4;
const DEPTH: u32 = 16;
const BLOCK: u32 = 4096;
/// The blocks of a disk.
const BLOCKS: u64 = 1 << 28;
/// From one step to the next.
const STEP: Nanos = Nanos::from_micros(10);

/// What is counted.
#[derive(Clone, Copy)]
pub(crate) struct Config {
    scheduler: SchedulerKind,
    volumes: usize,
}

impl Config {
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let both = [SchedulerKind::None, SchedulerKind::Wfq];
        let of = |scheduler| [1, CONNECTIONS].map(|volumes| Self { scheduler, volumes });
        both.into_iter().flat_map(of)
    }
}

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.volumes {
            1 => write!(f, "engine/{}", self.scheduler),
            volumes => write!(f, "engine/{}-{volumes}-volumes", self.scheduler),
        }
    }
}

/// An engine, its device, and those who use it.
pub(crate) struct Served {
    engine: Engine<AnyScheduler<Sink>>,
    now: Instant,
    volumes: Vec<VolumeId>,
    connections: Vec<IocId>,
    in_device: VecDeque<(TransferId, Transfer)>,
    /// What is written, and read.
    data: Bytes,
    random: u64,
}

impl Served {
    /// With all commands outstanding.
    pub(crate) fn new(Config { scheduler, volumes }: Config) -> Self {
        let start = Instant::START;
        let scheduler = AnyScheduler::new(scheduler, (NoTrace, NoTrace));
        let device = Device::solid_state(DEPTH).with_native_queueing(true);
        let mut elevator = Elevator::new(scheduler, device, start);
        let mut connections = Vec::new();
        for _ in 0..TENANTS {
            let root = elevator.groups().root();
            let tenant = elevator.add_group(start, root, Weight::default());
            let connection = || elevator.add_io_context(start, IoPrio::default(), tenant);
            connections.extend(std::iter::repeat_with(connection).take(CONNECTIONS / TENANTS));
        }
        let capabilities = Capabilities::new(BLOCKS * u64::from(BLOCK), DEPTH);
        let mut engine = Engine::new(elevator);
        let add = || engine.add_volume(&capabilities).expect("there is room");
        let volumes = std::iter::repeat_with(add).take(volumes).collect();
        let mut served = Self {
            engine,
            now: start,
            volumes,
            connections,
            in_device: VecDeque::new(),
            data: Bytes::from(vec![7; BLOCK as usize]),
            random: 1,
        };
        for tag in 0..CONNECTIONS as u64 * OUTSTANDING {
            served.submit(tag);
        }
        served.settle();
        served
    }

    /// Serves so many commands, each of which is followed by another one.
    pub(crate) fn serve(&mut self, commands: u32) {
        for _ in 0..commands {
            self.now = self.now + STEP;
            while self.in_device.is_empty() {
                self.now = self.engine.poll_timeout().expect("something waits").max(self.now);
                self.engine.handle_timeout(self.now);
                self.settle();
            }
            let (id, transfer) = self.in_device.pop_front().expect("the device has something");
            let transferred = self.carried_out(&transfer);
            self.engine.transfer_done(self.now, id, transferred);
            self.settle();
            while let Some(outcome) = self.engine.poll_outcome() {
                outcome.result.expect("all goes well");
                self.submit(outcome.tag.key);
            }
            self.settle();
        }
    }

    /// The connection of that command puts another one.
    fn submit(&mut self, tag: u64) {
        let connection = usize::try_from(tag / OUTSTANDING).expect("a few");
        let random = self.next_random();
        let offset = random % BLOCKS * u64::from(BLOCK);
        let op = if random >> 63 == 0 {
            CommandOp::Read { offset, len: BLOCK }
        } else {
            CommandOp::Write { offset, data: self.data.clone(), fua: false }
        };
        let volume = self.volumes[connection % self.volumes.len()];
        let command = Command { tag: tag.into(), volume, ioc: self.connections[connection], op };
        self.engine.submit(self.now, command);
    }

    fn settle(&mut self) {
        let Self { engine, now, in_device, .. } = self;
        let mut start = |_, id, transfer| in_device.push_back((id, transfer));
        while engine.step(|| *now, &mut start).is_continue() {}
    }

    /// What becomes of a transfer.
    fn carried_out(&self, transfer: &Transfer) -> Transferred {
        let read = match transfer {
            Transfer::Read { parts, .. } => {
                // No part is longer than a command.
                parts.iter().map(|&part| self.data.slice(..part as usize)).collect()
            }
            _ => Payload::new(),
        };
        Transferred::new(Ok(transfer.len()), read)
    }

    /// A number of Marsaglia's xorshift.
    fn next_random(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }
}
