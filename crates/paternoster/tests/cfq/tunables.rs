//! Tunables: their ranges, their twins, their defaults.

use crate::rig::*;
use paternoster::SchedulerKind;

#[test]
fn values_out_of_range_are_clamped_as_linux_clamps_them() {
    let uint_max = i64::from(u32::MAX);
    let table = [
        ("quantum", 0, 1),
        ("quantum", i64::MAX, uint_max),
        ("fifo_expire_sync", 0, 1),
        ("fifo_expire_sync", i64::MAX, uint_max),
        ("fifo_expire_async", -1, 1),
        ("fifo_expire_async", i64::MAX, uint_max),
        ("back_seek_max", -1, 0),
        ("back_seek_max", i64::MAX, uint_max),
        ("back_seek_penalty", 0, 1),
        ("back_seek_penalty", i64::MAX, uint_max),
    ];
    let mut rig = Rig::cfq();
    for (name, value, stored) in table {
        assert_eq!(rig.elevator.set_tunable(rig.now, name, value), Ok(stored), "{name} = {value}");
        assert_eq!(rig.elevator.tunable(name), Ok(stored), "{name} = {value}");
    }
}

#[test]
fn unknown_tunable_is_refused_with_what_there_is() {
    let mut rig = Rig::cfq();
    let error = rig.elevator.set_tunable(rig.now, "fifo_batch", 8).expect_err("mq-deadline's");
    let told = "cfq has no tunable \"fifo_batch\"; it has: quantum, fifo_expire_sync, \
                fifo_expire_async, back_seek_max, back_seek_penalty, slice_sync, slice_sync_us, \
                slice_async, slice_async_us, slice_async_rq, slice_idle, slice_idle_us, \
                group_idle, group_idle_us, low_latency, target_latency, target_latency_us";
    assert_eq!(error.to_string(), told);
    assert_eq!(SchedulerKind::Cfq.tunable("fifo_batch"), Err(error));
}
