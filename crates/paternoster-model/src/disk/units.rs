//! Milliseconds in floating point, in which a disk computes, and how they become nanoseconds.
//!
//! Only `+ - * /`, square roots and rounding are used, whose results IEEE 754 fixes to the bit: the
//! same commands take the same time on every machine.

use std::ops::{Add, AddAssign, Mul, Sub};

use paternoster::{Instant, Nanos};

const NANOS_PER_MILLI: f64 = 1e6;

/// A span in milliseconds, or a moment: the span since [`Instant::START`].
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Millis(pub f64);

impl Millis {
    /// No time, or the start.
    pub const ZERO: Self = Self(0.0);

    /// The moment on the disk's clock.
    pub(super) fn from_instant(instant: Instant) -> Self {
        Self(real(instant.since_start().as_nanos()) / NANOS_PER_MILLI)
    }

    /// The nearest nanosecond.
    pub(super) fn to_instant(self) -> Instant {
        Instant::START + self.to_nanos()
    }

    /// The nearest nanosecond; none if it is negative.
    pub(super) fn to_nanos(self) -> Nanos {
        Nanos::new(whole((self.0 * NANOS_PER_MILLI).round()))
    }

    /// The later or longer one.
    pub(super) fn max(self, other: Self) -> Self {
        if other > self { other } else { self }
    }

    /// The earlier or shorter one.
    pub(super) fn min(self, other: Self) -> Self {
        if other < self { other } else { self }
    }
}

impl Add for Millis {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Millis {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl Sub for Millis {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl Mul<f64> for Millis {
    type Output = Self;
    fn mul(self, times: f64) -> Self {
        Self(self.0 * times)
    }
}

/// A count as a real number. Counts are of sectors, tracks and nanoseconds of a run.
#[expect(clippy::cast_precision_loss, reason = "exact below 2^53, and close enough above")]
pub(crate) fn real(count: u64) -> f64 {
    count as f64
}

/// The whole part; 0 of what is negative or no number.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
pub(crate) fn whole(number: f64) -> u64 {
    number as u64
}
