//! What going to sleep and waking up costs here: how much later than asked a sleep ends, and the
//! CPU time of a sleep.
//!
//! Sleeps of different length end differently late, because a CPU that is idle for longer goes into
//! a deeper idle state. So they are kept apart:
//!
//! ```text
//!   sleep      below 20 µs   below 100 µs   100 µs and more
//!   samples    the last 512  the last 512   the last 512
//! ```
//!
//! What is so late that the CPU was somebody else's is left out where it is rare, and counted
//! beside (`stalls.rs`): it says nothing of how late the others end.
//!
//! A new thread has slept for nothing yet. It sleeps some times for no other reason, as long as
//! [`Overshoot::wanted`] says, with its CPU clock read before and after.

use super::samples::{Distribution, Samples};
use super::stalls::{STALL, Stalls};
use crate::time::Nanos;

/// Sleeps of each kind that are wanted before one counts on them.
const ENOUGH: usize = 64;
/// What is left of them at least where those that are stalls are left out.
const LEFT: usize = ENOUGH - ENOUGH / 10;
/// The least CPU time of so many sleeps is what a sleep costs: the rest is something else's.
const BATCH: u32 = 32;
/// A new batch moves the cost by an eighth of the difference.
const INERTIA: u64 = 8;

#[derive(Debug)]
struct Band {
    /// Sleeps that are shorter belong to it, and to none before.
    end: Nanos,
    /// How long a sleep of this kind is that is done to measure.
    calibration: Nanos,
    samples: Samples<512>,
    distribution: Distribution,
    /// Its stalls are too many to be left out of it.
    has_stalls: bool,
    is_stale: bool,
}

impl Band {
    fn new(end: Nanos, calibration: Nanos) -> Self {
        let (samples, distribution) = (Samples::default(), Distribution::default());
        Self { end, calibration, samples, distribution, has_stalls: false, is_stale: false }
    }
}

#[derive(Debug)]
pub(super) struct Overshoot {
    bands: [Band; 3],
    stalls: Stalls,
    cost: Option<Nanos>,
    /// The least CPU time of this batch, and how many there were.
    batch: (Nanos, u32),
}

impl Default for Overshoot {
    fn default() -> Self {
        let micros = Nanos::from_micros;
        let bands = [
            Band::new(micros(20), micros(10)),
            Band::new(micros(100), micros(50)),
            Band::new(Nanos::new(u64::MAX), micros(200)),
        ];
        Self { bands, stalls: Stalls::default(), cost: None, batch: (Nanos::new(u64::MAX), 0) }
    }
}

impl Overshoot {
    /// How long to sleep to learn more; none where enough is known.
    pub(super) fn wanted(&self) -> Option<Nanos> {
        let band = self.bands.iter().find(|band| band.samples.len() < ENOUGH);
        band.map(|band| band.calibration)
    }

    /// CPU time of a sleep, once it is known.
    pub(super) fn cost(&self) -> Option<Nanos> {
        self.cost
    }

    pub(super) fn add(&mut self, asked: Nanos, overshoot: Nanos) {
        let band = self.bands.iter_mut().find(|band| asked < band.end);
        let band = band.expect("the last one has no end");
        band.samples.push(overshoot);
        band.is_stale = true;
        self.stalls.slept(asked, overshoot);
    }

    /// Notes a span between two looks of a thread that polls.
    pub(super) fn polled(&mut self, span: Nanos) {
        self.stalls.polled(span);
    }

    /// Latency that a sleep adds on average by stalls that distributions leave out, beyond what
    /// polling suffers of them.
    pub(super) fn excess(&self) -> Nanos {
        let have_stalls = self.bands.iter().any(|band| band.has_stalls);
        if have_stalls { Nanos::ZERO } else { self.stalls.excess() }
    }

    /// How often a thread lost the CPU while it slept, and while it polled.
    pub(super) fn stalls(&self) -> &Stalls {
        &self.stalls
    }

    pub(super) fn add_cost(&mut self, cpu: Nanos) {
        let (least, count) = (self.batch.0.min(cpu), self.batch.1 + 1);
        self.batch = (least, count);
        if count < BATCH {
            return;
        }
        self.batch = (Nanos::new(u64::MAX), 0);
        let known = self.cost.map_or(least.as_nanos(), |cost| {
            (cost.as_nanos() * (INERTIA - 1) + least.as_nanos()) / INERTIA
        });
        self.cost = Some(Nanos::new(known));
    }

    /// Takes the latest samples into the distributions.
    pub(super) fn refresh(&mut self) {
        for band in self.bands.iter_mut().filter(|band| band.is_stale) {
            band.distribution.refresh(&band.samples);
            band.has_stalls = !band.distribution.leave_out_rare(STALL);
            band.is_stale = false;
        }
    }

    /// The kinds of sleeps of which enough is known, longest first: from where, to where, and how
    /// late they end.
    pub(super) fn known(&self) -> impl Iterator<Item = (Nanos, Nanos, &Distribution)> {
        let starts = [Nanos::ZERO, self.bands[0].end, self.bands[1].end];
        let bands = starts.into_iter().zip(&self.bands).rev();
        bands
            .filter(|(_, band)| band.distribution.sorted().len() >= LEFT)
            .map(|(start, band)| (start, band.end, &band.distribution))
    }

    /// Whether sleeps of these lengths are of one kind.
    pub(super) fn are_alike(&self, one: Nanos, other: Nanos) -> bool {
        self.bands.iter().all(|band| (one < band.end) == (other < band.end))
    }

    /// How late sleeps of about that length end: if too little is known of them, the next shorter
    /// ones, or none.
    pub(super) fn of(&self, asked: Nanos) -> Option<&Distribution> {
        let known = self.known().find(|&(start, _, _)| start <= asked);
        known.map(|(_, _, distribution)| distribution)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeps_of_each_length_are_wanted_until_there_are_enough() {
        let mut overshoot = Overshoot::default();
        let mut wanted = [0; 3];
        while let Some(asked) = overshoot.wanted() {
            wanted[[10, 50, 200]
                .map(Nanos::from_micros)
                .iter()
                .position(|it| *it == asked)
                .expect("one of the three")] += 1;
            overshoot.add(asked, Nanos::new(asked.as_nanos() / 10));
            overshoot.add_cost(Nanos::new(2_900));
        }
        assert_eq!(wanted, [64; 3]);
        overshoot.refresh();
        assert_eq!(overshoot.cost(), Some(Nanos::new(2_900)));
        let late = |micros| overshoot.of(Nanos::from_micros(micros)).map(Distribution::mean);
        assert_eq!(late(19), Some(Nanos::new(1_000)));
        assert_eq!(late(20), Some(Nanos::new(5_000)));
        assert_eq!(late(5_000), Some(Nanos::new(20_000)));
    }

    /// A sleep that was interrupted by other work took more CPU time, which is not the sleep's.
    #[test]
    fn cost_is_the_least_of_a_batch() {
        let mut overshoot = Overshoot::default();
        (0..31).for_each(|_| overshoot.add_cost(Nanos::new(50_000)));
        assert_eq!(overshoot.cost(), None);
        overshoot.add_cost(Nanos::new(3_000));
        assert_eq!(overshoot.cost(), Some(Nanos::new(3_000)));
        (0..32).for_each(|_| overshoot.add_cost(Nanos::new(11_000)));
        assert_eq!(overshoot.cost(), Some(Nanos::new(4_000)));
    }
}
