//! The clock of an owner, and of what waits on a ring.

use paternoster::{Instant, Nanos};
use rustix::time::{ClockId, clock_gettime};

/// `CLOCK_MONOTONIC`, counted from [`Instant::START`] at its making.
#[derive(Clone, Copy, Debug)]
pub struct MonotonicClock {
    /// What `CLOCK_MONOTONIC` said at the making, in nanoseconds.
    origin: u64,
}

impl MonotonicClock {
    /// Makes a clock that starts now.
    pub fn start() -> Self {
        Self { origin: monotonic_nanos() }
    }

    /// Returns the moment now.
    pub fn now(self) -> Instant {
        Instant::START + Nanos::new(monotonic_nanos() - self.origin)
    }

    /// Returns what `CLOCK_MONOTONIC` says now, in nanoseconds, as
    /// [`Ring::wait`](crate::Ring::wait) takes it.
    pub fn monotonic_now() -> u64 {
        monotonic_nanos()
    }

    /// What `CLOCK_MONOTONIC` says at that moment, in nanoseconds.
    pub fn monotonic_at(self, at: Instant) -> u64 {
        self.origin.saturating_add(at.since_start().as_nanos())
    }
}

fn monotonic_nanos() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let seconds = u64::try_from(now.tv_sec).expect("the monotonic clock starts at 0");
    let nanos = u64::try_from(now.tv_nsec).expect("less than a second");
    seconds * 1_000_000_000 + nanos
}
