//! CFQ gives up waiting requests in slices. What a drain means for the requests is in
//! `tests/drain.rs`, for every scheduler.

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

/// The order is that of groups; in a group best effort comes before real time before idle, and in a
/// class asynchronous before synchronous. Each slice costs a tick. The root was alone when it
/// became busy, so it is at 4096000000 after the first slice; its others, at 1000 of 1500, cost
/// (1000000 << 24) / 2730 = 6145500366 each. The group began at 200000000, and its slices cost
/// twice that. So: the group, at 0.2, to 12.5; the root, at 4.1, to 10.2 and 16.4; the group; the
/// root.
#[test]
fn each_queue_is_drained_in_a_slice_of_its_own() {
    busy().run(&[
        Submit("be", read(5 * FAR..5 * FAR + 16)),
        SwitchTo(SchedulerKind::None),
        Expect(Emitted("expired rt: Drain, used 1 ms, charged 1 ms, no residue, sent 1")),
        Expect(Emitted("active async a")),
        Expect(Emitted("active main")),
        Expect(Emitted("active rt")),
        Expect(Emitted("active a")),
        Expect(Emitted("left /a")),
        Expect(Emitted("active idle")),
        Expect(Emitted("left /")),
        Expect(Emitted("drained 6")),
    ]);
}
