//! Cut mode: windows on a device that serves in bursts.
//!
//! ```text
//!   ▪▪▪▪▪          ▪▪▪▪▪          ▪▪▪▪▪          a throttled device
//!   ├────────────┤├────────────┤                 a window of fixed length has one burst, or two
//!        │◀─ long gap ─▶│                        in cut mode it ends behind a gap, with all of
//!                  └ a window begins here        the bursts that it began
//! ```
//!
//! A device that somebody throttles serves a burst and then nothing until its next slice. A window
//! of fixed length would count more bursts or fewer by chance. So once four windows in a row were
//! full of gaps though the device never ran empty, windows begin and end at a completion right
//! behind a long gap.

use super::is_long;
use crate::time::{Instant, Nanos};

/// How many bursty windows in a row begin cut mode.
const BURSTY_WINDOWS: u32 = 4;

/// How many long gaps a window of cut mode has.
const GAPS_IN_CUT: u32 = 4;

/// A window whose longest gap is more than this part of it is full of gaps.
pub(super) const LONGEST_GAPS: u64 = 8;

/// Cut mode ends with gaps shorter than this, or with a window or a guard that lasts
/// [`LONGEST_CUT`].
const SHORT_GAP: Nanos = Nanos::from_millis(30);
const LONGEST_CUT: Nanos = Nanos::from_secs(2);

/// What is known of a window that ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gaps {
    pub(super) completions: u32,
    /// How long it was measured.
    pub(super) span: Nanos,
    /// The longest time between two completions.
    pub(super) longest: Nanos,
    /// The device had room for more than there was.
    pub(super) starved: bool,
}

/// Whether cut mode is on, and what begins it.
#[derive(Debug, Default)]
pub(super) struct Cut {
    /// In cut mode: the longest gap of the last window.
    longest: Option<Nanos>,
    /// How many windows in a row were bursty; 0 in cut mode.
    bursty: u32,
}

/// Returns whether a window of cut mode may end here, behind so many long gaps.
pub(super) fn is_enough(is_behind_gap: bool, gaps: u32, span: Nanos) -> bool {
    (is_behind_gap && gaps >= GAPS_IN_CUT) || span >= LONGEST_CUT
}

impl Cut {
    #[inline]
    pub(super) fn is_on(&self) -> bool {
        self.longest.is_some()
    }

    /// Returns whether a gap is one between two bursts. None is outside of cut mode.
    #[inline]
    pub(super) fn is_long_gap(&self, gap: Nanos) -> bool {
        self.longest.is_some_and(|longest| gap.as_nanos() >= longest.as_nanos() / 2)
    }

    /// Ends cut mode if the guard of a window that opened then waits for a gap that does not come.
    pub(super) fn give_up(&mut self, opened: Instant, now: Instant) {
        if self.is_on() && now.saturating_since(opened) >= LONGEST_CUT {
            *self = Self::default();
        }
    }

    /// Returns whether a window was bursty, and begins or ends cut mode.
    pub(super) fn judge(&mut self, window: Gaps) -> bool {
        let Gaps { completions, span, longest, starved } = window;
        if self.is_on() {
            let goes_on = longest >= SHORT_GAP && span < LONGEST_CUT;
            *self = Self { longest: goes_on.then_some(longest), bursty: 0 };
            return false;
        }
        let is_full_of_gaps = longest.as_nanos() * LONGEST_GAPS > span.as_nanos();
        // Gaps of a device that had nothing to do say nothing of the device.
        let is_bursty = is_full_of_gaps && is_long(completions, span) && !starved;
        self.bursty = if is_bursty { self.bursty + 1 } else { 0 };
        if self.bursty >= BURSTY_WINDOWS && longest >= SHORT_GAP {
            *self = Self { longest: Some(longest), bursty: 0 };
        }
        is_bursty
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bursts a tenth of a second apart.
    const BURSTY: Gaps = Gaps {
        completions: 100,
        span: Nanos::from_millis(500),
        longest: Nanos::from_millis(100),
        starved: false,
    };

    fn after(windows: impl IntoIterator<Item = Gaps>) -> Cut {
        let mut cut = Cut::default();
        for window in windows {
            cut.judge(window);
        }
        cut
    }

    #[test]
    fn four_bursty_windows_in_a_row_begin_it() {
        assert!(!after([BURSTY; 3]).is_on());
        assert!(after([BURSTY; 4]).is_on());
        let even = Gaps { longest: Nanos::from_millis(62), ..BURSTY };
        assert!(!after([BURSTY, BURSTY, even, BURSTY, BURSTY]).is_on(), "62 × 8 < 500");
    }

    #[test]
    fn gaps_of_a_device_that_had_too_little_to_do_do_not_begin_it() {
        assert!(!after([Gaps { starved: true, ..BURSTY }; 20]).is_on());
    }

    #[test]
    fn it_ends_with_short_gaps_and_with_a_window_of_two_seconds() {
        let mut cut = after([BURSTY; 5]);
        assert!(cut.is_on(), "gaps as long as before");
        cut.judge(Gaps { longest: Nanos::from_millis(29), ..BURSTY });
        assert!(!cut.is_on());
        let mut cut = after([BURSTY; 4]);
        cut.judge(Gaps { span: Nanos::from_secs(2), ..BURSTY });
        assert!(!cut.is_on());
    }

    #[test]
    fn window_ends_behind_the_fourth_gap_half_as_long_as_the_longest() {
        let cut = after([BURSTY; 4]);
        assert!(cut.is_long_gap(Nanos::from_millis(50)));
        assert!(!cut.is_long_gap(Nanos::from_millis(49)));
        let span = Nanos::from_millis(400);
        assert!(is_enough(true, 4, span));
        assert!(!is_enough(false, 4, span), "in the middle of a burst");
        assert!(!is_enough(true, 3, span));
    }
}
