//! Generation 4, Linux since 2.6.39: a plug of the task, and then the lock of the device's
//! scheduler.
//!
//! ```text
//!   submit       into the plug: nothing shared
//!   hand over    for each device with a batch:
//!                lock: insert the batch     lock: dispatch so many     lock: dispatch so many …
//! ```
//!
//! Until 2025 a lock was for one request; a series of patches of that year dispatches a batch under
//! it. With its limits at 0 the plug is off, and each bio is a batch.

use std::sync::Arc;

use paternoster::{Batch, Bio, FlushReason, HandOver, Instant, Plug, PlugRules};
use paternoster_crossing::lock::Lock;

use crate::completions::Done;
use crate::null_device::NullDevice;
use crate::way::{Apart, Batches, Counts, Setup, Then, Way, sum_of};

/// So many requests are dispatched under one lock with batches.
pub const BATCH_DISPATCH: u32 = 32;

/// Generation 4.
#[derive(Debug)]
pub struct Locked(Arc<[Apart<Lock<NullDevice>>]>);

/// Takes batches to their devices, and runs these.
#[derive(Debug)]
pub struct Inserter {
    devices: Arc<[Apart<Lock<NullDevice>>]>,
    /// How many requests are dispatched under one lock.
    per_lock: u32,
    /// When the plug was flushed.
    now: Instant,
    done: Done,
    batches: Batches,
}

impl HandOver<usize> for Inserter {
    fn hand_over(&mut self, device: usize, batch: Batch) {
        self.batches.add(batch.chains.len() as u64);
        let device = &self.devices[device];
        device.lock().add_batch(self.now, batch);
        while device.lock().run(self.now, self.per_lock, &mut self.done) == self.per_lock {}
        self.done.tell();
    }
}

impl Way for Locked {
    type Own = Plug<usize, Inserter>;

    fn open(setup: &Setup) -> (Self, Vec<Self::Own>) {
        let devices: Arc<[_]> = setup.devices().map(|device| setup.lock(device)).collect();
        let own = |_| {
            let inserter = Inserter {
                devices: devices.clone(),
                per_lock: setup.per_lock,
                now: Instant::START,
                done: Done::new(&setup.completions),
                batches: Batches::default(),
            };
            Plug::new(setup.plug, inserter)
        };
        let own = (0..setup.submitters).map(own).collect();
        (Self(devices), own)
    }

    fn submit(&self, own: &mut Self::Own, now: Instant, device: usize, bio: Bio, _then: Then) {
        own.receiver().now = now;
        own.submit(now, device, bio, &PlugRules::default());
    }

    fn hand_over(&self, own: &mut Self::Own, now: Instant) {
        own.receiver().now = now;
        own.flush(now, FlushReason::Explicit);
    }

    fn batches(own: &mut Self::Own) -> Batches {
        own.receiver().batches
    }

    fn close(self) -> Counts {
        Counts { devices: sum_of(&self.0), ..Counts::default() }
    }
}
