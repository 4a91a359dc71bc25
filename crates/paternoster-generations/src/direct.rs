//! The floor: each submitter has devices of its own and calls them, without a plug, a lock or
//! another thread. What a way costs is what it takes more than this.

use paternoster::{Bio, Instant};

use crate::completions::Done;
use crate::null_device::NullDevice;
use crate::way::{Batches, Counts, Setup, Then, Way};

/// A direct call.
#[derive(Debug)]
pub struct Direct;

/// What a submitter has for itself.
#[derive(Debug)]
pub struct Own {
    devices: Vec<NullDevice>,
    /// Devices that it has submitted for.
    touched: Vec<usize>,
    done: Done,
    batches: Batches,
}

impl Way for Direct {
    type Own = Own;

    fn open(setup: &Setup) -> (Self, Vec<Own>) {
        let own = |_| Own {
            devices: setup.devices().collect(),
            touched: Vec::new(),
            done: Done::new(&setup.completions),
            batches: Batches::default(),
        };
        (Self, (0..setup.submitters).map(own).collect())
    }

    fn submit(&self, own: &mut Own, now: Instant, device: usize, bio: Bio, _then: Then) {
        own.devices[device].add(now, bio);
        if !own.touched.contains(&device) {
            own.touched.push(device);
        }
    }

    fn hand_over(&self, own: &mut Own, now: Instant) {
        for device in own.touched.drain(..) {
            let requests = own.devices[device].run_all(now, &mut own.done);
            own.batches.add(requests.into());
        }
        own.done.tell();
    }

    fn batches(own: &mut Own) -> Batches {
        own.batches
    }

    fn close(self) -> Counts {
        Counts::default()
    }
}
