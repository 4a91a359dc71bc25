//! Requests that the device could not take, and that are requeued.

use crate::rig::*;

const FAR: u64 = 1_000_000;

/// It bypasses the queues: it goes before all of them, and before the queue that preempted its own.
#[test]
fn requeued_request_is_next_whatever_waits() {
    let rig = Rig::cfq().without_merging().task("a", "be/4", ROOT).task("rt", "rt/0", ROOT);
    rig.task("b", "be/4", ROOT).run(&[
        Submit("a", read(FAR..FAR + 16).by("a")),
        Submit("a2", read(FAR + 16..FAR + 32).by("a")),
        Expect(dispatched("a")),
        Submit("rt", read(0..16).by("rt")),
        Requeue("a"),
        Expect(dispatched("a")),
        Complete("a"),
        Expect(dispatched("rt")),
    ]);
}

/// It is counted once in its slice, though it was dispatched twice.
#[test]
fn requeued_request_counts_once_in_its_slice() {
    Rig::cfq().without_merging().task("a", "be/4", ROOT).run(&[
        Submit("a", read(0..16).by("a")),
        Expect(dispatched("a")),
        Expect(Number("in_driver", 1)),
        Advance(ms(1)),
        Requeue("a"),
        Expect(Number("in_driver", 0)),
        Expect(Number("queued", 0)),
        Advance(ms(1)),
        Expect(dispatched("a")),
        Expect(Number("in_driver", 1)),
        Advance(ms(1)),
        Complete("a"),
        Expect(Number("in_driver", 0)),
        Expect(Emitted("slice a: 100 ms")),
        Advance(ms(2)),
        Exit("a"),
        // Since the queue's activation.
        Expect(Emitted(
            "expired a: Exit, used 2 ms, charged 2 ms, no residue, \
             dispatched 1, vdisktime 8192000000, \
             unaccounted 3 ms",
        )),
    ]);
}

/// The head was at 2016 and goes to 1016 with the request that is dispatched again. From there
/// 1100 is ahead and 2100 is far; from 2016 both were near, and 2100 was nearer.
#[test]
fn head_is_at_the_end_of_the_request_that_was_dispatched_again() {
    let far = Submit("2100", read(2100..2116));
    let near = Submit("1100", read(1100..1116));
    let both = || Rig::cfq().without_merging().depth(2);
    both().run(&[
        Submit("1000", read(1000..1016)),
        Expect(dispatched("1000")),
        Submit("2000", read(2000..2016)),
        Expect(dispatched("2000")),
        near.clone(),
        far.clone(),
        Complete("1000"),
        Expect(dispatched("2100")),
    ]);
    both().run(&[
        Submit("1000", read(1000..1016)),
        Expect(dispatched("1000")),
        Submit("2000", read(2000..2016)),
        Expect(dispatched("2000")),
        Requeue("1000"),
        Expect(dispatched("1000")),
        near,
        far,
        Complete("2000"),
        Expect(dispatched("1100")),
    ]);
}

/// For its queue the request is in flight as before. At 2 ms the slice that began at 1 is not over,
/// and the device idles for the task.
#[test]
fn queue_of_a_requeued_request_keeps_its_slice() {
    let rig = Rig::cfq().without_merging().depth(2).task("a", "be/4", ROOT);
    rig.task("b", "be/4", ROOT).run(&[
        Submit("a", read(0..16).by("a")),
        Submit("a2", read(16..32).by("a")),
        Expect(dispatched("a")),
        Expect(dispatched("a2")),
        Submit("b", read(FAR..FAR + 16).by("b")),
        Advance(ms(1)),
        Complete("a"),
        Advance(ms(1)),
        Requeue("a2"),
        Expect(dispatched("a2")),
        Expect(Nothing),
        Expect(Emitted("waiting: InFlight")),
        Complete("a2"),
        Expect(Emitted("idles a: 8 ms")),
    ]);
}
