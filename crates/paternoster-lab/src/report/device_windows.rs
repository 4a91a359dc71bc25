//! Where the device's time went, over time: sums at the ends of windows, of which every second one
//! is dropped when there are too many.

use paternoster::{Instant, Nanos};

use crate::sim::DeviceTime;

/// At most so many ends are kept.
const MOST: usize = 240;

/// The sums at the ends of windows.
#[derive(Clone, Debug)]
pub(super) struct DeviceWindows {
    width: Nanos,
    /// Times, with the sums up to then.
    ends: Vec<(Instant, DeviceTime)>,
    /// From when on the next end is taken.
    next: Instant,
}

impl DeviceWindows {
    pub(super) fn new() -> Self {
        let width = Nanos::from_millis(1);
        Self { width, ends: Vec::new(), next: Instant::START + width }
    }

    /// Takes the sums, if a window ends by now.
    pub(super) fn observe(&mut self, now: Instant, time: impl FnOnce() -> DeviceTime) {
        if now < self.next {
            return;
        }
        self.ends.push((now, time()));
        if self.ends.len() == MOST {
            self.ends = self.ends.iter().copied().skip(1).step_by(2).collect();
            self.width = self.width + self.width;
        }
        self.next = now + self.width;
    }

    /// The ends of windows, with the sums up to then.
    pub(super) fn ends(&self) -> &[(Instant, DeviceTime)] {
        &self.ends
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_ends_are_kept_of_a_long_run_and_they_are_evenly_spread() {
        let mut windows = DeviceWindows::new();
        for ms in 1..=10_000 {
            let busy = Nanos::from_millis(ms);
            windows.observe(Instant::START + busy, || DeviceTime { busy, ..Default::default() });
        }
        let ends: Vec<_> = windows.ends().iter().map(|(at, _)| at.since_start()).collect();
        assert!((MOST / 2 - 1..MOST).contains(&ends.len()), "{}", ends.len());
        let widths: Vec<_> = ends.windows(2).map(|two| two[1].saturating_sub(two[0])).collect();
        assert!(widths.iter().all(|width| *width == Nanos::from_millis(64)), "{widths:?}");
        assert!(windows.ends().iter().all(|(at, time)| at.since_start() == time.busy));
    }
}
