//! The gate: how many requests of the active queue may be in flight, and beside which others.

use crate::rig::*;
use paternoster::{Device, SchedulerKind};

const FAR: u64 = 1_000_000;

/// Alone the queue has dispatched all 20. Once another queue has a request, and the slice has begun
/// with the completion at 1 ms, it may have 8 in flight: at 13 ms 7 are left.
#[test]
fn queue_that_filled_the_device_dispatches_again_with_less_than_its_quantum_in_flight() {
    let rig = Rig::cfq().without_merging().depth(31).task("a", "be/4", ROOT);
    let mut run = rig.task("b", "be/4", ROOT).served(1, ms(1));
    run.issues("a", Stream::reads(16).depth(20));
    run.issues("b", Stream::reads(16).from(FAR).at(us(100))).until(ms(15));
    let times = run.dispatch_times("a");
    assert_eq!(times[..20], [ms(0); 20]);
    assert_eq!(times[20..], [ms(13), ms(14), ms(15)]);
}

/// Until the slice begins with the first completion, it is half of the quantum, and at least 1.
#[test]
fn queue_dispatches_half_its_quantum_before_its_slice_begins_and_then_all_of_it() {
    for (quantum, half) in [(8, 4), (6, 3), (3, 1), (2, 1), (1, 1)] {
        let rig = Rig::cfq().without_merging().set("quantum", quantum).depth(0);
        let mut rig = rig.task("a", "be/4", ROOT).task("b", "be/4", ROOT);
        rig.run(&[Submit("first", read(0..16).by("a"))]);
        for start in 1..40 {
            rig.enter("", read(start * 100..start * 100 + 16).by("a"));
        }
        rig.run(&[Submit("b", read(FAR..FAR + 16).by("b")), SetDepth(32)]);
        assert_eq!(dispatch_all(&mut rig), half, "of {quantum}");
        rig.run(&[Complete("first")]);
        let quantum = usize::try_from(quantum).expect("a few requests");
        assert_eq!(dispatch_all(&mut rig) + half - 1, quantum);
    }
}

/// In its group's turn a queue had 8 requests in flight at most, so that a device that serves 16 at
/// a time stood half idle. Queues of one group leave room for each other in any case.
#[test]
fn queue_fills_the_device_beside_other_groups_where_its_group_pays_for_that() {
    for (charged, other, count) in [(0, "/b", 4), (1, "/b", 32), (1, "/a", 4)] {
        let rig = Rig::on(Device::solid_state(32), SchedulerKind::Cfq).without_merging().depth(0);
        let rig = rig.set("charge_whole_turn", charged).group("/a", 100).group("/b", 100);
        let mut rig = rig.task("a", "be/4", "/a").task("b", "be/4", other);
        for start in 0..40 {
            rig.enter("", read(start * 100..start * 100 + 16).by("a"));
        }
        rig.run(&[Submit("b", read(FAR..FAR + 16).by("b")), SetDepth(32)]);
        assert_eq!(dispatch_all(&mut rig), count, "charged: {charged}, beside {other}");
    }
}

/// Dispatches as much as there is. Returns how many requests that were.
fn dispatch_all(rig: &mut Rig) -> usize {
    std::iter::from_fn(|| rig.dispatch()).count()
}

/// The slice is 0 to 100 ms. With 7 in flight it does not end soon at 44 ms, as 44 + 7 × 8 = 100;
/// at 45 ms it does.
#[test]
fn slice_that_ends_soon_has_half_the_quantum() {
    for (at, in_flight) in [(44, 8), (45, 7), (69, 4), (100, 1)] {
        let rig = Rig::cfq().without_merging().depth(32);
        let mut rig = rig.task("a", "be/4", ROOT).task("b", "be/4", ROOT);
        rig.run(&[
            Submit("first", read(0..16).by("a")),
            Serve(&["first"]),
            Submit("b", read(FAR..FAR + 16).by("b")),
        ]);
        for start in 1..40 {
            rig.enter("", read(start * 100..start * 100 + 16).by("a"));
        }
        rig.now = rig.now + ms(at);
        assert_eq!(dispatch_all(&mut rig), in_flight, "at {at} ms");
    }
}

/// Asynchronous queues do not count as others.
#[test]
fn only_sync_queue_dispatches_all_its_requests() {
    let mut rig = Rig::cfq().without_merging().depth(32).task("a", "be/4", ROOT);
    rig.run(&[Submit("first", read(0..16).by("a")), Submit("w", write(FAR..FAR + 16))]);
    for start in 1..20 {
        rig.enter("", read(start * 100..start * 100 + 16).by("a"));
    }
    assert_eq!(dispatch_all(&mut rig), 20);
}

#[test]
fn idle_class_has_one_request_in_flight() {
    let mut rig = Rig::cfq().without_merging().depth(32).task("a", "idle", ROOT);
    rig.run(&[
        Submit("a", read(0..16).by("a")),
        Submit("a2", read(100..116).by("a")),
        Expect(dispatched("a")),
        Expect(Nothing),
        Expect(Emitted("waiting: GateDepth")),
        Complete("a"),
        Expect(dispatched("a2")),
    ]);
}

#[test]
fn queue_for_which_the_device_idles_dispatches_once_async_requests_have_completed() {
    Rig::cfq().depth(32).task("a", "be/4", ROOT).run(&[
        Submit("w", write(FAR..FAR + 16)),
        Expect(dispatched("w")),
        Submit("a", read(0..16).by("a")),
        Expect(Nothing),
        Expect(Emitted("waiting: GateAsyncDrains")),
        Complete("w"),
        Expect(dispatched("a")),
    ]);
}

#[test]
fn queue_for_which_the_device_does_not_idle_dispatches_beside_async_requests() {
    Rig::cfq().set("slice_idle", 0).depth(32).task("a", "be/4", ROOT).run(&[
        Submit("w", write(FAR..FAR + 16)),
        Expect(dispatched("w")),
        Submit("a", read(0..16).by("a")),
        Expect(dispatched("a")),
    ]);
}

#[test]
fn async_queue_dispatches_once_sync_requests_have_completed() {
    let rig = Rig::cfq().set("slice_idle", 0).set("group_idle", 0).depth(32);
    rig.task("a", "be/4", ROOT).run(&[
        Submit("a", read(0..16).by("a")),
        Expect(dispatched("a")),
        Submit("w", write(FAR..FAR + 16)),
        Expect(Nothing),
        Expect(Emitted("waiting: GateSyncDrains")),
        Complete("a"),
        Expect(dispatched("w")),
    ]);
}

/// The device, with a write in flight, was full until the read was late.
#[test]
fn late_request_passes_the_gate() {
    Rig::cfq().task("a", "be/4", ROOT).run(&[
        Submit("w", write(FAR..FAR + 16)),
        Expect(dispatched("w")),
        Submit("a", read(0..16).by("a")),
        Expect(Nothing),
        Advance(ms(125)),
        SetDepth(2),
        Expect(dispatched("a")),
        Expect(Emitted("overdue a")),
    ]);
}

/// An oddity of Linux: whether a request is late is asked once in a slice.
#[test]
fn request_that_becomes_late_within_its_slice_does_not_pass_the_gate() {
    Rig::cfq().depth(2).task("a", "be/4", ROOT).run(&[
        Submit("w", write(FAR..FAR + 16)),
        Expect(dispatched("w")),
        Submit("a", read(0..16).by("a")),
        Expect(Nothing),
        Advance(ms(125)),
        Expect(Nothing),
        Expect(Emitted("waiting: GateAsyncDrains")),
    ]);
}

/// The number of slices that fit into the time since a late synchronous request completed; at the
/// start that is a second.
#[test]
fn async_requests_in_flight_are_as_many_as_slices_since_a_late_sync_request() {
    for (slice_sync, at_once) in [(100, 10), (300, 3), (1000, 1), (2000, 1)] {
        let mut rig = Rig::cfq().without_merging().set("slice_sync", slice_sync).depth(32);
        for start in 0..40 {
            rig.enter("", write(start * 100..start * 100 + 8));
        }
        assert_eq!(dispatch_all(&mut rig), at_once, "slices of {slice_sync} ms");
    }
}

/// A read that took 39 ms completes at 40; more than 1 ms is late here.
#[test]
fn async_requests_come_back_one_by_one_after_a_late_sync_request() {
    let rig = Rig::cfq().without_merging().set("fifo_expire_sync", 1).depth(31);
    rig.task("a", "be/4", ROOT).run(&[
        Advance(ms(1)),
        Submit("a", read(FAR..FAR + 16).by("a")),
        Expect(dispatched("a")),
        Submit("w1", write(100..108)),
        Submit("w2", write(200..208)),
        Submit("w3", write(300..308)),
        Advance(ms(39)),
        Complete("a"),
        Exit("a"),
        Expect(dispatched("w1")),
        Expect(Nothing),
        Expect(Emitted("waiting: GateDepth")),
        Advance(us(199_999)),
        Expect(Nothing),
        Advance(us(1)),
        Expect(dispatched("w2")),
        Expect(Nothing),
        Advance(ms(100)),
        Expect(dispatched("w3")),
    ]);
}

/// The device is always given all that it can hold.
#[test]
fn late_sync_request_slows_nobody_down_without_low_latency() {
    let mut rig = Rig::cfq().without_merging().set("low_latency", 0).depth(32);
    for start in 0..40 {
        rig.enter("", write(start * 100..start * 100 + 8));
    }
    assert_eq!(dispatch_all(&mut rig), 32);
}
