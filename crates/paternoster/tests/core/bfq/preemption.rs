//! Taking the device from the queue in service, as another becomes busy.

use crate::bfq::{FAR, plain_disk, plain_fast};
use crate::rig::*;
use paternoster::Nanos;

/// One that always has requests, and is seeky, and one that comes at 200 ms. It has had its first
/// service until 125 ms, and its next budget is 16384: of its second, 75 ms are charged, 16384 × 75
/// / 125.
#[test]
fn every_arrival_takes_a_fast_device() {
    let rig = plain_fast(4).task("deep", "be/4", ROOT).task("a", "be/4", ROOT);
    let mut run = rig.served(1, ms(1));
    run.issues("deep", Stream::reads(8).stride(FAR).depth(8));
    run.issues("a", Stream::reads(8).at(ms(200)).count(1)).until(ms(200));
    let emitted = [
        "125 ms: expired deep: Timeout, charged 16384 of 16384, slow",
        "200 ms: preempted deep by a: NotIdling",
        "200 ms: expired deep: Preempted, charged 9830 of 16384, slow",
    ];
    assert_eq!(run.emitted_up_to(3, &["expired", "preempted"]), emitted);
}

/// Empty as it is preempted, it goes on with 16384 − 9830 within three times 8 ms after its last
/// completion, and takes the device back.
#[test]
fn queue_that_was_preempted_empty_goes_on_with_what_was_left() {
    for (late, budget, why) in [
        (0, "in service deep, budget 6554", "preempted main by deep: InTime"),
        (1, "in service deep, budget 16384", "preempted main by deep: NotIdling"),
    ] {
        plain_fast(2).task("deep", "be/4", ROOT).run(&[
            Submit("d", read(0..8).by("deep")),
            Expect(dispatched("d")),
            Advance(ms(125)),
            Submit("d2", read(8..16).by("deep")),
            Complete("d"),
            Expect(Emitted("expired deep: Timeout")),
            Expect(dispatched("d2")),
            Expect(Emitted("in service deep, budget 16384")),
            Advance(ms(75)),
            Submit("m", read(FAR..FAR + 8)),
            Expect(Emitted("expired deep: Preempted, charged 9830 of 16384, slow, in flight 1")),
            Expect(Emitted("not busy deep")),
            Complete("d2"),
            Advance(ms(24)),
            Advance(Nanos::new(late)),
            Expect(dispatched("m")),
            Submit("d3", read(16..24).by("deep")),
            Expect(Emitted(why)),
            Expect(dispatched("d3")),
            Expect(Emitted(budget)),
        ]);
    }
}

/// Only whether another is due on the root's level is asked: in one group no queue preempts
/// another. So the second waits for 50 of the 125 ms; and the device idles for each, with a group
/// at work.
#[test]
fn arrival_does_not_take_the_device_within_a_group() {
    let rig = plain_fast(4).group("/g", 100).task("deep", "be/4", "/g").task("a", "be/4", "/g");
    let mut run = rig.served(1, ms(1));
    run.issues("deep", Stream::reads(8).stride(FAR).depth(8));
    run.issues("a", Stream::reads(8).at(ms(200)).think(ms(300))).until(ms(255));
    let emitted = [
        "0 ms: in service deep",
        "125 ms: expired deep: Timeout",
        "125 ms: in service deep",
        "250 ms: expired deep: Timeout",
        "250 ms: in service a",
        // Behind the three that are in the device.
        "254 ms: idles a: 8 ms",
    ];
    assert_eq!(run.emitted_up_to(1, &["in service", "preempted", "expired", "idles"]), emitted);
}

/// More weight, or a more urgent class; no less.
#[test]
fn queue_of_more_weight_or_class_takes_the_device() {
    for (prio, emitted) in [
        ("be/3", Emitted("preempted main by a: Weight")),
        ("be/4", NotEmitted("preempted")),
        ("be/5", NotEmitted("preempted")),
        ("rt/7", Emitted("preempted main by a: Class")),
        ("idle", NotEmitted("preempted")),
    ] {
        plain_disk(2).task("a", prio, ROOT).run(&[
            Submit("m", read(0..8)),
            Expect(dispatched("m")),
            Submit("a", read(FAR..FAR + 8).by("a")),
            Expect(emitted),
        ]);
    }
}

/// Of different groups, it is their weight that counts; a queue of the root goes by its own.
#[test]
fn queues_of_different_groups_go_by_the_weight_of_these() {
    for (groups, active, new, emitted) in [
        ([100, 101], "be/0", "be/7", Emitted("preempted a by b: Weight")),
        ([100, 100], "be/7", "be/0", NotEmitted("preempted")),
        ([101, 100], "be/7", "be/0", NotEmitted("preempted")),
    ] {
        let rig = plain_disk(2).group("/a", groups[0]).group("/b", groups[1]);
        rig.task("a", active, "/a").task("b", new, "/b").run(&[
            Submit("a", read(0..8).by("a")),
            Expect(dispatched("a")),
            Submit("b", read(FAR..FAR + 8).by("b")),
            Expect(emitted),
        ]);
    }
    for (weight, emitted) in
        [(39, Emitted("preempted a by main: Weight")), (40, NotEmitted("preempted"))]
    {
        plain_disk(2).group("/a", weight).task("a", "be/0", "/a").run(&[
            Submit("a", read(0..8).by("a")),
            Expect(dispatched("a")),
            Submit("m", read(FAR..FAR + 8)),
            Expect(emitted),
        ]);
    }
}

/// It is empty, with a request in flight, and the device has to idle for it while not all are
/// raised: it keeps its place, as if it had requests. Its next one makes nothing busy.
#[test]
fn raised_queue_that_is_preempted_empty_stays_scheduled() {
    let mut rig = crate::bfq::disk(2).task("a", "be/4", ROOT).task("rt", "rt/3", ROOT);
    rig.run(&[
        Submit("a", read(0..8).by("a")),
        Expect(dispatched("a")),
        Expect(Emitted("busy a")),
        Submit("rt", read(FAR..FAR + 8).by("rt")),
        Expect(Emitted("preempted a by rt: Class")),
        Expect(Emitted("expired a: Preempted, charged 8 of 1024")),
        Expect(NotEmitted("not busy a")),
        Expect(Number("busy_queues", 2)),
        Submit("a2", read(8..16).by("a")),
        Expect(NotEmitted("busy a")),
        Expect(Number("busy_queues", 2)),
    ]);
}

/// Its service comes while its request is in flight: the device idles for it. With nothing
/// in flight its service ends at once.
#[test]
fn service_of_an_empty_queue_lasts_as_long_as_its_request() {
    for in_flight in [true, false] {
        let rig = crate::bfq::disk(2).task("a", "be/4", ROOT).task("rt", "rt/3", ROOT);
        let mut rig = rig.task("c", "be/3", ROOT);
        rig.run(&[
            Submit("a", read(0..8).by("a")),
            Expect(dispatched("a")),
            Submit("rt", read(FAR..FAR + 8).by("rt")),
            Serve(&["rt"]),
            Submit("c", read(2 * FAR..2 * FAR + 8).by("c")),
            Expect(Emitted("idles rt: 8 ms")),
        ]);
        if !in_flight {
            rig.run(&[Complete("a")]);
        }
        rig.run(&[Advance(ms(8)), TimerFires]);
        if in_flight {
            rig.run(&[
                Expect(Nothing),
                Expect(Emitted("in service a")),
                Expect(Emitted("waiting: InFlight")),
                Complete("a"),
                Expect(Emitted("idles a: 20 ms")),
            ]);
        } else {
            rig.run(&[
                Expect(dispatched("c")),
                Expect(Emitted("in service a")),
                Expect(Emitted("expired a: NoMoreRequests")),
                Expect(Emitted("in service c")),
            ]);
        }
    }
}

/// 8 ms after its last completion it goes on with its budget, but not before one that is raised.
#[test]
fn queue_that_is_back_in_time_does_not_take_the_device_from_a_raised_one() {
    for (prio, emitted) in
        [("be/4", NotEmitted("preempted")), ("be/2", Emitted("preempted a by b: InTime"))]
    {
        crate::bfq::disk(2).task("a", prio, ROOT).task("b", "be/3", ROOT).run(&[
            Submit("b", read(0..8).by("b")),
            Serve(&["b"]),
            Advance(ms(8)),
            TimerFires,
            Submit("a", read(FAR..FAR + 8).by("a")),
            Expect(dispatched("a")),
            Submit("b", read(8..16).by("b")),
            Expect(emitted),
        ]);
    }
}
