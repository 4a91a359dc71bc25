//! Where a tag is, and where one starts that comes or comes back.

use crate::rig::*;
use crate::wfq::{counts, groups, order, submit};

/// Scenario 1. Starts of A: 0, 1/100, 2/100; of B: 0, 1/200, 2/200, …; A was first.
#[test]
fn least_start_is_served_and_of_equal_ones_the_older_tag() {
    let mut rig = groups(1, &[("A", 100), ("B", 200)]);
    submit(&mut rig, "A", 10);
    submit(&mut rig, "B", 20);
    assert_eq!(order(&mut rig, 9), "ABBABBABB");
}

/// Scenario 2.
#[test]
fn requests_are_dispatched_by_weight() {
    let mut rig = groups(1, &[("A", 100), ("B", 200), ("C", 400)]);
    for task in ["A", "B", "C"] {
        submit(&mut rig, task, 5000);
    }
    let counts = counts(&mut rig, 7000);
    for (task, expected) in [("A", 1000), ("B", 2000), ("C", 4000)] {
        assert!(counts[task].abs_diff(expected) <= 1, "{counts:?}");
    }
}

/// Scenario 3: B has no claim on the time before it came, and A no debt.
#[test]
fn who_comes_late_is_served_next_and_then_in_turn() {
    let mut rig = groups(1, &[("A", 100), ("B", 100)]);
    submit(&mut rig, "A", 10_010);
    assert_eq!(counts(&mut rig, 10_000)["A"], 10_000);
    rig.events();
    submit(&mut rig, "B", 5);
    // v is the start of the last request: 9999 ops at weight 100.
    rig.run(&[Expect(Emitted("fair busy /B: 99990 at 99990"))]);
    assert_eq!(order(&mut rig, 9), "BABABABAB");
}

/// Scenario 4: v is 5 ops a weight when B comes.
#[test]
fn who_was_idle_enters_at_the_time_of_the_others() {
    let mut rig = groups(1, &[("A", 100), ("B", 100)]);
    submit(&mut rig, "A", 600);
    counts(&mut rig, 501);
    submit(&mut rig, "B", 1);
    rig.run(&[Expect(Emitted("fair busy /B: 5000 at 5000"))]);
}

/// Scenario 5: 10 requests each millisecond, so v was 4.9 a millisecond before it is 5. B enters
/// there, 10 requests behind A.
#[test]
fn with_grace_it_enters_at_the_time_of_a_moment_ago() {
    let mut rig = groups(1, &[("A", 100), ("B", 100)]).set("grace_us", 1000);
    submit(&mut rig, "A", 600);
    for _ in 0..50 {
        order(&mut rig, 10);
        rig.run(&[Advance(ms(1))]);
    }
    order(&mut rig, 1);
    submit(&mut rig, "B", 20);
    rig.run(&[Expect(Emitted("fair busy /B: 4900 at 5000"))]);
    assert_eq!(order(&mut rig, 15), "BBBBBBBBBBBABAB");
}

/// As long as nobody asks for it nothing is noted: what was noted before is of another time.
#[test]
fn grace_that_is_set_again_begins_now() {
    let mut rig = groups(1, &[("A", 100), ("B", 100)]).set("grace_us", 1000);
    submit(&mut rig, "A", 600);
    order(&mut rig, 101);
    let mut rig = rig.set("grace_us", 0);
    rig.run(&[Advance(ms(10))]);
    order(&mut rig, 400);
    let mut rig = rig.set("grace_us", 1000);
    submit(&mut rig, "B", 1);
    rig.run(&[Expect(Emitted("fair busy /B: 5000 at 5000"))]);
}

/// Scenario 6: B, of weight 1, has had one request more than its share, and comes back.
#[test]
fn who_is_ahead_keeps_its_tag_while_it_is_idle() {
    let mut rig = groups(1, &[("A", 100), ("B", 1)]);
    submit(&mut rig, "B", 1);
    submit(&mut rig, "A", 100);
    assert_eq!(order(&mut rig, 51), format!("B{}", "A".repeat(50)));
    submit(&mut rig, "B", 1);
    // It stopped at 1 op a weight; the others have come to 49 ops at weight 100.
    rig.run(&[Expect(Emitted("fair busy /B: 1000 at 490"))]);
    assert_eq!(order(&mut rig, 51), format!("{}B", "A".repeat(50)));
}

/// Scenario 7.
#[test]
fn one_completion_makes_room_for_one_request() {
    let mut rig = groups(4, &[("A", 100)]);
    for (name, at) in [("a", 0), ("b", 100), ("c", 200), ("d", 300), ("e", 400), ("f", 500)] {
        rig.enter(name, read(at..at + 8).by("A"));
    }
    rig.run(&[
        Expect(dispatched("a")),
        Expect(dispatched("b")),
        Expect(dispatched("c")),
        Expect(dispatched("d")),
        Expect(Nothing),
        Expect(Emitted("waiting: DeviceFull")),
        Complete("b"),
        Expect(dispatched("e")),
        Expect(Nothing),
    ]);
}

/// What bypasses it is in the device as well.
#[test]
fn flush_takes_a_place_in_the_device() {
    let mut rig = groups(1, &[("A", 100)]);
    rig.run(&[
        Submit("f", flush().by("A")),
        Submit("a", read(0..8).by("A")),
        Expect(dispatched("f")),
        Expect(Nothing),
        Complete("f"),
        Expect(dispatched("a")),
    ]);
}

/// Scenario 11. At 300:100 three of four.
#[test]
fn another_weight_holds_from_the_next_dispatch() {
    let mut rig = groups(1, &[("A", 100), ("B", 100)]);
    submit(&mut rig, "A", 1000);
    submit(&mut rig, "B", 1000);
    assert_eq!(counts(&mut rig, 100)["A"], 50);
    rig.run(&[SetWeight("/A", 300)]);
    let counts = counts(&mut rig, 400);
    assert!(counts["A"].abs_diff(300) <= 1, "{counts:?}");
}

/// Scenario 12. A is 0.4 of its weight ahead: 40 requests at weight 100, with B 40 behind.
#[test]
fn another_weight_leaves_the_tag_where_it_is() {
    let mut rig = groups(1, &[("A", 300), ("B", 100)]);
    submit(&mut rig, "A", 1);
    rig.run(&[Serve(&["A"])]);
    // 1 op at weight 300: 3.33. Whatever the weight, that is where it comes back.
    rig.run(&[SetWeight("/A", 100)]);
    submit(&mut rig, "A", 1);
    rig.run(&[Expect(Emitted("fair busy /A: 3 at 0"))]);
}

/// Scenario 22.
#[test]
fn requeued_request_is_first_of_its_context_and_costs_nothing_again() {
    let mut rig = groups(2, &[("A", 100), ("B", 100)]);
    rig.run(&[
        Submit("a", read(0..8).by("A")),
        Submit("a2", read(100..108).by("A")),
        Submit("b", read(200..208).by("B")),
        Submit("b2", read(300..308).by("B")),
        Expect(dispatched("a")),
        Expect(dispatched("b")),
        Requeue("a"),
        // A's tag is where B's is, and was made before.
        Expect(dispatched("a")),
        Expect(Emitted("fair dispatch a: 1000")),
        Expect(Emitted("fair dispatch b: 1000")),
        Expect(Emitted("fair dispatch a: 0")),
        Complete("a"),
        // It did not advance: had it been charged twice, B's second request would be next.
        Complete("b"),
        Serve(&["b2", "a2"]),
    ]);
}
