//! Giving up what waits: another scheduler comes, or nobody wants it any more.

use crate::rig::*;
use crate::{FAR, plain_disk};
use paternoster::SchedulerKind;

/// Queues of two groups and three classes, one of them in service.
fn busy() -> Rig {
    let rig = plain_disk(0).group("/a", 500).task("idle", "idle", ROOT);
    let mut rig = rig.task("rt", "rt/4", ROOT).task("a", "be/4", "/a");
    rig.run(&[
        Submit("i", read(0..16).by("idle")),
        Submit("a", read(FAR..FAR + 16).by("a")),
        Submit("a2", read(100..116).by("a")),
        Submit("w", write(2 * FAR..2 * FAR + 16).by("a")),
        Submit("rt", read(3 * FAR..3 * FAR + 16).by("rt")),
        SetDepth(1),
        Expect(dispatched("rt")),
        Submit("rt2", read(4 * FAR..4 * FAR + 16).by("rt")),
    ]);
    rig
}

/// The next scheduler has them in order of arrival; what is in the device completes as ever.
#[test]
fn next_scheduler_gets_what_waits_in_order_of_arrival() {
    busy().run(&[
        SwitchTo(SchedulerKind::None),
        Expect(Told("drained 5")),
        Expect(Nothing),
        Complete("rt"),
        Serve(&["i", "a", "a2", "w", "rt2"]),
        Expect(Nothing),
    ]);
}

#[test]
fn bfq_that_comes_back_knows_nothing_of_before() {
    busy().run(&[
        Complete("rt"),
        SwitchTo(SchedulerKind::None),
        SwitchTo(SchedulerKind::Bfq),
        Expect(Number("queues", 4)),
        Expect(Number("busy_queues", 4)),
        Expect(Number("in_driver", 0)),
        Expect(Number("queued", 5)),
    ]);
}

/// A completion of what another scheduler sent is none of its own.
#[test]
fn bfq_does_not_hear_of_what_was_sent_before_it_came() {
    Rig::none().without_merging().task("a", "be/4", ROOT).depth(2).run(&[
        Submit("before", read(0..16).by("a")),
        Expect(dispatched("before")),
        Submit("a", read(100..116).by("a")),
        SwitchTo(SchedulerKind::Bfq),
        Expect(dispatched("a")),
        Expect(Number("in_driver", 1)),
        Complete("before"),
        Expect(Untold("idles")),
        Expect(Number("in_driver", 1)),
        Complete("a"),
        Expect(Told("idles a: 20 ms")),
    ]);
}

#[test]
fn what_waits_is_given_up_in_order_of_arrival() {
    busy().run(&[
        Cancel(&["i", "a", "a2", "w", "rt2"]),
        Expect(Number("busy_queues", 0)),
        Expect(Number("queued", 0)),
        Expect(Number("in_driver", 1)),
        // Work goes on.
        Submit("new", read(200..216).by("a")),
        Expect(Nothing),
        Complete("rt"),
        Expect(dispatched("new")),
    ]);
}

/// With the turn the timer ends, too.
#[test]
fn nobody_is_waited_for_when_all_is_given_up() {
    plain_disk(1).run(&[
        Submit("a", read(0..8)),
        Serve(&["a"]),
        Expect(Timeout(Some(ms(8)))),
        Cancel(&[]),
        Expect(Timeout(None)),
    ]);
}
