//! A machine that always has something to ask.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use fastrand::Rng;
use paternoster_disk::MonotonicClock;
use paternoster_scene::Tenant;

use super::{Ask, Machine, Shape};
use crate::Measured;

/// Bytes of a sector.
const SECTOR: u32 = 512;

/// A tenant that is a machine: each of its connections is a ring, with so many requests outstanding
/// at all times. It reads or writes blocks anywhere.
pub struct MachineLoad {
    machine: Machine,
    tenant: Tenant,
    rng: Rng,
    /// When each slot's request was asked, by ring.
    asked_at: Vec<Vec<u64>>,
    data: Vec<u8>,
}

impl MachineLoad {
    /// Attaches the machine; nothing is asked yet. `seed` decides what will be.
    pub fn attach(socket: &Path, tenant: &Tenant, seed: u64) -> Result<Self> {
        let slots = u16::try_from(tenant.depth)?;
        let queues = u16::try_from(tenant.connections)?;
        let shape = Shape { queues, slots, room: tenant.block, ..Shape::default() };
        let machine = Machine::attach(socket, shape)?;
        ensure!(machine.size() >= tenant.block.into(), "the export is smaller than a block");
        Ok(Self {
            machine,
            tenant: tenant.clone(),
            rng: Rng::with_seed(seed),
            asked_at: vec![vec![0; slots.into()]; queues.into()],
            data: vec![0; tenant.block as usize],
        })
    }

    /// Asks for that long, and then waits for what is outstanding, which does not count.
    pub fn run_for(&mut self, span: Duration) -> Result<Measured> {
        let (mut measured, until) = (Measured::new(), Instant::now() + span);
        for ring in 0..self.asked_at.len() {
            self.fill(ring)?;
        }
        while Instant::now() < until {
            let done =
                self.machine.wait_for_any(until.saturating_duration_since(Instant::now()))?;
            let now = MonotonicClock::monotonic_now();
            for (ring, done) in &done {
                ensure!(done.status == 0, "a request has failed");
                measured.replies += 1;
                let asked = self.asked_at[*ring][usize::from(done.slot)];
                measured.latency.saturating_record(now - asked);
            }
            for ring in 0..self.asked_at.len() {
                self.fill(ring)?;
            }
        }
        let depth = self.tenant.depth as usize * self.asked_at.len();
        let mut left = depth;
        while left > 0 {
            let done = self.machine.wait_for_any(Duration::from_secs(10))?;
            ensure!(!done.is_empty(), "{left} requests are not done");
            left -= done.len();
        }
        Ok(measured)
    }

    /// How often the machine kicked and was called.
    pub fn kicks_and_calls(&self) -> (u64, u64) {
        let rings = &self.machine.rings;
        (rings.iter().map(|ring| ring.kicks).sum(), rings.iter().map(|ring| ring.calls).sum())
    }

    /// Has a ring ask for as much as it may, with one kick at most.
    fn fill(&mut self, ring: usize) -> Result<()> {
        let now = MonotonicClock::monotonic_now();
        let mut asks = false;
        while self.machine.rings[ring].has_room() {
            let blocks = self.machine.size() / u64::from(self.tenant.block);
            let sector = self.rng.u64(..blocks) * u64::from(self.tenant.block / SECTOR);
            let ask = if self.rng.u32(..100) < self.tenant.write_percent {
                Ask::Write(sector, &self.data)
            } else {
                Ask::Read(sector, self.tenant.block)
            };
            let slot = self.machine.rings[ring].prepare(&self.machine.guest, &ask)?;
            self.asked_at[ring][usize::from(slot)] = now;
            asks = true;
        }
        if asks { self.machine.rings[ring].publish(&self.machine.guest) } else { Ok(()) }
    }
}
