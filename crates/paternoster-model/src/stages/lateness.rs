//! A driver that hears of completions late, and then of all that there are, as a thread that wakes
//! up a moment after something is due.

use paternoster::{Instant, Nanos};

use super::Stage;
use crate::{Completion, Model};

/// How late the driver wakes up.
#[derive(Clone, Copy, Debug)]
pub struct Lateness(pub Nanos);

impl Stage for Lateness {
    fn poll_timeout(&self, device: Option<Instant>) -> Option<Instant> {
        Some(device? + self.0)
    }

    fn poll(&mut self, device: &mut dyn Model, now: Instant) -> Option<Completion> {
        device.poll(now)
    }
}
