//! How many requests of the queue whose turn it is may be in the device, and beside which others.

use crate::rig::*;

const FAR: u64 = 1_000_000;

/// Alone it has sent all 20. Once another waits, and its slice has begun with the completion at
/// 1 ms, it may have 8 in the device: at 13 ms 7 are left.
#[test]
fn queue_that_filled_the_device_sends_again_when_it_has_less_than_its_quantum_there() {
    let rig = Rig::cfq().without_merging().depth(31).task("a", "be/4", ROOT);
    let mut run = rig.task("b", "be/4", ROOT).served(1, ms(1));
    run.issues("a", Stream::reads(16).depth(20));
    run.issues("b", Stream::reads(16).from(FAR).at(us(100))).until(ms(15));
    let times = run.dispatch_times("a");
    assert_eq!(times[..20], [ms(0); 20]);
    assert_eq!(times[20..], [ms(13), ms(14), ms(15)]);
}

/// Half of the quantum, at least 1, until its slice begins with the first completion.
#[test]
fn queue_sends_half_its_quantum_before_its_slice_begins_and_then_all_of_it() {
    for (quantum, half) in [(8, 4), (6, 3), (3, 1), (2, 1), (1, 1)] {
        let rig = Rig::cfq().without_merging().set("quantum", quantum).depth(0);
        let mut rig = rig.task("a", "be/4", ROOT).task("b", "be/4", ROOT);
        rig.run(&[Submit("first", read(0..16).by("a"))]);
        for start in 1..40 {
            rig.enter("", read(start * 100..start * 100 + 16).by("a"));
        }
        rig.run(&[Submit("b", read(FAR..FAR + 16).by("b")), SetDepth(32)]);
        assert_eq!(sent(&mut rig), half, "of {quantum}");
        rig.run(&[Complete("first")]);
        let quantum = usize::try_from(quantum).expect("a few requests");
        assert_eq!(sent(&mut rig) + half - 1, quantum);
    }
}

/// Asks until nothing is given: how many were.
fn sent(rig: &mut Rig) -> usize {
    std::iter::from_fn(|| rig.dispatch()).count()
}

/// The slice is 0 to 100 ms. With 7 in the device it ends soon from 44 ms on: 44 + 7 × 8 = 100, and
/// at 45 more than that.
#[test]
fn slice_that_ends_soon_has_half_the_quantum() {
    for (at, in_device) in [(44, 8), (45, 7), (69, 4), (100, 1)] {
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
        let sent = sent(&mut rig);
        assert_eq!(sent, in_device, "at {at} ms");
    }
}

/// Others that only write back do not count.
#[test]
fn only_sync_queue_sends_all_it_has() {
    let mut rig = Rig::cfq().without_merging().depth(32).task("a", "be/4", ROOT);
    rig.run(&[Submit("first", read(0..16).by("a")), Submit("w", write(FAR..FAR + 16))]);
    for start in 1..20 {
        rig.enter("", read(start * 100..start * 100 + 16).by("a"));
    }
    assert_eq!(sent(&mut rig), 20);
}

#[test]
fn idle_class_has_one_request_in_the_device() {
    let mut rig = Rig::cfq().without_merging().depth(32).task("a", "idle", ROOT);
    rig.run(&[
        Submit("a", read(0..16).by("a")),
        Submit("a2", read(100..116).by("a")),
        Expect(dispatched("a")),
        Expect(Nothing),
        Expect(Told("waiting: GateDepth")),
        Complete("a"),
        Expect(dispatched("a2")),
    ]);
}

#[test]
fn queue_that_is_waited_for_sends_when_async_requests_have_left_the_device() {
    Rig::cfq().depth(32).task("a", "be/4", ROOT).run(&[
        Submit("w", write(FAR..FAR + 16)),
        Expect(dispatched("w")),
        Submit("a", read(0..16).by("a")),
        Expect(Nothing),
        Expect(Told("waiting: GateAsyncDrains")),
        Complete("w"),
        Expect(dispatched("a")),
    ]);
}

#[test]
fn queue_that_is_not_waited_for_sends_beside_async_requests() {
    Rig::cfq().set("slice_idle", 0).depth(32).task("a", "be/4", ROOT).run(&[
        Submit("w", write(FAR..FAR + 16)),
        Expect(dispatched("w")),
        Submit("a", read(0..16).by("a")),
        Expect(dispatched("a")),
    ]);
}

#[test]
fn async_queue_sends_when_sync_requests_have_left_the_device() {
    let rig = Rig::cfq().set("slice_idle", 0).set("group_idle", 0).depth(32);
    rig.task("a", "be/4", ROOT).run(&[
        Submit("a", read(0..16).by("a")),
        Expect(dispatched("a")),
        Submit("w", write(FAR..FAR + 16)),
        Expect(Nothing),
        Expect(Told("waiting: GateSyncDrains")),
        Complete("a"),
        Expect(dispatched("w")),
    ]);
}

/// The device, with a write in it, was full until the read was late.
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
        Expect(Told("overdue a")),
    ]);
}

/// An oddity of Linux: whether it is late is asked once a turn.
#[test]
fn request_that_becomes_late_within_its_turn_does_not_pass_the_gate() {
    Rig::cfq().depth(2).task("a", "be/4", ROOT).run(&[
        Submit("w", write(FAR..FAR + 16)),
        Expect(dispatched("w")),
        Submit("a", read(0..16).by("a")),
        Expect(Nothing),
        Advance(ms(125)),
        Expect(Nothing),
        Expect(Told("waiting: GateAsyncDrains")),
    ]);
}

/// So many slices of 100 ms have passed since a late sync request completed; at the start a second.
#[test]
fn async_requests_in_the_device_are_as_many_as_slices_since_a_late_sync_request() {
    for (slice_sync, sent_at_once) in [(100, 10), (300, 3), (1000, 1), (2000, 1)] {
        let mut rig = Rig::cfq().without_merging().set("slice_sync", slice_sync).depth(32);
        for start in 0..40 {
            rig.enter("", write(start * 100..start * 100 + 8));
        }
        assert_eq!(sent(&mut rig), sent_at_once, "slices of {slice_sync} ms");
    }
}

/// A read that took 39 ms, where more than 1 is late, completes at 40.
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
        Expect(Told("waiting: GateDepth")),
        Advance(us(199_999)),
        Expect(Nothing),
        Advance(us(1)),
        Expect(dispatched("w2")),
        Expect(Nothing),
        Advance(ms(100)),
        Expect(dispatched("w3")),
    ]);
}

/// Asked of a device that is always given all it can hold.
#[test]
fn late_sync_request_slows_nobody_down_without_low_latency() {
    let mut rig = Rig::cfq().without_merging().set("low_latency", 0).depth(32);
    for start in 0..40 {
        rig.enter("", write(start * 100..start * 100 + 8));
    }
    assert_eq!(sent(&mut rig), 32);
}
