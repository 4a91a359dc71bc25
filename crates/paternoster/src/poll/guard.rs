//! Sleeping stops for a while where it makes the slowest I/Os slower.
//!
//! Only an I/O that was done while its thread still slept is slower for that, and the 99th
//! percentile moves only if its sleep ended beyond it. So those are counted, and they may be half
//! of the slowest hundredth:
//!
//! ```text
//!   2048 I/Os slept for:  10 or fewer late   clean: the level falls by one
//!                         more, once         nothing yet
//!                         more, again        no sleep for 2048 × 2^level I/Os; the level rises
//! ```
//!
//! Comparing the percentiles themselves of I/Os with and without sleep says little: of 256 samples
//! two are beyond it, and where times are heavy-tailed it would stop sleeping every other time for
//! nothing.

/// I/Os that were slept for before they are judged.
const PERIOD: u32 = 2048;
/// So many of them may be late: one in two hundred.
const ALLOWED: u32 = PERIOD / 200;
/// The longest stop is 2⁶ periods.
const MOST: u8 = 6;

#[derive(Debug, Default)]
pub(super) struct Guard {
    slept: u32,
    late: u32,
    /// The last period had too many.
    was_bad: bool,
    level: u8,
    /// I/Os until sleeping is tried again.
    stopped_for: u32,
}

impl Guard {
    /// Notes an I/O that was slept for, and whether that made it one of the slowest.
    pub(super) fn slept(&mut self, is_late: bool) {
        self.slept += 1;
        self.late += u32::from(is_late);
        if self.slept < PERIOD {
            return;
        }
        let is_bad = self.late > ALLOWED;
        (self.slept, self.late) = (0, 0);
        if is_bad && self.was_bad {
            self.level = (self.level + 1).min(MOST);
            self.stopped_for = PERIOD << self.level;
        } else if !is_bad {
            self.level = self.level.saturating_sub(1);
        }
        self.was_bad = is_bad;
    }

    /// Notes an I/O that was not slept for.
    pub(super) fn awake(&mut self) {
        self.stopped_for = self.stopped_for.saturating_sub(1);
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped_for > 0
    }

    pub(super) fn level(&self) -> u8 {
        self.level
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn period(guard: &mut Guard, late: u32) {
        (0..PERIOD).for_each(|n| guard.slept(n < late));
    }

    #[test]
    fn two_bad_periods_stop_sleeping_each_time_for_longer() {
        let mut guard = Guard::default();
        period(&mut guard, 11);
        assert!(!guard.is_stopped());
        for level in 1..=7 {
            period(&mut guard, 11);
            let mut awake = 0;
            while guard.is_stopped() {
                guard.awake();
                awake += 1;
            }
            assert_eq!(awake, PERIOD << level.min(6), "at level {level}");
        }
    }

    #[test]
    fn clean_periods_take_back_what_bad_ones_did() {
        let mut guard = Guard::default();
        (0..4).for_each(|_| period(&mut guard, 100));
        assert_eq!(guard.level(), 3);
        (0..3).for_each(|_| period(&mut guard, 10));
        assert_eq!(guard.level(), 0);
        period(&mut guard, 11);
        period(&mut guard, 10);
        assert_eq!(guard.level(), 0, "one bad period alone does nothing");
    }
}
