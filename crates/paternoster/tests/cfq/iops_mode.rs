//! Without idling on a device that queues: groups are charged for requests.

use crate::rig::*;
use paternoster::{Device, SchedulerKind};

const FAR: u64 = 1_000_000;

fn solid_state(depth: u32) -> Rig {
    Rig::on(Device::solid_state(depth), SchedulerKind::Cfq)
}

#[test]
fn nobody_is_waited_for_on_a_device_without_moving_parts_unless_that_is_set() {
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

/// The window of a queue goes with its first request, when it is on its tree already. Unknown
/// counts as queueing: what is charged are requests.
#[test]
fn readers_of_a_device_that_queues_take_turns_by_request() {
    let rig = solid_state(1).without_merging().task("a", "be/4", ROOT).task("b", "be/4", ROOT);
    let mut run = rig.served(1, ms(1));
    run.issues("a", Stream::reads(16).think(ms(1)));
    run.issues("b", Stream::reads(16).from(FAR).at(us(500)).think(ms(1))).until(us(500));
    let told = [
        "0 ms: listed a",
        "0 ms: window a: off",
        "0 ms: workload /: Be Sync for 300 ms",
        "0.5 ms: listed b",
        "0.5 ms: window b: off",
        "0.5 ms: preempted a by b: NotIdling",
        "0.5 ms: expired a: Preempted, used 1 ms, charged 1 requests, residue 100 ms, sent 1, \
         vdisktime 4096, unaccounted 0 ms",
        "0.5 ms: unlisted a",
    ];
    let beginnings = ["listed", "unlisted", "window", "workload", "preempted", "expired"];
    assert_eq!(run.told(&beginnings), told);
}

/// The only queue of its group is waited for, for the group's sake.
#[test]
fn group_is_waited_for_where_its_queue_is_not() {
    solid_state(1).without_merging().task("a", "be/4", ROOT).task("b", "be/4", ROOT).run(&[
        Submit("a", read(0..64).by("a")),
        Expect(dispatched("a")),
        Complete("a"),
        Expect(Told("idles a: 8 ms for its group")),
        Submit("b", read(FAR..FAR + 64).by("b")),
        Expect(Told("preempted a by b: NotIdling")),
        Expect(dispatched("b")),
        Submit("a2", read(64..128).by("a")),
        Complete("b"),
        Expect(Untold("idles")),
    ]);
}

#[test]
fn nobody_is_waited_for_without_idle_times() {
    solid_state(1).without_merging().set("group_idle", 0).task("a", "be/4", ROOT).run(&[
        Submit("a", read(0..64).by("a")),
        Serve(&["a"]),
        Expect(Untold("idles")),
        Expect(Timeout(None)),
    ]);
}

/// With slices of 100 ms, two requests at a time and 10 ms for each, a turn has 12: two are sent at
/// 0 and one each at 10 to 100; at 110 the slice that began at 10 is over. The group waits for its
/// next request, which comes at once and has to win anew. 12 requests are (12 << 24) / 4096 = 49152
/// for the first group, which was alone as it joined, and (12 << 24) / 2730 = 73746 with 1000 of
/// 1500; the second group joined 200 behind the first.
#[test]
fn groups_pay_for_requests() {
    let rig = Rig::cfq().without_merging().set("slice_idle", 0).depth(2);
    let rig = rig.group("/a", 500).group("/b", 1000);
    let mut run = rig.task("a", "be/4", "/a").task("b", "be/4", "/b").served(1, ms(10));
    run.issues("a", Stream::reads(16).depth(2));
    run.issues("b", Stream::reads(16).from(FAR).depth(2)).until(ms(230));
    let told = [
        "110 ms: expired a: WaitBusy, used 100 ms, charged 12 requests, no residue, sent 12, \
         vdisktime 49152",
        "230 ms: expired b: WaitBusy, used 100 ms, charged 12 requests, no residue, sent 12, \
         vdisktime 73946",
    ];
    assert_eq!(run.told_up_to(6, &["expired"]), told);
}

/// As soon as it is known: at the 51st completion with enough load.
#[test]
fn groups_pay_for_time_where_the_device_does_not_queue() {
    let mut run = Rig::cfq().without_merging().set("slice_idle", 0).served(1, ms(1));
    run.issues("main", Stream::reads(16).depth(8)).until(ms(202));
    let told = [
        "51 ms: hardware queueing: false",
        "101 ms: expired main: SliceUsed, used 100 ms, charged 100 ms",
        "202 ms: expired main: SliceUsed, used 100 ms, charged 100 ms",
    ];
    assert_eq!(run.told_up_to(3, &["hardware", "expired"]), told);
}

/// 32 KiB and more are near, wherever they are; less is a seek. The fifth of those is the fifth
/// request, for the first counts too.
#[test]
fn small_requests_are_seeks_where_nothing_moves() {
    for (sectors, lost) in [(64, vec![]), (63, vec!["4 ms: window a: off"])] {
        let rig = solid_state(1).set("slice_idle", 8).without_merging().task("a", "be/4", ROOT);
        let mut run = rig.served(1, ms(1));
        run.issues("a", Stream::reads(sectors).stride(FAR)).until(ms(40));
        assert_eq!(run.told(&["window"]), lost, "{sectors} sectors");
    }
}

/// Both came while the device took nothing, so that neither took it from the other.
#[test]
fn group_with_another_queue_is_not_waited_for() {
    let rig = solid_state(0).without_merging().task("a", "be/4", ROOT).task("b", "be/4", ROOT);
    let mut rig = rig;
    rig.run(&[
        Submit("a", read(0..64).by("a")),
        Submit("b", read(FAR..FAR + 64).by("b")),
        SetDepth(1),
        Expect(dispatched("a")),
        Complete("a"),
        Expect(Untold("idles")),
        Expect(dispatched("b")),
        Expect(Told("expired a: Empty")),
    ]);
}

/// The requests of the first group are in the device from 0 to 2, 22 to 24 and 44 to 46 ms. While
/// the first is, and 8 ms longer, the group holds the device. The think times of the group are 0
/// and then at most 16 ms, and their mean at the third request, 600/84 × 1.6 = 11.4, is too long.
#[test]
fn group_that_thinks_too_long_does_not_hold_the_device() {
    for (arrives, sent) in [(ms(1), ms(10)), (ms(45), ms(45))] {
        let rig = Rig::cfq().without_merging().set("slice_idle", 0).depth(2);
        let rig = rig.group("/a", 500).group("/b", 500);
        let mut run = rig.task("a", "be/4", "/a").task("b", "be/4", "/b").served(2, ms(2));
        run.issues("a", Stream::reads(16).think(ms(20)));
        run.issues("b", Stream::reads(16).from(FAR).at(arrives).count(1)).until(ms(60));
        assert_eq!(run.dispatch_times("b"), [sent], "it arrives at {arrives:?}");
    }
}

/// Who always asks sends 11 requests in the 11 ms of its first turn, the slice of 10 ms and the
/// 1 ms until it begins. Who thinks for 1 ms before each request sends 6 in its turn of 12 ms, in
/// which the other could have sent one each millisecond.
#[test]
fn group_that_is_waited_for_pays_for_the_requests_of_others_if_that_is_tuned() {
    for (tuned, told) in
        [(0, "used 10 ms, charged 6 requests"), (1, "used 12 ms, charged 12 requests")]
    {
        let rig = solid_state(1).set("slice_sync", 10).set("charge_whole_turn", tuned);
        let rig = rig.without_merging().group("/asks", 100).group("/thinks", 100);
        let rig = rig.task("asks", "be/4", "/asks").task("thinks", "be/4", "/thinks");
        let mut run = rig.served(1, ms(1));
        run.issues("asks", Stream::reads(16).depth(2));
        run.issues("thinks", Stream::reads(16).from(FAR).think(ms(1)).at(us(100)));
        let told = format!("23 ms: expired thinks: WaitBusy, {told}");
        assert_eq!(run.until(ms(30)).told_up_to(3, &["expired thinks"]), [told]);
    }
}
