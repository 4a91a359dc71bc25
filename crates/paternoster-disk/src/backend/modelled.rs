//! Memory behind a model of a device: each transfer takes the time that a model says.
//!
//! ```text
//!   transfer ──▶ bytes are moved at once ──▶ Model ──▶ at the end that it says: done
//! ```
//!
//! A transfer ends on the model's schedule, however late the owner wakes up to hear of it: all that
//! is due is delivered then, and the next one has begun in the model long before. So the device's
//! throughput is what it is said to be, as long as it has enough to do.
//!
//! The volumes of a pool are memory each, behind one device: what one of them asks of it, the
//! others wait for. Each has sectors of its own there, the first that are free.
//!
//! ```text
//!   volume a ─┐           ┌─▶ ended, of a
//!             ├──▶ Model ─┤
//!   volume b ─┘           └─▶ ended, of b
//! ```

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use paternoster::{Instant, Nanos, Sector, SectorCount};
use paternoster_model::disk::LayoutError;
use paternoster_model::{
    Chance, Command, Described, Kind, Model, Op, ServersParameters, Service, Stages, op_of_zeroes,
};
use slab::Slab;

use super::memory::Memory;
use super::{Backend, Capabilities, Extent, TransferDone};
use crate::engine::{Transfer, TransferId};
use crate::ring::Ring;
use crate::token::Token;

const SECTOR: u64 = 512;
/// The most requests that a disk has in its device.
const DEPTH_MAX: u32 = 1024;
/// The seed of a device's random times.
const SEED: u64 = 1;

/// What `stat` reports of a modelled device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelledStats {
    /// The name or file of the device, where it has one.
    pub name: Option<String>,
    /// The servers, and how long each takes for a request, where it is made of servers.
    pub servers: Option<ServersTime>,
    /// Time for which it could have served more: summed over servers, where it is made of such;
    /// else that in which it had nothing.
    pub idle: Nanos,
}

/// Servers, and the time of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServersTime {
    /// Transfers served at once.
    pub servers: u32,
    /// Time of any transfer but a sync.
    pub fixed: Nanos,
    /// Further time for each KiB that is read, written, trimmed or zeroed.
    pub per_kib: Nanos,
    /// Time of a sync, which keeps no server.
    pub sync: Nanos,
}

impl ServersTime {
    /// Returns how long a transfer of so many bytes keeps one of the servers.
    pub fn time(&self, bytes: u64) -> Nanos {
        let further = bytes.div_ceil(SECTOR).saturating_mul(self.per_kib.as_nanos()) / 2;
        self.fixed + Nanos::new(further)
    }

    /// Those of a device, where it is made of servers whose times do not vary.
    fn of(device: &Described) -> Option<Self> {
        let Kind::Servers(parameters) = &device.kind else { return None };
        if device.stages != Stages::default() {
            return None;
        }
        let Service { fixed, per_kib, .. } = parameters.service;
        Some(Self { servers: parameters.constant()?, fixed, per_kib, sync: Nanos::ZERO })
    }
}

/// A device that one disk has, or that the volumes of a pool share.
#[derive(Clone, Debug)]
pub struct ModelledDevice(Arc<Mutex<Device>>);

/// Names a volume of a device.
type Key = usize;

struct Device {
    name: Option<String>,
    model: Box<dyn Model + Send>,
    servers: Option<ServersTime>,
    /// How many commands it was given.
    given: u64,
    /// What is in the model, by the tags of its commands, with whose it is.
    in_model: Slab<(Key, TransferDone)>,
    /// What finds no room there.
    waiting: VecDeque<(Command, Key, TransferDone)>,
    /// Syncs that take time, with when each ends; in that order.
    syncing: VecDeque<(Instant, Key, TransferDone)>,
    /// What is known of each volume.
    volumes: Slab<OfVolume>,
    /// The first sector of each volume, with its end; none of a device without positions.
    places: BTreeMap<u64, u64>,
    idle: Nanos,
    /// Up to when that is counted.
    idle_until: Instant,
}

/// The transfers of one volume.
#[derive(Debug, Default)]
struct OfVolume {
    /// Those that the device has yet to end.
    in_device: u32,
    /// What has ended, and when.
    ended: VecDeque<(Instant, TransferDone)>,
}

/// A disk or volume in memory whose transfers take the time of a model.
#[derive(Debug)]
pub struct ModelledBackend {
    memory: Memory,
    device: ModelledDevice,
    key: Key,
    /// Its first sector on the device.
    first: u64,
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, servers) = (&self.name, &self.servers);
        f.debug_struct("Device")
            .field("name", name)
            .field("servers", servers)
            .finish_non_exhaustive()
    }
}

impl ModelledDevice {
    /// An idle device that may have a name.
    pub fn new(name: Option<&str>, device: &Described) -> Result<Self, LayoutError> {
        Self::of(name, device, ServersTime::of(device))
    }

    /// Idle servers.
    pub fn of_servers(time: ServersTime) -> Self {
        let service = Service { per_kib: time.per_kib, ..Service::constant(time.fixed) };
        let device = Kind::Servers(ServersParameters::new(time.servers, service));
        Self::of(None, &device.into(), Some(time)).expect("servers have no layout")
    }

    fn of(
        name: Option<&str>,
        device: &Described,
        servers: Option<ServersTime>,
    ) -> Result<Self, LayoutError> {
        Ok(Self(Arc::new(Mutex::new(Device {
            name: name.map(str::to_owned),
            model: device.open(SEED)?,
            servers,
            given: 0,
            in_model: Slab::new(),
            waiting: VecDeque::new(),
            syncing: VecDeque::new(),
            volumes: Slab::new(),
            places: BTreeMap::new(),
            idle: Nanos::ZERO,
            idle_until: Instant::START,
        }))))
    }

    /// A volume of `size` bytes, all of them zero; none where the device has not so many sectors
    /// left beside one another.
    pub fn volume(&self, size: usize) -> Option<ModelledBackend> {
        let mut device = self.lock();
        let first = device.take_place((size as u64).div_ceil(SECTOR))?;
        let key = device.volumes.insert(OfVolume::default());
        drop(device);
        Some(ModelledBackend { memory: Memory::new(size), device: self.clone(), key, first })
    }

    /// What a volume of so many bytes can do.
    pub fn capabilities(&self, size: u64) -> Capabilities {
        let device = self.lock();
        // More than twice its servers only wait in it.
        let enough = device.servers.map_or(DEPTH_MAX, |servers| servers.servers.saturating_mul(2));
        let depth = device.model.depth().min(enough);
        let rotational = device.model.rotational();
        Capabilities { rotational, ..Capabilities::new(size, depth) }
    }

    fn lock(&self) -> MutexGuard<'_, Device> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Device {
    /// Takes the first free sectors that are so many beside one another.
    fn take_place(&mut self, sectors: u64) -> Option<u64> {
        let mut first = 0;
        for (&begin, &end) in &self.places {
            if begin - first >= sectors {
                break;
            }
            first = end;
        }
        let end = first.checked_add(sectors).filter(|end| *end <= self.model.end().0)?;
        self.places.insert(first, end);
        Some(first)
    }

    /// Has the sectors from `first` on be so many; where those behind them are not free, a volume
    /// goes elsewhere. Returns where it begins then; none if there is no room.
    fn grow_place(&mut self, first: u64, sectors: u64) -> Option<u64> {
        let before = self.places.remove(&first)?;
        let begin = self.take_place(sectors);
        if begin.is_none() {
            self.places.insert(first, before);
        }
        begin
    }

    /// Has the device do all that it does by then.
    fn advance(&mut self, now: Instant) {
        while let Some(at) = self.next_end().filter(|at| *at <= now) {
            self.count_idle(at);
            while self.syncing.front().is_some_and(|(end, ..)| *end <= at) {
                let (_, key, done) = self.syncing.pop_front().expect("there is one");
                self.end(at, key, done);
            }
            while let Some(done) = self.model.poll(at) {
                let (key, done) = self.in_model.remove(done.tag as usize);
                self.end(at, key, done);
                if let Some((command, key, done)) = self.waiting.pop_front() {
                    self.submit(at, command, key, done);
                }
            }
        }
        self.count_idle(now);
    }

    /// When the next command of any volume ends.
    fn next_end(&self) -> Option<Instant> {
        let sync = self.syncing.front().map(|(at, ..)| *at);
        self.model.poll_timeout().into_iter().chain(sync).min()
    }

    fn start(&mut self, now: Instant, command: Command, key: Key, done: TransferDone) {
        self.advance(now);
        self.volumes[key].in_device += 1;
        let sync = self.servers.map_or(Nanos::ZERO, |servers| servers.sync);
        if command.op == Op::Flush && sync > Nanos::ZERO {
            self.syncing.push_back((now + sync, key, done));
        } else if !self.model.takes(command.op) {
            self.end(now, key, done);
        } else if self.in_model.len() < self.model.depth() as usize {
            self.submit(now, command, key, done);
        } else {
            self.waiting.push_back((command, key, done));
        }
    }

    /// Gives the model a command that it has room for.
    fn submit(&mut self, now: Instant, command: Command, key: Key, done: TransferDone) {
        let tag = self.in_model.insert((key, done));
        let tag = u32::try_from(tag).expect("its depth is a u32");
        self.given += 1;
        let chance = Chance::of(0, self.given);
        self.model.submit(now, Command { tag, chance, ..command });
    }

    fn end(&mut self, at: Instant, key: Key, done: TransferDone) {
        let of = &mut self.volumes[key];
        of.in_device -= 1;
        of.ended.push_back((at, done));
    }

    /// Counts the time up to `to`, in which nothing has ended.
    fn count_idle(&mut self, to: Instant) {
        self.idle += self.idle_since(to);
        self.idle_until = self.idle_until.max(to);
    }

    /// The idle time that is not counted yet, if nothing ends by `to`.
    fn idle_since(&self, to: Instant) -> Nanos {
        let most = self.servers.map_or(1, |servers| u64::from(servers.servers));
        let free = most.saturating_sub(self.in_model.len() as u64);
        Nanos::new(to.saturating_since(self.idle_until).as_nanos().saturating_mul(free))
    }
}

impl ModelledBackend {
    /// Makes an idle disk of `size` bytes, all of them zero, on a device of its own that has as
    /// many.
    pub fn new(size: usize, name: Option<&str>, device: &Described) -> Result<Self, LayoutError> {
        let device = ModelledDevice::new(name, device)?;
        Ok(device.volume(size).expect("the device has as many"))
    }

    /// Makes an idle disk of `size` bytes, all of them zero, on servers of its own.
    pub fn of_servers(size: usize, time: ServersTime) -> Self {
        ModelledDevice::of_servers(time).volume(size).expect("servers have no end")
    }
}

impl Drop for ModelledBackend {
    fn drop(&mut self) {
        let mut device = self.device.lock();
        device.places.remove(&self.first);
        device.volumes.remove(self.key);
    }
}

/// The command for a transfer, without tag and chance; zeroes are written by that operation.
fn command(transfer: &Transfer, zeroes: Op) -> Command {
    let (op, offset) = match *transfer {
        Transfer::Read { offset, .. }
        | Transfer::ReadInto { offset, .. }
        | Transfer::Cache { offset, .. } => (Op::Read, offset),
        Transfer::Write { offset, .. } => (Op::Write, offset),
        Transfer::Zero { offset, .. } => (zeroes, offset),
        Transfer::Trim { offset, .. } => (Op::Discard, offset),
        Transfer::Sync { .. } => (Op::Flush, 0),
    };
    let len = if op == Op::Flush { 0 } else { transfer.len() };
    let first = offset / SECTOR;
    let sectors = if len == 0 { 0 } else { (offset + len).div_ceil(SECTOR) - first };
    let sectors = SectorCount(u32::try_from(sectors).unwrap_or(u32::MAX));
    let (sector, chance) = (Sector(first), Chance::default());
    Command { tag: 0, op, durable: false, sector, sectors, chance }
}

impl Backend for ModelledBackend {
    fn capabilities(&self) -> Capabilities {
        self.device.capabilities(self.memory.size())
    }

    fn rotational_because(&self) -> String {
        let device = self.device.lock();
        let rotates = if device.model.rotational() { "rotates" } else { "does not rotate" };
        match &device.name {
            Some(name) => format!("{name} {rotates}"),
            None => "a disk in memory is not rotational".to_owned(),
        }
    }

    fn start(&mut self, ring: &mut Ring<Token>, now: Instant, id: TransferId, transfer: Transfer) {
        let mut device = self.device.lock();
        let mut command = command(&transfer, op_of_zeroes(&*device.model));
        command.sector = Sector(command.sector.0 + self.first);
        let transferred = self.memory.carry_out(transfer, ring.spare());
        device.start(now, command, self.key, TransferDone { id, transferred });
    }

    fn grow(&mut self, size: u64) -> io::Result<()> {
        let refused = || io::Error::from(io::ErrorKind::StorageFull);
        let bytes = usize::try_from(size).map_err(|_| refused())?;
        let place = self.device.lock().grow_place(self.first, size.div_ceil(SECTOR));
        self.first = place.ok_or_else(refused)?;
        self.memory.grow(bytes);
        Ok(())
    }

    fn take_done(&mut self, now: Instant) -> Option<TransferDone> {
        let mut device = self.device.lock();
        device.advance(now);
        let ended = &mut device.volumes[self.key].ended;
        ended.front().filter(|(at, _)| *at <= now)?;
        ended.pop_front().map(|(_, done)| done)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let device = self.device.lock();
        let OfVolume { in_device, ended } = &device.volumes[self.key];
        let ended = ended.front().map(|(at, _)| *at);
        // One that waits for nothing there is asked for nothing.
        ended.or_else(|| device.next_end().filter(|_| *in_device > 0))
    }

    fn extents(&self, _offset: u64, len: u64) -> io::Result<Vec<Extent>> {
        Ok(vec![Extent { len, hole: false }])
    }

    fn servers_time(&self) -> Option<ServersTime> {
        self.device.lock().servers
    }

    fn modelled(&self, now: Instant) -> Option<ModelledStats> {
        let device = self.device.lock();
        let (name, servers) = (device.name.clone(), device.servers);
        Some(ModelledStats { name, servers, idle: device.idle + device.idle_since(now) })
    }
}
