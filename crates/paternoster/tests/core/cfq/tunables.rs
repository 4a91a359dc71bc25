//! Tunables: their ranges, their twins, their defaults.

use crate::rig::*;
use paternoster::SchedulerKind;

const UINT_MAX: i64 = u32::MAX as i64;

/// Name, default, least and greatest value.
const TABLE: [(&str, i64, i64, i64); 18] = [
    ("quantum", 8, 1, UINT_MAX),
    ("fifo_expire_sync", 125, 1, UINT_MAX),
    ("fifo_expire_async", 250, 1, UINT_MAX),
    ("back_seek_max", 16_384, 0, UINT_MAX),
    ("back_seek_penalty", 2, 1, UINT_MAX),
    ("slice_sync", 100, 1, UINT_MAX),
    ("slice_sync_us", 100_000, 1, UINT_MAX),
    ("slice_async", 40, 1, UINT_MAX),
    ("slice_async_us", 40_000, 1, UINT_MAX),
    ("slice_async_rq", 2, 1, UINT_MAX),
    ("slice_idle", 8, 0, UINT_MAX),
    ("slice_idle_us", 8_000, 0, UINT_MAX),
    ("group_idle", 8, 0, UINT_MAX),
    ("group_idle_us", 8_000, 0, UINT_MAX),
    ("low_latency", 1, 0, 1),
    ("target_latency", 300, 1, UINT_MAX),
    ("target_latency_us", 300_000, 1, UINT_MAX),
    // Not of Linux, which does as with 0.
    ("charge_whole_turn", 0, 0, 1),
];

#[test]
fn every_tunable_has_linux_default() {
    let rig = Rig::cfq();
    for (name, default, ..) in TABLE {
        assert_eq!(rig.elevator.tunable(name), Ok(default), "{name}");
    }
    let names: Vec<_> = SchedulerKind::Cfq.tunables().iter().map(|info| info.name).collect();
    assert_eq!(names, TABLE.map(|(name, ..)| name));
}

#[test]
fn values_out_of_range_are_clamped_as_linux_clamps_them() {
    let mut rig = Rig::cfq();
    for (name, _, min, max) in TABLE {
        let values = [(i64::MIN, min), (-1, min), (0, min), (1, 1), (2, 2.min(max))];
        for (value, stored) in values.into_iter().chain([(max + 1, max), (i64::MAX, max)]) {
            let set = rig.elevator.set_tunable(rig.now, name, value);
            assert_eq!(set, Ok(stored), "{name} = {value}");
            assert_eq!(rig.elevator.tunable(name), Ok(stored), "{name} = {value}");
        }
    }
}

/// Reading truncates.
#[test]
fn twin_is_the_same_value_in_microseconds() {
    let mut rig = Rig::cfq();
    for name in ["slice_sync", "slice_async", "slice_idle", "group_idle", "target_latency"] {
        let twin = format!("{name}_us");
        for (micros, millis) in [(1, 0), (999, 0), (1999, 1), (2000, 2)] {
            assert_eq!(rig.elevator.set_tunable(rig.now, &twin, micros), Ok(micros));
            assert_eq!(rig.elevator.tunable(&twin), Ok(micros), "{twin}");
            assert_eq!(rig.elevator.tunable(name), Ok(millis), "{name}");
        }
        assert_eq!(rig.elevator.set_tunable(rig.now, name, 3), Ok(3));
        assert_eq!(rig.elevator.tunable(&twin), Ok(3000), "{twin}");
    }
}

/// A slice of 1500 us at level 4; the levels are 300 us apart.
#[test]
fn microseconds_count_in_decisions() {
    Rig::cfq().set("slice_sync_us", 1500).set("slice_idle_us", 70).task("a", "be/2", ROOT).run(&[
        Submit("a", read(0..16).by("a")),
        Serve(&["a"]),
        Expect(Emitted("slice a: 2.1 ms")),
        Expect(Emitted("idles a: 0.07 ms")),
    ]);
}

/// A slice that has begun and a timer that is armed stay as they are.
#[test]
fn change_counts_from_the_next_use_on() {
    Rig::cfq().without_merging().run(&[
        Submit("a", read(0..16)),
        Serve(&["a"]),
        Expect(Emitted("slice main: 100 ms")),
        Set("slice_sync", 10),
        Set("slice_idle", 2),
        Expect(Timeout(Some(ms(8)))),
        Submit("b", read(16..32)),
        Advance(ms(50)),
        Serve(&["b"]),
        Expect(NotEmitted("expired")),
        Expect(Timeout(Some(ms(52)))),
        Advance(ms(2)),
        TimerFires,
        Submit("c", read(32..48)),
        Serve(&["c"]),
        Expect(Emitted("slice main: 10 ms")),
    ]);
}

/// Doubled to sectors in 32 bits, half of the range is nothing.
#[test]
fn way_back_wraps_as_in_linux() {
    for (max, order) in [((1 << 31) - 1, ["behind", "ahead"]), (1 << 31, ["ahead", "behind"])] {
        let mut rig = Rig::cfq().without_merging();
        rig.run(&[
            Set("back_seek_max", max),
            Submit("head", read(992..1000)),
            Serve(&["head"]),
            Submit("ahead", read(1300..1308)),
            Submit("behind", read(900..908)),
        ]);
        assert_eq!(rig.serve_all(), order, "back_seek_max {max}");
    }
}

#[test]
fn unknown_tunable_is_refused_with_what_there_is() {
    let mut rig = Rig::cfq();
    let error = rig.elevator.set_tunable(rig.now, "fifo_batch", 8).expect_err("mq-deadline's");
    let emitted = "cfq has no tunable \"fifo_batch\"; it has: quantum, fifo_expire_sync, \
                fifo_expire_async, back_seek_max, back_seek_penalty, slice_sync, slice_sync_us, \
                slice_async, slice_async_us, slice_async_rq, slice_idle, slice_idle_us, \
                group_idle, group_idle_us, low_latency, target_latency, target_latency_us, \
                charge_whole_turn";
    assert_eq!(error.to_string(), emitted);
    assert_eq!(SchedulerKind::Cfq.tunable("fifo_batch"), Err(error));
}
