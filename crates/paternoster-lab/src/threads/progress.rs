//! How far the threads have come, and when the last of them is expected to end.
//!
//! ```text
//!   runtime          from ├ start_delay ┤├ ramp_time ┤├ runtime ┤
//!   bytes or I/Os    from ├ what it took for its part so far ┤├ as fast for the rest ┤
//!   exitall          its end is the end of others
//! ```
//!
//! A thread that waits for others starts at their expected end. Of one that has not done anything,
//! and has no runtime, nothing is expected.

use std::cell::Cell;

use paternoster::{Instant, Nanos};

use super::Threads;
use super::start::Starts;
use super::thread::Thread;

/// How far a run has come.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    pub(super) now: Instant,
    pub(super) threads: &'a Threads,
    /// Set to end the run here.
    pub(super) ends: &'a Cell<bool>,
}

impl Progress<'_> {
    /// The time in the simulation.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Ends the run here: what was counted so far is its outcome.
    pub fn end_here(&self) {
        self.ends.set(true);
    }

    /// When the last thread is expected to end; none where that cannot be told yet.
    pub fn expected_end(&self) -> Option<Instant> {
        let Threads { each, starts, .. } = self.threads;
        expected_ends(each, starts, self.now)
            .into_iter()
            .try_fold(self.now, |last, end| end.map(|end| last.max(end)))
    }
}

/// When each thread is expected to end.
fn expected_ends(each: &[Thread], starts: &Starts, now: Instant) -> Vec<Option<Instant>> {
    let mut ends = vec![None; each.len()];
    for (index, thread) in each.iter().enumerate() {
        let own = if starts.has_ended(index) {
            Some(now)
        } else {
            // What it waits for stands before it in the file.
            let from = starts
                .awaited(index)
                .try_fold(now, |from, awaited| ends[awaited].map(|end: Instant| from.max(end)));
            thread.expected_end(now, from)
        };
        ends[index] = earlier(ends[index], own);
        if !starts.has_ended(index) && own.is_some() {
            for other in starts.ended_by(index) {
                ends[other] = earlier(ends[other], own);
            }
        }
    }
    ends
}

fn earlier(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    [one, other].into_iter().flatten().min()
}

/// When something ends that began at `from` and has done `done` of `whole` by `now`, if it goes on
/// as fast:
///
/// `from + (now − from) × whole / done`
pub(super) fn at_this_pace(from: Instant, now: Instant, done: u64, whole: u64) -> Option<Instant> {
    let taken = u128::from(now.saturating_since(from).as_nanos());
    let all = (taken * u128::from(whole)).checked_div(u128::from(done))?;
    Some(from + Nanos::new(u64::try_from(all).unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_work_takes_as_long_as_the_other_half() {
        let at = |ms| Instant::START + Nanos::from_millis(ms);
        assert_eq!(at_this_pace(at(100), at(400), 5, 10), Some(at(700)));
        assert_eq!(at_this_pace(at(100), at(400), 0, 10), None);
    }
}
