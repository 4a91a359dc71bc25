//! The caller's clock and the elevator's own.
//!
//! Some of Linux's rules rely on a clock that is far from 0, as a kernel's clocks are. An elevator
//! therefore counts time from [`Instant::START`], whatever its caller's clock showed when the
//! elevator was made:
//!
//! ```text
//!   the caller's:     made ────────────── now ──────────────▶ poll_timeout
//!   the elevator's:   START ───── START + (now − made)
//! ```

use crate::time::{Instant, Nanos};

/// Converts between the clock of an elevator's driver and the elevator's own clock. Trace events,
/// the times of a [`Request`](crate::Request) and dumps are in the elevator's own.
///
/// Both are the same clock where the elevator was made at [`Instant::START`].
///
/// ```
/// use paternoster::{Device, Elevator, Instant, Nanos, NoScheduler, NoTrace};
///
/// let uptime = Instant::from_nanos(40);
/// let clock = Elevator::new(NoScheduler::new(NoTrace), Device::disk(1), uptime).clock();
/// let later = uptime + Nanos::from_millis(3);
/// assert_eq!(clock.elevator_time(later), Instant::START + Nanos::from_millis(3));
/// assert_eq!(clock.caller_time(clock.elevator_time(later)), later);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ElevatorClock {
    /// By how much the elevator's clock is ahead of the caller's. It wraps where the caller's is
    /// ahead.
    ahead: Nanos,
}

impl ElevatorClock {
    /// Returns the clock of an elevator that is made at `now` on the caller's clock.
    pub(super) const fn starting_at(now: Instant) -> Self {
        Self { ahead: Instant::START.wrapping_since(now) }
    }

    /// Converts a moment of the caller's clock, which is not before the elevator was made, to the
    /// elevator's.
    #[inline]
    pub fn elevator_time(self, caller: Instant) -> Instant {
        let elevator = caller.wrapping_add(self.ahead);
        debug_assert!(elevator >= Instant::START, "the elevator was made before");
        elevator
    }

    /// Converts a moment of the elevator's clock to the caller's.
    #[inline]
    pub fn caller_time(self, elevator: Instant) -> Instant {
        let made = Instant::START.wrapping_sub(self.ahead);
        made + elevator.saturating_since(Instant::START)
    }
}
