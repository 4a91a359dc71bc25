//! When a new request takes the device from the active queue.

use crate::rig::*;
use paternoster::BioFlags;

const FAR: u64 = 1_000_000;

fn groups() -> Rig {
    Rig::cfq().without_merging().group("/a", 500).group("/b", 500)
}

/// Asynchronous writes of a group of their own: all that wait, up to 10 (a second without a late
/// read is worth 10 slices), are in flight when a read of another group comes.
fn writer_and_reader(depth: u32, service: paternoster::Nanos, read_at: u64) -> Served {
    let rig = groups().depth(depth).task("a", "be/4", "/a").task("b", "be/4", "/b");
    let mut run = rig.served(1, service);
    run.issues("a", Stream::writes(16).depth(40));
    run.issues("b", Stream::reads(16).from(FAR).at(us(read_at)));
    run
}

/// An oddity of Linux: a group with asynchronous queues alone is charged for the whole slice, and
/// before the first completion there is none. The group stays the first one, so its queue is active
/// again at once; but with 10 requests in flight the gate lets no other pass.
#[test]
fn group_that_writes_back_pays_nothing_for_a_slice_without_a_completion() {
    let mut run = writer_and_reader(31, ms(1), 100);
    let emitted = [
        "0.1 ms: preempted async a by b: SyncOverAsync",
        "0.1 ms: expired async a: Preempted, used 1 ms, charged 0 ms, residue 40 ms, \
         dispatched 10, \
         vdisktime 0",
        "0.1 ms: active async a",
        "0.1 ms: waiting: GateDepth",
    ];
    run.until(us(99)).emitted(&[]);
    let beginnings = ["preempted", "expired", "active", "waiting"];
    assert_eq!(run.until(us(100)).emitted_up_to(6, &beginnings), emitted);
    assert_eq!(run.dispatch_times("a").len(), 10);
}

/// Two writes have completed, at 1 and 2 ms: the slice is 1 to 41 ms. The group pays all of it,
/// (40000000 << 24) / 4096, and the residue of 38.5 ms brings the next one forward.
#[test]
fn group_that_writes_back_pays_its_whole_slice_when_a_reader_takes_the_device() {
    let mut run = writer_and_reader(1, ms(1), 2500);
    let emitted = ["2.5 ms: expired async a: Preempted, used 1.5 ms, charged 40 ms, \
                 residue 38.5 ms, dispatched 3, vdisktime 163840000000"];
    assert_eq!(run.until(us(2500)).emitted_up_to(6, &["expired"]), emitted);
    assert_eq!(run.until(ms(3)).dispatch_times("b"), [ms(3)]);
}

/// A reader with a request at a time whose slice is 1 to 101 ms, and at 2.5 ms a real-time one.
fn reader_and_real_time_reader(group: &str) -> Served {
    let rig = groups().task("a", "be/4", "/a").task("rt", "rt/4", group);
    let mut run = rig.served(1, ms(1));
    run.issues("a", Stream::reads(16));
    run.issues("rt", Stream::reads(16).from(FAR).at(us(2500)).count(1));
    run
}

/// At 100 ms a tick is left of the reader's slice: its next request comes and ends the slice.
#[test]
fn real_time_request_of_another_group_has_to_wait() {
    let mut run = reader_and_real_time_reader("/b");
    assert_eq!(run.until(ms(102)).emitted(&["preempted"]), [""; 0]);
    assert_eq!(run.dispatch_times("rt"), [ms(100)]);
}

/// The root is above every group. The reader's group pays (1500000 << 24) / 4096 for 1.5 ms; the
/// root began 200000000 behind its 0 and is first. With 1000 of 1500 its fraction is 2730: its
/// millisecond from 3 to 4, to its exit, costs (1000000 << 24) / 2730 = 6145500366.
#[test]
fn real_time_request_of_the_root_takes_the_device_from_any_group() {
    let mut run = reader_and_real_time_reader("/");
    let emitted = [
        "2.5 ms: preempted a by rt: RealTime",
        "2.5 ms: expired a: Preempted, used 1.5 ms, charged 1.5 ms, residue 98.5 ms, dispatched 3, \
         vdisktime 6144000000",
    ];
    assert_eq!(run.until(ms(3)).emitted_up_to(6, &["preempted", "expired"]), emitted);
    assert_eq!(run.dispatch_times("rt"), [ms(3)]);
    run.until(ms(4)).rig.run(&[
        Exit("rt"),
        Expect(Emitted(
            "expired rt: Exit, used 1 ms, charged 1 ms, no residue, \
             dispatched 1, vdisktime 6345500366",
        )),
    ]);
}

/// A group above may preempt, and a group below may not.
#[test]
fn group_below_takes_nothing_from_the_group_above() {
    let rig = Rig::cfq().group("/p", 500).group("/p/c", 500);
    let mut rig = rig.task("p", "be/4", "/p").task("c", "rt/4", "/p/c");
    rig.run(&[
        Submit("a", read(0..16).by("p")),
        Expect(dispatched("a")),
        Submit("b", read(FAR..FAR + 16).by("c")),
        Expect(NotEmitted("preempted")),
    ]);
}

#[test]
fn best_effort_request_does_not_preempt_a_real_time_queue() {
    Rig::cfq().task("rt", "rt/7", ROOT).set("slice_idle", 0).task("be", "be/0", ROOT).run(&[
        Submit("a", read(0..16).by("rt")),
        Expect(dispatched("a")),
        Submit("b", read(FAR..FAR + 16).by("be")),
        Expect(NotEmitted("preempted")),
    ]);
}

#[test]
fn real_time_request_takes_the_device_within_its_group() {
    Rig::cfq().task("be", "be/0", ROOT).task("rt", "rt/7", ROOT).run(&[
        Submit("a", read(0..16).by("be")),
        Expect(dispatched("a")),
        Submit("a2", read(16..32).by("be")),
        Submit("b", read(FAR..FAR + 16).by("rt")),
        Expect(Emitted("preempted be by rt: RealTime")),
        // The slice had not begun, so all of it is left.
        Expect(Emitted(
            "expired be: Preempted, used 1 ms, charged 1 ms, residue 180 ms, \
            dispatched 1",
        )),
        Complete("a"),
        Expect(dispatched("b")),
        // A workload of the new class, not the rest of the other's.
        Expect(Emitted("workload /: Rt Sync for 300 ms")),
    ]);
}

/// The slice is over at 3 ms; the queue holds the device as the only one of its group, with a
/// request in flight.
#[test]
fn any_request_of_the_group_takes_the_device_from_a_queue_whose_slice_is_over() {
    let rig = Rig::cfq().without_merging().set("slice_sync", 3).depth(8);
    rig.task("a", "be/4", ROOT).task("b", "be/4", ROOT).run(&[
        Submit("a", read(0..16).by("a")),
        Submit("a2", read(16..32).by("a")),
        Expect(dispatched("a")),
        Expect(dispatched("a2")),
        Complete("a"),
        Expect(Emitted("slice a: 3 ms")),
        Submit("a3", read(FAR..FAR + 16).by("a")),
        Submit("a4", read(32..48).by("a")),
        Advance(ms(3)),
        Expect(Nothing),
        Expect(Emitted("waiting: GroupInFlight")),
        Submit("b", read(2 * FAR..2 * FAR + 16).by("b")),
        Expect(Emitted("preempted a by b: SliceOver")),
    ]);
}

/// Tasks after whose writes nothing comes have no idle windows. Such a queue preempts another one
/// as soon as that is empty.
#[test]
fn queues_without_idle_windows_take_the_device_from_each_other() {
    let rig = Rig::cfq().without_merging().depth(8);
    let mut rig = rig.task("a", "be/4", ROOT).task("b", "be/4", ROOT);
    // After a slice each, both are on the tree of such queues.
    rig.run(&[
        Submit("a", write(0..16).by("a").sync()),
        Serve(&["a"]),
        Advance(ms(8)),
        TimerFires,
        Submit("b", write(FAR..FAR + 16).by("b").sync()),
        Serve(&["b"]),
        Advance(ms(8)),
        TimerFires,
        Submit("a2", write(16..32).by("a").sync()),
        Expect(dispatched("a2")),
        Expect(Emitted("workload /: Be SyncNoIdle for 300 ms")),
        Submit("b2", write(FAR + 16..FAR + 32).by("b").sync()),
        Expect(Emitted("preempted a by b: NoIdleWorkload")),
        Expect(dispatched("b2")),
        // b is not empty.
        Submit("b3", write(FAR + 32..FAR + 48).by("b").sync()),
        Submit("a3", write(32..48).by("a").sync()),
        Expect(NotEmitted("preempted")),
    ]);
}

#[test]
fn request_with_priority_takes_the_device_from_a_queue_that_has_none() {
    let readers = || Rig::cfq().task("a", "be/4", ROOT).task("b", "be/4", ROOT);
    let urgent = read(FAR..FAR + 16).by("b").flag(BioFlags::PRIO);
    readers().run(&[
        Submit("a", read(0..16).by("a")),
        Expect(dispatched("a")),
        Submit("a2", read(100..116).by("a")),
        Submit("b", urgent),
        Expect(Emitted("preempted a by b: Priority")),
        Complete("a"),
        Expect(dispatched("b")),
    ]);
    readers().run(&[
        Submit("a", read(0..16).by("a")),
        Expect(dispatched("a")),
        Submit("a2", read(100..116).by("a").flag(BioFlags::PRIO)),
        Submit("b", urgent),
        Expect(NotEmitted("preempted")),
        // Its own is dispatched: no request with priority is left.
        Complete("a"),
        Expect(dispatched("a2")),
        Submit("b2", urgent),
        Expect(Emitted("preempted a by b: Priority")),
    ]);
}

#[test]
fn any_request_of_the_group_takes_the_device_from_an_empty_queue_without_idling() {
    let rig = Rig::cfq().set("slice_idle", 0).task("a", "be/4", ROOT).task("b", "be/4", ROOT);
    rig.depth(8).run(&[
        Submit("a", read(0..16).by("a")),
        Submit("b", read(FAR..FAR + 16).by("b")),
        Expect(NotEmitted("preempted")),
        Expect(dispatched("a")),
        Submit("b2", read(2 * FAR..2 * FAR + 16).by("b")),
        Expect(Emitted("preempted a by b: NotIdling")),
    ]);
}

/// The head is at 16, so sectors up to 16 + 8192 are near.
#[test]
fn request_near_the_head_takes_the_device_from_a_queue_for_which_it_idles() {
    for (sector, near) in [(8208, true), (8209, false)] {
        let mut rig = Rig::cfq().task("a", "be/4", ROOT).task("b", "be/4", ROOT);
        rig.run(&[
            Submit("a", read(0..16).by("a")),
            Serve(&["a"]),
            Expect(Emitted("idles a: 8 ms")),
            Submit("b", read(sector..sector + 16).by("b")),
        ]);
        let expected =
            if near { Emitted("preempted a by b: Close") } else { NotEmitted("preempted") };
        rig.run(&[Expect(expected)]);
    }
}

/// Both are of one group, so the rest of the workload of writes is dropped.
#[test]
fn reader_that_takes_the_device_from_writes_of_its_group_is_next() {
    Rig::cfq().without_merging().task("a", "be/4", ROOT).run(&[
        Submit("w", write(0..8)),
        Submit("w2", write(100..108)),
        Expect(dispatched("w")),
        Submit("a", read(FAR..FAR + 16).by("a")),
        Expect(Emitted("preempted async main by a: SyncOverAsync")),
        Complete("w"),
        Expect(dispatched("a")),
        Expect(Emitted("workload /: Be Sync for 150 ms")),
    ]);
}
