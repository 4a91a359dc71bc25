//! Bounds that a thread must keep, or end with an error: the longest latency, and the least rates.
//!
//! ```text
//!   start, end of the ramp ├── 2 s without a check ──┤  ├ cycle ┤├ cycle ┤├ cycle ┤ …
//!   a direction of a cycle with too low a rate: the job ends
//! ```
//!
//! So fio 3.33 was seen to do: it looks when the thread goes on after an I/O that completed, and
//! its pause if there is one. The first look behind the two seconds begins a cycle, and a look
//! ends one if its time is over: so an I/O that does not complete, or that is not due yet, is not
//! found too slow before it does.

use std::mem;

use paternoster::{Instant, Nanos};

use crate::fio::{DataDirection, Ends, LeastRate, LeastRates};
use crate::result::JobError;

/// How long no rate is looked at.
const GRACE: Nanos = Nanos::from_secs(2);

/// The bounds of a thread.
#[derive(Debug)]
pub(super) struct Bounds {
    max_latency: [Option<Nanos>; 3],
    least_rates: Option<LeastRates>,
    /// From when on they hold; never before the thread starts.
    from: Option<Instant>,
    /// When the present cycle began, once there is one.
    cycle_from: Option<Instant>,
    /// An I/O has completed since the last look.
    is_new: bool,
    /// The I/Os and bytes of each direction in it.
    ios: [u64; 3],
    bytes: [u64; 3],
}

impl Bounds {
    pub(super) fn new(ends: &Ends) -> Self {
        Self {
            max_latency: ends.max_latency,
            least_rates: ends.least_rates,
            from: None,
            cycle_from: None,
            is_new: false,
            ios: [0; 3],
            bytes: [0; 3],
        }
    }

    /// They hold from then on.
    pub(super) fn begin(&mut self, from: Instant) {
        self.from = Some(from);
    }

    /// An I/O has completed, which took so long in all. Returns the error if that is too long.
    pub(super) fn completed(
        &mut self,
        now: Instant,
        direction: DataDirection,
        bytes: u64,
        took: Nanos,
    ) -> Option<JobError> {
        self.from.filter(|from| now >= *from)?;
        let index = direction as usize;
        self.is_new = true;
        self.ios[index] += 1;
        self.bytes[index] += bytes;
        let allowed = self.max_latency[index].filter(|allowed| took > *allowed)?;
        Some(JobError::Latency { direction, took, allowed })
    }

    /// Ends the cycle if its time is over. Returns the error if a rate of it was too low.
    pub(super) fn check(&mut self, now: Instant) -> Option<JobError> {
        let LeastRates { rates, cycle } = self.least_rates?;
        let holds_from = self.from? + GRACE;
        if !mem::take(&mut self.is_new) || now < holds_from {
            return None;
        }
        let took = self.cycle_from.map(|from| now.saturating_since(from));
        if took.is_some_and(|took| took < cycle) {
            return None;
        }
        let (ios, bytes) = (self.ios, self.bytes);
        (self.cycle_from, self.ios, self.bytes) = (Some(now), [0; 3], [0; 3]);
        let took = took?;
        DataDirection::ALL.into_iter().find_map(|direction| {
            let least = rates[direction as usize]?;
            let (count, wanted) = match least {
                LeastRate::Bytes(wanted) => (bytes[direction as usize], wanted),
                LeastRate::Ios(wanted) => (ios[direction as usize], wanted),
            };
            let found = per_s(count, took);
            (found < wanted).then_some(JobError::Rate { direction, found, least })
        })
    }
}

/// How many a second, rounded down.
fn per_s(count: u64, time: Nanos) -> u64 {
    let per_s = u128::from(count) * 1_000_000_000 / u128::from(time.as_nanos().max(1));
    u64::try_from(per_s).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::START + Nanos::from_millis(millis)
    }

    fn bounds(least: LeastRate) -> Bounds {
        let cycle = Nanos::from_secs(1);
        let rates = LeastRates { rates: [Some(least), None, None], cycle };
        let mut bounds = Bounds::new(&Ends { least_rates: Some(rates), ..Ends::default() });
        bounds.begin(at(0));
        bounds
    }

    /// So many reads of 4096 bytes complete.
    fn complete(bounds: &mut Bounds, millis: u64, count: u64) {
        let read = DataDirection::Read;
        for _ in 0..count {
            assert_eq!(bounds.completed(at(millis), read, 4096, GRACE), None);
        }
    }

    /// In cycles of 1 s, I/Os end at 2.5 s and as the first cycle ends; one more at that instant,
    /// but after it, and one at 3.5 s are of the second cycle. What ends as the two seconds do is
    /// of none. In the third, only its last instant has an I/O.
    #[test]
    fn io_that_completes_as_a_cycle_ends_is_of_that_cycle_or_of_the_next() {
        let least = LeastRate::Ios(2);
        let mut bounds = bounds(least);
        complete(&mut bounds, 2000, 5);
        assert_eq!(bounds.check(at(2000)), None);
        complete(&mut bounds, 2500, 1);
        complete(&mut bounds, 3000, 1);
        assert_eq!(bounds.check(at(3000)), None);
        complete(&mut bounds, 3000, 1);
        complete(&mut bounds, 3500, 1);
        assert_eq!(bounds.check(at(4000)), None);
        complete(&mut bounds, 5000, 1);
        let error = JobError::Rate { direction: DataDirection::Read, found: 1, least };
        assert_eq!(bounds.check(at(5000)), Some(error));
    }

    /// 4096 bytes each 3.28 s are 1250 a second. Nothing is looked at while the thread waits for
    /// its rate: a cycle of one second in which nothing was due would have none.
    #[test]
    fn cycle_goes_on_until_an_io_completes() {
        let mut bounds = bounds(LeastRate::Bytes(1024));
        for millis in [0, 3277, 6554, 9831] {
            assert_eq!(bounds.check(at(millis)), None, "woken to begin the one at {millis}");
            complete(&mut bounds, millis, 1);
            assert_eq!(bounds.check(at(millis)), None, "{millis}");
        }
        let mut bounds = self::bounds(LeastRate::Bytes(1251));
        complete(&mut bounds, 3277, 1);
        assert_eq!(bounds.check(at(3277)), None, "a cycle begins");
        complete(&mut bounds, 6554, 1);
        assert!(bounds.check(at(6554)).is_some(), "4096 in 3.277 s");
    }
}
