//! I/O priorities: classes, their changes, and requests that boost their queue for a while.

use crate::rig::*;
use paternoster::BioFlags;

const FAR: u64 = 1_000_000;

fn idle_and_best_effort() -> Rig {
    let rig = Rig::cfq().without_merging().task("i", "idle", ROOT).task("b", "be/4", ROOT);
    rig.group("/a", 500)
}

/// An oddity of Linux: the class gets only what others leave. The best-effort reader takes the
/// device at 0.5 ms and is served from 1 to 6 ms; the device idles for it until 14.
#[test]
fn idle_class_starves_while_a_best_effort_reader_of_its_group_is_busy() {
    let mut run = idle_and_best_effort().served(1, ms(1));
    run.issues("i", Stream::reads(16).depth(2));
    run.issues("b", Stream::reads(16).from(FAR).at(us(500)).count(5)).until(ms(16));
    let served = ["i.0", "b.0", "b.1", "b.2", "b.3", "b.4", "i.1", "i.2", "i.3"];
    assert_eq!(run.dispatched(), served);
    assert_eq!(run.dispatch_times("i"), [ms(0), ms(14), ms(15), ms(16)]);
    let emitted = ["0.5 ms: preempted i by b: OverIdleClass"];
    assert_eq!(run.emitted(&["preempted"]), emitted);
}

/// Both have enough requests waiting. The best-effort reader's slices are 5 ms from the first
/// completion, 40960000000 at half of the device. In between the idle class has one request at a
/// time. It pays two ticks for each: one when it is dispatched, and one when it completes, because
/// the queue is active again though the gate refuses the next request. At half of the device a tick
/// is 8192000000; the first one is 4096000000, as the group was alone. So: 4.096 at 0.1 ms, when
/// the other group, at 0.2, takes the device; 12.288 and 20.48 with the 2nd request, 28.672 and
/// 36.864 with the 3rd, and 45.056, behind the other's 41.16, when the 4th is dispatched. A slice
/// of its level, 7, would be 2 ms.
#[test]
fn idle_class_of_another_group_is_served_between_slices() {
    let rig = Rig::cfq().without_merging().set("slice_sync", 5).depth(2);
    let rig = rig.group("/a", 500).group("/b", 500).task("a", "idle", "/a").task("b", "be/4", "/b");
    let mut run = rig.served(1, ms(1));
    run.issues("a", Stream::reads(16).depth(40));
    run.issues("b", Stream::reads(16).from(FAR).at(us(100)).depth(40).count(40)).until(us(10_500));
    let expired =
        |at, why, rest| format!("{at} ms: expired a: {why}, used 1 ms, charged 1 ms, {rest}");
    let of_idle = [
        expired("0.1", "Preempted", "residue 2 ms, dispatched 1, vdisktime 4096000000"),
        expired("7", "IdleClass", "no residue, dispatched 1, vdisktime 12288000000"),
        expired("9", "IdleClass", "residue 2 ms, dispatched 0, vdisktime 20480000000"),
        expired("9", "IdleClass", "no residue, dispatched 1, vdisktime 28672000000"),
        expired("10", "IdleClass", "residue 2 ms, dispatched 0, vdisktime 36864000000"),
        expired("10", "IdleClass", "no residue, dispatched 1, vdisktime 45056000000"),
    ];
    assert_eq!(run.emitted_up_to(6, &["expired a"]), of_idle);
}

/// Its slices are those of the new level from its next request on.
#[test]
fn sync_queue_follows_its_task_to_another_level() {
    Rig::cfq().without_merging().task("a", "be/4", ROOT).run(&[
        Submit("a", read(0..16).by("a")),
        Serve(&["a"]),
        Expect(Emitted("slice a: 100 ms")),
        Advance(ms(8)),
        TimerFires,
        SetPriority("a", "be/0"),
        Submit("b", read(16..32).by("a")),
        Serve(&["b"]),
        Expect(Emitted("slice a: 180 ms")),
    ]);
}

/// An oddity of Linux: at the change the task gets the queue of its old level once more, and at the
/// next change that of the level in between.
#[test]
fn async_writes_of_a_task_that_changed_its_level_go_on_at_the_old_one() {
    Rig::cfq().without_merging().task("a", "be/4", ROOT).run(&[
        Submit("a", write(0..16).by("a")),
        Serve(&["a"]),
        Expect(Emitted("slice async a: 40 ms")),
        Exit("main"),
        SetPriority("a", "be/0"),
        Submit("b", read(FAR..FAR + 16).by("a")),
        Serve(&["b"]),
        Expect(Emitted("slice a: 180 ms")),
        Advance(ms(8)),
        TimerFires,
        Submit("c", write(16..32).by("a")),
        Serve(&["c"]),
        Expect(Emitted("slice async a: 40 ms")),
        Expect(Number("queues", 2)),
        SetPriority("a", "be/7"),
        Submit("d", read(FAR + 16..FAR + 32).by("a")),
        Expect(Number("queues", 3)),
        Serve(&["d"]),
        Advance(ms(8)),
        TimerFires,
        Submit("e", write(32..48).by("a")),
        Serve(&["e"]),
        Expect(Emitted("slice async a: 72 ms")),
    ]);
}

/// The change does not move it. Until it is placed again, it is on the tree of its old class, and
/// queues of the new class go first.
#[test]
fn queue_stays_where_it_is_when_its_class_changes() {
    let mut rig = Rig::cfq().without_merging().task("a", "be/4", ROOT).task("b", "be/4", ROOT);
    rig.run(&[
        Submit("a", read(0..16).by("a")),
        Expect(dispatched("a")),
        Submit("b", read(FAR..FAR + 16).by("b")),
        Expect(NotEmitted("preempted")),
        SetPriority("b", "rt/4"),
        Complete("a"),
        Exit("a"),
        Expect(dispatched("b")),
        Expect(Emitted("active b")),
        Expect(NotEmitted("workload")),
    ]);
}

/// A queue that leaves the idle class has no idle window until its task's think time is known: at
/// the third of its requests, of which the first was in the idle class.
#[test]
fn queue_that_leaves_the_idle_class_has_to_earn_its_window() {
    Rig::cfq().without_merging().task("a", "idle", ROOT).run(&[
        Submit("a", read(0..16).by("a")),
        Serve(&["a"]),
        SetPriority("a", "be/4"),
        Submit("b", read(16..32).by("a")),
        Expect(dispatched("b")),
        Expect(Emitted("workload /: Be SyncNoIdle for 300 ms")),
        Complete("b"),
        Submit("c", read(32..48).by("a")),
        Expect(Emitted("window a: on")),
    ]);
}

/// A read of the highest level, as of metadata, of a task of the lowest: its slice is that of
/// level 4, and with the next read that of level 7 again.
#[test]
fn request_with_priority_boosts_its_queue_until_the_next_one_without() {
    let serve =
        |name, io, emitted| [Submit(name, io), Serve(name_of(name)), Expect(Emitted(emitted))];
    let pause = [Advance(ms(8)), TimerFires];
    let urgent = read(16..32).by("a").flag(BioFlags::PRIO);
    let mut rig = Rig::cfq().without_merging().task("a", "be/7", ROOT);
    rig.run(&serve("a", read(0..16).by("a"), "slice a: 40 ms")).run(&pause);
    rig.run(&serve("b", urgent, "slice a: 100 ms")).run(&pause);
    rig.run(&serve("c", read(32..48).by("a"), "slice a: 40 ms"));
}

fn name_of(name: &str) -> &'static [&'static str] {
    match name {
        "a" => &["a"],
        "b" => &["b"],
        _ => &["c"],
    }
}

#[test]
fn request_with_priority_boosts_no_queue_that_is_above_already() {
    Rig::cfq().without_merging().task("a", "be/2", ROOT).run(&[
        Submit("a", read(0..16).by("a")),
        Serve(&["a"]),
        Advance(ms(8)),
        TimerFires,
        Submit("b", read(16..32).by("a").flag(BioFlags::PRIO)),
        Serve(&["b"]),
        Expect(Emitted("slice a: 140 ms")),
        Expect(Emitted("slice a: 140 ms")),
    ]);
}

/// The first request of a task finds no queue that it could boost.
#[test]
fn request_with_priority_boosts_an_idle_class_queue_that_exists() {
    Rig::cfq().without_merging().task("i", "idle", ROOT).run(&[
        Submit("a", read(0..16).by("i").flag(BioFlags::PRIO)),
        Expect(dispatched("a")),
        Expect(NotEmitted("workload")),
        Complete("a"),
        Submit("b", read(16..32).by("i").flag(BioFlags::PRIO)),
        Expect(dispatched("b")),
        Expect(Emitted("workload /: Be SyncNoIdle for 300 ms")),
        Complete("b"),
        Expect(Emitted("slice i: 100 ms")),
    ]);
}
