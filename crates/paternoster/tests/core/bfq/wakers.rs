//! Queues that wait for each other.

use crate::bfq::{FAR, plain_fast};
use crate::rig::*;
use paternoster::Nanos;

/// The other's queue, and 200 ms later the first round.
fn begun(reader: &str) -> Rig {
    let mut rig = plain_fast(2).task("reader", reader, ROOT).task("other", "be/4", ROOT);
    rig.run(&[Submit("w", write(FAR..FAR + 8).sync().by("other")), Serve(&["w"])]);
    rig.run(&[Advance(ms(200)), TimerFires]);
    rig
}

/// The reader reads; 6 ms after that the other writes; its request is done 1 ms later, and the next
/// round begins after that.
fn round(rig: &mut Rig, after: Nanos) {
    rig.run(&[
        Submit("r", read(0..8).by("reader")),
        Expect(dispatched("r")),
        Advance(ms(1)),
        Complete("r"),
        Advance(ms(6)),
        Submit("w", write(FAR..FAR + 8).sync().by("other")),
        Expect(dispatched("w")),
        Advance(ms(1)),
        Complete("w"),
        Advance(after),
    ]);
}

fn found(rig: &mut Rig) -> bool {
    let emitted: Vec<_> = rig.events().iter().filter_map(|event| rig.line_of(event)).collect();
    emitted.contains(&"waker of reader: other".to_owned())
}

/// Think times are 16, which a new queue begins with, and 7 ms: from the third on, their mean, 9.7,
/// counts as long. The third arrival from then on makes the other the waker, and is found again by
/// each third.
#[test]
fn waker_is_found_at_the_third_arrival_after_its_completions() {
    let mut rig = begun("be/4");
    let found_in: Vec<bool> = (0..12)
        .map(|_| {
            round(&mut rig, Nanos::ZERO);
            found(&mut rig)
        })
        .collect();
    let rounds: Vec<_> = (1..).zip(found_in).filter(|(_, found)| *found).map(|(n, _)| n).collect();
    assert_eq!(rounds, [5, 8, 11]);
}

/// 4 ms are too late. The device idles for the other meanwhile, so that there is no other
/// completion.
#[test]
fn arrival_4_ms_after_a_completion_is_no_consequence_of_it() {
    for (after, finds) in [(us(3999), true), (ms(4), false)] {
        let mut rig = begun("be/4");
        for _ in 0..5 {
            round(&mut rig, after);
        }
        assert_eq!(found(&mut rig), finds, "{after:?}");
    }
}

/// Three times within 128 × 8 ms of the first.
#[test]
fn waker_is_found_within_128_idle_times() {
    for (pause, finds) in [(1008, true), (1009, false)] {
        let mut rig = begun("be/4");
        for _ in 0..3 {
            round(&mut rig, Nanos::ZERO);
        }
        // The first detection was 8 ms ago; the next two are in the rounds to come, the last
        // one 8 ms after the one before it.
        rig.run(&[Advance(ms(pause)), TimerFires]);
        rig.run(&[Submit("w", write(FAR..FAR + 8).sync().by("other")), Serve(&["w"])]);
        round(&mut rig, Nanos::ZERO);
        rig.events();
        round(&mut rig, Nanos::ZERO);
        assert_eq!(found(&mut rig), finds, "{pause}");
    }
}

/// A queue of the idle class has a short think time for all that is known, always. The device idles
/// for it no longer than 1 ms here.
#[test]
fn queue_of_the_idle_class_has_no_waker() {
    for (reader, finds) in [("be/4", true), ("idle", false)] {
        let mut rig = begun(reader).set("slice_idle_us", 1000);
        for _ in 0..5 {
            rig.run(&[
                Submit("r", read(0..8).by("reader")),
                Expect(dispatched("r")),
                Advance(ms(1)),
                Complete("r"),
                Advance(ms(3)),
                TimerFires,
                Submit("w", write(FAR..FAR + 8).sync().by("other")),
                Expect(dispatched("w")),
                Advance(ms(1)),
                Complete("w"),
                Advance(ms(1)),
                TimerFires,
            ]);
        }
        assert_eq!(found(&mut rig), finds, "{reader}");
    }
}

/// The limit of either is 1, for they think long, and a third's request is in the device: another
/// of that has to wait.
#[test]
fn waker_and_woken_are_served_for_each_other_beyond_the_limit() {
    let r = Submit("r", read(0..8).by("reader"));
    let w = Submit("w", write(FAR..FAR + 8).sync().by("other"));
    for (heavy, first, second, emitted) in [
        ("reader", ("r", r.clone()), ("w", w.clone()), "injected other for reader"),
        ("other", ("w", w), ("r", r), "injected reader for other"),
    ] {
        let mut rig = begun("be/4").task("third", "be/4", ROOT);
        for _ in 0..5 {
            round(&mut rig, Nanos::ZERO);
        }
        assert!(found(&mut rig));
        rig.run(&[
            Advance(ms(30)),
            TimerFires,
            SetPriority(heavy, "be/3"),
            first.1,
            Expect(dispatched(first.0)),
            Submit("x", read(9 * FAR..9 * FAR + 8).by("third")),
            Submit("x2", read(9 * FAR + 8..9 * FAR + 16).by("third")),
            Complete(first.0),
            Expect(dispatched("x")),
            Expect(Nothing),
            second.1,
            Expect(dispatched(second.0)),
            Expect(Emitted(emitted)),
        ]);
    }
}

/// Two tasks' queue, merged at their birth.
#[test]
fn shared_queue_is_no_waker() {
    let rig = plain_fast(2).task("reader", "be/4", ROOT).task("other", "be/4", ROOT);
    let mut rig = rig.task("third", "be/4", ROOT);
    rig.run(&[
        Submit("w", write(FAR..FAR + 8).sync().by("other")),
        Submit("w2", write(FAR + 8..FAR + 16).sync().by("third")),
        Expect(Emitted("merged third into other")),
        Serve(&["w", "w2"]),
        Advance(ms(200)),
        TimerFires,
    ]);
    for _ in 0..12 {
        round(&mut rig, Nanos::ZERO);
    }
    assert!(!found(&mut rig));
}

/// Its queue goes with it, and the other has no waker then.
#[test]
fn waker_may_exit() {
    let mut rig = begun("be/4");
    for _ in 0..5 {
        round(&mut rig, Nanos::ZERO);
    }
    assert!(found(&mut rig));
    rig.run(&[
        Exit("other"),
        Submit("r", read(0..8).by("reader")),
        Serve(&["r"]),
        Expect(Nothing),
        Exit("reader"),
        Expect(Number("busy_queues", 0)),
    ]);
}
