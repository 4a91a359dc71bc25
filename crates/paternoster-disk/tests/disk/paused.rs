//! A volume whose server is away has no place in the device, which others then have.

use paternoster::SchedulerKind;
use paternoster_disk::VolumeId;
use rustix::io::Errno;

use crate::support::{Rig, any_byte, read, write};

/// A disk that takes four transfers at once, and its second volume.
fn two_volumes() -> (Rig, VolumeId) {
    let mut rig = Rig::new(SchedulerKind::None, 4);
    let other = rig.add_volume(&any_byte());
    (rig, other)
}

fn set_paused(rig: &mut Rig, is_paused: bool) {
    let volume = rig.volume;
    rig.engine.set_paused(volume, is_paused);
    rig.settle();
}

#[test]
fn requests_of_others_take_the_places_of_a_paused_volume() {
    let (mut rig, other) = two_volumes();
    (0..6).for_each(|tag| rig.submit(0, tag, write(tag << 20, 512, 1)));
    (10..16).for_each(|tag| rig.submit_to(other, 1, tag, read(tag << 20, 512)));
    assert_eq!(rig.in_device.len(), 4, "all of the first volume");
    set_paused(&mut rig, true);
    // The two that were queued wait, and four of the other volume begin.
    assert_eq!(rig.in_device.len(), 8);
    assert_eq!(rig.engine.in_device().count(), 8, "its back end has them still");
    (0..6).for_each(|_| rig.finish_nth(4, Ok(512)));
    let others: Vec<_> = (10..16).map(|tag| (tag, Ok(()))).collect();
    assert_eq!(rig.results(), others);
    rig.submit(0, 6, write(6 << 20, 512, 1));
    assert_eq!(rig.in_device.len(), 4, "nothing of it begins");
    // What its back end ends meanwhile is answered.
    rig.finish_next();
    rig.finish_nth(0, Err(Errno::IO));
    assert_eq!(rig.results(), [(0, Ok(())), (1, Err(Errno::IO))]);
    set_paused(&mut rig, false);
    rig.finish_all();
    let mut results = rig.results();
    results.sort_by_key(|(tag, _)| *tag);
    assert_eq!(results, (2..7).map(|tag| (tag, Ok(()))).collect::<Vec<_>>());
    assert!(rig.engine.is_idle());
}

#[test]
fn paused_volume_that_is_closed_waits_for_its_back_end_alone() {
    let (mut rig, _) = two_volumes();
    (0..6).for_each(|tag| rig.submit(0, tag, read(tag << 20, 512)));
    set_paused(&mut rig, true);
    let volume = rig.volume;
    rig.engine.close_volume(volume);
    rig.settle();
    assert_eq!(rig.results(), [4, 5].map(|tag| (tag, Err(Errno::SHUTDOWN))));
    assert!(!rig.engine.is_volume_idle(volume));
    rig.finish_all();
    assert_eq!(rig.results().len(), 4);
    assert!(rig.engine.is_volume_idle(volume));
}

/// What another server is to do is given up, and what the back end has is not.
#[test]
fn paused_requests_are_given_up_as_those_that_are_queued() {
    let (mut rig, _) = two_volumes();
    (0..6).for_each(|tag| rig.submit(0, tag, write(tag << 20, 512, 1)));
    set_paused(&mut rig, true);
    let now = rig.clock.now();
    rig.engine.hold(now);
    rig.settle();
    let outcomes = rig.outcomes();
    assert_eq!(outcomes.iter().map(|one| one.tag.key).collect::<Vec<_>>(), [4, 5]);
    assert!(outcomes.iter().all(|one| one.left.is_some()), "{outcomes:?}");
    rig.finish_all();
    assert_eq!(rig.results().len(), 4);
    assert!(rig.engine.is_idle());
}
