//! What a queue and a child group are to each other: who is alone in its group, whose class goes
//! first, and where they come in.
//!
//! Times are in ms, and vdisktimes in 10⁹. A charge of `t` moves a queue of level 4 by
//! `t` × 4.096 × 500 / 484, and a group by `t` × 4.096 × 500 / its weight.

use crate::cfq::hierarchies::{BY_VDISKTIME, FAR, assert_parts, readers, rig};
use crate::rig::*;
use paternoster::{Device, Hierarchy, SchedulerKind};

/// Slices are 10 ms from the first completion on. The root's reader has one from 0.95 to 10.95, and
/// at 10.45 less than a tick is left. If it is alone its slice is stretched, and its next request,
/// which comes at once, ends it. If the group is an entity beside it there is nothing to keep: the
/// slice ends with the first completion after 10.95, at 11.4, and the reader leaves.
///
/// The group's reader is alone in any case: it has a slice from 11.4 or 12.35 on, and 9.5 ms later
/// half a ms of that is left. Then the group has come from 0.2 to 39.112, and is behind the root,
/// which is at 19.456. Where both are entities, the reader was at 32.768, the jump of 8 ms, and the
/// group 0.2 behind; when that was chosen it was the minimum, and behind that the reader has come
/// back: at 65.736, where the group is at 32.968 + 38.912 = 71.88.
#[test]
fn slice_is_stretched_for_the_only_entity_of_a_group() {
    let side_by_side = [
        "0 ms: active r",
        "10.45 ms: wait busy r",
        "10.45 ms: active a",
        "20.9 ms: wait busy a",
        "20.9 ms: active r",
    ];
    let with_the_group =
        ["0 ms: active r", "11.4 ms: active a", "21.85 ms: wait busy a", "21.85 ms: active r"];
    let rows: [(Hierarchy, &[&str]); 2] =
        [(Hierarchy::Flat, &side_by_side), (Hierarchy::Entities, &with_the_group)];
    for (hierarchy, emitted) in rows {
        let rig = rig(hierarchy, 10).group("/a", 500).task("r", "be/4", ROOT);
        let mut run = rig.task("a", "be/4", "/a").served(1, us(950));
        run.issues("r", Stream::reads(16));
        run.issues("a", Stream::reads(16).from(FAR).at(us(100))).until(us(21_850));
        assert_eq!(run.emitted(&["active", "wait busy"]), emitted, "{hierarchy}");
    }
}

/// The root's reader has 8 requests in flight before the group's comes, and one more waits. Its
/// slice is 10 to 13. When the group's second reader comes at 13.5, the device is held for the root
/// until the completion at 20 if the reader is alone in it, and else is the group's.
#[test]
fn device_is_held_for_the_only_entity_of_a_group_while_its_requests_are_in_flight() {
    for (hierarchy, at) in [(Hierarchy::Flat, ms(20)), (Hierarchy::Entities, us(13_500))] {
        let rig = rig(hierarchy, 3).depth(31).group("/b", 500).task("r", "be/4", ROOT);
        let mut run = rig.task("b", "be/4", "/b").task("b2", "be/4", "/b").served(1, ms(10));
        run.issues("r", Stream::reads(16).depth(8));
        run.issues("b", Stream::reads(16).from(FAR).at(ms(1)));
        run.issues("b2", Stream::reads(16).from(2 * FAR).at(us(13_500))).until(ms(20));
        assert_eq!(run.dispatch_times("b"), [at], "{hierarchy}");
    }
}

/// A reader that thinks for 1 ms, in the root or in a group, beside a group with one that always
/// has a request waiting. The device is one that idles for groups alone.
#[test]
fn device_idles_for_the_only_entity_of_a_group() {
    let rows = [
        (Hierarchy::Flat, ROOT, true),
        (Hierarchy::Flat, "/a", true),
        (Hierarchy::Entities, ROOT, false),
        (Hierarchy::Entities, "/a", true),
    ];
    for (hierarchy, group, is_idled_for) in rows {
        let rig = Rig::on(Device::solid_state(1), SchedulerKind::Cfq).without_merging();
        let rig = rig.in_hierarchy(hierarchy).group("/a", 500).group("/b", 500);
        let mut run = rig.task("t", "be/4", group).task("b", "be/4", "/b").served(1, ms(1));
        run.issues("t", Stream::reads(16).think(ms(1)));
        run.issues("b", Stream::reads(16).from(FAR).depth(2)).until(ms(500));
        let idles = run.emitted(&["idles"]);
        let for_it = |line: &String| line.ends_with("idles t: 8 ms for its group");
        assert!(idles.iter().all(for_it), "{hierarchy}: {idles:?}");
        assert_eq!(!idles.is_empty(), is_idled_for, "{hierarchy}: in {group}");
    }
}

/// All are at the vdisktime of the last one, and each goes behind it with its one request, whatever
/// it is charged: 1 ms on a disk, and 1 request where requests are charged.
#[test]
fn queues_of_the_idle_class_are_served_in_turn() {
    for hierarchy in BY_VDISKTIME {
        for device in [Device::disk(1), Device::solid_state(1)] {
            let rig = Rig::on(device, SchedulerKind::Cfq).without_merging().set("group_idle", 0);
            let tasks = [("1", "idle", ROOT), ("2", "idle", ROOT), ("3", "idle", ROOT)];
            let mut run = readers(rig.in_hierarchy(hierarchy), &tasks);
            run.until(ms(8));
            let served = ["1.0", "2.0", "3.0", "1.1", "2.1", "3.1", "1.2", "2.2", "3.2"];
            assert_eq!(run.dispatched(), served, "{hierarchy}");
        }
    }
}

/// A class counts within a group. Where the group is an entity of the root it is best-effort there,
/// whatever is in it: so the idle class of the root starves beside it, and it starves beside the
/// real-time class of the root.
#[test]
fn group_is_best_effort_to_its_parent_whatever_is_in_it() {
    let both = &["a", "r"][..];
    let rows = [
        (Hierarchy::Flat, "idle", "be/4", both),
        (Hierarchy::Flat, "rt/4", "be/4", both),
        (Hierarchy::Entities, "idle", "be/4", &["a"]),
        (Hierarchy::Entities, "rt/4", "be/4", &["r"]),
        (Hierarchy::Entities, "be/4", "rt/4", both),
        (Hierarchy::Entities, "be/4", "idle", both),
        (Hierarchy::Entities, "idle", "idle", &["a"]),
    ];
    for (hierarchy, of_root, of_group, served) in rows {
        let rig = rig(hierarchy, 10).group("/a", 500);
        let mut run = readers(rig, &[("r", of_root, ROOT), ("a", of_group, "/a")]);
        // What came first has been served.
        run.until(ms(50)).until(ms(1000));
        let is_served = |task: &&str| run.dispatch_times(task).iter().any(|&at| at > ms(50));
        let found: Vec<_> = ["a", "r"].into_iter().filter(is_served).collect();
        assert_eq!(found, served, "{hierarchy}: {of_root} beside {of_group} in a group");
    }
}

/// On a device that never idles for a queue no queue has an idle window, so queues and groups are
/// on another tree than on a disk. Were they on two trees these would have time by number, 2 : 1.
/// By weight it is 968 : 50, and all are charged the requests that they dispatched.
#[test]
fn queues_and_groups_compete_by_weight_on_a_device_that_never_idles() {
    let rig = Rig::on(Device::solid_state(1), SchedulerKind::Cfq).without_merging();
    let rig = rig.in_hierarchy(Hierarchy::Entities).set("slice_sync", 10).group("/a", 50);
    let mut run = readers(rig, &[("1", "be/4", ROOT), ("2", "be/4", ROOT), ("a", "be/4", "/a")]);
    run.until(ms(20_000));
    assert_parts(&mut run, &[("1", 475), ("2", 475), ("a", 49)]);
}

/// Queues and groups change trees alike when `slice_idle` becomes 0, and when it is set again. By
/// weight it is 484 : 100; on two trees it would be 1 : 1.
#[test]
fn queues_and_groups_compete_by_weight_after_idle_times_were_turned_off_and_on() {
    let rig = rig(Hierarchy::Entities, 10).group("/a", 100);
    let mut run = readers(rig, &[("r", "be/4", ROOT), ("a", "be/4", "/a")]);
    for (slice_idle, until) in [(8, 10_000), (0, 20_000), (8, 30_000)] {
        run.rig.run(&[Set("slice_idle", slice_idle)]).timed_events();
        run.until(ms(until));
        assert_parts(&mut run, &[("r", 829), ("a", 171)]);
    }
}

/// They come in the opposite order while another reader of level 4 is served, at whose vdisktime,
/// 327.68, the minimum is: level p joins at 327.68 + p × 81.92. In Linux's own hierarchy the offset
/// of a level depends on who is there when it comes.
#[test]
fn newcomers_of_all_levels_are_served_in_the_order_of_levels() {
    let levels = [
        ("7", "be/7"),
        ("6", "be/6"),
        ("5", "be/5"),
        ("4", "be/4"),
        ("3", "be/3"),
        ("2", "be/2"),
        ("1", "be/1"),
        ("0", "be/0"),
    ];
    for hierarchy in BY_VDISKTIME {
        let rig = levels
            .iter()
            .fold(rig(hierarchy, 100), |rig, (name, io_prio)| rig.task(name, io_prio, ROOT));
        let mut run = rig.served(1, ms(1));
        run.issues(MAIN, Stream::reads(16).count(1));
        for (place, (name, _)) in (1..).zip(levels) {
            run.issues(name, Stream::reads(16).from(place * FAR).at(us(100)).count(1));
        }
        run.until(ms(200));
        let served = ["main.0", "0.0", "1.0", "2.0", "3.0", "4.0", "5.0", "6.0", "7.0"];
        assert_eq!(run.dispatched(), served, "{hierarchy}");
    }
}

/// Groups of weights 500, 250 and 1000 below one another.
fn three_deep(rig: Rig) -> Rig {
    let rig = rig.group("/a", 500).group("/a/b", 250).group("/a/b/c", 1000);
    rig.task("r", "be/4", ROOT).task("a", "be/4", "/a").task("c", "be/4", "/a/b/c")
}

/// The last group of the path has 50 requests, from 101 on, for which the device idles in vain from
/// 151 to 159. That is charged 57 ms, from the first completion at 102 on.
#[test]
fn groups_without_an_entity_leave_from_the_bottom_up() {
    let all = ["159 ms: left /a/b/c", "159 ms: left /a/b", "159 ms: left /a"];
    for (hierarchy, beside, left) in [
        (Hierarchy::Entities, "r", &all[..]),
        (Hierarchy::Entities, "a", &all[..2]),
        (Hierarchy::Flat, "r", &all[..1]),
    ] {
        let mut run = three_deep(rig(hierarchy, 100)).served(1, ms(1));
        run.issues(beside, Stream::reads(16).depth(2));
        run.issues("c", Stream::reads(16).from(FAR).depth(2).count(50)).until(ms(300));
        assert_eq!(run.emitted(&["left"]), left, "{hierarchy}, beside {beside}");
    }
}

/// The vdisktimes of the root's reader r and of /a on the root's tree, and of /a/b/c on that of
/// /a/b:
///
/// ```text
///   ms        r       /a       /a/b/c
///     0   327.68   327.88       0       c comes: each joins the tree of the next
///   101   750.82
///   159            left       116.736   57 ms, which are forgotten
///   260  1173.96
///   300           1174.16       0       c comes back while r is at 1173.96; /a/b's minimum is 0
///   361  1597.1
///   462           1583.76     204.8
///   519            left       319.488   56 ms; when it was chosen the minimum became 204.8
///   600           1597.3      204.8     c comes back
///   620  2020.24
///   721           2006.9      409.6
///   822           2416.5      614.4
/// ```
///
/// If /a had kept its charge of 57 ms it would be at 561.35 at 361, and have three slices in a row.
#[test]
fn groups_come_in_behind_the_last_entity_and_forget_what_they_were_charged() {
    let mut run = three_deep(rig(Hierarchy::Entities, 100)).served(1, ms(1));
    run.issues("r", Stream::reads(16).depth(2));
    let of_c = Stream::reads(16).from(FAR).depth(2);
    run.issues("c", of_c.count(50)).until(ms(299));
    run.issues("c", of_c.at(ms(300)).count(150)).until(ms(599));
    run.issues("c", of_c.at(ms(600))).until(ms(822));
    let emitted = run.emitted(&["active", "expired c"]);
    let short = |line: &String| match line.split_once(": expired c") {
        Some((at, rest)) => {
            let vdisktime = rest.split_once("vdisktime ").expect("it is in the line").1;
            format!("{at}: c at {}", vdisktime.split(',').next().expect("a number"))
        }
        None => line.clone(),
    };
    let expected = [
        "0 ms: active r",
        "101 ms: active c",
        "159 ms: c at 116736000000",
        "159 ms: active r",
        "260 ms: active r",
        "361 ms: active c",
        "462 ms: c at 204800000000",
        "462 ms: active c",
        "519 ms: c at 319488000000",
        "519 ms: active r",
        "620 ms: active c",
        "721 ms: c at 409600000000",
        "721 ms: active c",
        "822 ms: c at 614400000000",
        "822 ms: active r",
    ];
    assert_eq!(emitted.iter().map(short).collect::<Vec<_>>(), expected);
}
