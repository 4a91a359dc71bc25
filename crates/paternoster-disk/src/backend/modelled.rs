//! Memory behind a model of a device: each transfer takes the time that a model says.
//!
//! ```text
//!   transfer ──▶ bytes are moved at once ──▶ Model ──▶ at the end that it says: done
//! ```
//!
//! A transfer ends on the model's schedule, however late the owner wakes up to hear of it: all that
//! is due is delivered then, and the next one has begun in the model long before. So the device's
//! throughput is what it is said to be, as long as it has enough to do.

use std::collections::VecDeque;
use std::fmt;
use std::io;

use paternoster::{Instant, Nanos, Sector, SectorCount};
use paternoster_model::disk::LayoutError;
use paternoster_model::{
    Command, Described, Kind, Model, Op, ServersParameters, Service, Stages, op_of_zeroes,
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelledStats<'a> {
    /// The name or file of the device, where it has one.
    pub name: Option<&'a str>,
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
    /// Time of any transfer; a sync takes none.
    pub fixed: Nanos,
    /// Further time for each KiB that is read, written, trimmed or zeroed.
    pub per_kib: Nanos,
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
        Some(Self { servers: parameters.constant()?, fixed, per_kib })
    }
}

/// A disk in memory whose transfers take the time of a model.
pub struct ModelledBackend {
    memory: Memory,
    name: Option<String>,
    model: Box<dyn Model + Send>,
    servers: Option<ServersTime>,
    /// What is in the model, by the tags of its commands.
    in_model: Slab<TransferDone>,
    /// What finds no room there.
    waiting: VecDeque<(Command, TransferDone)>,
    /// What has ended, and when.
    ended: VecDeque<(Instant, TransferDone)>,
    idle: Nanos,
    /// Up to when that is counted.
    idle_until: Instant,
}

impl fmt::Debug for ModelledBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, servers) = (&self.name, &self.servers);
        f.debug_struct("ModelledBackend")
            .field("name", name)
            .field("servers", servers)
            .finish_non_exhaustive()
    }
}

impl ModelledBackend {
    /// Makes an idle disk of `size` bytes, all of them zero, on a device that has as many.
    pub fn new(size: usize, name: Option<&str>, device: &Described) -> Result<Self, LayoutError> {
        Ok(Self {
            memory: Memory::new(size),
            name: name.map(str::to_owned),
            model: device.open(SEED)?,
            servers: ServersTime::of(device),
            in_model: Slab::new(),
            waiting: VecDeque::new(),
            ended: VecDeque::new(),
            idle: Nanos::ZERO,
            idle_until: Instant::START,
        })
    }

    /// Makes an idle disk of `size` bytes, all of them zero, on servers.
    pub fn of_servers(size: usize, time: ServersTime) -> Self {
        let service = Service { per_kib: time.per_kib, ..Service::constant(time.fixed) };
        let device = Kind::Servers(ServersParameters::new(time.servers, service));
        Self::new(size, None, &device.into()).expect("servers have no layout")
    }

    /// Has the device do all that it does by then.
    fn advance(&mut self, now: Instant) {
        while let Some(at) = self.model.poll_timeout().filter(|at| *at <= now) {
            self.count_idle(at);
            while let Some(done) = self.model.poll(at) {
                self.ended.push_back((at, self.in_model.remove(done.tag as usize)));
                if let Some((command, done)) = self.waiting.pop_front() {
                    self.submit(at, command, done);
                }
            }
        }
        self.count_idle(now);
    }

    /// Gives the device a command that it has room for.
    fn submit(&mut self, now: Instant, command: Command, done: TransferDone) {
        let tag = u32::try_from(self.in_model.insert(done)).expect("its depth is a u32");
        self.model.submit(now, Command { tag, ..command });
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

/// The command for a transfer, without its tag; zeroes are written by that operation.
fn command(transfer: &Transfer, zeroes: Op) -> Command {
    let (op, offset) = match *transfer {
        Transfer::Read { offset, .. } | Transfer::Cache { offset, .. } => (Op::Read, offset),
        Transfer::Write { offset, .. } => (Op::Write, offset),
        Transfer::Zero { offset, .. } => (zeroes, offset),
        Transfer::Trim { offset, .. } => (Op::Discard, offset),
        Transfer::Sync { .. } => (Op::Flush, 0),
    };
    let len = if op == Op::Flush { 0 } else { transfer.len() };
    let first = offset / SECTOR;
    let sectors = if len == 0 { 0 } else { (offset + len).div_ceil(SECTOR) - first };
    let sectors = SectorCount(u32::try_from(sectors).unwrap_or(u32::MAX));
    Command { tag: 0, op, durable: false, sector: Sector(first), sectors }
}

impl Backend for ModelledBackend {
    fn capabilities(&self) -> Capabilities {
        // More than twice its servers only wait in it.
        let enough = self.servers.map_or(DEPTH_MAX, |servers| servers.servers.saturating_mul(2));
        let depth = self.model.depth().min(enough);
        let rotational = self.model.rotational();
        Capabilities { rotational, ..Capabilities::new(self.memory.size(), depth) }
    }

    fn rotational_because(&self) -> String {
        let rotates = if self.model.rotational() { "rotates" } else { "does not rotate" };
        match &self.name {
            Some(name) => format!("{name} {rotates}"),
            None => "a disk in memory is not rotational".to_owned(),
        }
    }

    fn start(&mut self, ring: &mut Ring<Token>, now: Instant, id: TransferId, transfer: Transfer) {
        let command = command(&transfer, op_of_zeroes(&*self.model));
        let transferred = self.memory.carry_out(transfer, ring.spare());
        let done = TransferDone { id, transferred };
        self.advance(now);
        if !self.model.takes(command.op) {
            self.ended.push_back((now, done));
        } else if self.in_model.len() < self.model.depth() as usize {
            self.submit(now, command, done);
        } else {
            self.waiting.push_back((command, done));
        }
    }

    fn take_done(&mut self, now: Instant) -> Option<TransferDone> {
        self.advance(now);
        self.ended.front().filter(|(at, _)| *at <= now)?;
        self.ended.pop_front().map(|(_, done)| done)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let ended = self.ended.front().map(|(at, _)| *at);
        ended.or_else(|| self.model.poll_timeout())
    }

    fn extents(&self, _offset: u64, len: u64) -> io::Result<Vec<Extent>> {
        Ok(vec![Extent { len, hole: false }])
    }

    fn servers_time(&self) -> Option<ServersTime> {
        self.servers
    }

    fn modelled(&self, now: Instant) -> Option<ModelledStats<'_>> {
        let (name, idle) = (self.name.as_deref(), self.idle + self.idle_since(now));
        Some(ModelledStats { name, servers: self.servers, idle })
    }
}
