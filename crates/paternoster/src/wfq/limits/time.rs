//! Moments of the clocks of caps and reservations: 2⁻²⁰ ns, so that no rounding adds up.

use std::num::NonZeroU64;

use crate::time::{Instant, Nanos};

/// The bits of a moment below a nanosecond.
const FRACTION_BITS: u32 = 20;

const NANOS_PER_S: u128 = 1_000_000_000;

/// A moment, in 2⁻²⁰ ns on the elevator's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Moment(u128);

impl Moment {
    /// Before everything.
    pub(super) const ZERO: Self = Self(0);

    #[inline]
    pub(super) fn of(instant: Instant) -> Self {
        Self(u128::from(instant.as_nanos()) << FRACTION_BITS)
    }

    /// Returns the first whole nanosecond that is not before it, or the last there is.
    pub(super) fn ceil(self) -> Instant {
        let nanos = self.0.div_ceil(1 << FRACTION_BITS);
        Instant::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Returns the moment when `amount` more are done at `per_s`: + ⌈amount / rate⌉. It never
    /// overflows: an amount has 64 bits, and so at most 2¹¹⁴ is added.
    #[inline]
    pub(super) fn after(self, amount: u64, per_s: NonZeroU64) -> Self {
        let span =
            ((u128::from(amount) * NANOS_PER_S) << FRACTION_BITS).div_ceil(per_s.get().into());
        Self(self.0.saturating_add(span))
    }

    /// The same for an amount in 2⁻²⁰: + ⌈amount / 2²⁰ / rate⌉.
    #[inline]
    pub(super) fn after_fraction(self, amount: u64, per_s: NonZeroU64) -> Self {
        let span = (u128::from(amount) * NANOS_PER_S).div_ceil(per_s.get().into());
        Self(self.0.saturating_add(span))
    }
}

/// Returns the moment `span` before `instant`, but not before the clock's zero.
pub(super) fn before(instant: Instant, span: Nanos) -> Instant {
    instant.saturating_sub(span)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(per_s: u64) -> NonZeroU64 {
        NonZeroU64::new(per_s).expect("a rate")
    }

    /// 3 a second: a third of a second each, rounded up by less than 2⁻²⁰ ns.
    #[test]
    fn rounding_does_not_add_up() {
        let mut at = Moment::ZERO;
        for _ in 0..3_000_000 {
            at = at.after(1, rate(3));
        }
        let seconds = Moment::of(Instant::from_nanos(1_000_000 * 1_000_000_000));
        assert!(at >= seconds && at.0 - seconds.0 <= 3_000_000, "{at:?} for {seconds:?}");
    }

    #[test]
    fn most_at_the_slowest_rate_fits() {
        let at = Moment::of(Instant::from_nanos(u64::MAX)).after(u64::MAX, rate(1));
        assert!(at > Moment::of(Instant::from_nanos(u64::MAX)));
        assert_eq!(at.ceil(), Instant::from_nanos(u64::MAX));
    }

    #[test]
    fn fraction_of_an_op_is_that_part_of_an_op() {
        let whole = Moment::ZERO.after(5, rate(7));
        assert_eq!(Moment::ZERO.after_fraction(5 << 20, rate(7)), whole);
    }
}
