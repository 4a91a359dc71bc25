//! How the weight of one queue is raised: by which factor, as what, for how long and since when.
//!
//! ```text
//!                    arrives regularly                 its time is over, not that
//!                                                       as interactive
//!   interactive ─────────────────────▶ soft real time ──────────────────────▶ interactive
//!   weight × 30                        weight × 3000
//!        └─ time over, or overserved ──▶ not raised ◀── time over ─┘
//! ```
//!
//! `weight_raising.rs` decides when and for which queues these happen. A raising is a value: a
//! change of the factor makes another value, which counts once `Bfq::set_raising` has given it to
//! the queue and has updated the counts that depend on it.

use crate::bfq::time_constants::TimeConstants;
use crate::request::SectorCount;
use crate::time::{Jiffies, Ticks};

/// The raising factor of interactive queues.
const INTERACTIVE: u32 = 30;
/// By how much more than that soft real-time queues are raised.
const SOFT_RT: u32 = 100;
/// So many sectors start any application: an interactive queue that gets more is none.
const MAX_SERVED: u64 = 120_000;

/// As what a queue is raised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RaisedAs {
    Nothing,
    Interactive,
    SoftRealTime,
}

/// As what a queue may be raised that becomes busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EligibleAs {
    Interactive,
    SoftRealTime,
    Nothing,
    /// As nothing, and it is raised no more.
    OneOfLargeBurst,
}

/// For how long queues are raised.
#[derive(Clone, Copy, Debug)]
pub(super) struct RaisingLengths {
    pub(super) interactive: Ticks,
    pub(super) soft_rt: Ticks,
}

impl RaisingLengths {
    /// As interactive for what the reference device needs to start a large application, scaled by
    /// how much slower this one is: that device serves `reference_product`, in units of its rate
    /// times ticks, and this one `rate`.
    pub(super) fn new(times: &TimeConstants, reference_product: u64, rate: u32) -> Self {
        let ticks = Ticks::new((reference_product / u64::from(rate)).cast_signed());
        let interactive = ticks.clamp(times.raise_min, times.raise_max);
        Self { interactive, soft_rt: times.soft_rt }
    }
}

/// How a queue is raised. Kept for each user while queues are merged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Raising {
    /// The raising factor; 1 if the queue is not raised.
    factor: u32,
    /// As what it is raised, or was last where Linux takes nothing but the factor away.
    raised_as: RaisedAs,
    /// For how long; 0 after it has ended.
    length: Ticks,
    /// Since when it is raised, or is not any more.
    since: Jiffies,
    /// When it was raised as interactive, before it was as soft real time.
    interactive_since: Jiffies,
    /// Sectors served while raised.
    served: u64,
}

impl Raising {
    /// The raising of a new queue.
    pub(super) fn none(now: Jiffies) -> Self {
        Self {
            factor: 1,
            raised_as: RaisedAs::Nothing,
            length: Ticks::new(0),
            since: now,
            interactive_since: Jiffies::LONG_AGO,
            served: 0,
        }
    }

    #[inline]
    pub(super) fn is_raised(&self) -> bool {
        self.factor > 1
    }

    #[inline]
    pub(super) fn factor(&self) -> u32 {
        self.factor
    }

    pub(super) fn is_interactive(&self) -> bool {
        self.factor == INTERACTIVE
    }

    /// Returns whether it is, or was last, raised as soft real time.
    #[inline]
    pub(super) fn is_soft_rt(&self) -> bool {
        self.raised_as == RaisedAs::SoftRealTime
    }

    pub(super) fn length(&self) -> Ticks {
        self.length
    }

    pub(super) fn since(&self) -> Jiffies {
        self.since
    }

    pub(super) fn served(&self) -> u64 {
        self.served
    }

    /// Returns whether the time is over for which it is raised.
    #[inline]
    pub(super) fn is_over(&self, now: Jiffies) -> bool {
        now > self.since + self.length
    }

    /// Returns whether more was served of it than starts any application.
    #[inline]
    pub(super) fn is_overserved(&self) -> bool {
        self.is_raised() && !self.is_soft_rt() && self.served > MAX_SERVED
    }

    /// Returns whether, beneath its being soft real time, its time as interactive still goes on.
    pub(super) fn is_interactive_beneath(&self, now: Jiffies, lengths: RaisingLengths) -> bool {
        self.is_soft_rt() && now <= self.interactive_since + lengths.interactive
    }

    /// Raised as interactive. What was served of it while it was raised before counts on.
    pub(super) fn as_interactive(self, lengths: RaisingLengths) -> Self {
        let (raised_as, length) = (RaisedAs::Interactive, lengths.interactive);
        Self { factor: INTERACTIVE, raised_as, length, ..self }
    }

    fn as_soft_rt(self, lengths: RaisingLengths) -> Self {
        let (raised_as, length) = (RaisedAs::SoftRealTime, lengths.soft_rt);
        Self { factor: INTERACTIVE * SOFT_RT, raised_as, length, ..self }
    }

    /// It was not raised, and its queue becomes busy.
    pub(super) fn begun(self, eligible_as: EligibleAs, lengths: RaisingLengths) -> Self {
        match eligible_as {
            EligibleAs::Interactive => Self { served: 0, ..self }.as_interactive(lengths),
            EligibleAs::SoftRealTime => {
                Self { interactive_since: Jiffies::LONG_AGO, ..self }.as_soft_rt(lengths)
            }
            EligibleAs::Nothing | EligibleAs::OneOfLargeBurst => self,
        }
    }

    /// It was raised, and its queue becomes busy again: returns how it is raised from now on.
    pub(super) fn continued(
        self,
        now: Jiffies,
        eligible_as: EligibleAs,
        lengths: RaisingLengths,
    ) -> Self {
        match eligible_as {
            EligibleAs::Interactive => self.as_interactive(lengths),
            EligibleAs::SoftRealTime if self.is_soft_rt() => Self { since: now, ..self },
            EligibleAs::SoftRealTime => {
                let interactive_since = self.since;
                Self { since: now, interactive_since, ..self }.as_soft_rt(lengths)
            }
            EligibleAs::Nothing => self,
            EligibleAs::OneOfLargeBurst => self.without_factor(),
        }
    }

    /// As interactive again, for the rest of that time.
    pub(super) fn back_to_interactive(self, lengths: RaisingLengths) -> Self {
        Self { since: self.interactive_since, ..self.as_interactive(lengths) }
    }

    /// Raised no more.
    pub(super) fn ended(self, now: Jiffies) -> Self {
        let raised_as = RaisedAs::Nothing;
        Self { factor: 1, raised_as, length: Ticks::new(0), since: now, ..self }
    }

    /// Raised no more, but in all else as it was: in a large burst, after a merge and after a split
    /// Linux takes nothing but the factor away.
    pub(super) fn without_factor(self) -> Self {
        Self { factor: 1, ..self }
    }

    /// With the factor of another and in all else as it is: with low latency turned off, Linux
    /// gives a queue back everything but the factor.
    pub(super) fn with_factor_of(self, other: Self) -> Self {
        Self { factor: other.factor, ..self }
    }

    /// For the queue into which that of this one merges, and which was raised as `other`: what was
    /// served of that counts on.
    pub(super) fn handed_over(self, other: Self) -> Self {
        Self { served: other.served, ..self }
    }

    /// How a queue that never had a request is raised when its user is moved to another: as one
    /// that begins.
    pub(super) fn of_new_queue(self, now: Jiffies, served: u64, lengths: RaisingLengths) -> Self {
        Self { since: now, interactive_since: Jiffies::LONG_AGO, served, ..self }
            .as_interactive(lengths)
    }

    /// Restarts its time, or the time since it ended.
    #[inline]
    pub(super) fn restart(&mut self, now: Jiffies) {
        self.since = now;
    }

    #[inline]
    pub(super) fn note_served(&mut self, service: SectorCount) {
        if self.is_raised() {
            self.served += u64::from(service.0);
        }
    }

    /// Raised as soft real time, its queue is put in service long after it went idle: the time that
    /// it waited since then does not count.
    pub(super) fn prolong_soft_rt(&mut self, now: Jiffies, idle_since: Jiffies) {
        if self.is_raised() && self.is_soft_rt() && now > self.since && now > idle_since {
            let is_later = idle_since > self.since;
            self.since = if is_later { self.since + (now - idle_since) } else { now };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::{Hz, Instant};

    /// At 1000 Hz a tick is a millisecond.
    const LENGTHS: RaisingLengths =
        RaisingLengths { interactive: Ticks::new(7000), soft_rt: Ticks::new(300) };

    fn at(millis: i64) -> Jiffies {
        Hz::MILLI.jiffies(Instant::START) + Ticks::new(millis)
    }

    fn interactive() -> Raising {
        Raising::none(at(0)).begun(EligibleAs::Interactive, LENGTHS)
    }

    /// The rotational reference device does 14,000 units and takes 7 s; the bounds are 3 and 25 s.
    #[test]
    fn slower_device_has_more_time_within_bounds() {
        let times = TimeConstants::new(Hz::MILLI);
        let length = |rate| RaisingLengths::new(&times, 14_000 * 7000, rate).interactive;
        assert_eq!(length(14_000), Ticks::new(7000));
        assert_eq!(length(7000), Ticks::new(14_000));
        assert_eq!(length(100_000), Ticks::new(3000));
        assert_eq!(length(1), Ticks::new(25_000));
    }

    #[test]
    fn factors_are_30_and_3000() {
        let soft_rt = Raising::none(at(0)).begun(EligibleAs::SoftRealTime, LENGTHS);
        assert_eq!(Raising::none(at(0)).factor(), 1);
        assert_eq!((interactive().factor(), interactive().length()), (30, Ticks::new(7000)));
        assert_eq!((soft_rt.factor(), soft_rt.length()), (3000, Ticks::new(300)));
        assert!(interactive().is_interactive() && !interactive().is_soft_rt());
        assert!(soft_rt.is_soft_rt() && !soft_rt.is_interactive());
    }

    #[test]
    fn time_is_over_after_its_last_tick() {
        assert!(!interactive().is_over(at(7000)));
        assert!(interactive().is_over(at(7001)));
    }

    #[test]
    fn interactive_is_overserved_after_120_000_sectors_and_soft_real_time_never() {
        let mut raising = interactive();
        raising.note_served(SectorCount(120_000));
        assert!(!raising.is_overserved());
        raising.note_served(SectorCount(1));
        assert!(raising.is_overserved());
        let soft_rt = raising.continued(at(1), EligibleAs::SoftRealTime, LENGTHS);
        assert!(!soft_rt.is_overserved());
        // What begins as interactive begins to count.
        let ended = raising.ended(at(2));
        assert_eq!(ended.begun(EligibleAs::Interactive, LENGTHS).served(), 0);
        assert_eq!(ended.begun(EligibleAs::SoftRealTime, LENGTHS).served(), 120_001);
    }

    #[test]
    fn nothing_is_counted_of_what_is_not_raised() {
        let mut raising = Raising::none(at(0));
        raising.note_served(SectorCount(8));
        assert_eq!(raising.served(), 0);
    }

    /// 7 s from 0; soft real time from 5000 to 5300.
    #[test]
    fn soft_real_time_goes_back_to_what_is_left_of_interactive() {
        let soft_rt = interactive().continued(at(5000), EligibleAs::SoftRealTime, LENGTHS);
        assert!(soft_rt.is_over(at(5301)));
        assert!(soft_rt.is_interactive_beneath(at(7000), LENGTHS));
        assert!(!soft_rt.is_interactive_beneath(at(7001), LENGTHS));
        let back = soft_rt.back_to_interactive(LENGTHS);
        assert!(back.is_interactive() && !back.is_over(at(7000)) && back.is_over(at(7001)));
        assert!(!back.is_interactive_beneath(at(6000), LENGTHS), "it is that, not beneath");
    }

    #[test]
    fn soft_real_time_that_was_not_interactive_has_nothing_to_go_back_to() {
        let soft_rt = Raising::none(at(0)).begun(EligibleAs::SoftRealTime, LENGTHS);
        assert!(!soft_rt.is_interactive_beneath(at(1), LENGTHS));
    }

    /// The second batch does not hide when it was raised as interactive.
    #[test]
    fn each_batch_of_soft_real_time_prolongs_it() {
        let first = interactive().continued(at(5000), EligibleAs::SoftRealTime, LENGTHS);
        let second = first.continued(at(5200), EligibleAs::SoftRealTime, LENGTHS);
        assert!(!second.is_over(at(5500)) && second.is_over(at(5501)));
        assert!(second.is_interactive_beneath(at(7000), LENGTHS));
    }

    #[test]
    fn large_burst_takes_the_factor_and_leaves_the_rest() {
        let soft_rt = Raising::none(at(0)).begun(EligibleAs::SoftRealTime, LENGTHS);
        let raising = soft_rt.continued(at(1), EligibleAs::OneOfLargeBurst, LENGTHS);
        assert!(!raising.is_raised() && raising.is_soft_rt());
        assert_eq!(raising.length(), Ticks::new(300));
        let ended = soft_rt.ended(at(1));
        assert!(!ended.is_raised() && !ended.is_soft_rt());
        assert_eq!((ended.length(), ended.since()), (Ticks::new(0), at(1)));
    }

    /// Raised at 100; idle from 150, in service at 400: of the 300 ticks 50 have gone.
    #[test]
    fn soft_real_time_does_not_lose_the_time_that_it_waited() {
        let mut raising = Raising::none(at(100)).begun(EligibleAs::SoftRealTime, LENGTHS);
        raising.prolong_soft_rt(at(400), at(150));
        assert!(!raising.is_over(at(650)) && raising.is_over(at(651)));
        // Idle since before it was raised: its time restarts.
        raising.prolong_soft_rt(at(600), at(50));
        assert!(!raising.is_over(at(900)) && raising.is_over(at(901)));
        let mut other = interactive();
        other.prolong_soft_rt(at(400), at(150));
        assert_eq!(other.since(), at(0), "interactive is not prolonged");
    }
}
