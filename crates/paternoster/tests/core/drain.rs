//! Giving up what waits: another scheduler comes, or nobody wants it any more.

use crate::rig::*;
use paternoster::SchedulerKind;

const FAR: u64 = 1_000_000;

/// The schedulers that have queues, of which they dump numbers.
const WITH_QUEUES: [SchedulerKind; 2] = [SchedulerKind::Cfq, SchedulerKind::Bfq];

/// A disk on which requests stay as they come and nobody is raised.
fn plain(kind: SchedulerKind) -> Rig {
    let rig = Rig::new(kind).without_merging();
    if kind == SchedulerKind::Bfq { rig.set("low_latency", 0) } else { rig }
}

/// Requests of two groups and three classes, the first of which is in the device: with `none` and
/// Kyber the first that came, else one of real time. The others, in order of arrival.
fn busy(kind: SchedulerKind) -> (Rig, &'static str, &'static [&'static str]) {
    let rig = plain(kind).depth(0).group("/a", 500).task("idle", "idle", ROOT);
    let mut rig = rig.task("rt", "rt/4", ROOT).task("a", "be/4", "/a");
    let (first, others): (_, &[_]) = match kind {
        SchedulerKind::None | SchedulerKind::Kyber => ("i", &["a", "a2", "w", "rt", "rt2"]),
        _ => ("rt", &["i", "a", "a2", "w", "rt2"]),
    };
    rig.run(&[
        Submit("i", read(0..16).by("idle")),
        Submit("a", read(FAR..FAR + 16).by("a")),
        Submit("a2", read(100..116).by("a")),
        Submit("w", write(2 * FAR..2 * FAR + 16).by("a")),
        Submit("rt", read(3 * FAR..3 * FAR + 16).by("rt")),
        SetDepth(1),
        Expect(dispatched(first)),
        Submit("rt2", read(4 * FAR..4 * FAR + 16).by("rt")),
    ]);
    (rig, first, others)
}

/// The next scheduler has them in order of arrival; what is in the device completes as ever.
#[test]
fn next_scheduler_gets_what_waits_in_order_of_arrival() {
    for kind in SchedulerKind::ALL {
        let (mut rig, first, others) = busy(kind);
        rig.run(&[SwitchTo(SchedulerKind::None)]);
        if WITH_QUEUES.contains(&kind) {
            rig.run(&[Expect(Emitted("drained 5"))]);
        }
        rig.run(&[Expect(Nothing), Complete(first), Serve(others), Expect(Nothing)]);
    }
}

#[test]
fn scheduler_that_comes_back_knows_nothing_of_before() {
    for kind in WITH_QUEUES {
        let (mut rig, first, _) = busy(kind);
        rig.run(&[
            Complete(first),
            SwitchTo(SchedulerKind::None),
            SwitchTo(kind),
            Expect(Number("queues", 4)),
            Expect(Number("busy_queues", 4)),
            Expect(Number("in_driver", 0)),
            Expect(Number("queued", 5)),
        ]);
        if kind == SchedulerKind::Cfq {
            rig.run(&[Expect(Number("busy_groups", 2))]);
            assert_eq!(rig.slice_stats("/a").dequeue, 0);
        }
    }
}

/// A request that another scheduler dispatched is none of its own when it completes: it begins no
/// slice, and the device does not idle for anybody after it.
#[test]
fn scheduler_does_not_hear_of_what_was_dispatched_before_it_came() {
    let emitted = [
        (SchedulerKind::Cfq, "slice", "slice a: 100 ms"),
        (SchedulerKind::Bfq, "idles", "idles a: 20 ms"),
    ];
    for (kind, untold, emitted) in emitted {
        Rig::none().without_merging().task("a", "be/4", ROOT).depth(2).run(&[
            Submit("before", read(0..16).by("a")),
            Expect(dispatched("before")),
            Submit("a", read(100..116).by("a")),
            SwitchTo(kind),
            Expect(dispatched("a")),
            Expect(Number("in_driver", 1)),
            Complete("before"),
            Expect(NotEmitted(untold)),
            Expect(Number("in_driver", 1)),
            Complete("a"),
            Expect(Emitted(emitted)),
        ]);
    }
}

#[test]
fn what_waits_is_given_up_in_order_of_arrival() {
    for kind in SchedulerKind::ALL {
        let (mut rig, first, others) = busy(kind);
        rig.run(&[Cancel(others)]);
        if WITH_QUEUES.contains(&kind) {
            rig.run(&[
                Expect(Number("busy_queues", 0)),
                Expect(Number("queued", 0)),
                Expect(Number("in_driver", 1)),
            ]);
        }
        if kind == SchedulerKind::Cfq {
            rig.run(&[Expect(Number("busy_groups", 0))]);
        }
        rig.run(&[
            // Work goes on.
            Submit("new", read(200..216).by("a")),
            Expect(Nothing),
            Complete(first),
            Expect(dispatched("new")),
        ]);
    }
}

/// The idle timer ends, too.
#[test]
fn nobody_is_waited_for_when_all_is_given_up() {
    for kind in WITH_QUEUES {
        plain(kind).run(&[
            Submit("a", read(0..16)),
            Serve(&["a"]),
            Expect(Timeout(Some(ms(8)))),
            Cancel(&[]),
            Expect(Timeout(None)),
            Expect(Number("busy_queues", 0)),
        ]);
    }
}

#[test]
fn requeued_request_is_given_up_too() {
    for kind in SchedulerKind::ALL {
        let mut rig = plain(kind);
        rig.run(&[
            Submit("a", read(0..16)),
            Submit("b", read(100..116)),
            Expect(dispatched("a")),
            Requeue("a"),
            Cancel(&["a", "b"]),
            Expect(Nothing),
        ]);
        if WITH_QUEUES.contains(&kind) {
            rig.run(&[
                Expect(Number("in_driver", 0)),
                Expect(Number("queues", 1)),
                Exit("main"),
                Expect(Number("queues", 0)),
            ]);
        }
    }
}

/// CFQ drains in slices. The order is that of groups; in a group best effort comes before real time
/// before idle, and in a class asynchronous before synchronous. Each slice costs a tick. The root
/// was alone when it became busy, so it is at 4096000000 after the first slice; its others, at 1000
/// of 1500, cost (1000000 << 24) / 2730 = 6145500366 each. The group began at 200000000, and its
/// slices cost twice that. So: the group, at 0.2, to 12.5; the root, at 4.1, to 10.2 and 16.4; the
/// group; the root.
#[test]
fn cfq_drains_each_queue_in_a_slice_of_its_own() {
    let (mut rig, _, _) = busy(SchedulerKind::Cfq);
    rig.run(&[
        Submit("be", read(5 * FAR..5 * FAR + 16)),
        SwitchTo(SchedulerKind::None),
        Expect(Emitted("expired rt: Drain, used 1 ms, charged 1 ms, no residue, dispatched 1")),
        Expect(Emitted("active async a")),
        Expect(Emitted("active main")),
        Expect(Emitted("active rt")),
        Expect(Emitted("active a")),
        Expect(Emitted("left /a")),
        Expect(Emitted("active idle")),
        Expect(Emitted("left /")),
        Expect(Emitted("drained 6")),
    ]);
}
