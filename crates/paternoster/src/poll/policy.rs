//! How completions are waited for, by name and tunables.

use thiserror::Error;

use crate::time::Nanos;

/// A fraction, in millionths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ppm(pub u32);

impl Ppm {
    /// The whole.
    pub const ONE: Self = Self(1_000_000);

    /// Returns that part of a span, rounded to the nearest; halves up.
    #[allow(clippy::cast_possible_truncation)] // as_nanos of 64 bits; the rest saturates
    pub(super) const fn of(self, span: Nanos) -> Nanos {
        let part = (span.as_nanos() as u128 * self.0 as u128 + 500_000) / 1_000_000;
        Nanos::new(if part > u64::MAX as u128 { u64::MAX } else { part as u64 })
    }
}

/// A policy of waiting for completions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PollPolicy {
    /// Give up the CPU until an interrupt says that something is done.
    Interrupt,
    /// Look again and again: `io_poll_delay = -1`.
    Classic,
    /// Sleep that long, then look again and again: `io_poll_delay` above 0.
    Fixed(Nanos),
    /// Sleep a part of the mean of the class's last window, then look again and again.
    OfMean(OfMean),
    /// `io_uring`'s rule of Linux 6.13: sleep half of the shortest time that was ever seen less the
    /// sleep, whatever the class.
    IoUring,
    /// Find out what sleeping costs and how long to sleep.
    Auto(AutoTunables),
}

/// Linux's hybrid polling of 4.12 to 6.3, with the two tunables of a patch of 2017.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OfMean {
    /// What part of the mean.
    pub part: Ppm,
    /// `io_poll_hyb_use_min`: sleep no less than the shortest time of the window.
    pub use_min: bool,
    /// `io_poll_hyb_adjust`: then sleep that much less, or not at all if that is not as much.
    pub adjust: Nanos,
}

impl OfMean {
    /// Half of it, as Linux does: `io_poll_delay = 0`.
    pub const HALF: Self = Self { part: Ppm(500_000), use_min: false, adjust: Nanos::ZERO };

    /// Returns how long to sleep where the window says `mean` and `min`; zero is not to sleep.
    pub(super) const fn sleep(self, mean: Nanos, min: Nanos) -> Nanos {
        let part = self.part.of(mean);
        let longer = self.use_min && min.as_nanos() > part.as_nanos();
        let sleep = if longer { min } else { part };
        sleep.saturating_sub(self.adjust)
    }
}

/// Tunables of [`PollPolicy::Auto`]. None needs to be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AutoTunables {
    /// How much latency sleeping may add on average, as a part of the mean completion time.
    pub delta: Ppm,
    /// How many I/Os may be done before the sleep for them is over.
    pub mu: Ppm,
    /// One of so many I/Os of a class is waited for without sleep, for its true completion time.
    /// More often while little is known.
    pub probe_every: u32,
    /// The sleep is computed anew after so many I/Os of a class …
    pub window_ios: u32,
    /// … or after that long.
    pub window: Nanos,
    /// How much of the time in which it waits the thread may use the CPU. Below 1 the sleep is made
    /// as long as that takes, whatever latency it adds, and where none is long enough the thread
    /// waits for interrupts.
    pub cpu_cap: Ppm,
}

impl AutoTunables {
    /// What fits every device that it was tried on.
    pub const DEFAULT: Self = Self {
        delta: Ppm(3_800),
        mu: Ppm(50_000),
        probe_every: 128,
        window_ios: 512,
        window: Nanos::from_millis(100),
        cpu_cap: Ppm::ONE,
    };
}

impl Default for AutoTunables {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Why a delay is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "io_poll_delay is {found}; allowed are -1, to poll without sleep, 0, to sleep half of the \
     mean, and microseconds to sleep, up to 4294967"
)]
pub struct PollDelayError {
    /// What was found.
    pub found: i64,
}

impl PollPolicy {
    /// Returns the policy of Linux's tunables of a queue: `io_poll_delay`, in µs, and
    /// `io_poll_hyb_use_min` and `io_poll_hyb_adjust`, which say something where the delay is 0.
    pub fn hybrid(
        io_poll_delay: i64,
        use_min: bool,
        adjust: Nanos,
    ) -> Result<Self, PollDelayError> {
        match u32::try_from(io_poll_delay) {
            Ok(0) => Ok(Self::OfMean(OfMean { use_min, adjust, ..OfMean::HALF })),
            Ok(micros @ 1..=4_294_967) => Ok(Self::Fixed(Nanos::from_micros(micros.into()))),
            _ if io_poll_delay == -1 => Ok(Self::Classic),
            _ => Err(PollDelayError { found: io_poll_delay }),
        }
    }

    /// Its name, in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Interrupt => "interrupt",
            Self::Classic => "classic",
            Self::Fixed(_) | Self::OfMean(_) => "hybrid",
            Self::IoUring => "io_uring",
            Self::Auto(_) => "auto",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delay_means_what_it_meant_in_linux() {
        let policy = |delay| PollPolicy::hybrid(delay, false, Nanos::ZERO);
        assert_eq!(policy(-1), Ok(PollPolicy::Classic));
        assert_eq!(policy(0), Ok(PollPolicy::OfMean(OfMean::HALF)));
        assert_eq!(policy(9), Ok(PollPolicy::Fixed(Nanos::new(9_000))));
        assert_eq!(policy(-2), Err(PollDelayError { found: -2 }));
        assert_eq!(policy(i64::MAX), Err(PollDelayError { found: i64::MAX }));
    }

    /// The patch of 2017: no less than the minimum, then less by the adjustment.
    #[test]
    fn minimum_is_taken_first_and_the_adjustment_then() {
        let sleep = |use_min, adjust| {
            let policy = OfMean { use_min, adjust: Nanos::new(adjust), ..OfMean::HALF };
            policy.sleep(Nanos::new(8000), Nanos::new(7000)).as_nanos()
        };
        assert_eq!(sleep(true, 2000), 5000);
        assert_eq!(sleep(true, 10_000), 0, "no sleep");
        assert_eq!(sleep(false, 0), 4000);
        assert_eq!(OfMean::HALF.sleep(Nanos::new(8001), Nanos::ZERO).as_nanos(), 4001);
    }
}
