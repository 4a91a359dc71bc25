//! The first objection to per-CPU plugging, measured: nothing keeps a task on the processor where
//! it has plugged a queue.
//!
//! ```text
//!   submit: the queue is on processor 0's list ─▶ moves ─▶ hand over: drains processor 1's
//!           it stays plugged until somebody hands over on processor 0, or its timer fires: 3 ms
//! ```

use std::time::Duration;

use paternoster_generations::{Figures, Load, Until, Variant};
use paternoster_lab::report::PageTable;
use serde::Serialize;

use super::measure::spread;

/// The ways that are compared: plugged queues of a machine, a processor, a device, a task.
const WAYS: [Variant; 5] =
    [Variant::Global, Variant::PerCpu, Variant::PerDevice, Variant::PlugLock, Variant::Rings];

const SUBMITTERS: [usize; 3] = [1, 2, 4];
const DEVICES: usize = 64;

/// Of how many I/Os in a hundred a submitter moves; none is for comparison.
const MOVES_PERCENT: [u32; 2] = [0, 10];

/// A way whose submitters move.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Moving {
    way: &'static str,
    submitters: usize,
    moves_percent: u32,
    ios: u64,
    moves: u64,
    /// Queues that their timer unplugged.
    timeouts: u64,
    io_us_p50: f64,
    io_us_p99: f64,
}

/// The loads, each I/O by itself.
pub(super) fn cells(load: &Load) -> Vec<(Variant, Load)> {
    let runtime = match load.until {
        Until::Runtime(runtime) => runtime,
        // Each that is stranded takes 3 ms.
        Until::Ios(_) => Duration::from_millis(100),
    };
    let until = Until::Runtime(runtime);
    let alone = Load { devices: DEVICES, batch: 1, outstanding: 1, until, ..*load };
    let each = WAYS.into_iter().flat_map(|way| SUBMITTERS.map(|submitters| (way, submitters)));
    let with = |(way, submitters)| {
        let load = |percent| Load { submitters, moves_percent: Some(percent), ..alone };
        MOVES_PERCENT.map(|percent| (way, load(percent)))
    };
    each.flat_map(with).collect()
}

impl Moving {
    /// What the runs of a load were.
    pub(super) fn new(way: Variant, load: &Load, runs: &[Figures]) -> Self {
        let sum = |figure: fn(&Figures) -> u64| runs.iter().map(figure).sum();
        let us = |figure: fn(&Figures) -> Duration| {
            spread(runs.iter().map(|run| 1e6 * figure(run).as_secs_f64())).median
        };
        Self {
            way: way.name(),
            submitters: load.submitters,
            moves_percent: load.moves_percent.unwrap_or_default(),
            ios: sum(|run| run.ios),
            moves: sum(|run| run.moves),
            timeouts: sum(|run| run.timeouts),
            io_us_p50: us(|run| run.batch_p50),
            io_us_p99: us(|run| run.batch_p99),
        }
    }
}

/// What was measured, as a table.
pub(super) fn page_table(measured: &[Moving]) -> PageTable {
    let row = |it: &Moving| {
        vec![
            it.way.to_owned(),
            it.submitters.to_string(),
            it.ios.to_string(),
            it.moves.to_string(),
            it.timeouts.to_string(),
            format!("{:.1}", it.io_us_p50),
            format!("{:.1}", it.io_us_p99),
        ]
    };
    let columns = ["way", "submitters", "I/Os", "moved", "by the timer", "p50 µs", "p99 µs"];
    PageTable {
        title: "plugging, measured: submitters that move to another processor".to_owned(),
        notes: vec![format!(
            "Each submitter has one I/O outstanding, on one of {DEVICES} devices. moved: how often \
             it went to another processor between submitting and handing over. by the timer: \
             queues that stayed plugged until it fired; p50 and p99 are of the time of an I/O, \
             medians of the runs."
        )],
        columns: columns.map(str::to_owned).to_vec(),
        rows: measured.iter().map(row).collect(),
    }
}
