//! A machine that always has something to ask.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use fastrand::Rng;
use paternoster_disk::MonotonicClock;
use paternoster_scene::Tenant;

use super::{Ask, Done, Machine, Shape};
use crate::Measured;

/// Bytes of a sector.
const SECTOR: u32 = 512;

/// How often a machine on a thread of its own looks whether it is to pause.
const LOOK: Duration = Duration::from_millis(20);

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
        let Tenant { name, weight, connections, depth, block, write_percent, .. } = tenant.clone();
        let plain = Tenant::reads(weight, connections, depth);
        ensure!(
            Tenant { name, block, write_percent, ..plain } == *tenant,
            "tenant {:?}: a machine reads and writes at random, and asks again at once",
            tenant.name
        );
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
        let left =
            || Some(until.saturating_duration_since(Instant::now())).filter(|d| !d.is_zero());
        self.ask_while(left, |latencies| measured.count(latencies))?;
        Ok(measured)
    }

    /// Asks while there is a time for which it may wait for answers, whose latencies `note` gets,
    /// and then waits for what is outstanding.
    fn ask_while(
        &mut self,
        left: impl Fn() -> Option<Duration>,
        mut note: impl FnMut(&[u64]),
    ) -> Result<()> {
        let mut latencies = Vec::new();
        for ring in 0..self.asked_at.len() {
            self.fill(ring)?;
        }
        while let Some(left) = left() {
            let done = self.done_within(left)?;
            let now = MonotonicClock::monotonic_now();
            for (ring, done) in &done {
                latencies.push(now - self.asked_at[*ring][usize::from(done.slot)]);
            }
            note(&latencies);
            latencies.clear();
            for ring in 0..self.asked_at.len() {
                self.fill(ring)?;
            }
        }
        let depth = self.tenant.depth as usize * self.asked_at.len();
        let mut left = depth;
        while left > 0 {
            let done = self.done_within(Duration::from_secs(10))?;
            ensure!(!done.is_empty(), "{left} requests are not done");
            left -= done.len();
        }
        Ok(())
    }

    /// Waits until something is done, which has to have gone well, or that long.
    fn done_within(&mut self, timeout: Duration) -> Result<Vec<(usize, Done)>> {
        let done = self.machine.wait_for_any(timeout)?;
        let failed = done.iter().find(|(_, done)| done.status != 0);
        if let Some((ring, Done { status, .. })) = failed {
            bail!("a request on ring {ring} has the status {status}");
        }
        Ok(done)
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

/// A machine that asks on a thread of its own, as a driver's processor does.
pub(crate) struct Asking {
    measured: Arc<Mutex<Measured>>,
    pauses: Arc<AtomicBool>,
    /// While it pauses.
    machine: Option<MachineLoad>,
    /// While it asks.
    thread: Option<JoinHandle<Result<MachineLoad>>>,
}

impl Asking {
    /// Has not asked yet.
    pub(crate) fn new(machine: MachineLoad) -> Self {
        let (measured, pauses) = (Arc::new(Mutex::new(Measured::new())), Arc::default());
        Self { measured, pauses, machine: Some(machine), thread: None }
    }

    /// Asks until it pauses.
    pub(crate) fn start(&mut self) {
        let Some(mut machine) = self.machine.take() else { return };
        self.pauses.store(false, Ordering::Relaxed);
        let (pauses, measured) = (Arc::clone(&self.pauses), Arc::clone(&self.measured));
        self.thread = Some(thread::spawn(move || {
            let left = || (!pauses.load(Ordering::Relaxed)).then_some(LOOK);
            machine.ask_while(left, |latencies| {
                measured.lock().unwrap_or_else(PoisonError::into_inner).count(latencies);
            })?;
            Ok(machine)
        }));
    }

    /// Whether it has failed while it asked: [`pause`](Self::pause) says how.
    pub(crate) fn has_failed(&self) -> bool {
        let pauses = self.pauses.load(Ordering::Relaxed);
        !pauses && self.thread.as_ref().is_some_and(JoinHandle::is_finished)
    }

    /// Asks no more.
    pub(crate) fn begin_pause(&self) {
        self.pauses.store(true, Ordering::Relaxed);
    }

    /// Asks no more, and returns when all is answered.
    pub(crate) fn pause(&mut self) -> Result<()> {
        self.begin_pause();
        if let Some(thread) = self.thread.take() {
            let machine = thread.join().ok().context("a machine's thread has panicked")?;
            self.machine = Some(machine.context("a machine is no more served")?);
        }
        Ok(())
    }

    /// Takes what it got since the last call.
    pub(crate) fn take_measured(&self) -> Measured {
        let mut measured = self.measured.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut measured, Measured::new())
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        // Whoever wants to know how it went has paused it before.
        let _ = self.pause();
    }
}
