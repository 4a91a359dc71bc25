//! Groups with one queue, which would lose their place because it runs empty a moment too early.

use crate::rig::*;

const FAR: u64 = 1_000_000;

/// Readers in two groups, the first of which has a slice of 10 ms from its first completion on.
fn readers_in_groups(service: paternoster::Nanos) -> Served {
    let rig = Rig::cfq().without_merging().set("slice_sync", 10);
    let rig = rig.group("/a", 500).group("/b", 500).task("a", "be/4", "/a").task("b", "be/4", "/b");
    let mut run = rig.served(1, service);
    run.issues("b", Stream::reads(16).from(FAR).at(us(100)));
    run
}

/// The slice is 0.95 to 10.95 ms. At 10.45 less than a tick is left: it is stretched by 8 ms, and
/// the next request, which comes at once, ends it. 9.5 ms at the whole device are
/// (9500000 << 24) / 4096 = 38912000000, and the other group waits at 200000000.
#[test]
fn device_idles_for_a_group_whose_slice_nearly_ends_and_the_next_request_ends_it() {
    let mut run = readers_in_groups(us(950));
    run.issues("a", Stream::reads(16)).until(us(10_449)).emitted(&[]);
    let emitted = [
        "10.45 ms: wait busy a",
        "10.45 ms: idles a: 8 ms",
        "10.45 ms: waiting: IdleTimer",
        "10.45 ms: expired a: WaitBusy, used 9.5 ms, charged 9.5 ms, no residue, dispatched 11, \
         vdisktime 38912000000, unaccounted 0.95 ms",
        "10.45 ms: active b",
    ];
    let decisions = ["wait busy", "waiting: IdleTimer", "idles", "expired", "active"];
    assert_eq!(run.until(us(10_450)).emitted(&decisions), emitted);
    assert_eq!(run.dispatch_times("b"), [us(10_450)]);
}

/// The slice is 1.05 to 11.05 ms, and stretched at 10.5 to 18.5.
#[test]
fn group_that_lets_idling_time_out_has_used_its_whole_slice() {
    let mut run = readers_in_groups(us(1050));
    run.issues("a", Stream::reads(16).count(10)).until(us(18_500));
    let emitted = [
        "10.5 ms: wait busy a",
        "18.5 ms: timer",
        "18.5 ms: expired a: SliceUsed, used 10 ms, charged 10 ms",
    ];
    assert_eq!(run.emitted_up_to(3, &["wait busy", "timer", "expired"]), emitted);
    assert_eq!(run.dispatch_times("b"), [us(18_500)]);
}

/// The group keeps its place by its other queue.
#[test]
fn slice_is_not_stretched_if_the_group_has_another_queue() {
    let rig = Rig::cfq().without_merging().set("slice_sync", 10).task("a", "be/4", ROOT);
    let mut run = rig.task("b", "be/4", ROOT).served(1, us(950));
    run.issues("a", Stream::reads(16)).issues("b", Stream::reads(16).from(FAR)).until(ms(12));
    assert_eq!(run.emitted(&["wait busy"]), [""; 0]);
    // 0.95 × 12: the first completion after 10.95.
    assert_eq!(run.dispatch_times("b"), [us(11_400)]);
}

/// The first group has 8 requests in flight before the other comes, and makes another at 10 ms when
/// the first one completes. Its slice is 10 to 13 ms. At 13.5 the slice is over, and the waiting
/// request is not dispatched; but 7 requests are in flight, so no other queue is served either. The
/// completion at 20 ends the slice, 7 ms too late.
#[test]
fn only_queue_of_a_group_holds_the_device_while_its_requests_are_in_flight() {
    let rig = Rig::cfq().without_merging().set("slice_sync", 3).depth(31);
    let rig = rig.group("/a", 500).group("/b", 500).task("a", "be/4", "/a").task("b", "be/4", "/b");
    let mut run = rig.task("b2", "be/4", "/b").served(1, ms(10));
    run.issues("a", Stream::reads(16).depth(8));
    run.issues("b", Stream::reads(16).from(FAR).at(ms(1)));
    run.issues("b2", Stream::reads(16).from(2 * FAR).at(us(13_500))).until(ms(20));
    let emitted = [
        "10 ms: slice a: 3 ms",
        "10 ms: waiting: GateDepth",
        "13.5 ms: waiting: GroupInFlight",
        "20 ms: expired a: SliceUsed, used 3 ms, charged 3 ms, residue -7 ms",
    ];
    assert_eq!(
        run.emitted_up_to(4, &["slice", "waiting: GateDepth", "waiting: GroupInFlight", "expired"]),
        emitted
    );
    assert_eq!(run.dispatch_times("b"), [ms(20)]);
}
