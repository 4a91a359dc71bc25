//! A thread that replays a log: when each of its steps is due.
//!
//! ```text
//!   version 3   a step is due as long after the step before it as in the log
//!   version 2   what is behind a `wait` is due so long after the start
//! ```

use paternoster::{Instant, Nanos};

use crate::fio::{Entry, IoLog, Mistake, Replay, Step, Timing};

/// A step that is so little late is not: stamps are whole microseconds.
const RESOLUTION: Nanos = Nanos::from_micros(1);

/// A log, as far as it was replayed.
#[derive(Debug)]
pub(super) struct Replaying {
    replay: Replay,
    /// When it began.
    from: Instant,
    /// When the last step was done, and when it was in the log.
    last: (Instant, Nanos),
    /// The step that is next.
    next: Option<Step>,
    is_over: bool,
    failure: Option<Mistake>,
}

/// What is next.
#[derive(Clone, Copy, Debug)]
pub(super) enum Next {
    /// This, now.
    Do(Entry),
    /// Nothing until then.
    Sleep(Instant),
    /// Nothing any more.
    End,
}

impl Replaying {
    pub(super) fn new(log: &IoLog) -> Self {
        let start = Instant::from_nanos(0);
        let replay = Replay::new(log);
        let last = (start, Nanos::ZERO);
        Self { replay, from: start, last, next: None, is_over: false, failure: None }
    }

    /// The thread begins.
    pub(super) fn start(&mut self, now: Instant) {
        self.from = now;
        self.last = (now, Nanos::ZERO);
    }

    /// Ends it.
    pub(super) fn stop(&mut self) {
        self.is_over = true;
        self.next = None;
    }

    /// How much of the log was replayed of how much.
    pub(super) fn work(&self) -> (u64, u64) {
        self.replay.work()
    }

    /// Why the log could not be replayed to its end.
    pub(super) fn failure(&self) -> Option<&Mistake> {
        self.failure.as_ref()
    }

    /// What is to be done now.
    pub(super) fn next(&mut self, now: Instant) -> Next {
        let Some(step) = self.next.take().or_else(|| self.read()) else { return Next::End };
        let due = self.due(step.at, now);
        if due > now {
            self.next = Some(step);
            return Next::Sleep(due);
        }
        let is_late = now.saturating_since(due) >= RESOLUTION;
        self.last = (if is_late { now } else { due }, step.at);
        Next::Do(step.entry)
    }

    fn read(&mut self) -> Option<Step> {
        if self.is_over {
            return None;
        }
        let step = self.replay.next().unwrap_or_else(|mistake| {
            self.failure = Some(mistake);
            None
        });
        self.is_over = step.is_none();
        step
    }

    /// When a step is due that is at `at` in the log.
    fn due(&self, at: Nanos, now: Instant) -> Instant {
        let (last, last_at) = self.last;
        match self.replay.timing() {
            Timing::None => now,
            Timing::FromStart => self.from + at,
            Timing::FromLast => last + Nanos::new(at.as_nanos().saturating_sub(last_at.as_nanos())),
        }
    }
}
