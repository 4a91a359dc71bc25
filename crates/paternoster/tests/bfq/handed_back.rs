//! Requests that the device hands back unserved, and flushes.

use crate::rig::*;
use crate::{FAR, plain_disk};

/// It goes past all queues.
#[test]
fn request_handed_back_is_next_whatever_waits() {
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
fn request_handed_back_is_charged_once() {
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
        Expect(Told("expired main: TooIdle, charged 16 of 10922")),
    ]);
}

/// To hand it back is to complete it: the queue is waited for, and then it is not empty of requests
/// in flight.
#[test]
fn queue_is_waited_for_as_its_request_is_handed_back() {
    plain_disk(1).run(&[
        Submit("a", read(0..8)),
        Expect(dispatched("a")),
        Requeue("a"),
        Expect(Told("idles main: 8 ms")),
        Expect(dispatched("a")),
        Advance(ms(8)),
        TimerFires,
        Expect(Told("expired main: TooIdle, charged 8 of 10922, fast, in flight 1")),
        Complete("a"),
        // In flight at the end of its turn: twice as much, up to the maximum.
        Advance(ms(100)),
        Submit("b", read(8..16)),
        Expect(dispatched("b")),
        Expect(Told("in service main, budget 16384")),
    ]);
}

/// The task has gone meanwhile: it gets a queue for the time.
#[test]
fn request_of_a_task_that_exited_may_be_handed_back() {
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

/// Nothing here counts it, and what is waited for is not disturbed.
#[test]
fn flush_is_none_of_its_business() {
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
