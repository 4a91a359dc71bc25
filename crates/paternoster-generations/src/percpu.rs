//! Generation 2, the patch of March 2004: a list of plugged queues and a lock for each processor.
//!
//! ```text
//!   submit       queue's lock ─▶ [ slot's lock: onto the list of the processor one runs on ]
//!   hand over    until the slot of the processor one runs on now is empty:
//!                slot's lock: which is first?   queue's lock ─▶ [ its slot's lock: off ]; run
//! ```
//!
//! A queue remembers its slot, so that it is taken off the right one from anywhere. A task that
//! moves to another processor between submitting and handing over drains the wrong slot: its queue
//! stays plugged until the timer, or somebody on its old processor, unplugs it.

use paternoster::{Bio, Instant};
use paternoster_crossing::lock::Lock;

use crate::plug_lists::PlugLists;
use crate::queue::{Queue, Sideline, Timers};
use crate::way::{Apart, Batches, Counts, Setup, Then, Way, sum_of};

/// Generation 2.
#[derive(Debug)]
pub struct PerCpu {
    queues: Vec<Apart<Lock<Queue>>>,
    /// A list for each processor.
    slots: Vec<Apart<Lock<PlugLists>>>,
    timers: Timers,
}

/// The only list of a slot.
const LIST: usize = 0;

/// What a submitter has for itself.
#[derive(Debug)]
pub struct Own(Sideline);

impl PerCpu {
    /// The slot of the processor that this runs on now. It may run on another before this returns.
    fn slot(&self) -> usize {
        rustix::thread::sched_getcpu() % self.slots.len()
    }

    /// Submits with that slot.
    fn submit_in(&self, slot: usize, side: &mut Sideline, now: Instant, device: usize, bio: Bio) {
        let mut queue = self.queues[device].lock();
        if queue.should_plug() {
            queue.list = slot;
            self.slots[slot].lock().push(LIST, device);
            self.timers.set(device, queue.plug.plug(now));
        }
        if queue.add(now, bio) {
            self.unplug(side, now, device, &mut queue);
        }
        drop(queue);
        side.done.tell();
    }

    /// Unplugs until that slot is empty.
    fn drain(&self, slot: usize, side: &mut Sideline, now: Instant) {
        loop {
            let Some(device) = self.slots[slot].lock().first(LIST) else { break };
            let mut queue = self.queues[device].lock();
            if queue.plug.is_plugged() {
                self.unplug(side, now, device, &mut queue);
            }
        }
        side.done.tell();
    }

    /// Unplugs a queue whose lock is held: off the slot that it remembers, and run.
    fn unplug(&self, side: &mut Sideline, now: Instant, device: usize, queue: &mut Queue) {
        self.slots[queue.list].lock().remove(device);
        side.unplug(&self.timers, now, device, queue);
    }
}

impl Way for PerCpu {
    type Own = Own;

    fn open(setup: &Setup) -> (Self, Vec<Own>) {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let slot = |_| setup.lock(PlugLists::new(setup.devices, 1));
        let way = Self {
            queues: setup.devices().map(|it| setup.lock(Queue::new(setup, it))).collect(),
            slots: (0..processors).map(slot).collect(),
            timers: Timers::new(setup.devices),
        };
        (way, (0..setup.submitters).map(|_| Own(Sideline::new(setup))).collect())
    }

    fn submit(&self, own: &mut Own, now: Instant, device: usize, bio: Bio, _then: Then) {
        self.submit_in(self.slot(), &mut own.0, now, device, bio);
    }

    fn hand_over(&self, own: &mut Own, now: Instant) {
        self.drain(self.slot(), &mut own.0, now);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.timers.earliest()
    }

    fn handle_timeout(&self, own: &mut Own, now: Instant) -> u64 {
        self.timers.fire(&self.queues, &mut own.0, now, |side, device, queue| {
            self.unplug(side, now, device, queue);
        })
    }

    fn batches(own: &mut Own) -> Batches {
        own.0.batches
    }

    fn close(self) -> Counts {
        let (lists, devices) = (sum_of(&self.slots), sum_of(&self.queues));
        Counts { lists, devices, ..Counts::default() }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use paternoster::{Nanos, Sector, SectorCount};

    use super::*;
    use crate::completions::{Completions, name};

    fn at(micros: u64) -> Instant {
        Instant::START + Nanos::from_micros(micros)
    }

    /// Objection C1. The task plugs on one processor, and hands over on another.
    #[test]
    fn task_that_has_moved_drains_the_wrong_slot_and_waits_for_the_timer() {
        let completions = Arc::new(Completions::new(1));
        let setup = Setup::new(&completions, 1, 1);
        let (mut way, mut own) = PerCpu::open(&setup);
        way.slots = (0..2).map(|_| setup.lock(PlugLists::new(1, 1))).collect();
        let bio = |nth| {
            let bio = Bio::read(setup.ioc(), Sector(nth * 100), SectorCount(8));
            bio.with_user_data(name(0, nth))
        };
        let side = &mut own[0].0;
        way.submit_in(0, side, at(0), 0, bio(0));
        way.drain(0, side, at(0));
        assert_eq!(completions.done(0), 1, "it stayed");

        way.submit_in(0, side, at(10), 0, bio(1));
        way.drain(1, side, at(10));
        assert_eq!((completions.done(0), way.poll_timeout()), (1, Some(at(3000))));
        assert_eq!(way.handle_timeout(&mut own[0], at(2999)), 0);
        assert_eq!(way.handle_timeout(&mut own[0], at(3000)), 1);
        assert_eq!((completions.done(0), way.poll_timeout()), (2, None));
    }
}
