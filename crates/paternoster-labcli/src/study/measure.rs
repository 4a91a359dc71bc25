//! What `study plugging` measures on this machine: every way of `paternoster-generations`, for so
//! many submitters and devices, several times.
//!
//! Runs of one cell are as far apart as the whole allows: all cells once, then all once more. What
//! disturbs the machine for a while then disturbs a run of each, and not all runs of one.

use std::fs;
use std::time::Duration;

use paternoster_generations::{Figures, Load, Scheduler, Until, Variant};
use paternoster_scene::statistics::Spread;
use serde::Serialize;

use super::forecast::Outlook;
use super::moving::{self, Moving};
use crate::progress::RunCount;

/// What is measured, for `plugging`.
#[derive(Clone, Debug, Default, PartialEq, clap::Args)]
#[command(next_help_heading = "Measuring on this machine (plugging)")]
pub(super) struct Options {
    /// Threads that submit [default: 1, 2, 4, … to twice the processors]
    #[arg(long, value_name = "COUNT,…", value_delimiter = ',')]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1024))]
    submitters: Vec<u32>,
    /// Null devices [default: 1,8,64]
    #[arg(long, value_name = "COUNT,…", value_delimiter = ',')]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1024))]
    devices: Vec<u32>,
    /// Threads that own devices, for ways that have them [default: 1]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=64))]
    owners: Option<u32>,
    /// I/Os that a submitter hands over at once, to one device [default: 16]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=4096))]
    batch: Option<u32>,
    /// I/Os that a submitter has outstanding; a batch at least [default: 64, or a batch]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=65536))]
    iodepth: Option<u32>,
    /// The scheduler of each device [default: none]
    #[arg(long, value_name = "NAME", value_parser = ["none", "mq-deadline"])]
    scheduler: Option<String>,
    /// How long a waiting submitter or owner looks again before it sleeps [default: 20]
    #[arg(long, value_name = "US", value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    poll_us: Option<u32>,
    /// What a thread does that waits for a lock: keep its processor, as in a kernel, or sleep
    /// [default: spin]
    #[arg(long, value_name = "HOW", value_parser = ["spin", "sleep"])]
    locks: Option<String>,
    /// How long a run takes [default: 100]
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u32).range(1..=60_000))]
    runtime_ms: Option<u32>,
    /// I/Os of each submitter in a run, instead of a time
    #[arg(long, value_name = "COUNT", conflicts_with = "runtime_ms")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    ios: Option<u64>,
    /// Runs of each; printed are the median, the least and the greatest [default: 3]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=99))]
    runs: Option<u32>,
}

/// How the runs of a measurement are made.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Setting {
    /// Processors that this may run on.
    pub(super) processors: usize,
    /// How many threads wanted one on average in the minute before; nothing where the system does
    /// not say.
    pub(super) load_average: Option<f64>,
    pub(super) scheduler: &'static str,
    pub(super) batch: usize,
    pub(super) iodepth: usize,
    pub(super) owners: usize,
    pub(super) poll_us: u128,
    /// What whoever waits for a lock does.
    pub(super) locks: &'static str,
    runtime_ms: Option<u128>,
    ios: Option<u64>,
    pub(super) runs: usize,
}

/// A way with so many submitters and devices.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Measured {
    pub(super) way: &'static str,
    #[serde(skip)]
    pub(super) variant: Variant,
    pub(super) submitters: usize,
    pub(super) devices: usize,
    /// I/Os a second.
    pub(super) iops: Spread,
    /// CPU time of the process for an I/O.
    pub(super) cpu_us_per_io: Spread,
    /// What of it is more than with a direct call: the median less that one's.
    pub(super) path_us_per_io: f64,
    /// Processors in use on average.
    pub(super) processors_used: f64,
    /// Time in which submitters waited for locks, in percent of theirs.
    pub(super) lock_wait_percent: f64,
    pub(super) locks_per_io: f64,
    /// Locks for which somebody had to wait.
    pub(super) contended_per_io: f64,
    /// Futex calls that woke an owner or a submitter.
    pub(super) wakeups_per_io: f64,
    /// All futex calls but for those of locks, of which a contended one has two at most.
    pub(super) futex_per_io: f64,
    /// Requests that reached a device at once.
    pub(super) batch_mean: f64,
    pub(super) batch_longest: u64,
    /// Queues that a timer unplugged, in all runs.
    pub(super) timeouts: u64,
}

/// All that was measured.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Measurement {
    pub(super) setting: Setting,
    pub(super) ways: Vec<Measured>,
    pub(super) factors: Vec<Factor>,
    /// What becomes of submitters that move to another processor.
    pub(super) moving: Vec<Moving>,
    /// What is predicted, by a model: all else is measured.
    pub(super) outlook: Outlook,
}

/// By how much the path of another way costs more CPU time than that over rings.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Factor {
    pub(super) way: &'static str,
    pub(super) submitters: usize,
    pub(super) devices: usize,
    /// None where the path over rings cost no more than a direct call.
    pub(super) times: Option<f64>,
}

impl Options {
    /// Those that are given, as `--runs 1`.
    pub(super) fn given(&self) -> Vec<String> {
        fn list(name: &str, values: &[u32]) -> Option<String> {
            let values: Vec<_> = values.iter().map(u32::to_string).collect();
            (!values.is_empty()).then(|| format!("--{name} {}", values.join(",")))
        }
        fn one(name: &str, value: Option<impl ToString>) -> Option<String> {
            value.map(|value| format!("--{name} {}", value.to_string()))
        }
        let Self { submitters, devices, owners, batch, iodepth, .. } = self;
        let Self { scheduler, poll_us, locks, runtime_ms, ios, runs, .. } = self;
        let all = [
            list("submitters", submitters),
            list("devices", devices),
            one("owners", *owners),
            one("batch", *batch),
            one("iodepth", *iodepth),
            one("scheduler", scheduler.as_ref()),
            one("poll-us", *poll_us),
            one("locks", locks.as_ref()),
            one("runtime-ms", *runtime_ms),
            one("ios", *ios),
            one("runs", *runs),
        ];
        all.into_iter().flatten().collect()
    }

    fn load(&self) -> Load {
        let batch = self.batch.map_or(16, count);
        let runtime = Duration::from_millis(self.runtime_ms.unwrap_or(100).into());
        let named = |scheduler: &Scheduler| Some(scheduler.name()) == self.scheduler.as_deref();
        Load {
            owners: self.owners.map_or(1, count),
            batch,
            outstanding: self.iodepth.map_or(batch.max(64), count),
            scheduler: Scheduler::ALL.into_iter().find(named).unwrap_or(Scheduler::None),
            poll: Duration::from_micros(self.poll_us.unwrap_or(20).into()),
            until: self.ios.map_or(Until::Runtime(runtime), Until::Ios),
            pins: true,
            spins: self.locks.as_deref() != Some("sleep"),
            ..Load::default()
        }
    }

    /// What is wrong with them together.
    pub(super) fn problem(&self) -> Option<String> {
        let Load { batch, outstanding, .. } = self.load();
        (batch > outstanding).then(|| {
            format!(
                "an iodepth of {outstanding} with batches of {batch}: a batch at least is allowed"
            )
        })
    }

    /// The loads, by submitters and devices.
    fn loads(&self) -> Vec<Load> {
        let load = self.load();
        let submitters = match self.submitters.as_slice() {
            [] => up_to_twice(processors()),
            given => given.iter().copied().map(count).collect(),
        };
        let of = |devices| submitters.iter().map(move |&submitters| (submitters, devices));
        let cells = self.devices().into_iter().flat_map(of);
        cells.map(|(submitters, devices)| Load { submitters, devices, ..load }).collect()
    }

    fn devices(&self) -> Vec<usize> {
        match self.devices.as_slice() {
            [] => vec![1, 8, 64],
            given => given.iter().copied().map(count).collect(),
        }
    }

    fn setting(&self) -> Setting {
        let Load { owners, batch, outstanding, scheduler, poll, until, spins, .. } = self.load();
        let (ios, runtime_ms) = match until {
            Until::Ios(ios) => (Some(ios), None),
            Until::Runtime(runtime) => (None, Some(runtime.as_millis())),
        };
        Setting {
            processors: processors(),
            load_average: load_average(),
            scheduler: scheduler.name(),
            batch,
            iodepth: outstanding,
            owners,
            poll_us: poll.as_micros(),
            locks: if spins { "spin" } else { "sleep" },
            runtime_ms,
            ios,
            runs: self.runs.map_or(3, count),
        }
    }

    /// Measures, and tells how far it has come.
    pub(super) fn measure(&self) -> anyhow::Result<Measurement> {
        let (setting, load) = (self.setting(), self.load());
        let loads = self.loads();
        let of_all = |load: &Load| Variant::ALL.map(|variant| (variant, *load));
        let mut cells: Vec<_> = loads.iter().flat_map(of_all).collect();
        let standing = cells.len();
        cells.extend(moving::cells(&load));
        let count = RunCount::new(cells.len() * setting.runs)?;
        let mut runs: Vec<Vec<Figures>> = vec![Vec::new(); cells.len()];
        for _ in 0..setting.runs {
            for ((variant, load), runs) in cells.iter().zip(&mut runs) {
                runs.push(variant.run(load));
                count.inc();
            }
        }
        count.clear();
        let mut measured = cells.iter().zip(&runs);
        let ways = measured.by_ref().take(standing);
        let mut ways: Vec<_> =
            ways.map(|((variant, load), runs)| Measured::new(*variant, load, runs)).collect();
        let moving = measured.map(|((variant, load), runs)| Moving::new(*variant, load, runs));
        let moving = moving.collect();
        subtract_direct(&mut ways);
        let factors = factors(&ways);
        let outlook = Outlook::new(&load, setting.runs, &self.devices(), &ways);
        Ok(Measurement { setting, ways, factors, moving, outlook })
    }
}

impl Measured {
    fn new(variant: Variant, load: &Load, runs: &[Figures]) -> Self {
        let of = |figure: fn(&Figures) -> f64| spread(runs.iter().map(figure));
        let median = |figure: fn(&Figures) -> f64| of(figure).median;
        let waited = spread(runs.iter().map(|run| {
            let all = run.elapsed.as_secs_f64() * float(load.submitters as u64);
            100.0 * (run.counts.lists.waited + run.counts.devices.waited).as_secs_f64() / all
        }));
        Self {
            way: variant.name(),
            variant,
            submitters: load.submitters,
            devices: load.devices,
            iops: of(|run| float(run.ios) / run.elapsed.as_secs_f64()),
            cpu_us_per_io: of(|run| 1e6 * run.cpu.as_secs_f64() / float(run.ios)),
            path_us_per_io: 0.0,
            processors_used: median(|run| run.cpu.as_secs_f64() / run.elapsed.as_secs_f64()),
            lock_wait_percent: waited.median,
            locks_per_io: median(|run| {
                float(run.counts.lists.taken + run.counts.devices.taken) / float(run.ios)
            }),
            contended_per_io: median(|run| {
                float(run.counts.lists.contended + run.counts.devices.contended) / float(run.ios)
            }),
            wakeups_per_io: median(|run| float(wakeups(run)) / float(run.ios)),
            futex_per_io: median(|run| {
                let waits = run.counts.owner_waits + run.submitter_waits;
                float(wakeups(run) + waits) / float(run.ios)
            }),
            batch_mean: median(|run| float(run.batches.requests) / float(run.batches.count)),
            batch_longest: runs.iter().map(|run| run.batches.longest).max().unwrap_or(0),
            timeouts: runs.iter().map(|run| run.timeouts).sum(),
        }
    }

    fn is_beside(&self, other: &Self) -> bool {
        (self.submitters, self.devices) == (other.submitters, other.devices)
    }
}

fn wakeups(run: &Figures) -> u64 {
    run.counts.owner_wakes + run.submitter_wakes
}

fn subtract_direct(ways: &mut [Measured]) {
    let direct: Vec<_> =
        ways.iter().filter(|way| way.variant == Variant::Direct).cloned().collect();
    for way in ways {
        let floor = direct.iter().find(|floor| floor.is_beside(way)).expect("all ways are run");
        way.path_us_per_io = way.cpu_us_per_io.median - floor.cpu_us_per_io.median;
    }
}

/// Each way with locks by that over rings.
fn factors(ways: &[Measured]) -> Vec<Factor> {
    let rings = |way: &Measured| {
        let own = ways.iter().find(|it| it.variant == Variant::Rings && it.is_beside(way));
        own.expect("all ways are run").path_us_per_io
    };
    let plugged = ways.iter().filter(|way| way.variant.has_locks());
    plugged
        .map(|way| Factor {
            way: way.way,
            submitters: way.submitters,
            devices: way.devices,
            times: Some(rings(way)).filter(|&own| own > 0.0).map(|own| way.path_us_per_io / own),
        })
        .collect()
}

/// Where the figures of runs lie, of which there is at least one.
pub(super) fn spread(figures: impl Iterator<Item = f64>) -> Spread {
    Spread::of(figures).expect("there is a run")
}

#[allow(clippy::cast_precision_loss)] // counts are told with 53 bits
pub(super) fn float(count: u64) -> f64 {
    count as f64
}

fn count(number: u32) -> usize {
    usize::try_from(number).expect("it was checked as it was read")
}

pub(super) fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// 1, 2, 4, … up to twice the number, and no less far.
fn up_to_twice(processors: usize) -> Vec<usize> {
    let powers = std::iter::successors(Some(1_usize), |power| power.checked_mul(2));
    powers.take_while(|&power| power / 2 < 2 * processors && power <= 1024).collect()
}

pub(super) fn load_average() -> Option<f64> {
    fs::read_to_string("/proc/loadavg").ok()?.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn submitters_grow_to_twice_the_processors_at_least() {
        assert_eq!(up_to_twice(1), [1, 2]);
        assert_eq!(up_to_twice(2), [1, 2, 4]);
        assert_eq!(up_to_twice(3), [1, 2, 4, 8]);
    }
}
