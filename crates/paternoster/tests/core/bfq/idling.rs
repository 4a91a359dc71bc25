//! Waiting for the next request of the queue in service: when it is done, and for how long.

use crate::bfq::{FAR, disk, fast, plain_disk, plain_fast};
use crate::rig::*;
use paternoster::{Device, SchedulerKind};

/// A disk that serves one request at a time, for sure.
fn one_by_one_disk() -> Rig {
    let device = Device::disk(1).with_native_queueing(false);
    Rig::on(device, SchedulerKind::Bfq).without_merging().set("low_latency", 0)
}

/// A queue begins with one seek to its name; its first request is none. So the twentieth makes
/// twenty.
#[test]
fn device_idles_for_a_queue_that_is_alone_but_not_for_long_once_it_is_seeky() {
    let mut run = plain_fast(1).task("a", "be/4", ROOT).served(1, us(100));
    run.issues("a", Stream::reads(8).stride(FAR).count(25)).until(ms(10));
    let emitted = (1..=25).map(|n| (n, if n < 20 { 8 } else { 2 }));
    let emitted: Vec<_> = emitted
        .map(|(n, length)| format!("{}.{} ms: idles a: {length} ms", n / 10, n % 10))
        .collect();
    let emitted: Vec<_> = emitted.iter().map(|line| line.replace(".0 ms:", " ms:")).collect();
    assert_eq!(run.emitted(&["idles"]), emitted);
}

/// From 801 sectors on, it is one on a disk; on another device only if it is of less than 64.
#[test]
fn seek_is_far_and_small_unless_the_device_is_rotational() {
    for (rig, sectors, gap, seeky) in [
        (plain_disk(1), 8, 800, false),
        (plain_disk(1), 8, 801, true),
        (plain_disk(1), 64, 801, true),
        (plain_fast(1), 8, 800, false),
        (plain_fast(1), 63, 801, true),
        (plain_fast(1), 64, 801, false),
    ] {
        let mut run = rig.task("a", "be/4", ROOT).served(1, us(100));
        run.issues("a", Stream::reads(sectors).stride(sectors + gap).from(8).count(25));
        let idles = run.until(ms(10)).emitted(&["idles a: 2 ms"]);
        assert_eq!(idles.is_empty(), !seeky, "{sectors} sectors, {gap} farther");
    }
}

/// By weight, or by a group that has I/O: shares only hold if the device idles for it.
#[test]
fn device_idles_for_a_seeky_queue_as_long_as_for_others_where_shares_ask_for_it() {
    let mut run = plain_fast(1).group("/g", 100).task("a", "be/4", "/g").served(1, us(100));
    run.issues("a", Stream::reads(8).stride(FAR).count(25)).until(ms(10));
    let all_long = |emitted: Vec<String>| {
        emitted.len() == 25 && emitted.iter().all(|line| line.ends_with("idles a: 8 ms"))
    };
    assert!(all_long(run.emitted(&["idles"])));
    // The other is in the device, of weight 40.
    let mut run = plain_fast(2).task("a", "be/0", ROOT).served(1, us(100));
    run.rig.run(&[Submit("main", read(0..8)), Expect(dispatched("main"))]);
    run.issues("a", Stream::reads(8).stride(FAR).count(25)).until(ms(10));
    assert!(all_long(run.emitted(&["idles"])));
}

/// Two tasks of equal weight on a device that does not seek: neither keeps the device.
#[test]
fn fast_device_does_not_idle_where_all_queues_are_alike() {
    plain_fast(1).task("a", "be/4", ROOT).run(&[
        Submit("a", read(0..8).by("a")),
        Expect(dispatched("a")),
        // Or they would be merged at their birth.
        Advance(ms(181)),
        Submit("b", read(FAR..FAR + 8)),
        Complete("a"),
        Expect(NotEmitted("idles")),
        Expect(dispatched("b")),
    ]);
}

#[test]
fn device_idles_for_a_queue_of_more_weight_than_another() {
    plain_fast(1).task("a", "be/3", ROOT).run(&[
        Submit("a", read(0..8).by("a")),
        Expect(dispatched("a")),
        Submit("b", read(FAR..FAR + 8)),
        Complete("a"),
        Expect(Emitted("idles a: 8 ms")),
        Expect(Nothing),
    ]);
}

/// The device is kept for requests in flight, too.
#[test]
fn sequential_reader_keeps_a_disk_while_its_request_is_in_flight() {
    plain_disk(2).task("a", "be/4", ROOT).run(&[
        Submit("a", read(0..8).by("a")),
        Expect(dispatched("a")),
        Submit("b", read(FAR..FAR + 8)),
        Expect(Nothing),
        Expect(Emitted("waiting: InFlight")),
        Complete("a"),
        Expect(Emitted("idles a: 8 ms")),
        Expect(Nothing),
        Expect(Emitted("waiting: IdleTimer")),
        Advance(ms(8)),
        TimerFires,
        Expect(Emitted("expired a: TooIdle, charged 8 of 10922, fast, in flight 0")),
        Expect(dispatched("b")),
    ]);
}

/// Past its time, 25 ms after 20, it is empty and the device idles for it: neither a dispatch nor
/// the completion ends its service, but the timer. The 8 ms of waiting are not charged: the maximum
/// for 20 ms at 9333 is 2848, of which 25 of 125 are 569.
#[test]
fn end_of_the_time_goes_unnoticed_while_the_device_idles() {
    plain_disk(1).set("timeout_sync", 20).task("a", "be/4", ROOT).run(&[
        Submit("a", read(0..8).by("a")),
        Expect(dispatched("a")),
        Submit("b", read(FAR..FAR + 8)),
        Advance(ms(25)),
        Complete("a"),
        Expect(Emitted("idles a: 8 ms")),
        Expect(Nothing),
        Expect(NotEmitted("expired")),
        Advance(ms(8)),
        TimerFires,
        Expect(Emitted("expired a: Timeout, charged 569 of 10922, slow")),
        Expect(dispatched("b")),
    ]);
}

/// It comes in the end, late: its service is over, all of its time charged, 16384 × 26 / 125 of the
/// 2848.
#[test]
fn request_that_comes_after_the_end_of_the_time_has_to_wait_for_the_next_service() {
    plain_disk(1).set("timeout_sync", 20).task("a", "be/4", ROOT).run(&[
        Submit("a", read(0..8).by("a")),
        Expect(dispatched("a")),
        Submit("b", read(FAR..FAR + 8)),
        Advance(ms(19)),
        Complete("a"),
        Advance(ms(7)),
        Submit("a2", read(8..16).by("a")),
        // 2848 × 26 / 125 = 592.
        Expect(Emitted("expired a: Timeout, charged 592 of 10922, slow")),
        Expect(dispatched("b")),
    ]);
}

/// A request of less than 32 sectors leaves the timer alone where waiting boosts the throughput: it
/// may grow. The next dispatch serves it and ends the waiting.
#[test]
fn small_request_does_not_end_idling_on_a_disk() {
    one_by_one_disk().run(&[
        Submit("a", read(0..8)),
        Serve(&["a"]),
        Advance(ms(1)),
        Submit("small", read(8..39)),
        Expect(Timeout(Some(ms(8)))),
        Expect(dispatched("small")),
        Expect(Timeout(None)),
    ]);
    for steps in [
        [Submit("small", read(8..16)), Submit("second", read(16..24))],
        [Advance(ms(1)), Submit("large", read(8..40))],
    ] {
        one_by_one_disk()
            .run(&[Submit("a", read(0..8)), Serve(&["a"])])
            .run(&steps)
            .run(&[Expect(Timeout(None))]);
    }
}

#[test]
fn small_request_ends_idling_on_a_fast_device() {
    plain_fast(1).run(&[
        Submit("a", read(0..8)),
        Serve(&["a"]),
        Expect(Timeout(Some(ms(8)))),
        Submit("small", read(8..16)),
        Expect(Timeout(None)),
    ]);
}

/// On a disk that serves one request at a time any queue; on one that may queue only one that is
/// sequential.
#[test]
fn disk_that_does_not_queue_idles_for_a_seeky_queue() {
    for (queues, waits) in [(Some(false), true), (None, false), (Some(true), false)] {
        let device = Device::disk(1).with_native_queueing(queues);
        let rig = Rig::on(device, SchedulerKind::Bfq).without_merging().set("low_latency", 0);
        let mut run = rig.task("a", "be/4", ROOT).task("b", "be/4", ROOT).served(1, us(100));
        // Twenty seeks; the other comes before the last completes.
        run.issues("a", Stream::reads(8).stride(FAR).count(21));
        run.issues("b", Stream::reads(8).at(us(2050)).count(1)).until(us(2100));
        let emitted = run.emitted(&["idles", "expired"]);
        let last = emitted.last().expect("one of these");
        let expected =
            if waits { "2.1 ms: idles a: 2 ms" } else { "2.05 ms: expired a: Preempted" };
        assert!(last.starts_with(expected), "{queues:?}: {last}");
    }
}

/// The idle time of a new queue wraps: it is nearly 2^64 ns for one whose second request comes
/// while the first one waits, and right only once it has been idle.
#[test]
fn queue_that_begins_with_two_requests_is_not_io_bound_at_first() {
    let begun = |second: &[Step]| {
        let mut rig = plain_disk(2).task("b", "be/4", ROOT);
        rig.run(&[Submit("a", read(0..8))])
            .run(second)
            .run(&[Expect(dispatched("a")), Submit("b", read(FAR..FAR + 8).by("b"))]);
        rig
    };
    begun(&[]).run(&[Complete("a"), Expect(Emitted("idles main: 8 ms"))]);
    let second = [Submit("a2", read(8..16)), Expect(dispatched("a")), Complete("a")];
    // Idle for 8 ms, a fifth of 40.
    for (at, taken) in
        [(39, Emitted("preempted main by b: NotIdling")), (40, NotEmitted("preempted"))]
    {
        let mut rig = plain_disk(2).task("b", "be/4", ROOT);
        rig.run(&[Submit("a", read(0..8))]).run(&second).run(&[
            Expect(dispatched("a2")),
            Submit("b", read(FAR..FAR + 8).by("b")),
            Expect(Emitted("preempted main by b: NotIdling")),
            Complete("a2"),
            Serve(&["b"]),
            Advance(ms(8)),
            TimerFires,
            Submit("a3", read(16..24)),
            Expect(dispatched("a3")),
            Advance(ms(at - 8)),
            Submit("a4", read(24..32)),
            Expect(dispatched("a4")),
            Submit("b2", read(FAR..FAR + 8).by("b")),
            Expect(taken),
        ]);
    }
}

#[test]
fn device_does_not_idle_without_idle_time() {
    plain_disk(1).set("slice_idle", 0).run(&[
        Submit("a", read(0..8)),
        Serve(&["a"]),
        Expect(NotEmitted("idles")),
        Expect(Emitted("expired main: NoMoreRequests")),
    ]);
}

#[test]
fn device_does_not_idle_for_the_idle_class_and_async_queues() {
    plain_disk(1).task("idle", "idle", ROOT).run(&[
        Submit("i", read(0..8).by("idle")),
        Serve(&["i"]),
        Expect(Emitted("expired idle: NoMoreRequests")),
        Submit("w", write(0..8)),
        Serve(&["w"]),
        Expect(Emitted("expired async main: NoMoreRequests")),
        Expect(NotEmitted("idles")),
    ]);
}

/// A strict one waits for all.
#[test]
fn with_strict_guarantees_the_device_idles_for_all_queues() {
    plain_disk(1).set("strict_guarantees", 1).task("idle", "idle", ROOT).run(&[
        Submit("i", read(0..8).by("idle")),
        Serve(&["i"]),
        Expect(Emitted("idles idle: 8 ms")),
        Advance(ms(8)),
        TimerFires,
        Submit("w", write(0..8)),
        Serve(&["w"]),
        Expect(Emitted("idles async main: 8 ms")),
    ]);
}

#[test]
fn strict_guarantees_dispatch_one_request_at_a_time() {
    plain_disk(4).set("strict_guarantees", 1).run(&[
        Submit("a", read(0..8)),
        Submit("b", read(8..16)),
        Expect(dispatched("a")),
        Expect(Nothing),
        Expect(Emitted("waiting: OneAtATime")),
        Complete("a"),
        Expect(dispatched("b")),
    ]);
}

/// The timer fires at once.
#[test]
fn strict_guarantees_without_slice_idle_idle_for_no_time_at_all() {
    plain_disk(1).set("strict_guarantees", 1).set("slice_idle", 0).run(&[
        Submit("a", read(0..8)),
        Advance(ms(1)),
        Serve(&["a"]),
        Expect(Emitted("idles main: 0 ms")),
        Expect(Timeout(Some(ms(1)))),
        TimerFires,
        Expect(Emitted("expired main: TooIdle")),
    ]);
}

/// As long as others are busy that are not, of weight 50 here, which is none of the default level.
#[test]
fn device_idles_for_a_raised_queue_while_others_are_not_raised() {
    for (other, waits) in [("be/3", true), ("be/4", false)] {
        disk(1).task("a", "be/4", ROOT).task("b", other, ROOT).run(&[
            Submit("a", read(0..8).by("a")),
            Expect(dispatched("a")),
            Submit("b", read(FAR..FAR + 8).by("b")),
            Expect(if waits {
                NotEmitted("preempted")
            } else {
                Emitted("preempted a by b: NotIdling")
            }),
            Complete("a"),
            Expect(if waits { Emitted("idles a: 20 ms") } else { NotEmitted("idles") }),
        ]);
    }
}

/// As one of another level never is.
#[test]
fn queue_of_another_level_is_not_raised() {
    fast(1).task("a", "be/3", ROOT).run(&[
        Submit("a", read(0..8).by("a")),
        Expect(dispatched("a")),
        Expect(NotEmitted("raised")),
        Expect(Emitted("in service a, budget 10922, weight 50")),
        Complete("a"),
        Expect(Emitted("idles a: 8 ms")),
    ]);
}

/// Though all that are busy are raised: four requests of others would delay it.
#[test]
fn device_idles_for_a_raised_queue_with_many_requests_of_others_in_flight() {
    for (others, emitted) in [(3, NotEmitted("idles")), (4, Emitted("idles a: 20 ms"))] {
        let mut rig = disk(8).task("a", "be/4", ROOT).task("b", "be/4", ROOT);
        for n in 0..5 {
            rig.run(&[Submit("b", read(n * FAR..n * FAR + 8).by("b"))]);
        }
        for _ in 0..others {
            assert!(rig.dispatch().is_some());
        }
        rig.run(&[
            Submit("a", read(9 * FAR..9 * FAR + 8).by("a")),
            Expect(Emitted("preempted b by a: NotIdling")),
            Serve(&["a"]),
            Expect(emitted),
        ]);
    }
}

/// At 20 ms, while the device has idled for it from 12 or from 11 ms on.
#[test]
fn idling_that_ends_with_the_time_ends_the_service_for_its_time() {
    for (done, emitted) in [(11, "expired main: TooIdle"), (12, "expired main: Timeout")] {
        plain_disk(1).set("timeout_sync", 20).run(&[
            Submit("a", read(0..8)),
            Expect(dispatched("a")),
            Advance(ms(done)),
            Complete("a"),
            Advance(ms(8)),
            TimerFires,
            Expect(Emitted(emitted)),
        ]);
    }
}

/// Waited for until 23 ms, its next request is there at 16, small, so that the waiting goes on, and
/// is asked for at 21, after 20. With less than a third of its budget left it may use that up.
#[test]
fn queue_that_is_nearly_through_may_be_late() {
    for (sectors, emitted) in
        [(8000, NotEmitted("expired")), (7000, Emitted("expired main: Timeout"))]
    {
        plain_disk(1).set("timeout_sync", 20).run(&[
            Submit("a", read(0..sectors)),
            Expect(dispatched("a")),
            Advance(ms(15)),
            Complete("a"),
            Expect(Timeout(Some(ms(23)))),
            Advance(ms(1)),
            SetDepth(0),
            Submit("b", read(sectors..sectors + 8)),
            Expect(Timeout(Some(ms(23)))),
            Advance(ms(5)),
            SetDepth(1),
            Expect(dispatched("b")),
            Expect(emitted),
        ]);
    }
}
