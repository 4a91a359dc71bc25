//! The logs of a thread: a line for each I/O that completes, or for each `log_avg_msec`.
//!
//! ```text
//!                 each I/O                    averaged
//!   iops          1                           those of a window of time, a second
//!   bw            bytes ÷ completion latency  those of a window of time, a second
//!   slat clat lat the latency                 the mean of those up to the first I/O
//!                                             behind a multiple of log_avg_msec
//! ```
//!
//! Times are since the end of the ramp. An averaged line is of a direction; there is none where
//! nothing completed.

use paternoster::{Instant, Nanos};

use super::sinks::{SinkId, Sinks};
use super::windows::{EndedWindows, Windows};
use crate::fio::{DataDirection, Engine, IoPriority, Job, LogKind, RunLogs};
use crate::result::Took;

/// The logs of a thread.
#[derive(Debug)]
pub(super) struct RunLogWriter {
    rules: RunLogs,
    /// Those that have a place, by kind.
    sinks: [Option<SinkId>; LogKind::ALL.len()],
    /// Its submissions are told of: those of an engine whose calls do not wait.
    submits: bool,
    bandwidth_is_averaged: bool,
    iops_is_averaged: bool,
    from: Instant,
    /// By direction. They are not those of the report, which a search for a depth begins anew.
    windows: [Windows; 3],
    /// Of the three latencies, by direction.
    averages: [[Average; 3]; 3],
}

/// An I/O that has completed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Done {
    pub(super) direction: DataDirection,
    pub(super) offset: u64,
    pub(super) bytes: u64,
    /// Its own one.
    pub(super) io_prio: Option<IoPriority>,
}

/// The latencies, in ns, since the last line.
#[derive(Clone, Copy, Debug, Default)]
struct Average {
    count: u64,
    sum: u128,
    most: u64,
    /// The multiple of the time of a line that was passed last.
    since: Nanos,
}

/// What stands in a line beside its value.
struct Line {
    at: Nanos,
    direction: DataDirection,
    bytes: u64,
    offset: u64,
    io_prio: IoPriority,
}

const LATENCIES: [LogKind; 3] = [LogKind::Submission, LogKind::Completion, LogKind::Total];

impl RunLogWriter {
    /// The logs of a job that have a place in `sinks`; nothing where none has.
    pub(super) fn new(job: &Job, sinks: &Sinks) -> Option<Self> {
        let rules = &job.reports.logs;
        let mut places = [None; LogKind::ALL.len()];
        for (kind, path) in &rules.files {
            places[*kind as usize] = sinks.find(path);
        }
        if !job.reports.is_told || places.iter().all(Option::is_none) {
            return None;
        }
        let engine = job.submission.engine;
        let is_averaged = |window: Nanos| rules.average.min(window) > Nanos::ZERO;
        Some(Self {
            rules: rules.clone(),
            sinks: places,
            submits: !engine.waits() && (engine != Engine::Null || job.submission.depth > 1),
            bandwidth_is_averaged: is_averaged(job.reports.bandwidth_window),
            iops_is_averaged: is_averaged(job.reports.iops_window),
            from: Instant::START,
            windows: DataDirection::ALL.map(|_| Windows::new(&job.reports)),
            averages: [[Average::default(); 3]; 3],
        })
    }

    /// They have lines from then on.
    pub(super) fn begin(&mut self, from: Instant) {
        self.from = from;
        self.windows.iter_mut().for_each(|windows| windows.begin(from));
    }

    /// An I/O has completed.
    pub(super) fn completed(&mut self, sinks: &mut Sinks, now: Instant, done: Done, took: Took) {
        self.end_windows(sinks, now);
        self.windows[done.direction as usize].add(now, done.bytes);
        let line = Line {
            at: now.saturating_since(self.from),
            direction: done.direction,
            bytes: done.bytes,
            offset: done.offset,
            io_prio: done.io_prio.unwrap_or(self.rules.io_prio),
        };
        self.latencies(sinks, &line, took);
        if self.rules.has_iops && !self.iops_is_averaged {
            self.write(sinks, LogKind::Iops, 1, &line);
        }
        // An I/O that took no time has no bandwidth.
        if self.rules.has_bandwidth
            && !self.bandwidth_is_averaged
            && let Some(bandwidth) = bandwidth(done.bytes, took.completion)
        {
            self.write(sinks, LogKind::Bandwidth, bandwidth, &line);
        }
    }

    fn latencies(&mut self, sinks: &mut Sinks, line: &Line, took: Took) {
        let Took { submission, completion } = took;
        let all = [submission, completion, submission + completion];
        for (index, (kind, latency)) in LATENCIES.into_iter().zip(all).enumerate() {
            if kind == LogKind::Submission && !self.submits {
                continue;
            }
            if self.rules.average == Nanos::ZERO {
                self.write(sinks, kind, latency.as_nanos(), line);
                continue;
            }
            let average = &mut self.averages[index][line.direction as usize];
            average.add(latency.as_nanos());
            if average.is_due(line.at, self.rules.average) {
                self.write_average(sinks, index, line.direction, line.at);
            }
        }
    }

    /// Writes the averages of the windows of all directions that are over and have something in
    /// them.
    fn end_windows(&mut self, sinks: &mut Sinks, now: Instant) {
        for direction in DataDirection::ALL {
            let ended = self.windows[direction as usize].end_counted(now);
            let EndedWindows { bandwidth, iops } = ended;
            if let Some(ended) = bandwidth.filter(|_| self.bandwidth_is_averaged) {
                let line = Line::of_many(ended.at.saturating_since(self.from), direction);
                self.write(sinks, LogKind::Bandwidth, ended.per_s / 1024, &line);
            }
            if let Some(ended) = iops.filter(|_| self.iops_is_averaged) {
                let line = Line::of_many(ended.at.saturating_since(self.from), direction);
                self.write(sinks, LogKind::Iops, ended.per_s, &line);
            }
        }
    }

    /// The thread has ended: what is left of latencies is written.
    pub(super) fn end(&mut self, sinks: &mut Sinks, now: Instant) {
        self.end_windows(sinks, now);
        let at = now.saturating_since(self.from);
        for index in 0..LATENCIES.len() {
            for direction in DataDirection::ALL {
                if self.averages[index][direction as usize].count > 0 {
                    self.write_average(sinks, index, direction, at);
                }
            }
        }
    }

    fn write_average(
        &mut self,
        sinks: &mut Sinks,
        index: usize,
        direction: DataDirection,
        at: Nanos,
    ) {
        let average = &mut self.averages[index][direction as usize];
        let value = if self.rules.most { average.most } else { average.mean() };
        let since = average.since;
        *average = Average { since, ..Average::default() };
        self.write(sinks, LATENCIES[index], value, &Line::of_many(at, direction));
    }

    fn write(&self, sinks: &mut Sinks, kind: LogKind, value: u64, line: &Line) {
        let Some(sink) = self.sinks[kind as usize] else { return };
        let &Line { at, direction, bytes, offset, io_prio } = line;
        let (ms, direction) = (at.as_nanos() / 1_000_000, direction as usize);
        let is_real_time = u8::from(io_prio.is_real_time());
        match (self.rules.offset, self.rules.priority) {
            (false, false) => sinks.write_line(
                sink,
                format_args!("{ms}, {value}, {direction}, {bytes}, {is_real_time}"),
            ),
            (false, true) => sinks
                .write_line(sink, format_args!("{ms}, {value}, {direction}, {bytes}, {io_prio}")),
            (true, false) => sinks.write_line(
                sink,
                format_args!("{ms}, {value}, {direction}, {bytes}, {offset}, {is_real_time}"),
            ),
            (true, true) => sinks.write_line(
                sink,
                format_args!("{ms}, {value}, {direction}, {bytes}, {offset}, {io_prio}"),
            ),
        }
    }
}

impl Line {
    /// A line of many I/Os has neither a size nor a position nor a priority.
    fn of_many(at: Nanos, direction: DataDirection) -> Self {
        Self { at, direction, bytes: 0, offset: 0, io_prio: IoPriority::default() }
    }
}

impl Average {
    fn add(&mut self, nanos: u64) {
        self.count += 1;
        self.sum += u128::from(nanos);
        self.most = self.most.max(nanos);
    }

    /// Whether a line is due at that time; the next one is after the next multiple of `every`.
    fn is_due(&mut self, at: Nanos, every: Nanos) -> bool {
        if at.saturating_sub(self.since) < every {
            return false;
        }
        self.since = Nanos::new(at.as_nanos() - at.as_nanos() % every.as_nanos());
        true
    }

    /// Rounded, a half up.
    fn mean(&self) -> u64 {
        let count = u128::from(self.count.max(1));
        u64::try_from((2 * self.sum + count) / (2 * count)).unwrap_or(u64::MAX)
    }
}

/// In 1000 bytes a second, as fio has it for an I/O; none where it took no time.
fn bandwidth(bytes: u64, took: Nanos) -> Option<u64> {
    let rate = (u128::from(bytes) * 1_000_000).checked_div(u128::from(took.as_nanos()))?;
    Some(u64::try_from(rate).unwrap_or(u64::MAX))
}
