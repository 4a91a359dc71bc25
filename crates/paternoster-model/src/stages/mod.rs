//! Stages: what stands between a device and whoever drives it, or delays what the device says. Each
//! is put before any device, and before other stages.
//!
//! ```text
//!   driver ──▶ lateness ──▶ pauses ──▶ latency ──▶ device
//! ```

mod latency;
mod lateness;
mod pauses;

use paternoster::{Instant, Sector};

use crate::{Command, Completion, Model, Op};

pub use latency::Latency;
pub use lateness::Lateness;
pub use pauses::{Pauses, PausesParameters};

/// What a stage changes of the device behind it: when completions come.
pub trait Stage {
    /// When it wants to be asked, if the device wants to be asked then.
    fn poll_timeout(&self, device: Option<Instant>) -> Option<Instant>;

    /// Asks the device, and returns what completes by `now`.
    fn poll(&mut self, device: &mut dyn Model, now: Instant) -> Option<Completion>;

    /// The device's own `poll_timeout` is this now.
    fn device_changed(&mut self, poll_timeout: Option<Instant>) {
        let _ = poll_timeout;
    }
}

/// A device behind a stage. All but its completions is the device's.
#[derive(Debug)]
pub struct Behind<S, M> {
    stage: S,
    device: M,
}

impl<S: Stage, M: Model> Behind<S, M> {
    /// Puts the stage before an idle device.
    pub fn new(stage: S, device: M) -> Self {
        Self { stage, device }
    }
}

impl<S: Stage, M: Model> Model for Behind<S, M> {
    fn depth(&self) -> u32 {
        self.device.depth()
    }

    fn end(&self) -> Sector {
        self.device.end()
    }

    fn rotational(&self) -> bool {
        self.device.rotational()
    }

    fn takes(&self, op: Op) -> bool {
        self.device.takes(op)
    }

    fn submit(&mut self, now: Instant, command: Command) {
        self.device.submit(now, command);
        self.stage.device_changed(self.device.poll_timeout());
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.stage.poll_timeout(self.device.poll_timeout())
    }

    fn poll(&mut self, now: Instant) -> Option<Completion> {
        let done = self.stage.poll(&mut self.device, now);
        self.stage.device_changed(self.device.poll_timeout());
        done
    }
}
