//! Which queue is in service, by B-WF2Q+, and the classes.

use crate::bfq::{FAR, plain_disk, plain_fast};
use crate::rig::*;

const LEVELS: [&str; 8] = ["be/0", "be/1", "be/2", "be/3", "be/4", "be/5", "be/6", "be/7"];

/// Equal budgets, of which the heavier finishes first, whoever comes first.
#[test]
fn heavier_queues_finish_first() {
    let mut rig = plain_disk(0).set("slice_idle", 0);
    for level in LEVELS.into_iter().rev() {
        rig = rig.task(level, level, ROOT);
    }
    for (level, n) in LEVELS.into_iter().rev().zip(0..) {
        rig.run(&[Submit(level, read(n * FAR..n * FAR + 8).by(level))]);
    }
    rig.run(&[SetDepth(1)]);
    assert_eq!(rig.serve_all(), LEVELS);
}

#[test]
fn queues_that_finish_at_one_time_are_served_in_order_of_arrival() {
    let mut rig = plain_disk(0).set("slice_idle", 0);
    let names = ["c", "a", "e", "b", "d"];
    for (name, n) in names.into_iter().zip(0..) {
        rig = rig.task(name, "be/4", ROOT);
        rig.run(&[Submit(name, read(n * FAR..n * FAR + 8).by(name))]);
    }
    rig.run(&[SetDepth(1)]);
    assert_eq!(rig.serve_all(), names);
}

/// Linux looks for the queue that finishes first only along one way down its tree. Finishes are
/// starts plus budgets by weight, in sectors a unit of weight. r, the root, goes from 0 to 20000 /
/// 40 = 500. b, to the left of it, begins at 800 / 80 = 10, after 800 sectors were served of it,
/// and so is not eligible at 800 / (80 + 40 + 40) = 5. n, to the right of that, came at 5 and
/// finishes at 5 + 10922 / 40 = 278. That r is eligible is seen first, and n is not found.
#[test]
fn queue_that_finishes_first_may_be_missed() {
    let rig = plain_disk(0).set("slice_idle", 0).task("b", "be/0", ROOT).task("r", "be/4", ROOT);
    let rig = rig.task("large", "be/4", ROOT).task("rt", "rt/4", ROOT).task("n", "be/4", ROOT);
    { rig }.run(&[
        Submit("b", read(0..800).by("b")),
        Submit("b2", read(800..808).by("b")),
        Submit("r", read(FAR..FAR + 20_000).by("r")),
        Submit("large", read(2 * FAR..2 * FAR + 40_000).by("large")),
        SetDepth(1),
        Expect(dispatched("b")),
        Submit("rt", read(3 * FAR..3 * FAR + 8).by("rt")),
        Expect(Emitted("expired b: Preempted, charged 800 of 10922")),
        Submit("n", read(4 * FAR..4 * FAR + 8).by("n")),
        Complete("b"),
        Serve(&["rt", "r"]),
        // As r was put in service, only n was eligible of the others, and so it is next.
        Serve(&["n", "b2", "large"]),
    ]);
}

/// By weight, of the time that they are charged for.
#[test]
fn queues_have_the_device_by_weight() {
    for (levels, parts) in [(["be/0", "be/4"], [2, 1]), (["be/7", "be/4"], [1, 4])] {
        let rig = plain_fast(1).task("a", levels[0], ROOT).task("b", levels[1], ROOT);
        let mut run = rig.served(1, ms(1));
        run.issues("a", Stream::reads(8).depth(2));
        run.issues("b", Stream::reads(8).from(FAR).depth(2)).until(ms(30_000));
        let [a, b] = ["a", "b"].map(|task| run.dispatch_times(task).len());
        // A few services of 125 ms more or less.
        let expected = 30_000 * parts[0] / (parts[0] + parts[1]);
        assert!(a.abs_diff(expected) <= 500, "{levels:?}: {a} and {b}");
    }
}

/// Groups by theirs, whatever is in them.
#[test]
fn groups_have_the_device_by_weight() {
    let rig = plain_fast(1).group("/a", 100).group("/b", 300);
    let rig = rig.task("a", "be/0", "/a").task("b", "be/7", "/b");
    let mut run = rig.served(1, ms(1));
    run.issues("a", Stream::reads(8).depth(2));
    run.issues("b", Stream::reads(8).from(FAR).depth(2)).until(ms(30_000));
    let a = run.dispatch_times("a").len();
    assert!(a.abs_diff(7_500) <= 250, "{a}");
}

/// The new weight counts from when the group is scheduled next.
#[test]
fn weight_of_a_group_may_change() {
    let rig = plain_fast(1).group("/a", 100).group("/b", 300);
    let rig = rig.task("a", "be/4", "/a").task("b", "be/4", "/b");
    let mut run = rig.served(1, ms(1));
    run.issues("a", Stream::reads(8).depth(2));
    run.issues("b", Stream::reads(8).from(FAR).depth(2)).until(ms(10_000));
    run.rig.run(&[SetWeight("/a", 900)]);
    let before = run.dispatch_times("a").len();
    run.until(ms(40_000));
    let a = run.dispatch_times("a").len() - before;
    assert!(a.abs_diff(22_500) <= 500, "{a}");
}

/// Real time before best effort before idle.
#[test]
fn classes_are_served_in_order() {
    let rig = plain_disk(0).set("slice_idle", 0).task("i", "idle", ROOT).task("be", "be/0", ROOT);
    let mut rig = rig.task("rt", "rt/7", ROOT);
    rig.run(&[
        Submit("i", read(0..8).by("i")),
        Submit("be", read(FAR..FAR + 8).by("be")),
        Submit("rt", read(2 * FAR..2 * FAR + 8).by("rt")),
        SetDepth(1),
    ]);
    assert_eq!(rig.serve_all(), ["rt", "be", "i"]);
}

/// More than 200 ms after it had its chance, as the other's service ends, every 125 ms. Its service
/// ends with its request.
#[test]
fn idle_class_has_a_request_now_and_then() {
    let mut run = plain_disk(1).task("be", "be/4", ROOT).task("i", "idle", ROOT).served(1, ms(1));
    run.issues("be", Stream::reads(8).depth(2));
    run.issues("i", Stream::reads(8).from(FAR)).until(ms(1000));
    assert_eq!(run.dispatch_times("i"), [ms(250), ms(501), ms(752)]);
    let emitted = [250, 501, 752].map(|at| format!("{at} ms: expired i: Exhausted"));
    assert_eq!(run.emitted_up_to(1, &["expired i"]), emitted);
}

/// Its requests are dispatched one after the other while no other queue is busy.
#[test]
fn idle_class_alone_is_served_on() {
    plain_disk(1).task("i", "idle", ROOT).run(&[
        Submit("i", read(0..8).by("i")),
        Submit("i2", read(8..16).by("i")),
        Serve(&["i"]),
        Expect(NotEmitted("expired")),
        Serve(&["i2"]),
        Expect(Emitted("expired i: NoMoreRequests, charged 16 of 10922")),
    ]);
}

/// 200 ms are not more than 200.
#[test]
fn idle_class_has_its_chance_after_more_than_200_ms() {
    let rig = plain_disk(1).set("timeout_sync", 100).task("be", "be/4", ROOT);
    let mut run = rig.task("i", "idle", ROOT).served(1, ms(1));
    run.issues("be", Stream::reads(8).depth(2));
    run.issues("i", Stream::reads(8).from(FAR)).until(ms(350));
    assert_eq!(run.dispatch_times("i"), [ms(300)]);
}

/// A group that went into service with its only queue stays the candidate of the root, as in Linux.
/// So no queue of a group that is busy already may preempt, of whatever class, but one that
/// makes its group busy may.
#[test]
fn group_in_service_hides_those_that_wait_beside_it() {
    for (waits, emitted) in
        [(true, NotEmitted("preempted")), (false, Emitted("preempted g by rt: Class"))]
    {
        let rig = plain_disk(0).group("/g", 500).group("/h", 100).task("g", "be/4", "/g");
        let mut rig = rig.task("h", "be/4", "/h").task("rt", "rt/4", "/h");
        rig.run(&[Submit("g", read(0..8).by("g"))]);
        if waits {
            rig.run(&[Submit("h", read(FAR..FAR + 8).by("h"))]);
        }
        rig.run(&[
            SetDepth(1),
            Expect(dispatched("g")),
            Submit("rt", read(2 * FAR..2 * FAR + 8).by("rt")),
            Expect(emitted),
        ]);
    }
}

/// Two groups of 100. The first has 4000 sectors served, when a second queue in it becomes busy:
/// the group is reinserted, from 4000 / 100 = 40 on, and again as the service ends, for the same
/// service, from 80 on. The other begins its second service at 6000 / 100 = 60. The time is 10000 /
/// 200 = 50: if the first began at 40, it would be its service.
#[test]
fn group_that_is_reinserted_in_service_is_charged_twice() {
    let rig = plain_disk(0).set("slice_idle", 0).group("/g", 100).group("/h", 100);
    let rig = rig.task("1", "be/4", "/g").task("2", "be/4", "/g").task("h", "be/4", "/h");
    { rig }.run(&[
        Submit("1", read(0..4000).by("1")),
        Submit("h", read(FAR..FAR + 6000).by("h")),
        SetDepth(1),
        Expect(dispatched("1")),
        Submit("2", read(5 * FAR..5 * FAR + 8).by("2")),
        Expect(Emitted("expired 1: Preempted, charged 4000 of 10922")),
        Complete("1"),
        Expect(dispatched("h")),
        Submit("h2", read(FAR + 6000..FAR + 11_000).by("h")),
        Complete("h"),
        Expect(dispatched("h2")),
        Expect(Emitted("expired h: Exhausted, charged 6000 of 10922")),
        Expect(Emitted("in service h")),
    ]);
}
