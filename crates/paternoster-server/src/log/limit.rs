//! How often a line is written that clients can cause: once a second of its kind, with the number
//! of those that were left out since the last.
//!
//! ```text
//!   lines    a  a a a a   a        a
//!   written  a                     a, left_out = 5
//!            ├───── a second ─────┤
//! ```
//!
//! No line is written late, so that nothing has to wake up for it: what was left out is counted in
//! the next line of the kind, or at the end.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The least time between two lines of a kind.
const PAUSE: Duration = Duration::from_secs(1);

/// The limits of all kinds of lines of one thread; a kind is named by its sentence.
#[derive(Debug, Default)]
pub(crate) struct Limits {
    kinds: BTreeMap<&'static str, Kind>,
}

#[derive(Debug)]
struct Kind {
    /// When its last line was written.
    last: Instant,
    /// Lines that were not, since then.
    left_out: u64,
}

/// Leave to write a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    /// How many of its kind were left out since the last; none where that is 0.
    pub(crate) left_out: Option<u64>,
}

impl Limits {
    /// Admits a line of this kind at `now`, or counts it as left out and returns none.
    pub(crate) fn admit(&mut self, kind: &'static str, now: Instant) -> Option<Line> {
        let Some(known) = self.kinds.get_mut(kind) else {
            self.kinds.insert(kind, Kind { last: now, left_out: 0 });
            return Some(Line { left_out: None });
        };
        if now.saturating_duration_since(known.last) < PAUSE {
            known.left_out += 1;
            return None;
        }
        known.last = now;
        let left_out = std::mem::take(&mut known.left_out);
        Some(Line { left_out: Some(left_out).filter(|&left_out| left_out > 0) })
    }

    /// Logs how many lines were left out and not counted yet: at the end, when no line follows.
    pub(crate) fn report_rest(&mut self) {
        for (kind, left_out) in self.take_rest() {
            tracing::info!(left_out, "lines of one kind were left out at the end: {kind}");
        }
    }

    fn take_rest(&mut self) -> Vec<(&'static str, u64)> {
        let kinds = self.kinds.iter_mut();
        let rest = kinds.map(|(kind, known)| (*kind, std::mem::take(&mut known.left_out)));
        rest.filter(|&(_, left_out)| left_out > 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(left_out: Option<u64>) -> Line {
        Line { left_out }
    }

    #[test]
    fn kind_is_written_once_a_second_with_the_count_of_those_left_out() {
        let mut limits = Limits::default();
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        assert_eq!(limits.admit("a", at(0)), Some(line(None)));
        for millis in [0, 1, 500, 999] {
            assert_eq!(limits.admit("a", at(millis)), None);
        }
        assert_eq!(limits.admit("a", at(1000)), Some(line(Some(4))));
        assert_eq!(limits.admit("a", at(1999)), None);
        assert_eq!(limits.admit("a", at(9000)), Some(line(Some(1))));
        assert_eq!(limits.admit("a", at(10_000)), Some(line(None)), "none was left out");
    }

    #[test]
    fn kinds_do_not_take_each_others_lines() {
        let mut limits = Limits::default();
        let now = Instant::now();
        assert_eq!(limits.admit("a", now), Some(line(None)));
        assert_eq!(limits.admit("b", now), Some(line(None)));
        assert_eq!(limits.admit("a", now), None);
    }

    #[test]
    fn what_was_left_out_last_is_reported_at_the_end_once() {
        let mut limits = Limits::default();
        let now = Instant::now();
        for kind in ["a", "a", "b", "a"] {
            limits.admit(kind, now);
        }
        assert_eq!(limits.take_rest(), [("a", 2)]);
        assert_eq!(limits.take_rest(), []);
    }
}
