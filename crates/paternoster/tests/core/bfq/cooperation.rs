//! Tasks that work on the same part of a disk: their queues merge.

use crate::bfq::{FAR, disk, plain_disk};
use crate::rig::*;

/// Two tasks that read alternate chunks, one after the other. The second's first request merges
/// nothing, for only the first's queue is busy; the first's next one does, as it finds the other's.
#[test]
fn merging_needs_two_busy_queues() {
    plain_disk(1).task("a", "be/4", ROOT).task("b", "be/4", ROOT).run(&[
        Submit("a", read(0..16).by("a")),
        Expect(dispatched("a")),
        Advance(ms(1)),
        Submit("b", read(16..32).by("b")),
        Expect(NotEmitted("merged")),
        Complete("a"),
        Submit("a2", read(32..48).by("a")),
        Expect(Emitted("to merge a into b")),
        Expect(Emitted("merged a into b")),
    ]);
}

/// Its second request, while its first keeps its own queue busy, is near where the queue in service
/// was last served: no farther than 8192 sectors from 16.
#[test]
fn queue_merges_with_the_one_in_service_near_its_head() {
    for (start, emitted) in [(8208, Emitted("merged b into a")), (8209, NotEmitted("merged"))] {
        plain_disk(2).task("a", "be/4", ROOT).task("b", "be/4", ROOT).run(&[
            Submit("a", read(0..16).by("a")),
            Expect(dispatched("a")),
            Submit("b", read(FAR..FAR + 8).by("b")),
            Expect(NotEmitted("merged")),
            Submit("b2", read(start..start + 8).by("b")),
            Expect(emitted),
        ]);
    }
}

/// Both before and behind it.
#[test]
fn queue_merges_with_the_one_whose_next_request_is_near() {
    for (start, emitted) in [
        (FAR + 8192, Emitted("merged b into a")),
        (FAR + 8193, NotEmitted("merged")),
        (FAR, Emitted("merged b into a")),
        (FAR - 8192, Emitted("merged b into a")),
        (FAR - 8193, NotEmitted("merged")),
    ] {
        for first in [0, 9 * FAR] {
            plain_disk(0).task("a", "be/4", ROOT).task("b", "be/4", ROOT).run(&[
                Submit("a", read(FAR..FAR + 8).by("a")),
                Submit("b", read(first..first + 8).by("b")),
                Submit("b2", read(start..start + 8).by("b")),
                Expect(emitted),
            ]);
        }
    }
}

/// It is nearest to itself, and no other is looked for then.
#[test]
fn queue_does_not_merge_with_itself() {
    plain_disk(0).task("a", "be/4", ROOT).task("b", "be/4", ROOT).run(&[
        Submit("a", read(FAR..FAR + 8).by("a")),
        Submit("b", read(0..8).by("b")),
        Submit("b2", read(8..16).by("b")),
        Expect(NotEmitted("merged")),
    ]);
}

/// The other has been served for a tenth of a second since it became busy: who comes near now does
/// so by chance.
#[test]
fn queues_merge_only_at_the_beginning() {
    for (at, emitted) in [(100, Emitted("merged b into a")), (101, NotEmitted("merged"))] {
        plain_disk(2).task("a", "be/4", ROOT).task("b", "be/4", ROOT).run(&[
            Submit("a", read(0..16).by("a")),
            Expect(dispatched("a")),
            Submit("b", read(FAR..FAR + 8).by("b")),
            Advance(ms(at)),
            Submit("b2", read(16..24).by("b")),
            Expect(emitted),
        ]);
    }
}

/// The same of the one that comes.
#[test]
fn queue_that_has_been_served_for_long_does_not_merge() {
    for (at, emitted) in [(100, Emitted("merged a into b")), (101, NotEmitted("merged"))] {
        plain_disk(2).task("a", "be/4", ROOT).task("b", "be/4", ROOT).run(&[
            Submit("a", read(0..16).by("a")),
            Expect(dispatched("a")),
            Submit("b", read(FAR..FAR + 8).by("b")),
            Advance(ms(at)),
            Submit("a2", read(FAR + 8..FAR + 16).by("a")),
            Expect(emitted),
        ]);
    }
}

/// Another class, the idle class, another group, and async requests do not; another level does.
#[test]
fn queues_of_different_kinds_do_not_merge() {
    let rig = || plain_disk(0).group("/g", 100).task("a", "be/4", ROOT).task("ai", "idle", ROOT);
    for (a, prio, group, emitted) in [
        ("a", "be/0", ROOT, Emitted("merged b into a")),
        ("a", "rt/4", ROOT, NotEmitted("merged")),
        ("ai", "idle", ROOT, NotEmitted("merged")),
        ("a", "be/4", "/g", NotEmitted("merged")),
    ] {
        rig().task("b", prio, group).run(&[
            Submit("a", read(0..8).by(a)),
            Submit("b", read(FAR..FAR + 8).by("b")),
            Submit("b2", read(8..16).by("b")),
            Expect(emitted),
        ]);
    }
    rig().task("b", "be/4", ROOT).run(&[
        Submit("a", read(0..8).by("a")),
        Submit("b", write(FAR..FAR + 8).by("b")),
        Submit("b2", write(8..16).by("b")),
        Expect(NotEmitted("merged")),
    ]);
}

/// With more than 19 seeks among the last 32 requests.
#[test]
fn seeky_queue_does_not_merge() {
    for (seeks, emitted) in [(18, Emitted("merged b into a")), (19, NotEmitted("merged"))] {
        let mut rig = plain_disk(0).task("a", "be/4", ROOT).task("b", "be/4", ROOT);
        rig.run(&[Submit("a", read(0..8).by("a"))]);
        // The first is none, and a queue begins with one to its name.
        for n in 1..=seeks + 1 {
            rig.run(&[Submit("b", read(n * FAR..n * FAR + 8).by("b"))]);
        }
        // Not a seek: what was learned counts after the search.
        rig.run(&[
            Expect(NotEmitted("merged")),
            Submit("b2", read(8..16).by("b")),
            Expect(emitted),
        ]);
    }
}

/// The other is raised then, but was not, being of another level.
#[test]
fn raising_goes_with_the_queue_that_merges() {
    disk(0).task("a", "be/3", ROOT).task("b", "be/4", ROOT).run(&[
        Submit("a", read(0..8).by("a")),
        Submit("b", read(FAR..FAR + 8).by("b")),
        Expect(Emitted("raised b: 30")),
        Submit("b2", read(8..16).by("b")),
        Expect(Emitted("merged b into a")),
        Expect(Emitted("raised a: 30, for 10500 ms")),
    ]);
}

/// What the first queue holds is served from there; what comes later goes to the other.
#[test]
fn requests_that_wait_stay_in_the_queue_that_merged() {
    plain_disk(0).set("slice_idle", 0).task("a", "be/4", ROOT).task("b", "be/4", ROOT).run(&[
        Submit("a", read(0..8).by("a")),
        Submit("b", read(FAR..FAR + 8).by("b")),
        Submit("b2", read(8..16).by("b")),
        Expect(Number("queues", 2)),
        SetDepth(1),
        Serve(&["a", "b2"]),
        Expect(Emitted("in service a")),
        Serve(&["b"]),
        Expect(Emitted("in service b")),
        Submit("b3", read(FAR + 8..FAR + 16).by("b")),
        Serve(&["b3"]),
        Expect(Emitted("in service a")),
        Expect(Number("queues", 1)),
    ]);
}

/// A bio is enough: it goes to the other queue, and so may become part of a request there.
#[test]
fn bio_that_continues_the_request_of_another_merges_the_queues_and_with_it() {
    Rig::bfq().depth(0).task("a", "be/4", ROOT).task("b", "be/4", ROOT).run(&[
        Submit("a", read(0..8).by("a")),
        Submit("b", read(FAR..FAR + 8).by("b")),
        BackMerge("b2", read(8..16).by("b"), "a"),
        Expect(Emitted("merged b into a")),
    ]);
}

/// Queues of two classes do not merge, so the bio makes a request of its own.
#[test]
fn bio_does_not_become_part_of_a_request_of_a_queue_that_is_not_its_own() {
    Rig::bfq().depth(0).task("a", "be/4", ROOT).task("rt", "rt/4", ROOT).run(&[
        Submit("a", read(0..8).by("a")),
        Submit("rt", read(FAR..FAR + 8).by("rt")),
        Submit("rt2", read(8..16).by("rt")),
    ]);
}

/// The queue of two tasks merges into that of a third, as one of them reads near that.
fn chain() -> Rig {
    let rig = plain_disk(0).group("/g", 100).task("a", "be/4", ROOT).task("b", "be/4", ROOT);
    let mut rig = rig.task("c", "be/4", ROOT);
    rig.run(&[
        Submit("a", read(0..8).by("a")),
        Submit("b", read(FAR..FAR + 8).by("b")),
        Submit("b2", read(8..16).by("b")),
        Expect(Emitted("merged b into a")),
        Submit("c", read(5 * FAR..5 * FAR + 8).by("c")),
        Submit("b3", read(5 * FAR + 8..5 * FAR + 16).by("b")),
        Expect(Emitted("to merge a into c")),
        Expect(Emitted("merged a into c")),
        Expect(Number("queues", 3)),
    ]);
    rig
}

/// Wherever its request is.
#[test]
fn other_user_of_a_merged_queue_follows_at_its_next_request() {
    chain().run(&[
        Submit("a", read(50 * FAR..50 * FAR + 8).by("a")),
        Expect(NotEmitted("to merge")),
        Expect(Emitted("merged a into c")),
    ]);
}

#[test]
fn user_of_a_merged_queue_that_moves_to_another_group_does_not_follow() {
    chain().run(&[
        Move("a", "/g"),
        Submit("a", read(50 * FAR..50 * FAR + 8).by("a")),
        Expect(NotEmitted("merged")),
        Expect(Emitted("made a in /g")),
    ]);
}

#[test]
fn user_of_a_merged_queue_may_exit_before_it_follows() {
    let mut rig = chain();
    rig.run(&[SetDepth(1)]);
    while rig.elevator.queued() > 0 {
        rig.serve_all();
        rig.run(&[Advance(ms(20)), TimerFires]);
    }
    rig.run(&[Exit("a"), Exit("b"), Exit("c"), Expect(Number("busy_queues", 0))]);
    rig.run(&[Submit("m", read(0..8)), Serve(&["m"])]);
}

/// It finds others there, and others find it.
#[test]
fn queue_that_moved_to_another_group_merges_there() {
    for (group, emitted) in [("/g", Emitted("merged b into a")), (ROOT, NotEmitted("merged"))] {
        let rig = plain_disk(0).group("/g", 100).task("a", "be/4", ROOT).task("b", "be/4", group);
        { rig }.run(&[
            Submit("a", read(0..8).by("a")),
            Move("a", "/g"),
            Submit("a2", read(9 * FAR..9 * FAR + 8).by("a")),
            Submit("b", read(FAR..FAR + 8).by("b")),
            Submit("b2", read(8..16).by("b")),
            Expect(emitted),
        ]);
    }
}

/// Of what is busy in the end one is raised and the other is not, and so the device idles for the
/// first. What was left of the queue that merged has no user, and is not.
#[test]
fn merged_queue_counts_as_raised_once() {
    let rig = disk(0).task("a", "be/3", ROOT).task("b", "be/4", ROOT).task("c", "be/3", ROOT);
    { rig }.run(&[
        Submit("a", read(0..8).by("a")),
        Submit("b", read(FAR..FAR + 8).by("b")),
        Submit("c", read(5 * FAR..5 * FAR + 8).by("c")),
        Submit("b2", read(8..16).by("b")),
        Expect(Emitted("merged b into a")),
        SetDepth(1),
        Serve(&["b", "a", "b2"]),
        Expect(Emitted("idles a: 20 ms")),
        Expect(Nothing),
    ]);
}
