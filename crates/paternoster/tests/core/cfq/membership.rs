//! Queues and their users: I/O contexts, groups and requests.

use crate::rig::*;

/// The task has a queue in the group that it left, while it has a request there, and one in its new
/// group.
#[test]
fn queue_of_a_context_that_moved_goes_with_its_last_request() {
    let mut rig = Rig::cfq().without_merging().group("/a", 100).task("t", "be/4", "/a");
    rig.run(&[
        Submit("old", read(0..8).by("t")),
        Expect(Number("queues", 1)),
        Move("t", ROOT),
        Submit("new", read(100..108).by("t")),
        Expect(Number("queues", 2)),
        Serve(&["old", "new"]),
        Submit("newer", read(200..208).by("t")),
        Expect(Number("queues", 1)),
        Serve(&["newer"]),
        Exit("t"),
        Expect(Number("queues", 0)),
    ]);
}

/// The move is noticed when a request is made; a bio that is merged makes none.
#[test]
fn bio_of_a_task_that_moved_still_merges_into_its_old_queue() {
    Rig::cfq().group("/a", 100).task("t", "be/4", "/a").run(&[
        Submit("old", read(0..8).by("t")),
        Move("t", ROOT),
        BackMerge("merged", read(8..16).by("t"), "old"),
        Submit("new", read(100..108).by("t")),
        Submit("apart from it", read(16..24).by("t")),
    ]);
}
