//! What is counted of threads: nothing of the time before `ramp_time` is over.

use paternoster::{Instant, Nanos};

use crate::fio::{DataDirection, Reports};
use crate::report::Series;
use crate::result::{JobError, JobResult, Moments, Samples, Took};

/// What is counted of a thread.
#[derive(Debug)]
pub(super) struct Tally {
    result: JobResult,
    /// From when on it is counted; never before the thread starts.
    from: Option<Instant>,
    windows: [Windows; 3],
    /// What completed over time, the ramp included; kept for a report alone.
    series: Option<Series>,
}

/// Rates of a direction, window by window.
#[derive(Debug)]
struct Windows {
    bandwidth: Window,
    iops: Window,
}

/// A rate, window by window.
#[derive(Debug)]
struct Window {
    length: Nanos,
    /// When the present window ends.
    end: Instant,
    /// What was counted in it.
    count: u64,
    rates: Moments,
}

impl Tally {
    pub(super) fn new(reports: &Reports) -> Self {
        let windows = || Windows {
            bandwidth: Window::new(reports.bandwidth_window),
            iops: Window::new(reports.iops_window),
        };
        Self {
            result: JobResult::default(),
            from: None,
            windows: [windows(), windows(), windows()],
            series: None,
        }
    }

    /// Has what completes be counted over time, too.
    pub(super) fn keep_series(&mut self) {
        self.series = Some(Series::default());
    }

    /// The thread is counted from then on.
    pub(super) fn begin(&mut self, from: Instant) {
        self.from = Some(from);
        for Windows { bandwidth, iops } in &mut self.windows {
            bandwidth.begin(from);
            iops.begin(from);
        }
    }

    /// An I/O was submitted, which makes `depth` of the thread under way.
    pub(super) fn submitted(&mut self, now: Instant, depth: u32) {
        if self.counts(now) {
            self.result.submitted(depth);
            self.result.submitted_batch(1);
        }
    }

    /// The thread waits.
    pub(super) fn waits(&mut self) {
        self.result.context_switches += 1;
    }

    /// An I/O has completed.
    pub(super) fn completed(
        &mut self,
        now: Instant,
        direction: DataDirection,
        bytes: u64,
        took: Took,
    ) {
        if let Some(series) = &mut self.series {
            series.add(now, bytes, took.completion);
        }
        if !self.counts(now) {
            return;
        }
        self.result.completed(direction, bytes, took);
        self.result.completed_batch(1);
        let Windows { bandwidth, iops } = &mut self.windows[direction as usize];
        bandwidth.add(now, bytes);
        iops.add(now, 1);
    }

    /// The I/O has completed after the runtime.
    pub(super) fn drained(&mut self) {
        self.result.drained += 1;
    }

    /// A core was busy for so long for the thread, in the kernel.
    pub(super) fn worked(&mut self, now: Instant, cpu: Nanos) {
        if self.counts(now) {
            self.result.system_cpu += cpu;
        }
    }

    /// A sync has completed.
    pub(super) fn synced(&mut self, now: Instant, took: Nanos) {
        if self.counts(now) {
            self.result.syncs.add(took);
        }
    }

    /// The thread ends with an error; the first is told.
    pub(super) fn fail(&mut self, error: JobError) {
        self.result.error.get_or_insert(error);
    }

    /// The thread has ended.
    pub(super) fn end(&mut self, now: Instant) {
        let runtime = self.from.map_or(Nanos::ZERO, |from| now.saturating_since(from));
        self.result.runtime = runtime;
        for (direction, windows) in self.result.directions.iter_mut().zip(&self.windows) {
            if direction.ios > 0 {
                direction.runtime = runtime;
            }
            direction.bandwidth = windows.bandwidth.samples(1024);
            direction.iops = windows.iops.samples(1);
        }
    }

    pub(super) fn result(&self) -> &JobResult {
        &self.result
    }

    pub(super) fn series(&self) -> Option<&Series> {
        self.series.as_ref()
    }

    fn counts(&self, now: Instant) -> bool {
        self.from.is_some_and(|from| now >= from)
    }
}

impl Window {
    fn new(length: Nanos) -> Self {
        let end = Instant::from_nanos(0);
        Self { length, end, count: 0, rates: Moments::default() }
    }

    fn begin(&mut self, from: Instant) {
        self.end = from + self.length;
    }

    /// Counts something that happens now; windows that are over become samples.
    fn add(&mut self, now: Instant, count: u64) {
        while now >= self.end && self.length > Nanos::ZERO {
            let per_s = u128::from(self.count) * 1_000_000_000;
            let per_s = per_s / u128::from(self.length.as_nanos());
            self.rates.add(u64::try_from(per_s).unwrap_or(u64::MAX));
            self.count = 0;
            self.end = self.end + self.length;
        }
        self.count += count;
    }

    /// The samples, in that unit.
    #[allow(clippy::cast_precision_loss)] // a unit is small
    fn samples(&self, unit: u64) -> Samples {
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
}
