//! The search for the depth that a latency target allows: `latency_target`.
//!
//! ```text
//!   1 ── 2 ── 4 ── 8 ── 16 ── 32     a window each; doubled as long as the target is met
//!                    18 ── 20 ── 24 ─┘ halved towards the greatest depth that met it
//!                 17 ─┘
//!                 17                 met once more: counted alone, and the end
//! ```
//!
//! fio's documentation names no order of depths. This one is what fio 3.33 was seen to do on
//! servers of a known number (`tests/data/fio-3.33/job-ends.txt`):
//!
//! - The first window begins when the ramp is over. A depth that has failed is left by letting all
//!   complete; the next window begins behind that.
//! - Where a depth fails that was thought to be met, the next is one less.
//! - With `latency_run`, a depth that was met three times in a row is followed by one more.
//! - One that fails at a depth of 1 stays there.

use paternoster::{Instant, Nanos};

use crate::fio::{DataDirection, Engine, Job, LatencyTarget};

/// How often a depth is met before the next one is tried again, with `latency_run`.
const TIMES: u32 = 3;

/// The greatest depth at which the job can have I/O under way. A read or a write through the page
/// cache is a call that waits, whatever the engine; what `null` begins is complete.
pub(super) fn greatest_depth(job: &Job) -> u32 {
    let submission = &job.submission;
    let is_alone = submission.is_cached() && !job.does(DataDirection::Trim);
    if is_alone || submission.engine == Engine::Null { 1 } else { submission.depth }
}

/// A search.
#[derive(Debug)]
pub(super) struct DepthSearch {
    target: LatencyTarget,
    /// The greatest that the job can have.
    greatest: u32,
    /// The depth that is tried.
    depth: u32,
    /// The greatest depth that met the target; 0 if none has.
    met: u32,
    /// The least depth that did not.
    missed: Option<u32>,
    /// How often in a row the search came back to the depth.
    settled: u32,
    /// When the present window began; never before the search does.
    window_from: Option<Instant>,
    /// I/Os that completed in it, and those of them that met the target.
    ios: u64,
    within: u64,
    /// What is under way completes before the next window begins.
    drains: bool,
}

/// What follows from a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// A depth is tried.
    GoOn,
    /// The depth was found: from here on the job is counted, for a window.
    Found,
    /// That window is over.
    Over,
}

impl DepthSearch {
    pub(super) fn new(target: LatencyTarget, greatest: u32) -> Self {
        Self {
            target,
            greatest,
            depth: 1,
            met: 0,
            missed: None,
            settled: 0,
            window_from: None,
            ios: 0,
            within: 0,
            drains: false,
        }
    }

    /// The search begins then.
    pub(super) fn begin(&mut self, from: Instant) {
        self.window_from = Some(from);
    }

    /// The depth that is tried, or was found.
    pub(super) fn depth(&self) -> u32 {
        self.depth
    }

    /// Whether nothing more is submitted as so many are under way.
    pub(super) fn holds_back(&mut self, now: Instant, outstanding: usize) -> bool {
        if self.drains && outstanding == 0 {
            self.drains = false;
            self.window_from = Some(now);
        }
        self.drains || outstanding >= self.depth as usize
    }

    /// An I/O has completed, which took so long in all.
    pub(super) fn completed(&mut self, now: Instant, took: Nanos) {
        if !self.drains && self.window_from.is_some_and(|from| now > from) {
            self.ios += 1;
            self.within += u64::from(took <= self.target.latency);
        }
    }

    /// Ends the window if its time is over, and chooses the next depth. Returns none as long as it
    /// is not over, or has no I/O.
    pub(super) fn judge(&mut self, now: Instant) -> Option<Outcome> {
        let from = self.window_from.filter(|_| !self.drains && self.ios > 0)?;
        if now.saturating_since(from) < self.target.window {
            return None;
        }
        let is_met = self.is_met();
        self.window_from = Some(now);
        (self.ios, self.within) = (0, 0);
        if !is_met {
            self.miss();
            return Some(Outcome::GoOn);
        }
        Some(self.meet())
    }

    /// Whether enough I/Os of the window met the target:
    ///
    /// `within ÷ ios ≥ percentile ÷ 100`
    #[allow(clippy::cast_precision_loss)] // I/Os of a window are counted with 53 bits
    fn is_met(&self) -> bool {
        self.within as f64 * 100.0 >= self.target.percentile * self.ios as f64
    }

    fn miss(&mut self) {
        self.settled = 0;
        self.missed = Some(self.depth);
        self.met = self.met.min(self.depth - 1);
        self.depth = u32::midpoint(self.met, self.depth).max(1);
        self.drains = true;
    }

    fn meet(&mut self) -> Outcome {
        self.met = self.depth;
        let next = match self.missed {
            Some(missed) => u32::midpoint(self.met, missed),
            None => self.depth.saturating_mul(2).min(self.greatest),
        };
        if next != self.depth {
            (self.depth, self.settled) = (next, 0);
            return Outcome::GoOn;
        }
        self.settled += 1;
        if !self.target.goes_on {
            return if self.settled == 1 { Outcome::Found } else { Outcome::Over };
        }
        if self.settled >= TIMES && self.depth < self.greatest {
            self.depth += 1;
            self.missed = Some(self.depth + 1);
            self.settled = 0;
        }
        Outcome::GoOn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(goes_on: bool) -> LatencyTarget {
        LatencyTarget {
            latency: Nanos::from_micros(15),
            window: Nanos::from_millis(500),
            percentile: 90.0,
            goes_on,
        }
    }

    /// The depths of so many windows at most, of which those meet the target that are not above
    /// what `greatest_met` says of the window.
    fn tried(
        goes_on: bool,
        greatest: u32,
        windows: u64,
        greatest_met: impl Fn(u64) -> u32,
    ) -> Vec<u32> {
        let mut search = DepthSearch::new(target(goes_on), greatest);
        let at = |window| Instant::START + Nanos::from_millis(500 * window);
        search.begin(at(0));
        let mut depths = vec![];
        for window in 0..windows {
            assert!(!search.holds_back(at(window), 0), "it has drained");
            depths.push(search.depth());
            let is_met = search.depth() <= greatest_met(window);
            let took = Nanos::from_micros(if is_met { 15 } else { 16 });
            let now = at(window + 1);
            search.completed(now, took);
            if search.judge(now) == Some(Outcome::Over) {
                break;
            }
        }
        depths
    }

    /// As fio 3.33 did with `iodepth=64` and 16 servers, of which 17 I/Os make one in 16 wait.
    #[test]
    fn depth_is_doubled_and_then_halved_towards_the_greatest_that_is_met() {
        let depths = tried(false, 64, 99, |_| 17);
        assert_eq!(depths, [1, 2, 4, 8, 16, 32, 24, 20, 18, 17, 17]);
        assert_eq!(tried(false, 64, 99, |_| 4), [1, 2, 4, 8, 6, 5, 4, 4]);
        assert_eq!(tried(false, 128, 99, |_| 11), [1, 2, 4, 8, 16, 12, 10, 11, 11]);
    }

    /// As fio 3.33 did with `iodepth=50`, and with 1.
    #[test]
    fn search_ends_at_the_depth_of_the_job() {
        assert_eq!(tried(false, 50, 99, |_| 1000), [1, 2, 4, 8, 16, 32, 50, 50]);
        assert_eq!(tried(false, 1, 99, |_| 1000), [1, 1]);
    }

    #[test]
    fn job_that_misses_its_target_at_a_depth_of_1_stays_there() {
        assert_eq!(tried(false, 64, 6, |_| 0), [1; 6]);
    }

    /// As fio 3.33 did when three of four servers were gone after 3.25 s.
    #[test]
    fn search_goes_down_by_one_where_the_device_becomes_slower() {
        let depths = tried(false, 64, 99, |window| if window < 6 { 4 } else { 1 });
        assert_eq!(depths, [1, 2, 4, 8, 6, 5, 4, 3, 2, 1, 1]);
    }

    /// As fio 3.33 did with `latency_run=1` on 10 servers.
    #[test]
    fn lasting_search_tries_one_more_after_three_windows() {
        let depths = tried(true, 64, 17, |_| 11);
        assert_eq!(depths, [1, 2, 4, 8, 16, 12, 10, 11, 11, 11, 12, 11, 11, 11, 12, 11, 11]);
    }

    /// As fio 3.33 did when 10 servers became 40.
    #[test]
    fn lasting_search_climbs_by_one_each_three_windows() {
        let depths = tried(true, 64, 16, |window| if window < 10 { 10 } else { 40 });
        assert_eq!(depths, [1, 2, 4, 8, 16, 12, 10, 11, 10, 10, 10, 11, 11, 11, 12, 12]);
    }

    /// Nine of ten I/Os are 90 %; eight of nine are less.
    #[test]
    fn percentile_says_how_many_ios_must_meet_the_target() {
        for (slow, fast, is_met) in [(1, 9, true), (1, 8, false), (0, 1, true)] {
            let mut search = DepthSearch::new(target(false), 64);
            search.begin(Instant::START);
            let now = Instant::START + Nanos::from_millis(500);
            (0..slow).for_each(|_| search.completed(now, Nanos::from_micros(16)));
            (0..fast).for_each(|_| search.completed(now, Nanos::from_micros(15)));
            search.judge(now);
            assert_eq!(search.depth() == 2, is_met, "{slow} slow, {fast} fast");
        }
    }
}
