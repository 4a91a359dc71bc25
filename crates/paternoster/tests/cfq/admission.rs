//! Who may have a request beyond the bound on requests: the one that the device is kept free for.

use crate::rig::*;

const FAR: u64 = 1_000_000;

/// One of at most two requests has completed, its task is waited for, and others have taken both
/// places.
fn waited_for_at_the_bound() -> Rig {
    let rig = Rig::cfq().without_merging().task("a", "be/4", ROOT).task("b", "be/4", ROOT);
    let mut rig = rig.task("c", "be/4", ROOT);
    rig.run(&[
        SetNrRequests(Some(2)),
        Submit("a", read(0..16).by("a")),
        Expect(dispatched("a")),
        Submit("b", read(FAR..FAR + 16).by("b")),
        TurnAway("b2", read(FAR + 16..FAR + 32).by("b")),
        Complete("a"),
        Expect(Told("idles a: 8 ms")),
        Submit("b3", read(FAR + 32..FAR + 48).by("b")),
        TurnAway("b4", read(FAR + 48..FAR + 64).by("b")),
        TurnAway("c", read(2 * FAR..2 * FAR + 16).by("c")),
    ]);
    rig
}

/// It would be waited for in vain.
#[test]
fn task_that_is_waited_for_has_a_request_beyond_the_bound() {
    waited_for_at_the_bound().run(&[
        Submit("a2", read(16..32).by("a")),
        Expect(dispatched("a2")),
        TurnAway("a3", read(32..48).by("a")),
    ]);
}

#[test]
fn write_of_a_task_whose_reads_are_waited_for_is_turned_away() {
    waited_for_at_the_bound().run(&[TurnAway("a2", write(16..32).by("a"))]);
}

#[test]
fn task_that_was_waited_for_in_vain_is_turned_away() {
    waited_for_at_the_bound().run(&[
        Advance(ms(8)),
        TimerFires,
        TurnAway("a2", read(16..32).by("a")),
    ]);
}

#[test]
fn task_has_one_request_beyond_the_bound_a_turn() {
    waited_for_at_the_bound().run(&[
        Submit("a2", read(16..32).by("a")),
        Serve(&["a2"]),
        Expect(Told("idles a: 8 ms")),
        TurnAway("a3", read(32..48).by("a")),
        Advance(ms(8)),
        TimerFires,
        Serve(&["b", "b3"]),
        Exit("b"),
        Submit("a4", read(48..64).by("a")),
        Expect(dispatched("a4")),
        Submit("c2", read(3 * FAR..3 * FAR + 16).by("c")),
        Complete("a4"),
        Expect(Told("idles a: 8 ms")),
        Submit("c3", read(4 * FAR..4 * FAR + 16).by("c")),
        TurnAway("c4", read(5 * FAR..5 * FAR + 16).by("c")),
        Submit("a5", read(64..80).by("a")),
    ]);
}

/// Linux asks before every request, and not at the bound only. A small one does not end the
/// waiting, so that the next one asks again.
#[test]
fn request_below_the_bound_uses_the_turn_s_allowance_up() {
    let mut rig = Rig::cfq().without_merging().task("a", "be/4", ROOT);
    rig.run(&[
        SetNrRequests(Some(1)),
        Submit("a", read(0..8).by("a")),
        Serve(&["a"]),
        Expect(Told("idles a: 8 ms")),
        Submit("a2", read(8..16).by("a")),
        TurnAway("a3", read(16..24).by("a")),
    ]);
}
