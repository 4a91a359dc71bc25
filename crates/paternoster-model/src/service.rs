//! How long a device takes for a command: a law of times, which every device here has alike.
//!
//! ```text
//!   time = ((fixed × spread + per KiB × KiB) × (times of a write) + FUA) × slower
//! ```

use paternoster::{Nanos, SectorCount};

use crate::parameter_file::{Keys, ParameterError, micros};
use crate::random::{Draws, span};
use crate::{Command, Op, Spent};

/// The sectors of a KiB.
const SECTORS_PER_KIB: u32 = 2;

/// How the time of a command varies.
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

/// How long a command takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Service {
    /// Time of any command but a flush, which takes none. The spread is applied to it.
    pub fixed: Nanos,
    /// How that varies.
    pub spread: Spread,
    /// Further time for each KiB, which does not vary.
    pub per_kib: Nanos,
    /// A write takes so many times as long as a read, in all.
    pub write_times: f64,
    /// A durable write (FUA) takes so much longer.
    pub durable: Nanos,
}

impl Service {
    /// Always the same time.
    pub const fn constant(fixed: Nanos) -> Self {
        Self::varying(fixed, Spread::Constant)
    }

    /// A time that varies.
    pub const fn varying(fixed: Nanos, spread: Spread) -> Self {
        Self { fixed, spread, per_kib: Nanos::ZERO, write_times: 1.0, durable: Nanos::ZERO }
    }

    /// Reads `service_us` and what may stand beside it: `ns_per_kib`, `spread`, `write_times`,
    /// `fua_us`.
    pub(crate) fn read(keys: &mut Keys<'_>) -> Result<Self, ParameterError> {
        let fixed = micros(keys.number("service_us", 0.0..=1e7)?);
        let per_kib = Nanos::new(keys.whole_or("ns_per_kib", 0, 0..=1_000_000_000)?);
        let spread =
            if keys.has("spread") { keys.table("spread", Spread::read)? } else { Spread::Constant };
        let write_times = keys.number_or("write_times", 1.0, 0.0..=1e6)?;
        let durable = micros(keys.number_or("fua_us", 0.0, 0.0..=1e7)?);
        Ok(Self { fixed, spread, per_kib, write_times, durable })
    }

    /// What a command costs the device on average but for the spread, which is the same for all, in
    /// units of a read without bytes.
    pub fn cost(&self, op: Op, durable: bool, sectors: SectorCount) -> f64 {
        let fixed = in_micros(self.fixed);
        let size = 1.0 + in_micros(self.per_kib) / fixed * kib(sectors);
        let times = if op == Op::Write { self.write_times } else { 1.0 };
        let further = if durable { in_micros(self.durable) / fixed } else { 0.0 };
        size * times + further
    }

    /// Draws the time of a command where the device is so many times as slow as it should be.
    pub(crate) fn draw(&self, draws: &mut Draws, command: &Command, slower: f64) -> Spent {
        if command.op == Op::Flush {
            return Spent::default();
        }
        let transfer = time_of(self.per_kib, command.sectors);
        if self.is_exact(command, slower) {
            return Spent { transfer, overhead: self.fixed, ..Spent::default() };
        }
        let varied = in_micros(self.fixed) * self.spread.factor(draws);
        let size = in_micros(self.per_kib) * kib(command.sectors);
        let times = if command.op == Op::Write { self.write_times } else { 1.0 };
        let durable = if command.durable { in_micros(self.durable) } else { 0.0 };
        let whole = span(((varied + size) * times + durable) * slower);
        Spent { transfer, overhead: whole.saturating_sub(transfer), ..Spent::default() }
    }

    /// The same as one time.
    pub(crate) fn time(&self, draws: &mut Draws, command: &Command) -> Nanos {
        let Spent { overhead, transfer, .. } = self.draw(draws, command, 1.0);
        overhead + transfer
    }

    /// Whether the command takes what is given for a read, to the nanosecond.
    #[allow(clippy::float_cmp, reason = "1 is exact")]
    fn is_exact(&self, command: &Command, slower: f64) -> bool {
        let is_read = command.op != Op::Write || self.write_times == 1.0;
        let is_plain = !command.durable || self.durable == Nanos::ZERO;
        self.spread == Spread::Constant && slower == 1.0 && is_read && is_plain
    }
}

impl Spread {
    /// Reads a table with one law and its numbers.
    fn read(keys: &mut Keys<'_>) -> Result<Self, ParameterError> {
        #[derive(Clone, Copy)]
        enum Law {
            LogNormal,
            Rare,
            Pareto,
        }
        let laws = [("log-normal", Law::LogNormal), ("rare", Law::Rare), ("pareto", Law::Pareto)];
        Ok(match keys.one_of("law", &laws)? {
            Law::LogNormal => Self::LogNormal(keys.number("sigma", 0.0..=10.0)?),
            Law::Rare => Self::Rare {
                part: keys.number("percent", 0.0..=100.0)? / 100.0,
                times: keys.number("times", 0.0..=1e6)?,
            },
            Law::Pareto => Self::Pareto {
                shape: keys.number("shape", 0.1..=100.0)?,
                most: keys.number("most_times", 1.0..=1e6)?,
            },
        })
    }

    /// What a time is multiplied with that varies so.
    fn factor(self, draws: &mut Draws) -> f64 {
        match self {
            Self::Constant => 1.0,
            // The mean of exp(σ·z) is exp(σ²/2).
            Self::LogNormal(sigma) => libm::exp(sigma * draws.normal() - sigma * sigma / 2.0),
            Self::Rare { part, times } => {
                if draws.happens(part) {
                    times
                } else {
                    1.0
                }
            }
            Self::Pareto { shape, most } => libm::pow(1.0 - draws.unit(), -1.0 / shape).min(most),
        }
    }
}

/// The time of so many sectors, each KiB of which takes that long.
pub(crate) fn time_of(per_kib: Nanos, sectors: SectorCount) -> Nanos {
    Nanos::new(per_kib.as_nanos().saturating_mul(sectors.0.into()) / u64::from(SECTORS_PER_KIB))
}

/// A span in microseconds.
#[allow(clippy::cast_precision_loss, reason = "times are far below 2^53 ns")]
fn in_micros(span: Nanos) -> f64 {
    span.as_nanos() as f64 / 1000.0
}

fn kib(sectors: SectorCount) -> f64 {
    f64::from(sectors.0) / f64::from(SECTORS_PER_KIB)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Chance, Who};

    /// Of 200,000 draws.
    fn mean(spread: Spread) -> f64 {
        let mut draws = Draws::new(1, Who::Device, 0);
        (0..200_000).map(|_| spread.factor(&mut draws)).sum::<f64>() / 200_000.0
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
        let mut draws = Draws::new(2, Who::Device, 0);
        let is_below = |_: &u32| Spread::LogNormal(0.8).factor(&mut draws) < 2.02;
        let below = (0..100_000).filter(is_below).count();
        assert!((89_500..90_500).contains(&below), "{below}");
    }

    #[test]
    fn cost_counts_bytes_writes_and_fua() {
        let service = Service {
            per_kib: Nanos::from_micros(2),
            write_times: 3.0,
            durable: Nanos::from_micros(50),
            ..Service::constant(Nanos::from_micros(100))
        };
        let cost = |op, durable| service.cost(op, durable, SectorCount(8));
        assert!((cost(Op::Read, false) - 1.08).abs() < 1e-9, "4 KiB are 8 µs of 100");
        assert!((cost(Op::Write, false) - 3.24).abs() < 1e-9);
        assert!((cost(Op::Write, true) - 3.74).abs() < 1e-9);
    }

    /// 0.29 µs are 0.28999… in binary, and 289 ns where they are cut.
    #[test]
    fn times_without_chance_are_exact() {
        let service = Service::constant(Nanos::new(290));
        let (sector, sectors) = (paternoster::Sector(0), SectorCount(8));
        let read = Command {
            tag: 0,
            op: Op::Read,
            durable: false,
            sector,
            sectors,
            chance: Chance::default(),
        };
        let spent = service.draw(&mut Draws::new(1, Who::Device, 0), &read, 1.0);
        assert_eq!(spent.overhead, Nanos::new(290));
    }
}
