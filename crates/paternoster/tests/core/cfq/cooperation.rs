//! Queues of tasks that work on the same part of the device are merged, and split again.

use crate::rig::*;

const FAR: u64 = 1_000_000;

/// Two tasks read alternately what one task would read: 1000, 1008, 1016 and so on.
fn interleaved() -> Served {
    let rig = Rig::cfq().without_merging().task("a", "be/4", ROOT).task("b", "be/4", ROOT);
    let mut run = rig.served(1, ms(1));
    run.issues("a", Stream::reads(8).from(1000).stride(16).count(4));
    run.issues("b", Stream::reads(8).from(1008).stride(16).count(4));
    run
}

/// The other task's request starts where the head is at 1 ms. Its queue has the next slice without
/// a choice of group and workload. With its next request the first task moves to that queue.
#[test]
fn tasks_that_read_alternately_come_to_share_a_queue() {
    let mut run = interleaved();
    run.until(ms(7));
    assert_eq!(run.dispatched(), ["a.0", "b.0", "a.1", "b.1", "a.2", "b.2", "a.3", "b.3"]);
    let emitted = [
        "0 ms: workload /: Be Sync for 300 ms",
        "0 ms: active a",
        "1 ms: expired a: Cooperator",
        "1 ms: active b",
        "1 ms: merged a into b",
    ];
    let beginnings = ["workload", "active", "expired", "merged", "idles"];
    assert_eq!(run.emitted_up_to(1, &beginnings), emitted);
}

/// The tasks that came to share a queue read at random from 20 ms on. The queue has its fifth seek
/// with the fifth request, and the idle timer ends its slice. A task gets a queue of its own with
/// its next request; the last one keeps the shared queue.
#[test]
fn shared_queue_that_seeks_is_split() {
    let mut run = interleaved();
    run.until(ms(17)).emitted(&[]);
    run.issues("a", Stream::reads(8).from(FAR).stride(2 * FAR).at(ms(20)).count(3));
    run.issues("b", Stream::reads(8).from(2 * FAR).stride(2 * FAR).at(ms(20)).count(3));
    run.until(ms(40));
    assert_eq!(run.emitted(&["split"]), [""; 0]);
    assert_eq!(run.rig.number("queues"), Some(1));
    run.rig.run(&[
        Submit("a", read(0..8).by("a")),
        Expect(Emitted("split b")),
        Expect(Emitted("busy a")),
        Expect(Number("queues", 2)),
        Submit("b", read(100..108).by("b")),
        Expect(Emitted("split b")),
        Expect(Emitted("busy b")),
        Expect(Number("queues", 2)),
        // The queue is split.
        Submit("a2", read(200..208).by("a")),
        Submit("b2", read(300..308).by("b")),
        Expect(NotEmitted("split")),
    ]);
}

/// The one request of a reader, up to sector 16, completes while another task of that priority and
/// group has one at `sector`. Returns whether that task's queue has the next slice.
fn gives_way(io_prio: &str, group: &str, sector: u64) -> bool {
    let rig = Rig::cfq().group("/g", 500).task("a", "be/4", ROOT);
    // The group has another queue.
    let mut rig = rig.task("b", io_prio, group).task("c", "be/1", ROOT);
    rig.run(&[
        Submit("c", read(9 * FAR..9 * FAR + 16).by("c")),
        Expect(dispatched("c")),
        Submit("a", read(0..16).by("a")),
        Complete("c"),
        Exit("c"),
        Expect(dispatched("a")),
        Submit("b", read(sector..sector + 16).by("b")),
        Complete("a"),
    ]);
    let given = rig.dispatch().is_some();
    rig.run(&[Expect(if given {
        Emitted("expired a: Cooperator")
    } else {
        Emitted("idles a: 8 ms")
    })]);
    given
}

/// The head is at 16, so 16 + 8192 is near. Only queues of one level are on one position index.
#[test]
fn next_slice_goes_to_a_near_request_of_the_same_group_and_level() {
    assert!(gives_way("be/4", ROOT, 16));
    assert!(gives_way("be/4", ROOT, 8208));
    assert!(!gives_way("be/4", ROOT, 8209));
    assert!(!gives_way("be/5", ROOT, 16));
    assert!(!gives_way("be/4", "/g", 16));
}

/// Behind the head as well as before it.
#[test]
fn near_is_the_same_on_both_sides_of_the_head() {
    for (sector, near) in [(FAR - 8176, true), (FAR - 8177, false)] {
        let mut rig = Rig::cfq().task("a", "be/4", ROOT).task("b", "be/4", ROOT);
        rig.run(&[
            Submit("a", read(FAR..FAR + 16).by("a")),
            Expect(dispatched("a")),
            Submit("b", read(sector..sector + 8).by("b")),
            Complete("a"),
        ]);
        assert_eq!(rig.dispatch().is_some(), near, "{sector}");
    }
}

/// After five seeks the queue looks for no cooperator, and is none itself.
#[test]
fn seeky_queue_cooperates_with_nobody() {
    let mut rig = Rig::cfq().without_merging().task("a", "be/4", ROOT).task("b", "be/4", ROOT);
    let names = ["0", "1", "2", "3", "4", "5"];
    for (number, name) in names.into_iter().enumerate() {
        let sector = (6 - number as u64) * FAR;
        rig.run(&[Submit(name, read(sector..sector + 16).by("a"))]);
    }
    rig.run(&[
        Serve(&["5", "4", "3", "2", "1"]),
        Expect(dispatched("0")),
        Submit("b", read(6 * FAR + 16..6 * FAR + 32).by("b")),
        Complete("0"),
        Expect(Emitted("idles a: 8 ms")),
        Expect(Nothing),
    ]);
}

/// The other queue became busy first, and is due first.
#[test]
fn near_request_is_served_before_one_that_is_due_earlier() {
    let rig = Rig::cfq().task("a", "be/4", ROOT).task("due", "be/4", ROOT);
    rig.task("near", "be/4", ROOT).run(&[
        Submit("a", read(0..16).by("a")),
        Expect(dispatched("a")),
        Submit("due", read(FAR..FAR + 16).by("due")),
        Submit("near", read(1000..1016).by("near")),
        Complete("a"),
        Expect(dispatched("near")),
        Expect(Emitted("expired a: Cooperator")),
        Expect(Emitted("active near")),
    ]);
}
