//! What service costs, and the virtual time in which it is counted.
//!
//! ```text
//!   charge    2²⁰ units = 1 op, a read of no bytes
//!   advance   = ⌈charge × 2³² / weight⌉, of virtual time
//! ```
//!
//! The price of a request decides its charge (`price/`). The tags of the tree advance by it: a
//! node of twice the weight advances half as far. Rounding up makes every charge advance a tag, by
//! less than one of 2³² more than it should.

use std::fmt;
use std::ops::{Add, AddAssign};

/// The units of one op as a power of two.
const OP_BITS: u32 = 20;

/// How many bits of virtual time are below one unit a weight.
const FRACTION_BITS: u32 = 32;

/// How many advances a reservation may bring a tag ahead of others: when it ends, the node waits
/// for no more.
const ADVANCES_AHEAD: u128 = 16;

/// What service costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Units(u64);

impl Units {
    pub(super) const ZERO: Self = Self(0);
    /// One read of no bytes.
    pub(super) const OP: Self = Self(1 << OP_BITS);

    pub(super) const fn new(units: u64) -> Self {
        Self(units)
    }

    pub(super) const fn ops(ops: u32) -> Self {
        Self((ops as u64) << OP_BITS)
    }

    #[inline]
    pub(super) const fn count(self) -> u64 {
        self.0
    }

    /// Returns what is left without `other`; none where that is more.
    pub(super) fn without(self, other: Self) -> Option<Self> {
        self.0.checked_sub(other.0).map(Self)
    }

    /// Returns that many times as much.
    #[must_use]
    pub(super) const fn times(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }

    /// Returns it in thousandths of an op.
    pub(super) const fn milli_ops(self) -> u64 {
        self.0.saturating_mul(1000) >> OP_BITS
    }
}

impl Add for Units {
    type Output = Self;
    #[inline]
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Units {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

/// A moment of the virtual time of siblings: units × 2³² a weight. It never overflows: 2⁵³ of the
/// dearest requests fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Vtime(u128);

impl Vtime {
    /// The moment at which all siblings begin.
    pub const ZERO: Self = Self(0);

    /// A moment that never comes.
    pub(super) const LAST: Self = Self(u128::MAX);

    /// Returns it as a plain number: units (2²⁰ an op) × 2³² a weight.
    pub const fn raw(self) -> u128 {
        self.0
    }

    /// Returns the moment that `charge` brings a node of that weight to.
    #[inline]
    #[must_use]
    pub(super) fn advanced(self, charge: Units, weight: u32) -> Self {
        Self(self.0 + advance(charge, weight))
    }

    /// The same of a node that was brought forward among siblings whose time is `v`: it stays where
    /// it is, or comes to [`ADVANCES_AHEAD`] advances after v, if that is before.
    #[inline(never)]
    #[must_use]
    pub(super) fn brought_forward(self, v: Self, charge: Units, weight: u32) -> Self {
        let advance = advance(charge, weight);
        self.max(Self((self.0 + advance).min(v.0 + ADVANCES_AHEAD * advance)))
    }

    /// Returns how far ahead of `other` it is, in units of a node of that weight; 0 if it is not.
    pub(super) fn ahead_of(self, other: Self, weight: u32) -> Units {
        let distance = self.0.saturating_sub(other.0).saturating_mul(weight.into());
        Units(u64::try_from(distance >> FRACTION_BITS).unwrap_or(u64::MAX))
    }
}

impl fmt::Display for Vtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// ⌈charge × 2³² / weight⌉
#[inline]
fn advance(charge: Units, weight: u32) -> u128 {
    debug_assert_ne!(weight, 0, "a node has a weight");
    // Nearly every charge is below 4096 ops, and a division of 64 bits costs far less.
    match u32::try_from(charge.0) {
        Ok(small) => u128::from((u64::from(small) << FRACTION_BITS).div_ceil(weight.into())),
        Err(_) => wide_advance(charge, weight),
    }
}

/// The same where the charge has more than 32 bits.
#[cold]
fn wide_advance(charge: Units, weight: u32) -> u128 {
    (u128::from(charge.0) << FRACTION_BITS).div_ceil(weight.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advance_is_rounded_up_whatever_its_size() {
        assert_eq!(advance(Units(3), 1), 3 << 32);
        assert_eq!(advance(Units(1), 3), (1u128 << 32).div_ceil(3));
        // Both sides of the step to the wide division.
        let narrow = u64::from(u32::MAX);
        for charge in [narrow, narrow + 1, 1 << 43] {
            let exact = (u128::from(charge) << 32).div_ceil(7);
            assert_eq!(advance(Units(charge), 7), exact);
        }
    }

    #[test]
    fn any_number_of_the_dearest_requests_fits() {
        // 65536 sectors at 512 bytes an op, writes at 64 times the price: below 2⁴³ units, so an
        // advance is below 2⁷⁵, and 2⁵³ of them are below 2¹²⁸.
        assert!(advance(Units((1 << 43) - 1), 1) < 1 << 75);
    }

    #[test]
    fn distance_is_told_in_units_of_the_one_ahead() {
        let here = Vtime::ZERO.advanced(Units::ops(10), 64);
        let there = Vtime::ZERO.advanced(Units::ops(3), 64);
        assert_eq!(here.ahead_of(there, 128), Units::ops(14));
        assert_eq!(there.ahead_of(here, 128), Units::ZERO);
    }
}
