//! What mq-deadline decides: the scenarios of the description it was written from, by their
//! numbers there, then its tunables.
//!
//! As there: all requests have 8 sectors, the device takes one at a time and is instantly done,
//! and nothing merges, where a test does not say otherwise. A tick is a millisecond.

use crate::rig::*;
use paternoster::{DeadlineEvent, Event, IoClass, NoMerges, TunableError};

/// Runs of the first letters of names: `["r1", "r2", "w1"]` is `"r×2 w×1"`.
fn runs(names: &[String]) -> String {
    let letter = |name: &String| name.chars().next().expect("a name");
    let runs = names.chunk_by(|a, b| letter(a) == letter(b));
    let emitted: Vec<_> = runs.map(|run| format!("{}×{}", letter(&run[0]), run.len())).collect();
    emitted.join(" ")
}

fn names(prefix: &str, numbers: std::ops::Range<u64>) -> Vec<String> {
    numbers.map(|i| format!("{prefix}{i}")).collect()
}

/// Submits reads and writes of 8 sectors, one after the other each.
fn fill(rig: &mut Rig, reads: u64, writes: u64) {
    for i in 0..reads {
        rig.enter(&format!("r{i}"), read(8 * i..8 * i + 8));
    }
    for i in 0..writes {
        let start = 100_000 + 8 * i;
        rig.enter(&format!("w{i}"), write(start..start + 8));
    }
}

/// Scenario 1. First nothing is to go on from: the oldest read, r0; r2 follows it in sector
/// order, and there the order ends; anew the oldest read, r1; then only writes are left.
#[test]
fn batch_starts_at_the_oldest_read_and_goes_on_upward() {
    Rig::mq_deadline().without_merging().run(&[
        Submit("w0", write(1000..1008)),
        Submit("w1", write(2000..2008)),
        Submit("r0", read(5000..5008)),
        Submit("r1", read(100..108)),
        Submit("r2", read(9000..9008)),
        Serve(&["r0", "r2", "r1", "w0", "w1"]),
        Expect(Nothing),
    ]);
}

/// Scenario 2. Two batches of 16 reads, one of writes; then 16 + 12 reads, with which reads end,
/// and writes run on for 16 + 8.
#[test]
fn two_read_batches_go_before_a_write_batch() {
    let mut rig = Rig::mq_deadline().without_merging();
    fill(&mut rig, 60, 40);
    assert_eq!(runs(&rig.serve_all()), "r×32 w×16 r×28 w×24");
}

/// Scenario 3, and the effect of `fifo_batch`.
#[test]
fn fifo_batch_of_one_decides_for_each_request() {
    let mut rig = Rig::mq_deadline().without_merging();
    rig.run(&[Set("fifo_batch", 1)]);
    fill(&mut rig, 8, 4);
    let expected = ["r0", "r1", "w0", "r2", "r3", "w1", "r4", "r5", "w2", "r6", "r7", "w3"];
    assert_eq!(rig.serve_all(), expected);
}

/// Scenario 4.
#[test]
fn writes_go_first_when_they_may_not_starve_at_all() {
    let mut rig = Rig::mq_deadline().without_merging();
    rig.run(&[Set("fifo_batch", 2), Set("writes_starved", 0)]);
    fill(&mut rig, 6, 4);
    let expected = ["w0", "w1", "w2", "w3", "r0", "r1", "r2", "r3", "r4", "r5"];
    assert_eq!(rig.serve_all(), expected);
}

/// Scenario 5. 500 is the oldest, 900 follows; then 100 is the oldest, and 300 follows.
#[test]
fn sweep_that_ends_starts_again_at_the_oldest() {
    Rig::mq_deadline().without_merging().run(&[
        Submit("500", read(500..508)),
        Submit("100", read(100..108)),
        Submit("900", read(900..908)),
        Submit("300", read(300..308)),
        Serve(&["500", "900", "100", "300"]),
    ]);
}

/// Scenario 6, first part: the batch of 16 is over at tick 500, where `hi` has expired; nothing
/// follows it, so the next decision finds r16 the oldest.
#[test]
fn expired_oldest_request_moves_the_head() {
    let mut rig = Rig::mq_deadline().without_merging();
    rig.enter("r0", read(0..8));
    rig.enter("hi", read(9000..9008));
    for i in 1..40 {
        rig.enter(&format!("r{i}"), read(8 * i..8 * i + 8));
    }
    assert_eq!(rig.serve_up_to(16), names("r", 0..16));
    rig.run(&[Advance(ms(500)), Serve(&["hi"])]);
    assert_eq!(rig.serve_all(), names("r", 16..40));
}

/// Scenario 6, second part: the oldest is the one that follows anyway.
#[test]
fn expired_request_that_is_not_the_oldest_waits_for_the_sweep() {
    let mut rig = Rig::mq_deadline().without_merging();
    fill(&mut rig, 40, 0);
    rig.enter("hi", read(9000..9008));
    assert_eq!(rig.serve_up_to(16), names("r", 0..16));
    rig.run(&[Advance(ms(500))]);
    assert_eq!(rig.serve_up_to(24), names("r", 16..40));
    rig.run(&[Serve(&["hi"])]);
}

/// Scenario 7.
#[test]
fn request_in_the_device_holds_back_lower_classes() {
    let rig = Rig::mq_deadline().without_merging().depth(4);
    rig.task("rt", "rt/0", ROOT).task("idle", "idle", ROOT).run(&[
        Submit("be", read(0..8)),
        Submit("rt", read(1000..1008).by("rt")),
        Submit("idle", read(2000..2008).by("idle")),
        Expect(dispatched("rt")),
        Expect(Nothing),
        Complete("rt"),
        Expect(dispatched("be")),
        Expect(Nothing),
        Complete("be"),
        Expect(dispatched("idle")),
        Expect(Nothing),
    ]);
}

/// Scenario 8: at 9999 the request that started at 0 is younger than 9999 − 10000; at 10000 it
/// is not younger than 0.
#[test]
fn lower_class_is_served_when_it_has_waited_prio_aging_expire() {
    Rig::mq_deadline().without_merging().task("rt", "rt/0", ROOT).run(&[
        Submit("be", read(0..8)),
        Submit("rt1", read(1000..1008).by("rt")),
        Submit("rt2", read(2000..2008).by("rt")),
        Submit("rt3", read(3000..3008).by("rt")),
        Serve(&["rt1"]),
        Advance(ms(9_999)),
        Serve(&["rt2"]),
        Advance(ms(1)),
        Serve(&["be", "rt3"]),
    ]);
}

/// The effect of `prio_aging_expire`.
#[test]
fn prio_aging_expire_says_how_long_a_lower_class_waits() {
    Rig::mq_deadline().without_merging().task("rt", "rt/0", ROOT).run(&[
        Set("prio_aging_expire", 30),
        Submit("be", read(0..8)),
        Submit("rt1", read(1000..1008).by("rt")),
        Submit("rt2", read(2000..2008).by("rt")),
        Advance(ms(29)),
        Serve(&["rt1"]),
        Advance(ms(1)),
        Serve(&["be", "rt2"]),
    ]);
}

/// Scenario 9. Each dispatch first probes BE, which prefers reads for the first time, for
/// the second, and then chooses writes; each choice ends the batch.
#[test]
fn aging_probes_starve_writes_and_end_batches_of_the_other_class() {
    let after = |bio, starved| {
        [Serve(bio), Expect(Number("starved", starved)), Expect(Number("batching", 1))]
    };
    let mut rig = Rig::mq_deadline().without_merging().task("rt", "rt/0", ROOT);
    rig.run(&[
        Submit("read", read(0..8)),
        Submit("write", write(100_000..100_008)),
        Submit("rt0", read(1000..1008).by("rt")),
        Submit("rt1", read(2000..2008).by("rt")),
        Submit("rt2", read(3000..3008).by("rt")),
        Submit("rt3", read(4000..4008).by("rt")),
    ]);
    rig.run(&after(&["rt0"], 1)).run(&after(&["rt1"], 2));
    rig.run(&after(&["rt2"], 0)).run(&after(&["rt3"], 1));
}

/// Scenario 10.
#[test]
fn request_that_arrives_behind_the_head_waits_for_a_decision() {
    Rig::mq_deadline().without_merging().run(&[
        Submit("0", read(0..8)),
        Submit("16", read(16..24)),
        Submit("32", read(32..40)),
        Submit("48", read(48..56)),
        Submit("64", read(64..72)),
        Serve(&["0", "16", "32"]),
        Submit("40", read(40..48)),
        Serve(&["48", "64", "40"]),
    ]);
}

/// Scenario 11: with the deadline of 590 and an expiry of 0 now, the read seems to start at
/// 590. Linux would wait for another event; we ask to be woken, or a quiet disk would hang.
#[test]
fn lowered_read_expire_makes_a_queued_read_eligible_later_and_wakes_for_it() {
    Rig::mq_deadline().run(&[
        Advance(ms(90)),
        Submit("a", read(0..8)),
        Expect(Timeout(None)),
        Advance(ms(10)),
        Set("read_expire", 0),
        Expect(Nothing),
        Expect(Timeout(Some(ms(590)))),
        Advance(ms(489)),
        Expect(Nothing),
        Advance(ms(1)),
        Expect(dispatched("a")),
        Expect(Timeout(None)),
    ]);
}

/// A full device once kept the moment at which a request becomes eligible although it had passed:
/// whoever waits until then would not have slept again.
#[test]
fn moment_that_has_come_is_not_asked_for_again_while_the_device_is_full() {
    Rig::mq_deadline().run(&[
        Submit("a", read(0..8)),
        Set("read_expire", 0),
        Expect(Nothing),
        Expect(Timeout(Some(ms(500)))),
        SetDepth(0),
        Advance(ms(500)),
        TimerFires,
        Expect(Timeout(None)),
        SetDepth(1),
        Expect(dispatched("a")),
    ]);
}

/// Scenario 12. The second bio makes A the last merge, so that the third finds A and not N.
#[test]
fn joined_request_inherits_the_earlier_deadline_and_its_place() {
    Rig::mq_deadline().run(&[
        Advance(ms(150)),
        Submit("N", read(116..124)),
        Advance(ms(10)),
        Submit("other", read(9000..9008)),
        Advance(ms(40)),
        Submit("A", read(100..104)),
        BackMerge("A2", read(104..108), "A"),
        Expect(Deadline("A", ms(700))),
        Expect(Deadline("N", ms(650))),
        BackMerge("A3", read(108..116), "A"),
        Expect(together("A", "N")),
        Expect(Deadline("A", ms(650))),
        // The oldest is chosen, which by its own deadline would have been the other.
        Serve(&["A", "other"]),
    ]);
}

/// P is behind the head, N is next; with N in P the batch goes on with what follows N, although P
/// is the oldest now, by N's deadline.
#[test]
fn batch_goes_on_behind_a_request_that_was_joined() {
    Rig::mq_deadline().run(&[
        Submit("head", read(0..8)),
        Submit("N", read(116..124)),
        Submit("far", read(9000..9008)),
        Serve(&["head"]),
        Advance(ms(1)),
        Submit("P", read(100..108)),
        BackMerge("between", read(108..116), "P"),
        Expect(together("P", "N")),
        Serve(&["far", "P"]),
    ]);
}

/// Scenario 13: a device of depth 3 requeues two; the batch was at its third request.
#[test]
fn requeued_requests_are_served_first_and_the_last_of_them_before_the_others() {
    Rig::mq_deadline().without_merging().depth(3).run(&[
        Submit("h1", read(0..8)),
        Submit("h2", read(8..16)),
        Submit("c", read(16..24)),
        Submit("d", read(24..32)),
        Submit("e", read(32..40)),
        Expect(dispatched("h1")),
        Expect(dispatched("h2")),
        Expect(dispatched("c")),
        Requeue("h1"),
        Requeue("h2"),
        Expect(dispatched("h2")),
        Expect(dispatched("h1")),
        Expect(Number("batching", 3)),
        Complete("c"),
        Expect(dispatched("d")),
        Expect(Number("batching", 4)),
    ]);
}

/// The head lists of the classes are as far apart as their fifos.
#[test]
fn requeued_request_is_first_of_its_own_class_only() {
    Rig::mq_deadline().without_merging().task("rt", "rt/0", ROOT).run(&[
        Submit("be", read(0..8)),
        Expect(dispatched("be")),
        Submit("rt", read(1000..1008).by("rt")),
        Requeue("be"),
        Serve(&["rt", "be"]),
    ]);
}

/// The effect of `read_expire`: a decision at tick 10 finds the oldest read expired, or not.
#[test]
fn read_expire_says_when_the_oldest_read_is_served_out_of_order() {
    for (expire, order) in [(10, ["lo", "hi", "lo2"]), (11, ["lo", "lo2", "hi"])] {
        let mut rig = Rig::mq_deadline().without_merging();
        rig.run(&[
            Set("read_expire", expire),
            Set("fifo_batch", 1),
            Submit("lo", read(0..8)),
            Submit("hi", read(9000..9008)),
            Submit("lo2", read(8..16)),
            Serve(&["lo"]),
            Advance(ms(10)),
        ]);
        assert_eq!(rig.serve_all(), order[1..], "read_expire {expire}");
    }
}

/// The effect of `write_expire`, as of `read_expire`.
#[test]
fn write_expire_says_when_the_oldest_write_is_served_out_of_order() {
    for (expire, order) in [(10, ["lo", "hi", "lo2"]), (11, ["lo", "lo2", "hi"])] {
        let mut rig = Rig::mq_deadline().without_merging();
        rig.run(&[
            Set("write_expire", expire),
            Set("fifo_batch", 1),
            Submit("lo", write(0..8)),
            Submit("hi", write(9000..9008)),
            Submit("lo2", write(8..16)),
            Serve(&["lo"]),
            Advance(ms(10)),
        ]);
        assert_eq!(rig.serve_all(), order[1..], "write_expire {expire}");
    }
}

/// The effect of `writes_starved`, which is an unsigned number in Linux: below 0, never.
#[test]
fn writes_starved_says_how_often_reads_pass_a_waiting_write() {
    let orders = [(1, "r×1 w×1 r×1 w×1 r×4"), (3, "r×3 w×1 r×3 w×1"), (-1, "r×6 w×2")];
    for (starved, order) in orders {
        let mut rig = Rig::mq_deadline().without_merging();
        rig.run(&[Set("fifo_batch", 1), Set("writes_starved", starved)]);
        fill(&mut rig, 6, 2);
        assert_eq!(runs(&rig.serve_all()), order, "writes_starved {starved}");
    }
}

/// The effect of `front_merges`; the first request is the last merge, and stays in the way.
#[test]
fn front_merges_says_whether_the_sort_list_is_searched() {
    let first = [Submit("x", read(9000..9008)), Submit("a", read(100..108))];
    Rig::mq_deadline().run(&first).run(&[FrontMerge("b", read(92..100), "a")]);
    let without = [Set("front_merges", 0), Submit("b", read(92..100))];
    Rig::mq_deadline().run(&first).run(&without);
}

/// The effect of `async_depth`: it bounds everything but reads, synchronous writes too.
#[test]
fn async_depth_bounds_everything_but_reads() {
    Rig::mq_deadline().without_merging().run(&[
        Set("async_depth", 2),
        Submit("w0", write(0..8)),
        Submit("w1", discard(100..108)),
        TurnAway("w2", write(200..208)),
        TurnAway("w3", write(300..308).sync()),
        Submit("r0", read(400..408)),
        Submit("r1", read(500..508)),
        Expect(dispatched("r0")),
        Complete("r0"),
        // A read made room for nobody who waits here, but those who wait are asked to try.
        Expect(WaitersCalled(true)),
        Serve(&["r1", "w0"]),
        Retry("w2", write(200..208)),
        Serve(&["w1", "w2"]),
        Expect(Nothing),
    ]);
}

/// A write is turned away by the limit of 2 on writes, which calls at each completion; a read by
/// the limit of 17 on all, which calls at every second. The write is not made to wait for that.
#[test]
fn those_turned_away_by_several_limits_are_called_as_by_the_least() {
    let mut rig = Rig::mq_deadline().without_merging();
    rig.run(&[Set("async_depth", 2), SetNrRequests(Some(17))]);
    fill(&mut rig, 14, 2);
    rig.run(&[
        TurnAway("write", write(900_000..900_008)),
        Submit("17th", read(910_000..910_008)),
        TurnAway("read", read(920_000..920_008)),
        Serve(&["r0"]),
        Expect(WaitersCalled(true)),
    ]);
}

#[test]
fn values_out_of_range_are_clamped_as_linux_clamps_them() {
    let int_max = i64::from(i32::MAX);
    let table = [
        ("read_expire", -5, 0),
        ("read_expire", 1 << 40, int_max),
        ("write_expire", -1, 0),
        ("write_expire", i64::MAX, int_max),
        ("writes_starved", i64::MIN, i64::from(i32::MIN)),
        ("writes_starved", i64::MAX, int_max),
        ("front_merges", -1, 0),
        ("front_merges", 7, 1),
        ("fifo_batch", -1, 0),
        ("fifo_batch", i64::MAX, int_max),
        ("prio_aging_expire", -1, 0),
        ("prio_aging_expire", i64::MAX, int_max),
        ("async_depth", 0, 1),
        ("async_depth", i64::MAX, int_max),
    ];
    let mut rig = Rig::mq_deadline();
    for (name, value, stored) in table {
        let set = rig.elevator.set_tunable(rig.now, name, value);
        assert_eq!(set, Ok(stored), "{name} = {value}");
        assert_eq!(rig.elevator.tunable(name), Ok(stored), "{name} = {value}");
    }
}

#[test]
fn unknown_tunable_is_refused_with_what_there_is() {
    let mut rig = Rig::mq_deadline();
    let error = rig.elevator.set_tunable(rig.now, "quantum", 8).expect_err("it is CFQ's");
    assert!(matches!(error, TunableError::Unknown { .. }));
    let emitted = "mq-deadline has no tunable \"quantum\"; it has: read_expire, write_expire, \
                writes_starved, front_merges, fifo_batch, prio_aging_expire, async_depth";
    assert_eq!(error.to_string(), emitted);
    assert_eq!(rig.elevator.tunable("quantum"), Err(error));
}

#[test]
fn scheduler_says_why_each_batch_began() {
    let mut rig = Rig::mq_deadline();
    rig.run(&[
        SetNoMerges(NoMerges::All),
        Set("fifo_batch", 1),
        Submit("lo", read(0..8)),
        Submit("hi", read(9000..9008)),
        Submit("lo2", read(8..16)),
        Serve(&["lo", "lo2"]),
        Advance(ms(500)),
        Serve(&["hi"]),
    ]);
    let reasons = rig.events().into_iter().filter_map(|event| match event {
        Event::Deadline(DeadlineEvent::Batch { reason, .. }) => Some(format!("{reason:?}")),
        _ => None,
    });
    assert_eq!(reasons.collect::<Vec<_>>(), ["Start", "Onward", "Expired"]);
}

/// While `rt` has the device, each dispatch probes BE, whose read has not aged: a batch is chosen
/// and does not begin. It begins with the dispatch of that read.
#[test]
fn batch_that_a_probe_chose_begins_with_its_first_request() {
    let mut rig = Rig::mq_deadline().without_merging().task("rt", "rt/0", ROOT);
    let began = |rig: &mut Rig| {
        let events = rig.events().into_iter();
        let classes = events.filter_map(|event| match event {
            Event::Deadline(DeadlineEvent::Batch { class, .. }) => Some(class),
            _ => None,
        });
        classes.collect::<Vec<_>>()
    };
    rig.run(&[Submit("be", read(100..108)), Submit("rt", read(0..8).by("rt"))]);
    rig.run(&[Serve(&["rt"])]);
    assert_eq!(began(&mut rig), [IoClass::Rt]);
    rig.run(&[Serve(&["be"])]);
    assert_eq!(began(&mut rig), [IoClass::Be]);
}
