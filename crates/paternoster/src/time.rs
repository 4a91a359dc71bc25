//! Time, which callers pass in; nothing here reads a clock.
//!
//! Linux's schedulers use two clocks, and decisions depend on which one to the bit. CFQ and BFQ
//! count nanoseconds ([`Instant`], [`Nanos`]); mq-deadline counts ticks of the jiffies clock
//! ([`Jiffies`], [`Ticks`]), so that two events of one tick are simultaneous. [`Hz`] converts, and
//! rounds where Linux rounds: an instant down to its tick, a span up to whole ticks.

use std::ops::{Add, AddAssign, Mul, Sub};

const NANOS_PER_MILLI: u64 = 1_000_000;
const NANOS_PER_SECOND: u32 = 1_000_000_000;

/// A moment: nanoseconds on some clock. The driver of an elevator passes moments of its own clock,
/// such as `CLOCK_MONOTONIC`. Inside, the elevator counts from [`Instant::START`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

impl Instant {
    /// Where an elevator's own time starts: 10¹² ns, because Linux's clocks are never near 0 and
    /// several of its rules rely on it. A caller that has no clock of its own, as a simulation,
    /// starts here too, and then both clocks are the same.
    pub const START: Self = Self(1_000_000_000_000);

    /// The moment that many nanoseconds after the clock's zero.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the clock's zero.
    #[inline]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns the time since `earlier`, or no time if that is later.
    #[inline]
    pub const fn saturating_since(self, earlier: Self) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }

    /// Returns the time since `earlier`. If that is later, the difference wraps in 64 bits and is
    /// almost endless. Linux's unsigned clocks do so, and decisions depend on it.
    #[inline]
    pub const fn wrapping_since(self, earlier: Self) -> Nanos {
        Nanos(self.0.wrapping_sub(earlier.0))
    }

    /// Returns the moment that long after, in 64 bits, which wrap.
    #[inline]
    pub(crate) const fn wrapping_add(self, span: Nanos) -> Self {
        Self(self.0.wrapping_add(span.0))
    }

    /// Returns the moment that long before, in 64 bits, which wrap.
    #[inline]
    pub(crate) const fn wrapping_sub(self, span: Nanos) -> Self {
        Self(self.0.wrapping_sub(span.0))
    }

    /// Returns the time since [`START`](Self::START), as logs print it.
    pub const fn since_start(self) -> Nanos {
        self.saturating_since(Self::START)
    }
}

impl Instant {
    /// Returns the moment that long before, but not before the clock's zero.
    #[inline]
    #[must_use]
    pub const fn saturating_sub(self, span: Nanos) -> Self {
        Self(self.0.saturating_sub(span.0))
    }
}

impl Add<Nanos> for Instant {
    type Output = Self;
    #[inline]
    fn add(self, span: Nanos) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

/// A span of time in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(u64);

impl Nanos {
    /// No time.
    pub const ZERO: Self = Self(0);

    /// A span of that many nanoseconds.
    #[inline]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// The same as [`from_nanos`](Self::from_nanos), in short.
    #[inline]
    pub const fn new(nanos: u64) -> Self {
        Self::from_nanos(nanos)
    }

    /// A span of that many microseconds.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros.saturating_mul(1_000))
    }

    /// A span of that many milliseconds.
    #[inline]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(NANOS_PER_MILLI))
    }

    /// A span of that many seconds.
    #[inline]
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(NANOS_PER_SECOND as u64))
    }

    /// The span in nanoseconds.
    #[inline]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }
}

impl Nanos {
    /// Returns what is left after `other`, or no time if that is longer.
    #[inline]
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Add for Nanos {
    type Output = Self;
    #[inline]
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Nanos {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

/// A moment on the jiffies clock. It is signed, so that a moment before the clock's zero is
/// negative and no comparison wraps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Jiffies(i64);

/// A span of the jiffies clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticks(i64);

impl Jiffies {
    /// Before every moment of a run, by more than any span in use.
    pub const LONG_AGO: Self = Self(i64::MIN / 2);
}

impl Ticks {
    /// A span of that many ticks; less than 0 is one backwards.
    pub const fn new(ticks: i64) -> Self {
        Self(ticks)
    }

    /// The number of ticks.
    #[inline]
    pub const fn count(self) -> i64 {
        self.0
    }
}

impl Mul<u32> for Ticks {
    type Output = Self;
    #[inline]
    fn mul(self, times: u32) -> Self {
        Self(self.0 * i64::from(times))
    }
}

impl Add<Ticks> for Jiffies {
    type Output = Self;
    #[inline]
    fn add(self, span: Ticks) -> Self {
        Self(self.0 + span.0)
    }
}

impl Sub<Ticks> for Jiffies {
    type Output = Self;
    #[inline]
    fn sub(self, span: Ticks) -> Self {
        Self(self.0 - span.0)
    }
}

impl Sub for Jiffies {
    type Output = Ticks;
    #[inline]
    fn sub(self, earlier: Self) -> Ticks {
        Ticks(self.0 - earlier.0)
    }
}

/// Ticks a second of the jiffies clock, such that a tick is a whole number of nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hz {
    ticks_per_s: u32,
    tick_nanos: u32,
}

impl Hz {
    /// The clock of the oracle, which is the default.
    pub const MILLI: Self = Self { ticks_per_s: 1000, tick_nanos: 1_000_000 };

    /// Makes a clock of `hz` ticks a second: 1 to 1000, and a divisor of 10⁹.
    pub fn new(hz: u32) -> Option<Self> {
        ((1..=1000).contains(&hz) && NANOS_PER_SECOND.is_multiple_of(hz))
            .then(|| Self { ticks_per_s: hz, tick_nanos: NANOS_PER_SECOND / hz })
    }

    #[inline]
    const fn tick_nanos(self) -> u64 {
        self.tick_nanos as u64
    }

    /// The length of a tick.
    #[inline]
    pub const fn tick(self) -> Nanos {
        Nanos(self.tick_nanos())
    }

    /// Ticks a second.
    #[inline]
    pub const fn ticks_per_s(self) -> u32 {
        self.ticks_per_s
    }

    /// Returns the tick in which `at` lies.
    #[inline]
    pub const fn jiffies(self, at: Instant) -> Jiffies {
        Jiffies((at.0 / self.tick_nanos()).cast_signed())
    }

    /// Returns the moment at which the tick begins, but not before the clock's zero.
    #[inline]
    pub const fn instant(self, at: Jiffies) -> Instant {
        let ticks = if at.0 < 0 { 0 } else { at.0.cast_unsigned() };
        Instant(ticks.saturating_mul(self.tick_nanos()))
    }

    /// Returns a span of milliseconds in ticks, rounded up as Linux does.
    #[inline]
    pub const fn ticks_from_millis(self, millis: u64) -> Ticks {
        if self.ticks_per_s == Self::MILLI.ticks_per_s {
            // Most clocks have ticks of a millisecond, and mq-deadline asks for each request.
            return Ticks(millis.cast_signed());
        }
        Ticks(millis.saturating_mul(self.ticks_per_s as u64).div_ceil(1000).cast_signed())
    }

    /// Returns the ticks of that part of a second, rounded down, but at least one.
    ///
    /// # Panics
    ///
    /// Where `parts` is 0.
    #[inline]
    pub const fn part_of_second(self, parts: u32) -> Ticks {
        let ticks = self.ticks_per_s / parts;
        Ticks(if ticks > 0 { ticks as i64 } else { 1 })
    }

    /// Returns the whole ticks in a span.
    #[inline]
    pub const fn whole_ticks(self, span: Nanos) -> Ticks {
        Ticks((span.0 / self.tick_nanos()).cast_signed())
    }

    /// Returns a span of ticks in milliseconds, rounded down; 0 if it is negative.
    #[inline]
    pub const fn millis(self, span: Ticks) -> u64 {
        let ticks = if span.0 < 0 { 0 } else { span.0.cast_unsigned() };
        ticks.saturating_mul(1000) / self.ticks_per_s as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moment_falls_into_the_tick_that_began_before_it() {
        let hz = Hz::new(250).expect("a tick of 4 ms");
        assert_eq!(hz.jiffies(Instant::from_nanos(7_999_999)), Jiffies(1));
        assert_eq!(hz.jiffies(Instant::from_nanos(8_000_000)), Jiffies(2));
        assert_eq!(hz.instant(Jiffies(2)), Instant::from_nanos(8_000_000));
    }

    #[test]
    fn span_of_milliseconds_is_rounded_up_to_whole_ticks() {
        let hz = Hz::new(250).expect("a tick of 4 ms");
        assert_eq!(hz.ticks_from_millis(1), Ticks(1));
        assert_eq!(hz.ticks_from_millis(4), Ticks(1));
        assert_eq!(hz.ticks_from_millis(5), Ticks(2));
    }

    #[test]
    fn clock_whose_tick_is_no_whole_number_of_nanoseconds_is_refused() {
        assert_eq!(Hz::new(300), None);
        assert_eq!(Hz::new(0), None);
        assert_eq!(Hz::new(2000), None);
    }
}
