//! The clocks of a live measurement: the machine's, on which the device and who waits for it agree,
//! and the CPU time of a thread.

use paternoster::{Instant, Nanos};
use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{ClockId, Timespec, clock_gettime};

/// Counts from [`Instant::START`] on, from the moment at which it is started.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    /// What the machine's clock showed then, in ns.
    start: u64,
}

impl Clock {
    pub(super) fn start() -> Self {
        Self { start: nanos(clock_gettime(ClockId::Monotonic)) }
    }

    pub(super) fn now(self) -> Instant {
        Instant::START + Nanos::new(nanos(clock_gettime(ClockId::Monotonic)) - self.start)
    }

    /// Sleeps until then, and as much longer as the machine takes. Returns at once if that is past,
    /// and early if a signal comes.
    pub(super) fn sleep_until(self, until: Instant) {
        let at = self.start + until.since_start().as_nanos();
        let part = |nanos: u64| i64::try_from(nanos).expect("a clock of 64 bits");
        let until =
            Timespec { tv_sec: part(at / 1_000_000_000), tv_nsec: part(at % 1_000_000_000) };
        // What can fail but for a signal is a moment that is none.
        let _ = clock_nanosleep_absolute(ClockId::Monotonic, &until);
    }
}

/// The CPU time of this thread.
pub(super) fn thread_cpu() -> Nanos {
    Nanos::new(nanos(clock_gettime(ClockId::ThreadCPUTime)))
}

fn nanos(time: Timespec) -> u64 {
    let part = |part: i64| u64::try_from(part).expect("these clocks begin at 0");
    part(time.tv_sec) * 1_000_000_000 + part(time.tv_nsec)
}
