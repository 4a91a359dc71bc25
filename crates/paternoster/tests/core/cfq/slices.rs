//! How long slices are, and in which order queues have them.

use crate::rig::*;
use paternoster::{Device, SchedulerKind};

/// How far apart tasks read that have nothing to do with each other.
const FAR: u64 = 1_000_000;

/// A key is the time at which the queue becomes busy plus (busy queues before it - 1) × (180 ms -
/// own slice). Levels 7, 7, 7 and 0 have slices of 40, 40, 40 and 180 ms: their keys are -140, 0,
/// +140 and 0 ms, and of equal keys the one placed first is first. So be/0 has the third slice.
#[test]
fn first_queue_of_a_group_is_due_the_earlier_the_lower_its_level() {
    let rig = Rig::cfq().task("1", "be/7", ROOT).task("2", "be/7", ROOT);
    rig.task("3", "be/7", ROOT).task("4", "be/0", ROOT).run(&[
        Submit("a", read(0..16).by("1")),
        Expect(dispatched("a")),
        Submit("b", read(FAR..FAR + 16).by("2")),
        Submit("c", read(2 * FAR..2 * FAR + 16).by("3")),
        Submit("d", read(3 * FAR..3 * FAR + 16).by("4")),
        Complete("a"),
        Exit("1"),
        Expect(dispatched("b")),
        Complete("b"),
        Exit("2"),
        Expect(dispatched("d")),
        Complete("d"),
        Exit("4"),
        Expect(dispatched("c")),
    ]);
}

/// `base + base / 5 × (4 - level)` with 100 ms for sync and 40 ms for async queues.
#[test]
fn level_is_worth_a_fifth_of_the_slice() {
    let table = [
        ("be/0", "slice a: 180 ms", "slice async a: 72 ms"),
        ("be/1", "slice a: 160 ms", "slice async a: 64 ms"),
        ("be/2", "slice a: 140 ms", "slice async a: 56 ms"),
        ("be/3", "slice a: 120 ms", "slice async a: 48 ms"),
        ("be/4", "slice a: 100 ms", "slice async a: 40 ms"),
        ("be/5", "slice a: 80 ms", "slice async a: 32 ms"),
        ("be/6", "slice a: 60 ms", "slice async a: 24 ms"),
        ("be/7", "slice a: 40 ms", "slice async a: 16 ms"),
        ("rt/0", "slice a: 180 ms", "slice async a: 72 ms"),
        ("rt/7", "slice a: 40 ms", "slice async a: 16 ms"),
    ];
    for (io_prio, sync, asynchronous) in table {
        Rig::cfq().task("a", io_prio, ROOT).run(&[
            Submit("read", read(0..16).by("a")),
            Serve(&["read"]),
            Expect(Emitted(sync)),
        ]);
        Rig::cfq().task("a", io_prio, ROOT).run(&[
            Submit("write", write(0..16).by("a")),
            Serve(&["write"]),
            Expect(Emitted(asynchronous)),
        ]);
    }
}

/// Four readers, each of which uses its whole slice.
fn four_readers() -> Served {
    let rig = Rig::cfq().without_merging().task("a", "be/4", ROOT).task("b", "be/4", ROOT);
    let mut run = rig.task("c", "be/4", ROOT).task("d", "be/4", ROOT).served(1, ms(1));
    for (at, task) in ["a", "b", "c", "d"].into_iter().enumerate() {
        run.issues(task, Stream::reads(16).from(at as u64 * FAR).depth(2));
    }
    run
}

/// The mean of busy queues goes from 0 over (3 × 4 + 0 + 2) / 4 = 3 to (3 × 4 + 3 + 2) / 4 = 4.
/// Three slices of 100 ms just fit into 300; of four each has 100 × 300 / 400 = 75 ms. A slice
/// begins at its first completion, 1 ms after the end of the other one.
#[test]
fn slices_shrink_so_that_all_of_them_fit_into_the_target_latency() {
    let mut run = four_readers();
    let emitted = ["1 ms: slice a: 100 ms", "102 ms: slice b: 75 ms", "178 ms: slice c: 75 ms"];
    assert_eq!(run.until(ms(200)).emitted(&["slice"]), emitted);
}

#[test]
fn slices_do_not_shrink_without_low_latency() {
    let mut run = four_readers();
    run.rig.run(&[Set("low_latency", 0)]);
    let emitted = ["1 ms: slice a: 100 ms", "102 ms: slice b: 100 ms", "203 ms: slice c: 100 ms"];
    assert_eq!(run.until(ms(250)).emitted(&["slice"]), emitted);
}

/// With a target latency of 50 ms the parts are 100 × 50 / 300 = 16.666666 ms and then
/// 100 × 50 / 400 = 12.5 ms, which is less than two idle times of 8 ms. The first slice, from 1 ms
/// on, is found over at 18.
#[test]
fn slice_is_not_shorter_than_two_idle_times() {
    let mut run = four_readers();
    run.rig.run(&[Set("target_latency", 50)]);
    let emitted = ["1 ms: slice a: 16.666666 ms", "19 ms: slice b: 16 ms", "36 ms: slice c: 16 ms"];
    assert_eq!(run.until(ms(40)).emitted(&["slice"]), emitted);
}

/// The slice is 10 ms from the first completion on, at 4 ms. The completions at 8, 12 and 16 ms
/// find it over at 16: 2 ms too late, by which the next one will come later.
#[test]
fn what_was_used_beyond_the_slice_is_carried_over() {
    let rig = Rig::cfq().set("slice_sync", 10).task("a", "be/4", ROOT).without_merging();
    let mut run = rig.task("b", "be/4", ROOT).served(1, ms(4));
    run.issues("a", Stream::reads(16).depth(2));
    run.issues("b", Stream::reads(16).from(FAR).depth(2));
    let emitted = [
        "16 ms: expired a: SliceUsed, used 10 ms, charged 10 ms, residue -2 ms, dispatched 4",
        "32 ms: expired b: SliceUsed, used 10 ms, charged 10 ms, residue -2 ms, dispatched 4",
    ];
    assert_eq!(run.until(ms(40)).emitted_up_to(5, &["expired"]), emitted);
}

/// The same slices: a is active from 0 to 16 ms, b from there to 32.
#[test]
fn time_before_and_beyond_the_slice_is_charged_if_that_is_tuned() {
    let rig = Rig::cfq().set("slice_sync", 10).set("charge_whole_turn", 1).without_merging();
    let mut run = rig.task("a", "be/4", ROOT).task("b", "be/4", ROOT).served(1, ms(4));
    run.issues("a", Stream::reads(16).depth(2));
    run.issues("b", Stream::reads(16).from(FAR).depth(2));
    let emitted = [
        "16 ms: expired a: SliceUsed, used 16 ms, charged 16 ms, residue -2 ms, dispatched 4",
        "32 ms: expired b: SliceUsed, used 16 ms, charged 16 ms, residue -2 ms, dispatched 4",
    ];
    assert_eq!(run.until(ms(40)).emitted_up_to(5, &["expired"]), emitted);
}

/// The device takes one request at a time, so the request of b, which preempts a at 0.5 ms, is
/// dispatched at 1 ms. b keeps others from the device from 0.5 ms on, and a is back at 2 ms: all
/// the time is charged to one or the other.
#[test]
fn time_until_the_device_has_room_is_charged_to_the_queue_that_preempts_if_that_is_tuned() {
    let device = Device::solid_state(1).with_native_queueing(false);
    let rig = Rig::on(device, SchedulerKind::Cfq).set("charge_whole_turn", 1).without_merging();
    let mut run = rig.task("a", "be/4", ROOT).task("b", "be/4", ROOT).served(1, ms(1));
    run.issues("a", Stream::reads(16).think(ms(1)));
    run.issues("b", Stream::reads(16).from(FAR).at(us(500)).think(ms(5)));
    let emitted = [
        "0.5 ms: expired a: Preempted, used 0.5 ms, charged 0.5 ms",
        "2 ms: expired b: Preempted, used 1.5 ms, charged 1.5 ms",
    ];
    assert_eq!(run.until(ms(2)).emitted_up_to(3, &["expired"]), emitted);
}

/// The keys of b, c and d, which become busy at 0, 0.5 and 0.6 ms with 1, 2 and 3 busy queues
/// before them, are 0, 80.5 and (level 6 has 180 - 60) 0.6 + 2 × 120 = 240.6 ms. A real-time queue
/// preempts the first one at 2.5 ms with 98.5 ms of its slice left. It is one of five then, and its
/// key is 2.5 + 4 × 80 - 98.5 = 224 ms; without the residue it would be 322.5.
#[test]
fn residue_of_a_slice_brings_the_next_one_forward() {
    let at = |number: u64| read(number * FAR..number * FAR + 16);
    let rig = Rig::cfq().without_merging().task("a", "be/4", ROOT).task("b", "be/4", ROOT);
    let mut rig = rig.task("c", "be/4", ROOT).task("d", "be/6", ROOT).task("rt", "rt/4", ROOT);
    rig.run(&[
        Submit("a", at(0).by("a")),
        Expect(dispatched("a")),
        Submit("b", at(1).by("b")),
        Advance(us(500)),
        Submit("c", at(2).by("c")),
        Advance(us(100)),
        Submit("d", at(3).by("d")),
        Submit("a2", at(4).by("a")),
        Advance(us(400)),
        Complete("a"),
        Advance(us(1500)),
        Submit("rt", at(5).by("rt")),
        Expect(Emitted("preempted a by rt: RealTime")),
        Serve(&["rt"]),
        Exit("rt"),
    ]);
    for (name, task) in [("b", "b"), ("c", "c"), ("a2", "a"), ("d", "d")] {
        rig.run(&[Expect(dispatched(name)), Complete(name), Exit(task)]);
    }
}

/// With two queues the mean is (3 × 2 + 0 + 2) / 4 = 2, and it counts when one is left.
#[test]
fn workload_is_shared_with_queues_that_were_busy_lately() {
    let rig = Rig::cfq().task("a", "be/4", ROOT).task("b", "be/4", ROOT);
    rig.task("c", "be/4", ROOT).run(&[
        Submit("a", read(0..16).by("a")),
        Expect(dispatched("a")),
        Expect(Emitted("workload /: Be Sync for 300 ms")),
        Submit("b", read(FAR..FAR + 16).by("b")),
        Complete("a"),
        Exit("a"),
        Serve(&["b"]),
        Exit("b"),
        Expect(Emitted("left /")),
        Submit("c", read(0..16).by("c")),
        Expect(dispatched("c")),
        Expect(Emitted("workload /: Be Sync for 150 ms")),
    ]);
}

#[test]
fn sync_workload_has_two_idle_times_at_least() {
    Rig::cfq().set("target_latency", 1).run(&[
        Submit("a", read(0..16)),
        Expect(dispatched("a")),
        Expect(Emitted("workload /: Be Sync for 16 ms")),
    ]);
}
