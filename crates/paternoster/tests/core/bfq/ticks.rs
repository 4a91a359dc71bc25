//! What is counted in ticks of the jiffies clock, which is slower on some kernels.

use crate::rig::*;
use paternoster::{Device, Hz, SchedulerKind};

const FAR: u64 = 1_000_000;

fn at_hz(device: Device, hz: u32) -> Rig {
    let hz = Hz::new(hz).expect("a clock");
    Rig::on(device.with_hz(hz), SchedulerKind::Bfq).without_merging()
}

/// 31 ticks of 4 ms are an eighth of a second of 250.
#[test]
fn time_of_a_service_is_in_whole_ticks() {
    for (hz, millis, emitted) in [
        (1000, 125, "125 ms: expired a: Timeout, charged 16384 of 16384"),
        (250, 124, "124 ms: expired a: Timeout, charged 16384 of 16384"),
        (100, 120, "120 ms: expired a: Timeout, charged 16384 of 16384"),
    ] {
        let rig = at_hz(Device::disk(1), hz).set("low_latency", 0).task("a", "be/4", ROOT);
        assert_eq!(rig.elevator.tunable("timeout_sync"), Ok(millis), "{hz}");
        let mut run = rig.served(1, ms(1));
        run.issues("a", Stream::reads(8).depth(2)).until(ms(130));
        assert_eq!(run.emitted_up_to(2, &["expired"]), [emitted]);
    }
}

/// 14000 × 1750 / 9333 = 2625 ticks of 4 ms, and 33000 × 625 / 22000 = 937.
#[test]
fn raising_is_in_whole_ticks() {
    for (device, emitted) in [
        (Device::disk(1), "raised main: 30, for 10500 ms"),
        (Device::solid_state(1), "raised main: 30, for 3748 ms"),
    ] {
        at_hz(device, 250).run(&[Submit("a", read(0..8)), Expect(Emitted(emitted))]);
    }
}

/// At a service's end at 20 ms, tick 5: two ticks of idle time and four, so that 44 ms is not
/// enough.
#[test]
fn soft_real_time_is_six_ticks_after_the_batch_before() {
    for (gap, emitted) in
        [(24, NotEmitted("raised")), (28, Emitted("raised main: 3000, for 300 ms"))]
    {
        at_hz(Device::solid_state(1), 250).run(&[
            Submit("a", read(0..8)),
            Serve(&["a"]),
            Expect(Emitted("raised main: 30")),
            Advance(ms(20)),
            TimerFires,
            Expect(Emitted("expired main: TooIdle")),
            Advance(ms(gap)),
            Submit("a", read(8..16)),
            Expect(emitted),
        ]);
    }
}

/// 45 ticks: begun in that of 180 ms, which lasts until 184.
#[test]
fn queues_merge_at_creation_by_ticks() {
    for (at, emitted) in [(183, Emitted("merged b into a")), (184, NotEmitted("merged"))] {
        let rig = at_hz(Device::solid_state(1), 250).task("a", "be/4", ROOT);
        rig.task("b", "be/4", ROOT).run(&[
            Submit("a", read(0..8).by("a")),
            Advance(ms(at)),
            Submit("b", read(FAR..FAR + 8).by("b")),
            Expect(emitted),
        ]);
    }
}

/// 124 ms are the whole maximum: 62 half of it.
#[test]
fn time_is_charged_by_the_service_in_ticks() {
    at_hz(Device::disk(1), 250).set("low_latency", 0).task("rt", "rt/4", ROOT).run(&[
        Submit("a", read(0..8)),
        Expect(dispatched("a")),
        Advance(ms(62)),
        Submit("rt", read(FAR..FAR + 8).by("rt")),
        Expect(Emitted("expired main: Preempted, charged 8192 of 10922, slow")),
    ]);
}

/// What is set is rounded up to ticks.
#[test]
fn time_of_a_service_is_set_in_ticks() {
    let mut rig = at_hz(Device::disk(1), 250);
    for (millis, stored) in [(1, 4), (4, 4), (5, 8), (124, 124), (125, 128)] {
        assert_eq!(rig.elevator.set_tunable(rig.now, "timeout_sync", millis), Ok(stored));
    }
}
