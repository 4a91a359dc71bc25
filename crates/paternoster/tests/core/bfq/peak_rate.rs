//! The peak rate of the device, and the greatest budget that follows from it.

use crate::bfq::{FAR, plain_disk, plain_fast};
use crate::rig::*;

/// The first completion is long after the one before, which never was: observation begins with
/// the second request. 1001 requests of 1024 sectors in a second: 1025024 × 65536 / 10⁶ = 67175.
/// All but the first are sequential: 9 × 1000 / 1001 = 8, so that half of what was known counts,
/// 22000 / 2, and half of the new. In 125 ms that are 44587 × 125000 / 65536 sectors.
#[test]
fn estimate_moves_to_what_a_sequential_reader_gets() {
    let mut run = plain_fast(1).served(1, ms(1));
    run.issues(MAIN, Stream::reads(1024).depth(2)).until(ms(1500));
    let emitted = ["1001 ms: peak rate 44587", "1001 ms: max budget 85042"];
    assert_eq!(run.emitted(&["peak rate", "max budget"]), emitted);
}

/// 1001 × 8 × 65536 / 10⁶ = 524, lower than the 9333 of a disk: if it is sequential that counts, as
/// 9333 / 2 + 524 / 2.
#[test]
fn low_rate_counts_only_where_requests_are_sequential() {
    let mut run = plain_disk(1).served(1, ms(1));
    run.issues(MAIN, Stream::reads(8).depth(2)).until(ms(1001));
    // 4928 × 125000 / 65536.
    let emitted = ["1001 ms: peak rate 4928", "1001 ms: max budget 9399"];
    assert_eq!(run.emitted(&["peak rate", "max budget"]), emitted);
    let mut run = plain_disk(1).served(1, ms(1));
    run.issues(MAIN, Stream::reads(8).stride(FAR).depth(2)).until(ms(3000));
    assert_eq!(run.emitted(&["peak rate", "max budget"]), [""; 0]);
}

/// 9 × 0 / 1001: of a high rate one in ten is lost of what was known, and one in ten of the new
/// counts. 9333 × 9 / 10 + 67175 / 10 = 8399 + 6717.
#[test]
fn high_rate_counts_for_a_tenth_where_requests_are_not_sequential() {
    let mut run = plain_disk(1).served(1, ms(1));
    run.issues(MAIN, Stream::reads(1024).stride(FAR).depth(2)).until(ms(1001));
    assert_eq!(run.emitted(&["peak rate"]), ["1001 ms: peak rate 15116"]);
}

/// More than 20 sectors a microsecond is an error: 20020 of 1000 a millisecond are not, with 1001
/// requests in 1000 ms.
#[test]
fn impossible_rate_does_not_count() {
    for (sectors, emitted) in [(19_980, 1), (19_981, 0)] {
        let mut run = plain_fast(1).served(1, ms(1));
        run.issues(MAIN, Stream::reads(sectors).depth(2)).until(ms(1001));
        // 1001 × 19980 = 19999980 in 10⁶ µs.
        assert_eq!(run.emitted(&["peak rate"]).len(), emitted, "{sectors}");
    }
}

/// 8 sectors × 65536 / 8190 µs = 64, and 63 at 8200: a device that is so slow is held up by
/// something else.
#[test]
fn rate_of_a_device_that_is_held_up_does_not_count() {
    for (took, counts) in [(us(8190), true), (us(8200), false)] {
        let mut run = plain_fast(1).served(1, took);
        run.issues(MAIN, Stream::reads(8).depth(2)).until(ms(3000));
        assert_eq!(!run.emitted(&["peak rate"]).is_empty(), counts, "{took:?}");
    }
}

/// 31 requests after the first are not enough, nor are 299 ms. The interval ends for that nothing
/// is in the device for more than 100 ms.
#[test]
fn short_interval_says_nothing() {
    for (requests, took, counts) in [
        (32, ms(11), false),
        (33, ms(11), true),
        // From the second to the last it is 31 times that: 297.6, and 300.7 ms.
        (33, us(9600), false),
        (33, us(9700), true),
    ] {
        let mut run = plain_fast(1).served(1, took);
        run.issues(MAIN, Stream::reads(64).depth(2).count(requests)).until(ms(500));
        run.issues(MAIN, Stream::reads(64).at(ms(600)).count(1)).until(ms(700));
        assert_eq!(!run.emitted(&["peak rate"]).is_empty(), counts, "{requests} of {took:?}");
    }
}

/// 34 requests in 1023 ms, of which none completes. Linux takes the time of the last completion,
/// which is before the first of them, for the end of the interval, and that wraps: a rate of 0, and
/// half of 22000.
#[test]
fn device_from_which_nothing_comes_back_has_no_rate() {
    let mut rig = plain_fast(64);
    for n in 0..34 {
        let from = n * 8;
        rig.enter(&n.to_string(), read(from..from + 8));
        assert!(rig.dispatch().is_some());
        if n < 33 {
            rig.run(&[Expect(NotEmitted("peak rate")), Advance(ms(31))]);
        }
    }
    rig.run(&[Expect(Emitted("peak rate 11000"))]);
}

/// The greatest budget is tuned then.
#[test]
fn peak_rate_does_not_change_a_budget_that_is_tuned() {
    let mut run = plain_fast(1).set("max_budget", 20_000).served(1, ms(1));
    run.rig.events();
    run.issues(MAIN, Stream::reads(1024).depth(2)).until(ms(1500));
    assert_eq!(run.emitted(&["peak rate", "max budget"]), ["1001 ms: peak rate 44587"]);
}

/// For 33000 × 2500 / 44587 = 1850 ms, but at least 3000; and no longer than 25000, at 14000 × 7000
/// / 3500 or less.
#[test]
fn faster_device_raises_for_a_shorter_time() {
    let rig = plain_fast(1).task("a", "be/4", ROOT);
    let mut run = rig.served(1, ms(1));
    run.issues(MAIN, Stream::reads(1024).depth(2).count(1100)).until(ms(1500));
    run.rig.run(&[Set("low_latency", 1), Submit("a", read(0..8).by("a"))]);
    run.rig.run(&[Expect(Emitted("raised a: 30, for 3000 ms"))]);
    let rig = plain_disk(1).task("a", "be/4", ROOT);
    let mut run = rig.served(1, ms(1));
    run.issues(MAIN, Stream::reads(8).depth(2).count(2100)).until(ms(2500));
    run.rig.run(&[Set("low_latency", 1), Submit("a", read(FAR..FAR + 8).by("a"))]);
    // 4928 / 2 + 524 / 2 = 2726: 35 s.
    run.rig
        .run(&[Expect(Emitted("peak rate 2726")), Expect(Emitted("raised a: 30, for 25000 ms"))]);
}
