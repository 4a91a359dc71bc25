//! Decisions that count in ticks of the jiffies clock, which is slower on some kernels.

use crate::rig::*;
use paternoster::{Device, Hz, SchedulerKind};

const FAR: u64 = 1_000_000;

fn at_hz(hz: u32) -> Rig {
    let hz = Hz::new(hz).expect("a clock");
    Rig::on(Device::disk(1).with_hz(hz), SchedulerKind::Cfq).without_merging()
}

/// The slice is preempted after 0.5 ms without a completion.
#[test]
fn slice_without_a_completion_costs_a_tick_at_least() {
    for (hz, emitted) in [
        (1000, "expired a: Preempted, used 1 ms, charged 1 ms"),
        (250, "expired a: Preempted, used 4 ms, charged 4 ms"),
        (100, "expired a: Preempted, used 10 ms, charged 10 ms"),
    ] {
        at_hz(hz).task("a", "be/4", ROOT).task("rt", "rt/4", ROOT).run(&[
            Submit("a", read(0..16).by("a")),
            Expect(dispatched("a")),
            Advance(us(500)),
            Submit("rt", read(FAR..FAR + 16).by("rt")),
            Expect(Emitted(emitted)),
        ]);
    }
}

#[test]
fn workload_has_two_ticks_at_least() {
    for (hz, emitted) in [
        (1000, "workload /: Be Sync for 2 ms"),
        (250, "workload /: Be Sync for 8 ms"),
        (100, "workload /: Be Sync for 20 ms"),
    ] {
        at_hz(hz).set("slice_idle", 0).set("target_latency", 1).run(&[
            Submit("a", read(0..16)),
            Expect(dispatched("a")),
            Expect(Emitted(emitted)),
        ]);
    }
}

/// The first group is charged one request, (1 << 24) / 4096 = 4096, when its reader exits. The
/// other one began behind its 0 by the number of ticks in a fifth of a second: 200, 50 and 20. Its
/// request is charged at half of the device.
#[test]
fn group_begins_a_fifth_of_a_second_in_ticks_behind_the_last_one_in_iops_mode() {
    for (hz, emitted) in [
        (
            1000,
            "expired b: Exit, used 1 ms, charged 1 requests, no residue, \
             dispatched 1, vdisktime 8392",
        ),
        (
            250,
            "expired b: Exit, used 4 ms, charged 1 requests, no residue, \
            dispatched 1, vdisktime 8242",
        ),
        (
            100,
            "expired b: Exit, used 10 ms, charged 1 requests, no residue, \
             dispatched 1, vdisktime 8212",
        ),
    ] {
        let rig = at_hz(hz).set("slice_idle", 0).group("/a", 500).group("/b", 500);
        rig.task("a", "be/4", "/a").task("b", "be/4", "/b").run(&[
            Submit("a", read(0..16).by("a")),
            Expect(dispatched("a")),
            Submit("b", read(FAR..FAR + 16).by("b")),
            Complete("a"),
            Exit("a"),
            Expect(Emitted("left /a")),
            Expect(dispatched("b")),
            Complete("b"),
            Exit("b"),
            Expect(Emitted(emitted)),
        ]);
    }
}

/// A slice of 10 ms from the completion at 0 on: another completion at 7 ms leaves 3 of it.
#[test]
fn slice_is_stretched_for_the_group_if_a_tick_is_left_of_it() {
    for (hz, emitted) in [(1000, NotEmitted("wait busy")), (250, Emitted("wait busy main"))] {
        at_hz(hz).set("slice_sync", 10).run(&[
            Submit("a", read(0..16)),
            Serve(&["a"]),
            Submit("b", read(16..32)),
            Expect(dispatched("b")),
            Advance(ms(7)),
            Complete("b"),
            Expect(emitted),
        ]);
    }
}
