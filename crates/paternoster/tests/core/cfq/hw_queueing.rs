//! How CFQ learns whether the device queues requests itself.

use crate::rig::*;
use paternoster::{Device, SchedulerKind};

/// A task with so many requests at a time, on a device that takes 1 ms for each.
fn reader(tasks: u64, depth: u32) -> Served {
    let mut run = Rig::cfq().without_merging().depth(depth).served(1, ms(1));
    run.issues("main", Stream::reads(16).depth(tasks));
    run
}

/// The 51st completion with more than 5 requests decides.
#[test]
fn device_queues_that_had_five_at_a_time() {
    for (depth, emitted) in [
        (31, "51 ms: hardware queueing: true"),
        (5, "51 ms: hardware queueing: true"),
        (4, "51 ms: hardware queueing: false"),
        (2, "51 ms: hardware queueing: false"),
    ] {
        let mut run = reader(16, depth);
        assert_eq!(run.until(ms(100)).emitted(&["hardware"]), [emitted], "a depth of {depth}");
    }
}

/// Neither 5 waiting nor 5 in the device are enough to decide.
#[test]
fn little_load_shows_nothing() {
    assert_eq!(reader(5, 31).until(ms(200)).emitted(&["hardware"]), [""; 0]);
    assert_eq!(reader(6, 1).until(ms(200)).emitted(&["hardware"]), [""; 0]);
    assert_eq!(
        reader(7, 1).until(ms(200)).emitted(&["hardware"]),
        ["51 ms: hardware queueing: false"]
    );
}

/// From 60 ms on the device may hold more; the next completions show that it does.
#[test]
fn no_is_not_final_and_yes_is() {
    let mut run = reader(16, 2);
    run.until(us(60_500)).rig.run(&[SetDepth(31)]);
    run.until(ms(100)).rig.run(&[SetDepth(1)]);
    let emitted = ["51 ms: hardware queueing: false", "62 ms: hardware queueing: true"];
    assert_eq!(run.until(ms(300)).emitted(&["hardware"]), emitted);
}

/// If it is known what the device does, a load that would show otherwise changes nothing.
#[test]
fn known_answer_is_never_judged() {
    let emitted = |queues| {
        let device = Device::disk(2).with_native_queueing(queues);
        let mut run = Rig::on(device, SchedulerKind::Cfq).without_merging().served(1, ms(1));
        run.issues("main", Stream::reads(16).depth(16));
        run.until(ms(100)).emitted(&["hardware"])
    };
    assert_eq!(emitted(None), ["51 ms: hardware queueing: false"]);
    assert_eq!(emitted(Some(true)), [""; 0]);
    assert_eq!(emitted(Some(false)), [""; 0]);
}
