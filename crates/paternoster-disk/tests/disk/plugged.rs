//! Commands that were held back in a plug: which may be, and what becomes of a batch.

use bytes::Bytes;
use paternoster::{
    Batch, FlushReason, IocId, Limits, Plug, PlugLimits, PlugRules, SchedulerKind, Sector,
};
use paternoster_disk::{Capabilities, Command, CommandOp, VolumePlace};
use rustix::io::Errno;

use crate::support::{Rig, Shape, any_byte, cache, merges, read, trim, write, write_fua, zero};

/// What leaves a plug that has held these commands, whose tags are their places.
pub(crate) fn batch_of(rules: &PlugRules, place: VolumePlace, ops: &[CommandOp]) -> Batch {
    let mut left = Vec::new();
    let mut plug = Plug::new(PlugLimits::default(), |(), batch| left.push(batch));
    for (name, op) in (0..).zip(ops) {
        let bio =
            op.plug_bio(IocId::default(), place, &rules.limits).expect("it may wait in a plug");
        plug.submit(paternoster::Instant::START, (), bio.with_user_data(name), rules);
    }
    plug.flush(paternoster::Instant::START, FlushReason::Wait);
    drop(plug);
    left.pop().expect("one batch")
}

/// A connection puts a batch of these.
fn submit(rig: &mut Rig, connection: usize, ops: &[CommandOp]) {
    let rules = rig.engine.elevator().plug_rules();
    let batch = batch_of(&rules, rig.engine.place(rig.volume), ops);
    let (volume, ioc) = (rig.volume, rig.connections[connection]);
    let command =
        |(tag, op): (u64, &CommandOp)| Command { tag: tag.into(), volume, ioc, op: op.clone() };
    let commands = (0..).zip(ops).map(command).collect();
    rig.engine.submit_batch(rig.clock.now(), batch, commands);
    rig.settle();
}

#[test]
fn neighbours_are_one_transfer_and_each_has_its_own_answer() {
    for kind in SchedulerKind::ALL {
        let mut rig = Rig::new(kind, 4);
        submit(&mut rig, 0, &[read(4096, 4096), read(0, 4096), read(1 << 20, 512)]);
        let shapes = rig.finish_all();
        let joined = Shape::Read { offset: 0, parts: vec![4096, 4096] };
        assert!(shapes.contains(&joined), "{kind}: {shapes:?}");
        assert_eq!(shapes.len(), 2, "{kind}");
        assert_eq!(merges(rig.engine.elevator()), 1, "{kind}");
        let mut results = rig.results();
        results.sort_unstable_by_key(|&(tag, _)| tag);
        assert_eq!(results, [(0, Ok(())), (1, Ok(())), (2, Ok(()))], "{kind}");
    }
}

/// What failed together is tried again alone: a bad sector is one client's.
#[test]
fn error_of_a_joint_transfer_is_of_the_command_that_has_it_alone() {
    let mut rig = Rig::new(SchedulerKind::MqDeadline, 1);
    submit(&mut rig, 0, &[write(0, 4096, 1), write(4096, 4096, 2)]);
    assert_eq!(rig.in_device.len(), 1, "they have merged");
    rig.finish_nth(0, Err(Errno::IO));
    rig.finish_nth(0, Ok(4096));
    rig.finish_nth(0, Err(Errno::IO));
    let mut results = rig.results();
    results.sort_unstable_by_key(|&(tag, _)| tag);
    assert_eq!(results, [(0, Ok(())), (1, Err(Errno::IO))]);
}

/// A hand-over never waits for the device: what has come stays where later neighbours find it.
#[test]
fn batch_for_a_full_device_waits_in_the_scheduler_and_merges_there() {
    let mut rig = Rig::held_back();
    submit(&mut rig, 0, &[write(0, 4096, 1)]);
    submit(&mut rig, 0, &[write(4096, 4096, 2)]);
    assert_eq!(rig.in_device.len(), 1, "the device takes no more");
    rig.let_go();
    assert_eq!(rig.finish_all(), [Shape::Write { offset: 0, parts: vec![4096, 4096] }]);
    assert_eq!(rig.results(), [(0, Ok(())), (0, Ok(()))]);
}

#[test]
fn shutdown_ends_each_command_of_a_chain() {
    let mut rig = Rig::held_back();
    submit(&mut rig, 0, &[write(0, 4096, 1), write(4096, 4096, 2)]);
    rig.engine.cancel_queued(rig.clock.now());
    let mut results = rig.results();
    results.sort_unstable_by_key(|&(tag, _)| tag);
    assert_eq!(results, [(0, Err(Errno::SHUTDOWN)), (1, Err(Errno::SHUTDOWN))]);
}

/// What needs something special of the engine never waits: it would not be one bio.
#[test]
fn what_is_no_plain_read_or_write_of_whole_sectors_may_not_wait_in_a_plug() {
    let limits = Limits::default();
    let place = VolumePlace { first: Sector(0), block: 1 };
    let may_wait = |op: &CommandOp| op.plug_bio(IocId::default(), place, &limits).is_some();
    let largest = limits.max_sectors * 512;
    let yes = [read(512, 512), read(0, largest), write(0, 4096, 1)];
    assert_eq!(yes.each_ref().map(may_wait), [true; 3]);
    let no = [
        read(1, 512),
        read(0, 513),
        read(0, 0),
        read(0, largest + 512),
        write(0, 100, 1),
        CommandOp::Write { offset: 0, data: Bytes::new(), fua: false },
        write_fua(0, 4096, 1),
        cache(0, 4096),
        trim(0, 4096, false),
        zero(0, 4096, false),
        CommandOp::Flush,
    ];
    assert_eq!(no.each_ref().map(may_wait), [false; 11]);
}

/// A batch comes while a block is held: what touches it waits, and the rest goes on and merges.
#[test]
fn batch_waits_for_blocks_that_are_held() {
    let blocks = Capabilities { block: 4096, ..any_byte() };
    let mut rig = Rig::of(SchedulerKind::MqDeadline, 1, &blocks);
    rig.submit(0, 100, write(10, 20, 7));
    submit(&mut rig, 1, &[read(0, 4096), read(8192, 4096), read(12288, 4096)]);
    assert_eq!((rig.in_device.len(), rig.engine.waiting_for_blocks()), (1, 1));
    rig.finish_next();
    rig.finish_next();
    let mut shapes = rig.finish_all();
    shapes.sort_unstable_by_key(Shape::range);
    let read = |offset, parts: &[usize]| Shape::Read { offset, parts: parts.to_vec() };
    assert_eq!(shapes, [read(0, &[4096]), read(8192, &[4096, 4096])]);
    assert_eq!(rig.results().len(), 4);
}

#[test]
fn what_is_no_whole_blocks_may_not_wait_in_a_plug() {
    let (place, limits) = (VolumePlace { first: Sector(0), block: 8 }, Limits::default());
    let may = |op: CommandOp| op.plug_bio(IocId::default(), place, &limits).is_some();
    assert!(may(read(4096, 8192)));
    assert!(!may(read(512, 4096)));
    assert!(!may(write(4096, 512, 1)));
}
