//! Weight raising of what arrives regularly, at a modest rate.

use crate::bfq::{FAR, disk, fast, plain_disk};
use crate::rig::*;

/// Its first batch, of so many sectors, is at 0; the device idles for it in vain until 20 ms.
fn after_a_batch(rig: Rig, sectors: u64) -> Rig {
    let mut rig = rig.task("a", "be/4", ROOT);
    rig.run(&[
        Submit("a", read(0..sectors).by("a")),
        Expect(Emitted("raised a: 30")),
        Serve(&["a"]),
        Advance(ms(20)),
        TimerFires,
        Expect(Emitted("expired a: TooIdle")),
    ]);
    rig
}

/// Two chunks every 40 ms: the second batch begins 38 ms after the end of the first, more than the
/// 8 + 4 that it takes after the service's end at 22 ms. Each of the next ones prolongs it.
#[test]
fn second_batch_of_a_regular_reader_is_raised_as_soft_real_time() {
    let mut run = fast(1).task("a", "be/4", ROOT).served(1, ms(1));
    for n in 0..20 {
        let from = n * 128;
        run.issues("a", Stream::reads(64).from(from).at(ms(n * 40)).depth(2).count(2));
        run.until(ms(n * 40 + 39));
    }
    let emitted = ["0 ms: raised a: 30, for 3750 ms", "40 ms: raised a: 3000, for 300 ms"];
    assert_eq!(run.emitted(&["raised"]), emitted);
    assert_eq!(run.rig.now.since_start(), ms(799));
}

/// More than 8 + 4 ms after the end of its service, which is at 20 ms.
#[test]
fn batch_right_after_the_one_before_is_not_soft_real_time() {
    for (gap, emitted) in [(12, NotEmitted("raised")), (13, Emitted("raised a: 3000, for 300 ms"))]
    {
        after_a_batch(fast(1), 8).run(&[
            Advance(ms(gap)),
            Submit("a", read(8..16).by("a")),
            Expect(emitted),
        ]);
    }
}

/// 700 sectors are worth 100 ms at 7000 a second.
#[test]
fn batch_at_too_high_a_rate_is_not_soft_real_time() {
    for (at, emitted) in [(100, NotEmitted("raised")), (101, Emitted("raised a: 3000, for 300 ms"))]
    {
        after_a_batch(fast(1), 700).run(&[
            Advance(ms(at - 20)),
            Submit("a", read(8..16).by("a")),
            Expect(emitted),
        ]);
    }
}

/// Of the two the later counts: with an idle time of 100 ms, 104 ms after the service's end.
#[test]
fn gap_between_batches_goes_with_the_idle_time() {
    for (gap, emitted) in [(104, NotEmitted("raised")), (105, Emitted("raised a: 3000"))] {
        let mut rig = fast(1).set("slice_idle", 100).task("a", "be/4", ROOT);
        rig.run(&[Submit("a", read(0..8).by("a")), Serve(&["a"]), Advance(ms(100)), TimerFires]);
        rig.run(&[Expect(Emitted("expired a: TooIdle")), Advance(ms(gap))]);
        rig.run(&[Submit("a", read(8..16).by("a")), Expect(emitted)]);
    }
}

/// Its request is in the device as its service ends: the bound is computed as that is done, at 40
/// ms.
#[test]
fn batch_counts_from_the_completion_of_the_one_before() {
    for (gap, emitted) in [(12, NotEmitted("raised")), (13, Emitted("raised a: 3000, for 300 ms"))]
    {
        plain_disk(2).task("a", "be/4", ROOT).task("b", "be/4", ROOT).run(&[
            Submit("a", read(0..8).by("a")),
            Expect(dispatched("a")),
            Set("low_latency", 1),
            Submit("b", read(FAR..FAR + 8).by("b")),
            Expect(Emitted("raised b: 30")),
            Expect(Emitted("expired a: Preempted")),
            Advance(ms(40)),
            Complete("a"),
            Advance(ms(gap)),
            Submit("a", read(8..16).by("a")),
            Expect(emitted),
        ]);
    }
}

/// At the first dispatch after that; then it is interactive again, for what is left of that. A
/// service is long enough here to tell.
#[test]
fn soft_real_time_lasts_300_ms() {
    after_a_batch(fast(1).set("timeout_sync", 1000), 8).run(&[
        Advance(ms(20)),
        Submit("a", read(8..16).by("a")),
        Expect(Emitted("raised a: 3000, for 300 ms")),
        Expect(dispatched("a")),
        Advance(ms(300)),
        Submit("a2", read(16..24).by("a")),
        Submit("a3", read(24..32).by("a")),
        Complete("a"),
        Serve(&["a2"]),
        Expect(NotEmitted("raised")),
        Advance(ms(1)),
        Serve(&["a3"]),
        Expect(Emitted("raised a: 30, for 3750 ms")),
    ]);
}

/// Interactive since 0, for 3750 ms: at 3751 soft real time that is over is followed by nothing.
#[test]
fn soft_real_time_ends_with_what_is_beneath_it() {
    for (at, emitted) in
        [(3750, Emitted("raised a: 30, for 3750 ms")), (3751, Emitted("raised a: 1, for 0 ms"))]
    {
        let mut rig = after_a_batch(fast(1).set("timeout_sync", 5000), 8);
        rig.run(&[
            Advance(ms(20)),
            Submit("a", read(8..16).by("a")),
            Expect(Emitted("raised a: 3000, for 300 ms")),
            Expect(dispatched("a")),
            Advance(ms(at - 40)),
            Submit("a2", read(16..24).by("a")),
            Complete("a"),
            Serve(&["a2"]),
            Expect(emitted),
        ]);
    }
}

/// Its service, begun at 40 ms, is over at 240; the next one begins at 341, as if that were 240
/// still. So 300 ms from 40 ms on are over after 441.
#[test]
fn soft_real_time_is_prolonged_by_the_time_after_its_service() {
    after_a_batch(fast(1).set("timeout_sync", 200), 8).run(&[
        Advance(ms(20)),
        Submit("a", read(8..16).by("a")),
        Expect(Emitted("raised a: 3000, for 300 ms")),
        Expect(dispatched("a")),
        Advance(ms(301)),
        Submit("a2", read(16..24).by("a")),
        Submit("a3", read(24..32).by("a")),
        Submit("a4", read(32..40).by("a")),
        Complete("a"),
        Expect(Emitted("expired a: Timeout")),
        Serve(&["a2"]),
        Advance(ms(100)),
        Serve(&["a3"]),
        Expect(NotEmitted("raised")),
        Advance(ms(1)),
        Serve(&["a4"]),
        Expect(Emitted("raised a: 30, for 3750 ms")),
    ]);
}

/// Not served between 40 and 540 ms, its time restarts.
#[test]
fn soft_real_time_begins_with_its_service() {
    after_a_batch(fast(1), 8).run(&[
        Advance(ms(20)),
        SetDepth(0),
        Submit("a", read(8..16).by("a")),
        Expect(Emitted("raised a: 3000, for 300 ms")),
        Advance(ms(500)),
        SetDepth(1),
        Serve(&["a"]),
        Expect(NotEmitted("raised")),
    ]);
}

/// 32 seeks in a row are not soft real time, nor what is raised so any longer. The first request
/// was none.
#[test]
fn reader_that_only_seeks_is_not_soft_real_time() {
    let mut rig = after_a_batch(disk(1), 8);
    for n in 1..=33_u64 {
        let emitted = match n {
            1 => Emitted("raised a: 3000"),
            32 => Emitted("raised a: 30, for 10500 ms"),
            _ => NotEmitted("raised"),
        };
        rig.run(&[
            Advance(ms(20)),
            TimerFires,
            Advance(ms(20)),
            Submit("a", read(n * FAR..n * FAR + 8).by("a")),
            Expect(emitted),
            Serve(&["a"]),
        ]);
    }
}

/// Interactive since 0, for 3750 ms.
#[test]
fn interactive_raising_goes_on_after_soft_real_time_as_if_that_had_not_been() {
    after_a_batch(fast(1).set("timeout_sync", 5000), 8).run(&[
        Advance(ms(20)),
        Submit("a", read(8..16).by("a")),
        Expect(Emitted("raised a: 3000, for 300 ms")),
        Expect(dispatched("a")),
        Advance(ms(301)),
        Submit("a2", read(16..24).by("a")),
        Complete("a"),
        Expect(dispatched("a2")),
        Expect(Emitted("raised a: 30, for 3750 ms")),
        Advance(ms(3750 - 341)),
        Submit("a3", read(24..32).by("a")),
        Submit("a4", read(32..40).by("a")),
        Complete("a2"),
        Serve(&["a3"]),
        Expect(NotEmitted("raised")),
        Advance(ms(1)),
        Serve(&["a4"]),
        Expect(Emitted("raised a: 1, for 0 ms")),
    ]);
}
