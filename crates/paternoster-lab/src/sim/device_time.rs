//! Where the time of the device went.
//!
//! ```text
//!   in the device    in the scheduler    the time is
//!   something        –                   busy: seek, rotation, transfer, overhead
//!   nothing          something           withheld: the scheduler idles
//!   nothing          nothing             without work
//!   any              something           queued: the scheduler has something to order
//! ```

use paternoster::{Instant, Nanos};

use paternoster_model::Spent;

/// How the time of a run divides, by what the device did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceTime {
    /// The device had a command.
    pub busy: Nanos,
    /// It had none, though the scheduler had requests.
    pub withheld: Nanos,
    /// There was nothing to do.
    pub without_work: Nanos,
    /// Requests were with the scheduler, whatever the device did meanwhile.
    pub queued: Nanos,
    /// What its commands spent, summed over commands. A device that serves several at once spends
    /// more than it is busy.
    pub spent: Spent,
}

/// Sums up the time of the device.
#[derive(Debug)]
pub(super) struct DeviceClock {
    since: Instant,
    time: DeviceTime,
}

impl DeviceClock {
    pub(super) fn new(start: Instant) -> Self {
        Self { since: start, time: DeviceTime::default() }
    }

    /// Counts the time up to `now`, through which so many requests were in the device and with the
    /// scheduler.
    pub(super) fn advance(&mut self, now: Instant, in_device: u32, queued: u32) {
        let span = now.saturating_since(self.since);
        self.since = now;
        let sum = match (in_device, queued) {
            (1.., _) => &mut self.time.busy,
            (0, 1..) => &mut self.time.withheld,
            (0, 0) => &mut self.time.without_work,
        };
        *sum += span;
        if queued > 0 {
            self.time.queued += span;
        }
    }

    /// Counts what a command that completes has spent.
    pub(super) fn spend(&mut self, spent: Spent) {
        let sum = &mut self.time.spent;
        sum.seek += spent.seek;
        sum.rotation += spent.rotation;
        sum.transfer += spent.transfer;
        sum.overhead += spent.overhead;
    }

    pub(super) fn time(&self) -> DeviceTime {
        self.time
    }
}
