//! What is told of a run.

use std::collections::BTreeMap;

use paternoster_scene::statistics::rank;

use super::simulate::{Io, Machine};

/// The figures of a run, by name.
pub(super) const LATENCY: &str = "latency us";
pub(super) const P99: &str = "p99 us";
pub(super) const CPU: &str = "CPU us";
pub(super) const LOAD: &str = "load %";
pub(super) const MISSES: &str = "misses %";
pub(super) const SLEPT: &str = "slept %";

/// Figures of I/Os.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Figures {
    /// The mean from before the submission to the completion, in µs.
    pub(super) latency: f64,
    /// Its 99th percentile, in µs.
    pub(super) p99: f64,
    /// CPU time of an I/O, in µs.
    pub(super) cpu: f64,
    /// CPU time in percent of the time.
    pub(super) load: f64,
    /// I/Os that were done before the sleep for them ended, in percent of those slept for.
    pub(super) misses: f64,
    /// I/Os slept for, in percent of all.
    pub(super) slept: f64,
}

impl Figures {
    /// Of at least one I/O.
    #[allow(clippy::cast_precision_loss)] // sums are below 2⁵³
    pub(super) fn of(ios: &[Io]) -> Self {
        let sum = |of: fn(&Io) -> u64| ios.iter().map(of).sum::<u64>() as f64;
        let count = ios.len() as f64;
        let mut latencies: Vec<_> = ios.iter().map(|io| io.latency).collect();
        let p99 = rank(latencies.len(), 990);
        let (_, p99, _) = latencies.select_nth_unstable(p99);
        let p99 = *p99 as f64 / 1e3;
        let slept = sum(|io| io.is_slept_for.into());
        Self {
            latency: sum(|io| io.latency) / count / 1e3,
            p99,
            cpu: sum(|io| io.cpu) / count / 1e3,
            load: 100.0 * sum(|io| io.cpu) / sum(|io| io.elapsed),
            misses: 100.0 * sum(|io| io.is_missed.into()) / slept.max(1.0),
            slept: 100.0 * slept / count,
        }
    }

    /// What nobody can go below who sleeps once for an I/O or not at all, knowing how long it will
    /// take: submit + min(T, sleep) of CPU time, without added latency. For one outstanding.
    #[allow(clippy::cast_precision_loss)] // sums are below 2⁵³
    pub(super) fn bound(classic: &[Io], machine: &Machine) -> Self {
        let all = Self::of(classic);
        let cpu = classic.iter().map(|io| machine.submit + io.time.min(machine.sleep));
        let cpu = cpu.sum::<u64>() as f64 / classic.len() as f64 / 1e3;
        Self { cpu, load: all.load * cpu / all.cpu, ..all }
    }

    pub(super) fn named(self) -> BTreeMap<String, f64> {
        let Self { latency, p99, cpu, load, misses, slept } = self;
        let all = [
            (LATENCY, latency),
            (P99, p99),
            (CPU, cpu),
            (LOAD, load),
            (MISSES, misses),
            (SLEPT, slept),
        ];
        all.into_iter().map(|(name, figure)| (name.to_owned(), figure)).collect()
    }
}
