//! Random numbers of everything that is simulated: the same everywhere for the same seed.

use std::f64::consts::PI;

use paternoster::Nanos;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};

/// 2^53.
const STEPS: f64 = 9_007_199_254_740_992.0;

/// Who draws. With its number each has a stream of its own, so one who draws more often changes
/// nothing for the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// A job of fio, which numbers its streams itself.
    Job,
    /// A device whose times have a law, but for a solid-state drive.
    Device,
    /// When a device pauses.
    Pauses,
    /// Tenants: what they ask for, and when.
    Tenants,
    /// When the thread that drives a scheduler is stalled.
    Owner,
    /// A solid-state drive.
    SolidState,
    /// dbench.
    Dbench,
    /// Threads at locks.
    Locks,
    /// Hybrid polling: I/Os by the number of their stream from 1 on, wake-ups 0, stalls 999.
    Polling,
}

/// A stream of random numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draws(Xoshiro256PlusPlus);

impl Draws {
    /// The stream of that seed and number of whoever draws.
    pub fn new(seed: u64, who: Who, number: u64) -> Self {
        match who {
            Who::Job => Self::numbered(seed, number),
            Who::Device => Self::numbered(seed, 1),
            Who::Pauses => Self::numbered(seed, 2),
            Who::Tenants => Self::numbered(seed, 3),
            Who::Owner => Self::numbered(seed, 4),
            Who::SolidState | Who::Dbench | Who::Locks => Self::seeded(seed),
            Who::Polling => Self::seeded(seed * 1000 + number),
        }
    }

    fn seeded(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// The `number`th stream of a seed, which has nothing in common with the others.
    fn numbered(seed: u64, number: u64) -> Self {
        Self::seeded(seed ^ Self::seeded(number).bits())
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `end`, all alike.
    ///
    /// # Panics
    ///
    /// If `end` is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        assert!(end > 0, "there is a number below");
        // Of 2^64 draws, the `surplus` first would make some numbers more likely than others.
        let surplus = (u64::MAX - end + 1) % end;
        loop {
            let product = u128::from(self.bits()) * u128::from(end);
            let [low, high] = [product & u128::from(u64::MAX), product >> 64];
            if low >= u128::from(surplus) {
                return u64::try_from(high).expect("it is below `end`");
            }
        }
    }

    /// A number from 0 on and below 1, of 53 bits.
    #[allow(clippy::cast_precision_loss, reason = "53 bits fit")]
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / STEPS
    }

    /// A number above 0 and at most 1, of 53 bits.
    #[allow(clippy::cast_precision_loss, reason = "53 bits fit")]
    pub fn above_zero(&mut self) -> f64 {
        ((self.bits() >> 11) + 1) as f64 / STEPS
    }

    /// Whether something happens that happens in this part of all cases.
    pub fn happens(&mut self, part: f64) -> bool {
        self.unit() < part
    }

    /// Whether one of a hundred draws is among the first `percent`.
    pub fn percent(&mut self, percent: u8) -> bool {
        match percent {
            0 => false,
            100.. => true,
            percent => self.below(100) < u64::from(percent),
        }
    }

    /// A number from the first to the second, both included.
    pub fn between(&mut self, (low, high): (u64, u64)) -> u64 {
        match (high - low).checked_add(1) {
            Some(count) => low + self.below(count),
            None => self.bits(),
        }
    }

    /// A time from the first to the second, both included.
    pub fn time_between(&mut self, (low, high): (Nanos, Nanos)) -> Nanos {
        Nanos::new(self.between((low.as_nanos(), high.as_nanos())))
    }

    /// A time with this mean, exponentially distributed.
    pub fn exponential(&mut self, mean_us: f64) -> Nanos {
        span(-mean_us * libm::log(1.0 - self.unit()))
    }

    /// Any time up to so many microseconds.
    pub fn time_up_to(&mut self, us: f64) -> Nanos {
        span(us * self.unit())
    }

    /// The standard normal distribution, by the method of Box and Muller.
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = libm::sqrt(-2.0 * libm::log(1.0 - self.unit()));
        radius * libm::cos(2.0 * PI * self.unit())
    }
}

/// The span of so many microseconds, less what is not a whole nanosecond.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a time is far below 2^53 ns, and not negative"
)]
pub(crate) fn span(us: f64) -> Nanos {
    Nanos::new((us * 1000.0) as u64)
}
