//! The plain sinks of events.

use std::collections::VecDeque;

use super::{ElevatorEvent, Event, QueueEvent, Trace};
use crate::time::Instant;

/// A sink that costs nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoTrace;

impl Trace for NoTrace {
    #[cfg_attr(not(debug_assertions), inline(always))]
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

/// Events with their times, the oldest first.
pub type TimedEvents = VecDeque<(Instant, Event)>;

/// A sink that keeps the newest events, up to a number of them, until they are taken.
///
/// It leaves out those that decide nothing and come with nearly every request: who has something
/// to do ([`ElevatorEvent::GroupWaits`], [`ElevatorEvent::GroupWaitsNoMore`], [`QueueEvent::Busy`],
/// [`QueueEvent::NotBusy`]), and what all wait for ([`ElevatorEvent::Waiting`]).
#[derive(Clone, Debug)]
pub struct RingRecorder {
    events: TimedEvents,
    most: usize,
    lost: u64,
}

impl RingRecorder {
    /// Keeps that many events.
    pub fn new(most: usize) -> Self {
        Self { events: VecDeque::with_capacity(most), most, lost: 0 }
    }

    /// Returns the events since the last call, and how many before them are lost. `room` is where
    /// those that come next are kept: what was returned before, for nothing to be allocated.
    pub fn take(&mut self, mut room: TimedEvents) -> (TimedEvents, u64) {
        room.clear();
        room.reserve_exact(self.most);
        (std::mem::replace(&mut self.events, room), std::mem::take(&mut self.lost))
    }
}

impl Trace for RingRecorder {
    #[inline]
    fn event(&mut self, now: Instant, event: Event) {
        match event {
            Event::Elevator(
                ElevatorEvent::GroupWaits { .. }
                | ElevatorEvent::GroupWaitsNoMore { .. }
                | ElevatorEvent::Waiting { .. },
            )
            | Event::Queue(QueueEvent::Busy { .. } | QueueEvent::NotBusy { .. }) => {}
            event => self.push(now, event),
        }
    }
}

impl RingRecorder {
    #[cold]
    #[inline(never)]
    fn push(&mut self, now: Instant, event: Event) {
        if self.events.len() >= self.most {
            self.events.pop_front();
            self.lost += 1;
        }
        self.events.push_back((now, event));
    }
}

/// A sink that is there now and then. While it is not, an event costs a look at that.
impl<T: Trace> Trace for Option<Box<T>> {
    #[inline]
    fn event(&mut self, now: Instant, event: Event) {
        if let Some(sink) = self {
            sink.event(now, event);
        }
    }
}

/// Two sinks, of which each takes every event.
impl<A: Trace, B: Trace> Trace for (A, B) {
    #[inline]
    fn event(&mut self, now: Instant, event: Event) {
        self.0.event(now, event);
        self.1.event(now, event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Nanos;

    #[test]
    fn ring_loses_the_oldest_and_counts_them() {
        let mut sink = (Some(Box::new(RingRecorder::new(3))), NoTrace);
        let at = |n| Instant::START + Nanos::from_nanos(n);
        (0..5).for_each(|n| sink.event(at(n), Event::Queue(QueueEvent::IdleTimerFired)));
        let ring = sink.0.as_mut().expect("it is there");
        let (events, lost) = ring.take(TimedEvents::new());
        assert_eq!(events.iter().map(|&(now, _)| now).collect::<Vec<_>>(), [at(2), at(3), at(4)]);
        assert_eq!(lost, 2);
        assert_eq!(ring.take(events), (TimedEvents::new(), 0), "all were taken");
        sink.event(at(9), Event::Queue(QueueEvent::IdleTimerFired));
        let ring = sink.0.as_mut().expect("it is there");
        assert_eq!(
            ring.take(TimedEvents::new()),
            (TimedEvents::from([(at(9), Event::Queue(QueueEvent::IdleTimerFired))]), 0)
        );
    }
}
