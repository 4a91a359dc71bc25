//! Asynchronous queues, which the tasks of a group share.

use crate::rig::*;

/// `2 × slice_async_rq × (8 - level)` is 16 and 24. A group without a synchronous queue pays for
/// whole slices, of 40 and 56 ms. 7 and 11 ms of them are used: from the first completion, half a
/// millisecond after the activation, until the 16th and the 24th request are dispatched.
#[test]
fn async_slice_has_so_many_requests_by_its_level() {
    let rig = Rig::cfq().without_merging().task("a", "be/4", ROOT).task("b", "be/2", ROOT);
    let mut run = rig.served(1, us(500));
    run.issues("a", Stream::writes(16).depth(64));
    run.issues("b", Stream::writes(16).from(1_000_000).depth(64)).until(ms(20));
    let emitted = [
        "7.5 ms: expired async a: AsyncRequests, used 7 ms, charged 40 ms, no residue, \
         dispatched 16",
        "19.5 ms: expired async b: AsyncRequests, used 11 ms, charged 56 ms, no residue, \
         dispatched 24",
    ];
    assert_eq!(run.emitted_up_to(5, &["expired"]), emitted);
}

#[test]
fn async_slice_without_other_queues_has_no_such_bound() {
    let mut run = Rig::cfq().without_merging().served(1, us(500));
    run.issues("main", Stream::writes(16).depth(64)).until(ms(20));
    assert_eq!(run.dispatched().len(), 41);
    assert_eq!(run.emitted(&["expired"]), [""; 0]);
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

/// An oddity of Linux: the group pays for the slice of 40 ms, and its queue has the next one.
#[test]
fn exit_of_a_task_ends_the_slice_of_the_async_queue_that_others_use() {
    let mut rig = Rig::cfq().without_merging().task("a", "be/4", ROOT).task("b", "be/4", ROOT);
    rig.run(&[
        Submit("a", write(0..8).by("a")),
        Expect(dispatched("a")),
        Submit("b", write(100..108).by("b")),
        Submit("b2", write(200..208).by("b")),
        Advance(ms(1)),
        Complete("a"),
        Exit("a"),
        // The first completion was at this very moment, so the time since the activation is used.
        Expect(Emitted(
            "expired async a: Exit, used 1 ms, charged 40 ms, no residue, \
            dispatched 1",
        )),
        Expect(dispatched("b")),
        Expect(Emitted("active async a")),
    ]);
}

/// If the group has a synchronous queue, the time used is charged, not the slice.
#[test]
fn async_slice_beside_a_reader_of_the_group_costs_the_time_used() {
    let mut rig = Rig::cfq().without_merging().depth(2).task("a", "be/4", ROOT);
    rig.run(&[
        Submit("w", write(0..8)),
        Submit("w2", write(8..16)),
        Expect(dispatched("w")),
        Advance(ms(1)),
        Complete("w"),
        Advance(ms(2)),
        Submit("r", read(1_000_000..1_000_008).by("a")),
        Expect(Emitted("preempted async main by a: SyncOverAsync")),
        Expect(Emitted("expired async main: Preempted, used 2 ms, charged 2 ms, residue 38 ms")),
    ]);
}

/// There are two synchronous queues and an asynchronous one, and no mean of busy queues yet. The
/// first one to become busy is due first. The part of the synchronous queues is 200 of 300 ms. That
/// of the asynchronous one, 100, is cut to 40 / 100 of it, as slices are.
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
        Expect(Emitted("workload /: Be Sync for 200 ms")),
    ]);
    tasks()
        .run(&[write])
        .run(&reads)
        .run(&[Expect(dispatched("w")), Expect(Emitted("workload /: Be Async for 40 ms"))]);
}
