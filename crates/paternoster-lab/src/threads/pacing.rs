//! How fast a thread goes: pauses after so many I/Os, and a rate for each direction.
//!
//! ```text
//!   thinktime   I/O I/O I/O |spin|── sleep ──| I/O I/O I/O …
//!   rate        an I/O of b bytes has the next one of its direction due b ÷ rate later
//! ```

use paternoster::{Instant, Nanos};

use crate::fio::{DataDirection, Pacing, RateProcess, ThinkTrigger};
use paternoster_model::{Draws, Who};

/// When a thread may go on.
#[derive(Debug)]
pub(super) struct Pace {
    rules: Pacing,
    /// I/Os that count towards the next pause.
    ios: u32,
    /// When the time towards the next pause began.
    since: Instant,
    /// The end of a pause.
    until: Option<Instant>,
    /// When the next I/O of each direction is due.
    due: [Instant; 3],
    /// The direction of the last I/O.
    last: DataDirection,
    draws: Draws,
}

impl Pace {
    pub(super) fn new(rules: Pacing, seed: u64) -> Self {
        let start = Instant::from_nanos(0);
        let draws = Draws::new(seed, Who::Job, 6);
        let last = DataDirection::Read;
        Self { rules, ios: 0, since: start, until: None, due: [start; 3], last, draws }
    }

    /// The thread begins.
    pub(super) fn start(&mut self, now: Instant) {
        self.since = now;
        self.due = [now; 3];
    }

    /// Counts an I/O that was submitted.
    pub(super) fn submitted(&mut self, now: Instant) {
        self.count(ThinkTrigger::Issue, now);
    }

    /// Counts an I/O that completed.
    pub(super) fn completed(&mut self, now: Instant) {
        self.count(ThinkTrigger::Complete, now);
    }

    fn count(&mut self, trigger: ThinkTrigger, now: Instant) {
        let Some(think) = self.rules.think else { return };
        if think.trigger != trigger {
            return;
        }
        self.ios += 1;
        let by_ios = think.ios.is_some_and(|ios| self.ios >= ios);
        let by_time = think.after.is_some_and(|after| now.saturating_since(self.since) >= after);
        if by_ios || by_time {
            self.ios = 0;
            let until = now + think.pause;
            self.since = until;
            self.until = Some(until);
            if self.rules.rate_ignores_think {
                self.forgive(think.pause, until);
            }
        }
    }

    /// What is missed in a pause is not caught up. As fio 3.33 was seen to: what would have been
    /// due by the end of the pause is due then, and what is due later is put off by the pause. That
    /// holds for the direction of the last I/O before the pause; the other one catches up.
    fn forgive(&mut self, pause: Nanos, until: Instant) {
        let due = &mut self.due[self.last as usize];
        *due = if *due <= until { until } else { *due + pause };
    }

    /// The end of the pause in which the thread is.
    pub(super) fn pause(&mut self, now: Instant) -> Option<Instant> {
        self.until = self.until.filter(|until| *until > now);
        self.until
    }

    /// When an I/O of that direction is due.
    pub(super) fn due(&self, direction: DataDirection) -> Instant {
        self.due[direction as usize]
    }

    /// How long an I/O of each direction would have to wait.
    pub(super) fn waits(&self, now: Instant) -> [Nanos; 3] {
        self.due.map(|due| due.saturating_since(now))
    }

    /// An I/O of that direction is submitted: the next one is due later.
    pub(super) fn spend(&mut self, direction: DataDirection, bytes: u64) {
        self.last = direction;
        let index = direction as usize;
        let Some(rate) = self.rules.rate_bytes_per_s[index] else { return };
        let evenly = |bytes: u64| {
            let nanos = u128::from(bytes) * 1_000_000_000 / u128::from(rate.max(1));
            u64::try_from(nanos).unwrap_or(u64::MAX)
        };
        let gap = match self.rules.rate_process {
            RateProcess::Linear => evenly(bytes),
            RateProcess::Poisson => {
                exponential(&mut self.draws, evenly(self.rules.least_bytes[index]))
            }
        };
        self.due[index] = self.due[index] + Nanos::new(gap);
    }
}

/// Draws the time between two events of a Poisson process that are `mean` ns apart on average:
///
/// `−mean × ln (1 − u)`, of u from 0 up to 1
#[allow(clippy::cast_precision_loss)] // a nanosecond more or less in 2⁵³
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // as a float is cut by `as`
fn exponential(draws: &mut Draws, mean: u64) -> u64 {
    (mean as f64 * -libm::log(1.0 - draws.unit())) as u64
}
