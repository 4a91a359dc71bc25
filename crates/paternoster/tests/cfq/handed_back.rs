//! Requests that the device hands back unserved.

use crate::rig::*;

const FAR: u64 = 1_000_000;

/// It is offered first, past the queues: also to one whose turn it is.
#[test]
fn request_handed_back_is_next_whatever_waits() {
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

/// It is sent once in its turn, though the device took it twice.
#[test]
fn request_handed_back_counts_once_in_its_turn() {
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
        Expect(Told("slice a: 100 ms")),
        Advance(ms(2)),
        Exit("a"),
        // Since its first activation.
        Expect(Told(
            "expired a: Exit, used 2 ms, charged 2 ms, no residue, sent 1, vdisktime 8192000000, \
             unaccounted 3 ms",
        )),
    ]);
}

/// The head was at 2016 and goes to 1016 with the request that the device takes again: from there
/// 1100 is ahead and 2100 far; from 2016 both ways were near, but 2100 nearer.
#[test]
fn head_is_where_the_request_that_was_taken_again_ends() {
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

/// It is in flight for its queue as before: at 2 ms the slice that began at 1 is not over, and its
/// task is waited for.
#[test]
fn queue_of_a_request_handed_back_keeps_its_turn() {
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
        Expect(Told("waiting: InFlight")),
        Complete("a2"),
        Expect(Told("idles a: 8 ms")),
    ]);
}
