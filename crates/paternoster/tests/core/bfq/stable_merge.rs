//! Queues made one right after the other, which merge at once or after a while.

use crate::bfq::{FAR, disk, fast, plain_disk};
use crate::rig::*;

/// A task that reads far from all others.
fn read_of(task: &'static str, n: u64) -> Step {
    Submit(task, read(n * FAR..n * FAR + 8).by(task))
}

#[test]
fn queue_made_within_180_ms_of_another_shares_it_on_a_fast_device() {
    for (gap, emitted, queues) in
        [(180, Emitted("merged b into a"), 1), (181, NotEmitted("merged"), 2)]
    {
        fast(1).task("a", "be/4", ROOT).task("b", "be/4", ROOT).run(&[
            read_of("a", 0),
            Advance(ms(gap)),
            read_of("b", 1),
            Expect(emitted),
            Expect(Number("queues", queues)),
        ]);
    }
}

/// Made at 0, 300, 400, 601 and 700 ms: between 180 and 600 ms after the first nothing merges, and
/// the first is still the one that counts. Only the last merges, with the fourth.
#[test]
fn first_queue_counts_for_600_ms() {
    let names = ["a", "b", "c", "d", "e"];
    let rig = names.iter().fold(fast(1), |rig, name| rig.task(name, "be/4", ROOT));
    let mut run = rig.served(1, ms(1));
    for (name, (at, n)) in names.into_iter().zip([0, 300, 400, 601, 700].into_iter().zip(0..)) {
        run.issues(name, Stream::reads(8).from(n * FAR).at(ms(at)).count(1));
    }
    run.until(ms(800));
    let emitted = ["700 ms: to merge e into d", "700 ms: merged e into d"];
    assert_eq!(run.emitted(&["merged", "to merge"]), emitted);
}

/// 600 ms are not more than 600.
#[test]
fn queue_created_after_600_ms_is_the_next_stable_merge_candidate() {
    for (at, emitted) in [(600, NotEmitted("merged")), (601, Emitted("merged c into b"))] {
        let rig = fast(1).task("a", "be/4", ROOT).task("b", "be/4", ROOT);
        rig.task("c", "be/4", ROOT).run(&[
            read_of("a", 0),
            Advance(ms(at)),
            read_of("b", 1),
            Advance(ms(100)),
            read_of("c", 2),
            Expect(emitted),
        ]);
    }
}

/// Queues of different levels, classes or groups are not merged.
#[test]
fn queues_of_different_kinds_do_not_merge_at_creation() {
    for (prio, group) in [("be/3", ROOT), ("rt/4", ROOT), ("be/4", "/g")] {
        let rig = fast(1).group("/g", 100).task("a", "be/4", ROOT);
        rig.task("b", prio, group).run(&[
            read_of("a", 0),
            read_of("b", 1),
            Expect(NotEmitted("merged")),
        ]);
    }
    // The new queue does not replace the candidate of another group.
    let rig = fast(1).group("/g", 100).task("a", "be/4", ROOT).task("b", "be/4", "/g");
    rig.task("c", "be/4", ROOT).run(&[
        read_of("a", 0),
        read_of("b", 1),
        read_of("c", 2),
        Expect(Emitted("merged c into a")),
    ]);
    // A new queue of another level in the same group does.
    let rig = fast(1).task("a", "be/4", ROOT).task("b", "be/3", ROOT);
    rig.task("c", "be/4", ROOT).run(&[
        read_of("a", 0),
        read_of("b", 1),
        read_of("c", 2),
        Expect(NotEmitted("merged")),
    ]);
}

/// The candidate has a user less then.
#[test]
fn queue_that_lost_a_user_is_no_stable_merge_candidate() {
    fast(1).task("a", "be/4", ROOT).task("b", "be/4", ROOT).run(&[
        read_of("a", 0),
        Serve(&["a"]),
        Exit("a"),
        read_of("b", 1),
        Expect(NotEmitted("merged")),
    ]);
}

/// It counts as one user's: its weight is raised although it is shared. The first raising is over
/// after 3750 ms, without 2 s of idleness before, which would prolong it; and 20000 sectors at a
/// time are too many for soft real time within 2857 ms.
#[test]
fn queue_shared_from_creation_may_be_raised() {
    fast(2).task("a", "be/4", ROOT).task("b", "be/4", ROOT).run(&[
        Submit("a", read(0..20_000).by("a")),
        Expect(Emitted("raised a: 30")),
        read_of("b", 1),
        Expect(Emitted("merged b into a")),
        Serve(&["a", "b"]),
        Advance(ms(20)),
        TimerFires,
        Advance(ms(1880)),
        Submit("b", read(0..20_000).by("b")),
        Serve(&["b"]),
        Advance(ms(20)),
        TimerFires,
        Advance(ms(1860)),
        Expect(NotEmitted("raised")),
        Submit("b", read(0..8).by("b")),
        Serve(&["b"]),
        Expect(Emitted("raised a: 1, for 0 ms")),
        Advance(ms(20)),
        TimerFires,
        Advance(ms(2001)),
        Submit("b", read(0..8).by("b")),
        Expect(Emitted("raised a: 30, for 3750 ms")),
    ]);
}

/// 20 seeks in a shared queue: its users do not part if they were merged at creation.
#[test]
fn queue_shared_from_creation_is_not_split() {
    let mut rig = fast(1).task("a", "be/4", ROOT).task("b", "be/4", ROOT);
    rig.run(&[read_of("a", 0), read_of("b", 1), Serve(&["a", "b"])]);
    for n in 0..32 {
        rig.run(&[read_of("a", 2 + n), Serve(&["a"])]);
    }
    rig.run(&[
        Advance(ms(20)),
        TimerFires,
        Expect(Emitted("to split a")),
        read_of("a", 50),
        read_of("b", 51),
        Expect(NotEmitted("split")),
        Expect(Number("queues", 1)),
    ]);
}

/// More than 600 ms after its creation. While raised queues are busy, idling for it boosts nothing.
#[test]
fn stable_merge_happens_after_600_ms_on_a_disk() {
    for (at, emitted) in [(600, NotEmitted("merged")), (601, Emitted("merged b into a"))] {
        disk(0).task("a", "be/4", ROOT).task("b", "be/4", ROOT).run(&[
            read_of("a", 0),
            Advance(ms(100)),
            read_of("b", 1),
            Expect(NotEmitted("merged")),
            Advance(ms(at)),
            read_of("b", 2),
            Expect(emitted),
        ]);
    }
}

/// It is decided once, and at that moment idling for the queue boosts the throughput.
#[test]
fn queue_is_not_merged_while_idling_for_it_boosts_throughput() {
    let rig = plain_disk(1).task("a", "be/4", ROOT).task("b", "be/4", ROOT);
    let mut run = rig.served(1, ms(1));
    run.issues("b", Stream::reads(8).from(FAR).at(ms(100)).think(us(100)));
    run.issues("a", Stream::reads(8).think(us(100))).until(ms(2000));
    assert_eq!(run.emitted(&["merged"]), [""; 0]);
}

/// The candidate has no user left.
#[test]
fn stable_merge_candidate_that_exited_is_not_merged_with() {
    disk(0).task("a", "be/4", ROOT).task("b", "be/4", ROOT).run(&[
        read_of("a", 0),
        Submit("first", read(FAR..FAR + 8).by("b")),
        SetDepth(1),
        Serve(&["a"]),
        Exit("a"),
        Advance(ms(601)),
        Serve(&["first"]),
        // Kept for the merge to come.
        Expect(Number("queues", 2)),
        read_of("b", 2),
        Expect(NotEmitted("merged")),
        Expect(Number("queues", 1)),
    ]);
}
