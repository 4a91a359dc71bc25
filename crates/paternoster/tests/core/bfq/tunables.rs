//! Tunables: their ranges, their twins, their defaults, and what a change does.

use crate::bfq::plain_disk;
use crate::rig::*;
use paternoster::SchedulerKind;

const INT_MAX: i64 = i32::MAX as i64;

/// Name, default, least and greatest value. Linux wraps idle times of more than 32 bits of
/// nanoseconds.
const TABLE: [(&str, i64, i64, i64); 13] = [
    ("fifo_expire_sync", 125, 1, INT_MAX),
    ("fifo_expire_async", 250, 1, INT_MAX),
    ("back_seek_max", 16_384, 0, INT_MAX),
    ("back_seek_penalty", 2, 1, INT_MAX),
    ("slice_idle", 8, 0, 4294),
    ("slice_idle_us", 8000, 0, 4_294_967),
    ("max_budget", 0, 0, INT_MAX),
    ("timeout_sync", 125, 1, INT_MAX),
    ("strict_guarantees", 0, 0, 1),
    ("low_latency", 1, 0, 1),
    // Not of Linux, which does as with 0.
    ("charge_waiting", 0, 0, 1),
    ("least_charge", 0, 0, 512),
    ("merging", 0, 0, 2),
];

#[test]
fn every_tunable_has_linux_default() {
    let rig = Rig::bfq();
    for (name, default, ..) in TABLE {
        assert_eq!(rig.elevator.tunable(name), Ok(default), "{name}");
    }
    let names: Vec<_> = SchedulerKind::Bfq.tunables().iter().map(|info| info.name).collect();
    assert_eq!(names, TABLE.map(|(name, ..)| name));
}

#[test]
fn values_out_of_range_are_clamped() {
    let mut rig = Rig::bfq();
    for (name, _, min, max) in TABLE {
        let values =
            [(i64::MIN, min), (-1, min), (0, min), (1, 1), (max + 1, max), (i64::MAX, max)];
        for (value, stored) in values {
            let set = rig.elevator.set_tunable(rig.now, name, value);
            assert_eq!(set, Ok(stored), "{name} = {value}");
            assert_eq!(rig.elevator.tunable(name), Ok(stored), "{name} = {value}");
        }
    }
}

/// Reading truncates.
#[test]
fn twin_is_the_same_value_in_microseconds() {
    let mut rig = Rig::bfq();
    for (micros, millis) in [(1, 0), (999, 0), (1999, 1), (2000, 2)] {
        assert_eq!(rig.elevator.set_tunable(rig.now, "slice_idle_us", micros), Ok(micros));
        assert_eq!(rig.elevator.tunable("slice_idle"), Ok(millis));
    }
    assert_eq!(rig.elevator.set_tunable(rig.now, "slice_idle", 3), Ok(3));
    assert_eq!(rig.elevator.tunable("slice_idle_us"), Ok(3000));
}

/// The timer that is armed stays.
#[test]
fn idle_time_counts_from_the_next_time_on() {
    plain_disk(1).run(&[
        Submit("a", read(0..8)),
        Serve(&["a"]),
        Expect(Emitted("idles main: 8 ms")),
        Set("slice_idle_us", 500),
        Expect(Timeout(Some(ms(8)))),
        Submit("b", read(8..48)),
        Serve(&["b"]),
        Expect(Emitted("idles main: 0.5 ms")),
    ]);
}

/// At once: a value, or what the device serves in the time of a service. 9333 × 125000 / 65536.
#[test]
fn greatest_budget_follows_its_tunables() {
    plain_disk(1).run(&[
        Set("max_budget", 5000),
        Expect(Emitted("max budget 5000")),
        Set("timeout_sync", 250),
        Expect(NotEmitted("max budget")),
        // 9333 × 250000 / 65536.
        Set("max_budget", 0),
        Expect(Emitted("max budget 35602")),
        Set("timeout_sync", 125),
        Expect(Emitted("max budget 17801")),
    ]);
}

/// The service that goes on has the time that it began with.
#[test]
fn time_of_a_service_counts_from_the_next_one_on() {
    let mut run = plain_disk(1).task("a", "be/4", ROOT).served(1, ms(10));
    run.issues("a", Stream::reads(8).depth(2)).until(ms(5));
    run.rig.run(&[Set("timeout_sync", 20)]);
    run.until(ms(160));
    let emitted = [130, 150].map(|at| format!("{at} ms: expired a: Timeout"));
    assert_eq!(run.emitted_up_to(1, &["expired"]), emitted);
}

/// Whatever the time of a service may be, 125 ms are charged as the whole maximum, 5000: 1000 for
/// 25 of them.
#[test]
fn time_is_charged_by_the_default_of_a_service() {
    let mut run = plain_disk(1).set("timeout_sync", 250).set("max_budget", 5000);
    run = run.task("a", "be/4", ROOT).task("rt", "rt/4", ROOT);
    run.run(&[
        Submit("a", read(0..8)),
        Expect(dispatched("a")),
        Advance(ms(25)),
        Submit("rt", read(900..908).by("rt")),
        Expect(Emitted("expired main: Preempted, charged 1000 of 10922, slow")),
    ]);
}

#[test]
fn strict_guarantees_need_idle_time() {
    for (before, after) in [(0, 8), (3, 8), (8, 8), (10, 10)] {
        let mut rig = plain_disk(1).set("slice_idle", before).set("strict_guarantees", 1);
        assert_eq!(rig.elevator.tunable("slice_idle"), Ok(after));
        // Only as they are turned on.
        rig.run(&[Set("slice_idle", before), Set("strict_guarantees", 1)]);
        assert_eq!(rig.elevator.tunable("slice_idle"), Ok(before));
    }
}

/// Turned on, what is in the device completes first.
#[test]
fn strict_guarantees_may_be_turned_on_with_requests_in_flight() {
    plain_disk(4).run(&[
        Submit("a", read(0..8)),
        Submit("b", read(8..16)),
        Submit("c", read(16..24)),
        Expect(dispatched("a")),
        Expect(dispatched("b")),
        Set("strict_guarantees", 1),
        Expect(Nothing),
        Complete("a"),
        Expect(Nothing),
        Complete("b"),
        Expect(dispatched("c")),
        Set("strict_guarantees", 0),
        Submit("d", read(24..32)),
        Expect(dispatched("d")),
    ]);
}

#[test]
fn low_latency_counts_for_queues_that_become_busy_from_then_on() {
    plain_disk(0).task("a", "be/4", ROOT).task("b", "be/4", ROOT).run(&[
        Submit("a", read(0..8).by("a")),
        Set("low_latency", 1),
        Expect(NotEmitted("raised")),
        Submit("b", read(100_000..100_008).by("b")),
        Expect(Emitted("raised b: 30")),
    ]);
}
