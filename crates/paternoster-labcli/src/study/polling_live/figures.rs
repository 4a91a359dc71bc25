//! What came of the runs of a policy: medians over rounds, beside interrupts and classic polling of
//! the same round.

use paternoster_scene::statistics::Spread;
use serde::Serialize;

use super::costs::{quantile, us};
use super::rounds::Run;
use super::ways::{CLASSIC, INTERRUPT, Way};
use crate::study::measure::{float, spread};

/// A policy on a device.
#[derive(Clone, Debug, Serialize)]
pub(super) struct MeasuredWay {
    pub(super) way: &'static str,
    /// In all rounds.
    pub(super) ios: u64,
    /// CPU time of the thread that waits, for an I/O.
    pub(super) cpu_us_per_io: Spread,
    /// That by classic polling's, and by that with interrupts.
    pub(super) cpu_by_classic: Spread,
    pub(super) cpu_by_interrupt: Spread,
    /// From the submission until it was reaped, on average.
    pub(super) latency_us: Spread,
    pub(super) latency_p99_us: Spread,
    pub(super) latency_by_classic: Spread,
    pub(super) latency_by_interrupt: Spread,
    /// Of that since the device was done.
    pub(super) added_us: Spread,
    pub(super) added_p50_us: Spread,
    pub(super) added_p99_us: Spread,
    /// Of the I/Os of all rounds.
    pub(super) added_p999_us: f64,
    /// CPU time by time.
    pub(super) load_percent: Spread,
    pub(super) sleeps_per_io: f64,
    /// I/Os that were done when the sleep for them ended.
    pub(super) missed_percent: f64,
    pub(super) interrupts_per_io: f64,
}

/// Figures of a run.
#[derive(Clone, Copy, Debug)]
struct Figures {
    cpu_us: f64,
    latency_us: f64,
    latency_p99_us: f64,
    added_us: f64,
    added_p50_us: f64,
    added_p99_us: f64,
    load_percent: f64,
}

impl Figures {
    fn of(run: &Run) -> Self {
        let ios = float(run.ios());
        let mut late = run.late.clone();
        late.sort_unstable();
        let mut latency: Vec<_> = run.times.iter().zip(&run.late).map(|(a, b)| a + b).collect();
        latency.sort_unstable();
        Self {
            cpu_us: us(run.cpu.as_nanos()) / ios,
            latency_us: us(latency.iter().sum()) / ios,
            latency_p99_us: us(quantile(&latency, 990)),
            added_us: us(late.iter().sum()) / ios,
            added_p50_us: us(quantile(&late, 500)),
            added_p99_us: us(quantile(&late, 990)),
            load_percent: 100.0 * float(run.cpu.as_nanos()) / float(run.elapsed.as_nanos()),
        }
    }
}

impl Run {
    pub(super) fn ios(&self) -> u64 {
        self.times.len() as u64
    }
}

/// Of the runs of each way, by round.
pub(super) fn measured(ways: &[Way], runs: &[Vec<Run>]) -> Vec<MeasuredWay> {
    let figures: Vec<Vec<Figures>> =
        runs.iter().map(|runs| runs.iter().map(Figures::of).collect()).collect();
    let named = |name| {
        let index = ways.iter().position(|way| way.name == name);
        &figures[index.expect("it is always measured")]
    };
    let (classic, interrupt) = (named(CLASSIC), named(INTERRUPT));
    let one = |((way, runs), own): ((&Way, &Vec<Run>), &Vec<Figures>)| {
        let of = |figure: fn(&Figures) -> f64| spread(own.iter().map(figure));
        let by = |others: &[Figures], figure: fn(&Figures) -> f64| {
            spread(own.iter().zip(others).map(|(own, other)| figure(own) / figure(other)))
        };
        let sum = |count: fn(&Run) -> u64| runs.iter().map(count).sum::<u64>();
        let ios = sum(Run::ios);
        let mut late: Vec<_> = runs.iter().flat_map(|run| run.late.iter().copied()).collect();
        late.sort_unstable();
        MeasuredWay {
            way: way.name,
            ios,
            cpu_us_per_io: of(|it| it.cpu_us),
            cpu_by_classic: by(classic, |it| it.cpu_us),
            cpu_by_interrupt: by(interrupt, |it| it.cpu_us),
            latency_us: of(|it| it.latency_us),
            latency_p99_us: of(|it| it.latency_p99_us),
            latency_by_classic: by(classic, |it| it.latency_us),
            latency_by_interrupt: by(interrupt, |it| it.latency_us),
            added_us: of(|it| it.added_us),
            added_p50_us: of(|it| it.added_p50_us),
            added_p99_us: of(|it| it.added_p99_us),
            added_p999_us: us(quantile(&late, 999)),
            load_percent: of(|it| it.load_percent),
            sleeps_per_io: float(sum(|run| run.sleeps)) / float(ios),
            missed_percent: 100.0 * float(sum(|run| run.misses)) / float(ios),
            interrupts_per_io: float(sum(|run| run.interrupts)) / float(ios),
        }
    };
    ways.iter().zip(runs).zip(&figures).map(one).collect()
}
