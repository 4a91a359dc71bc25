//! What a turn is charged, told by what the trace says of its course.
//!
//! In time mode that is its slice, as far as it was used; or the time that it had the device, at
//! least a tick, where no slice began before its last moment. In IOPS mode it is the requests
//! that it sent. All this holds for queues of requests that somebody waits for.

use paternoster::{Event, Instant, Nanos};

/// The turn that somebody has.
#[derive(Debug)]
pub(crate) struct Turn {
    tick: Nanos,
    begun: Option<Instant>,
    /// When its slice began and how long that is.
    slice: Option<(Instant, Nanos)>,
    sent: u64,
}

impl Turn {
    pub(crate) fn new(tick: Nanos) -> Self {
        Self { tick, begun: None, slice: None, sent: 0 }
    }

    /// Takes an event, and judges the charge at the end of the turn.
    pub(crate) fn hear(&mut self, at: Instant, event: Event) {
        match event {
            Event::Active { .. } => *self = Self { begun: Some(at), ..Self::new(self.tick) },
            Event::Slice { length, .. } => self.slice = Some((at, length)),
            Event::Dispatched { .. } => self.sent += 1,
            Event::Expired { charge, iops_mode, .. } => {
                let expected = if iops_mode { self.sent } else { self.time(at).as_nanos() };
                assert_eq!(charge, expected, "what the turn took: {self:?}, {at:?}");
            }
            _ => {}
        }
    }

    /// The slice, once it has begun.
    pub(crate) fn slice(&self) -> Option<Nanos> {
        self.slice.map(|(_, length)| length)
    }

    fn time(&self, now: Instant) -> Nanos {
        let used = self.slice.filter(|&(start, _)| start < now);
        if let Some((start, length)) = used {
            return now.saturating_since(start).min(length);
        }
        let begun = self.begun.expect("a turn that ends has begun");
        now.saturating_since(begun).max(self.tick)
    }
}
