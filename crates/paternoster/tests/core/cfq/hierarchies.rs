//! The hierarchies of groups: who competes with whom, by what weight, and what a switch keeps.

use std::collections::BTreeMap;

use crate::rig::*;
use paternoster::{AnyScheduler, CfqEvent, Device, Event, Hierarchy, Recorder, SchedulerKind};

pub(crate) const FAR: u64 = 1_000_000;
pub(crate) const BY_VDISKTIME: [Hierarchy; 2] = [Hierarchy::Flat, Hierarchy::Entities];

/// A device that takes 1 ms for a request, slices of `slice_sync` ms for level 4.
pub(crate) fn rig(hierarchy: Hierarchy, slice_sync: i64) -> Rig {
    let rig = Rig::cfq().without_merging().set("slice_sync", slice_sync).set("low_latency", 0);
    rig.in_hierarchy(hierarchy)
}

/// Each task, by name, level and group, is a reader that always has a request waiting.
pub(crate) fn readers(mut rig: Rig, tasks: &[(&'static str, &str, &str)]) -> Served {
    for (name, io_prio, group) in tasks {
        rig = rig.task(name, io_prio, group);
    }
    let mut run = rig.served(1, ms(1));
    for (index, (name, ..)) in (1..).zip(tasks) {
        run.issues(name, Stream::reads(16).from(index * FAR).depth(2));
    }
    run
}

/// What the slices of each task were charged, in ns.
fn charged(run: &mut Served) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for (_, event) in run.rig.timed_events() {
        if let Event::Cfq(CfqEvent::SliceExpired { queue, charge, .. }) = event {
            *sums.entry(run.rig.task_name(queue)).or_default() += charge;
        }
    }
    sums
}

/// Asserts the parts of the tasks, in thousandths, give or take five.
pub(crate) fn assert_parts(run: &mut Served, parts: &[(&str, u64)]) {
    let sums = charged(run);
    let all: u64 = sums.values().sum();
    for &(task, part) in parts {
        let found = 1000 * sums[task] / all;
        assert!(found.abs_diff(part) <= 5, "{task}: {found} thousandths, not {part}");
    }
}

/// A reader of the root beside a group of weight 500 with two readers. The root's weight and leaf
/// weight are 1000, and level 4 has 484: 1000 of 1500, or 484 of 984.
#[test]
fn reader_of_the_root_beside_a_group_has_the_weight_that_the_hierarchy_gives_it() {
    let rows = [(Hierarchy::LeafWeight, 667), (Hierarchy::Flat, 667), (Hierarchy::Entities, 492)];
    for (hierarchy, part) in rows {
        let rig = rig(hierarchy, 10).group("/g", 500);
        let tasks = [("r", "be/4", ROOT), ("g1", "be/4", "/g"), ("g2", "be/4", "/g")];
        let mut run = readers(rig, &tasks);
        run.until(ms(8000));
        let rest = (1000 - part) / 2;
        assert_parts(&mut run, &[("r", part), ("g1", rest), ("g2", rest)]);
    }
}

/// /a has 500 beside 484 of the root's reader; in it /a/b has 250 beside 484, and in that /a/b/c
/// 1000 beside 484:
///
/// root's 484/984; a's 500/984 × 484/734; b's 500/984 × 250/734 × 484/1484; c's the rest
#[test]
fn parts_multiply_from_the_root_down() {
    let rig = rig(Hierarchy::Entities, 10);
    let rig = rig.group("/a", 500).group("/a/b", 250).group("/a/b/c", 1000);
    let tasks =
        [("r", "be/4", ROOT), ("a", "be/4", "/a"), ("b", "be/4", "/a/b"), ("c", "be/4", "/a/b/c")];
    let mut run = readers(rig, &tasks);
    run.until(ms(20_000));
    assert_parts(&mut run, &[("r", 492), ("a", 335), ("b", 56), ("c", 117)]);
}

/// The same groups side by side, the root with 1000: of 2750.
#[test]
fn depth_makes_no_difference_without_a_hierarchy() {
    let rig = rig(Hierarchy::Flat, 10);
    let rig = rig.group("/a", 500).group("/a/b", 250).group("/a/b/c", 1000);
    let tasks =
        [("r", "be/4", ROOT), ("a", "be/4", "/a"), ("b", "be/4", "/a/b"), ("c", "be/4", "/a/b/c")];
    let mut run = readers(rig, &tasks);
    run.until(ms(20_000));
    assert_parts(&mut run, &[("r", 364), ("a", 182), ("b", 91), ("c", 364)]);
}

/// The weights of levels 0 to 7 are 1000, 868, 740, 612, 484, 356, 228 and 100: 4388 in all.
#[test]
fn every_level_has_its_weight_in_the_group() {
    let levels: [(&str, &str, u64); 8] = [
        ("0", "be/0", 228),
        ("1", "be/1", 198),
        ("2", "be/2", 169),
        ("3", "be/3", 139),
        ("4", "be/4", 110),
        ("5", "be/5", 81),
        ("6", "be/6", 52),
        ("7", "be/7", 23),
    ];
    for hierarchy in BY_VDISKTIME {
        let tasks = levels.map(|(name, io_prio, _)| (name, io_prio, ROOT));
        let mut run = readers(rig(hierarchy, 10), &tasks);
        run.until(ms(20_000));
        assert_parts(&mut run, &levels.map(|(name, _, part)| (name, part)));
    }
}

/// At first both have 484. From its next request on the first one has 1000 of 1484.
#[test]
fn weight_follows_the_level_of_the_task() {
    for hierarchy in BY_VDISKTIME {
        let mut run = readers(rig(hierarchy, 10), &[("1", "be/4", ROOT), ("2", "be/4", ROOT)]);
        run.until(ms(4000));
        assert_parts(&mut run, &[("1", 500), ("2", 500)]);
        run.rig.run(&[SetPriority("1", "be/0")]);
        run.until(ms(10_000));
        assert_parts(&mut run, &[("1", 674), ("2", 326)]);
    }
}

/// All slices are charged 100 ms. r joins the root's tree at 327.68 × 10⁹ (its jump is 80 ms ×
/// 4096) and moves by 423.14 at each charge (100 ms × 4096 × 500 / 484). /a joins 0.2 behind it,
/// and moves by 409.6 (100 ms × 4096):
///
/// ```text
///   r   327.68  750.82  750.82   750.82  1173.96  1173.96
///   /a  327.88  327.88  737.48  1147.08  1147.08  1556.68
///       r       a       a       r        a        r
/// ```
#[test]
fn queue_and_group_take_turns_by_vdisktime() {
    let rig = rig(Hierarchy::Entities, 100).group("/a", 500);
    let mut run = readers(rig, &[("r", "be/4", ROOT), ("a", "be/4", "/a")]);
    let emitted = [
        "0 ms: active r",
        "101 ms: active a",
        "202 ms: active a",
        "303 ms: active r",
        "404 ms: active a",
        "505 ms: active r",
    ];
    assert_eq!(run.until(ms(505)).emitted(&["active"]), emitted);
}

/// In vdisktimes of 10⁹: 1 joins at 327.68, the jump of level 4 (80 ms × 4096), and is chosen, so
/// that this is the minimum; 2 joins at twice that and is chosen next: the minimum becomes 655.36.
/// There a reader of level 0 joins; one of level 4 at 983.04, and one of level 7 at 1228.8, a jump
/// of 140 ms. Slices are 180 ms for level 0 and 100 for level 4; level 0 is charged 368.64 for one,
/// and level 4 423.14. In their order they are chosen at:
///
/// 1 at 327.68, 2 at 655.36, 0 at 655.36, 1 at 750.82, 4 at 983.04, 0 at 1024, 2 at 1078.5, 1 at
/// 1173.96, 7 at 1228.8
#[test]
fn newcomer_joins_at_the_minimum_and_behind_the_jump_of_its_level() {
    for hierarchy in BY_VDISKTIME {
        let rig = rig(hierarchy, 100).task("0", "be/0", ROOT).task("4", "be/4", ROOT);
        let rig = rig.task("7", "be/7", ROOT);
        let mut run = readers(rig, &[("1", "be/4", ROOT), ("2", "be/4", ROOT)]);
        for (place, (name, at)) in (10..).zip([("0", 150), ("4", 160), ("7", 170)]) {
            run.issues(name, Stream::reads(16).from(place * FAR).depth(2).at(ms(at)));
        }
        let emitted = [
            "0 ms: active 1",
            "101 ms: active 2",
            "202 ms: active 0",
            "383 ms: active 1",
            "484 ms: active 4",
            "585 ms: active 0",
            "766 ms: active 2",
            "867 ms: active 1",
            "968 ms: active 7",
        ];
        assert_eq!(run.until(ms(968)).emitted(&["active"]), emitted, "{hierarchy}");
    }
}

/// Slices of 5 ms are charged 5 ms × 4096 = 20.48 × 10⁹ to a group of weight 500. The second group
/// joins at 8 ms, 0.2 behind the first. In Linux's own hierarchy the first one's charges double
/// then; here a charge depends on nobody else.
#[test]
fn group_joins_right_behind_the_last_one_and_charges_stay() {
    for hierarchy in BY_VDISKTIME {
        let rig = rig(hierarchy, 5).group("/a", 500).group("/b", 500).task("b", "be/4", "/b");
        let mut run = readers(rig, &[("a", "be/4", "/a")]);
        run.issues("b", Stream::reads(16).from(9 * FAR).depth(2).at(ms(8))).until(ms(24));
        let vdisktimes = run.rig.timed_events().into_iter().filter_map(|(_, event)| match event {
            Event::Cfq(CfqEvent::SliceExpired { vdisktime, .. }) => Some(vdisktime),
            _ => None,
        });
        let vdisktimes: Vec<_> = vdisktimes.collect();
        let expected = [20_480_000_000, 40_960_000_000, 41_160_000_000, 61_440_000_000];
        assert_eq!(vdisktimes, expected, "{hierarchy}");
    }
}

/// In vdisktimes of 10⁹: a slice of 100 ms moves /a/b by 100 ms × 4096 × 500 / 250 = 819.2, and /a,
/// on the root's tree, by 409.6. There /a is chosen again at 101 ms, so that is the minimum at
/// which r joins, at 737.28 with its jump of 327.68. After its second slice /a is at 819.2. If only
/// /a/b were charged, /a would still be at 0, and first.
#[test]
fn charge_moves_every_group_of_the_path() {
    let rig = rig(Hierarchy::Entities, 100).group("/a", 500).group("/a/b", 250);
    let rig = rig.task("r", "be/4", ROOT);
    let mut run = readers(rig, &[("b", "be/4", "/a/b")]);
    run.issues("r", Stream::reads(16).from(9 * FAR).depth(2).at(ms(110)));
    let emitted = run.until(ms(202)).emitted(&["active", "expired"]);
    let vdisktime = |line: &String| line.contains("vdisktime 819200000000");
    assert!(vdisktime(&emitted[1]), "{emitted:?}");
    let active: Vec<_> = emitted.iter().filter(|line| line.contains("active")).collect();
    assert_eq!(active, ["0 ms: active b", "101 ms: active b", "202 ms: active r"]);
}

/// 4096 × 500 / 984 = 2081 and 2081 × 250 / 734 = 708 in 4096 of 300 ms. Without a hierarchy it is
/// 500 and 250 of 1750.
#[test]
fn workload_has_the_part_of_the_target_latency_that_is_the_groups() {
    let rows = [
        (Hierarchy::Entities, ["152.416992 ms", "51.855468 ms"]),
        (Hierarchy::Flat, ["85.714285 ms", "42.857142 ms"]),
    ];
    for (hierarchy, [of_a, of_b]) in rows {
        let rig = rig(hierarchy, 10).group("/a", 500).group("/a/b", 250);
        let tasks = [("r", "be/4", ROOT), ("a", "be/4", "/a"), ("b", "be/4", "/a/b")];
        let mut run = readers(rig, &tasks);
        let emitted = run.until(ms(200)).emitted(&["workload /a", "workload /a/b"]);
        let mut told: Vec<_> =
            emitted.iter().filter_map(|line| line.split_once(": ").map(|(_, what)| what)).collect();
        told.dedup();
        let expected = [("/a", of_a), ("/a/b", of_b)]
            .map(|(group, span)| format!("workload {group}: Be Sync for {span}"));
        for line in expected {
            assert!(told.contains(&line.as_str()), "{hierarchy}: {line} of {told:?}");
        }
    }
}

/// Four entities: the average is (3 × 4 + 0 + 2) / 4 = 3 and then (3 × 4 + 3 + 2) / 4 = 4, for
/// which 300 and 400 ms are wanted where 300 are there. Without a hierarchy the reader is alone in
/// its group, which has 1000 of 2500.
#[test]
fn slice_shrinks_for_all_entities_of_the_group() {
    let rows = [(Hierarchy::Entities, ["100 ms", "75 ms"]), (Hierarchy::Flat, ["100 ms"; 2])];
    for (hierarchy, slices) in rows {
        let rig = rig(hierarchy, 100).set("low_latency", 1);
        let rig = rig.group("/a", 500).group("/b", 500).group("/c", 500);
        let tasks =
            [("r", "be/4", ROOT), ("a", "be/4", "/a"), ("b", "be/4", "/b"), ("c", "be/4", "/c")];
        let mut run = readers(rig, &tasks);
        let emitted = run.until(ms(1500)).emitted(&["slice r"]);
        let lengths: Vec<_> =
            emitted.iter().filter_map(|line| line.rsplit_once(": ").map(|(_, it)| it)).collect();
        assert_eq!(lengths[..2], slices, "{hierarchy}");
    }
}

/// A reader that thinks for 50 ms preempts writers that always have 64 requests waiting. It would
/// have to wait for them if the workload were chosen by who was placed first: the writer that it
/// preempts is placed at the same moment.
#[test]
fn reader_preempts_writers_in_every_hierarchy() {
    for hierarchy in Hierarchy::ALL {
        let rig = Rig::cfq().without_merging().in_hierarchy(hierarchy);
        let rig = rig.task("w", "be/4", ROOT).task("v", "be/3", ROOT).task("r", "be/4", ROOT);
        let mut run = rig.served(1, ms(1));
        run.issues("w", Stream::writes(64).depth(64));
        run.issues("v", Stream::writes(64).from(5 * FAR).depth(64));
        run.issues("r", Stream::reads(64).from(FAR).at(ms(5)).think(ms(50)).count(20));
        run.until(ms(1200));
        let times = run.dispatch_times("r");
        assert_eq!(times.len(), 20, "{hierarchy}");
        for pair in times.windows(2) {
            // It is served for 1 ms, thinks for 50, and waits for the request in the device.
            assert!(pair[1].saturating_sub(pair[0]) <= ms(52), "{hierarchy}: {pair:?}");
        }
    }
}

/// Where requests are charged, a newcomer does not wait for what nanoseconds would be worth: with a
/// jump of 80 ms × 4096, a reader of level 0 would have to dispatch 160 million requests first.
#[test]
fn newcomer_does_not_starve_where_requests_are_charged() {
    for hierarchy in BY_VDISKTIME {
        let rig = Rig::on(Device::solid_state(8), SchedulerKind::Cfq).without_merging();
        let rig = rig.in_hierarchy(hierarchy).set("slice_sync", 10);
        let rig = rig.task("hog", "be/0", ROOT).task("new", "be/4", ROOT);
        let mut run = rig.served(8, ms(1));
        run.issues("hog", Stream::reads(64).depth(32));
        run.issues("new", Stream::reads(64).from(FAR).at(ms(10)).count(20));
        run.until(ms(1000));
        assert_eq!(run.dispatch_times("new").len(), 20, "{hierarchy}");
    }
}

/// Three queues of level 7 and one of level 0, keys −140, 0, 140 and 0 ms: in this order they are
/// served, 1 2 4 3, and a switch keeps it. Where the queues would join afresh, 4 would be first.
#[test]
fn switch_keeps_the_order_of_queues() {
    for hierarchy in BY_VDISKTIME {
        let rig = Rig::cfq().without_merging().set("slice_idle", 0).set("group_idle", 0);
        let rig = rig.task("1", "be/7", ROOT).task("2", "be/7", ROOT);
        rig.task("3", "be/7", ROOT).task("4", "be/0", ROOT).run(&[
            Submit("a", read(0..16).by("1")),
            Submit("b", read(FAR..FAR + 16).by("2")),
            Submit("c", read(2 * FAR..2 * FAR + 16).by("3")),
            Submit("d", read(3 * FAR..3 * FAR + 16).by("4")),
            SetHierarchy(hierarchy),
            Serve(&["a", "b", "d", "c"]),
        ]);
    }
}

/// The active queue loses its slice. Nothing is lost, and groups come back in the order of their
/// paths.
#[test]
fn switch_expires_the_active_queue_and_puts_groups_back_by_path() {
    let rig = Rig::cfq().without_merging().depth(2).set("slice_idle", 0).set("group_idle", 0);
    let rig = rig.group("/a", 500).group("/b", 500).group("/a/c", 500);
    let mut rig = rig.task("a", "be/4", "/a").task("b", "be/4", "/b").task("c", "be/4", "/a/c");
    rig.run(&[
        Submit("b", read(0..16).by("b")),
        Expect(dispatched("b")),
        Submit("b'", read(16..32).by("b")),
        Submit("c", read(FAR..FAR + 16).by("c")),
        Submit("a", read(2 * FAR..2 * FAR + 16).by("a")),
        SetHierarchy(Hierarchy::Entities),
        Expect(Emitted("expired b: HierarchySwitched")),
        Expect(Emitted("hierarchy entities")),
        Expect(Waiting(3)),
        Complete("b"),
        Serve(&["a", "b'", "c"]),
    ]);
}

/// A switch to the hierarchy that holds does nothing.
#[test]
fn hierarchy_that_holds_is_not_switched_to() {
    Rig::cfq().run(&[
        Submit("a", read(0..16)),
        Expect(dispatched("a")),
        SetHierarchy(Hierarchy::LeafWeight),
        Expect(NotEmitted("hierarchy")),
        Expect(NotEmitted("expired")),
        SetHierarchy(Hierarchy::Flat),
        Expect(Emitted("hierarchy flat")),
        Complete("a"),
    ]);
}

/// A scheduler without a hierarchy to choose refuses, and CFQ has it again when it comes back.
#[test]
fn hierarchy_is_kept_over_schedulers_that_have_none() {
    let mut rig = Rig::cfq().in_hierarchy(Hierarchy::Flat);
    for kind in SchedulerKind::ALL.into_iter().filter(|&kind| kind != SchedulerKind::Cfq) {
        let now = rig.now;
        rig.elevator.switch(now, AnyScheduler::new(kind, Recorder::default()));
        assert_eq!(rig.elevator.hierarchy(), None);
        let refused = rig.elevator.set_hierarchy(now, Hierarchy::Entities).expect_err("none");
        let allowed = "has no hierarchy to choose; cfq has: leaf-weight, flat, entities";
        assert_eq!(refused.to_string(), format!("{kind} {allowed}"));
    }
    rig.elevator.switch(rig.now, AnyScheduler::new(SchedulerKind::Cfq, Recorder::default()));
    assert_eq!(rig.elevator.hierarchy(), Some(Hierarchy::Flat));
}
