//! IOPS mode: without idling, on a device that queues, groups are charged for requests.

use crate::rig::*;
use paternoster::{Device, SchedulerKind};

const FAR: u64 = 1_000_000;

fn solid_state(depth: u32) -> Rig {
    Rig::on(Device::solid_state(depth), SchedulerKind::Cfq)
}

#[test]
fn non_rotational_device_idles_for_no_queue_unless_that_is_set() {
    let mut rig = solid_state(1);
    assert_eq!(rig.elevator.tunable("slice_idle"), Ok(0));
    assert_eq!(rig.elevator.tunable("group_idle"), Ok(8));
    rig.run(&[SwitchTo(SchedulerKind::None), SwitchTo(SchedulerKind::Cfq)]);
    assert_eq!(rig.elevator.tunable("slice_idle"), Ok(0));
    rig.run(&[Set("slice_idle", 8), Advance(ms(100)), Submit("a", read(0..64)), Serve(&["a"])]);
    assert_eq!(rig.elevator.tunable("slice_idle"), Ok(8));
    rig.run(&[SwitchTo(SchedulerKind::None), SwitchTo(SchedulerKind::Cfq)]);
    assert_eq!(rig.elevator.tunable("slice_idle"), Ok(8));
}

/// A queue loses its idle window with its first request, when it is on its tree already. A device
/// that is not known not to queue counts as queueing, so requests are charged.
#[test]
fn readers_of_a_device_that_queues_alternate_by_request() {
    let rig = solid_state(1).without_merging().task("a", "be/4", ROOT).task("b", "be/4", ROOT);
    let mut run = rig.served(1, ms(1));
    run.issues("a", Stream::reads(16).think(ms(1)));
    run.issues("b", Stream::reads(16).from(FAR).at(us(500)).think(ms(1))).until(us(500));
    let emitted = [
        "0 ms: busy a",
        "0 ms: window a: off",
        "0 ms: workload /: Be Sync for 300 ms",
        "0.5 ms: busy b",
        "0.5 ms: window b: off",
        "0.5 ms: preempted a by b: NotIdling",
        "0.5 ms: expired a: Preempted, used 1 ms, charged 1 requests, residue 100 ms, \
         dispatched 1, \
         vdisktime 4096, unaccounted 0 ms",
        "0.5 ms: not busy a",
    ];
    let beginnings = ["busy", "not busy", "window", "workload", "preempted", "expired"];
    assert_eq!(run.emitted(&beginnings), emitted);
}

/// The device idles for the only queue of a group, for the sake of the group.
#[test]
fn device_idles_for_a_group_if_not_for_its_queue() {
    solid_state(1).without_merging().task("a", "be/4", ROOT).task("b", "be/4", ROOT).run(&[
        Submit("a", read(0..64).by("a")),
        Expect(dispatched("a")),
        Complete("a"),
        Expect(Emitted("idles a: 8 ms for its group")),
        Submit("b", read(FAR..FAR + 64).by("b")),
        Expect(Emitted("preempted a by b: NotIdling")),
        Expect(dispatched("b")),
        Submit("a2", read(64..128).by("a")),
        Complete("b"),
        Expect(NotEmitted("idles")),
    ]);
}

#[test]
fn device_never_idles_without_idle_times() {
    solid_state(1).without_merging().set("group_idle", 0).task("a", "be/4", ROOT).run(&[
        Submit("a", read(0..64).by("a")),
        Serve(&["a"]),
        Expect(NotEmitted("idles")),
        Expect(Timeout(None)),
    ]);
}

/// With slices of 100 ms, two requests at a time and 10 ms for each, a slice has 12 requests: two
/// are dispatched at 0 and one each at 10 to 100; at 110 the slice that began at 10 is over. The
/// device idles for the group's next request. It comes at once, and ends the slice. 12 requests are
/// (12 << 24) / 4096 = 49152 for the first group, which was alone when it became busy, and
/// (12 << 24) / 2730 = 73746 with 1000 of 1500; the second group began 200 behind the first.
#[test]
fn groups_pay_for_requests() {
    let rig = Rig::cfq().without_merging().set("slice_idle", 0).depth(2);
    let rig = rig.group("/a", 500).group("/b", 1000);
    let mut run = rig.task("a", "be/4", "/a").task("b", "be/4", "/b").served(1, ms(10));
    run.issues("a", Stream::reads(16).depth(2));
    run.issues("b", Stream::reads(16).from(FAR).depth(2)).until(ms(230));
    let emitted = [
        "110 ms: expired a: WaitBusy, used 100 ms, charged 12 requests, no residue, dispatched 12, \
         vdisktime 49152",
        "230 ms: expired b: WaitBusy, used 100 ms, charged 12 requests, no residue, dispatched 12, \
         vdisktime 73946",
    ];
    assert_eq!(run.emitted_up_to(6, &["expired"]), emitted);
}

/// At the 51st completion with enough load it is known that the device does not queue.
#[test]
fn groups_pay_for_time_if_the_device_does_not_queue() {
    let mut run = Rig::cfq().without_merging().set("slice_idle", 0).served(1, ms(1));
    run.issues("main", Stream::reads(16).depth(8)).until(ms(202));
    let emitted = [
        "51 ms: hardware queueing: false",
        "101 ms: expired main: SliceUsed, used 100 ms, charged 100 ms",
        "202 ms: expired main: SliceUsed, used 100 ms, charged 100 ms",
    ];
    assert_eq!(run.emitted_up_to(3, &["hardware", "expired"]), emitted);
}

/// A request of 32 KiB is no seek, wherever it is; a smaller one is. The fifth seek is the fifth
/// request, as the first one counts too.
#[test]
fn small_requests_are_seeks_on_a_non_rotational_device() {
    for (sectors, lost) in [(64, vec![]), (63, vec!["4 ms: window a: off"])] {
        let rig = solid_state(1).set("slice_idle", 8).without_merging().task("a", "be/4", ROOT);
        let mut run = rig.served(1, ms(1));
        run.issues("a", Stream::reads(sectors).stride(FAR)).until(ms(40));
        assert_eq!(run.emitted(&["window"]), lost, "{sectors} sectors");
    }
}

/// Both requests came while the device took nothing, so neither queue preempted the other.
#[test]
fn device_does_not_idle_for_a_group_with_another_queue() {
    let rig = solid_state(0).without_merging().task("a", "be/4", ROOT).task("b", "be/4", ROOT);
    let mut rig = rig;
    rig.run(&[
        Submit("a", read(0..64).by("a")),
        Submit("b", read(FAR..FAR + 64).by("b")),
        SetDepth(1),
        Expect(dispatched("a")),
        Complete("a"),
        Expect(NotEmitted("idles")),
        Expect(dispatched("b")),
        Expect(Emitted("expired a: Empty")),
    ]);
}

/// The requests of the first group are in flight from 0 to 2, 22 to 24 and 44 to 46 ms. During the
/// first one, and 8 ms longer, the group holds the device. The think times of the group are 0 and
/// then at most 16 ms; their mean at the third request, 600/84 × 1.6 = 11.4, is too long.
#[test]
fn group_that_thinks_too_long_does_not_hold_the_device() {
    for (arrives, dispatched) in [(ms(1), ms(10)), (ms(45), ms(45))] {
        let rig = Rig::cfq().without_merging().set("slice_idle", 0).depth(2);
        let rig = rig.group("/a", 500).group("/b", 500);
        let mut run = rig.task("a", "be/4", "/a").task("b", "be/4", "/b").served(2, ms(2));
        run.issues("a", Stream::reads(16).think(ms(20)));
        run.issues("b", Stream::reads(16).from(FAR).at(arrives).count(1)).until(ms(60));
        assert_eq!(run.dispatch_times("b"), [dispatched], "it arrives at {arrives:?}");
    }
}

/// The task that always asks has 11 requests dispatched in the first 11 ms: the slice of 10 ms and
/// the 1 ms until it begins. The task that thinks for 1 ms before each request has 6 in its 12 ms,
/// in which the other could have had one each millisecond.
#[test]
fn group_for_which_the_device_idles_pays_for_the_requests_of_others_if_that_is_tuned() {
    for (tuned, emitted) in
        [(0, "used 10 ms, charged 6 requests"), (1, "used 12 ms, charged 12 requests")]
    {
        let rig = solid_state(1).set("slice_sync", 10).set("charge_whole_turn", tuned);
        let rig = rig.without_merging().group("/asks", 100).group("/thinks", 100);
        let rig = rig.task("asks", "be/4", "/asks").task("thinks", "be/4", "/thinks");
        let mut run = rig.served(1, ms(1));
        run.issues("asks", Stream::reads(16).depth(2));
        run.issues("thinks", Stream::reads(16).from(FAR).think(ms(1)).at(us(100)));
        let emitted = format!("23 ms: expired thinks: WaitBusy, {emitted}");
        assert_eq!(run.until(ms(30)).emitted_up_to(3, &["expired thinks"]), [emitted]);
    }
}
