//! Groups in groups, their own requests, and the I/O contexts of one group.

use crate::rig::*;
use crate::wfq::{counts, submit};

/// p(300){a 100, b 200}, q(100){c}, d 200.
fn nested() -> Rig {
    let rig = Rig::wfq().set("depth", 1);
    let rig = rig.group("/p", 300).group("/p/a", 100).group("/p/b", 200);
    let rig = rig.group("/q", 100).group("/q/c", 100).group("/d", 200);
    let rig = rig.task("a", "be/4", "/p/a").task("b", "be/4", "/p/b");
    rig.task("c", "be/4", "/q/c").task("d", "be/4", "/d")
}

/// The parts of the next 6000 requests in thousandths, a after the other as in `tasks`.
fn parts(tasks: &[&'static str]) -> Vec<u32> {
    let mut rig = nested();
    for &task in tasks {
        submit(&mut rig, task, 6000);
    }
    let counts = counts(&mut rig, 6000);
    tasks.iter().map(|&task| (counts[task] + 3) / 6).collect()
}

/// Scenario 9. p has 300 of 600, of which a has a third; q 100 of 600, d 200 of 600. Without a, b
/// has all of p's; without p, q and d share by 100 : 200.
#[test]
fn group_shares_what_its_parent_gets_and_what_one_leaves_the_others_get() {
    assert_eq!(parts(&["a", "b", "c", "d"]), [167, 333, 167, 333]);
    assert_eq!(parts(&["b", "c", "d"]), [500, 167, 333]);
    assert_eq!(parts(&["c", "d"]), [333, 667]);
}

/// Scenario 10: 50 of 200.
#[test]
fn leaf_weight_counts_for_a_group_s_own_requests() {
    let rig = Rig::wfq().set("depth", 1).group("/g", 100).group("/g/child", 150);
    let mut rig = rig.task("own", "be/4", "/g").task("child", "be/4", "/g/child");
    rig.run(&[SetWeights("/g", 100, 50)]);
    submit(&mut rig, "own", 1000);
    submit(&mut rig, "child", 1000);
    assert_eq!(counts(&mut rig, 1000)["own"], 250);
}

/// Scenario 14: 65 ops against 1.25.
#[test]
fn contexts_of_one_group_share_by_cost() {
    let rig = Rig::wfq().set("depth", 1).set("cost", 3).group("/A", 100);
    let mut rig = rig.task("large", "be/4", "/A").task("small", "be/4", "/A");
    for at in 0..10 {
        rig.enter("large", read(10_000 * at..10_000 * at + 2048).by("large"));
    }
    submit(&mut rig, "small", 520);
    let counts = counts(&mut rig, 265);
    assert_eq!((counts["large"], counts["small"]), (5, 260));
}

/// Scenario 15, the first part.
#[test]
fn level_of_the_priority_is_a_weight_in_the_class() {
    let rig = Rig::wfq().set("depth", 1).group("/A", 100);
    let mut rig = rig.task("high", "be/0", "/A").task("low", "be/7", "/A");
    submit(&mut rig, "high", 900);
    submit(&mut rig, "low", 900);
    assert_eq!(counts(&mut rig, 900)["high"], 800);
}

#[test]
fn requests_stay_in_the_group_that_they_were_made_in() {
    let rig = Rig::wfq().set("depth", 1).group("/a", 100).group("/b", 300);
    let mut rig = rig.task("mover", "be/4", "/a").task("b", "be/4", "/b");
    submit(&mut rig, "mover", 400);
    submit(&mut rig, "b", 400);
    rig.run(&[Move("mover", "/b")]);
    assert_eq!(counts(&mut rig, 400)["mover"], 100);
}

#[test]
fn group_goes_with_what_was_left_of_a_task_that_moved_away() {
    let rig = Rig::wfq().set("depth", 1).group("/a", 100).task("mover", "be/4", "/a");
    let mut rig = rig;
    rig.run(&[
        Submit("one", read(0..8).by("mover")),
        Serve(&["one"]),
        Move("mover", ROOT),
        RemoveGroup("/a"),
        Submit("two", read(0..8).by("mover")),
        Serve(&["two"]),
        Exit("mover"),
    ]);
}

#[test]
fn task_that_exits_leaves_its_requests() {
    let rig = Rig::wfq().set("depth", 1).group("/a", 100).task("short", "be/4", "/a");
    let mut rig = rig;
    rig.run(&[
        Submit("one", read(0..8).by("short")),
        Submit("two", read(100..108).by("short")),
        Expect(dispatched("one")),
        Exit("short"),
        Complete("one"),
        Serve(&["two"]),
        RemoveGroup("/a"),
    ]);
}

/// On a rotational device a context is swept upwards.
#[test]
fn rotational_device_is_swept_in_each_context() {
    let rig = Rig::on(paternoster::Device::disk(4), paternoster::SchedulerKind::Wfq);
    let mut rig = rig.without_merging().set("depth", 1);
    rig.run(&[
        Submit("m", read(500..508)),
        Serve(&["m"]),
        Submit("d", read(400..408)),
        Submit("b", read(900..908)),
        Submit("a", read(600..608)),
        Submit("c", read(100..108)),
        Serve(&["a", "b", "c", "d"]),
    ]);
}
