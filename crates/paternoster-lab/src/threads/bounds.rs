//! Bounds that a thread must keep, or end with an error: the longest latency, and the least rates.
//!
//! ```text
//!   start, end of the ramp ├── 2 s without a check ──┤├ cycle ┤├ cycle ┤├ cycle ┤ …
//!   a direction of a cycle with too low a rate: the job ends
//! ```
//!
//! fio 3.33 was seen to leave the first two seconds out. A cycle ends when the thread goes on after
//! its time: one whose I/O does not complete is not found too slow before it does.

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
    /// When the present cycle began.
    cycle_from: Instant,
    /// How many are over.
    cycles: u64,
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
            cycle_from: Instant::from_nanos(0),
            cycles: 0,
            ios: [0; 3],
            bytes: [0; 3],
        }
    }

    /// They hold from then on.
    pub(super) fn begin(&mut self, from: Instant) {
        self.from = Some(from);
        self.cycle_from = from + GRACE;
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
        // What ends as the grace does belongs to the time before; what ends as a cycle does, after
        // the thread has ended that, belongs to the next one.
        if now > self.cycle_from || self.cycles > 0 {
            self.ios[index] += 1;
            self.bytes[index] += bytes;
        }
        let allowed = self.max_latency[index].filter(|allowed| took > *allowed)?;
        Some(JobError::Latency { direction, took, allowed })
    }

    /// Ends the cycle if its time is over. Returns the error if a rate of it was too low.
    pub(super) fn check(&mut self, now: Instant) -> Option<JobError> {
        let LeastRates { rates, cycle } = self.least_rates?;
        let took = now.saturating_since(self.cycle_from);
        if self.from.is_none() || took < cycle {
            return None;
        }
        let (ios, bytes) = (self.ios, self.bytes);
        (self.cycle_from, self.ios, self.bytes) = (now, [0; 3], [0; 3]);
        self.cycles += 1;
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

    /// In cycles of 1 s, I/Os end at 2.5 s and as the first cycle ends; one more at that instant,
    /// but after it, and one at 3.5 s are of the second cycle. What ends as the two seconds do is
    /// of none.
    #[test]
    fn io_that_completes_as_a_cycle_ends_is_of_that_cycle_or_of_the_next() {
        let read = DataDirection::Read;
        let least = LeastRate::Ios(2);
        let rates = LeastRates { rates: [Some(least), None, None], cycle: Nanos::from_secs(1) };
        let mut bounds = Bounds::new(&Ends { least_rates: Some(rates), ..Ends::default() });
        let complete = |bounds: &mut Bounds, millis, count| {
            (0..count).for_each(|_| assert_eq!(bounds.completed(at(millis), read, 1, GRACE), None));
        };
        bounds.begin(at(0));
        complete(&mut bounds, 2000, 5);
        complete(&mut bounds, 2500, 1);
        complete(&mut bounds, 3000, 1);
        assert_eq!(bounds.check(at(3000)), None);
        complete(&mut bounds, 3000, 1);
        complete(&mut bounds, 3500, 1);
        assert_eq!(bounds.check(at(4000)), None);
        let error = JobError::Rate { direction: read, found: 0, least };
        assert_eq!(bounds.check(at(5000)), Some(error));
    }
}
