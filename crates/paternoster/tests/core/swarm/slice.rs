//! What a slice is charged, worked out from its course in the trace.
//!
//! In time mode that is the length of the slice, as far as it was used; or the time for which the
//! queue was active, at least a tick, where no slice began before its last moment. In IOPS mode it
//! is the requests that were dispatched. All this holds for synchronous queues.

use paternoster::{CfqEvent, ElevatorEvent, Event, Instant, Nanos};

/// The slice of the active queue.
#[derive(Debug)]
pub(crate) struct ActiveSlice {
    tick: Nanos,
    begun: Option<Instant>,
    /// When its slice began and how long that is.
    slice: Option<(Instant, Nanos)>,
    dispatched: u64,
}

impl ActiveSlice {
    pub(crate) fn new(tick: Nanos) -> Self {
        Self { tick, begun: None, slice: None, dispatched: 0 }
    }

    /// Takes an event, and judges the charge at the end of the slice.
    pub(crate) fn hear(&mut self, at: Instant, event: Event) {
        match event {
            Event::Cfq(CfqEvent::Active { .. }) => {
                *self = Self { begun: Some(at), ..Self::new(self.tick) }
            }
            Event::Cfq(CfqEvent::Slice { length, .. }) => self.slice = Some((at, length)),
            Event::Elevator(ElevatorEvent::Dispatched { .. }) => self.dispatched += 1,
            Event::Cfq(CfqEvent::SliceExpired { charge, iops_mode, .. }) => {
                let expected = if iops_mode { self.dispatched } else { self.time(at).as_nanos() };
                assert_eq!(charge, expected, "what the slice took: {self:?}, {at:?}");
            }
            _ => {}
        }
    }

    /// Its length, once it has begun.
    pub(crate) fn length(&self) -> Option<Nanos> {
        self.slice.map(|(_, length)| length)
    }

    fn time(&self, now: Instant) -> Nanos {
        let used = self.slice.filter(|&(start, _)| start < now);
        if let Some((start, length)) = used {
            return now.saturating_since(start).min(length);
        }
        let begun = self.begun.expect("a slice that ends has begun");
        now.saturating_since(begun).max(self.tick)
    }
}
