//! A disk that somebody else is to go on with: what is left of each command.

use bytes::Bytes;
use paternoster::SchedulerKind;
use paternoster_disk::{CommandOp, Outcome};
use rustix::io::Errno;

use crate::support::{Rig, read, write, write_fua, zero};

fn hold(rig: &mut Rig) {
    rig.engine.hold(rig.clock.now());
    rig.settle();
}

/// What has come of commands, in the order of their tags: how each has ended, and what is left.
fn ended(rig: &mut Rig) -> Vec<(u64, Result<(), Errno>, Option<String>)> {
    let mut all = rig.outcomes();
    all.sort_by_key(|one| one.tag);
    let told = |Outcome { tag, result, left }| {
        (tag.key, result.map(drop), left.map(|op| format!("{op:?}")))
    };
    all.into_iter().map(told).collect()
}

fn left(tag: u64, op: &CommandOp) -> (u64, Result<(), Errno>, Option<String>) {
    (tag, Err(Errno::SHUTDOWN), Some(format!("{op:?}")))
}

const DONE: Result<(), Errno> = Ok(());

#[test]
fn what_is_in_the_device_is_done_and_what_waits_is_left_as_it_came() {
    let mut rig = Rig::new(SchedulerKind::Cfq, 1);
    rig.submit(0, 0, write(0, 512, 1));
    rig.submit(0, 1, write_fua(8192, 700, 7));
    rig.submit(0, 2, read(100, 5000));
    rig.submit(0, 3, zero(65_536, 4096, true));
    hold(&mut rig);
    let expected = [
        left(1, &write_fua(8192, 700, 7)),
        left(2, &read(100, 5000)),
        left(3, &zero(65_536, 4096, true)),
    ];
    assert_eq!(ended(&mut rig), expected);
    rig.finish_all();
    assert_eq!(ended(&mut rig), [(0, DONE, None)]);
    assert!(rig.engine.is_idle());
}

/// Its first piece is in the device, the next ones wait, the last have not been cut.
#[test]
fn command_of_which_a_part_is_done_is_left_whole() {
    let mut rig = Rig::with_short_requests(SchedulerKind::Cfq, 1, 8);
    let data: Vec<u8> = (0..9 * 4096_u32).map(|at| at.to_be_bytes()[3]).collect();
    let whole = || CommandOp::Write { offset: 4096, data: Bytes::from(data.clone()), fua: true };
    rig.submit(0, 1, whole());
    hold(&mut rig);
    assert_eq!(ended(&mut rig), [], "its piece is in the device");
    rig.finish_next();
    assert_eq!(ended(&mut rig), [left(1, &whole())]);
    assert!(rig.engine.is_idle());
}

/// A rest may begin inside a block of the client's session.
#[test]
fn command_that_the_device_has_done_in_part_is_left_whole() {
    let mut rig = Rig::new(SchedulerKind::MqDeadline, 1);
    rig.submit(0, 1, write(8192, 4096, 7));
    rig.finish_nth(0, Ok(512));
    rig.submit(0, 2, read(0, 512));
    hold(&mut rig);
    rig.finish_all();
    let [first, second] = &ended(&mut rig)[..] else { panic!("two are done") };
    let is_whole = *first == left(1, &write(8192, 4096, 7));
    assert!(is_whole || *first == (1, DONE, None), "{first:?}");
    assert_eq!(second.0, 2);
}

#[test]
fn sync_that_runs_is_waited_for_and_one_that_has_not_begun_is_left() {
    let mut rig = Rig::new(SchedulerKind::None, 8);
    rig.submit(0, 1, CommandOp::Flush);
    rig.submit(1, 2, CommandOp::Flush);
    rig.submit(2, 3, write_fua(0, 512, 7));
    hold(&mut rig);
    assert_eq!(ended(&mut rig), [left(2, &CommandOp::Flush)]);
    // The data is written; only its sync is left.
    rig.finish_nth(1, Ok(512));
    assert_eq!(ended(&mut rig), [left(3, &CommandOp::Flush)]);
    rig.finish_sync(Ok(0));
    assert_eq!(ended(&mut rig), [(1, DONE, None)]);
    assert!(rig.engine.is_idle());
}

#[test]
fn error_of_the_device_is_told_and_nothing_is_left_of_its_command() {
    let mut rig = Rig::new(SchedulerKind::None, 8);
    rig.submit(0, 1, write_fua(0, 512, 7));
    rig.submit(0, 2, CommandOp::Flush);
    hold(&mut rig);
    rig.finish_nth(0, Err(Errno::NXIO));
    rig.finish_all();
    assert_eq!(ended(&mut rig)[0], (1, Err(Errno::NXIO), None));
}

#[test]
fn engine_that_nobody_takes_over_goes_on() {
    let mut rig = Rig::new(SchedulerKind::Wfq, 1);
    for tag in 0..3 {
        rig.submit(0, tag, write_fua(tag * 8192, 512, 7));
    }
    hold(&mut rig);
    rig.finish_all();
    rig.engine.go_on();
    for Outcome { tag, left, .. } in rig.outcomes() {
        rig.submit(0, tag.key, *left.expect("each has something left"));
    }
    rig.finish_all();
    assert_eq!(ended(&mut rig), [0, 1, 2].map(|tag| (tag, DONE, None)));
    assert!(rig.syncs_begun > 0, "the data is durable");
}

#[test]
fn volume_whose_sync_has_failed_for_who_served_it_before_is_not_called_durable() {
    let mut rig = Rig::new(SchedulerKind::None, 8);
    let volume = rig.engine.volumes().next().expect("it has one");
    rig.engine.sync_has_failed(volume);
    rig.submit(0, 1, CommandOp::Flush);
    rig.submit(0, 2, write(0, 512, 7));
    rig.finish_all();
    assert_eq!(ended(&mut rig), [(1, Err(Errno::IO), None), (2, DONE, None)]);
    assert!(rig.engine.sync_stats(volume).failed);
}
