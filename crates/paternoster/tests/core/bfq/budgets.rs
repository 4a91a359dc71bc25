//! Budgets: what a service may have served, what it is charged, and what budget the queue gets
//! next.

use crate::bfq::{FAR, plain_disk, plain_fast};
use crate::rig::*;
use paternoster::Nanos;

/// Reads two at once and pauses for 50 ms. The next budget falls by 4 × 512 for each service that
/// ends for the pause, and to 512 where no more than 5 × 512 is left: 10922 is two thirds of 16384.
#[test]
fn queue_that_pauses_gets_a_smaller_budget_each_time() {
    let mut run = plain_disk(1).task("a", "be/4", ROOT).served(1, ms(1));
    run.issues("a", Stream::reads(8).depth(2).think(ms(50))).until(ms(360));
    let budgets = [10_922, 8_874, 6_826, 4_778, 2_730, 682, 512, 512];
    let services = (0..).step_by(51).zip(budgets);
    let emitted: Vec<_> =
        services.map(|(at, budget)| format!("{at} ms: in service a, budget {budget}")).collect();
    assert_eq!(run.emitted_up_to(2, &["in service"]), emitted);
}

/// Its next budget is what it used, at least 512, and is back at once each time: what is left of
/// 512 is its next budget.
#[test]
fn queue_that_runs_empty_goes_on_with_what_is_left() {
    let mut rig = plain_disk(1).set("slice_idle", 0);
    for budget in [10_922, 512, 504, 496] {
        let emitted: &'static str =
            format!("expired main: NoMoreRequests, charged 8 of {budget}").leak();
        rig.run(&[Submit("a", read(0..8)), Serve(&["a"]), Expect(Emitted(emitted))]);
    }
    rig.run(&[Advance(Nanos::new(1)), Submit("a", read(0..8)), Serve(&["a"])]);
    rig.run(&[Expect(Emitted("expired main: NoMoreRequests, charged 8 of 512"))]);
}

/// Within three times 8 ms after a completion. It used 24 of 10922, and its next budget is 16384.
#[test]
fn queue_is_back_in_time_within_three_idle_times() {
    for (late, emitted) in
        [(0, "in service async main, budget 10898"), (1, "in service async main, budget 16384")]
    {
        plain_disk(1).run(&[
            Submit("a", write(0..8)),
            Serve(&["a"]),
            Expect(Emitted("expired async main: NoMoreRequests, charged 24 of 10922")),
            Advance(ms(24)),
            Advance(Nanos::new(late)),
            Submit("b", write(8..16)),
            Serve(&["b"]),
            Expect(Emitted(emitted)),
        ]);
    }
}

/// Who always asks gets 8 sectors a millisecond, 40 in a service. Who thinks for 1 ms before each
/// request is charged at that pace for the 6 ms of its first service. Of the second, of 5 ms, the
/// others have had 16 sectors by injection: it cost them 24.
#[test]
fn service_with_idling_is_charged_what_the_others_lost_by_it_if_that_is_tuned() {
    let rig = plain_fast(1).set("timeout_sync", 5).set("max_budget", 60).set("charge_waiting", 1);
    let rig = rig.group("/asks", 100).task("asks", "be/4", "/asks");
    let rig = rig.group("/thinks", 100).task("thinks", "be/4", "/thinks");
    let mut run = rig.served(1, ms(1));
    run.issues("asks", Stream::reads(8).depth(2));
    run.issues("thinks", Stream::reads(8).from(FAR).think(ms(1)).at(us(100)));
    let emitted = [
        "5 ms: expired asks: Timeout, charged 40 of 10922",
        "11 ms: expired thinks: Timeout, charged 48 of 10922",
        "16 ms: expired asks: Timeout, charged 40 of 60",
        "19 ms: injected asks for thinks",
        "20 ms: injected asks for thinks",
        "21 ms: expired thinks: Timeout, charged 24 of 60",
    ];
    assert_eq!(run.until(ms(21)).emitted_up_to(2, &["expired", "injected"]), emitted);
}

/// An asynchronous write counts threefold in any case.
#[test]
fn small_request_is_charged_the_least_charge_if_that_is_tuned() {
    for (io, least, emitted) in [
        (read(0..1), 0, "expired main: NoMoreRequests, charged 1 of 10922"),
        (read(0..1), 8, "expired main: NoMoreRequests, charged 8 of 10922"),
        (read(0..16), 8, "expired main: NoMoreRequests, charged 16 of 10922"),
        (write(0..1), 8, "expired async main: NoMoreRequests, charged 24 of 10922"),
    ] {
        let mut rig = plain_disk(1).set("slice_idle", 0).set("least_charge", least);
        rig.run(&[Submit("a", io), Serve(&["a"]), Expect(Emitted(emitted))]);
    }
}

/// Thirteen requests of 8 sectors in 130 ms, of which 125 are charged at 16384 for all of them.
#[test]
fn slow_service_is_charged_for_its_time() {
    let mut run = plain_disk(1).task("a", "be/4", ROOT).served(1, ms(10));
    run.issues("a", Stream::reads(8).depth(2)).until(ms(130));
    let emitted = ["130 ms: expired a: Timeout, charged 16384 of 16384, slow, in flight 0"];
    assert_eq!(run.emitted(&["expired"]), emitted);
}

/// A service of more than 20 ms is slow if it got less than half of 16384. Requests of 4096 take 50
/// ms each: two at 100 ms are half. Of three, 12288 are more than the budget.
#[test]
fn service_of_half_of_the_maximum_is_charged_by_sectors() {
    let mut run = plain_disk(1).task("a", "be/4", ROOT).served(1, ms(50));
    run.issues("a", Stream::reads(4096).depth(2)).until(ms(100));
    let emitted = ["100 ms: expired a: Exhausted, charged 8192 of 10922, fast, in flight 0"];
    assert_eq!(run.emitted(&["expired"]), emitted);
    let mut run = plain_disk(1).task("a", "be/4", ROOT).served(1, ms(50));
    run.issues("a", Stream::reads(4095).depth(2)).until(ms(100));
    // 16384 × 100 / 125 = 13107.2.
    let emitted = ["100 ms: expired a: Exhausted, charged 13107 of 13107, slow, in flight 0"];
    assert_eq!(run.emitted(&["expired"]), emitted);
}

/// Nine requests of 1024 sectors in 126 ms are not slow. Of 10922 they leave 1706, less than a
/// third; of 16384, the next budget, 7168, which is more than 5461: the time is charged after all.
#[test]
fn service_that_times_out_with_a_third_of_its_budget_left_is_charged_for_its_time() {
    let mut run = plain_disk(1).task("a", "be/4", ROOT).served(1, ms(14));
    run.issues("a", Stream::reads(1024).depth(2)).until(ms(252));
    let emitted = [
        "126 ms: expired a: Timeout, charged 9216 of 10922, fast, in flight 0",
        "252 ms: expired a: Timeout, charged 16384 of 16384, fast, in flight 0",
    ];
    assert_eq!(run.emitted(&["expired"]), emitted);
}

/// Ten requests of 1024 in 120 ms; the eleventh is more than the 682 that are left. In the second
/// service eleven leave 5120 of 16384, less than a third.
#[test]
fn exhausted_budget_grows_fourfold_up_to_the_maximum() {
    let mut run = plain_disk(1).task("a", "be/4", ROOT).served(1, ms(12));
    run.issues("a", Stream::reads(1024).depth(2)).until(ms(252));
    let emitted = [
        "120 ms: expired a: Exhausted, charged 10240 of 10922, fast, in flight 0",
        "252 ms: expired a: Timeout, charged 11264 of 16384, fast, in flight 0",
    ];
    assert_eq!(run.emitted(&["expired"]), emitted);
}

/// 512 after a service of 8 sectors: four times that after the next, in which 512 are served, and
/// four times that after 2048.
#[test]
fn budget_grows_from_512_to_2048_to_8192() {
    let mut run = plain_disk(1).set("slice_idle", 0).task("a", "be/4", ROOT).served(1, us(100));
    run.issues("a", Stream::reads(8).count(1)).until(ms(100));
    run.issues("a", Stream::reads(64).at(ms(100)).depth(2)).until(ms(130));
    let emitted = [
        "0.1 ms: expired a: NoMoreRequests, charged 8 of 10922",
        "100.8 ms: expired a: Exhausted, charged 512 of 512",
        "104 ms: expired a: Exhausted, charged 2048 of 2048",
        "116.8 ms: expired a: Exhausted, charged 8192 of 8192",
    ];
    assert_eq!(run.emitted_up_to(2, &["expired"]), emitted);
}

/// Three of 8 sectors.
#[test]
fn async_sectors_count_threefold() {
    plain_disk(3).run(&[
        Submit("a", write(0..8)),
        Submit("b", write(100..108)),
        Submit("c", write(200..208)),
        Expect(dispatched("a")),
        Expect(dispatched("b")),
        Expect(dispatched("c")),
        Complete("a"),
        Expect(Emitted(
            "expired async main: NoMoreRequests, charged 72 of 10922, fast, in flight 2",
        )),
    ]);
}

#[test]
fn async_sectors_count_once_where_a_group_has_io() {
    plain_disk(3).group("/g", 100).task("a", "be/4", "/g").run(&[
        Submit("a", write(0..8).by("a")),
        Submit("b", write(100..108).by("a")),
        Submit("c", write(200..208).by("a")),
        Expect(dispatched("a")),
        Expect(dispatched("b")),
        Expect(dispatched("c")),
        Complete("a"),
        Expect(Emitted("expired async a: NoMoreRequests, charged 24 of 10922, fast, in flight 2")),
    ]);
}

/// Unless its own is the least weight of those that are busy or in flight: 40, beside 50 or 30.
#[test]
fn async_sectors_count_once_where_queues_weigh_less() {
    for (task, emitted) in [
        ("be/3", "expired async main: NoMoreRequests, charged 24 of 10922"),
        ("be/4", "expired async main: NoMoreRequests, charged 24 of 10922"),
        ("be/5", "expired async main: NoMoreRequests, charged 8 of 10922"),
    ] {
        plain_disk(2).set("slice_idle", 0).task("a", task, ROOT).run(&[
            Submit("a", read(0..8).by("a")),
            Expect(dispatched("a")),
            Submit("w", write(FAR..FAR + 8)),
            Expect(dispatched("w")),
            Complete("w"),
            Expect(Emitted(emitted)),
        ]);
    }
}

/// Async queues get the maximum whatever they used.
#[test]
fn async_queue_gets_the_maximum() {
    plain_disk(1).run(&[
        Submit("a", write(0..8)),
        Serve(&["a"]),
        Expect(Emitted("expired async main: NoMoreRequests, charged 24 of 10922")),
        Advance(ms(100)),
        Submit("b", write(8..16)),
        Expect(dispatched("b")),
        Expect(Emitted("in service async main, budget 16384")),
    ]);
}

/// A request that is nearer than the one before, and larger than the budget.
#[test]
fn budget_of_a_queue_that_waits_grows_with_its_next_request() {
    plain_disk(1).set("slice_idle", 0).task("a", "be/4", ROOT).run(&[
        Submit("first", read(0..8)),
        Expect(dispatched("first")),
        Submit("far", read(FAR..FAR + 8).by("a")),
        Submit("near", read(100_000..120_000).by("a")),
        Complete("first"),
        Expect(dispatched("near")),
        Expect(Emitted("in service a, budget 20000")),
    ]);
}

/// Two thirds of the maximum, which is not gone by before the eleventh service: the smoothed count
/// of services is 186 after ten and 194 after eleven.
#[test]
fn maximum_counts_from_the_eleventh_service_on() {
    for (services, budget) in [(10, "in service b, budget 10922"), (11, "in service b, budget 666")]
    {
        let mut rig = plain_disk(1).set("slice_idle", 0).set("max_budget", 1000);
        rig = rig.task("a", "be/4", ROOT).task("b", "be/4", ROOT);
        for _ in 0..services {
            rig.run(&[Submit("a", read(0..8).by("a")), Serve(&["a"])]);
            rig.run(&[Expect(Emitted("expired a: NoMoreRequests"))]);
        }
        rig.run(&[Submit("b", read(FAR..FAR + 8).by("b")), Expect(dispatched("b"))]);
        rig.run(&[Expect(Emitted(budget))]);
    }
}

/// All of its 512: there is nothing left to go on with.
#[test]
fn queue_that_used_up_its_budget_gets_a_new_one() {
    plain_disk(1).set("slice_idle", 0).run(&[
        Submit("a", read(0..8)),
        Serve(&["a"]),
        Submit("b", read(8..520)),
        Serve(&["b"]),
        Expect(Emitted("expired main: NoMoreRequests, charged 512 of 512")),
        Submit("c", read(520..528)),
        Serve(&["c"]),
        Expect(Emitted("in service main, budget 512")),
        Expect(Emitted("expired main: NoMoreRequests, charged 8 of 512")),
    ]);
}

/// A seeky queue is charged for 8 ms on a disk, 16384 × 8 / 125, and for 2 where nothing seeks. Its
/// twentieth request makes it seeky; of 512, 18 services of 8 sectors have left 368.
#[test]
fn short_service_of_a_seeky_queue_is_charged_for_a_seek() {
    for (rig, emitted) in [
        (plain_disk(1), "expired main: NoMoreRequests, charged 1048 of 1048, slow"),
        (plain_fast(1), "expired main: NoMoreRequests, charged 262 of 368, slow"),
    ] {
        let mut rig = rig.set("slice_idle", 0);
        for n in 0..20 {
            rig.run(&[
                Expect(NotEmitted(emitted)),
                Submit("a", read(n * FAR..n * FAR + 8)),
                Serve(&["a"]),
            ]);
        }
        rig.run(&[Expect(Emitted(emitted))]);
    }
}

/// Short is less than 1 ms. 16384 / 125 for 1 ms is less than for a seek.
#[test]
fn service_of_a_seeky_queue_is_charged_for_its_time() {
    for (took, emitted) in [
        (us(999), "expired main: Preempted, charged 1048 of 1048, slow"),
        (us(1000), "expired main: Preempted, charged 131 of 368, slow"),
    ] {
        let mut rig = plain_disk(2).set("slice_idle", 0).task("rt", "rt/4", ROOT);
        for n in 0..19 {
            rig.run(&[Submit("a", read(n * FAR..n * FAR + 8)), Serve(&["a"])]);
        }
        rig.run(&[
            Submit("a", read(19 * FAR..19 * FAR + 8)),
            Expect(dispatched("a")),
            Advance(took),
            Submit("rt", read(0..8).by("rt")),
            Expect(Emitted(emitted)),
        ]);
    }
}

/// One that is not seeky, for more than 20 ms: 16384 × 20 / 125.
#[test]
fn service_of_20_ms_is_not_yet_slow() {
    for (took, emitted) in [
        (us(20_000), "expired main: Preempted, charged 8 of 10922, fast"),
        (us(20_001), "expired main: Preempted, charged 2621 of 10922, slow"),
    ] {
        plain_disk(2).task("rt", "rt/4", ROOT).run(&[
            Submit("a", read(0..8)),
            Expect(dispatched("a")),
            Advance(took),
            Submit("rt", read(FAR..FAR + 8).by("rt")),
            Expect(Emitted(emitted)),
        ]);
    }
}

/// Time goes before emptiness, in the end of a service of a queue for which the device does not
/// idle.
#[test]
fn service_of_an_empty_queue_may_end_for_its_time() {
    for (took, emitted) in [
        (124, "expired async main: NoMoreRequests, charged 24 of 10922"),
        (125, "expired async main: Timeout, charged 24 of 10922"),
    ] {
        plain_disk(1).run(&[
            Submit("w", write(0..8)),
            Expect(dispatched("w")),
            Advance(ms(took)),
            Complete("w"),
            Expect(Emitted(emitted)),
        ]);
    }
}

/// The greatest is 2848, what a disk serves in 20 ms at 9333: of 5000 that were used no more than
/// a budget may be, once it counts, from the eleventh service on.
#[test]
fn no_budget_exceeds_the_maximum_once_that_counts() {
    for (services, emitted) in
        [(9, "in service main, budget 5000"), (10, "in service main, budget 2848")]
    {
        let mut rig = plain_disk(1).set("slice_idle", 0).set("timeout_sync", 20);
        for _ in 0..services {
            rig.run(&[Submit("a", read(0..8)), Serve(&["a"]), Advance(ms(1))]);
        }
        rig.run(&[
            Submit("b", read(0..5000)),
            Serve(&["b"]),
            Expect(Emitted("expired main: NoMoreRequests, charged 5000 of 5000")),
            Advance(ms(1)),
            Submit("c", read(0..8)),
            Serve(&["c"]),
            Expect(Emitted(emitted)),
        ]);
    }
}

/// A third of 16384 is 5461: after 10923 sectors that is left, after one more it is not.
#[test]
fn third_of_a_budget_is_a_third_rounded_down() {
    for (sectors, emitted) in [
        (10_923, "expired main: Timeout, charged 16384 of 16384, fast"),
        (10_924, "expired main: Timeout, charged 10924 of 16384, fast"),
    ] {
        plain_disk(1).run(&[
            Submit("a", read(0..8)),
            Expect(dispatched("a")),
            Advance(ms(125)),
            Submit("b", read(8..8 + sectors)),
            Complete("a"),
            Expect(Emitted("expired main: Timeout")),
            Expect(dispatched("b")),
            Submit("c", read(FAR..FAR + 8)),
            Advance(ms(125)),
            Complete("b"),
            Expect(Emitted(emitted)),
        ]);
    }
}
