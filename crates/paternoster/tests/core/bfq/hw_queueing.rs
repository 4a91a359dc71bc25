//! Whether the device queues requests, and with it, whether queues are merged for position.

use crate::bfq::{FAR, fast, plain_disk};
use crate::rig::*;
use paternoster::{Device, Event, QueueEvent, SchedulerKind};

fn solid(depth: u32) -> Rig {
    Rig::on(Device::solid_state(depth), SchedulerKind::Bfq).without_merging().set("low_latency", 0)
}

/// Two requests of different tasks near to each other, and then another of each: are their queues
/// merged? The tasks begin too far apart to be merged for that.
fn are_merged_for_position(rig: Rig) -> bool {
    let mut rig = rig.depth(0).task("a", "be/4", ROOT).task("b", "be/4", ROOT);
    rig.run(&[
        Submit("a", read(0..8).by("a")),
        Advance(ms(300)),
        Submit("b", read(8..16).by("b")),
        Submit("a2", read(16..24).by("a")),
    ]);
    rig.events().iter().any(|event| matches!(event, Event::Queue(QueueEvent::QueuesMerged { .. })))
}

/// Not more than three at once.
#[test]
fn nothing_is_found_out_of_a_device_without_pressure() {
    let mut run = solid(1).task("a", "be/4", ROOT).served(1, ms(1));
    run.issues("a", Stream::reads(8).depth(3)).until(ms(200));
    assert_eq!(run.emitted(&["hardware", "queue merging"]), [""; 0]);
}

/// The verdict falls at the 33rd completion.
#[test]
fn device_that_is_given_one_of_eight_at_a_time_does_not_queue() {
    let mut run = solid(1).task("a", "be/4", ROOT).served(1, ms(1));
    run.issues("a", Stream::reads(8).depth(8)).until(ms(200));
    let emitted = ["33 ms: hardware queueing: false", "33 ms: queue merging: on"];
    assert_eq!(run.emitted(&["hardware", "queue merging"]), emitted);
}

/// Four are more than three.
#[test]
fn device_that_is_given_four_queues() {
    for (depth, emitted) in [(3, "hardware queueing: false"), (4, "hardware queueing: true")] {
        let mut run = solid(depth).task("a", "be/4", ROOT).served(1, ms(1));
        run.issues("a", Stream::reads(8).depth(8)).until(ms(33));
        assert_eq!(run.emitted(&["hardware"]), [format!("33 ms: {emitted}")]);
    }
}

/// No is judged again, every 33 completions; yes is final.
#[test]
fn device_found_not_to_queue_may_be_found_to_do_so_later() {
    let mut run = solid(1).task("a", "be/4", ROOT).served(1, ms(1));
    run.issues("a", Stream::reads(8).depth(8)).until(ms(40));
    run.rig.run(&[SetDepth(4)]);
    run.until(ms(70));
    run.rig.run(&[SetDepth(1)]);
    run.until(ms(300));
    let emitted = [
        "33 ms: hardware queueing: false",
        "33 ms: queue merging: on",
        "66 ms: hardware queueing: true",
        "66 ms: queue merging: off",
    ];
    assert_eq!(run.emitted(&["hardware", "queue merging"]), emitted);
}

/// A queue that has a short think time and fewer than three, with fewer than three in the device,
/// keeps the load down by itself: that says nothing.
#[test]
fn completions_under_a_load_that_the_queue_in_service_keeps_down_say_nothing() {
    let mut run = plain_disk(1).task("a", "be/4", ROOT).task("b", "be/4", ROOT).served(1, ms(1));
    // It has to be idle for a moment to be known as I/O-bound.
    run.issues("a", Stream::reads(8).think(us(10)).count(50));
    run.issues("b", Stream::reads(8).from(FAR).depth(8)).until(ms(100));
    // Its last completes at 50.49 ms, and the device idles for it until 58.49: the other's 33rd is
    // done 33 ms later.
    assert_eq!(run.emitted(&["hardware"]), ["91.49 ms: hardware queueing: false"]);
}

#[test]
fn disk_merges_queues_whether_it_queues_or_not() {
    for queues in [None, Some(false), Some(true)] {
        let rig = Rig::on(Device::disk(1).with_native_queueing(queues), SchedulerKind::Bfq);
        let rig = rig.without_merging();
        assert!(are_merged_for_position(rig), "{queues:?}");
    }
}

/// It is taken to queue until it is known not to.
#[test]
fn device_that_does_not_seek_and_queues_merges_no_queues_for_position() {
    for (queues, merges) in [(None, false), (Some(true), false), (Some(false), true)] {
        let rig = Rig::on(Device::solid_state(1).with_native_queueing(queues), SchedulerKind::Bfq);
        let rig = rig.without_merging();
        assert_eq!(are_merged_for_position(rig), merges, "{queues:?}");
    }
}

#[test]
fn device_found_not_to_queue_begins_to_merge_queues() {
    let mut run = solid(1).task("x", "be/4", ROOT).served(1, ms(1));
    run.issues("x", Stream::reads(8).depth(8).count(60)).until(ms(300));
    assert_eq!(run.emitted(&["queue merging"]), ["33 ms: queue merging: on"]);
    assert!(are_merged_for_position(run.rig));
}

#[test]
fn device_found_to_queue_does_not_merge_queues() {
    let mut run = solid(8).task("x", "be/4", ROOT).served(1, ms(1));
    run.issues("x", Stream::reads(8).depth(8).count(60)).until(ms(300));
    assert_eq!(run.emitted(&["hardware", "queue merging"]), ["33 ms: hardware queueing: true"]);
    assert!(!are_merged_for_position(run.rig));
}

/// What is said of a device is not found out.
#[test]
fn device_whose_answer_is_given_is_not_watched() {
    let mut run = fast(1).task("a", "be/4", ROOT).served(1, ms(1));
    run.issues("a", Stream::reads(8).depth(8)).until(ms(100));
    assert_eq!(run.emitted(&["hardware", "queue merging"]), [""; 0]);
}
