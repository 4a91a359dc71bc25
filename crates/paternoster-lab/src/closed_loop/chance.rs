//! Random times: how long a server takes, and how long a client needs until it asks again.
//!
//! All of them are drawn from a stream whose seed is an argument, by functions that give the same
//! everywhere.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a time in nanoseconds is far below 2^53, and not negative"
)]

use std::f64::consts::PI;

use paternoster::{Nanos, SectorCount};

use crate::fio::Draws;
use crate::model::{Command, Op};

/// So many sectors are a KiB.
pub(super) const SECTORS_PER_KIB: f64 = 2.0;

/// How the time of a server varies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Spread {
    /// Not at all.
    Constant,
    /// Log-normally around its mean, with this deviation of its logarithm.
    LogNormal(f64),
    /// In this part of all cases it takes so many times as long.
    Rare {
        /// The part, 0 to 1.
        part: f64,
        /// How many times as long.
        times: f64,
    },
    /// It is the least; longer by Pareto's law of this shape, up to so many times as long.
    Pareto {
        /// The lower, the heavier the tail.
        shape: f64,
        /// The longest, as a multiple of the least.
        most: f64,
    },
}

/// How long a server takes for a command.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Service {
    /// What the spread is applied to, in microseconds.
    pub us: f64,
    /// How that varies.
    pub spread: Spread,
    /// Further microseconds for each KiB, which do not vary.
    pub us_per_kib: f64,
    /// A write takes so many times as long as a read, in all.
    pub write_times: f64,
    /// A durable write takes so many microseconds more.
    pub durable_us: f64,
}

impl Service {
    /// Always the same time.
    pub const fn constant(us: f64) -> Self {
        Self { us, spread: Spread::Constant, us_per_kib: 0.0, write_times: 1.0, durable_us: 0.0 }
    }

    /// A time that varies.
    pub const fn varying(us: f64, spread: Spread) -> Self {
        Self { spread, ..Self::constant(us) }
    }

    /// What a command costs the device on average but for the spread, which is the same for all, in
    /// units of a read without bytes.
    pub(super) fn cost(&self, op: Op, durable: bool, sectors: SectorCount) -> f64 {
        let size = 1.0 + self.us_per_kib / self.us * f64::from(sectors.0) / SECTORS_PER_KIB;
        let times = if op == Op::Write { self.write_times } else { 1.0 };
        let further = if durable { self.durable_us / self.us } else { 0.0 };
        size * times + further
    }

    /// Draws the time of a command where the device is so many times as slow as it should be.
    pub(super) fn draw(&self, chance: &mut Chance, command: &Command, slower: f64) -> Nanos {
        let varied = self.us * chance.factor(self.spread);
        let size = self.us_per_kib * f64::from(command.sectors.0) / SECTORS_PER_KIB;
        let times = if command.op == Op::Write { self.write_times } else { 1.0 };
        let durable = if command.durable { self.durable_us } else { 0.0 };
        micros(((varied + size) * times + durable) * slower)
    }
}

/// A span of so many microseconds.
pub(super) fn micros(us: f64) -> Nanos {
    Nanos::new((us * 1000.0) as u64)
}

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub(super) struct Chance(Draws);

impl Chance {
    /// The `number`th stream of a seed.
    pub(super) fn new(seed: u64, number: u64) -> Self {
        Self(Draws::numbered(seed, number))
    }

    /// From 0 on and below 1.
    pub(super) fn unit(&mut self) -> f64 {
        self.0.unit()
    }

    /// Whether something happens that happens in this part of all cases.
    pub(super) fn happens(&mut self, part: f64) -> bool {
        self.unit() < part
    }

    /// A number below `end`, which is at most 2^53.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        #[allow(clippy::cast_precision_loss, reason = "at most 2^53")]
        let drawn = (self.unit() * end as f64) as u64;
        drawn.min(end.saturating_sub(1))
    }

    /// A span with this mean, exponentially distributed.
    pub(super) fn exponential(&mut self, mean_us: f64) -> Nanos {
        micros(-mean_us * libm::log(1.0 - self.unit()))
    }

    /// What a time is multiplied with that varies so.
    fn factor(&mut self, spread: Spread) -> f64 {
        match spread {
            Spread::Constant => 1.0,
            // The mean of exp(σ·z) is exp(σ²/2).
            Spread::LogNormal(sigma) => libm::exp(sigma * self.normal() - sigma * sigma / 2.0),
            Spread::Rare { part, times } => {
                if self.happens(part) {
                    times
                } else {
                    1.0
                }
            }
            Spread::Pareto { shape, most } => libm::pow(1.0 - self.unit(), -1.0 / shape).min(most),
        }
    }

    /// The standard normal distribution, by the method of Box and Muller.
    fn normal(&mut self) -> f64 {
        let radius = libm::sqrt(-2.0 * libm::log(1.0 - self.unit()));
        radius * libm::cos(2.0 * PI * self.unit())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of 200,000 draws.
    fn mean(spread: Spread) -> f64 {
        let mut chance = Chance::new(1, 1);
        (0..200_000).map(|_| chance.factor(spread)).sum::<f64>() / 200_000.0
    }

    /// The means that the distributions have by their formulas. Pareto's of shape 3 is 3/2 without
    /// a bound; above 1000 there is nothing worth counting.
    #[test]
    fn drawn_times_have_the_means_of_their_laws() {
        assert!((mean(Spread::LogNormal(0.8)) - 1.0).abs() < 0.01);
        assert!((mean(Spread::Rare { part: 0.02, times: 20.0 }) - 1.38).abs() < 0.02);
        assert!((mean(Spread::Pareto { shape: 3.0, most: 1000.0 }) - 1.5).abs() < 0.01);
        assert!((mean(Spread::Constant) - 1.0).abs() < 1e-9);
    }

    /// Log-normal with a deviation of 0.8: nine of ten are below exp(1.2816 · 0.8 − 0.32) = 2.02.
    #[test]
    fn nine_of_ten_log_normal_times_are_below_their_quantile() {
        let mut chance = Chance::new(2, 1);
        let below = (0..100_000).filter(|_| chance.factor(Spread::LogNormal(0.8)) < 2.02).count();
        assert!((89_500..90_500).contains(&below), "{below}");
    }

    #[test]
    fn cost_counts_bytes_writes_and_fua() {
        let service = Service {
            us_per_kib: 2.0,
            write_times: 3.0,
            durable_us: 50.0,
            ..Service::constant(100.0)
        };
        let cost = |op, durable| service.cost(op, durable, SectorCount(8));
        assert!((cost(Op::Read, false) - 1.08).abs() < 1e-9, "4 KiB are 8 µs of 100");
        assert!((cost(Op::Write, false) - 3.24).abs() < 1e-9);
        assert!((cost(Op::Write, true) - 3.74).abs() < 1e-9);
    }
}
