//! Groups with one queue, which would lose their place for running empty a moment too early.

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
/// when the next request comes, at once, it has to win anew. 9.5 ms at the whole device are
/// (9500000 << 24) / 4096 = 38912000000, and the other group waits at 200000000.
#[test]
fn group_is_waited_for_shortly_before_its_slice_ends_and_does_not_send() {
    let mut run = readers_in_groups(us(950));
    run.issues("a", Stream::reads(16)).until(us(10_449)).told(&[]);
    let told = [
        "10.45 ms: wait busy a",
        "10.45 ms: idles a: 8 ms",
        "10.45 ms: waiting: IdleTimer",
        "10.45 ms: expired a: WaitBusy, used 9.5 ms, charged 9.5 ms, no residue, sent 11, \
         vdisktime 38912000000, unaccounted 0.95 ms",
        "10.45 ms: active b",
    ];
    let decisions = ["wait busy", "waiting: I", "idles", "expired", "active"];
    assert_eq!(run.until(us(10_450)).told(&decisions), told);
    assert_eq!(run.dispatch_times("b"), [us(10_450)]);
}

/// The slice is 1.05 to 11.05 ms, and stretched at 10.5 to 18.5.
#[test]
fn group_that_is_waited_for_in_vain_gives_the_device_away_with_its_whole_slice_used() {
    let mut run = readers_in_groups(us(1050));
    run.issues("a", Stream::reads(16).count(10)).until(us(18_500));
    let told = [
        "10.5 ms: wait busy a",
        "18.5 ms: timer",
        "18.5 ms: expired a: SliceUsed, used 10 ms, charged 10 ms",
    ];
    assert_eq!(run.told_up_to(3, &["wait busy", "timer", "expired"]), told);
    assert_eq!(run.dispatch_times("b"), [us(18_500)]);
}

/// Another queue of the group keeps its place.
#[test]
fn slice_is_not_stretched_where_the_group_has_another_queue() {
    let rig = Rig::cfq().without_merging().set("slice_sync", 10).task("a", "be/4", ROOT);
    let mut run = rig.task("b", "be/4", ROOT).served(1, us(950));
    run.issues("a", Stream::reads(16)).issues("b", Stream::reads(16).from(FAR)).until(ms(12));
    assert_eq!(run.told(&["wait busy"]), [""; 0]);
    // 0.95 × 12: the first completion after 10.95.
    assert_eq!(run.dispatch_times("b"), [us(11_400)]);
}

/// The first group has sent 8 requests before the other came, and queues another at 10 ms as the
/// first completes. Its slice is 10 to 13 ms. At 13.5 it is over, and what it has queued is not
/// sent; but 7 requests are in flight, so nobody else sends either. The completion at 20 ends the
/// turn, 7 ms too late.
#[test]
fn only_queue_of_a_group_holds_the_device_while_its_requests_are_in_flight() {
    let rig = Rig::cfq().without_merging().set("slice_sync", 3).depth(31);
    let rig = rig.group("/a", 500).group("/b", 500).task("a", "be/4", "/a").task("b", "be/4", "/b");
    let mut run = rig.task("b2", "be/4", "/b").served(1, ms(10));
    run.issues("a", Stream::reads(16).depth(8));
    run.issues("b", Stream::reads(16).from(FAR).at(ms(1)));
    run.issues("b2", Stream::reads(16).from(2 * FAR).at(us(13_500))).until(ms(20));
    let told = [
        "10 ms: slice a: 3 ms",
        "10 ms: waiting: GateDepth",
        "13.5 ms: waiting: GroupInFlight",
        "20 ms: expired a: SliceUsed, used 3 ms, charged 3 ms, residue -7 ms",
    ];
    assert_eq!(run.told_up_to(4, &["slice", "waiting: G", "expired"]), told);
    assert_eq!(run.dispatch_times("b"), [ms(20)]);
}
