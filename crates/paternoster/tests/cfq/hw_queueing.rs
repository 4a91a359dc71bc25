//! How it is learned whether the device queues requests itself.

use crate::rig::*;
use paternoster::{Device, SchedulerKind};

/// A task with so many requests at a time, all that it has, on a device that takes 1 ms for each.
fn reader(tasks: u64, depth: u32) -> Served {
    let mut run = Rig::cfq().without_merging().depth(depth).served(1, ms(1));
    run.issues("main", Stream::reads(16).depth(tasks));
    run
}

/// The 51st completion with more than 5 requests about.
#[test]
fn device_queues_that_had_five_at_a_time() {
    for (depth, told) in [
        (31, "51 ms: hardware queueing: true"),
        (5, "51 ms: hardware queueing: true"),
        (4, "51 ms: hardware queueing: false"),
        (2, "51 ms: hardware queueing: false"),
    ] {
        let mut run = reader(16, depth);
        assert_eq!(run.until(ms(100)).told(&["hardware"]), [told], "a depth of {depth}");
    }
}

/// Neither 5 waiting nor 5 in the device are enough to tell.
#[test]
fn little_load_tells_nothing() {
    assert_eq!(reader(5, 31).until(ms(200)).told(&["hardware"]), [""; 0]);
    assert_eq!(reader(6, 1).until(ms(200)).told(&["hardware"]), [""; 0]);
    assert_eq!(
        reader(7, 1).until(ms(200)).told(&["hardware"]),
        ["51 ms: hardware queueing: false"]
    );
}

/// From 60 ms on the device holds more: the completion at 61 is the first that sees it.
#[test]
fn no_is_not_final_and_yes_is() {
    let mut run = reader(16, 2);
    run.until(us(60_500)).rig.run(&[SetDepth(31)]);
    run.until(ms(100)).rig.run(&[SetDepth(1)]);
    let told = ["51 ms: hardware queueing: false", "62 ms: hardware queueing: true"];
    assert_eq!(run.until(ms(300)).told(&["hardware"]), told);
}

/// Where it is known what the device does, load that is too shallow to show it changes nothing.
#[test]
fn device_of_which_it_is_known_is_not_found_out_otherwise() {
    let told = |queues| {
        let device = Device { queues, ..Device::disk(2) };
        let mut run = Rig::on(device, SchedulerKind::Cfq).without_merging().served(1, ms(1));
        run.issues("main", Stream::reads(16).depth(16));
        run.until(ms(100)).told(&["hardware"])
    };
    assert_eq!(told(None), ["51 ms: hardware queueing: false"]);
    assert_eq!(told(Some(true)), [""; 0]);
    assert_eq!(told(Some(false)), [""; 0]);
}
