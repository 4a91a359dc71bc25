//! Generation 1, Linux 2.6.0 to 2.6.3: one list of plugged queues for the machine, and one lock
//! over it.
//!
//! ```text
//!   submit       queue's lock ─▶ [ the lock: onto the list, if the scheduler was empty ]
//!                               [ the lock: off the list, if this was the fourth request; run ]
//!   hand over    the lock: take the whole list
//!                for each queue on it:   queue's lock ─▶ [ the lock: off the list ]; run
//!                                        the lock: which is next?
//! ```
//!
//! Whoever needs progress unplugs every queue of the machine, whosoever it is. A single request to
//! an idle queue takes the one lock four times. Being on the list is being plugged; a queue's state
//! changes under its own lock and the list's, so either is enough to read it.

use paternoster::{Bio, Instant};
use paternoster_crossing::lock::Lock;

use crate::plug_lists::PlugLists;
use crate::queue::{Queue, Sideline, Timers};
use crate::way::{Apart, Batches, Counts, Setup, Then, Way, sum_of};

/// Generation 1.
#[derive(Debug)]
pub struct Global {
    queues: Vec<Apart<Lock<Queue>>>,
    /// The machine's list, and one for each submitter that works through what it took.
    plugged: Apart<Lock<PlugLists>>,
    timers: Timers,
}

/// The machine's list.
const MACHINE: usize = 0;

/// What a submitter has for itself.
#[derive(Debug)]
pub struct Own {
    side: Sideline,
    /// Its list, for what it took.
    list: usize,
}

impl Global {
    /// Unplugs a queue whose lock is held: off the list that it is on, and run.
    fn unplug(&self, side: &mut Sideline, now: Instant, device: usize, queue: &mut Queue) {
        self.plugged.lock().remove(device);
        side.unplug(&self.timers, now, device, queue);
    }
}

impl Way for Global {
    type Own = Own;

    fn open(setup: &Setup) -> (Self, Vec<Own>) {
        let way = Self {
            queues: setup.devices().map(|it| setup.lock(Queue::new(setup, it))).collect(),
            plugged: setup.lock(PlugLists::new(setup.devices, 1 + setup.submitters)),
            timers: Timers::new(setup.devices),
        };
        let own = |number| Own { side: Sideline::new(setup), list: 1 + number };
        (way, (0..setup.submitters).map(own).collect())
    }

    fn submit(&self, own: &mut Own, now: Instant, device: usize, bio: Bio, _then: Then) {
        let mut queue = self.queues[device].lock();
        if queue.should_plug() {
            self.plugged.lock().push(MACHINE, device);
            self.timers.set(device, queue.plug.plug(now));
        }
        if queue.add(now, bio) {
            self.unplug(&mut own.side, now, device, &mut queue);
        }
        drop(queue);
        own.side.done.tell();
    }

    fn hand_over(&self, own: &mut Own, now: Instant) {
        let mut next = {
            let mut plugged = self.plugged.lock();
            plugged.move_all(MACHINE, own.list);
            plugged.first(own.list)
        };
        while let Some(device) = next {
            let mut queue = self.queues[device].lock();
            // Somebody else may have unplugged it meanwhile, which took it off this list.
            if queue.plug.is_plugged() {
                self.unplug(&mut own.side, now, device, &mut queue);
            }
            drop(queue);
            next = self.plugged.lock().first(own.list);
        }
        own.side.done.tell();
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.timers.earliest()
    }

    fn handle_timeout(&self, own: &mut Own, now: Instant) -> u64 {
        self.timers.fire(&self.queues, &mut own.side, now, |side, device, queue| {
            self.unplug(side, now, device, queue);
        })
    }

    fn batches(own: &mut Own) -> Batches {
        own.side.batches
    }

    fn close(self) -> Counts {
        let (lists, devices) = (self.plugged.stats(), sum_of(&self.queues));
        Counts { lists, devices, ..Counts::default() }
    }
}
