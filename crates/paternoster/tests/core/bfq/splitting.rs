//! Shared queues that service out to be seeky: their users part.

use crate::bfq::{FAR, disk, plain_disk};
use crate::rig::*;

/// Serves all that waits, and waits in vain for more.
fn serve_out(rig: &mut Rig) {
    while rig.elevator.queued() > 0 {
        rig.serve_all();
        rig.run(&[Advance(ms(20)), TimerFires]);
    }
}

/// The second task's queue has merged into the first's, which then gets 19 seeks besides
/// the one that a queue begins with, and ends a service.
fn shared_and_seeky(rig: Rig) -> Rig {
    let mut rig = rig.depth(0).task("a", "be/4", ROOT).task("b", "be/4", ROOT);
    rig.run(&[
        Submit("a", read(0..8).by("a")),
        Submit("b", read(FAR..FAR + 8).by("b")),
        Submit("b2", read(8..16).by("b")),
        Expect(Emitted("merged b into a")),
        Expect(Number("queues", 2)),
        SetDepth(1),
    ]);
    serve_out(&mut rig);
    for n in 2..21 {
        rig.run(&[Submit("b", read(n * FAR..n * FAR + 8).by("b"))]);
        serve_out(&mut rig);
    }
    rig.run(&[Expect(Emitted("to split a"))]);
    rig
}

/// Who comes first gets a queue of its own, and the last one keeps the shared one, for itself.
#[test]
fn users_of_a_seeky_shared_queue_part() {
    for (first, last) in [("a", "b"), ("b", "a")] {
        let made: &'static str = format!("made {first} in /").leak();
        let mut rig = shared_and_seeky(plain_disk(1));
        rig.run(&[
            Submit("1", read(0..8).by(first)),
            Expect(Emitted("split a")),
            Expect(Emitted(made)),
            Expect(Number("queues", 2)),
            Submit("2", read(90 * FAR..90 * FAR + 8).by(last)),
            Expect(Emitted("split a")),
            Expect(NotEmitted("made")),
            Submit("3", read(91 * FAR..91 * FAR + 8).by(last)),
            Submit("4", read(92 * FAR..92 * FAR + 8).by(first)),
            Expect(NotEmitted("split")),
            Expect(NotEmitted("made")),
            Expect(Number("queues", 2)),
        ]);
    }
}

/// In the first queue, not seeky, they stay.
#[test]
fn users_of_a_shared_queue_that_is_not_seeky_stay_together() {
    let mut rig = plain_disk(0).task("a", "be/4", ROOT).task("b", "be/4", ROOT);
    rig.run(&[
        Submit("a", read(0..8).by("a")),
        Submit("b", read(FAR..FAR + 8).by("b")),
        Submit("b2", read(8..16).by("b")),
        SetDepth(1),
    ]);
    serve_out(&mut rig);
    rig.run(&[Submit("b", read(16..24).by("b"))]);
    serve_out(&mut rig);
    rig.run(&[Expect(NotEmitted("to split")), Expect(Number("queues", 1))]);
}

/// It is as it was before the merge, raised since 0 for 10.5 s: unless these are over.
#[test]
fn user_that_leaves_a_shared_queue_gets_its_raising_back() {
    for (later, emitted) in
        [(0, Emitted("raised b: 30, for 10500 ms")), (11_000, Emitted("raised b: 1"))]
    {
        let mut rig = shared_and_seeky(disk(1));
        rig.run(&[Advance(ms(later)), Submit("1", read(0..8).by("b")), Expect(emitted)]);
    }
}

/// For 2 s it is left as it is. After that its next batch is soft real time.
#[test]
fn queue_is_not_raised_soon_after_its_users_parted() {
    for (later, emitted) in [(2000, NotEmitted("raised")), (2001, Emitted("raised b: 3000"))] {
        let mut rig = shared_and_seeky(disk(1));
        rig.run(&[
            Advance(ms(11_000)),
            Submit("1", read(0..8).by("b")),
            Expect(Emitted("split a")),
        ]);
        rig.run(&[Expect(Emitted("raised b: 1"))]);
        serve_out(&mut rig);
        // At 20 ms it is out of service.
        rig.run(&[Advance(ms(later - 20)), Submit("2", read(8..16).by("b")), Expect(emitted)]);
    }
}

/// Its first request merged its queue, which would have been raised for it: that is made up for, as
/// far as the 10.5 s from then on are not over.
#[test]
fn new_queue_that_was_merged_is_raised_as_its_user_leaves() {
    for (later, emitted) in
        [(0, Emitted("raised b: 30, for 10500 ms")), (10_500, Emitted("raised b: 1"))]
    {
        let rig = disk(0).task("a", "be/4", ROOT).task("x", "be/4", ROOT).task("b", "be/4", ROOT);
        let mut rig = rig;
        rig.run(&[
            Submit("a", read(0..8).by("a")),
            Submit("x", read(FAR..FAR + 8).by("x")),
            Submit("b", read(8..16).by("b")),
            Expect(Emitted("merged b into a")),
            SetDepth(1),
        ]);
        serve_out(&mut rig);
        for n in 2..21 {
            rig.run(&[Submit("b", read(n * FAR..n * FAR + 8).by("b"))]);
            serve_out(&mut rig);
        }
        rig.run(&[Expect(Emitted("to split a")), Expect(NotEmitted("raised b"))]);
        rig.run(&[Advance(ms(later)), Submit("1", read(0..8).by("b")), Expect(emitted)]);
    }
}

/// 50, whatever its priority is meanwhile.
#[test]
fn user_that_leaves_a_shared_queue_gets_its_weight_back() {
    let mut rig = plain_disk(0).task("a", "be/4", ROOT).task("b", "be/3", ROOT);
    rig.run(&[
        Submit("a", read(0..8).by("a")),
        Submit("b", read(FAR..FAR + 8).by("b")),
        Submit("b2", read(8..16).by("b")),
        Expect(Emitted("merged b into a")),
        SetDepth(1),
    ]);
    serve_out(&mut rig);
    for n in 2..21 {
        rig.run(&[Submit("b", read(n * FAR..n * FAR + 8).by("b"))]);
        serve_out(&mut rig);
    }
    rig.run(&[
        Expect(Emitted("in service a, budget 512, weight 40")),
        Expect(Emitted("to split a")),
        SetPriority("b", "be/0"),
        Submit("1", read(0..8).by("b")),
        Expect(dispatched("1")),
        Expect(Emitted("in service b, budget 10922, weight 50")),
    ]);
}
