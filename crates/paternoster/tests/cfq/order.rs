//! Which request of a queue is next.

use crate::rig::*;

#[test]
fn queue_is_served_in_sector_order_from_the_head_on() {
    Rig::cfq().without_merging().run(&[
        Submit("300", read(300..308)),
        Submit("100", read(100..108)),
        Submit("200", read(200..208)),
        Serve(&["100", "200", "300"]),
    ]);
}

/// The head is at 110: b, 6 ahead, is next, and a, 10 behind, is not. With b in a, a is.
#[test]
fn request_that_swallowed_the_next_one_is_next() {
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
/// sectors away and `behind` 100, which are 50 KiB: twice 100 are nearer than 300, four times are
/// not; and where only 49 KiB may be gone back, `behind` is left to another sweep.
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
