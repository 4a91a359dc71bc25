//! What happened over time, in windows of one width. When there are too many, each two become one.
//!
//! ```text
//!   1 ms   ▁▃▂▅▇▆▃▂      MOST windows, and another I/O completes behind them
//!   2 ms   ▂▄▆▃          half as many, twice as wide
//! ```

use paternoster::{Instant, Nanos};

/// At most so many windows are kept.
const MOST: usize = 256;

/// The width of a window at first.
const NARROWEST: Nanos = Nanos::from_millis(1);

/// What completed in a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SeriesWindow {
    /// I/Os.
    pub(crate) ios: u64,
    /// Their bytes.
    pub(crate) bytes: u64,
    /// The sum of their latencies, in ns.
    pub(crate) latency_sum: u64,
    /// The highest of them.
    pub(crate) latency_max: Nanos,
}

/// What completed over time, from the start of the run on.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    width: Nanos,
    windows: Vec<SeriesWindow>,
}

impl Default for Series {
    fn default() -> Self {
        Self { width: NARROWEST, windows: Vec::new() }
    }
}

impl Series {
    /// Counts an I/O that completes.
    pub(crate) fn add(&mut self, now: Instant, bytes: u64, latency: Nanos) {
        let mut index = self.index(now);
        while index >= MOST {
            self.halve();
            index = self.index(now);
        }
        self.reach(index + 1);
        self.windows[index].add(&SeriesWindow {
            ios: 1,
            bytes,
            latency_sum: latency.as_nanos(),
            latency_max: latency,
        });
    }

    /// Adds what another counted.
    pub(crate) fn merge(&mut self, other: &Self) {
        let mut other = other.clone();
        self.widen(other.width);
        other.widen(self.width);
        self.reach(other.windows.len());
        for (own, other) in self.windows.iter_mut().zip(&other.windows) {
            own.add(other);
        }
    }

    /// Makes the windows at least that wide.
    pub(crate) fn widen(&mut self, width: Nanos) {
        while self.width < width {
            self.halve();
        }
    }

    /// How wide each window is.
    pub(crate) fn width(&self) -> Nanos {
        self.width
    }

    /// The windows, up to the last one in which something completed.
    pub(crate) fn windows(&self) -> &[SeriesWindow] {
        &self.windows
    }

    fn index(&self, now: Instant) -> usize {
        let index = now.since_start().as_nanos() / self.width.as_nanos();
        usize::try_from(index).unwrap_or(usize::MAX)
    }

    fn reach(&mut self, windows: usize) {
        if self.windows.len() < windows {
            self.windows.resize(windows, SeriesWindow::default());
        }
    }

    /// Makes one window of each two.
    fn halve(&mut self) {
        self.width = self.width + self.width;
        let pairs = self.windows.chunks(2).map(|pair| {
            let mut sum = pair[0];
            pair[1..].iter().for_each(|second| sum.add(second));
            sum
        });
        self.windows = pairs.collect();
    }
}

impl SeriesWindow {
    fn add(&mut self, other: &Self) {
        self.ios += other.ios;
        self.bytes += other.bytes;
        self.latency_sum = self.latency_sum.saturating_add(other.latency_sum);
        self.latency_max = self.latency_max.max(other.latency_max);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_ms(ms: u64) -> Instant {
        Instant::START + Nanos::from_millis(ms)
    }

    #[test]
    fn long_run_keeps_every_io_in_few_windows() {
        let mut series = Series::default();
        for ms in 0..100_000 {
            series.add(at_ms(ms), 4096, Nanos::from_micros(ms));
        }
        assert_eq!(series.width(), Nanos::from_millis(512), "100,000 ms ÷ 256 is 391");
        assert_eq!(series.windows().len(), 196, "100,000 ÷ 512 is 195.3");
        assert_eq!(series.windows().iter().map(|window| window.ios).sum::<u64>(), 100_000);
        let second = series.windows()[1];
        assert_eq!((second.ios, second.bytes), (512, 512 * 4096));
        assert_eq!(second.latency_max, Nanos::from_micros(1023));
        assert_eq!(second.latency_sum, (512..1024).sum::<u64>() * 1000);
    }

    #[test]
    fn series_of_unlike_widths_add_up_over_the_same_time() {
        let [mut short, mut long] = [Series::default(), Series::default()];
        short.add(at_ms(3), 1, Nanos::new(7));
        long.add(at_ms(2), 10, Nanos::new(5));
        long.add(at_ms(400), 100, Nanos::new(5));
        for series in [(&short, &long), (&long, &short)].map(|(one, other)| {
            let mut sum = one.clone();
            sum.merge(other);
            sum
        }) {
            assert_eq!(series.width(), Nanos::from_millis(2));
            let second = series.windows()[1];
            assert_eq!((second.ios, second.bytes, second.latency_sum), (2, 11, 12));
            assert_eq!(second.latency_max, Nanos::new(7));
            assert_eq!(series.windows()[200].bytes, 100);
        }
    }
}
