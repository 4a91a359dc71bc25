//! Requests that are requeued because the device could not take them, and flushes.

use crate::bfq::{FAR, plain_disk};
use crate::rig::*;

/// It bypasses the queues.
#[test]
fn requeued_request_is_next_whatever_waits() {
    plain_disk(1).task("rt", "rt/0", ROOT).run(&[
        Submit("a", read(FAR..FAR + 16)),
        Submit("a2", read(FAR + 16..FAR + 32)),
        Expect(dispatched("a")),
        Submit("rt", read(0..16).by("rt")),
        Expect(Number("in_driver", 1)),
        Requeue("a"),
        Expect(Number("in_driver", 0)),
        Expect(dispatched("a")),
        Expect(Number("in_driver", 1)),
        Complete("a"),
        Expect(dispatched("rt")),
    ]);
}

/// Two of 8 sectors, one of them twice.
#[test]
fn requeued_request_is_charged_once() {
    plain_disk(1).run(&[
        Submit("a", read(0..8)),
        Submit("b", read(8..16)),
        Expect(dispatched("a")),
        Requeue("a"),
        Expect(dispatched("a")),
        Complete("a"),
        Serve(&["b"]),
        Advance(ms(8)),
        TimerFires,
        Expect(Emitted("expired main: TooIdle, charged 16 of 10922")),
    ]);
}

/// To requeue it is to complete it, so the device idles for the queue. Dispatched again, it is in
/// flight while the timer runs.
#[test]
fn queue_is_idled_for_as_its_request_is_requeued() {
    plain_disk(1).run(&[
        Submit("a", read(0..8)),
        Expect(dispatched("a")),
        Requeue("a"),
        Expect(Emitted("idles main: 8 ms")),
        Expect(dispatched("a")),
        Advance(ms(8)),
        TimerFires,
        Expect(Emitted("expired main: TooIdle, charged 8 of 10922, fast, in flight 1")),
        Complete("a"),
        // In flight at the end of its service: twice as much, up to the maximum.
        Advance(ms(100)),
        Submit("b", read(8..16)),
        Expect(dispatched("b")),
        Expect(Emitted("in service main, budget 16384")),
    ]);
}

/// The task has exited meanwhile. It gets a queue until the request completes.
#[test]
fn request_of_a_task_that_exited_may_be_requeued() {
    plain_disk(1).task("a", "be/4", ROOT).run(&[
        Submit("a", read(0..8).by("a")),
        Expect(dispatched("a")),
        Exit("a"),
        Requeue("a"),
        Expect(dispatched("a")),
        Expect(Number("in_driver", 1)),
        Complete("a"),
        Expect(Number("in_driver", 0)),
        Expect(Number("busy_queues", 0)),
        Expect(Number("queues", 0)),
    ]);
}

/// BFQ does not count it, and the idle timer runs on.
#[test]
fn flush_bypasses_the_scheduler_and_leaves_its_idling_alone() {
    plain_disk(2).run(&[
        Submit("a", read(0..8)),
        Serve(&["a"]),
        Expect(Timeout(Some(ms(8)))),
        Submit("f", flush()),
        Expect(dispatched("f")),
        Expect(Number("in_driver", 0)),
        Expect(Number("queued", 0)),
        Expect(Number("queues", 1)),
        Complete("f"),
        Expect(Timeout(Some(ms(8)))),
    ]);
}
