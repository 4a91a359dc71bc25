//! What the elevator does for every scheduler: flushes, requeues, admission, switching, giving
//! up, I/O contexts and groups that come, change and go.

use crate::rig::*;
use paternoster::{BioFlags, NoMerges, SchedulerKind};

fn every_scheduler() -> impl Iterator<Item = Rig> {
    SchedulerKind::ALL.into_iter().map(Rig::new)
}

#[test]
fn flushes_bypass_the_scheduler_in_order_of_arrival() {
    for mut rig in every_scheduler() {
        rig.run(&[
            Submit("read", read(0..8)),
            Submit("flush", flush()),
            Submit("flush 2", flush()),
            Expect(dispatched("flush")),
            // The device is full, for a flush too.
            Expect(Nothing),
            Complete("flush"),
            Expect(Done(&["flush"])),
            Serve(&["flush 2", "read"]),
            Expect(Nothing),
        ]);
    }
}

#[test]
fn writes_with_fua_or_preflush_bypass_the_scheduler_and_never_merge() {
    // wfq takes those with FUA alone.
    for mut rig in
        SchedulerKind::ALL.into_iter().filter(|&kind| kind != SchedulerKind::Wfq).map(Rig::new)
    {
        rig.run(&[
            Submit("write", write(0..8)),
            Submit("fua", write(8..16).flag(BioFlags::FUA)),
            Submit("preflush", write(16..24).flag(BioFlags::PREFLUSH)),
            BackMerge("plain", write(8..16), "write"),
            Serve(&["fua", "preflush", "write"]),
            Expect(Done(&["write", "plain"])),
        ]);
    }
}

#[test]
fn requeued_request_is_served_first_and_merges_no_more() {
    for mut rig in every_scheduler() {
        rig.run(&[
            Submit("a", read(100..108)),
            BackMerge("a2", read(108..116), "a"),
            Expect(dispatched("a")),
            Submit("b", read(500..508)),
            Requeue("a"),
            Expect(Waiting(2)),
            Submit("behind", read(116..124)),
            Submit("before", read(92..100)),
            Expect(dispatched("a")),
            Complete("a"),
            Expect(Done(&["a", "a2"])),
            Expect(Waiting(3)),
        ]);
        let mut rest = rig.serve_all();
        rest.sort();
        assert_eq!(rest, ["b", "before", "behind"]);
    }
}

#[test]
fn request_requeued_twice_completes_once() {
    for mut rig in every_scheduler() {
        rig.run(&[
            Submit("a", read(100..108)),
            Expect(dispatched("a")),
            Requeue("a"),
            Expect(dispatched("a")),
            Requeue("a"),
            Serve(&["a"]),
            Expect(Done(&["a"])),
            Expect(Nothing),
            Expect(Waiting(0)),
        ]);
    }
}

/// A flush that comes while a request waits on the bypass list stays behind it.
#[test]
fn requeued_flush_is_offered_before_other_flushes() {
    for mut rig in every_scheduler() {
        rig.run(&[
            Submit("flush", flush()),
            Expect(dispatched("flush")),
            Submit("flush 2", flush()),
            Requeue("flush"),
            Serve(&["flush", "flush 2"]),
        ]);
    }
}

/// The effect of `nr_requests`: 16 may exist; those turned away are called when an eighth, 2, is
/// free again. A merge needs no request, and a flush is never held back.
#[test]
fn nr_requests_bounds_what_exists_and_calls_waiters_in_batches() {
    for mut rig in every_scheduler() {
        rig.run(&[SetNrRequests(Some(16))]);
        for i in 0..16_u64 {
            rig.enter(&format!("r{i}"), read(1000 * i..1000 * i + 8));
        }
        rig.run(&[
            TurnAway("late", read(90_000..90_008)),
            BackMerge("merged", read(15_008..15_016), "r15"),
            Submit("flush", flush()),
            Expect(dispatched("flush")),
            TurnAway("later", read(91_000..91_008)),
            Complete("flush"),
            Expect(WaitersCalled(false)),
            Serve(&["r0"]),
            Expect(WaitersCalled(true)),
            Retry("late", read(90_000..90_008)),
            Serve(&["r1"]),
            Expect(WaitersCalled(false)),
        ]);
    }
}

/// While some wait to be called, newcomers took each place that became free, and each one turned
/// away began the count towards the next call anew: those who waited were never called.
#[test]
fn newcomers_do_not_put_off_the_call_of_those_who_wait() {
    let mut rig = Rig::none().without_merging();
    rig.run(&[SetNrRequests(Some(16))]);
    for i in 0..16_u64 {
        rig.enter(&format!("r{i}"), read(1000 * i..1000 * i + 8));
    }
    rig.run(&[
        TurnAway("late", read(90_000..90_008)),
        Serve(&["r0"]),
        Expect(WaitersCalled(false)),
        Submit("newcomer", read(91_000..91_008)),
        TurnAway("other newcomer", read(92_000..92_008)),
        Serve(&["r1"]),
        // Two requests were freed since the first one was turned away.
        Expect(WaitersCalled(true)),
    ]);
}

#[test]
fn last_request_to_go_calls_those_who_wait() {
    Rig::none().run(&[
        SetNrRequests(Some(1)),
        Submit("a", read(0..8)),
        TurnAway("b", read(100..108)),
        Serve(&["a"]),
        Expect(WaitersCalled(true)),
        Retry("b", read(100..108)),
        Serve(&["b"]),
        Expect(WaitersCalled(false)),
    ]);
}

#[test]
fn raised_limit_calls_those_who_wait_at_the_next_completion() {
    Rig::none().without_merging().run(&[
        SetNrRequests(Some(2)),
        Submit("a", read(0..8)),
        Submit("b", read(100..108)),
        TurnAway("c", read(200..208)),
        SetNrRequests(None),
        Serve(&["a"]),
        Expect(WaitersCalled(true)),
        Retry("c", read(200..208)),
    ]);
}

/// What was merged stays merged, what is in the device completes, and what waits on the
/// bypass list stays there.
#[test]
fn switching_keeps_every_request_and_the_order_of_arrival() {
    for from in SchedulerKind::ALL {
        for to in SchedulerKind::ALL {
            let mut rig = Rig::new(from);
            rig.run(&[
                Submit("running", read(5000..5008)),
                Expect(dispatched("running")),
                Submit("high", read(9000..9008)),
                BackMerge("high 2", read(9008..9016), "high"),
                Advance(ms(1)),
                Submit("low", read(100..108)),
                Submit("flush", flush()),
                Expect(Waiting(3)),
                SwitchTo(to),
                Expect(Waiting(3)),
                Expect(Nothing),
                BackMerge("low 2", read(108..116), "low"),
                Complete("running"),
                Expect(Done(&["running"])),
                Serve(&["flush"]),
            ]);
            // In order of arrival, but for those that go upward from sector 0 on a disk.
            let order = match to {
                SchedulerKind::Cfq | SchedulerKind::Bfq | SchedulerKind::Wfq => ["low", "high"],
                _ => ["high", "low"],
            };
            assert_eq!(rig.serve_all(), order, "from {from} to {to}");
            assert_eq!(rig.elevator.queued() + rig.elevator.in_flight(), 0, "from {from} to {to}");
            let switches = rig.elevator.stats().switches();
            // The flush bypasses schedulers.
            assert_eq!((switches.switches, switches.moved), (1, 2), "from {from} to {to}");
        }
    }
}

/// mq-deadline's sort list is emptied in sector order, CFQ's queues one by one: `none` shows in
/// which order it is given what they held.
#[test]
fn switching_sorts_what_was_held_by_arrival() {
    for from in SchedulerKind::ALL {
        let mut rig = Rig::new(from).without_merging().task("other", "be/4", ROOT);
        rig.run(&[
            Submit("1", read(700..708)),
            Submit("2", write(100..108)),
            Submit("3", read(300..308).by("other")),
            Submit("4", read(200..208)),
            Submit("5", write(50..58).by("other")),
            SwitchTo(SchedulerKind::None),
            Serve(&["1", "2", "3", "4", "5"]),
        ]);
    }
}

#[test]
fn requeue_of_a_request_from_before_a_switch_bypasses_the_new_scheduler() {
    for from in SchedulerKind::ALL {
        for to in SchedulerKind::ALL {
            Rig::new(from).run(&[
                Submit("a", read(0..8)),
                Expect(dispatched("a")),
                Submit("b", read(100..108)),
                SwitchTo(to),
                Requeue("a"),
                SwitchTo(from),
                Serve(&["a", "b"]),
                Expect(Nothing),
            ]);
        }
    }
}

/// Nothing was refused, so nothing is remembered as refused; the tables of merging follow.
#[test]
fn merging_goes_on_across_a_switch() {
    for from in SchedulerKind::ALL {
        for to in SchedulerKind::ALL {
            Rig::new(from).run(&[
                Submit("a", read(100..108)),
                Submit("far", read(9000..9008)),
                SwitchTo(to),
                BackMerge("b", read(108..116), "a"),
                SwitchTo(from),
                BackMerge("c", read(116..124), "a"),
                FrontMerge("d", read(92..100), "a"),
                Expect(sectors("a", 92..124)),
            ]);
        }
    }
}

/// A context that has exited while it had requests, of which the new scheduler makes a queue,
/// kept that queue for ever: nobody notified the new scheduler of the exit.
#[test]
fn switching_notifies_the_new_scheduler_of_contexts_that_have_exited() {
    Rig::none().without_merging().task("task", "be/4", ROOT).run(&[
        Submit("a", read(0..8).by("task")),
        Submit("b", read(100..108).by("task")),
        Exit("task"),
        SwitchTo(SchedulerKind::Cfq),
        Expect(Number("queues", 1)),
        Serve(&["a", "b"]),
        Submit("c", read(200..208)),
        Serve(&["c"]),
        Exit(MAIN),
        Expect(Number("queues", 0)),
    ]);
}

#[test]
fn all_that_waits_is_given_up_in_order_of_arrival() {
    for mut rig in every_scheduler() {
        rig.run(&[
            Submit("running", read(5000..5008)),
            Expect(dispatched("running")),
            Submit("high", read(9000..9008)),
            BackMerge("high 2", read(9008..9016), "high"),
            Submit("flush", flush()),
            Submit("low", write(100..108)),
            Cancel(&["high", "high 2", "flush", "low"]),
            Expect(Waiting(0)),
            Expect(Nothing),
            Complete("running"),
            Expect(Done(&["running"])),
            Submit("next", read(0..8)),
            Serve(&["next"]),
        ]);
    }
}

#[test]
fn requeued_request_is_given_up_too() {
    for mut rig in every_scheduler() {
        rig.run(&[
            Submit("a", read(0..8)),
            Submit("b", read(100..108)),
            Expect(dispatched("a")),
            Requeue("a"),
            Cancel(&["a", "b"]),
            Exit(MAIN),
        ]);
    }
}

/// mq-deadline counted what it gave up as completed, though it was never dispatched: the number
/// in the driver fell below 0.
#[test]
fn what_was_given_up_is_not_in_the_driver() {
    Rig::mq_deadline().without_merging().depth(2).run(&[
        Submit("a", read(0..8)),
        Submit("b", read(100..108)),
        Submit("c", read(200..208)),
        Expect(dispatched("a")),
        Expect(Number("queued_be", 3)),
        Expect(Number("owned_by_driver_be", 1)),
        Cancel(&["b", "c"]),
        Expect(Number("queued_be", 1)),
        Expect(Number("owned_by_driver_be", 1)),
        Requeue("a"),
        Expect(Number("owned_by_driver_be", 0)),
        Cancel(&["a"]),
        Expect(Number("queued_be", 0)),
        Expect(Number("owned_by_driver_be", 0)),
    ]);
}

#[test]
fn requests_outlive_the_exit_of_their_context() {
    for kind in SchedulerKind::ALL {
        let rig = Rig::new(kind).without_merging().depth(2);
        let mut rig = rig.group("/a", 100).task("task", "be/4", "/a");
        rig.run(&[
            Submit("a", read(0..8).by("task")),
            Expect(dispatched("a")),
            // Kyber would put a requeued request behind those that are ready; these are not.
            Submit("b", read(100..108).by("task")),
            Submit("c", read(200..208).by("task")),
            Exit("task"),
            Requeue("a"),
            Expect(dispatched("a")),
            Complete("a"),
            Serve(&["b", "c"]),
            // Neither a context nor a request is left in it.
            RemoveGroup("/a"),
        ]);
    }
}

#[test]
fn priority_changes_at_the_next_request() {
    Rig::mq_deadline().without_merging().task("task", "be/4", ROOT).run(&[
        Submit("as be", read(0..8).by("task")),
        SetPriority("task", "rt/0"),
        Submit("as rt", read(1000..1008).by("task")),
        Submit("be", read(2000..2008)),
        Serve(&["as rt", "as be", "be"]),
    ]);
}

#[test]
fn group_changes_at_the_next_request() {
    for kind in SchedulerKind::ALL {
        let mut rig = Rig::new(kind).without_merging().group("/a", 100).group("/b", 100);
        rig = rig.task("task", "be/4", "/a");
        rig.run(&[
            Submit("in a", read(0..8).by("task")),
            Move("task", "/b"),
            Submit("in b", read(100..108).by("task")),
        ]);
        assert_eq!((rig.stats("/a").queued, rig.stats("/b").queued), (1, 1), "{kind}");
        let mut served = rig.serve_all();
        served.sort();
        assert_eq!(served, ["in a", "in b"]);
        rig.run(&[RemoveGroup("/a"), Exit("task"), RemoveGroup("/b")]);
    }
}

#[test]
fn bios_of_a_moved_context_do_not_merge_into_its_old_group() {
    // CFQ compares queues instead: see its own tests.
    for kind in SchedulerKind::ALL.into_iter().filter(|&kind| kind != SchedulerKind::Cfq) {
        Rig::new(kind).group("/a", 100).task("task", "be/4", "/a").run(&[
            Submit("a", read(0..8).by("task")),
            Move("task", ROOT),
            Submit("b", read(8..16).by("task")),
            Move("task", "/a"),
            Expect(apart("a", "b")),
        ]);
    }
}

#[test]
#[should_panic(expected = "a group is removed when nothing is in it")]
fn group_with_requests_is_not_removed() {
    Rig::none().group("/a", 100).task("task", "be/4", "/a").run(&[
        Submit("a", read(0..8).by("task")),
        Move("task", ROOT),
        RemoveGroup("/a"),
    ]);
}

#[test]
#[should_panic(expected = "time does not go back")]
fn time_does_not_go_back() {
    let mut rig = Rig::none();
    rig.run(&[Advance(ms(1)), SetNoMerges(NoMerges::Off), Submit("a", read(0..8))]);
    rig.now = paternoster::Instant::START;
    rig.run(&[Submit("b", read(100..108))]);
}

#[test]
fn depth_of_the_device_is_never_exceeded() {
    for mut rig in every_scheduler() {
        rig.run(&[
            SetNoMerges(NoMerges::All),
            SetDepth(2),
            Submit("a", read(0..8)),
            Submit("b", read(8..16)),
            Submit("c", read(16..24)),
            Submit("d", read(24..32)),
            Expect(dispatched("a")),
            Expect(dispatched("b")),
            Expect(Nothing),
            SetDepth(1),
            Complete("a"),
            Expect(Nothing),
            Complete("b"),
            Expect(dispatched("c")),
            Expect(Nothing),
            SetDepth(2),
            Expect(dispatched("d")),
        ]);
    }
}

#[test]
fn scheduler_without_tunables_says_so() {
    let mut rig = Rig::none();
    let error = rig.elevator.set_tunable(rig.now, "quantum", 8).expect_err("it has none");
    assert_eq!(error.to_string(), "none has no tunable \"quantum\"; nothing can be tuned there");
}
