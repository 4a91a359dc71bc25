//! Runs: several requests of one I/O context that go together on a fast device.

use std::collections::BTreeMap;

use paternoster::{GroupLimits, Nanos};

use crate::rig::*;
use crate::wfq::groups;
use crate::wfq::limits::{per_s, set};

/// A device of one channel and that service time, which may have two requests; tasks of groups that
/// each keep 16 reads outstanding, for so long that its speed is known, and from then on in runs.
fn served(service: Nanos, groups_: &[(&'static str, u32)]) -> Served {
    let mut run = groups(2, groups_).set("run_us", 50).served(1, service);
    for (at, &(task, _)) in groups_.iter().enumerate() {
        run.issues(task, Stream::reads(8).stride(16).from(at as u64 * 10_000_000).depth(16));
    }
    run.until(ms(10));
    run
}

/// The lengths of runs from `from` on: how often so many requests of one task went together.
fn lengths(run: &Served, from: usize) -> BTreeMap<usize, usize> {
    let dispatched = run.dispatched();
    let tasks: Vec<_> = dispatched[from..].iter().map(|name| name.split('.').next()).collect();
    let mut lengths = BTreeMap::new();
    for run in tasks.chunk_by(|a, b| a == b) {
        *lengths.entry(run.len()).or_default() += 1;
    }
    lengths
}

/// Of 6 µs it does eight in 50 µs.
#[test]
fn as_many_go_together_as_the_device_does_in_run_us() {
    let mut run = served(us(6), &[("A", 100), ("B", 100)]);
    let from = run.dispatched().len();
    run.until(ms(30));
    let lengths = lengths(&run, from);
    let all: usize = lengths.values().sum();
    assert!(lengths[&8] * 10 >= all * 9, "{lengths:?}");
}

/// Of 40 µs there is room for one.
#[test]
fn device_that_is_slow_has_no_runs() {
    let mut run = served(us(40), &[("A", 100), ("B", 100)]);
    let from = run.dispatched().len();
    run.until(ms(50));
    let lengths = lengths(&run, from);
    assert_eq!(lengths.keys().max(), Some(&1), "{lengths:?}");
}

/// A run is at most ten requests, and the tags make up for it.
#[test]
fn weights_hold_in_runs() {
    let mut run = served(us(5), &[("A", 100), ("B", 200), ("C", 400)]);
    let from = run.dispatched().len();
    run.until(ms(60));
    let dispatched = run.dispatched();
    let late = &dispatched[from..];
    for (task, weight) in [("A", 100), ("B", 200), ("C", 400)] {
        let got = late.iter().filter(|name| name.starts_with(task)).count();
        let due = late.len() * weight / 700;
        assert!(got.abs_diff(due) <= 2 * 10, "{got} of {due} of {}", late.len());
    }
}

/// One that comes while a run goes on is served when that ends: after 50 µs, and what the device
/// has.
#[test]
fn who_has_one_outstanding_waits_for_a_run_and_no_longer() {
    let mut run = served(us(5), &[("deep", 100)]);
    let rig = std::mem::replace(&mut run.rig, Rig::wfq());
    run.rig = rig.group("/light", 100).task("light", "be/4", "/light");
    run.issues("light", Stream::reads(8).stride(16).from(500_000_000).at(ms(11)).think(us(37)));
    run.until(ms(30));
    let times = run.dispatch_times("light");
    let longest = times.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).max();
    assert!(longest.expect("it is served") <= us(37 + 50 + 3 * 5), "{longest:?}");
}

/// A request of real time ends the run of best effort.
#[test]
fn more_urgent_class_of_the_group_does_not_wait_for_a_run() {
    let mut run = served(us(5), &[("A", 100)]);
    let rig = std::mem::replace(&mut run.rig, Rig::wfq());
    run.rig = rig.task("urgent", "rt/4", "/A");
    run.issues("urgent", Stream::reads(8).stride(16).from(500_000_000).at(ms(11)).think(us(37)));
    run.until(ms(30));
    let times = run.dispatch_times("urgent");
    let longest = times.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).max();
    assert!(longest.expect("it is served") <= us(37 + 3 * 5), "{longest:?}");
}

/// Reads of the group go on beside what its cap holds. A cap of 1000 a second allows 100 at once.
#[test]
fn cap_of_writes_holds_them_in_runs_too() {
    let mut rig = groups(2, &[("A", 100)]).set("run_us", 50).task("writer", "be/4", "/A");
    set(&mut rig, "/A", GroupLimits { wiops: per_s(1000), ..GroupLimits::NONE });
    let mut run = rig.served(1, us(5));
    run.issues("A", Stream::reads(8).stride(16).depth(16));
    run.issues("writer", Stream::writes(8).stride(16).from(10_000_000).depth(16));
    for millis in [20, 40, 60, 80, 100] {
        run.until(ms(millis));
        let allowed = 100 + millis + 1;
        let written = run.dispatch_times("writer").len() as u64;
        assert!(written <= allowed, "{written} of {allowed} in {millis} ms");
        assert!(millis < 40 || written + 1 >= allowed, "{written} of {allowed} in {millis} ms");
    }
}
