//! How fast the device serves, and what is lost while a queue has it and others wait.
//!
//! ```text
//!   the services of a group,     the queue always had requests  ──▶ their mean
//!   4 ms of them at a time       it had not                     ──▶ if faster than known
//!
//!   lost = speed × time − what was served in the time
//! ```
//!
//! A service that ran out of requests only shows that the device is at least that fast. So until a
//! queue keeps the device busy, its speed is the fastest that was seen.
//!
//! What the device completes counts, whosever it is: what a queue dispatches at the end of its
//! service is completed in the time of the next one.

use crate::time::{Instant, Nanos};

/// Once the services whose mean counts span more time than this, they count half.
const MEMORY: Nanos = Nanos::from_millis(1000);
/// So much of a group's services is judged at once: in less, completions that come together make
/// the device look faster than it is.
const JUDGED: Nanos = Nanos::from_millis(4);

/// What the device completed, and in what time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Served {
    pub(crate) amount: u64,
    pub(crate) time: Nanos,
}

impl Served {
    fn add(&mut self, more: Self) {
        self.amount = self.amount.saturating_add(more.amount);
        self.time += more.time;
    }
}

/// A moment: when it was, and what the device had completed by then.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    at: Instant,
    completed: u64,
}

impl Mark {
    /// When it was.
    #[inline]
    pub(crate) fn at(self) -> Instant {
        self.at
    }
}

/// The services of a group that are not judged yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unjudged {
    served: Served,
    /// In one of them the queue was short of requests.
    short: bool,
}

/// How fast the device serves.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ServiceSpeed {
    /// What the device has completed so far.
    completed: u64,
    /// What was learned.
    learned: Served,
    /// That is from services in which the queue always had requests.
    kept_busy: bool,
}

impl ServiceSpeed {
    /// The device has completed so much.
    #[inline]
    pub(crate) fn complete(&mut self, amount: u64) {
        self.completed = self.completed.wrapping_add(amount);
    }

    /// Marks this moment.
    #[inline]
    pub(crate) fn mark(&self, now: Instant) -> Mark {
        Mark { at: now, completed: self.completed }
    }

    /// What the device has completed since.
    pub(crate) fn since(&self, mark: Mark, now: Instant) -> Served {
        let amount = self.completed.wrapping_sub(mark.completed);
        Served { amount, time: now.saturating_since(mark.at) }
    }

    /// Learns from a service, in which the queue was short of requests at some time or not.
    /// `of_group` is of its group.
    pub(crate) fn learn(&mut self, of_group: &mut Unjudged, served: Served, short: bool) {
        of_group.served.add(served);
        of_group.short |= short;
        if of_group.served.time < JUDGED {
            return;
        }
        let Unjudged { served, short } = std::mem::take(of_group);
        if !short {
            self.learn_mean(served);
        } else if served.amount > self.served_in(served.time) {
            self.learned = served;
            self.kept_busy = false;
        }
    }

    fn learn_mean(&mut self, served: Served) {
        if !std::mem::replace(&mut self.kept_busy, true) {
            self.learned = Served::default();
        }
        self.learned.add(served);
        if self.learned.time > MEMORY {
            self.learned.amount /= 2;
            self.learned.time = Nanos::new(self.learned.time.as_nanos() / 2);
        }
    }

    /// Returns what the device would have completed in the time beyond what was served; nothing
    /// before its speed is known.
    pub(crate) fn lost(&self, served: Served) -> u64 {
        self.served_in(served.time).saturating_sub(served.amount)
    }

    /// Returns what the device completes in that time, rounded; 0 before its speed is known.
    fn served_in(&self, time: Nanos) -> u64 {
        let of = u128::from(self.learned.time.as_nanos().max(1));
        let amount = u128::from(self.learned.amount);
        let served = (amount * u128::from(time.as_nanos()) + of / 2) / of;
        u64::try_from(served).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(amount: u64, millis: u64) -> Served {
        Served { amount, time: Nanos::from_millis(millis) }
    }

    const BUSY: bool = false;
    const SHORT: bool = true;

    #[test]
    fn speed_is_the_mean_of_services_by_their_time() {
        let (mut speed, mut group) = (ServiceSpeed::default(), Unjudged::default());
        assert_eq!(speed.lost(served(0, 5)), 0, "nothing is known");
        speed.learn(&mut group, served(40, 5), BUSY);
        speed.learn(&mut group, served(10, 5), BUSY);
        assert_eq!(speed.lost(served(0, 3)), 15);
        assert_eq!(speed.lost(served(4, 3)), 11, "4 of them were completed");
        assert_eq!(speed.lost(served(16, 3)), 0, "the device was faster");
        let short = Served { amount: 0, time: Nanos::from_micros(300) };
        assert_eq!(speed.lost(short), 2, "1.5 is rounded");
    }

    #[test]
    fn what_is_old_is_forgotten() {
        let (mut speed, mut group) = (ServiceSpeed::default(), Unjudged::default());
        speed.learn(&mut group, served(1_000_000, 1000), BUSY);
        for _ in 0..40 {
            speed.learn(&mut group, served(500, 500), BUSY);
        }
        assert_eq!(speed.lost(served(0, 500)), 500);
    }

    /// A queue that is short of requests shows that the device does 10 a millisecond. That it then
    /// does 2 says nothing, but from one that always has requests it does.
    #[test]
    fn who_is_short_of_requests_teaches_only_that_the_device_is_faster() {
        let (mut speed, mut group) = (ServiceSpeed::default(), Unjudged::default());
        let mut learn = |amount, short| {
            speed.learn(&mut group, served(amount, 4), short);
            speed.lost(served(0, 10))
        };
        assert_eq!([4, 40, 8].map(|amount| learn(amount, SHORT)), [10, 100, 100], "no mean");
        assert_eq!(learn(24, BUSY), 60, "nothing is left of what was short");
        assert_eq!(learn(20, SHORT), 60);
        assert_eq!(learn(16, BUSY), 50, "the mean of 24 and 16 in 4 ms");
        assert_eq!(learn(28, SHORT), 70);
    }

    /// Two completions in no time say nothing: what counts is 6 in 4 ms. A queue whose turn is over
    /// at once, as its budget is used up, had set what was known to nothing.
    #[test]
    fn short_services_of_a_group_are_judged_together() {
        let mut speed = ServiceSpeed::default();
        let [mut one, mut other] = [Unjudged::default(); 2];
        for (amount, millis) in [(2, 0), (1, 1), (1, 2), (0, 0)] {
            speed.learn(&mut one, served(amount, millis), SHORT);
        }
        speed.learn(&mut other, served(50, 3), SHORT);
        assert_eq!(speed.lost(served(0, 40)), 0, "neither group has had 4 ms");
        speed.learn(&mut one, served(2, 1), BUSY);
        assert_eq!(speed.lost(served(0, 40)), 60);
        for _ in 0..1000 {
            speed.learn(&mut one, served(0, 0), BUSY);
        }
        assert_eq!(speed.lost(served(0, 40)), 60);
        speed.learn(&mut other, served(2, 1), BUSY);
        assert_eq!(speed.lost(served(0, 40)), 520);
    }

    #[test]
    fn what_the_device_completes_between_two_moments_is_served() {
        let at = |ms| Instant::START + Nanos::from_millis(ms);
        let mut speed = ServiceSpeed::default();
        speed.complete(7);
        let mark = speed.mark(at(2));
        speed.complete(8);
        speed.complete(16);
        assert_eq!(speed.since(mark, at(5)), served(24, 3));
    }
}
