//! Weight raising of interactive queues.

use crate::bfq::{FAR, disk, fast, plain_disk};
use crate::rig::*;

/// 14000 × 7000 / 9333 ms. The budget is 2 × 512, the weight 40 × 30; the device idles for it for
/// 20 ms.
#[test]
fn new_process_is_raised() {
    disk(1).task("a", "be/4", ROOT).run(&[
        Submit("a", read(0..8).by("a")),
        Expect(Emitted("raised a: 30, for 10500 ms")),
        Expect(dispatched("a")),
        Expect(Emitted("in service a, budget 1024, weight 1200")),
        Advance(ms(5)),
        Complete("a"),
        Expect(Emitted("idles a: 20 ms")),
        Expect(Timeout(Some(ms(25)))),
    ]);
}

/// 33000 × 2500 / 22000 ms.
#[test]
fn new_process_is_raised_for_less_on_a_device_that_does_not_seek() {
    fast(1).run(&[
        Submit("a", read(0..8)),
        Expect(Emitted("raised main: 30, for 3750 ms")),
        Expect(dispatched("a")),
        Expect(Emitted("in service main, budget 1024, weight 1200")),
    ]);
}

/// Nothing is served in the service that its budget is too small for.
#[test]
fn first_request_that_is_larger_than_the_budget_takes_two_services() {
    disk(1).task("a", "be/4", ROOT).run(&[
        Submit("a", read(0..1280).by("a")),
        Expect(dispatched("a")),
        Expect(Emitted("in service a, budget 1024")),
        Expect(Emitted("expired a: Exhausted, charged 0 of 1024")),
        Expect(Emitted("in service a, budget 1280")),
    ]);
}

/// 128 requests of 10 ms are a budget of 1024: no end by time at 125 ms, but after 30 times that,
/// 3750. The raising ends with the dispatch at 3760 ms, in the middle of the third service, which
/// is charged for its time then.
#[test]
fn raised_queue_has_thirty_times_the_time_and_is_not_charged_for_it() {
    let mut run = fast(1).task("a", "be/4", ROOT).served(1, ms(10));
    run.issues("a", Stream::reads(8).depth(2)).until(ms(3900));
    let emitted = [
        "1280 ms: expired a: Exhausted, charged 1024 of 1024",
        "2560 ms: expired a: Exhausted, charged 1024 of 1024",
        "3760 ms: raised a: 1, for 0 ms",
        "3840 ms: expired a: Exhausted, charged 16384 of 16384",
    ];
    assert_eq!(run.emitted_up_to(2, &["expired", "raised a: 1"]), emitted);
}

/// With 16 sectors a request, a service of 3750 ms ends before it has used 1024.
#[test]
fn service_of_a_raised_queue_ends_after_thirty_times_the_time() {
    let mut run = disk(1).task("a", "be/4", ROOT).served(1, ms(100));
    run.issues("a", Stream::reads(8).depth(2)).until(ms(4000));
    let emitted = ["3800 ms: expired a: Timeout, charged 304 of 1024"];
    assert_eq!(run.emitted_up_to(2, &["expired"]), emitted);
}

/// More than 120000 sectors, whatever the time.
#[test]
fn queue_that_got_much_is_raised_no_more() {
    disk(1).run(&[
        Submit("a", read(0..120_000)),
        Serve(&["a"]),
        Expect(Emitted("raised main: 30")),
        Expect(NotEmitted("raised")),
        Submit("b", read(120_000..120_001)),
        Serve(&["b"]),
        Expect(Emitted("raised main: 1, for 0 ms")),
    ]);
}

/// From the last completion with nothing else to do.
#[test]
fn queue_that_was_idle_for_more_than_2_s_is_raised_again() {
    for (idle, emitted) in [(2000, NotEmitted("raised")), (2001, Emitted("raised main: 30"))] {
        plain_disk(1).run(&[
            Submit("a", read(0..8)),
            Serve(&["a"]),
            Advance(ms(8)),
            TimerFires,
            // Not soft real time.
            Submit("b", read(8..30_000)),
            Serve(&["b"]),
            Set("low_latency", 1),
            Advance(ms(8)),
            TimerFires,
            Advance(ms(idle)),
            Submit("c", read(0..8)),
            Expect(emitted),
        ]);
    }
}

/// Of the default level only, and none of the idle class, which has the least.
#[test]
fn only_queues_of_the_default_level_are_raised() {
    for (prio, emitted) in [
        ("be/4", Emitted("raised a: 30")),
        ("rt/4", Emitted("raised a: 30")),
        ("be/3", NotEmitted("raised")),
        ("be/5", NotEmitted("raised")),
        ("rt/0", NotEmitted("raised")),
        ("idle", NotEmitted("raised")),
    ] {
        let mut rig = disk(1).task("a", prio, ROOT);
        rig.run(&[Submit("a", read(0..8).by("a")), Expect(emitted)]);
    }
}

/// A busy one that had no request for more than 500 ms.
#[test]
fn async_queue_is_raised_when_it_got_no_request_for_long() {
    for (gap, emitted) in
        [(500, NotEmitted("raised")), (501, Emitted("raised async main: 30, for 10500 ms"))]
    {
        disk(0).run(&[
            Submit("w", write(0..8)),
            Expect(NotEmitted("raised")),
            Advance(ms(gap)),
            Submit("w2", write(100..108)),
            Expect(emitted),
        ]);
    }
}

/// More than 120000 sectors in its first raising, which count on in its second.
#[test]
fn async_queue_that_got_much_is_not_raised_for_long_again() {
    disk(0).run(&[
        Submit("w", write(0..8)),
        Advance(ms(501)),
        Submit("w2", write(8..120_008)),
        Expect(Emitted("raised async main: 30")),
        SetDepth(1),
        Serve(&["w", "w2"]),
        Expect(Emitted("raised async main: 1")),
        SetDepth(0),
        Submit("w", write(0..8)),
        Advance(ms(501)),
        Submit("w2", write(8..16)),
        Expect(Emitted("raised async main: 30")),
        SetDepth(1),
        Serve(&["w"]),
        Expect(Emitted("raised async main: 1")),
    ]);
}

/// A queue that waits is raised no more; the one in service, on none of the lists, still is.
#[test]
fn low_latency_turned_off_ends_all_raising_but_that_of_the_queue_in_service() {
    disk(0).task("a", "be/4", ROOT).task("b", "be/4", ROOT).run(&[
        Submit("a", read(0..8).by("a")),
        Submit("b", read(FAR..FAR + 8).by("b")),
        Expect(Emitted("raised b: 30")),
        SetDepth(1),
        Expect(dispatched("a")),
        Set("low_latency", 0),
        Expect(Emitted("raised b: 1, for 0 ms")),
        Expect(NotEmitted("raised a")),
        Complete("a"),
        Expect(Emitted("idles a: 20 ms")),
    ]);
}

/// Each queue that waits counts as raised no more though it never was: fewer than none are raised,
/// for good, and the device does not idle to boost the throughput.
#[test]
fn low_latency_turned_off_spoils_the_count_of_raised_queues() {
    for (turned_off, emitted) in [(false, Emitted("idles a: 8 ms")), (true, NotEmitted("idles"))] {
        let mut rig = disk(1).task("a", "be/3", ROOT).task("b", "be/3", ROOT);
        rig.run(&[
            Submit("a", read(0..8).by("a")),
            Expect(dispatched("a")),
            Submit("b", read(FAR..FAR + 8).by("b")),
        ]);
        if turned_off {
            rig.run(&[Set("low_latency", 0)]);
        }
        rig.run(&[Complete("a"), Expect(emitted)]);
        if turned_off {
            // b is the second, and alone in the end.
            rig.run(&[Serve(&["b"]), Expect(Emitted("idles b: 8 ms")), Advance(ms(8)), TimerFires]);
            // Later than in time.
            rig.run(&[
                Advance(ms(20)),
                Submit("a", read(8..16).by("a")),
                Expect(dispatched("a")),
                Submit("b", read(FAR..FAR + 8).by("b")),
                Expect(Emitted("preempted a by b: NotIdling")),
            ]);
        }
    }
}

/// It left service long before its request was done, at 1000 ms: it is idle from then on. 30000
/// sectors are too many for soft real time within 4285 ms.
#[test]
fn queue_is_idle_from_its_last_completion_on() {
    for (idle, emitted) in [(2000, NotEmitted("raised a")), (2001, Emitted("raised a: 30"))] {
        plain_disk(2).task("a", "be/4", ROOT).task("b", "be/4", ROOT).run(&[
            Submit("a", read(0..30_000).by("a")),
            Expect(dispatched("a")),
            Set("low_latency", 1),
            Submit("b", read(FAR..FAR + 8).by("b")),
            Expect(Emitted("preempted a by b: Weight")),
            Advance(ms(1000)),
            Complete("a"),
            Advance(ms(idle)),
            Submit("a", read(0..8).by("a")),
            Expect(emitted),
        ]);
    }
}
