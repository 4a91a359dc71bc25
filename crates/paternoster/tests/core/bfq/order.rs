//! Which request of a queue is dispatched next.

use crate::bfq::plain_disk;
use crate::rig::*;
use paternoster::BioFlags;

/// The head is at 1008: 200 sectors ahead cost as much as 100 behind, and what is ahead is taken
/// then.
#[test]
fn way_back_counts_twice() {
    for (behind, order) in [(909, ["behind", "ahead"]), (908, ["ahead", "behind"])] {
        let mut rig = plain_disk(1);
        rig.run(&[
            Submit("head", read(1000..1008)),
            Serve(&["head"]),
            Submit("behind", read(behind..behind + 8)),
            Submit("ahead", read(1208..1216)),
        ]);
        assert_eq!(rig.serve_all(), order, "{behind}");
    }
}

/// 16 KiB are 32 sectors: no farther back than that.
#[test]
fn request_too_far_behind_comes_after_those_ahead() {
    for (behind, order) in [(976, ["behind", "ahead"]), (975, ["ahead", "behind"])] {
        let mut rig = plain_disk(1).set("back_seek_max", 16).set("back_seek_penalty", 1);
        rig.run(&[
            Submit("head", read(1000..1008)),
            Serve(&["head"]),
            Submit("ahead", read(90_000..90_008)),
            Submit("behind", read(behind..behind + 8)),
        ]);
        assert_eq!(rig.serve_all(), order, "{behind}");
    }
}

/// The lowest first.
#[test]
fn after_the_last_request_comes_the_first() {
    let mut rig = plain_disk(1).set("back_seek_max", 0);
    rig.run(&[
        Submit("head", read(100_000..100_008)),
        Serve(&["head"]),
        Submit("300", read(300..308)),
        Submit("100", read(100..108)),
        Submit("200", read(200..208)),
    ]);
    assert_eq!(rig.serve_all(), ["100", "200", "300"]);
}

#[test]
fn metadata_goes_first() {
    let mut rig = plain_disk(1);
    rig.run(&[
        Submit("data", read(0..8)),
        Submit("metadata", read(90_000..90_008).flag(BioFlags::PRIO)),
        Submit("near that", read(90_100..90_108)),
    ]);
    assert_eq!(rig.serve_all(), ["metadata", "near that", "data"]);
}

/// Its time was over at 1 ms. The first removal of a service makes it the next, wherever it is;
/// then it goes by position again, though others are overdue too.
#[test]
fn overdue_request_is_served_once_a_service() {
    let mut rig = plain_disk(1).set("fifo_expire_sync", 1);
    rig.run(&[
        Submit("5000", read(5000..5008)),
        Submit("9000", read(9000..9008)),
        Submit("1000", read(1000..1008)),
        Submit("1100", read(1100..1108)),
        Advance(ms(1)),
    ]);
    // From 5000, 4000 ahead are less than twice 3900 behind.
    assert_eq!(rig.serve_all(), ["1000", "5000", "9000", "1100"]);
    rig.run(&[Expect(Emitted("overdue 5000"))]);
    rig.run(&[Expect(NotEmitted("overdue"))]);
}

#[test]
fn request_is_overdue_from_its_deadline_on() {
    for (at, order) in [(us(999), ["1000", "1100", "5000"]), (ms(1), ["1000", "5000", "1100"])] {
        let mut rig = plain_disk(1).set("fifo_expire_sync", 1);
        rig.run(&[
            Submit("5000", read(5000..5008)),
            Submit("1000", read(1000..1008)),
            Submit("1100", read(1100..1108)),
            Expect(Deadline("5000", ms(1))),
            Advance(at),
        ]);
        assert_eq!(rig.serve_all(), order);
    }
}

/// It goes by distance only: the overdue one has lost its chance for the service.
#[test]
fn request_that_arrives_near_the_head_displaces_an_overdue_one() {
    let mut rig = plain_disk(1).set("fifo_expire_sync", 1);
    rig.run(&[
        Submit("5000", read(5000..5008)),
        Submit("1000", read(1000..1008)),
        Submit("1100", read(1100..1108)),
        Advance(ms(1)),
        Serve(&["1000"]),
        Expect(Emitted("overdue 5000")),
        Submit("1010", read(1010..1018)),
    ]);
    assert_eq!(rig.serve_all(), ["1010", "1100", "5000"]);
}

/// The look at the oldest is taken by the first removal, though nothing was overdue then.
#[test]
fn overdue_request_may_have_to_wait_for_the_next_service() {
    let mut rig = plain_disk(1).set("fifo_expire_sync", 1);
    rig.run(&[
        Submit("5000", read(5000..5008)),
        Submit("1000", read(1000..1008)),
        Submit("1100", read(1100..1108)),
        Submit("1200", read(1200..1208)),
        Serve(&["1000"]),
        Advance(ms(2)),
        Serve(&["1100", "1200", "5000"]),
        Expect(NotEmitted("overdue")),
    ]);
}

#[test]
fn fifo_times_differ_by_direction() {
    plain_disk(0).run(&[
        Submit("r", read(0..8)),
        Submit("w", write(0..8)),
        Submit("ws", write(100..108).sync()),
        Expect(Deadline("r", ms(125))),
        Expect(Deadline("w", ms(250))),
        Expect(Deadline("ws", ms(125))),
    ]);
}

#[test]
fn oldest_request_is_looked_at_again_in_the_next_service() {
    let mut rig = plain_disk(1).set("fifo_expire_sync", 1);
    // The head is at 1108 the second time.
    for order in [&["1000", "5000", "1100"], &["1100", "5000", "1000"]] {
        rig.run(&[
            Submit("5000", read(5000..5008)),
            Submit("1000", read(1000..1008)),
            Submit("1100", read(1100..1108)),
            Advance(ms(1)),
            Serve(order),
            Expect(Emitted("overdue 5000")),
            Advance(ms(8)),
            TimerFires,
        ]);
    }
}
