//! Memory behind a model of a device: k servers, each busy for a fixed time and a time per byte.
//!
//! ```text
//!   server 1   ├── a ──┤├── c ──┤ idle ├── e ──┤        a transfer starts at
//!   server 2   ├── b ──┤├── d ──┤                       max(its dispatch, its server's free time)
//!                              time ──▶
//! ```
//!
//! A transfer ends on that schedule, however late the owner wakes up to hear of it: all that is
//! due is delivered then, and the next one has begun in the model long before. So the device's
//! throughput is what it is said to be, as long as more is in flight than it has servers.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::io;

use paternoster::{Instant, Nanos};

use super::memory::Memory;
use super::{Backend, Capabilities, Extent, TransferDone};
use crate::engine::{Transfer, TransferId};
use crate::ring::Ring;
use crate::token::Token;

const KIB: u64 = 1024;

/// The model of a device: its servers and their times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Model {
    /// Transfers served in parallel; at least 1.
    pub servers: u32,
    /// Time that any transfer takes; a sync takes none.
    pub service: Nanos,
    /// Further time for each KiB that is read, written, trimmed or zeroed.
    pub per_kib: Nanos,
}

impl Model {
    /// Returns how long a transfer of so many bytes keeps one of the servers.
    pub fn time(&self, bytes: u64) -> Nanos {
        let further = bytes.saturating_mul(self.per_kib.as_nanos()) / KIB;
        self.service + Nanos::new(further)
    }
}

/// What `stat` reports of a modelled device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelledStats {
    /// The device.
    pub model: Model,
    /// Time that servers have stood free, summed over servers.
    pub idle: Nanos,
}

/// A disk in memory whose transfers take the time of a model.
#[derive(Debug)]
pub struct ModelledBackend {
    model: Model,
    memory: Memory,
    /// When each server is free, the earliest first.
    free_at: BinaryHeap<Reverse<Instant>>,
    /// Transfers by their end, those of one moment as they were started.
    ends: BTreeMap<(Instant, u64), TransferDone>,
    /// Syncs, which are done at once, each with the moment at which it was started.
    synced: VecDeque<(Instant, TransferDone)>,
    started: u64,
    idle: Nanos,
}

impl ModelledBackend {
    /// Makes an idle disk of `size` bytes, all of them zero.
    pub fn new(size: usize, model: Model) -> Self {
        let free_at = (0..model.servers.max(1)).map(|_| Reverse(Instant::START)).collect();
        Self {
            model,
            memory: Memory::new(size),
            free_at,
            ends: BTreeMap::new(),
            synced: VecDeque::new(),
            started: 0,
            idle: Nanos::ZERO,
        }
    }

    /// The moment at which a transfer that is dispatched now ends.
    fn schedule(&mut self, now: Instant, bytes: u64) -> Instant {
        let Reverse(free) = self.free_at.pop().expect("there is at least one server");
        let begins = now.max(free);
        self.idle += begins.saturating_since(free);
        let ends = begins + self.model.time(bytes);
        self.free_at.push(Reverse(ends));
        ends
    }
}

impl Backend for ModelledBackend {
    fn capabilities(&self) -> Capabilities {
        Capabilities::new(self.memory.size(), self.model.servers.saturating_mul(2))
    }

    fn start(&mut self, ring: &mut Ring<Token>, now: Instant, id: TransferId, transfer: Transfer) {
        let is_sync = matches!(transfer, Transfer::Sync { .. });
        let bytes = transfer.len();
        let transferred = self.memory.carry_out(transfer, ring.spare());
        let done = TransferDone { id, transferred };
        if is_sync {
            self.synced.push_back((now, done));
            return;
        }
        let ends = self.schedule(now, bytes);
        self.started += 1;
        self.ends.insert((ends, self.started), done);
    }

    fn take_done(&mut self, now: Instant) -> Option<TransferDone> {
        if self.synced.front().is_some_and(|(started, _)| *started <= now) {
            return self.synced.pop_front().map(|(_, done)| done);
        }
        let next = self.ends.first_entry().filter(|entry| entry.key().0 <= now)?;
        Some(next.remove())
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let synced = self.synced.front().map(|&(started, _)| started);
        synced.or_else(|| self.ends.first_key_value().map(|(&(end, _), _)| end))
    }

    fn extents(&self, _offset: u64, len: u64) -> io::Result<Vec<Extent>> {
        Ok(vec![Extent { len, hole: false }])
    }

    fn model(&self) -> Option<Model> {
        Some(self.model)
    }

    fn modelled(&self, now: Instant) -> Option<ModelledStats> {
        let standing = self.free_at.iter().map(|Reverse(free)| now.saturating_since(*free));
        let idle = standing.fold(self.idle, |sum, span| sum + span);
        Some(ModelledStats { model: self.model, idle })
    }
}
