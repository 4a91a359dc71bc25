//! A time in which the far server does not answer what is asked of it, and when that ends.
//!
//! ```text
//!   lost ──▶ requests wait ──`reconnect` is over──▶ requests fail ──the probe is answered──▶ trial
//!               │                                       ▲   requests are let in again, and wait │
//!               │                                       └───────────────lost────────────────────┤
//!               └─a request is answered──▶ over ◀──a request is answered, or a second has passed┘
//! ```
//!
//! To be reached is not to be back: a server that takes connections and hangs up, or answers the
//! probe alone, leaves what waits waiting. Only where nothing waits is the probe enough.

use paternoster::{Instant, Nanos};

use super::pauses::USEFUL_LIFE;

/// An outage.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outage {
    pub(super) since: Instant,
    state: State,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// Requests wait.
    Waits,
    /// It has lasted so long that requests fail.
    Fails,
    /// Since that moment requests are let in again, to see whether they are answered.
    Trial(Instant),
}

impl Outage {
    pub(super) fn new(since: Instant) -> Self {
        Self { since, state: State::Waits }
    }

    /// Whether requests wait.
    pub(super) fn waits(&self) -> bool {
        matches!(self.state, State::Waits)
    }

    /// Whether requests fail at once.
    pub(super) fn fails(&self) -> bool {
        matches!(self.state, State::Fails)
    }

    /// Has requests fail if that is due: it has lasted for so long. Returns whether it begins.
    pub(super) fn begin_to_fail(&mut self, now: Instant, reconnect: Nanos) -> bool {
        let begins =
            matches!(self.state, State::Waits) && now.saturating_since(self.since) >= reconnect;
        if begins {
            self.state = State::Fails;
        }
        begins
    }

    /// A connection is lost. Returns whether a trial ends by that: what it let in fails.
    pub(super) fn handle_loss(&mut self) -> bool {
        let was_trial = matches!(self.state, State::Trial(_));
        if was_trial {
            self.state = State::Fails;
        }
        was_trial
    }

    /// The probe is answered; `waits` says whether requests wait. Returns whether it is over.
    pub(super) fn handle_probe(&mut self, now: Instant, waits: bool) -> bool {
        match self.state {
            State::Waits => !waits,
            State::Fails => {
                self.state = State::Trial(now);
                false
            }
            State::Trial(_) => false,
        }
    }

    /// Whether a trial has gone well for so long that it is over by now, as nothing is asked.
    pub(super) fn has_passed(&self, now: Instant, waits: bool) -> bool {
        matches!(self.state, State::Trial(since) if !waits && now >= since + USEFUL_LIFE)
    }

    /// When [`Self::begin_to_fail`] or [`Self::has_passed`] is due.
    pub(super) fn due(&self, reconnect: Nanos, waits: bool) -> Option<Instant> {
        match self.state {
            State::Waits => Some(self.since + reconnect),
            State::Trial(since) if !waits => Some(since + USEFUL_LIFE),
            State::Fails | State::Trial(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECONNECT: Nanos = Nanos::from_millis(2_000);

    fn at(millis: u64) -> Instant {
        Instant::START + Nanos::from_millis(millis)
    }

    #[test]
    fn server_that_is_reached_and_hangs_up_has_not_come_back() {
        let mut outage = Outage::new(at(0));
        for millis in (0..2_000).step_by(50) {
            assert!(!outage.handle_probe(at(millis), true), "a request waits");
            assert!(!outage.begin_to_fail(at(millis), RECONNECT));
            assert!(!outage.handle_loss(), "what waits goes on waiting");
            assert_eq!(outage.due(RECONNECT, true), Some(at(2_000)), "no loss begins it anew");
        }
        assert!(outage.begin_to_fail(at(2_000), RECONNECT) && outage.fails());
        assert!(!outage.begin_to_fail(at(3_000), RECONNECT), "once");
        assert_eq!(outage.due(RECONNECT, true), None);
    }

    #[test]
    fn probe_is_enough_where_nothing_waits() {
        assert!(Outage::new(at(0)).handle_probe(at(10), false));
    }

    #[test]
    fn trial_lets_requests_in_and_a_loss_has_them_fail() {
        let mut outage = Outage::new(at(0));
        outage.begin_to_fail(at(2_000), RECONNECT);
        assert!(!outage.handle_probe(at(3_000), false), "it may hang up at the first request");
        assert!(!outage.fails());
        assert_eq!(outage.due(RECONNECT, true), None, "a request may take its time");
        assert!(outage.handle_loss() && outage.fails(), "without another {RECONNECT:?}");
        outage.handle_probe(at(4_000), false);
        assert_eq!(outage.due(RECONNECT, false), Some(at(5_000)));
        assert!(!outage.has_passed(at(4_999), false) && outage.has_passed(at(5_000), false));
        assert!(!outage.has_passed(at(9_000), true), "the request has to be answered");
    }
}
