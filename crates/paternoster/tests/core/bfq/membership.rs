//! Queues and those who hold them: I/O contexts that move and exit, groups that go, and
//! priorities that change.

use crate::bfq::{FAR, fast, plain_disk, plain_fast};
use crate::rig::*;

/// At its next bio, with what it holds; its service ends.
#[test]
fn queue_goes_with_its_task_to_another_group() {
    let mut rig = plain_disk(1).group("/g", 100).task("t", "be/4", ROOT);
    rig.run(&[
        Submit("1", read(0..8).by("t")),
        Submit("2", read(8..16).by("t")),
        Expect(dispatched("1")),
        Move("t", "/g"),
        Expect(NotEmitted("expired")),
        Submit("3", read(16..24).by("t")),
        Expect(Emitted("moved t")),
        Expect(Emitted("expired t: Preempted, charged 8 of 10922")),
        Expect(NotEmitted("made")),
        Expect(Number("queues", 1)),
        Complete("1"),
        Serve(&["2", "3"]),
        Exit("t"),
        RemoveGroup("/g"),
        Expect(Number("queues", 0)),
    ]);
}

/// Another has it, too.
#[test]
fn shared_queue_stays_behind() {
    fast(1).group("/g", 100).task("a", "be/4", ROOT).task("b", "be/4", ROOT).run(&[
        Submit("a", read(0..8).by("a")),
        Submit("b", read(FAR..FAR + 8).by("b")),
        Expect(Emitted("merged b into a")),
        Serve(&["a", "b"]),
        Move("b", "/g"),
        Submit("b", read(0..8).by("b")),
        Expect(Emitted("made b in /g")),
        Expect(Number("queues", 2)),
    ]);
}

/// A queue of async requests is the group's.
#[test]
fn async_queue_stays_behind() {
    plain_disk(1).group("/g", 100).task("t", "be/4", "/g").run(&[
        Submit("w", write(0..8).by("t")),
        Serve(&["w"]),
        Move("t", ROOT),
        Submit("w2", write(0..8).by("t")),
        Expect(Emitted("made async t in /")),
        Expect(Number("queues", 2)),
        RemoveGroup("/g"),
        Expect(Number("queues", 1)),
    ]);
}

/// Its task made no request since it moved. It goes to the root first, with what was learned: 8 ms
/// in vain have cost 4 × 512 of 10922.
#[test]
fn queue_outlives_the_group_that_its_task_has_left() {
    plain_disk(1).group("/g", 100).group("/h", 100).task("t", "be/4", "/g").run(&[
        Submit("1", read(0..8).by("t")),
        Serve(&["1"]),
        Advance(ms(8)),
        TimerFires,
        Expect(Emitted("expired t: TooIdle")),
        Move("t", "/h"),
        RemoveGroup("/g"),
        Expect(NotEmitted("freed")),
        Expect(Number("queues", 1)),
        Advance(ms(100)),
        Submit("2", read(8..16).by("t")),
        Expect(Emitted("moved t")),
        Expect(NotEmitted("made")),
        Expect(dispatched("2")),
        Expect(Emitted("in service t, budget 8874")),
        Complete("2"),
        Exit("t"),
        RemoveGroup("/h"),
        Expect(Number("queues", 0)),
    ]);
}

/// The device idles for it as its group is removed: that ends.
#[test]
fn service_ends_as_the_group_goes() {
    plain_disk(1).group("/g", 100).task("t", "be/4", "/g").run(&[
        Submit("1", read(0..8).by("t")),
        Serve(&["1"]),
        Expect(Timeout(Some(ms(8)))),
        Move("t", ROOT),
        Expect(Timeout(Some(ms(8)))),
        RemoveGroup("/g"),
        Expect(Emitted("expired t: Preempted")),
        Expect(Timeout(None)),
        Submit("2", read(8..16).by("t")),
        Serve(&["2"]),
        Expect(Emitted("idles t: 8 ms")),
        Expect(Number("queues", 1)),
    ]);
}

/// With groups gone the scenario is symmetric again.
#[test]
fn group_that_is_gone_is_not_at_work() {
    plain_fast(1).group("/g", 100).task("t", "be/4", "/g").task("u", "be/4", ROOT).run(&[
        Submit("1", read(0..8).by("t")),
        Serve(&["1"]),
        Move("t", ROOT),
        RemoveGroup("/g"),
        Submit("u", read(FAR..FAR + 8).by("u")),
        Expect(dispatched("u")),
        Advance(ms(181)),
        Submit("m", read(2 * FAR..2 * FAR + 8)),
        Expect(Emitted("preempted u by main: NotIdling")),
    ]);
}

/// At once, without charge: nothing is emitted of an end of its service.
#[test]
fn queue_that_the_device_idles_for_goes_with_its_task() {
    plain_disk(1).task("t", "be/4", ROOT).run(&[
        Submit("1", read(0..8).by("t")),
        Serve(&["1"]),
        Expect(Emitted("idles t: 8 ms")),
        Exit("t"),
        Expect(Timeout(None)),
        Expect(NotEmitted("expired")),
        Expect(Emitted("freed t")),
        Expect(Number("busy_queues", 0)),
        Expect(Number("queues", 0)),
    ]);
}

/// Even one that another task uses.
#[test]
fn service_of_a_shared_queue_ends_with_one_of_its_tasks() {
    plain_fast(1).task("a", "be/4", ROOT).task("b", "be/4", ROOT).run(&[
        Submit("a", read(0..8).by("a")),
        Submit("b", read(FAR..FAR + 8).by("b")),
        Submit("b2", read(FAR + 8..FAR + 16).by("b")),
        Expect(Emitted("merged b into a")),
        Serve(&["a"]),
        Exit("a"),
        Expect(NotEmitted("expired")),
        Serve(&["b"]),
        Expect(Emitted("in service a")),
        Expect(Emitted("in service a")),
        Expect(Number("queues", 1)),
    ]);
}

/// It is noticed at the next request, and counts from when the queue is scheduled next: 80 then.
#[test]
fn priority_may_change() {
    plain_disk(1).task("t", "be/4", ROOT).run(&[
        Submit("1", read(0..8).by("t")),
        Submit("2", read(8..16).by("t")),
        Expect(dispatched("1")),
        Expect(Emitted("in service t, budget 10922, weight 40")),
        SetPriority("t", "be/0"),
        Expect(NotEmitted("priority")),
        Submit("3", read(16..24).by("t")),
        Expect(Emitted("priority t: be/0")),
        Advance(ms(125)),
        Complete("1"),
        Expect(Emitted("expired t: Timeout")),
        Expect(dispatched("2")),
        Expect(Emitted("in service t, budget 16384, weight 80")),
    ]);
}

#[test]
fn async_requests_go_to_the_queue_of_the_new_priority() {
    plain_disk(1).task("t", "be/4", ROOT).run(&[
        Submit("1", write(0..8).by("t")),
        Expect(Emitted("made async t in /")),
        SetPriority("t", "be/0"),
        Submit("2", write(8..16).by("t")),
        Expect(Emitted("made async t in /")),
        Expect(Number("queues", 2)),
        SetPriority("t", "be/4"),
        Submit("3", write(16..24).by("t")),
        Expect(NotEmitted("made")),
    ]);
}

/// It became busy as one of best effort and is no longer as one of real time: from then on there
/// seem to be both, and the device idles for queues for which it does not otherwise.
#[test]
fn change_of_class_while_a_queue_is_busy_spoils_the_count_of_classes() {
    for (prio, emitted) in
        [("be/5", Emitted("preempted b by c: NotIdling")), ("rt/4", NotEmitted("preempted"))]
    {
        let rig = plain_fast(2).task("a", "be/4", ROOT).task("b", "be/4", ROOT);
        rig.task("c", "be/4", ROOT).run(&[
            Submit("1", read(0..8).by("a")),
            Submit("2", read(8..16).by("a")),
            Expect(dispatched("1")),
            SetPriority("a", prio),
            Submit("3", read(16..24).by("a")),
            Advance(ms(125)),
            Complete("1"),
            Expect(Emitted("expired a: Timeout")),
            Serve(&["2", "3"]),
            Advance(ms(8)),
            TimerFires,
            Expect(Number("busy_queues", 0)),
            Submit("b", read(FAR..FAR + 8).by("b")),
            Expect(dispatched("b")),
            Advance(ms(181)),
            Submit("c", read(2 * FAR..2 * FAR + 8).by("c")),
            Expect(emitted),
        ]);
    }
}

/// 500 for one device, beside 300; without that it is 100 again.
#[test]
fn weight_for_one_device_falls_back() {
    let rig = plain_disk(2).group("/a", 100).group("/b", 300);
    rig.task("a", "be/4", "/a").task("b", "be/4", "/b").run(&[
        SetDeviceWeights("/a", Some(500), None),
        Submit("b", read(0..8).by("b")),
        Expect(dispatched("b")),
        Submit("a", read(FAR..FAR + 8).by("a")),
        Expect(Emitted("preempted b by a: Weight")),
        Expect(dispatched("a")),
        Complete("a"),
        Complete("b"),
        Advance(ms(100)),
        TimerFires,
        SetDeviceWeights("/a", None, None),
        Submit("b2", read(8..16).by("b")),
        Expect(dispatched("b2")),
        Submit("a2", read(FAR + 8..FAR + 16).by("a")),
        Expect(NotEmitted("preempted")),
    ]);
}

/// A queue into which others were to merge outlives its own tasks, and these exit before they go:
/// it has no user any more, and it is still in service, with the device idling, when its group
/// goes.
#[test]
fn group_may_go_whose_queue_in_service_has_no_users() {
    let rig = plain_disk(0).group("/g", 100).task("a", "be/4", "/g").task("b", "be/4", "/g");
    let mut rig = rig.task("c", "be/4", "/g");
    rig.run(&[
        Submit("a", read(0..8).by("a")),
        Submit("b", read(FAR..FAR + 8).by("b")),
        Submit("b2", read(8..16).by("b")),
        Expect(Emitted("merged b into a")),
        Submit("c", read(5 * FAR..5 * FAR + 8).by("c")),
        Submit("b3", read(5 * FAR + 8..5 * FAR + 16).by("b")),
        Expect(Emitted("to merge a into c")),
        Expect(Emitted("merged a into c")),
        Exit("b"),
        Exit("c"),
        SetDepth(1),
    ]);
    rig.run(&[
        Serve(&["a", "b2"]),
        Advance(ms(8)),
        TimerFires,
        Serve(&["b"]),
        Serve(&["c", "b3"]),
        Expect(Emitted("idles c: 8 ms")),
        Exit("a"),
        RemoveGroup("/g"),
        Expect(Number("queues", 0)),
    ]);
}

/// A task that leaves a queue that it shares for another group gets a new queue there, and with
/// another stable-merge candidate: the one before is dropped.
#[test]
fn task_drops_its_stable_merge_candidate_for_another_one() {
    let rig =
        plain_disk(0).group("/g", 100).task("candidate", "be/4", ROOT).task("near", "be/4", ROOT);
    let mut rig = rig.task("a", "be/4", ROOT).task("other", "be/4", "/g");
    rig.run(&[
        Submit("1", read(FAR..FAR + 8).by("candidate")),
        Submit("2", read(5 * FAR..5 * FAR + 8).by("near")),
        Submit("3", read(0..8).by("a")),
        Submit("4", read(5 * FAR + 8..5 * FAR + 16).by("a")),
        Expect(Emitted("merged a into near")),
        Submit("5", read(0..8).by("other")),
        Move("a", "/g"),
        Submit("6", read(FAR..FAR + 8).by("a")),
        Cancel(&["1", "2", "3", "4", "5", "6"]),
        Exit("candidate"),
        Exit("near"),
        Exit("a"),
        Exit("other"),
        Expect(Number("queues", 0)),
    ]);
}
