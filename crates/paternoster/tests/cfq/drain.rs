//! Giving up what waits: another scheduler comes, or nobody wants it any more.

use crate::rig::*;
use paternoster::SchedulerKind;

const FAR: u64 = 1_000_000;

/// Queues of two groups and three classes, one of them active.
fn busy() -> Rig {
    let rig = Rig::cfq().without_merging().depth(0).group("/a", 500);
    let mut rig = rig.task("idle", "idle", ROOT).task("rt", "rt/4", ROOT).task("a", "be/4", "/a");
    rig.run(&[
        Submit("i", read(0..16).by("idle")),
        Submit("a", read(FAR..FAR + 16).by("a")),
        Submit("a2", read(100..116).by("a")),
        Submit("w", write(2 * FAR..2 * FAR + 16).by("a")),
        Submit("rt", read(3 * FAR..3 * FAR + 16).by("rt")),
        SetDepth(1),
        Expect(dispatched("rt")),
        Submit("rt2", read(4 * FAR..4 * FAR + 16).by("rt")),
    ]);
    rig
}

/// The next scheduler has them in order of arrival; what is in the device completes as ever.
#[test]
fn next_scheduler_gets_what_waits_in_order_of_arrival() {
    let mut rig = busy();
    rig.run(&[SwitchTo(SchedulerKind::None)]).run(&[
        Expect(Told("expired rt: Drain, used 1 ms, charged 1 ms, no residue, sent 1")),
        Expect(Told("drained 5")),
        Expect(Nothing),
        Complete("rt"),
        Serve(&["i", "a", "a2", "w", "rt2"]),
        Expect(Nothing),
    ]);
}

/// In the order of groups, and in a group best effort before real time before idle, of a class
/// async before sync. Each turn costs a tick. The root, alone as it joined, is at 4096000000 after
/// the first, and its others, at 1000 of 1500, cost (1000000 << 24) / 2730 = 6145500366 each; the
/// group joined at 200000000, and its cost twice that. So: the group, at 0.2, to 12.5; the root, at
/// 4.1, to 10.2 and 16.4; the group; the root.
#[test]
fn each_queue_is_drained_in_a_turn() {
    busy().run(&[
        Submit("be", read(5 * FAR..5 * FAR + 16)),
        SwitchTo(SchedulerKind::None),
        Expect(Told("expired rt: Drain")),
        Expect(Told("active async a")),
        Expect(Told("active main")),
        Expect(Told("active rt")),
        Expect(Told("active a")),
        Expect(Told("left /a")),
        Expect(Told("active idle")),
        Expect(Told("left /")),
        Expect(Told("drained 6")),
    ]);
}

#[test]
fn cfq_that_comes_back_knows_nothing_of_before() {
    let mut rig = busy();
    rig.run(&[
        Complete("rt"),
        SwitchTo(SchedulerKind::None),
        SwitchTo(SchedulerKind::Cfq),
        Expect(Number("queues", 4)),
        Expect(Number("busy_queues", 4)),
        Expect(Number("busy_groups", 2)),
        Expect(Number("in_driver", 0)),
        Expect(Number("queued", 5)),
    ]);
    assert_eq!(rig.turn_stats("/a").dequeue, 0);
}

/// A completion of what another scheduler sent is none of its own.
#[test]
fn cfq_does_not_hear_of_what_was_sent_before_it_came() {
    Rig::none().without_merging().task("a", "be/4", ROOT).depth(2).run(&[
        Submit("before", read(0..16).by("a")),
        Expect(dispatched("before")),
        Submit("a", read(100..116).by("a")),
        SwitchTo(SchedulerKind::Cfq),
        Expect(dispatched("a")),
        Expect(Number("in_driver", 1)),
        Complete("before"),
        Expect(Untold("slice")),
        Expect(Number("in_driver", 1)),
        Complete("a"),
        Expect(Told("slice a: 100 ms")),
    ]);
}

#[test]
fn what_waits_is_given_up_in_order_of_arrival() {
    let mut rig = busy();
    rig.run(&[
        Cancel(&["i", "a", "a2", "w", "rt2"]),
        Expect(Number("busy_queues", 0)),
        Expect(Number("busy_groups", 0)),
        Expect(Number("queued", 0)),
        Expect(Number("in_driver", 1)),
        // Work goes on.
        Submit("new", read(200..216).by("a")),
        Expect(Nothing),
        Complete("rt"),
        Expect(dispatched("new")),
    ]);
}

/// With the turn the timer ends, too.
#[test]
fn nobody_is_waited_for_when_all_is_given_up() {
    Rig::cfq().run(&[
        Submit("a", read(0..16)),
        Serve(&["a"]),
        Expect(Timeout(Some(ms(8)))),
        Cancel(&[]),
        Expect(Timeout(None)),
        Expect(Number("busy_queues", 0)),
    ]);
}

#[test]
fn request_that_was_handed_back_is_given_up_too() {
    Rig::cfq().without_merging().run(&[
        Submit("a", read(0..16)),
        Submit("b", read(100..116)),
        Expect(dispatched("a")),
        Requeue("a"),
        Cancel(&["a", "b"]),
        Expect(Number("in_driver", 0)),
        Expect(Number("queues", 1)),
        Exit("main"),
        Expect(Number("queues", 0)),
    ]);
}
