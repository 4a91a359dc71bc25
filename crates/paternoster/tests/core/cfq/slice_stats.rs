//! The statistics of slices that a group keeps.

use crate::rig::*;

const FAR: u64 = 1_000_000;

fn groups() -> Rig {
    let rig = Rig::cfq().without_merging().group("/a", 500).group("/b", 500);
    rig.task("a", "be/4", "/a").task("b", "be/4", "/b")
}

/// The queue becomes active at 2 ms, and its slice begins at 5, when the first request completes.
/// The exit at 10 ends it: 5 ms were used, and 3 are unaccounted. The slice of the queue that
/// becomes active at 21 ms has not begun when the queue expires at 28: all the time is used.
#[test]
fn time_is_that_of_slices_and_the_rest_is_unaccounted() {
    let mut rig = groups().task("a2", "be/4", "/a");
    rig.run(&[
        Advance(ms(2)),
        Submit("a", read(0..16).by("a")),
        Expect(dispatched("a")),
        Advance(ms(3)),
        Complete("a"),
        Advance(ms(5)),
        Exit("a"),
    ]);
    assert_eq!(rig.slice_stats("/a").time, ms(5));
    assert_eq!(rig.slice_stats("/a").unaccounted_time, ms(3));
    rig.run(&[
        Advance(ms(11)),
        Submit("a2", read(0..16).by("a2")),
        Expect(dispatched("a2")),
        Advance(ms(7)),
        Exit("a2"),
    ]);
    assert_eq!(rig.slice_stats("/a").time, ms(5 + 7));
    assert_eq!(rig.slice_stats("/a").unaccounted_time, ms(3));
}

/// A slice of 3 ms, from 2 ms on, is over at 5; the completion at 9 ends it.
#[test]
fn time_beyond_the_slice_is_unaccounted() {
    let mut rig = groups().set("slice_sync", 3);
    rig.run(&[
        Submit("a", read(0..16).by("a")),
        Submit("a2", read(16..32).by("a")),
        Submit("a3", read(32..48).by("a")),
        Expect(dispatched("a")),
        Advance(ms(2)),
        Complete("a"),
        Expect(dispatched("a2")),
        Advance(ms(7)),
        Complete("a2"),
        Expect(Emitted("expired a: SliceUsed, used 3 ms")),
    ]);
    assert_eq!(rig.slice_stats("/a").time, ms(3));
    // Before the slice began, and after its end.
    assert_eq!(rig.slice_stats("/a").unaccounted_time, ms(2 + 4));
}

/// The timer is armed at 1 ms. It is stopped at 5 by the next request; armed again at 6, it fires
/// at 14.
#[test]
fn idle_time_is_that_with_the_timer_armed() {
    let mut rig = groups();
    rig.run(&[
        Submit("a", read(0..16).by("a")),
        Expect(dispatched("a")),
        Advance(ms(1)),
        Complete("a"),
        Advance(ms(4)),
        Submit("a2", read(16..32).by("a")),
        Expect(dispatched("a2")),
    ]);
    assert_eq!(rig.slice_stats("/a").idle_time, ms(4));
    rig.run(&[Advance(ms(1)), Complete("a2"), Advance(ms(8)), TimerFires]);
    assert_eq!(rig.slice_stats("/a").idle_time, ms(4 + 8));
}

/// The second group waits from its first request, at 1 ms, to its slice, at 13: 4 for the first
/// completion and 8 for the first group's next request, which does not come. The first group waits
/// from 0 to 1, when it is dispatched; no group is served before. It comes back at 14 while the
/// second is served, until 16.
#[test]
fn group_waits_from_its_first_request_to_its_slice_while_another_is_served() {
    let mut rig = groups();
    rig.run(&[
        Submit("a", read(0..16).by("a")),
        Advance(ms(1)),
        Expect(dispatched("a")),
        Submit("b", read(FAR..FAR + 16).by("b")),
        Advance(ms(2)),
        Submit("b2", read(FAR + 16..FAR + 32).by("b")),
        Advance(ms(2)),
        Complete("a"),
        Advance(ms(8)),
        TimerFires,
        Expect(dispatched("b")),
        Advance(ms(1)),
        Submit("a2", read(16..32).by("a")),
        Advance(ms(2)),
        Complete("b"),
        Expect(dispatched("b2")),
        Complete("b2"),
        Exit("b"),
        Expect(dispatched("a2")),
    ]);
    assert_eq!(rig.slice_stats("/a").group_wait_time, ms(1 + 2));
    assert_eq!(rig.slice_stats("/b").group_wait_time, ms(12));
}

#[test]
fn group_that_is_served_does_not_wait() {
    let mut rig = groups();
    rig.run(&[
        Submit("a", read(0..16).by("a")),
        Expect(dispatched("a")),
        Submit("a2", read(16..32).by("a")),
        Advance(ms(4)),
        Complete("a"),
        Expect(dispatched("a2")),
    ]);
    assert_eq!(rig.slice_stats("/a").group_wait_time, ms(0));
}

/// It is empty from the exit at 3 ms, which ends a slice with no request waiting, to the next
/// request at 10. A request in flight does not wait: the slice that an exit ends at 12 leaves the
/// group empty too.
#[test]
fn group_is_empty_from_the_end_of_a_slice_with_nothing_queued_to_its_next_request() {
    let mut rig = groups().task("a2", "be/4", "/a").task("a3", "be/4", "/a");
    rig.run(&[
        Submit("a", read(0..16).by("a")),
        Expect(dispatched("a")),
        Advance(ms(3)),
        Complete("a"),
        Exit("a"),
        Advance(ms(7)),
        Submit("a2", read(16..32).by("a2")),
        Expect(dispatched("a2")),
    ]);
    assert_eq!(rig.slice_stats("/a").empty_time, ms(7));
    rig.run(&[
        Advance(ms(2)),
        Exit("a2"),
        Advance(ms(4)),
        Complete("a2"),
        Submit("a3", read(32..48).by("a3")),
    ]);
    assert_eq!(rig.slice_stats("/a").empty_time, ms(7 + 4));
}

#[test]
fn group_is_dequeued_each_time_its_last_queue_leaves() {
    let mut rig = groups().task("a2", "be/4", "/a");
    rig.run(&[
        Submit("a", read(0..16).by("a")),
        Submit("a2", read(FAR..FAR + 16).by("a2")),
        Serve(&["a"]),
        Exit("a"),
    ]);
    assert_eq!(rig.slice_stats("/a").dequeue, 0);
    rig.run(&[Serve(&["a2"]), Exit("a2")]);
    assert_eq!(rig.slice_stats("/a").dequeue, 1);
}

/// One request waits when the first queue becomes active, and 4 when the second does: of both
/// queues of the group, with the one that is dispatched next. The mean of 1 and 4 is 2 in whole
/// requests; with a third activation, at which 3 wait, it is 8 / 3, 2 as well.
#[test]
fn queue_size_is_averaged_over_activations() {
    let mut rig = groups().task("a2", "be/4", "/a");
    rig.run(&[
        Submit("a", read(0..16).by("a")),
        Expect(dispatched("a")),
        Submit("other", read(FAR..FAR + 16).by("a2")),
        Submit("other 2", read(FAR + 16..FAR + 32).by("a2")),
        Submit("other 3", read(FAR + 32..FAR + 48).by("a2")),
    ]);
    assert_eq!(rig.slice_stats("/a").avg_queue_size(), 1);
    rig.run(&[Complete("a"), Exit("a")]);
    rig = rig.task("a3", "be/4", "/a");
    rig.run(&[Submit("third", read(2 * FAR..2 * FAR + 16).by("a3")), Expect(dispatched("other"))]);
    assert_eq!(rig.slice_stats("/a").avg_queue_size(), 2);
    rig.run(&[Complete("other"), Exit("a2"), Expect(dispatched("third"))]);
    assert_eq!(rig.slice_stats("/a").avg_queue_size(), 2);
}
