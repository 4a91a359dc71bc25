//! Draws: a generator of random numbers, the same everywhere for the same seed.

use paternoster::Nanos;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// A stream of draws.
#[derive(Clone, Debug)]
pub(crate) struct Draws {
    generator: Xoshiro256PlusPlus,
}

impl Draws {
    /// The stream of a seed.
    pub(super) fn new(seed: u64) -> Self {
        Self { generator: Xoshiro256PlusPlus::seed_from_u64(seed) }
    }

    /// The `number`th stream of a seed, which has nothing in common with the others.
    pub(crate) fn numbered(seed: u64, number: u64) -> Self {
        let mut seeds = Self::new(number);
        Self::new(seed ^ seeds.next())
    }

    /// Any number.
    pub(super) fn next(&mut self) -> u64 {
        self.generator.next_u64()
    }

    /// A number below `end`, all alike.
    ///
    /// # Panics
    ///
    /// If `end` is 0.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        assert!(end > 0, "there is a number below");
        // Of 2^64 draws, the `surplus` first would make some numbers more likely than others.
        let surplus = (u64::MAX - end + 1) % end;
        loop {
            let product = u128::from(self.next()) * u128::from(end);
            let [low, high] = [product & u128::from(u64::MAX), product >> 64];
            if low >= u128::from(surplus) {
                return u64::try_from(high).expect("it is below `end`");
            }
        }
    }

    /// A number from 0 on and below 1, of 53 bits.
    #[allow(clippy::cast_precision_loss, reason = "53 bits fit")]
    pub(crate) fn unit(&mut self) -> f64 {
        /// 2^53.
        const STEPS: f64 = 9_007_199_254_740_992.0;
        (self.next() >> 11) as f64 / STEPS
    }

    /// Whether one of a hundred draws is among the first `percent`.
    pub(super) fn percent(&mut self, percent: u8) -> bool {
        match percent {
            0 => false,
            100.. => true,
            percent => self.below(100) < u64::from(percent),
        }
    }

    /// A number from the first to the second, both included.
    pub(super) fn between(&mut self, (low, high): (u64, u64)) -> u64 {
        match (high - low).checked_add(1) {
            Some(count) => low + self.below(count),
            None => self.next(),
        }
    }

    /// A time from the first to the second, both included.
    pub(super) fn time_between(&mut self, (low, high): (Nanos, Nanos)) -> Nanos {
        Nanos::new(self.between((low.as_nanos(), high.as_nanos())))
    }
}
