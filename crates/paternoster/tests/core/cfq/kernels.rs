//! What kernels 2.6.35 to 2.6.37 decide otherwise than v4.20. All numbers are worked out by hand.

use std::collections::BTreeMap;

use crate::rig::*;
use paternoster::{BioFlags, CfqEvent, Device, Event, Hierarchy, Hz, Kernel, SchedulerKind};

const FAR: u64 = 1_000_000;
const SEED: Kernel = Kernel::V2_6_35Seed;
const BEFORE_2_6_38: [Kernel; 3] = [SEED, Kernel::V2_6_36, Kernel::V2_6_37];

/// A disk that takes one request at a time.
fn rig(kernel: Kernel) -> Rig {
    Rig::of_kernel(Device::disk(1), kernel).without_merging()
}

fn at_hz(kernel: Kernel, hz: u32) -> Rig {
    let device = Device::disk(1).with_hz(Hz::new(hz).expect("a clock"));
    Rig::of_kernel(device, kernel).without_merging()
}

/// HZ / 8, HZ / 4, HZ / 10, HZ / 25, HZ / 125 and 3 HZ / 10 in whole ticks of 1, 4 and 10 ms;
/// HZ / 125 is one tick at 100.
#[test]
fn defaults_are_parts_of_a_second_in_whole_ticks_and_at_least_one() {
    let names = [
        "fifo_expire_sync",
        "fifo_expire_async",
        "slice_sync",
        "slice_async",
        "slice_idle",
        "group_idle",
        "target_latency",
    ];
    let rows = [
        (1000, [125, 250, 100, 40, 8, 8, 300]),
        (250, [124, 248, 100, 40, 8, 8, 300]),
        (100, [120, 250, 100, 40, 10, 10, 300]),
    ];
    for kernel in BEFORE_2_6_38 {
        for (hz, values) in rows {
            let rig = at_hz(kernel, hz);
            for (name, value) in names.into_iter().zip(values) {
                assert_eq!(rig.elevator.tunable(name), Ok(value), "{name} at {hz}");
            }
        }
    }
    let v4_20 = at_hz(Kernel::V4_20, 250);
    assert_eq!(v4_20.elevator.tunable("fifo_expire_sync"), Ok(125));
}

/// A tick is 4 ms.
#[test]
fn time_that_is_set_is_rounded_up_to_whole_ticks() {
    for (name, set, is) in [
        ("slice_idle", 5, 8),
        ("slice_idle", 4, 4),
        ("slice_sync_us", 1, 4000),
        ("group_idle", 0, 0),
    ] {
        let rig = at_hz(Kernel::V2_6_36, 250).set(name, set);
        assert_eq!(rig.elevator.tunable(name), Ok(is), "{name} = {set}");
    }
}

/// 1.7 ms are 1 tick of 1 ms, and none of 4 or 10. Idling takes 8, 2 and 1 of them: 8 and 10 ms.
#[test]
fn timer_fires_as_its_tick_begins() {
    let rows = [
        (Kernel::V4_20, 1000, us(9700)),
        (SEED, 1000, ms(9)),
        (SEED, 250, ms(8)),
        (Kernel::V2_6_37, 100, ms(10)),
    ];
    for (kernel, hz, at) in rows {
        at_hz(kernel, hz).run(&[
            Submit("a", read(0..16)),
            Expect(dispatched("a")),
            Advance(us(1700)),
            Complete("a"),
            Expect(Timeout(Some(at))),
        ]);
    }
}

/// The slice of 100 ticks begins at 0.9 ms, in tick 0, and is over as tick 100 begins.
#[test]
fn slice_begins_and_ends_with_a_tick() {
    for (kernel, end) in [(Kernel::V4_20, 100_900), (Kernel::V2_6_36, 100_000)] {
        let slice_ends = |at| {
            let mut rig = rig(kernel).task("b", "be/4", ROOT);
            rig.run(&[
                Submit("a", read(0..16)),
                Expect(dispatched("a")),
                Submit("b", read(FAR..FAR + 16).by("b")),
                Advance(us(900)),
                Complete("a"),
                Submit("c", read(16..32)),
                Expect(dispatched("c")),
                Advance(at),
                Complete("c"),
            ]);
            rig.events()
                .iter()
                .any(|event| matches!(event, Event::Cfq(CfqEvent::SliceExpired { .. })))
        };
        assert!(!slice_ends(us(end - 901)), "{kernel} before its end");
        assert!(slice_ends(us(end - 900)), "{kernel} at its end");
    }
}

/// At HZ 100 a base of 4 ticks has steps of 4 / 5 = 0: all levels are alike. At 250 it is 10 ticks,
/// and level 0 has 10 + 4 × 2; in nanoseconds 40 + 4 × 8 ms.
#[test]
fn step_of_a_level_is_truncated_to_ticks() {
    let rows = [
        (Kernel::V4_20, 100, "slice async a: 72 ms"),
        (SEED, 100, "slice async a: 40 ms"),
        (SEED, 250, "slice async a: 72 ms"),
    ];
    for (kernel, hz, slice) in rows {
        at_hz(kernel, hz).set("low_latency", 0).task("a", "be/0", ROOT).run(&[
            Submit("w", write(0..16).by("a")),
            Serve(&["w"]),
            Expect(Emitted(slice)),
        ]);
    }
}

/// Four queues: the mean number is 3 at the first slice, and 4 at the second, which has 3/4 of 100
/// ms. Of 25 ticks that is 18.
#[test]
fn slice_that_shrinks_for_low_latency_is_truncated_to_ticks() {
    let rows = [(Kernel::V4_20, "75 ms"), (Kernel::V2_6_37, "72 ms")];
    for (kernel, second) in rows {
        let mut rig = at_hz(kernel, 250);
        for name in ["a", "b", "c", "d"] {
            rig = rig.task(name, "be/4", ROOT);
        }
        let mut run = rig.served(1, ms(1));
        for (at, name) in (1..).zip(["a", "b", "c", "d"]) {
            run.issues(name, Stream::reads(16).from(at * FAR));
        }
        let slices = ["slice a: 100 ms".to_owned(), format!("slice b: {second}")];
        let emitted = run.until(ms(150)).emitted(&["slice"]);
        let without_time = |line: &String| line.split_once(": ").expect("a time").1.to_owned();
        assert_eq!(emitted.iter().map(without_time).collect::<Vec<_>>(), slices);
    }
}

/// A reader in the group and one in the root. /g has 500 of 1500; of 75 ticks that is 25. With a
/// weight of 300 it has 300 of 1300: 17.3 of 75 ticks, and 69.23 ms.
#[test]
fn group_has_its_part_of_the_target_latency_by_weight_in_ticks() {
    let rows = [(500, "100 ms"), (300, "68 ms")];
    for (weight, span) in rows {
        let rig = at_hz(Kernel::V2_6_36, 250).group("/g", weight).task("a", "be/4", ROOT);
        let mut run = rig.task("g", "be/4", "/g").served(1, ms(1));
        run.issues("g", Stream::reads(16).from(FAR).at(ms(1)));
        run.issues("a", Stream::reads(16)).until(ms(120));
        let workloads = run.emitted(&["workload /g"]);
        assert!(
            workloads[0].ends_with(&format!("workload /g: Be Sync for {span}")),
            "{workloads:?}"
        );
    }
}

/// Each is charged 8 ticks in the end, those of the idle timer: 8 × 4096 × 500 / weight. The think
/// time of 10 ms is not known to be too long before the third request.
#[test]
fn vdisktime_is_ticks_by_weight() {
    for (group, vdisktime) in [("/g", 32_768), ("/h", 54_613), (ROOT, 16_384)] {
        let rig = rig(SEED).group("/g", 500).group("/h", 300).task("a", "be/4", group);
        let mut run = rig.served(1, ms(1));
        run.issues("a", Stream::reads(16).count(1).think(ms(10))).until(ms(20));
        // Its task does not exit.
        let expired = format!(
            "9 ms: expired a: IdleTimer, used 8 ms, charged 8 ms, no residue, dispatched 1, \
             vdisktime {vdisktime}"
        );
        assert_eq!(run.emitted_up_to(6, &["expired"]), [expired], "{group}");
    }
}

/// The group of b begins HZ / 5 behind that of a, which is at 0: 200, 50 and 20, whether time or
/// requests are charged. Its reader has a tick or a request, which is 4096.
#[test]
fn group_begins_a_fifth_of_a_second_in_ticks_behind_the_last_one() {
    for (hz, vdisktime) in [(1000, 4296), (250, 4146), (100, 4116)] {
        for slice_idle in [0, 20] {
            let rig = at_hz(Kernel::V2_6_37, hz).set("slice_idle", slice_idle);
            let rig = rig.set("group_isolation", 1).group("/a", 500).group("/b", 500);
            let mut rig = rig.task("a", "be/4", "/a").task("b", "be/4", "/b");
            rig.run(&[
                Submit("a", read(0..16).by("a")),
                Expect(dispatched("a")),
                Submit("b", read(FAR..FAR + 16).by("b")),
                Complete("a"),
                Exit("a"),
                Expect(Emitted("left /a")),
                Expect(dispatched("b")),
                Complete("b"),
                Exit("b"),
            ]);
            let mut vdisktimes = rig.events().into_iter().filter_map(|event| match event {
                Event::Cfq(CfqEvent::SliceExpired { vdisktime, .. }) => Some(vdisktime),
                _ => None,
            });
            assert_eq!(vdisktimes.next_back(), Some(vdisktime), "{hz} {slice_idle}");
        }
    }
}

/// What the slices of each task were charged, in ticks.
fn charged(run: &mut Served) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for event in run.rig.events() {
        if let Event::Cfq(CfqEvent::SliceUsed { queue, charge, .. }) = event {
            *sums.entry(run.rig.task_name(queue)).or_default() += charge;
        }
    }
    sums
}

/// The root has 1000, /a 500, /a/b 250 and /a/b/c 1000: of 2750, whatever their depth.
#[test]
fn groups_compete_side_by_side_by_weight() {
    for kernel in BEFORE_2_6_38 {
        let rig = rig(kernel).set("slice_sync", 10).set("low_latency", 0);
        let rig = rig.group("/a", 500).group("/a/b", 250).group("/a/b/c", 1000);
        let rig = rig.task("r", "be/4", ROOT).task("a", "be/4", "/a");
        let rig = rig.task("b", "be/4", "/a/b").task("c", "be/4", "/a/b/c");
        let mut run = rig.served(1, ms(1));
        for (index, name) in (1..).zip(["r", "a", "b", "c"]) {
            run.issues(name, Stream::reads(16).from(index * FAR).depth(2));
        }
        let sums = charged(run.until(ms(20_000)));
        let all: u64 = sums.values().sum();
        for (task, part) in [("r", 364), ("a", 182), ("b", 91), ("c", 364)] {
            let found = 1000 * sums[task] / all;
            assert!(found.abs_diff(part) <= 5, "{kernel}: {task}: {found} thousandths, not {part}");
        }
    }
}

#[test]
fn kernel_before_2_6_38_has_its_own_hierarchy_and_group_isolation_and_v4_20_the_others() {
    for kernel in BEFORE_2_6_38 {
        let mut rig = rig(kernel);
        assert_eq!(rig.elevator.hierarchy(), None);
        let refused = rig.elevator.set_hierarchy(rig.now, Hierarchy::Flat).expect_err("its own");
        assert_eq!(
            refused.to_string(),
            format!(
                "kernel {kernel} has no hierarchy to choose; cfq of kernel 4.20 has: leaf-weight, \
                 flat, entities"
            )
        );
        assert_eq!(rig.elevator.tunable("group_isolation"), Ok(0));
        assert_eq!(rig.elevator.set_tunable(rig.now, "group_isolation", 7), Ok(1));
        assert_eq!(rig.elevator.tunable("group_isolation"), Ok(1));
    }
    for mut rig in [rig(Kernel::V4_20), Rig::cfq()] {
        assert_eq!(rig.elevator.hierarchy(), Some(Hierarchy::LeafWeight));
        let refused = rig.elevator.set_tunable(rig.now, "group_isolation", 1).expect_err("none");
        assert_eq!(
            refused.to_string(),
            "cfq has no tunable \"group_isolation\"; kernel 4.20 decides as with 1; these have it: \
             2.6.35-seed, 2.6.36, 2.6.37"
        );
        let before =
            SchedulerKind::Cfq.tunable("group_isolation").expect_err("nor is it in its table");
        assert_eq!(before, refused);
    }
    let of_2_6_36 = SchedulerKind::Cfq.tunable_of(Kernel::V2_6_36, "group_isolation");
    assert_eq!(of_2_6_36.map(|info| (info.default, info.max)), Ok((0, 1)));
}

#[test]
fn error_for_an_unknown_tunable_names_group_isolation_in_kernels_that_have_it() {
    for (kernel, is_named) in [(Kernel::V2_6_36, true), (Kernel::V4_20, false)] {
        let mut rig = rig(kernel);
        let errors = [rig.elevator.tunable("speed"), rig.elevator.set_tunable(rig.now, "speed", 1)];
        for error in errors.map(|result| result.expect_err("there is none").to_string()) {
            assert!(error.starts_with("cfq has no tunable \"speed\"; it has: "), "{error}");
            assert_eq!(error.contains("group_isolation"), is_named, "{kernel}: {error}");
        }
    }
}

/// Nothing idles, so the queue of a loses its idle window with its first request, which is placed
/// before that. The third one earns it back: 84 samples are more than 80, and there was no think
/// time. While the device would idle for nobody, another request preempts.
fn lose_a_window_and_earn_it_back(rig: &mut Rig) {
    rig.run(&[
        Set("slice_idle", 0),
        Submit("1", read(0..16).by("a")),
        Serve(&["1"]),
        Submit("b", read(FAR..FAR + 16).by("b")),
        Serve(&["b"]),
        Submit("2", read(16..32).by("a")),
        Serve(&["2"]),
        Set("slice_idle", 8),
        Submit("3", read(32..48).by("a")),
        Serve(&["3"]),
        Advance(ms(8)),
        TimerFires,
        Submit("4", read(48..64).by("a")),
        Serve(&["4"]),
    ]);
}

#[test]
fn queue_without_an_idle_window_competes_in_the_root_unless_groups_are_isolated() {
    for kernel in BEFORE_2_6_38 {
        for (isolation, expected) in [(0, vec!["/a to /", "/ to /a"]), (1, vec![])] {
            let rig = rig(kernel).set("group_isolation", isolation).group("/a", 500);
            let mut rig = rig.task("a", "be/4", "/a").task("b", "be/4", "/a");
            lose_a_window_and_earn_it_back(&mut rig);
            let mut run = rig.served(1, ms(1));
            let moves = run.emitted(&["queue moved a"]);
            let moves: Vec<_> =
                moves.iter().map(|line| line.rsplit_once(": ").expect("two").1).collect();
            assert_eq!(moves, expected, "{kernel} {isolation}");
        }
    }
}

/// In v4.20 the root is above /a. Beside it, its real-time read waits for the end of /a's slice,
/// which begins with the first completion, at 1 ms, and ends in the 101st tick.
#[test]
fn root_beside_a_group_does_not_preempt_its_synchronous_queue() {
    let served_at = |kernel| {
        let rig = rig(kernel).set("low_latency", 0).group("/a", 500);
        let mut run = rig.task("a", "be/4", "/a").task("rt", "rt/4", ROOT).served(1, ms(1));
        run.issues("a", Stream::reads(16).depth(2));
        run.issues("rt", Stream::reads(16).from(FAR).at(us(2500)).count(1));
        run.until(ms(110)).dispatch_times("rt")
    };
    assert_eq!(served_at(Kernel::V4_20), [ms(3)]);
    for kernel in BEFORE_2_6_38 {
        assert_eq!(served_at(kernel), [ms(101)], "{kernel}");
    }
}

/// Both groups' tasks write asynchronously at level 4: in v4.20 each group has a queue.
#[test]
fn asynchronous_queues_are_of_the_device_and_in_the_root() {
    let made = |kernel| {
        let rig = rig(kernel).group("/a", 500).group("/b", 500);
        let mut rig = rig.task("a", "be/4", "/a").task("b", "be/4", "/b");
        rig.run(&[Submit("1", write(0..16).by("a")), Submit("2", write(FAR..FAR + 16).by("b"))]);
        let mut run = rig.served(1, ms(1));
        run.emitted(&["made"])
    };
    for kernel in BEFORE_2_6_38 {
        assert_eq!(made(kernel), ["0 ms: made async a in /"], "{kernel}");
    }
    let of_groups = ["0 ms: made async a in /a", "0 ms: made async b in /b"];
    assert_eq!(made(Kernel::V4_20), of_groups);
}

/// Eight reads are dispatched at 0, and none completes before an RT read preempts at 2.5 ms.
#[test]
fn slice_that_has_not_begun_is_charged_its_time_or_in_the_seed_a_tick_a_request() {
    let rows = [
        (SEED, None, "sl_used a: 8 ticks, disp 8, charge 8, iops false, sect 128"),
        (SEED, Some(true), "sl_used a: 8 ticks, disp 8, charge 8, iops false, sect 128"),
        (SEED, Some(false), "sl_used a: 2 ticks, disp 8, charge 2, iops false, sect 128"),
        (Kernel::V2_6_36, None, "sl_used a: 2 ticks, disp 8, charge 2, iops false, sect 128"),
        (Kernel::V2_6_37, None, "sl_used a: 2 ticks, disp 8, charge 2, iops false, sect 128"),
    ];
    for (kernel, queues, expected) in rows {
        let device = Device::disk(31).with_native_queueing(queues);
        let rig = Rig::of_kernel(device, kernel).without_merging();
        let mut run = rig.task("a", "be/4", ROOT).task("rt", "rt/4", ROOT).served(1, ms(10));
        run.issues("rt", Stream::reads(16).from(FAR).at(us(2500)));
        run.issues("a", Stream::reads(16).depth(8)).until(us(2500));
        assert_eq!(
            run.emitted(&["sl_used"]),
            [format!("2.5 ms: {expected}")],
            "{kernel} {queues:?}"
        );
    }
}

/// 4 reads of 1 ms, one at a time, and in the fifth another queue preempts, as nothing idles. The
/// slice began at 1 ms, and it is tick 4.
#[test]
fn seed_charges_time_where_later_kernels_charge_requests() {
    let rows = [(SEED, "charge 3, iops false"), (Kernel::V2_6_36, "charge 5, iops true")];
    for (kernel, charge) in rows {
        let rig = rig(kernel).set("slice_idle", 0).task("a", "be/4", ROOT).task("b", "be/4", ROOT);
        let mut run = rig.served(1, ms(1));
        run.issues("a", Stream::reads(16).count(5));
        run.issues("b", Stream::reads(16).from(FAR).at(us(4900))).until(ms(5));
        let expected = format!("4.9 ms: sl_used a: 3 ticks, disp 5, {charge}, sect 80");
        assert_eq!(run.emitted(&["sl_used"]), [expected], "{kernel}");
    }
}

/// The tasks of a group think 12 ms, which is longer than 8 ms and known from the third time on.
fn thinks_long(kernel: Kernel, slice_sync: i64) -> Rig {
    let device = Device::disk(31);
    let rig = Rig::of_kernel(device, kernel).without_merging().set("slice_sync", slice_sync);
    let rig = if kernel == Kernel::V4_20 { rig } else { rig.set("group_isolation", 1) };
    let rig = rig.group("/a", 500).group("/b", 500);
    let mut rig = rig.task("a", "be/4", "/a").task("b", "be/4", "/b");
    for _ in 0..5 {
        rig.run(&[Submit("t", read(0..16).by("a")), Serve(&["t"]), Advance(ms(12)), TimerFires]);
    }
    rig
}

/// Two reads at once, the one at the head first. It begins the slice of 3 ms. When that ends, the
/// other is in flight.
#[test]
fn group_with_requests_in_flight_is_waited_for_however_long_it_thinks() {
    let rows = [
        (Kernel::V4_20, "expired a: SliceUsed"),
        (SEED, "waiting: GroupInFlight"),
        (Kernel::V2_6_36, "waiting: GroupInFlight"),
        (Kernel::V2_6_37, "waiting: GroupInFlight"),
    ];
    for (kernel, expected) in rows {
        thinks_long(kernel, 3).run(&[
            Submit("x", read(0..16).by("a")),
            Submit("y", read(16..32).by("a")),
            Expect(dispatched("y")),
            Expect(dispatched("x")),
            Complete("y"),
            Advance(ms(3)),
            Submit("b", read(FAR..FAR + 16).by("b")),
            Expect(if expected.starts_with('w') { Nothing } else { dispatched("b") }),
            Expect(Emitted(expected)),
        ]);
    }
}

/// The queue is not worth it, as its task thinks too long; it is all that its group has.
#[test]
fn device_idles_for_a_group_however_long_it_thinks() {
    for kernel in Kernel::ALL {
        let mut rig = thinks_long(kernel, 100);
        rig.events();
        rig.run(&[Submit("x", read(0..16).by("a")), Serve(&["x"])]);
        rig.run(&[Expect(match kernel {
            Kernel::V4_20 => NotEmitted("idles a"),
            _ => Emitted("idles a: 8 ms for its group"),
        })]);
    }
}

/// The device has no known limit, so it may queue requests. Queues are not idled for there.
#[test]
fn fast_device_never_idles_for_a_group() {
    for kernel in Kernel::ALL {
        let rig = Rig::of_kernel(Device::solid_state(31), kernel).without_merging();
        let mut rig = rig.group("/a", 500).task("a", "be/4", "/a");
        rig.run(&[Submit("x", read(0..64).by("a")), Serve(&["x"])]);
        rig.run(&[Expect(match kernel {
            Kernel::V4_20 => Emitted("idles a: 8 ms for its group"),
            _ => NotEmitted("idles a"),
        })]);
    }
}

/// The second request of a makes its queue one without an idle window: the device idles for it
/// because it is the only one on its tree. After a write that says that nothing follows soon, that
/// does not count before 2.6.37, as b waits in the same group; after a read it does.
#[test]
fn device_idles_for_a_workload_without_windows_if_a_completed_request_asks_for_it() {
    let fsync = || write(0..16).flag(BioFlags::SYNC).by("a");
    let rows = [
        (SEED, [false, true]),
        (Kernel::V2_6_36, [false, true]),
        (Kernel::V2_6_37, [true, true]),
        (Kernel::V4_20, [true, true]),
    ];
    for (kernel, idles) in rows {
        for (last, idles) in [fsync(), read(0..16).by("a")].into_iter().zip(idles) {
            let mut rig = rig(kernel).task("a", "be/4", ROOT).task("b", "be/4", ROOT);
            rig.run(&[Submit("1", fsync()), Serve(&["1"]), Advance(ms(8)), TimerFires]);
            rig.run(&[
                Submit("2", last),
                Expect(dispatched("2")),
                Expect(Emitted("workload /: Be SyncNoIdle for 300 ms")),
                Submit("b", read(FAR..FAR + 16).by("b")),
                Complete("2"),
            ]);
            let expected = if idles { Nothing } else { dispatched("b") };
            rig.run(&[Expect(expected)]);
        }
    }
}
