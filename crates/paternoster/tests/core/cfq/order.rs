//! Which request of a queue is next.

use crate::rig::*;
use paternoster::BioFlags;

#[test]
fn queue_is_served_in_sector_order_from_the_head_on() {
    Rig::cfq().without_merging().run(&[
        Submit("300", read(300..308)),
        Submit("100", read(100..108)),
        Submit("200", read(200..208)),
        Serve(&["100", "200", "300"]),
    ]);
}

/// The head is at 110. b, 6 ahead, is next, and a, 10 behind, is not. When a absorbs b, a is next.
#[test]
fn request_that_absorbed_the_next_one_is_next() {
    Rig::cfq().run(&[
        Submit("head", read(102..110)),
        Serve(&["head"]),
        Submit("a", read(100..108)),
        Submit("b", read(116..124)),
        Submit("far", read(9000..9008)),
        BackMerge("between", read(108..116), "a"),
        Expect(together("a", "b")),
        Serve(&["a"]),
        Expect(Done(&["a", "between", "b"])),
        Serve(&["far"]),
    ]);
}

/// The effects of `back_seek_penalty` and `back_seek_max`. From the head at 1000, `ahead` is 300
/// sectors away and `behind` 100, which are 50 KiB. Twice 100 is nearer than 300, and four times is
/// not. If the way back is at most 49 KiB, `behind` comes last.
#[test]
fn way_back_is_penalized_and_limited() {
    let cases = [
        (16_384, 2, ["behind", "ahead"]),
        (16_384, 4, ["ahead", "behind"]),
        (50, 2, ["behind", "ahead"]),
        (49, 2, ["ahead", "behind"]),
    ];
    for (max, penalty, order) in cases {
        let mut rig = Rig::cfq().without_merging();
        rig.run(&[
            Set("back_seek_max", max),
            Set("back_seek_penalty", penalty),
            Submit("head", read(992..1000)),
            Serve(&["head"]),
            Submit("ahead", read(1300..1308)),
            Submit("behind", read(900..908)),
        ]);
        assert_eq!(rig.serve_all(), order, "back_seek_max {max}, back_seek_penalty {penalty}");
    }
}

/// The head is at 1008. The way back to 600 counts 2 × 408 = 816 and is shorter than the 992 to
/// 2000; that to 400 counts 2 × 608 = 1216.
#[test]
fn head_goes_back_to_a_near_request() {
    for (behind, order) in [(600, ["behind", "ahead"]), (400, ["ahead", "behind"])] {
        let mut rig = Rig::cfq().without_merging();
        rig.run(&[
            Submit("head", read(1000..1008)),
            Expect(dispatched("head")),
            Submit("behind", read(behind..behind + 8)),
            Submit("ahead", read(2000..2008)),
            Complete("head"),
        ]);
        assert_eq!(rig.serve_all(), order, "{behind} is behind");
    }
}

/// The way from 1000 to 1200 is 200, and the way back to 900 counts 2 × 100.
#[test]
fn of_two_equally_near_requests_the_higher_is_next() {
    Rig::cfq().without_merging().run(&[
        Submit("head", read(992..1000)),
        Expect(dispatched("head")),
        Submit("here", read(1000..1008)),
        Submit("behind", read(900..908)),
        Submit("ahead", read(1200..1208)),
        Complete("head"),
        Serve(&["here", "ahead", "behind"]),
    ]);
}

/// A reader has the device for a slice, and another one's reads come 1 ms after its start. The
/// first one reads from sector 1000000 on.
fn reads_behind_a_slice_of(slice: i64) -> Served {
    let rig = Rig::cfq().set("slice_sync", slice).set("low_latency", 0).without_merging();
    let mut run = rig.task("first", "be/4", ROOT).task("second", "be/4", ROOT).served(1, ms(1));
    run.issues("first", Stream::reads(16).from(1_000_000)).until(ms(1)).rig.run(&[
        Submit("9000", read(9000..9016).by("second")),
        Submit("1000", read(1000..1016).by("second")),
        Submit("5000", read(5000..5016).by("second")),
    ]);
    run
}

/// Their slice comes at 51 ms. All are too far behind the head for a way back: the lowest is first.
#[test]
fn requests_far_behind_the_head_are_served_from_the_lowest_on() {
    let mut run = reads_behind_a_slice_of(50);
    run.until(ms(53));
    assert_eq!(run.dispatched()[51..], ["1000", "5000", "9000"]);
}

/// Their slice comes at 151 ms, and from 126 on they are overdue: the oldest is first, and the seek
/// order goes on from there.
#[test]
fn late_request_is_first() {
    let mut run = reads_behind_a_slice_of(150);
    run.until(ms(153));
    assert_eq!(run.dispatched()[151..], ["9000", "5000", "1000"]);
    assert_eq!(run.emitted(&["overdue"]), ["151 ms: overdue 9000"]);
}

#[test]
fn request_with_priority_is_next_wherever_it_is() {
    Rig::cfq().without_merging().run(&[
        Submit("near", read(0..8)),
        Submit("urgent", read(900_000..900_008).flag(BioFlags::PRIO)),
        Submit("also near", read(100..108)),
        Serve(&["urgent", "near", "also near"]),
    ]);
}

/// An oddity of Linux: when a request is dispatched, only its neighbours are compared.
#[test]
fn request_with_priority_is_forgotten_when_another_one_is_dispatched() {
    Rig::cfq().without_merging().run(&[
        Submit("near", read(0..8)),
        Submit("urgent", read(900_000..900_008).flag(BioFlags::PRIO)),
        Submit("between", read(899_000..899_008)),
        Submit("more urgent", read(100..108).flag(BioFlags::PRIO)),
        Serve(&["more urgent", "near", "between", "urgent"]),
    ]);
}
