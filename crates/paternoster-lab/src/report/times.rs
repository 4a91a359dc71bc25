//! Where time went, in the parts that a page shows.

#![allow(clippy::cast_precision_loss, reason = "parts are told with 53 bits")]

use paternoster::{Instant, Nanos};
use serde::Serialize;

use super::observe::since_start;
use crate::sim::{DeviceTime, Setup};
use crate::threads::Outcome;

/// The parts of a span of the device's time, in ns.
#[derive(Clone, Debug, Serialize)]
#[allow(clippy::struct_field_names, reason = "each names its unit")]
pub(super) struct DeviceTimes {
    all_ns: f64,
    busy_ns: f64,
    seek_ns: f64,
    rotation_ns: f64,
    transfer_ns: f64,
    overhead_ns: f64,
    otherwise_ns: f64,
    withheld_ns: f64,
    without_work_ns: f64,
    /// Commands spent more than the device was busy, as it serves several at once. What they
    /// spent is then scaled down to the time in which it was busy.
    in_proportion: bool,
}

/// The same over time: of each window its end, and the parts of its time.
#[derive(Clone, Debug, Default, Serialize)]
#[allow(clippy::struct_field_names, reason = "they have the names of the parts")]
pub(super) struct DeviceTimesOverTime {
    ends_ns: Vec<u64>,
    seek_ns: Vec<f64>,
    rotation_ns: Vec<f64>,
    transfer_ns: Vec<f64>,
    overhead_ns: Vec<f64>,
    otherwise_ns: Vec<f64>,
    withheld_ns: Vec<f64>,
    without_work_ns: Vec<f64>,
}

/// What the processors did.
#[derive(Clone, Debug, Serialize)]
pub(super) struct CpuTimes {
    cores: u32,
    end_ns: u64,
    busy_ns: u64,
    spinning_ns: u64,
    held_ns: u64,
}

impl DeviceTimes {
    pub(super) fn new(time: &DeviceTime) -> Self {
        let ns = |span: Nanos| span.as_nanos() as f64;
        let DeviceTime { busy, withheld, without_work, spent, .. } = time;
        let spans = [spent.seek, spent.rotation, spent.transfer, spent.overhead].map(ns);
        let sum: f64 = spans.iter().sum();
        let (busy, in_proportion) = (ns(*busy), sum > ns(*busy));
        let scale = if in_proportion { busy / sum } else { 1.0 };
        let [seek_ns, rotation_ns, transfer_ns, overhead_ns] = spans.map(|span| span * scale);
        Self {
            all_ns: busy + ns(*withheld) + ns(*without_work),
            busy_ns: busy,
            seek_ns,
            rotation_ns,
            transfer_ns,
            overhead_ns,
            otherwise_ns: if in_proportion { 0.0 } else { busy - sum },
            withheld_ns: ns(*withheld),
            without_work_ns: ns(*without_work),
            in_proportion,
        }
    }
}

impl DeviceTimesOverTime {
    /// Of sums at the ends of windows.
    pub(super) fn new(ends: &[(Instant, DeviceTime)]) -> Self {
        let mut all = Self::default();
        let mut before = DeviceTime::default();
        for (end, sums) in ends {
            let part = DeviceTimes::new(&between(&before, sums));
            before = *sums;
            if part.all_ns <= 0.0 {
                continue;
            }
            all.ends_ns.push(since_start(*end));
            let of_all = |ns: f64| ((ns / part.all_ns) * 1e4).round() / 1e4;
            all.seek_ns.push(of_all(part.seek_ns));
            all.rotation_ns.push(of_all(part.rotation_ns));
            all.transfer_ns.push(of_all(part.transfer_ns));
            all.overhead_ns.push(of_all(part.overhead_ns));
            all.otherwise_ns.push(of_all(part.otherwise_ns));
            all.withheld_ns.push(of_all(part.withheld_ns));
            all.without_work_ns.push(of_all(part.without_work_ns));
        }
        all
    }
}

/// What was added from one sum to a later one.
fn between(before: &DeviceTime, after: &DeviceTime) -> DeviceTime {
    let (mut spent, old) = (after.spent, before.spent);
    spent.seek = spent.seek.saturating_sub(old.seek);
    spent.rotation = spent.rotation.saturating_sub(old.rotation);
    spent.transfer = spent.transfer.saturating_sub(old.transfer);
    spent.overhead = spent.overhead.saturating_sub(old.overhead);
    DeviceTime {
        busy: after.busy.saturating_sub(before.busy),
        withheld: after.withheld.saturating_sub(before.withheld),
        without_work: after.without_work.saturating_sub(before.without_work),
        queued: after.queued.saturating_sub(before.queued),
        spent,
    }
}

impl CpuTimes {
    /// None where I/O costs the processors nothing.
    pub(super) fn new(setup: &Setup, outcome: &Outcome) -> Option<Self> {
        (!setup.costs.are_none()).then(|| Self {
            cores: setup.cores,
            end_ns: since_start(outcome.end),
            busy_ns: outcome.cpu.busy.as_nanos(),
            spinning_ns: outcome.cpu.spinning.as_nanos(),
            held_ns: outcome.cpu.held.as_nanos(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paternoster_model::Spent;

    fn time(busy: u64, spent: [u64; 4]) -> DeviceTime {
        let [seek, rotation, transfer, overhead] = spent.map(Nanos::new);
        let spent = Spent { seek, rotation, transfer, overhead };
        let (withheld, without_work) = (Nanos::new(30), Nanos::new(10));
        DeviceTime { busy: Nanos::new(busy), withheld, without_work, queued: withheld, spent }
    }

    fn sum(times: &DeviceTimes) -> f64 {
        let DeviceTimes { seek_ns, rotation_ns, transfer_ns, overhead_ns, .. } = times;
        let served = seek_ns + rotation_ns + transfer_ns + overhead_ns + times.otherwise_ns;
        served + times.withheld_ns + times.without_work_ns
    }

    #[test]
    fn parts_add_up_to_all_of_the_time() {
        let disk = DeviceTimes::new(&time(60, [20, 30, 5, 1]));
        assert!(!disk.in_proportion && (disk.otherwise_ns - 4.0).abs() < 1e-9);
        assert!((sum(&disk) - 100.0).abs() < 1e-9 && (disk.all_ns - 100.0).abs() < 1e-9);
        let several = DeviceTimes::new(&time(60, [0, 0, 120, 120]));
        assert!(several.in_proportion && (several.transfer_ns - 30.0).abs() < 1e-9);
        assert!((sum(&several) - 100.0).abs() < 1e-9);
    }

    #[test]
    fn window_has_the_parts_of_its_own_time() {
        let [first, mut second] = [time(60, [20, 30, 5, 1]), time(60, [20, 30, 5, 1])];
        second.busy += Nanos::new(50);
        second.spent.seek += Nanos::new(25);
        second.without_work += Nanos::new(50);
        let ends =
            [(Instant::START + Nanos::new(100), first), (Instant::START + Nanos::new(200), second)];
        let windows = DeviceTimesOverTime::new(&ends);
        assert_eq!(windows.ends_ns, [100, 200]);
        assert_eq!((windows.seek_ns, windows.otherwise_ns), (vec![0.2, 0.25], vec![0.04, 0.25]));
        assert_eq!(
            (windows.withheld_ns, windows.without_work_ns),
            (vec![0.3, 0.0], vec![0.1, 0.5])
        );
    }
}
