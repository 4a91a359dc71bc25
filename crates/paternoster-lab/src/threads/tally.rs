//! What is counted of threads: nothing of the time before `ramp_time` is over.

use paternoster::{Instant, Nanos};

use super::run_log_writer::{Done, RunLogWriter};
use super::sinks::Sinks;
use super::windows::Windows;
use crate::fio::{DataDirection, Reports};
use crate::report::Series;
use crate::result::{JobError, JobResult, Took};

/// What is counted of a thread.
#[derive(Debug)]
pub(super) struct Tally {
    result: JobResult,
    /// From when on it is counted; never before the thread starts.
    from: Option<Instant>,
    /// The samples of the report, by direction; logs have windows of their own.
    windows: [Windows; 3],
    /// What completed over time, the ramp included; kept for a report alone.
    series: Option<Series>,
    logs: Option<RunLogWriter>,
}

impl Tally {
    pub(super) fn new(reports: &Reports) -> Self {
        Self {
            result: JobResult::default(),
            from: None,
            windows: DataDirection::ALL.map(|_| Windows::new(reports)),
            series: None,
            logs: None,
        }
    }

    /// Has what completes be counted over time, too.
    pub(super) fn keep_series(&mut self) {
        self.series = Some(Series::default());
    }

    /// Has these logs written.
    pub(super) fn write_logs(&mut self, logs: Option<RunLogWriter>) {
        self.logs = logs;
    }

    /// The thread is counted from then on.
    pub(super) fn begin(&mut self, from: Instant) {
        self.from = Some(from);
        self.windows.iter_mut().for_each(|windows| windows.begin(from));
        if let Some(logs) = &mut self.logs {
            logs.begin(from);
        }
    }

    /// So many I/Os were submitted with one call, which makes `depth` of the thread under way.
    pub(super) fn submitted(&mut self, now: Instant, depth: u32, ios: u32) {
        if self.counts(now) {
            (0..ios).for_each(|_| self.result.submitted(depth));
            self.result.submitted_batch(ios);
        }
    }

    /// So many I/Os were taken back with one call.
    pub(super) fn taken_back(&mut self, now: Instant, ios: u32) {
        if ios > 0 && self.counts(now) {
            self.result.completed_batch(ios);
        }
    }

    /// The thread has polled for so long.
    pub(super) fn polled(&mut self, now: Instant, span: Nanos) {
        if self.counts(now) {
            self.result.user_cpu += span;
        }
    }

    /// The thread waits.
    pub(super) fn waits(&mut self) {
        self.result.context_switches += 1;
    }

    /// An I/O has completed.
    pub(super) fn completed(&mut self, sinks: &mut Sinks, now: Instant, done: Done, took: Took) {
        let Done { direction, bytes, .. } = done;
        if let Some(series) = &mut self.series {
            series.add(now, bytes, took.completion);
        }
        if !self.counts(now) {
            return;
        }
        self.result.completed(direction, bytes, took);
        self.windows[direction as usize].add(now, bytes);
        if let Some(logs) = &mut self.logs {
            logs.completed(sinks, now, done, took);
        }
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

    /// What was counted so far is forgotten: a search has found what the thread is to show. Logs
    /// have all of it, and go on.
    pub(super) fn restart(&mut self, now: Instant) {
        self.result = JobResult::default();
        self.windows.iter_mut().for_each(|windows| windows.restart(now));
        self.from = Some(now);
    }

    /// The depth to which the latency target of the thread has led.
    pub(super) fn searched(&mut self, depth: u32) {
        self.result.latency_depth = Some(depth);
    }

    /// The thread ends with an error; the first is told.
    pub(super) fn fail(&mut self, error: JobError) {
        self.result.error.get_or_insert(error);
    }

    /// The thread has ended.
    pub(super) fn end(&mut self, sinks: &mut Sinks, now: Instant) {
        let runtime = self.from.map_or(Nanos::ZERO, |from| now.saturating_since(from));
        self.result.runtime = runtime;
        if let Some(logs) = &mut self.logs {
            logs.end(sinks, now);
        }
        for (direction, windows) in self.result.directions.iter_mut().zip(&mut self.windows) {
            windows.end_counted(now);
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
