//! Queues of writes that nobody waits for, which the tasks of a group share.

use crate::rig::*;

/// `2 × slice_async_rq × (8 - level)` is 16 and 24. A group that has no sync queue pays the whole
/// slices, of 40 and 56 ms, of which 7 and 11 are used: from the first completion, half a
/// millisecond into the turn, until the 16th and the 24th are sent.
#[test]
fn async_turn_has_so_many_requests_by_its_level() {
    let rig = Rig::cfq().without_merging().task("a", "be/4", ROOT).task("b", "be/2", ROOT);
    let mut run = rig.served(1, us(500));
    run.issues("a", Stream::writes(16).depth(64));
    run.issues("b", Stream::writes(16).from(1_000_000).depth(64)).until(ms(20));
    let told = [
        "7.5 ms: expired async a: AsyncRequests, used 7 ms, charged 40 ms, no residue, sent 16",
        "19.5 ms: expired async b: AsyncRequests, used 11 ms, charged 56 ms, no residue, sent 24",
    ];
    assert_eq!(run.told_up_to(5, &["expired"]), told);
}

#[test]
fn async_turn_without_others_has_no_such_bound() {
    let mut run = Rig::cfq().without_merging().served(1, us(500));
    run.issues("main", Stream::writes(16).depth(64)).until(ms(20));
    assert_eq!(run.dispatched().len(), 41);
    assert_eq!(run.told(&["expired"]), [""; 0]);
}

#[test]
fn tasks_of_a_group_and_level_share_an_async_queue() {
    let rig = Rig::cfq().without_merging().group("/a", 500).task("a", "be/4", ROOT);
    rig.task("b", "be/4", ROOT).task("c", "be/5", ROOT).task("d", "be/4", "/a").run(&[
        Submit("a", write(0..8).by("a")),
        Submit("b", write(100..108).by("b")),
        Expect(Number("queues", 1)),
        Submit("c", write(200..208).by("c")),
        Expect(Number("queues", 2)),
        Submit("d", write(300..308).by("d")),
        Expect(Number("queues", 3)),
    ]);
}

/// An oddity of Linux: the group pays the slice of 40 ms, and its queue has the next turn.
#[test]
fn exit_of_a_task_ends_the_turn_of_the_async_queue_that_others_use() {
    let mut rig = Rig::cfq().without_merging().task("a", "be/4", ROOT).task("b", "be/4", ROOT);
    rig.run(&[
        Submit("a", write(0..8).by("a")),
        Expect(dispatched("a")),
        Submit("b", write(100..108).by("b")),
        Submit("b2", write(200..208).by("b")),
        Advance(ms(1)),
        Complete("a"),
        Exit("a"),
        // Its first completion was at that very moment, so it used all of 1 ms since it began.
        Expect(Told("expired async a: Exit, used 1 ms, charged 40 ms, no residue, sent 1")),
        Expect(dispatched("b")),
        Expect(Told("active async a")),
    ]);
}

/// With a sync queue in the group the time that was used counts, not the slice.
#[test]
fn async_turn_beside_a_reader_of_the_group_costs_what_it_takes() {
    let mut rig = Rig::cfq().without_merging().depth(2).task("a", "be/4", ROOT);
    rig.run(&[
        Submit("w", write(0..8)),
        Submit("w2", write(8..16)),
        Expect(dispatched("w")),
        Advance(ms(1)),
        Complete("w"),
        Advance(ms(2)),
        Submit("r", read(1_000_000..1_000_008).by("a")),
        Expect(Told("preempted async main by a: SyncOverAsync")),
        Expect(Told("expired async main: Preempted, used 2 ms, charged 2 ms, residue 38 ms")),
    ]);
}

/// Two sync queues and an async one, and no mean of busy queues yet. The first one listed is due
/// first. The sync queues' part of 300 ms is 200. That of the async one, 100, is cut to
/// 40 / 100 of it, as slices are.
#[test]
fn workload_has_its_part_of_the_target_latency_by_its_number_of_queues() {
    let write = Submit("w", write(0..8));
    let reads = [
        Submit("a", read(1_000_000..1_000_008).by("a")),
        Submit("b", read(2_000_000..2_000_008).by("b")),
    ];
    let tasks = || Rig::cfq().task("a", "be/4", ROOT).task("b", "be/4", ROOT);
    tasks().run(&reads).run(&[
        write.clone(),
        Expect(dispatched("a")),
        Expect(Told("workload /: Be Sync for 200 ms")),
    ]);
    tasks()
        .run(&[write])
        .run(&reads)
        .run(&[Expect(dispatched("w")), Expect(Told("workload /: Be Async for 40 ms"))]);
}
