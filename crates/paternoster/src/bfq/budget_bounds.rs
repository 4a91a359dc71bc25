//! The bounds of budgets: what a queue may get at most and at least in a service, and for how long.
//!
//! ```text
//!   services   1 … 10        11 and more
//!   upper      16,384        the maximum, which follows the peak rate or is tuned
//!   lower      1/32 of the upper bound
//! ```
//!
//! CFQ bounds the time of a slice instead (`cfq/slice.rs`).

use crate::request::SectorCount;
use crate::time::{Hz, Ticks};

/// The maximum until the device is known, in sectors: 8 MiB.
pub(super) const DEFAULT_MAX: SectorCount = SectorCount(16 * 1024);
/// The least budget is this part of the maximum.
const MIN_PARTS: u32 = 32;
/// After so many budgets, smoothed, the maximum that was learned counts.
const ENOUGH_ASSIGNED: u32 = 194;
/// What smoothed counts tend to.
const SAMPLE: u32 = 256;
/// A service is over after this part of a second.
const TIMEOUT_PARTS: u32 = 8;

/// The bounds of budgets.
#[derive(Debug)]
pub(super) struct BudgetBounds {
    /// Budgets assigned, smoothed: 32, 60, 84, …
    assigned: u32,
    /// The most that a queue may get.
    max: SectorCount,
    /// How long a service may last.
    timeout: Ticks,
}

impl BudgetBounds {
    pub(super) fn new(hz: Hz) -> Self {
        Self { assigned: 0, max: DEFAULT_MAX, timeout: default_timeout(hz) }
    }

    /// The maximum, settled or not.
    #[inline]
    pub(super) fn max(&self) -> SectorCount {
        self.max
    }

    /// Sets the maximum. Returns what it was.
    pub(super) fn replace_max(&mut self, max: SectorCount) -> SectorCount {
        std::mem::replace(&mut self.max, max)
    }

    /// How long a service may last.
    #[inline]
    pub(super) fn timeout(&self) -> Ticks {
        self.timeout
    }

    /// Sets how long a service may last; the maximum is for its caller to bring up to date.
    pub(super) fn set_timeout(&mut self, timeout: Ticks) {
        self.timeout = timeout;
    }

    /// Returns whether enough budgets were given to go by what was learned.
    #[inline]
    pub(super) fn is_settled(&self) -> bool {
        self.assigned >= ENOUGH_ASSIGNED
    }

    /// The greatest budget: the maximum, if that is settled.
    #[inline]
    pub(super) fn upper(&self) -> SectorCount {
        if self.is_settled() { self.max } else { DEFAULT_MAX }
    }

    /// The least budget.
    #[inline]
    pub(super) fn lower(&self) -> SectorCount {
        SectorCount(self.upper().0 / MIN_PARTS)
    }

    /// The `max_budget` of a new queue: two thirds of the greatest budget.
    pub(super) fn of_new_queue(&self) -> SectorCount {
        let upper = self.upper().0;
        SectorCount(upper - upper.div_ceil(3))
    }

    /// A queue is put in service.
    #[inline]
    pub(super) fn note_assigned(&mut self) {
        self.assigned = (self.assigned * 7 + SAMPLE) / 8;
    }
}

/// Returns how long a service may last unless that is tuned; also the measure by which time is
/// charged, tuned or not.
pub(super) fn default_timeout(hz: Hz) -> Ticks {
    hz.part_of_second(TIMEOUT_PARTS)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The smoothed count runs 32, 60, 84, 105, 123, 139, 153, 165, 176, 186, 194: the 11th is
    /// enough. Until then the bounds are 16,384, 16,384 / 32 = 512, and for a new queue two thirds,
    /// 16,384 − ⌈5461.3⌉ = 10,922; then 41,961, 1311 and 41,961 − 13,987 = 27,974.
    #[test]
    fn maximum_counts_from_the_11th_service_on() {
        let mut bounds = BudgetBounds::new(Hz::MILLI);
        assert_eq!(bounds.replace_max(SectorCount(41_961)), SectorCount(16_384));
        for service in 0..11 {
            let all = [bounds.upper(), bounds.lower(), bounds.of_new_queue()];
            assert_eq!(all.map(|bound| bound.0), [16_384, 512, 10_922], "{service}");
            assert!(!bounds.is_settled());
            bounds.note_assigned();
        }
        assert!(bounds.is_settled());
        let all = [bounds.upper(), bounds.lower(), bounds.of_new_queue(), bounds.max()];
        assert_eq!(all.map(|bound| bound.0), [41_961, 1311, 27_974, 41_961]);
    }

    /// An eighth of a second is 125 ticks of 1000, and 31 of 250, rounded down.
    #[test]
    fn service_lasts_an_eighth_of_a_second() {
        for (hz, ticks) in [(1000, 125), (250, 31)] {
            let hz = Hz::new(hz).expect("whole nanoseconds a tick");
            assert_eq!(default_timeout(hz), Ticks::new(ticks));
            let mut bounds = BudgetBounds::new(hz);
            assert_eq!(bounds.timeout(), Ticks::new(ticks));
            bounds.set_timeout(Ticks::new(9));
            assert_eq!(bounds.timeout(), Ticks::new(9));
        }
    }
}
