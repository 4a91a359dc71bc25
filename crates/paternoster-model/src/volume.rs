//! A volume in a cloud: so many commands begin a second, and so many bytes; each command then takes
//! its time beside all others. What it did not do for a while it may do faster, as far as its
//! credit goes.
//!
//! ```text
//!   begins    a · b · c · · · · d · · · · e        a, b, c on credit
//!   latency   ├─────┤ ├─────┤  ├─────┤
//! ```

use std::ops::RangeInclusive;

use paternoster::{Instant, Nanos, SectorCount};

use crate::Command;
use crate::parameter_file::{Keys, ParameterError};
use crate::random::{Chances, Who};
use crate::service::Service;
use crate::timed::Times;

/// How a volume is made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VolumeParameters {
    /// How many commands begin a second.
    pub rate: u32,
    /// How many KiB the commands have that begin a second; any number unless given.
    pub kib_rate: Option<u32>,
    /// How many do while there is credit; at least `rate`.
    pub fast_rate: u32,
    /// The most credit, in commands, with which it begins.
    pub credit: u32,
    /// How long a command takes that has begun.
    pub latency: Service,
}

impl VolumeParameters {
    /// Reads the keys of a file of this kind.
    pub(crate) fn read(keys: &mut Keys<'_>) -> Result<Self, ParameterError> {
        const RATES: RangeInclusive<u32> = 1..=100_000_000;
        let rate = keys.small("iops", RATES)?;
        let kib_rate =
            if keys.has("kib_per_s") { Some(keys.small("kib_per_s", RATES)?) } else { None };
        let mut this =
            Self { rate, kib_rate, fast_rate: rate, credit: 0, latency: Service::read(keys)? };
        if keys.has("credit") {
            this.credit = keys.small("credit", 0..=u32::MAX)?;
            this.fast_rate = keys.small("credit_iops", rate..=100_000_000)?;
        }
        Ok(this)
    }
}

/// A volume.
#[derive(Debug)]
pub(crate) struct Volume {
    parameters: VolumeParameters,
    /// When the next command may begin, by the rate of commands.
    free_at: Instant,
    /// The same by that of bytes.
    bytes_free_at: Instant,
    /// Credit, as the time in which it is earned, up to `free_at`.
    credit: Nanos,
    chances: Chances,
}

impl Volume {
    pub(crate) fn new(parameters: VolumeParameters, seed: u64) -> Self {
        let chances = Chances::new(seed, Who::Device);
        let credit = full(&parameters);
        let (free_at, bytes_free_at) = (Instant::START, Instant::START);
        Self { parameters, free_at, bytes_free_at, credit, chances }
    }
}

/// The time between commands at that rate.
fn each(rate: u32) -> Nanos {
    Nanos::new(1_000_000_000 / u64::from(rate.max(1)))
}

/// The time in which so many sectors begin at a rate in KiB a second.
fn span_of(sectors: SectorCount, kib_rate: u32) -> Nanos {
    let half_kib_rate = 2 * u64::from(kib_rate.max(1));
    Nanos::new(u64::from(sectors.0) * 1_000_000_000 / half_kib_rate)
}

fn full(parameters: &VolumeParameters) -> Nanos {
    Nanos::new(each(parameters.rate).as_nanos() * u64::from(parameters.credit))
}

impl Times for Volume {
    fn end_of(&mut self, now: Instant, command: &Command) -> Instant {
        let VolumeParameters { rate, kib_rate, fast_rate, latency, .. } = self.parameters;
        let begin = self.free_at.max(now);
        let idle = begin.saturating_since(self.free_at);
        self.credit = (self.credit + idle).min(full(&self.parameters));
        // Each command costs the time of one at the lower rate: what it takes, and credit.
        let (slow, fast) = (each(rate), each(fast_rate));
        let on_credit = slow.saturating_sub(fast).min(self.credit);
        self.credit = self.credit.saturating_sub(on_credit);
        self.free_at = begin + slow.saturating_sub(on_credit);
        // A command waits for both rates, and uses up both.
        let bytes_begin = self.bytes_free_at.max(now);
        let took = kib_rate.map_or(Nanos::ZERO, |rate| span_of(command.sectors, rate));
        self.bytes_free_at = bytes_begin + took;
        begin.max(bytes_begin) + latency.time(&mut self.chances.of(command), command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Model;
    use crate::tests::{at, ends, read};
    use crate::timed::Timed;

    fn volume(rate: u32, fast_rate: u32, credit: u32) -> Timed<Volume> {
        let latency = Service::constant(Nanos::from_micros(500));
        let parameters = VolumeParameters { rate, kib_rate: None, fast_rate, credit, latency };
        Timed::new(Volume::new(parameters, 1))
    }

    #[test]
    fn commands_begin_at_the_rate_and_take_the_latency() {
        let mut volume = volume(10_000, 10_000, 0);
        for tag in 0..3 {
            volume.submit(at(0), read(tag));
        }
        assert_eq!(ends(&mut volume), [(0, 500), (1, 600), (2, 700)]);
    }

    /// 4 KiB at 20 MiB a second are 195 µs.
    #[test]
    fn commands_wait_for_the_rate_of_bytes_too() {
        let mut volume = volume(10_000, 10_000, 0);
        volume.times.parameters.kib_rate = Some(20 << 10);
        for tag in 0..3 {
            volume.submit(at(0), read(tag));
        }
        assert_eq!(ends(&mut volume), [(0, 500), (1, 695), (2, 890)]);
    }

    /// 10,000 a second, 50,000 on credit, which has 1 command: 100 µs. Each at the higher rate
    /// takes 20 µs, and 80 of credit: the second has only 20 left, and the rest are slow.
    #[test]
    fn credit_is_used_up_and_earned_again() {
        let mut volume = volume(10_000, 50_000, 1);
        for tag in 0..4 {
            volume.submit(at(0), read(tag));
        }
        volume.submit(at(1000), read(4));
        volume.submit(at(1000), read(5));
        let begun = [(0, 500), (1, 520), (2, 600), (3, 700), (4, 1500), (5, 1520)];
        assert_eq!(ends(&mut volume), begun);
    }
}
