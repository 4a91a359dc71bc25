//! How often a thread loses the CPU for long to something else: one that sleeps beside one that
//! polls.
//!
//! ```text
//!   sleeps   ├──── s ────┤╌╌╌╌╌╌ somebody else runs ╌╌╌╌╌╌┤ R     overshoot of 3 ms
//!   polls    ├ look look look ╌╌ somebody else runs ╌╌╌╌╌╌┤ look   3 ms between two looks
//! ```
//!
//! On a machine that others use, too, a sleep may end milliseconds late because its CPU is theirs
//! for a time slice. A thread that polls loses its CPU to them as well, so that such a *stall* is
//! no price of sleeping. But it may be one: a virtual CPU that goes idle can wait for its turn
//! where a busy one would not. Which of both holds here is counted.
//!
//! One stall outweighs thousands of sleeps that end in time: 1 ms in 500 sleeps is a mean of 2 µs,
//! five times what may be added to an I/O of 100 µs. So stalls are not among the 512 samples of
//! which a sleep is chosen, where one would forbid sleeping and none allow it, by chance; they are
//! counted over a minute. Sleeping is charged for what it loses beyond what polling would have lost
//! in the same time, once that is more than chance: more than twice as many stalls, and twelve. Who
//! sleeps two thirds of his time has thirteen and none while he polls once in 200 times by chance.

use super::statistics::StallStatistics;
use crate::time::Nanos;

/// An overshoot, or a span between two looks, from which on it is a stall. No idle state takes as
/// long to leave, no interrupt to serve; a time slice is longer.
pub(super) const STALL: Nanos = Nanos::from_micros(200);
/// So many stalls more than expected may be chance.
const CHANCE: u64 = 12;
/// Time asleep and polling after which what is counted counts half.
const SPAN: Nanos = Nanos::from_secs(64);

impl StallStatistics {
    fn add(&mut self, time: Nanos, lost: Nanos) {
        self.time += time;
        if lost >= STALL {
            self.stalls += 1;
            self.lost += lost;
        }
    }

    fn halve(&mut self) {
        let half = |span: Nanos| Nanos::new(span.as_nanos() / 2);
        let Self { time, stalls, lost } = *self;
        *self = Self { time: half(time), stalls: stalls / 2, lost: half(lost) };
    }

    /// `of` this share, in as much time as the other one's.
    fn in_time_of(&self, other: &Self, of: u64) -> u64 {
        let all = u128::from(of) * u128::from(other.time.as_nanos());
        let part = all.checked_div(u128::from(self.time.as_nanos())).unwrap_or(0);
        u64::try_from(part).unwrap_or(u64::MAX)
    }
}

#[derive(Debug, Default)]
pub(super) struct Stalls {
    pub(super) asleep: StallStatistics,
    pub(super) polling: StallStatistics,
    sleeps: u64,
}

impl Stalls {
    /// Notes a sleep: how long it was asked to be, and how much later it ended.
    pub(super) fn slept(&mut self, asked: Nanos, overshoot: Nanos) {
        self.sleeps += 1;
        self.asleep.add(asked + overshoot, overshoot);
        self.age();
    }

    /// Notes a span between two looks.
    pub(super) fn polled(&mut self, span: Nanos) {
        self.polling.add(span, span);
        self.age();
    }

    /// Latency that stalls add to a sleep on average, beyond what they would add to polling; zero
    /// where it may be chance.
    pub(super) fn excess(&self) -> Nanos {
        let Self { asleep, polling, sleeps } = self;
        if asleep.stalls <= 2 * polling.in_time_of(asleep, polling.stalls) + CHANCE {
            return Nanos::ZERO;
        }
        let lost = asleep.lost.as_nanos();
        let beyond = lost.saturating_sub(polling.in_time_of(asleep, polling.lost.as_nanos()));
        Nanos::new(beyond / sleeps.max(&1))
    }

    fn age(&mut self) {
        if self.asleep.time + self.polling.time >= SPAN {
            self.asleep.halve();
            self.polling.halve();
            self.sleeps /= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = Nanos::from_millis(1);
    const BRIEF: Nanos = Nanos::from_micros(100);

    /// 1 s asleep and as long polling, each with so many stalls of 1 ms.
    fn stalls(asleep: u64, polling: u64) -> Stalls {
        let mut stalls = Stalls::default();
        (0..asleep).for_each(|_| stalls.slept(Nanos::ZERO, MS));
        (0..10_000 - 10 * asleep).for_each(|_| stalls.slept(BRIEF, Nanos::ZERO));
        (0..polling).for_each(|_| stalls.polled(MS));
        (0..10_000 - 10 * polling).for_each(|_| stalls.polled(BRIEF));
        stalls
    }

    #[test]
    fn stalls_that_polling_has_too_are_not_charged() {
        assert_eq!(stalls(20, 20).excess(), Nanos::ZERO, "as many");
        assert_eq!(stalls(20, 4).excess(), Nanos::ZERO, "no more than 2 × 4 + 12");
        assert_eq!(stalls(12, 0).excess(), Nanos::ZERO, "twelve may be chance");
    }

    /// 20 ms lost, of which polling would have lost 3, in 9,820 sleeps; then 13 ms in 9,883.
    #[test]
    fn what_sleeping_loses_beyond_polling_is_charged_to_each_sleep() {
        assert_eq!(stalls(20, 3).excess(), Nanos::new(17_000_000 / 9_820));
        assert_eq!(stalls(13, 0).excess(), Nanos::new(13_000_000 / 9_883));
    }

    /// As many in a third of the time are three times as many.
    #[test]
    fn shares_are_compared_by_time() {
        let mut some = stalls(20, 4);
        assert_eq!(some.excess(), Nanos::ZERO);
        (0..20_000).for_each(|_| some.polled(BRIEF));
        assert_eq!(some.excess(), Nanos::new((20_000_000 - 4_000_000 / 3) / 9_820));
    }

    #[test]
    fn what_is_short_is_no_stall_however_often() {
        let mut stalls = Stalls::default();
        let short = STALL.saturating_sub(Nanos::new(1));
        (0..1_000).for_each(|_| stalls.slept(BRIEF, short));
        assert_eq!(stalls.excess(), Nanos::ZERO);
        (0..13).for_each(|_| stalls.slept(BRIEF, STALL));
        assert_eq!(stalls.excess(), Nanos::new(2_600_000 / 1_013));
    }

    /// 13 stalls in 2 s and none in 62: then they count six and a half, rounded down.
    #[test]
    fn old_stalls_count_less_and_less() {
        let mut stalls = stalls(13, 0);
        (0..619_999).for_each(|_| stalls.polled(BRIEF));
        assert_ne!(stalls.excess(), Nanos::ZERO);
        stalls.polled(BRIEF);
        assert_eq!(stalls.excess(), Nanos::ZERO);
    }
}
