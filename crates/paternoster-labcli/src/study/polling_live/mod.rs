//! `study hybrid-polling --live`: ways to wait for a device, measured on this machine.
//!
//! ```text
//!   rounds.rs   rounds of all policies by turns      costs.rs    sleeping, and the bounds
//!   wait.rs     the one way to wait                  figures.rs  medians and ratios
//!   entry.rs    one I/O, and the device's bell       text.rs     tables
//!   device.rs   the thread that plays the device     ways.rs     the policies, by name
//! ```
//!
//! The policies are the core's (`paternoster::poll`), which a server's disks wait by, too. Here
//! they wait for a thread that plays a device, whose moments are known.

mod clock;
mod costs;
mod device;
mod entry;
mod figures;
mod rounds;
#[cfg(test)]
mod tests;
mod text;
mod wait;
mod ways;

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use paternoster::Nanos;
use paternoster::poll::{Choice, Estimator, StallStatistics};
use paternoster_disk::CpuLatency;
use serde::Serialize;

use super::measure::{load_average, processors};
use crate::progress::RunCount;
use clock::Clock;
use costs::{Bounds, SleepCost, sleep_costs, us};
use device::{Blocks, Device};
use figures::{MeasuredWay, measured};
use rounds::{Bench, Processors, Run, waiting};
use ways::{AUTO, CLASSIC, Way, ways};

pub(super) use text::page_tables;

/// The limits of how long a processor may take to wake up under which sleeps are measured.
const LATENCY_LIMITS_US: [u32; 3] = [0, 20, 100];

/// What is measured, for `hybrid-polling --live`.
#[derive(Clone, Debug, Default, PartialEq, clap::Args)]
#[command(next_help_heading = "Measuring on this machine (hybrid-polling)")]
pub(super) struct LiveOptions {
    /// Measure ways to wait instead of simulating them: over a thread that plays a device, on two
    /// processors
    #[arg(long, conflicts_with_all = ["cells_only", "plan"])]
    live: bool,
    /// Mean completion times of the modelled device [default: 50,100,200,500]
    #[arg(long, value_name = "US,…", value_delimiter = ',', requires = "live")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=100_000))]
    times: Vec<u32>,
    /// Also measure a file: random reads of 4 KiB, past the page cache if possible
    #[arg(long, value_name = "FILE", requires = "live")]
    file: Option<PathBuf>,
    /// Rounds, each with one run of every policy; printed are the median, the least and the
    /// greatest [default: 5]
    #[arg(long, value_name = "COUNT", requires = "live")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=99))]
    rounds: Option<u32>,
    /// How long a policy runs in a round [default: 250]
    #[arg(long, value_name = "MS", requires = "live")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=60_000))]
    round_ms: Option<u32>,
}

/// How it is measured.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Setting {
    processors: usize,
    /// How many threads wanted one on average in the minute before; nothing where the system does
    /// not say.
    load_average: Option<f64>,
    rounds: u32,
    round_ms: u32,
    /// What `use_min adjust` subtracts: the median of how much later sleeps end.
    adjust_us: f64,
}

/// A device, and the ways to wait for it.
#[derive(Clone, Debug, Serialize)]
pub(super) struct MeasuredDevice {
    device: String,
    /// What I/Os took, by the device's stamps, as classic polling waited for them.
    time_us: f64,
    time_p99_us: f64,
    bounds: Bounds,
    /// Whether sleeping can pay.
    sleeping_pays: bool,
    /// What `auto` had chosen in the end.
    auto: String,
    ways: Vec<MeasuredWay>,
}

/// All that was measured.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Measurement {
    setting: Setting,
    sleeps: Vec<SleepCost>,
    /// The same while processors have to wake up sooner.
    limited: Vec<LimitedSleeps>,
    devices: Vec<MeasuredDevice>,
}

/// What sleeps cost while the kernel is asked for a limit of how long a processor takes to wake up.
#[derive(Clone, Debug, Serialize)]
pub(super) struct LimitedSleeps {
    /// The limit, as `/dev/cpu_dma_latency` takes it.
    cpu_dma_latency_us: u32,
    sleeps: Vec<SleepCost>,
    /// Why that was not run, where it was not.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_run: Option<String>,
}

impl LiveOptions {
    /// Whether it is asked for.
    pub(super) fn is_given(&self) -> bool {
        self.live
    }

    fn times(&self) -> &[u32] {
        if self.times.is_empty() { &[50, 100, 200, 500] } else { &self.times }
    }

    /// The devices, by name.
    fn devices(&self) -> Result<Vec<(String, Device)>> {
        let modelled =
            |&time: &u32| (format!("{time} µs"), Device::Modelled(Nanos::from_micros(time.into())));
        let mut devices: Vec<_> = self.times().iter().map(modelled).collect();
        if let Some(path) = &self.file {
            let blocks = Blocks::open(path);
            let blocks = blocks.with_context(|| format!("cannot read from {}", path.display()))?;
            let cache = if blocks.is_direct { "past the page cache" } else { "page cache" };
            let name = format!("{} ({cache})", path.display());
            devices.push((name, Device::File(Arc::new(blocks))));
        }
        Ok(devices)
    }

    /// Measures, and shows on a terminal how far it has come.
    pub(super) fn measure(&self) -> Result<Measurement> {
        let (rounds, round_ms) = (self.rounds.unwrap_or(5), self.round_ms.unwrap_or(250));
        // Before this is a thread that stays on one of them.
        let (all_processors, load_average) = (processors(), load_average());
        let devices = self.devices()?;
        let processors = Processors::choose()?;
        let bench = Bench { processors, clock: Clock::start() };
        waiting(processors, || {
            let (sleeps, limited) = measure_sleeps(bench, rounds)?;
            let adjust_us = sleeps.last().map_or(0.0, |cost| cost.late_p50_us);
            let setting =
                Setting { processors: all_processors, load_average, rounds, round_ms, adjust_us };
            let ways = ways(nanos(adjust_us));
            let steps = devices.len() * ways.len() * (rounds as usize + 1);
            let count = RunCount::new(steps)?;
            let measure = |(name, device): &(String, Device)| {
                measure_device(bench, name, device, &ways, &setting, &sleeps, &count)
            };
            let devices = devices.iter().map(measure).collect::<Result<_>>()?;
            count.clear();
            Ok(Measurement { setting, sleeps, limited, devices })
        })
    }
}

/// What sleeps cost as the machine is, and under each limit, by turns.
fn measure_sleeps(bench: Bench, rounds: u32) -> Result<(Vec<SleepCost>, Vec<LimitedSleeps>)> {
    let mut free = Vec::new();
    let mut limited = LATENCY_LIMITS_US.map(|limit| (limit, Ok(Vec::new())));
    for _ in 0..rounds {
        free.extend(bench.sleeps()?);
        for (limit, slept) in &mut limited {
            let Ok(sleeps) = slept else { continue };
            match CpuLatency::hold(*limit) {
                Ok(_held) => sleeps.extend(bench.sleeps()?),
                Err(error) => *slept = Err(format!("{}: {error}", CpuLatency::PATH)),
            }
        }
    }
    let limited = limited.into_iter().map(|(cpu_dma_latency_us, slept)| {
        let (sleeps, not_run) = match slept {
            Ok(sleeps) => (sleep_costs(&sleeps), None),
            Err(why) => (Vec::new(), Some(why)),
        };
        LimitedSleeps { cpu_dma_latency_us, sleeps, not_run }
    });
    Ok((sleep_costs(&free), limited.collect()))
}

fn measure_device(
    bench: Bench,
    name: &str,
    device: &Device,
    ways: &[Way],
    setting: &Setting,
    sleeps: &[SleepCost],
    count: &RunCount,
) -> Result<MeasuredDevice> {
    let length = Nanos::from_millis(setting.round_ms.into());
    let estimator = |way: &Way| Estimator::new(way.policy, way.completions);
    let mut estimators: Vec<_> = ways.iter().map(estimator).collect();
    let mut runs: Vec<Vec<Run>> = vec![Vec::new(); ways.len()];
    for round in 0..=setting.rounds {
        let each = ways.iter().zip(&mut estimators).zip(&mut runs).enumerate();
        for (index, ((way, estimator), runs)) in each {
            let seed = device.seed(round, index);
            let run = bench.run(device, way, estimator, length, seed)?;
            // The first one makes it warm.
            if round > 0 {
                runs.push(run);
            }
            count.inc();
        }
    }
    let index = |name| ways.iter().position(|way| way.name == name).expect("it is measured");
    let ways = measured(ways, &runs);
    let classic = &ways[index(CLASSIC)];
    let mut times: Vec<u64> =
        runs[index(CLASSIC)].iter().flat_map(|run| run.times.iter().copied()).collect();
    times.sort_unstable();
    // Who polls all the time uses the CPU from the submission until the I/O is reaped.
    let submit_us = (classic.cpu_us_per_io.median - classic.latency_us.median).max(0.0);
    let bounds = Bounds::new(submit_us, &times, sleeps);
    Ok(MeasuredDevice {
        device: name.to_owned(),
        time_us: us(times.iter().sum()) / super::measure::float(times.len() as u64),
        time_p99_us: us(costs::quantile(&times, 990)),
        bounds,
        sleeping_pays: bounds.is_worth(),
        auto: chosen(&estimators[index(AUTO)]),
        ways,
    })
}

/// What it does now with reads of 4 KiB, and how often something else had the CPU.
fn chosen(estimator: &Estimator) -> String {
    let statistics = estimator.statistics();
    let stalls = |StallStatistics { stalls, time, .. }| {
        format!("{stalls} times in {:.1} s", us(time.as_nanos()) / 1e6)
    };
    let lost = format!(
        "it lost the CPU for 0.2 ms or more {} asleep, {} polling",
        stalls(statistics.stalls_asleep),
        stalls(statistics.stalls_polling)
    );
    let choice = match statistics.classes.first().map(|class| class.choice) {
        Some(Choice::Sleep(sleep)) => format!("sleeps {:.1} µs", us(sleep.as_nanos())),
        Some(Choice::Poll(why)) => format!("polls ({})", why.name()),
        Some(Choice::Block) => "waits for interrupts".to_owned(),
        None => "has had no I/O".to_owned(),
    };
    format!("{choice}; {lost}")
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // it came from such a number
fn nanos(us: f64) -> Nanos {
    Nanos::new((us * 1e3).round() as u64)
}
