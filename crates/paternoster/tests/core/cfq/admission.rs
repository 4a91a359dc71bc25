//! The admission grant: a task for which the device idles may have a request beyond the bound.

use crate::rig::*;

const FAR: u64 = 1_000_000;

/// One of at most two requests has completed, the device idles for its task, and others have taken
/// both places.
fn idling_at_the_bound() -> Rig {
    let rig = Rig::cfq().without_merging().task("a", "be/4", ROOT).task("b", "be/4", ROOT);
    let mut rig = rig.task("c", "be/4", ROOT);
    rig.run(&[
        SetNrRequests(Some(2)),
        Submit("a", read(0..16).by("a")),
        Expect(dispatched("a")),
        Submit("b", read(FAR..FAR + 16).by("b")),
        TurnAway("b2", read(FAR + 16..FAR + 32).by("b")),
        Complete("a"),
        Expect(Emitted("idles a: 8 ms")),
        Submit("b3", read(FAR + 32..FAR + 48).by("b")),
        TurnAway("b4", read(FAR + 48..FAR + 64).by("b")),
        TurnAway("c", read(2 * FAR..2 * FAR + 16).by("c")),
    ]);
    rig
}

/// Without it the device would idle in vain.
#[test]
fn task_for_which_the_device_idles_has_a_request_beyond_the_bound() {
    idling_at_the_bound().run(&[
        Submit("a2", read(16..32).by("a")),
        Expect(dispatched("a2")),
        TurnAway("a3", read(32..48).by("a")),
    ]);
}

#[test]
fn write_of_a_task_is_turned_away_while_the_device_idles_for_its_reads() {
    idling_at_the_bound().run(&[TurnAway("a2", write(16..32).by("a"))]);
}

#[test]
fn task_that_let_idling_time_out_is_turned_away() {
    idling_at_the_bound().run(&[Advance(ms(8)), TimerFires, TurnAway("a2", read(16..32).by("a"))]);
}

#[test]
fn task_has_one_request_beyond_the_bound_in_a_slice() {
    idling_at_the_bound().run(&[
        Submit("a2", read(16..32).by("a")),
        Serve(&["a2"]),
        Expect(Emitted("idles a: 8 ms")),
        TurnAway("a3", read(32..48).by("a")),
        Advance(ms(8)),
        TimerFires,
        Serve(&["b", "b3"]),
        Exit("b"),
        Submit("a4", read(48..64).by("a")),
        Expect(dispatched("a4")),
        Submit("c2", read(3 * FAR..3 * FAR + 16).by("c")),
        Complete("a4"),
        Expect(Emitted("idles a: 8 ms")),
        Submit("c3", read(4 * FAR..4 * FAR + 16).by("c")),
        TurnAway("c4", read(5 * FAR..5 * FAR + 16).by("c")),
        Submit("a5", read(64..80).by("a")),
    ]);
}

/// Linux asks for the grant before every request, not only at the bound. A small request does not
/// end idling, so the next one asks again.
#[test]
fn request_below_the_bound_uses_up_the_admission_grant_of_the_slice() {
    let mut rig = Rig::cfq().without_merging().task("a", "be/4", ROOT);
    rig.run(&[
        SetNrRequests(Some(1)),
        Submit("a", read(0..8).by("a")),
        Serve(&["a"]),
        Expect(Emitted("idles a: 8 ms")),
        Submit("a2", read(8..16).by("a")),
        TurnAway("a3", read(16..24).by("a")),
    ]);
}
