//! Sleeping stops for a while where it makes the slowest I/Os slower.
//!
//! Only an I/O that was done while its thread still slept is slower for that, and the 99th
//! percentile moves only if its sleep ended beyond it. So those are counted, beside those that are
//! as slow by themselves: one in a hundred may be either, or one in two hundred late.
//!
//! ```text
//!   2048 I/Os slept for:  few late      clean: the level falls by one
//!                         many, once    nothing yet
//!                         many, again   no sleep for 2048 × 2^level I/Os; the level rises
//! ```
//!
//! Comparing the percentiles themselves of I/Os with and without sleep says little: of 256 samples
//! two are beyond it, and where times are heavy-tailed it would stop sleeping every other time for
//! nothing.

/// I/Os that were slept for before they are judged.
const PERIOD: u32 = 2048;
/// So many of them may be late …
const LATE: u32 = PERIOD / 200;
/// … or late and slow together.
const LATE_AND_SLOW: u32 = PERIOD / 100;
/// The longest stop is 2⁶ periods.
const MOST: u8 = 6;

/// How an I/O that was slept for is beside the 99th percentile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Speed {
    /// It took no longer.
    Usual,
    /// It took longer by itself.
    Slow,
    /// It was done when the sleep for it ended, and that was beyond.
    Late,
}

#[derive(Debug, Default)]
pub(super) struct Guard {
    slept: u32,
    late: u32,
    slow: u32,
    /// The last period had too many.
    was_bad: bool,
    level: u8,
    /// I/Os until sleeping is tried again.
    stopped_for: u32,
}

impl Guard {
    /// Notes an I/O that was slept for.
    pub(super) fn slept(&mut self, speed: Speed) {
        self.slept += 1;
        self.late += u32::from(speed == Speed::Late);
        self.slow += u32::from(speed == Speed::Slow);
        if self.slept < PERIOD {
            return;
        }
        let is_bad = self.late > LATE && self.late + self.slow > LATE_AND_SLOW;
        (self.slept, self.late, self.slow) = (0, 0, 0);
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

    /// A period with so many late ones, and 12 slow ones.
    fn period(guard: &mut Guard, late: u32) {
        for number in 0..PERIOD {
            guard.slept(match number {
                0..12 => Speed::Slow,
                _ if number < 12 + late => Speed::Late,
                _ => Speed::Usual,
            });
        }
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

    /// No I/O is as slow by itself, so that the 99th percentile stays though one in a hundred is
    /// late.
    #[test]
    fn late_ones_may_take_the_place_of_slow_ones() {
        let mut guard = Guard::default();
        for late in [20, 20, 21, 21] {
            (0..PERIOD).for_each(|n| {
                guard.slept(if n < late { Speed::Late } else { Speed::Usual });
            });
            assert_eq!(guard.is_stopped(), guard.level() > 0);
        }
        assert_eq!(guard.level(), 1);
    }
}
