//! Rates of a direction, window by window: how much completed in each, as a sample a second.
//!
//! ```text
//!   from     from + w   from + 2w  from + 3w  from + 4w
//!    │ + +  +  │          │          │   +      │        + something completed
//!    ended by the next completion or the end of the thread; empty ones at once: they are many
//! ```

use paternoster::{Instant, Nanos};

use crate::fio::Reports;
use crate::result::{Moments, Samples};

/// Rates of a direction, window by window.
#[derive(Debug)]
pub(super) struct Windows {
    pub(super) bandwidth: Window,
    pub(super) iops: Window,
}

/// A rate, window by window.
#[derive(Debug)]
pub(super) struct Window {
    length: Nanos,
    /// When the present window ends.
    end: Instant,
    /// What was counted in it.
    count: u64,
    rates: Moments,
}

/// A window that is over, in which something was counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ended {
    pub(super) at: Instant,
    pub(super) per_s: u64,
}

/// Those of a direction that are over, in which something was counted.
#[derive(Clone, Copy, Debug)]
pub(super) struct EndedWindows {
    pub(super) bandwidth: Option<Ended>,
    pub(super) iops: Option<Ended>,
}

impl Windows {
    /// Windows as long as the job says.
    pub(super) fn new(reports: &Reports) -> Self {
        Self {
            bandwidth: Window::new(reports.bandwidth_window),
            iops: Window::new(reports.iops_window),
        }
    }

    pub(super) fn begin(&mut self, from: Instant) {
        self.bandwidth.begin(from);
        self.iops.begin(from);
    }

    /// Forgets what was counted, and begins then.
    pub(super) fn restart(&mut self, from: Instant) {
        self.bandwidth = Window::new(self.bandwidth.length);
        self.iops = Window::new(self.iops.length);
        self.begin(from);
    }

    /// Counts an I/O that completes now.
    pub(super) fn add(&mut self, now: Instant, bytes: u64) {
        self.end_counted(now);
        self.bandwidth.add(now, bytes);
        self.iops.add(now, 1);
    }

    /// Ends the windows in which something was counted, those that are over.
    pub(super) fn end_counted(&mut self, now: Instant) -> EndedWindows {
        EndedWindows {
            bandwidth: self.bandwidth.end_counted(now),
            iops: self.iops.end_counted(now),
        }
    }
}

impl Window {
    /// Windows of that length; there are none where it is 0.
    fn new(length: Nanos) -> Self {
        let end = Instant::from_nanos(0);
        Self { length, end, count: 0, rates: Moments::default() }
    }

    fn begin(&mut self, from: Instant) {
        self.end = from + self.length;
    }

    /// Ends the window in which something was counted, if it is over.
    fn end_counted(&mut self, now: Instant) -> Option<Ended> {
        if self.count == 0 || !self.is_over(now) {
            return None;
        }
        let per_s = u128::from(self.count) * 1_000_000_000;
        let per_s = per_s / u128::from(self.length.as_nanos());
        let ended = Ended { at: self.end, per_s: u64::try_from(per_s).unwrap_or(u64::MAX) };
        self.rates.add(ended.per_s);
        self.count = 0;
        self.end = self.end + self.length;
        Some(ended)
    }

    /// Counts something that happens now. A window with something in it that is over has been
    /// ended before; empty ones that are over become samples.
    fn add(&mut self, now: Instant, count: u64) {
        if self.is_over(now) {
            assert_eq!(self.count, 0, "a window that is over is ended before");
            let length = self.length.as_nanos();
            let empty = now.saturating_since(self.end).as_nanos() / length + 1;
            self.rates.add_zeroes(empty);
            self.end = self.end + Nanos::new(empty * length);
        }
        self.count += count;
    }

    /// The samples, in that unit.
    #[allow(clippy::cast_precision_loss)] // a unit is small
    pub(super) fn samples(&self, unit: u64) -> Samples {
        let samples = Samples::from(&self.rates);
        let by = unit as f64;
        Samples {
            min: samples.min / unit,
            max: samples.max / unit,
            mean: samples.mean / by,
            deviation: samples.deviation / by,
            ..samples
        }
    }

    fn is_over(&self, now: Instant) -> bool {
        self.length > Nanos::ZERO && now >= self.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Instant {
        Instant::START + Nanos::from_micros(micros)
    }

    /// Windows of 100 µs. In the first are 1 and 2, at 300 µs begins the fourth: 3 in 100 µs are
    /// 30,000 a second, and two windows are empty.
    #[test]
    fn empty_windows_are_samples_too() {
        let mut window = Window::new(Nanos::from_micros(100));
        window.begin(at(0));
        window.add(at(0), 1);
        window.add(at(99), 2);
        assert_eq!(window.end_counted(at(99)), None);
        assert_eq!(window.end_counted(at(300)), Some(Ended { at: at(100), per_s: 30_000 }));
        assert_eq!(window.end_counted(at(300)), None);
        window.add(at(300), 5);
        let samples = window.samples(1);
        assert_eq!((samples.count, samples.min, samples.max), (3, 0, 30_000));
        assert_eq!(window.end_counted(at(400)), Some(Ended { at: at(400), per_s: 50_000 }));
    }

    /// Ten years have 315,360,000,000,000 microseconds: as many samples come out at once.
    #[test]
    fn years_of_empty_windows_take_no_time() {
        let mut window = Window::new(Nanos::from_micros(1));
        window.begin(at(0));
        window.add(at(0), 1);
        let later = at(315_360_000_000_000);
        assert_eq!(window.end_counted(later), Some(Ended { at: at(1), per_s: 1_000_000 }));
        window.add(later, 1);
        assert_eq!(window.samples(1).count, 315_360_000_000_000);
    }

    #[test]
    fn windows_without_a_length_are_none() {
        let mut window = Window::new(Nanos::ZERO);
        window.begin(at(0));
        window.add(at(50), 1);
        assert_eq!(window.end_counted(at(100)), None);
        assert_eq!(window.samples(1).count, 0);
    }
}
