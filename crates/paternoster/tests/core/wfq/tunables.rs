//! What is learned outlasts settings that do not concern it.

use paternoster::{Device, SchedulerKind};

use crate::rig::*;

/// Four channels of 200 µs, of which the depth is learned.
fn learned() -> (Served, i64) {
    let rig = Rig::on(Device::solid_state(64), SchedulerKind::Wfq).without_merging();
    let mut run = rig.group("/A", 100).task("A", "be/4", "/A").served(4, us(200));
    run.issues("A", Stream::reads(8).stride(16).depth(64));
    run.until(ms(2000));
    let depth = run.rig.number("depth_settled").expect("a number");
    assert_ne!(depth, 16, "another than it began with");
    (run, depth)
}

#[test]
fn learned_depth_outlasts_settings_that_do_not_concern_it() {
    let (mut run, depth) = learned();
    let rig = &mut run.rig;
    for set in [
        [("keep_slots", 30), ("depth_start", 16), ("max_depth", 32)],
        [("keep_slots", 25), ("max_depth", 32), ("cost_write", 100)],
    ] {
        let set: Vec<_> = set.iter().map(|&(name, value)| (name.to_owned(), value)).collect();
        rig.elevator.reset_tunables(rig.now, &set);
        assert_eq!(rig.number("depth_settled"), Some(depth), "{set:?}");
    }
    rig.elevator.set_tunable(rig.now, "depth_start", 16).expect("in its range");
    assert_eq!(rig.number("depth_settled"), Some(depth), "it is what it was");
    rig.elevator.set_tunable(rig.now, "depth_start", 17).expect("in its range");
    assert_eq!(rig.number("depth_settled"), Some(17));
}
