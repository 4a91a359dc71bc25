//! A device's queue in the generations before the per-task plug, and the timers of all of them.

use std::sync::atomic::{AtomicU64, Ordering};

use paternoster::{Bio, Instant};
use paternoster_crossing::lock::Lock;

use crate::completions::Done;
use crate::legacy::LegacyPlug;
use crate::null_device::NullDevice;
use crate::way::{Apart, Batches, Setup};

/// A device's queue, which its lock is around.
#[derive(Debug)]
pub(crate) struct Queue {
    pub(crate) device: NullDevice,
    pub(crate) plug: LegacyPlug,
    /// The list that it is on, where there are several; meaningful while it is plugged.
    pub(crate) list: usize,
}

impl Queue {
    pub(crate) fn new(setup: &Setup, device: NullDevice) -> Self {
        Self { device, plug: LegacyPlug::new(setup.rules), list: 0 }
    }

    /// Whether a request that comes now is to plug it.
    pub(crate) fn should_plug(&self) -> bool {
        self.plug.should_plug(self.device.queued() == 0)
    }

    /// Adds a request. Returns whether that unplugs it.
    pub(crate) fn add(&mut self, now: Instant, bio: Bio) -> bool {
        self.device.add(now, bio);
        self.plug.should_unplug(self.device.queued(), self.device.in_flight())
    }
}

/// What a submitter has for itself in these generations.
#[derive(Debug)]
pub(crate) struct Sideline {
    pub(crate) done: Done,
    pub(crate) batches: Batches,
}

impl Sideline {
    pub(crate) fn new(setup: &Setup) -> Self {
        Self { done: Done::new(&setup.completions), batches: Batches::default() }
    }

    /// Unplugs a queue whose lock is held, which is on no list any more: its driver starts all that
    /// it holds.
    pub(crate) fn unplug(
        &mut self,
        timers: &Timers,
        now: Instant,
        device: usize,
        queue: &mut Queue,
    ) {
        timers.delete(device);
        queue.plug.unplug();
        let requests = queue.device.run_all(now, &mut self.done);
        self.batches.add(requests.into());
    }
}

/// When the timer of each queue fires, readable without its lock; written under it.
#[derive(Debug)]
pub(crate) struct Timers(Vec<Apart<AtomicU64>>);

/// No timer is set.
const UNSET: u64 = u64::MAX;

impl Timers {
    pub(crate) fn new(queues: usize) -> Self {
        Self((0..queues).map(|_| Apart(AtomicU64::new(UNSET))).collect())
    }

    pub(crate) fn set(&self, queue: usize, expires: Instant) {
        self.0[queue].store(expires.as_nanos(), Ordering::Relaxed);
    }

    fn delete(&self, queue: usize) {
        self.0[queue].store(UNSET, Ordering::Relaxed);
    }

    pub(crate) fn earliest(&self) -> Option<Instant> {
        let each = self.0.iter().map(|timer| timer.load(Ordering::Relaxed));
        each.min().filter(|&nanos| nanos != UNSET).map(Instant::from_nanos)
    }

    /// Has `unplug` unplug each queue whose timer has fired, under the queue's lock. Returns how
    /// many that were.
    pub(crate) fn fire(
        &self,
        queues: &[Apart<Lock<Queue>>],
        side: &mut Sideline,
        now: Instant,
        mut unplug: impl FnMut(&mut Sideline, usize, &mut Queue),
    ) -> u64 {
        let mut unplugged = 0;
        for device in self.expired(now) {
            let mut queue = queues[device].lock();
            if queue.plug.has_expired(now) {
                unplug(side, device, &mut queue);
                unplugged += 1;
            }
        }
        side.done.tell();
        unplugged
    }

    /// The queues whose timers have fired.
    fn expired(&self, now: Instant) -> impl Iterator<Item = usize> {
        let each = self.0.iter().enumerate();
        each.filter(move |(_, timer)| timer.load(Ordering::Relaxed) <= now.as_nanos())
            .map(|(queue, _)| queue)
    }
}
