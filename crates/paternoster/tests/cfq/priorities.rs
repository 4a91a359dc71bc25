//! I/O priorities: classes, their changes, and requests that raise their queue for a while.

use crate::rig::*;
use paternoster::BioFlags;

const FAR: u64 = 1_000_000;

fn idle_and_best_effort() -> Rig {
    let rig = Rig::cfq().without_merging().task("i", "idle", ROOT).task("b", "be/4", ROOT);
    rig.group("/a", 500)
}

/// An oddity of Linux: the class is served for nothing but what others leave. The best-effort
/// reader takes the device at 0.5 ms, is served from 1 to 6 ms, and waited for until 14.
#[test]
fn idle_class_starves_while_a_best_effort_reader_of_its_group_is_busy() {
    let mut run = idle_and_best_effort().served(1, ms(1));
    run.issues("i", Stream::reads(16).depth(2));
    run.issues("b", Stream::reads(16).from(FAR).at(us(500)).count(5)).until(ms(16));
    let served = ["i.0", "b.0", "b.1", "b.2", "b.3", "b.4", "i.1", "i.2", "i.3"];
    assert_eq!(run.dispatched(), served);
    assert_eq!(run.dispatch_times("i"), [ms(0), ms(14), ms(15), ms(16)]);
    let told = ["0.5 ms: preempted i by b: OverIdleClass"];
    assert_eq!(run.told(&["preempted"]), told);
}

/// Both have enough queued. The best-effort reader's turns are of 5 ms from the first completion
/// on, 40960000000 at half of the device. In between the idle class has requests, one at a time:
/// for each it pays two ticks, one as it is sent, and one as it completes, when the queue has a
/// turn again though it may not send. At half of the device these are 8192000000 each; the first
/// is 4096000000, for the group was alone. So: 4.096 at 0.1 ms, when the other group, of 0.2, takes
/// the device; 12.288 and 20.48 with the 2nd request, 28.672 and 36.864 with the 3rd, and 45.056,
/// behind the other's 41.16, as the 4th is sent. A slice of its level, 7, would be 2 ms.
#[test]
fn idle_class_of_another_group_is_served_between_turns() {
    let rig = Rig::cfq().without_merging().set("slice_sync", 5).depth(2);
    let rig = rig.group("/a", 500).group("/b", 500).task("a", "idle", "/a").task("b", "be/4", "/b");
    let mut run = rig.served(1, ms(1));
    run.issues("a", Stream::reads(16).depth(40));
    run.issues("b", Stream::reads(16).from(FAR).at(us(100)).depth(40).count(40)).until(us(10_500));
    let expired = |at, why, rest| format!("{at} ms: expired a: {why}, used 1 ms, {rest}");
    let of_idle = [
        expired("0.1", "Preempted", "charged 1 ms, residue 2 ms, sent 1, vdisktime 4096000000"),
        expired("7", "IdleClass", "charged 1 ms, no residue, sent 1, vdisktime 12288000000"),
        expired("9", "IdleClass", "charged 1 ms, residue 2 ms, sent 0, vdisktime 20480000000"),
        expired("9", "IdleClass", "charged 1 ms, no residue, sent 1, vdisktime 28672000000"),
        expired("10", "IdleClass", "charged 1 ms, residue 2 ms, sent 0, vdisktime 36864000000"),
        expired("10", "IdleClass", "charged 1 ms, no residue, sent 1, vdisktime 45056000000"),
    ];
    assert_eq!(run.told_up_to(6, &["expired a"]), of_idle);
}

/// Its slices are those of the new level from its next request on.
#[test]
fn sync_queue_follows_its_task_to_another_level() {
    Rig::cfq().without_merging().task("a", "be/4", ROOT).run(&[
        Submit("a", read(0..16).by("a")),
        Serve(&["a"]),
        Expect(Told("slice a: 100 ms")),
        Advance(ms(8)),
        TimerFires,
        SetPriority("a", "be/0"),
        Submit("b", read(16..32).by("a")),
        Serve(&["b"]),
        Expect(Told("slice a: 180 ms")),
    ]);
}

/// An oddity of Linux: with the change the task is given the queue of its old level once more, and
/// with the next change that of the level in between.
#[test]
fn async_writes_of_a_task_that_changed_its_level_go_on_at_the_old_one() {
    Rig::cfq().without_merging().task("a", "be/4", ROOT).run(&[
        Submit("a", write(0..16).by("a")),
        Serve(&["a"]),
        Expect(Told("slice async a: 40 ms")),
        Exit("main"),
        SetPriority("a", "be/0"),
        Submit("b", read(FAR..FAR + 16).by("a")),
        Serve(&["b"]),
        Expect(Told("slice a: 180 ms")),
        Advance(ms(8)),
        TimerFires,
        Submit("c", write(16..32).by("a")),
        Serve(&["c"]),
        Expect(Told("slice async a: 40 ms")),
        Expect(Number("queues", 2)),
        SetPriority("a", "be/7"),
        Submit("d", read(FAR + 16..FAR + 32).by("a")),
        Expect(Number("queues", 3)),
        Serve(&["d"]),
        Advance(ms(8)),
        TimerFires,
        Submit("e", write(32..48).by("a")),
        Serve(&["e"]),
        Expect(Told("slice async a: 72 ms")),
    ]);
}

/// Not moved with the change: it is still on the tree of its old class, and has to wait for those
/// of the new one before it, until it is placed anew.
#[test]
fn queue_stays_where_it_is_when_its_class_changes() {
    let mut rig = Rig::cfq().without_merging().task("a", "be/4", ROOT).task("b", "be/4", ROOT);
    rig.run(&[
        Submit("a", read(0..16).by("a")),
        Expect(dispatched("a")),
        Submit("b", read(FAR..FAR + 16).by("b")),
        Expect(Untold("preempted")),
        SetPriority("b", "rt/4"),
        Complete("a"),
        Exit("a"),
        Expect(dispatched("b")),
        Expect(Told("active b")),
        Expect(Untold("workload")),
    ]);
}

/// A queue that leaves the idle class has no window, until its task's think time is known: by the
/// third of its requests, the first of which is the one of the idle class.
#[test]
fn queue_that_leaves_the_idle_class_earns_its_window_anew() {
    Rig::cfq().without_merging().task("a", "idle", ROOT).run(&[
        Submit("a", read(0..16).by("a")),
        Serve(&["a"]),
        SetPriority("a", "be/4"),
        Submit("b", read(16..32).by("a")),
        Expect(dispatched("b")),
        Expect(Told("workload /: Be SyncNoIdle for 300 ms")),
        Complete("b"),
        Submit("c", read(32..48).by("a")),
        Expect(Told("window a: on")),
    ]);
}

/// A read of the highest level, as of metadata, of a task of the lowest: its slice is that of
/// level 4, and with the next read that of level 7 again.
#[test]
fn request_with_priority_raises_its_queue_until_the_next_one_without() {
    let turn = |name, io, told| [Submit(name, io), Serve(name_of(name)), Expect(Told(told))];
    let pause = [Advance(ms(8)), TimerFires];
    let urgent = read(16..32).by("a").flag(BioFlags::PRIO);
    let mut rig = Rig::cfq().without_merging().task("a", "be/7", ROOT);
    rig.run(&turn("a", read(0..16).by("a"), "slice a: 40 ms")).run(&pause);
    rig.run(&turn("b", urgent, "slice a: 100 ms")).run(&pause);
    rig.run(&turn("c", read(32..48).by("a"), "slice a: 40 ms"));
}

fn name_of(name: &str) -> &'static [&'static str] {
    match name {
        "a" => &["a"],
        "b" => &["b"],
        _ => &["c"],
    }
}

#[test]
fn request_with_priority_raises_no_queue_that_is_above_already() {
    Rig::cfq().without_merging().task("a", "be/2", ROOT).run(&[
        Submit("a", read(0..16).by("a")),
        Serve(&["a"]),
        Advance(ms(8)),
        TimerFires,
        Submit("b", read(16..32).by("a").flag(BioFlags::PRIO)),
        Serve(&["b"]),
        Expect(Told("slice a: 140 ms")),
        Expect(Told("slice a: 140 ms")),
    ]);
}

/// The first request of a task finds no queue that it could raise.
#[test]
fn request_with_priority_raises_an_idle_class_queue_that_exists() {
    Rig::cfq().without_merging().task("i", "idle", ROOT).run(&[
        Submit("a", read(0..16).by("i").flag(BioFlags::PRIO)),
        Expect(dispatched("a")),
        Expect(Untold("workload")),
        Complete("a"),
        Submit("b", read(16..32).by("i").flag(BioFlags::PRIO)),
        Expect(dispatched("b")),
        Expect(Told("workload /: Be SyncNoIdle for 300 ms")),
        Complete("b"),
        Expect(Told("slice i: 100 ms")),
    ]);
}
