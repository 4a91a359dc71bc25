//! The time in which all of several had something to do, and what each did in it.
//!
//! ```text
//!   a     ████████████████      ███████        has an I/O outstanding
//!   b          ██████████████████████████
//!   all        ███████████      ███████        a time in which weights divide the device
//! ```
//!
//! In the rest of the time a job also gets what the others do not ask for.

use paternoster::{Instant, Nanos};

use super::JobResult;

/// Bytes by direction.
type Bytes = [u64; 3];

/// What several jobs, or tasks, did while all of them had something to do.
#[derive(Debug)]
pub(crate) struct Together {
    each: Vec<One>,
    /// How many of the jobs that count have nothing to do.
    idle: usize,
    /// When the last of the jobs that count begins to be counted; none as long as one has not
    /// started.
    from: Option<Instant>,
    /// When the present stretch of the time began; valid while no job is idle.
    since: Instant,
    /// When the last stretch ended, if it was longer than nothing.
    ended: Option<Instant>,
    /// The length of all stretches that have ended.
    time: Nanos,
}

/// A job or a task.
#[derive(Clone, Debug, Default)]
struct One {
    /// The time ends while this job has nothing to do.
    counts: bool,
    /// When it begins to be counted; valid once it has started.
    from: Option<Instant>,
    has_work: bool,
    /// What it has done so far.
    done: Bytes,
    /// The part of that in the time.
    together: Bytes,
}

impl Together {
    /// Jobs that have nothing to do as yet; the time is that of those for which `counts` is true.
    pub(crate) fn new(counts: impl IntoIterator<Item = bool>) -> Self {
        let one = |counts| One { counts, ..One::default() };
        let each: Vec<_> = counts.into_iter().map(one).collect();
        let idle = each.iter().filter(|one| one.counts).count();
        let since = Instant::START;
        Self { each, idle, from: None, since, ended: None, time: Nanos::ZERO }
    }

    /// The job of that index has started, and is counted from `from` on.
    pub(crate) fn begin(&mut self, index: usize, from: Instant) {
        self.each[index].from = Some(from);
        let mut counted = self.each.iter().filter(|one| one.counts);
        self.from = counted.try_fold(Instant::START, |last, one| Some(last.max(one.from?)));
    }

    /// The job of that index has completed `done` in all. From now on it has something to do, or
    /// nothing.
    pub(crate) fn update(&mut self, now: Instant, index: usize, done: Bytes, has_work: bool) {
        if self.each[index].done.iter().zip(done).any(|(before, now)| now < *before) {
            self.restart(now, index, done);
        }
        let covers = self.covers(now);
        let one = &mut self.each[index];
        for ((sum, before), now) in one.together.iter_mut().zip(&mut one.done).zip(done) {
            *sum += if covers { now - *before } else { 0 };
            *before = now;
        }
        if !one.counts || one.has_work == has_work {
            return;
        }
        one.has_work = has_work;
        if has_work {
            self.idle -= 1;
            self.since = now;
        } else {
            self.close(now);
            self.idle += 1;
        }
    }

    /// The run ends.
    pub(crate) fn close(&mut self, now: Instant) {
        let span = self.span(now);
        if span > Nanos::ZERO {
            self.time += span;
            self.ended = Some(now);
        }
        self.since = now;
    }

    /// Puts the time, and what the job of that index did in it, into its result.
    pub(crate) fn tell(&self, index: usize, result: &mut JobResult) {
        result.together = self.time;
        for (direction, bytes) in result.directions.iter_mut().zip(self.each[index].together) {
            direction.together_bytes = bytes;
        }
    }

    /// The job of that index is counted anew from now on, and so is the time.
    fn restart(&mut self, now: Instant, index: usize, done: Bytes) {
        self.each[index].done = done;
        self.each.iter_mut().for_each(|one| one.together = [0; 3]);
        (self.time, self.ended) = (Nanos::ZERO, None);
        self.begin(index, now);
    }

    /// How long the present stretch is; nothing where there is none.
    fn span(&self, now: Instant) -> Nanos {
        match self.from {
            Some(from) if self.idle == 0 => now.saturating_since(self.since.max(from)),
            _ => Nanos::ZERO,
        }
    }

    /// Whether an I/O that completes now counts: all had something to do until now. Of two that
    /// complete at one instant, the first may leave its job with nothing to do.
    fn covers(&self, now: Instant) -> bool {
        self.span(now) > Nanos::ZERO || self.ended == Some(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Instant {
        Instant::START + Nanos::from_micros(micros)
    }

    fn together(counts: [bool; 2]) -> Together {
        let mut together = Together::new(counts);
        (0..2).for_each(|index| together.begin(index, at(0)));
        together
    }

    fn told(together: &Together) -> (u64, [u64; 2]) {
        let results = [0, 1].map(|index| {
            let mut result = JobResult::default();
            together.tell(index, &mut result);
            result
        });
        let bytes = results.each_ref().map(|result| result.directions[0].together_bytes);
        (results[0].together.as_nanos() / 1000, bytes)
    }

    /// The first has something to do from 0 to 100 µs, the other from 40 on: 60 µs. Of the first's
    /// bytes 3 of 4 complete in them, of the other's 2 of 10.
    #[test]
    fn bytes_count_that_complete_while_all_have_something_to_do() {
        let mut together = together([true; 2]);
        together.update(at(0), 0, [0; 3], true);
        together.update(at(30), 0, [1, 0, 0], true);
        together.update(at(40), 1, [0; 3], true);
        together.update(at(70), 1, [2, 0, 0], true);
        together.update(at(100), 0, [4, 0, 0], false);
        together.update(at(150), 1, [10, 0, 0], false);
        assert_eq!(told(&together), (60, [3, 2]));
    }

    /// Both complete at 80 µs, and submit again at once.
    #[test]
    fn nothing_is_lost_where_two_complete_at_once() {
        let mut together = together([true; 2]);
        (0..2).for_each(|index| together.update(at(0), index, [0; 3], true));
        (0..2).for_each(|index| together.update(at(80), index, [1, 0, 0], false));
        (0..2).for_each(|index| together.update(at(80), index, [1, 0, 0], true));
        (0..2).for_each(|index| together.update(at(160), index, [2, 0, 0], false));
        assert_eq!(told(&together), (160, [2, 2]));
    }

    /// The second is counted from 50 µs on, and began with the first; the run ends at 90 µs.
    #[test]
    fn time_begins_with_the_last_ramp_and_ends_with_the_run() {
        let mut together = Together::new([true; 2]);
        together.begin(0, at(0));
        (0..2).for_each(|index| together.update(at(0), index, [0; 3], true));
        together.begin(1, at(50));
        together.update(at(40), 0, [1, 0, 0], true);
        together.update(at(60), 0, [3, 0, 0], true);
        together.close(at(90));
        assert_eq!(told(&together), (40, [2, 0]));
    }

    #[test]
    fn one_that_does_not_count_ends_no_time() {
        let mut together = together([true, false]);
        together.update(at(0), 0, [0; 3], true);
        together.update(at(10), 1, [5, 0, 0], false);
        together.update(at(20), 0, [1, 0, 0], false);
        assert_eq!(told(&together), (20, [1, 5]));
    }

    /// What was counted until 50 µs is forgotten there.
    #[test]
    fn result_that_begins_anew_has_the_time_from_there_on() {
        let mut together = together([true; 2]);
        (0..2).for_each(|index| together.update(at(0), index, [0; 3], true));
        together.update(at(30), 1, [7, 0, 0], true);
        together.update(at(40), 0, [5, 0, 0], true);
        together.update(at(50), 0, [0; 3], true);
        together.update(at(80), 1, [9, 0, 0], true);
        together.update(at(90), 0, [1, 0, 0], false);
        assert_eq!(told(&together), (40, [1, 2]));
    }
}
