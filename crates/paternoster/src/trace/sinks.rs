//! The plain sinks of events.

use super::{Event, Trace};
use crate::time::Instant;

/// A sink that costs nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoTrace;

impl Trace for NoTrace {
    #[inline(always)]
    fn event(&mut self, _now: Instant, _event: Event) {}
}

/// A sink that keeps all events until they are taken.
#[derive(Clone, Debug, Default)]
pub struct Recorder {
    events: Vec<(Instant, Event)>,
}

impl Recorder {
    /// Returns the events since the last call.
    pub fn take(&mut self) -> Vec<(Instant, Event)> {
        std::mem::take(&mut self.events)
    }
}

impl Trace for Recorder {
    fn event(&mut self, now: Instant, event: Event) {
        self.events.push((now, event));
    }
}
