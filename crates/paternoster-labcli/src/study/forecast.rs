//! What the model of locks says of machines like this one with more processors, from what an I/O
//! takes here.
//!
//! ```text
//!   one submitter, locks timed       ─▶ work under each lock ─┐
//!   one submitter                    ─▶ work outside ─────────┼─▶ model ─▶ 1 … 128 processors
//!   perdev, two submitters, a device ─▶ time of a hand-over ──┘
//! ```
//!
//! Nobody contends with one submitter, so the first two are measured alone. How long a lock takes
//! from one processor to another is fitted to one figure; what the model says of the other ways
//! with two submitters can then be held against what was measured.

use std::time::Instant;

use paternoster_generations::{Figures, Load, Variant};
use paternoster_lab::study::{Generation, Machine, predict};
use rayon::iter::{IntoParallelRefIterator as _, ParallelIterator as _};
use serde::Serialize;

use super::measure::{Measured, float, spread};

/// What an I/O of a way takes here, in µs.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Cost {
    pub(super) way: &'static str,
    #[serde(skip)]
    generation: Generation,
    /// Outside of all locks.
    pub(super) outside_us: f64,
    /// Under the lock of a list, each time that it is taken.
    pub(super) list_us: f64,
    /// Under its device's lock, or by the device's owner.
    pub(super) device_us: f64,
}

/// What the model says.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Forecast {
    pub(super) way: &'static str,
    pub(super) devices: u32,
    pub(super) processors: u32,
    pub(super) iops: f64,
    pub(super) cpu_us_per_io: f64,
    pub(super) spinning_percent: f64,
}

/// What the model says of what was measured.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Check {
    pub(super) way: &'static str,
    pub(super) devices: usize,
    pub(super) measured_iops: f64,
    pub(super) predicted_iops: f64,
    /// Whether the time of a hand-over was fitted to it.
    pub(super) calibrated: bool,
}

/// All of it.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Outlook {
    pub(super) costs: Vec<Cost>,
    /// The time until who waits has a lock that was let go; 0 where it could not be fitted, as
    /// two submitters on one device were not measured.
    pub(super) hand_over_us: f64,
    pub(super) forecasts: Vec<Forecast>,
    /// With two submitters.
    pub(super) checks: Vec<Check>,
}

/// The ways that have a model, with their names there.
const WAYS: [(Variant, Generation); 6] = [
    (Variant::Global, Generation::Global),
    (Variant::PerCpu, Generation::PerCpu),
    (Variant::PerDevice, Generation::PerDevice),
    (Variant::PlugLock, Generation::PlugLock),
    (Variant::PlugLockBatch, Generation::PlugLockBatch),
    (Variant::Rings, Generation::Rings),
];

/// The machines of which it says something.
pub(super) const PROCESSORS: [u32; 8] = [1, 2, 4, 8, 16, 32, 64, 128];

/// How often the time of a hand-over is halved as it is searched.
const HALVINGS: u32 = 12;
/// And the longest that is looked for, in µs.
const LONGEST_HAND_OVER_US: f64 = 20.0;

impl Outlook {
    /// Measures what an I/O takes, and runs the model for those devices. `ways` were measured with
    /// that load, for some numbers of submitters and devices.
    pub(super) fn new(load: &Load, runs: usize, devices: &[usize], ways: &[Measured]) -> Self {
        let costs = costs(load, runs);
        let batch = small(load.batch);
        let hand_over_us = fitted_hand_over(&costs, batch, ways).unwrap_or(0.0);
        let of = |cost: &Cost, processors, devices| {
            let machine = cost.machine(processors, devices, batch, hand_over_us);
            predict(cost.generation, &machine)
        };
        let cells: Vec<_> = costs
            .iter()
            .flat_map(|cost| devices.iter().map(move |&devices| (cost, small(devices))))
            .flat_map(|(cost, devices)| PROCESSORS.map(|processors| (cost, devices, processors)))
            .collect();
        let forecast = |&(cost, devices, processors): &(&Cost, u32, u32)| {
            let predicted = of(cost, processors, devices);
            Forecast {
                way: cost.way,
                devices,
                processors,
                iops: predicted.iops,
                cpu_us_per_io: predicted.cpu_us,
                spinning_percent: predicted.spinning_percent,
            }
        };
        let checked = ways.iter().filter(|way| way.submitters == 2);
        let checks = checked.filter_map(|way| {
            let cost = costs.iter().find(|cost| cost.way == way.way)?;
            Some(Check {
                way: way.way,
                devices: way.devices,
                measured_iops: way.iops.median,
                predicted_iops: of(cost, 2, small(way.devices)).iops,
                calibrated: is_fitted_to(way),
            })
        });
        let checks = checks.collect();
        let forecasts = cells.par_iter().map(forecast).collect();
        Self { costs, hand_over_us, forecasts, checks }
    }
}

impl Cost {
    fn machine(&self, processors: u32, devices: u32, batch: u32, hand_over_us: f64) -> Machine {
        Machine {
            processors,
            devices,
            batch,
            outside_us: self.outside_us,
            list_us: self.list_us,
            device_us: self.device_us,
            hand_over_us,
            per_waiter_us: 0.0,
            disks_iops: None,
        }
    }
}

/// Batches that are outstanding where the cost of an I/O is measured.
const SELDOM_WAITS: usize = 64;

/// The least that a part of an I/O is said to take, in µs: below the noise of all of them.
const LEAST_US: f64 = 0.001;

fn costs(load: &Load, runs: usize) -> Vec<Cost> {
    let alone = Load { submitters: 1, devices: 1, ..*load };
    let clock_us = clock_us();
    let mut costs: Vec<Cost> = Vec::new();
    for (variant, generation) in WAYS {
        let figures =
            |load: &Load| -> Vec<Figures> { (0..runs).map(|_| variant.run(load)).collect() };
        let median = |figures: &[Figures], figure: &dyn Fn(&Figures) -> f64| {
            spread(figures.iter().map(figure)).median
        };
        // So much is outstanding that a submitter seldom waits.
        let outstanding = alone.outstanding.max(SELDOM_WAITS * alone.batch);
        let plain = figures(&Load { outstanding, ..alone });
        let timed = figures(&Load { times_hold: true, ..alone });
        let cpu_us = median(&plain, &|it| 1e6 * it.submitter_cpu.as_secs_f64() / float(it.ios));
        let lists_per_io = median(&plain, &|it| float(it.counts.lists.taken) / float(it.ios));
        let list_us = median(&timed, &|it| {
            let lists = it.counts.lists;
            1e6 * lists.held.as_secs_f64() / float(lists.taken.max(1)) - clock_us
        });
        let list_us = if lists_per_io > 0.0 { list_us.max(LEAST_US) } else { 0.0 };
        let held_us = median(&timed, &|it| {
            let devices = it.counts.devices;
            let held = 1e6 * devices.held.as_secs_f64() - float(devices.taken) * clock_us;
            held / float(it.ios)
        });
        // What an owner does is what is under one lock with batches.
        let known = |of: Generation| costs.iter().find(|cost| cost.generation == of);
        let device_us = match generation {
            Generation::Rings => known(Generation::PlugLockBatch).map(|cost| cost.device_us),
            _ => None,
        };
        let device_us = device_us.unwrap_or(held_us).max(LEAST_US);
        // An owner has a thread of its own.
        let inside_us = match generation {
            Generation::Rings => 0.0,
            _ => device_us + list_us * lists_per_io,
        };
        let outside_us = (cpu_us - inside_us).max(LEAST_US);
        let way = variant.name();
        costs.push(Cost { way, generation, outside_us, list_us, device_us });
    }
    share_device_work(costs)
}

/// The lists' locks are taken under a device's lock, so that the time of that has theirs in it.
/// What is done under it besides is what `perdev` does, which has no lists.
fn share_device_work(mut costs: Vec<Cost>) -> Vec<Cost> {
    let alone = costs.iter().find(|cost| cost.generation == Generation::PerDevice);
    let device_us = alone.expect("it is measured").device_us;
    for cost in costs.iter_mut().filter(|cost| cost.list_us > 0.0) {
        let all = cost.outside_us + cost.device_us;
        cost.device_us = device_us.min(all - LEAST_US).max(LEAST_US);
        cost.outside_us = (all - cost.device_us).max(LEAST_US);
    }
    costs
}

/// What a look at the clock takes. A lock that counts for how long it is held has one in that.
fn clock_us() -> f64 {
    const LOOKS: u32 = 20_000;
    let begin = Instant::now();
    for _ in 0..LOOKS {
        std::hint::black_box(Instant::now());
    }
    1e6 * begin.elapsed().as_secs_f64() / f64::from(LOOKS)
}

fn is_fitted_to(way: &Measured) -> bool {
    (way.variant, way.submitters, way.devices) == (Variant::PerDevice, 2, 1)
}

/// The time of a hand-over with which the model gives two submitters of `perdev` on one device what
/// was measured; the rate falls as it grows. None where that was not measured.
fn fitted_hand_over(costs: &[Cost], batch: u32, ways: &[Measured]) -> Option<f64> {
    let measured = ways.iter().find(|way| is_fitted_to(way))?.iops.median;
    let cost = costs.iter().find(|cost| cost.generation == Generation::PerDevice)?;
    let (mut least, mut most) = (0.0, LONGEST_HAND_OVER_US);
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(least, most);
        let machine = cost.machine(2, 1, batch, middle);
        let is_faster = predict(Generation::PerDevice, &machine).iops > measured;
        *(if is_faster { &mut least } else { &mut most }) = middle;
    }
    Some(f64::midpoint(least, most))
}

fn small(number: usize) -> u32 {
    u32::try_from(number).expect("it was checked as it was read")
}
