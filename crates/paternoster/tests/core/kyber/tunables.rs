//! The targets.

use paternoster::SchedulerKind;

use crate::rig::*;

fn value(rig: &Rig, name: &str) -> i64 {
    rig.elevator.tunable(name).expect("Kyber has it")
}

#[test]
fn targets_are_linuxs_until_they_are_set() {
    let mut rig = Rig::kyber();
    assert_eq!(value(&rig, "read_lat_nsec"), 2_000_000);
    assert_eq!(value(&rig, "write_lat_nsec"), 10_000_000);
    rig.run(&[Set("read_lat_nsec", 0), Set("write_lat_nsec", i64::MAX)]);
    assert_eq!([value(&rig, "read_lat_nsec"), value(&rig, "write_lat_nsec")], [0, i64::MAX]);
    rig.run(&[Set("read_lat_nsec", -1)]);
    assert_eq!(value(&rig, "read_lat_nsec"), 0);
}

#[test]
fn what_is_set_holds_again_when_kyber_comes_back() {
    let mut rig = Rig::kyber().set("read_lat_nsec", 7);
    rig.run(&[SwitchTo(SchedulerKind::None), SwitchTo(SchedulerKind::Kyber)]);
    assert_eq!(value(&rig, "read_lat_nsec"), 7);
}

#[test]
fn there_are_no_other_tunables() {
    let rig = Rig::kyber();
    assert!(rig.elevator.tunable("async_depth").is_err());
    assert_eq!(SchedulerKind::Kyber.tunables().len(), 2);
}
