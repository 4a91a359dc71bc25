//! When the device idles for a task's next request.

use crate::rig::*;
use paternoster::{BioFlags, Nanos};

const FAR: u64 = 1_000_000;

/// The slice of 100 ms begins when the first request completes, at 4 ms. At each completion up to
/// 100 ms the timer is armed; at 104 the slice is over.
#[test]
fn reader_that_comes_back_at_once_has_the_device_until_its_slice_ends() {
    let rig = Rig::cfq().without_merging().task("a", "be/4", ROOT).task("b", "be/4", ROOT);
    let mut run = rig.served(1, ms(4));
    run.issues("a", Stream::reads(16)).issues("b", Stream::reads(16).from(FAR)).until(ms(105));
    assert_eq!(run.dispatch_times("b"), [ms(104)]);
    let idles: Vec<_> = (1..=25).map(|at| format!("{} ms: idles a: 8 ms", at * 4)).collect();
    assert_eq!(run.emitted(&["idles", "timer"]), idles);
}

#[test]
fn others_are_served_when_the_idle_time_is_over() {
    Rig::cfq().task("a", "be/4", ROOT).task("b", "be/4", ROOT).run(&[
        Submit("a", read(0..16).by("a")),
        Expect(dispatched("a")),
        Submit("b", read(FAR..FAR + 16).by("b")),
        Advance(ms(4)),
        Complete("a"),
        Expect(Emitted("idles a: 8 ms")),
        Expect(Nothing),
        Expect(Emitted("waiting: IdleTimer")),
        Expect(Timeout(Some(ms(12)))),
        Advance(ms(8)),
        TimerFires,
        Expect(Emitted("expired a: IdleTimer, used 8 ms, charged 8 ms, no residue, dispatched 1")),
        Expect(dispatched("b")),
    ]);
}

/// What becomes of the idle window of a task that alone has the disk, which takes 1 ms for a
/// request.
fn windows(stream: Stream, until: Nanos) -> Vec<String> {
    let mut run = Rig::cfq().task("a", "be/4", ROOT).served(1, ms(1));
    run.issues("a", stream).until(until).emitted(&["window"])
}

/// The mean of think times of 10 ms, of which the first request, for which the task did not think,
/// counts 0, is 320/60 = 5.33 ms at the 2nd request, 600/84 = 7.14 at the 3rd, the first at which
/// it counts, and 845/105 = 8.05 at the 4th. With 9.94 ms it is 0.994 times that, 7.9993 ms at the
/// 4th, and more than 8 at the 5th. Samples are at most 16 ms, twice the idle time: 600/84 × 1.6
/// is 11.4 at the 3rd request of a task that thinks longer. A request takes 1 ms.
#[test]
fn window_is_lost_once_the_mean_think_time_exceeds_the_idle_time() {
    let table = [
        (us(10_000), "33 ms: window a: off"),
        (us(9_940), "43.76 ms: window a: off"),
        (us(100_000), "202 ms: window a: off"),
    ];
    for (think, lost) in table {
        let emitted = windows(Stream::reads(16).think(think), ms(250));
        assert_eq!(emitted, [lost], "thinks {think:?}");
    }
}

/// This goes on until the think time is known, with the fourth request, which completes at 34 ms.
#[test]
fn idle_timer_ends_the_slice_of_a_reader_that_thinks_too_long() {
    let mut run = Rig::cfq().without_merging().task("a", "be/4", ROOT).served(1, ms(1));
    run.issues("a", Stream::reads(16).think(ms(10))).until(ms(40));
    let emitted = [
        "1 ms: idles a: 8 ms",
        "9 ms: expired a: IdleTimer, used 8 ms, charged 8 ms",
        "12 ms: idles a: 8 ms",
        "20 ms: expired a: IdleTimer, used 8 ms, charged 8 ms",
        "23 ms: idles a: 8 ms",
        "31 ms: expired a: IdleTimer, used 8 ms, charged 8 ms",
    ];
    assert_eq!(run.emitted_up_to(3, &["idles", "expired"]), emitted);
}

/// The mean think time is 845/105 × 0.4 = 3.2 ms at 16 ms, when the fourth request completes. Of a
/// slice that begins at 1 ms, 5 ms are left if it is 20 ms long, and 3 ms if it is 18.
#[test]
fn device_does_not_idle_for_a_task_that_thinks_longer_than_its_slice_lasts() {
    for (slice, given_away) in [(20, ms(21)), (18, ms(16))] {
        let rig = Rig::cfq().without_merging().set("slice_sync", slice).task("a", "be/4", ROOT);
        let mut run = rig.task("b", "be/4", ROOT).served(1, ms(1));
        run.issues("a", Stream::reads(16).think(ms(4)));
        run.issues("b", Stream::reads(16).from(FAR).count(1)).until(ms(30));
        assert_eq!(run.dispatch_times("b"), [given_away], "a slice of {slice} ms");
    }
}

/// An oddity of Linux: a request of one page is held back for a moment so that it may grow, and the
/// timer goes on. Here the request is dispatched at once, so the timer of 9 to 17 ms ends the slice
/// while the request that came at 14 is in flight.
#[test]
fn timer_ends_the_slice_of_a_lone_reader_whose_small_request_is_in_flight() {
    let mut run = Rig::cfq().without_merging().task("a", "be/4", ROOT).served(1, ms(4));
    run.issues("a", Stream::reads(8).at(ms(5)).think(ms(5))).until(ms(17));
    let emitted = [
        "9 ms: idles a: 8 ms",
        "17 ms: timer",
        "17 ms: expired a: IdleTimer, used 8 ms, charged 8 ms",
    ];
    assert_eq!(run.dispatch_times("a"), [ms(5), ms(14)]);
    assert_eq!(run.emitted_up_to(3, &["idles", "timer", "expired"]), emitted);
}

#[test]
fn request_longer_than_a_page_stops_the_timer() {
    let mut run = Rig::cfq().without_merging().task("a", "be/4", ROOT).served(1, ms(4));
    run.issues("a", Stream::reads(9).at(ms(5)).think(ms(5))).until(ms(20));
    let emitted = ["9 ms: idles a: 8 ms", "18 ms: idles a: 8 ms"];
    assert_eq!(run.emitted(&["idles", "timer", "expired"]), emitted);
}

#[test]
fn small_request_stops_the_timer_while_others_wait() {
    Rig::cfq().task("a", "be/4", ROOT).task("b", "be/4", ROOT).run(&[
        Submit("a", read(0..8).by("a")),
        Serve(&["a"]),
        Expect(Timeout(Some(ms(8)))),
        Submit("b", read(FAR..FAR + 8).by("b")),
        Advance(ms(2)),
        Submit("a2", read(8..16).by("a")),
        Expect(Timeout(None)),
        Expect(dispatched("a2")),
    ]);
}

/// The first request is no seek, so the fifth seek is the 6th request, at 5 ms.
#[test]
fn window_is_lost_with_the_fifth_seek() {
    assert_eq!(windows(Stream::reads(16).stride(FAR), ms(40)), ["5 ms: window a: off"]);
}

/// From the end of one request to the start of the next: 800 sectors are near, 801 are not.
#[test]
fn seek_is_more_than_800_sectors_on_a_disk() {
    for (stride, lost) in [(816, vec![]), (817, vec!["5 ms: window a: off"])] {
        let emitted = windows(Stream::reads(16).stride(stride), ms(40));
        assert_eq!(emitted, lost, "a stride of {stride}");
    }
}

/// With five at a time on a device of depth 1, four are waiting when the fifth arrives.
#[test]
fn seeky_queue_that_was_deep_keeps_its_window() {
    assert_eq!(windows(Stream::reads(16).stride(FAR).depth(5), ms(60)), [""; 0]);
}

/// A deep and seeky queue whose five seeks are all in flight, while a request of another queue
/// waits. Its slice of 100 ms began at 0.
fn seeky_and_deep() -> Rig {
    let at = |number: u64| number * FAR..number * FAR + 16;
    let mut rig = Rig::cfq().task("a", "be/4", ROOT).task("b", "be/4", ROOT);
    rig.run(&[
        Submit("0", read(at(0)).by("a")),
        Expect(dispatched("0")),
        Submit("1", read(at(1)).by("a")),
        Submit("2", read(at(2)).by("a")),
        Submit("3", read(at(3)).by("a")),
        Submit("4", read(at(4)).by("a")),
        Complete("0"),
        Expect(Emitted("slice a: 100 ms")),
        Expect(dispatched("1")),
        Submit("5", read(at(5)).by("a")),
        SetDepth(32),
        Expect(dispatched("2")),
        Expect(dispatched("3")),
        Expect(dispatched("4")),
        Expect(dispatched("5")),
        Expect(NotEmitted("window")),
        Submit("b", read(at(9)).by("b")),
    ]);
    rig
}

/// At 49 ms 51 are left; at 50 as much is left as was used.
#[test]
fn device_does_not_idle_for_a_seeky_queue_in_the_first_half_of_its_slice() {
    seeky_and_deep().run(&[
        Advance(ms(49)),
        Expect(dispatched("b")),
        Expect(Emitted("window a: given up")),
        Expect(Emitted("expired a: Empty, used 49 ms")),
    ]);
    seeky_and_deep().run(&[
        Advance(ms(50)),
        Expect(Nothing),
        Expect(Emitted("waiting: InFlight")),
        Expect(NotEmitted("window")),
    ]);
}

/// A synchronous write after which nothing comes, as of `fsync`. Its queue is placed before that is
/// known, so it joins the tree of such queues with its next slice.
#[test]
fn queue_whose_next_write_says_that_nothing_follows_has_no_window() {
    Rig::cfq().without_merging().task("a", "be/4", ROOT).run(&[
        Submit("first", write(0..16).by("a").sync()),
        Expect(Emitted("window a: off")),
        Serve(&["first"]),
        Expect(Emitted("workload /: Be Sync for 300 ms")),
        // The queue is the last one of the tree on which it still is.
        Expect(Emitted("idles a: 8 ms")),
        Advance(ms(8)),
        TimerFires,
        Submit("second", write(16..32).by("a").sync()),
        Serve(&["second"]),
        Expect(Emitted("workload /: Be SyncNoIdle for 300 ms")),
    ]);
}

#[test]
fn window_stays_where_the_write_says_that_more_follows() {
    Rig::cfq().task("a", "be/4", ROOT).run(&[
        Submit("direct", write(0..16).by("a").sync().flag(BioFlags::IDLE)),
        Expect(NotEmitted("window")),
    ]);
}

/// What counts is the request that is next.
#[test]
fn window_stays_where_a_read_comes_before_the_last_write() {
    Rig::cfq().without_merging().task("a", "be/4", ROOT).run(&[
        Submit("read", read(8..16).by("a")),
        Submit("write", write(400..408).by("a").sync()),
        Expect(NotEmitted("window")),
        Serve(&["read"]),
        Submit("another write", write(300..308).by("a").sync()),
        Expect(Emitted("window a: off")),
    ]);
}

/// The slice is 0 to 10 ms. At 5 ms the timer is armed up to 13. The small request at 6 ms does not
/// stop it, and is not dispatched, because the device takes nothing. At 13 the slice is over, but
/// the queue stays active for that one request.
#[test]
fn small_request_that_ended_idling_is_dispatched_though_the_slice_is_over() {
    Rig::cfq().without_merging().set("slice_sync", 10).task("a", "be/4", ROOT).run(&[
        Submit("a", read(0..8).by("a")),
        Serve(&["a"]),
        Submit("a2", read(8..16).by("a")),
        Expect(dispatched("a2")),
        Advance(ms(5)),
        Complete("a2"),
        Expect(Timeout(Some(ms(13)))),
        Advance(ms(1)),
        SetDepth(0),
        Submit("a3", read(16..24).by("a")),
        Expect(Nothing),
        Advance(ms(7)),
        TimerFires,
        Expect(NotEmitted("expired")),
        SetDepth(1),
        Expect(dispatched("a3")),
        Expect(NotEmitted("expired")),
    ]);
}

/// Six requests, five of them seeks, have completed at 6 ms, and the timer fires at 14. The next
/// request is a seek too, and it is alone.
#[test]
fn deep_queue_is_deep_until_idling_for_it_timed_out() {
    for (at, lost) in [(13, vec![]), (15, vec!["15 ms: window a: off"])] {
        let mut run = Rig::cfq().task("a", "be/4", ROOT).served(1, ms(1));
        run.issues("a", Stream::reads(16).stride(FAR).depth(5).count(6)).until(ms(10));
        run.issues("a", Stream::reads(16).from(9 * FAR).at(ms(at)).count(1)).until(ms(20));
        assert_eq!(run.emitted(&["window"]), lost, "at {at} ms");
    }
}
