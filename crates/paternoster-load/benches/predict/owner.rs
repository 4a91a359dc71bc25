//! The server's thread that owns a disk, as far as it comes between device and scheduler: it wakes
//! up a moment after something is due, and then takes all that has completed.

use paternoster::{Instant, Nanos, Sector};
use paternoster_lab::model::{Command, Completion, Model};

/// A device whose completions are heard of late.
#[derive(Debug)]
pub(crate) struct Owned<M> {
    device: M,
    lateness: Nanos,
}

impl<M> Owned<M> {
    pub(crate) fn new(device: M, lateness: Nanos) -> Self {
        Self { device, lateness }
    }
}

impl<M: Model> Model for Owned<M> {
    fn depth(&self) -> u32 {
        self.device.depth()
    }

    fn end(&self) -> Sector {
        self.device.end()
    }

    fn rotational(&self) -> bool {
        self.device.rotational()
    }

    fn submit(&mut self, now: Instant, command: Command) {
        self.device.submit(now, command);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        Some(self.device.poll_timeout()? + self.lateness)
    }

    fn poll(&mut self, now: Instant) -> Option<Completion> {
        self.device.poll(now)
    }
}
