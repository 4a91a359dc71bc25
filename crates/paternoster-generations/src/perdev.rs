//! Generation 3, Linux 2.6.5 to 2.6.38: being plugged is a bit of the device's own queue, under its
//! lock, which is held anyway.
//!
//! ```text
//!   submit       queue's lock: plug, add; unplug and run if this was the fourth,
//!                              or if the submitter said that it waits (sync)
//!   hand over    queue's lock of each device that it plugged and did not unplug: run
//! ```

use paternoster::{Bio, Instant};
use paternoster_crossing::lock::Lock;

use crate::queue::{Queue, Sideline, Timers};
use crate::way::{Apart, Batches, Counts, Setup, Then, Way, sum_of};

/// Generation 3.
#[derive(Debug)]
pub struct PerDevice {
    queues: Vec<Apart<Lock<Queue>>>,
    timers: Timers,
}

/// What a submitter has for itself.
#[derive(Debug)]
pub struct Own {
    side: Sideline,
    /// Devices that it has submitted for and left plugged.
    left: Vec<usize>,
}

impl Way for PerDevice {
    type Own = Own;

    fn open(setup: &Setup) -> (Self, Vec<Own>) {
        let way = Self {
            queues: setup.devices().map(|it| setup.lock(Queue::new(setup, it))).collect(),
            timers: Timers::new(setup.devices),
        };
        let own = |_| Own { side: Sideline::new(setup), left: Vec::new() };
        (way, (0..setup.submitters).map(own).collect())
    }

    fn submit(&self, own: &mut Own, now: Instant, device: usize, bio: Bio, then: Then) {
        let mut queue = self.queues[device].lock();
        if queue.should_plug() {
            self.timers.set(device, queue.plug.plug(now));
        }
        let is_full = queue.add(now, bio);
        if is_full || (then == Then::HandsOver && queue.plug.is_plugged()) {
            own.side.unplug(&self.timers, now, device, &mut queue);
        }
        let is_left = queue.plug.is_plugged();
        drop(queue);
        own.side.done.tell();
        own.left.retain(|&other| other != device);
        own.left.extend(is_left.then_some(device));
    }

    fn hand_over(&self, own: &mut Own, now: Instant) {
        for device in own.left.drain(..) {
            let mut queue = self.queues[device].lock();
            if queue.plug.is_plugged() {
                own.side.unplug(&self.timers, now, device, &mut queue);
            }
        }
        own.side.done.tell();
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.timers.earliest()
    }

    fn handle_timeout(&self, own: &mut Own, now: Instant) -> u64 {
        self.timers.fire(&self.queues, &mut own.side, now, |side, device, queue| {
            side.unplug(&self.timers, now, device, queue);
        })
    }

    fn batches(own: &mut Own) -> Batches {
        own.side.batches
    }

    fn close(self) -> Counts {
        Counts { devices: sum_of(&self.queues), ..Counts::default() }
    }
}
