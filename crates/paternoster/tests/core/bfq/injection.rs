//! Serving others while the queue in service is kept empty.

use crate::bfq::{FAR, fast, plain_disk, plain_fast};
use crate::rig::*;

/// A reader of more weight that thinks for 0.2 ms, beside one that always has requests.
fn beside_a_deep_one(rig: Rig) -> Served {
    let rig = rig.task("high", "be/0", ROOT).task("deep", "be/4", ROOT);
    let mut run = rig.served(16, ms(1));
    run.issues("high", Stream::reads(8).think(us(200)));
    run.issues("deep", Stream::reads(8).from(FAR).depth(16));
    run
}

/// Requests of the higher one arrive every 1.2 ms. The first to do so 10 ms after the reset at 0 is
/// that at 10.8: it takes 1 ms, alone. From then on each takes no longer with others injected: one
/// more of them each time.
#[test]
fn limit_of_injection_grows_by_one_with_each_probe() {
    let mut run = beside_a_deep_one(plain_fast(16));
    run.until(ms(17));
    let emitted = [
        "11.8 ms: limit high: 1",
        "11.8 ms: injected deep for high",
        "13 ms: limit high: 2",
        "14.2 ms: limit high: 3",
        "15.4 ms: limit high: 4",
        "16.6 ms: limit high: 5",
    ];
    let all = run.emitted(&["limit", "injected"]);
    let limits = all.iter().filter(|line| line.contains("limit"));
    assert!(limits.eq(emitted.iter().filter(|line| line.contains("limit"))), "{all:?}");
    assert_eq!(all[..2], emitted[..2]);
}

/// Never more than that in the device at an injection.
#[test]
fn injection_stops_at_the_limit() {
    let mut run = beside_a_deep_one(plain_fast(16));
    run.until(ms(13));
    let dispatched = run.dispatch_times("deep");
    // One up to 12.8, when one of the other is in the device; two from 13 on.
    assert_eq!(dispatched, [us(11_800), ms(13), ms(13)]);
}

/// Arrivals are 1.2 ms apart: the first from 1000 ms on is at 1000.8, and the first 10 ms after
/// that, in ticks, at 1010.4.
#[test]
fn limit_of_injection_is_reset_after_a_second() {
    let rig = plain_fast(1).set("timeout_sync", 5000).task("a", "be/4", ROOT);
    let mut run = rig.served(1, ms(1));
    run.issues("a", Stream::reads(8).think(us(200))).until(ms(1100));
    let emitted = ["11.8 ms: limit a: 1", "1000.8 ms: limit a: 0", "1011.4 ms: limit a: 1"];
    assert_eq!(run.emitted(&["limit"]), emitted);
}

/// Measured at 1 ms, then at 1.5 ms or more: one less, but not below 0.
#[test]
fn limit_of_injection_falls_where_requests_take_half_as_long_again() {
    for (took, emitted) in [(us(1499), "limit a: 2"), (us(1500), "limit a: 0")] {
        let mut rig = plain_fast(4).task("a", "be/0", ROOT).task("b", "be/4", ROOT);
        rig.run(&[
            Submit("a", read(0..8).by("a")),
            Submit("b", read(FAR..FAR + 8).by("b")),
            Serve(&["a"]),
            Expect(Nothing),
            Advance(ms(1)),
        ]);
        for _ in 0..10 {
            rig.run(&[Submit("a", read(0..8).by("a")), Expect(dispatched("a")), Advance(ms(1))]);
            rig.run(&[Complete("a")]);
        }
        rig.run(&[
            Expect(Emitted("limit a: 1")),
            Expect(dispatched("b")),
            Submit("a", read(0..8).by("a")),
            Expect(dispatched("a")),
            Advance(took),
            Complete("a"),
            Expect(Emitted(emitted)),
        ]);
    }
}

/// With a limit of 0 nothing is, however long the device idles: Linux compares ticks with
/// nanoseconds where it means to let one large request pass.
#[test]
fn nothing_is_injected_before_a_probe() {
    let rig = fast(4).task("a", "be/4", ROOT).task("b", "be/4", ROOT);
    rig.task("c", "be/3", ROOT).run(&[
        Submit("a", read(0..8).by("a")),
        Expect(dispatched("a")),
        Submit("c", read(FAR..FAR + 128).by("c")),
        Advance(ms(300)),
        Submit("b", read(2 * FAR..2 * FAR + 128).by("b")),
        Complete("a"),
        Expect(Emitted("idles a: 20 ms")),
        Expect(Nothing),
        Advance(ms(19)),
        Expect(Nothing),
    ]);
}

/// Its own, or rather of its task, regardless of the limit; but not another's, though they share
/// the queue: of two the nearer is next.
#[test]
fn async_request_of_the_task_itself_is_injected_at_once() {
    plain_disk(1).task("other", "be/4", ROOT).run(&[
        Submit("a", read(0..8)),
        Serve(&["a"]),
        Expect(Emitted("idles main: 8 ms")),
        Submit("others", write(FAR..FAR + 8).by("other")),
        Expect(Nothing),
        Submit("own", write(100..108)),
        Expect(dispatched("own")),
        Expect(Emitted("injected async other for main")),
        Complete("own"),
        Expect(Nothing),
    ]);
}

/// It goes to its own queue's account: 24 of 10922.
#[test]
fn injected_request_is_charged_to_its_own_queue() {
    plain_disk(1).run(&[
        Submit("a", read(0..8)),
        Serve(&["a"]),
        Submit("w", write(100..108)),
        Submit("w2", write(200..208)),
        Serve(&["w", "w2"]),
        Submit("w3", write(300..308)),
        Submit("a2", read(8..16)),
        Serve(&["a2"]),
        Expect(Emitted("expired main: NoMoreRequests, charged 16 of 10922")),
        Serve(&["w3"]),
        Expect(Emitted("expired async main: NoMoreRequests, charged 24 of 10922")),
    ]);
}

/// The limit of three: of requests of 64 sectors there is only one in the device.
#[test]
fn large_request_is_injected_alone_on_a_device_that_does_not_seek() {
    for (sectors, injected) in [(63, 2), (64, 1)] {
        let rig = plain_fast(16).task("a", "be/0", ROOT).task("b", "be/4", ROOT);
        let mut run = rig.served(16, ms(1));
        run.issues("a", Stream::reads(8).think(us(200)));
        run.issues("b", Stream::reads(sectors).from(FAR).depth(16)).until(us(13_100));
        let dispatched = run.dispatch_times("b");
        assert_eq!(dispatched.iter().filter(|at| **at == ms(13)).count(), injected, "{sectors}");
    }
}

/// Probed first 10 ms after the reset. The device idles for a raised queue so that it is served
/// soon, and those that are not raised have to wait for that.
#[test]
fn only_raised_queues_are_injected_for_a_raised_one_with_a_short_think_time() {
    let rig = fast(8).task("a", "be/4", ROOT).task("b", "be/4", ROOT);
    rig.task("c", "be/3", ROOT).run(&[
        Submit("a", read(0..8).by("a")),
        Submit("c", read(FAR..FAR + 8).by("c")),
        Serve(&["a"]),
        Advance(ms(10)),
        Submit("a", read(8..16).by("a")),
        Expect(dispatched("a")),
        Advance(ms(1)),
        Complete("a"),
        Expect(Emitted("limit a: 1")),
        Expect(Nothing),
        Submit("a", read(16..24).by("a")),
        Expect(dispatched("a")),
        // Too late to be merged at its birth.
        Advance(ms(170)),
        Submit("b", read(2 * FAR..2 * FAR + 8).by("b")),
        Submit("b2", read(2 * FAR..2 * FAR + 8).by("b")),
        Complete("a"),
        Expect(dispatched("b")),
        Expect(Emitted("injected b for a")),
        Expect(Nothing),
        Complete("b"),
        Expect(dispatched("b2")),
        Complete("b2"),
        Expect(Nothing),
        Expect(Waiting(1)),
    ]);
}

/// Nothing of the kind where waiting boosts the throughput.
#[test]
fn nothing_is_injected_for_a_sequential_reader_on_a_disk() {
    let mut run = beside_a_deep_one(plain_disk(16));
    run.until(ms(100));
    assert_eq!(run.emitted(&["injected"]), [""; 0]);
    assert_eq!(run.dispatch_times("deep"), []);
}

/// Beside one that always has requests the device does not idle for it, and so its think times are
/// known. They are 16 ms, as that of a new queue, and then 0: 16, 7.5, and 4.7 in the mean, of
/// which only the third counts, as long; after that it is short, but not for long enough to reset
/// the limit.
#[test]
fn new_queue_seems_to_have_a_long_think_time_for_a_moment() {
    let rig = plain_fast(4).task("deep", "be/4", ROOT).task("a", "be/4", ROOT);
    let mut run = rig.served(4, ms(1));
    run.issues("deep", Stream::reads(8).stride(FAR).depth(8));
    run.issues("a", Stream::reads(8).at(ms(200))).until(ms(1300));
    // Dispatched a millisecond after it arrives, with the device full, a request takes two; the
    // limit is reset a second later.
    assert_eq!(run.emitted(&["limit a"]), ["204 ms: limit a: 1", "1204 ms: limit a: 0"]);
}

/// The service ends before the request is done.
#[test]
fn end_of_the_service_ends_the_probe() {
    for (ends, emitted) in [(false, Emitted("limit a: 1")), (true, NotEmitted("limit"))] {
        let mut rig = plain_fast(2).task("a", "be/4", ROOT).task("rt", "rt/4", ROOT);
        rig.run(&[
            Submit("a", read(0..8).by("a")),
            Serve(&["a"]),
            Advance(ms(5)),
            Submit("a", read(8..16).by("a")),
            Serve(&["a"]),
            Advance(ms(5)),
            Submit("a", read(16..24).by("a")),
            Expect(dispatched("a")),
        ]);
        if ends {
            rig.run(&[
                Submit("rt", read(FAR..FAR + 8).by("rt")),
                Expect(Emitted("preempted a by rt: Class")),
            ]);
        }
        rig.run(&[Advance(us(100)), Complete("a"), Expect(emitted)]);
    }
}

/// A task that thinks for 10 ms, twelve times, and then no more: of the think times, that of a new
/// queue first, the third makes the mean count, as long, and the seventh 0 makes it 3.5 ms. More
/// than 100 ms after the limit was reset for the one it is for the other.
#[test]
fn limit_is_reset_as_think_times_become_short() {
    let rig = plain_fast(4).task("deep", "be/4", ROOT).task("a", "be/4", ROOT);
    let mut run = rig.served(4, ms(1));
    run.issues("deep", Stream::reads(8).stride(FAR).depth(8));
    // One millisecond to wait, one to be served: every 12 ms, the last done at 334.
    run.issues("a", Stream::reads(8).at(ms(200)).think(ms(10)).count(12)).until(ms(334));
    run.issues("a", Stream::reads(8).from(96).at(ms(334))).until(ms(400));
    assert_eq!(run.emitted(&["limit a"]), ["224 ms: limit a: 1", "346 ms: limit a: 0"]);
}

/// First 1 ms, then 2: what is bearable then is less than 3.
#[test]
fn base_time_is_probed_again() {
    for (took, emitted) in [(us(2999), "limit a: 2"), (us(3000), "limit a: 0")] {
        let mut rig = plain_fast(4).task("a", "be/0", ROOT).task("b", "be/4", ROOT);
        rig.run(&[Submit("a", read(0..8).by("a")), Serve(&["a"]), Advance(ms(5))]);
        rig.run(&[Submit("a", read(0..8).by("a")), Serve(&["a"]), Advance(ms(5))]);
        for alone in [1, 2] {
            rig.run(&[Submit("a", read(0..8).by("a")), Expect(dispatched("a"))]);
            rig.run(&[Advance(ms(alone)), Complete("a")]);
        }
        rig.run(&[
            Expect(Emitted("limit a: 1")),
            Submit("b", read(FAR..FAR + 8).by("b")),
            Expect(dispatched("b")),
            Expect(Emitted("injected b for a")),
            Submit("a", read(0..8).by("a")),
            Expect(dispatched("a")),
            Advance(took),
            Complete("a"),
            Expect(Emitted(emitted)),
        ]);
    }
}
