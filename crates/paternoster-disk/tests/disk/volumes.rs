//! Several volumes of a disk: what they share, and what is each one's own.

use paternoster::{Limits, SchedulerKind};
use paternoster_disk::{
    Capabilities, Command, CommandOp, DiskOp, NoGrowth, NoVolume, SyncStats, TransferId, VolumeId,
    VolumePlace,
};
use rustix::io::Errno;

use crate::plugged::batch_of;
use crate::support::{Rig, Shape, any_byte, merges, read, write, write_fua};

const FLUSH: CommandOp = CommandOp::Flush;
const EIO: (Errno, DiskOp) = (Errno::IO, DiskOp::Sync);

/// The volume of each transfer in the device, in the order in which they began.
fn in_device(rig: &Rig) -> Vec<VolumeId> {
    rig.in_device.iter().map(|(id, _)| id.volume()).collect()
}

/// Writes of whole sectors at the ends and beginnings of neighbours, which would be one request on
/// one disk.
#[test]
fn nothing_of_two_volumes_merges() {
    for kind in SchedulerKind::ALL {
        let size = 1 << 20;
        let capabilities = Capabilities::new(size, 1);
        let mut rig = Rig::of(kind, 1, &capabilities);
        let mut volumes = vec![rig.volume];
        volumes.extend((0..9).map(|_| rig.add_volume(&capabilities)));
        let places = volumes.iter().map(|&volume| rig.engine.place(volume).first.0);
        assert!(places.collect::<Vec<_>>().is_sorted_by(|a, b| b - a > size / 512));
        rig.submit(0, 1000, read(4096, 4096));
        for (tag, &volume) in (0..).zip(&volumes) {
            rig.submit_to(volume, 0, 2 * tag, write(size - 512, 512, 1));
            rig.submit_to(volume, 0, 2 * tag + 1, write(0, 512, 2));
        }
        let shapes = rig.finish_all();
        assert_eq!(shapes.len(), 21, "{kind}: {shapes:?}");
        assert_eq!(merges(rig.engine.elevator()), 0, "{kind}");
        assert!(rig.results().iter().all(|(_, result)| result.is_ok()), "{kind}");
    }
}

#[test]
fn transfer_has_the_bytes_of_its_own_volume() {
    let mut rig = Rig::new(SchedulerKind::None, 4);
    let other = rig.add_volume(&any_byte());
    rig.submit_to(other, 0, 1, read(4096, 512));
    rig.submit(0, 2, read(8192, 512));
    assert_eq!(in_device(&rig), [other, rig.volume]);
    let ranges: Vec<_> = rig.shapes().iter().filter_map(Shape::range).collect();
    assert_eq!(ranges, [(4096, 4608), (8192, 8704)]);
}

/// Nobody knows what the medium of the one holds; of the other it is known.
#[test]
fn failed_sync_is_the_trouble_of_one_volume() {
    let mut rig = Rig::new(SchedulerKind::Cfq, 4);
    let other = rig.add_volume(&any_byte());
    rig.submit_to(other, 0, 1, FLUSH);
    rig.submit(0, 2, FLUSH);
    rig.finish(TransferId::Sync(other), Err(Errno::IO));
    rig.finish_sync(Ok(0));
    assert_eq!(rig.results(), [(1, Err(Errno::IO)), (2, Ok(()))]);
    let [fault] = &rig.engine.take_faults()[..] else { panic!("one sync has failed") };
    assert_eq!((fault.volume, (fault.errno, fault.op)), (other, EIO));
    rig.submit_to(other, 0, 3, write_fua(0, 512, 1));
    rig.submit(0, 4, write_fua(0, 512, 1));
    rig.finish_all();
    assert_eq!(rig.results(), [(3, Err(Errno::IO)), (4, Ok(()))]);
    assert_eq!(rig.engine.sync_stats(other), SyncStats { succeeded: 0, failed: true });
    assert_eq!(rig.engine.sync_stats(rig.volume), SyncStats { succeeded: 2, failed: false });
}

#[test]
fn four_volumes_sync_at_once_and_the_next_one_when_one_has() {
    let mut rig = Rig::new(SchedulerKind::Cfq, 4);
    let mut volumes = vec![rig.volume];
    volumes.extend((1..6).map(|_| rig.add_volume(&any_byte())));
    for (tag, &volume) in (0..).zip(&volumes) {
        rig.submit_to(volume, 0, tag, FLUSH);
    }
    assert_eq!(in_device(&rig), volumes[..4]);
    // It has synced, and comes behind those that have not.
    rig.finish(TransferId::Sync(volumes[2]), Ok(0));
    rig.submit_to(volumes[2], 0, 10, FLUSH);
    assert_eq!(in_device(&rig)[3..], [volumes[4]]);
    rig.finish(TransferId::Sync(volumes[0]), Ok(0));
    rig.finish(TransferId::Sync(volumes[1]), Ok(0));
    assert_eq!(in_device(&rig)[2..], [volumes[5], volumes[2]]);
    rig.finish_all();
    assert_eq!(rig.results().len(), 7);
    assert!(rig.engine.is_idle());
}

/// Block 0 of the one is held while its rest is read; block 0 of the other is another.
#[test]
fn block_is_held_on_its_own_volume_alone() {
    let blocks = Capabilities { block: 4096, ..any_byte() };
    let mut rig = Rig::of(SchedulerKind::None, 8, &blocks);
    let other = rig.add_volume(&Capabilities { block: 512, ..any_byte() });
    rig.submit(0, 1, write(10, 20, 7));
    rig.submit(0, 2, read(0, 4096));
    rig.submit_to(other, 0, 3, read(0, 4096));
    rig.submit_to(other, 0, 4, write(512, 512, 1));
    assert_eq!(rig.engine.waiting_for_blocks(), 1);
    assert_eq!(in_device(&rig), [rig.volume, other, other]);
    rig.finish_all();
    assert_eq!(rig.results().len(), 4);
}

/// With the scheduler, in the device, before the scheduler, and waiting for a sync.
#[test]
fn what_waits_of_a_closing_volume_fails_and_what_is_in_the_device_is_answered() {
    for kind in SchedulerKind::ALL {
        let mut rig = Rig::with_short_requests(kind, 1, 8);
        let going = rig.add_volume(&Capabilities { block: 4096, ..any_byte() });
        rig.submit_to(going, 0, 1, read(0, 4096));
        rig.submit_to(going, 1, 2, read(1 << 20, 9 * 4096));
        rig.submit(2, 3, read(0, 4096));
        rig.submit_to(going, 0, 4, FLUSH);
        rig.submit_to(going, 0, 5, FLUSH);
        rig.engine.close_volume(going);
        rig.settle();
        assert_eq!(rig.results(), [], "{kind}: what is with the scheduler stays there");
        rig.submit_to(going, 0, 6, read(0, 512));
        assert_eq!(rig.results(), [(6, Err(Errno::SHUTDOWN))], "{kind}");
        assert!(!rig.engine.is_volume_idle(going));
        let ended = rig.finish_all();
        let mut results = rig.results();
        results.sort_unstable_by_key(|&(tag, _)| tag);
        let shutdown = Err(Errno::SHUTDOWN);
        let expected = [(1, Ok(())), (2, shutdown), (3, Ok(())), (4, Ok(())), (5, shutdown)];
        assert_eq!(results, expected, "{kind}");
        assert_eq!(ended.len(), 4, "{kind}: two reads, and two syncs, of which one is cancelled");
        assert!(rig.engine.is_volume_idle(going) && rig.engine.is_idle(), "{kind}");
        rig.engine.remove_volume(going);
        rig.submit_to(going, 0, 7, read(0, 512));
        assert_eq!(rig.results(), [(7, Err(Errno::SHUTDOWN))], "{kind}: it is gone");
        rig.engine.check();
    }
}

#[test]
#[should_panic(expected = "a volume that is removed has no commands")]
fn volume_that_is_busy_cannot_be_removed() {
    let mut rig = Rig::new(SchedulerKind::None, 1);
    rig.submit(0, 1, read(0, 512));
    rig.engine.remove_volume(rig.volume);
}

#[test]
fn batch_of_a_volume_that_is_gone_fails() {
    let mut rig = Rig::new(SchedulerKind::None, 1);
    let gone = rig.add_volume(&any_byte());
    let rules = rig.engine.elevator().plug_rules();
    let batch = batch_of(&rules, rig.engine.place(gone), &[read(0, 512)]);
    rig.engine.close_volume(gone);
    rig.settle();
    rig.engine.remove_volume(gone);
    // It has the place of the one that is gone.
    rig.add_volume(&any_byte());
    let command =
        Command { tag: 1.into(), volume: gone, ioc: rig.connections[0], op: read(0, 512) };
    rig.engine.submit_batch(rig.clock.now(), batch, vec![command]);
    rig.settle();
    assert_eq!((rig.results(), rig.in_device.len()), (vec![(1, Err(Errno::SHUTDOWN))], 0));
}

/// It was one bio when it was plugged.
#[test]
fn batch_is_cut_anew_where_a_volume_has_come_that_takes_less() {
    let mut rig = Rig::new(SchedulerKind::None, 8);
    let (volume, ioc) = (rig.volume, rig.connections[0]);
    let rules = rig.engine.elevator().plug_rules();
    let batch = batch_of(&rules, rig.engine.place(volume), &[read(0, 32 << 10)]);
    rig.add_volume(&Capabilities { max_transfer: Some(8192), ..any_byte() });
    let command = Command { tag: 1.into(), volume, ioc, op: read(0, 32 << 10) };
    rig.engine.submit_batch(rig.clock.now(), batch, vec![command]);
    rig.settle();
    assert_eq!(rig.finish_all().len(), 4);
    assert_eq!(rig.results(), [(1, Ok(()))]);
}

/// Each in a state of its own when the volume closes.
#[test]
fn what_of_a_closing_volume_is_under_way_ends_as_it_would() {
    let blocks = Capabilities { block: 4096, ..any_byte() };
    let mut rig = Rig::of(SchedulerKind::None, 8, &blocks);
    let going = rig.add_volume(&blocks);
    rig.submit_to(going, 0, 1, write(10, 20, 7)); // Its block is being read.
    rig.submit_to(going, 0, 2, read(0, 4096)); // It waits for that block.
    rig.submit_to(going, 0, 3, write_fua(8192, 4096, 7)); // It is in the device.
    rig.submit_to(going, 0, 4, read(16_384, 8192)); // It will be cut short.
    rig.engine.close_volume(going);
    rig.settle();
    assert_eq!(rig.results(), [(2, Err(Errno::SHUTDOWN))]);
    assert_eq!(rig.engine.waiting_for_blocks(), 0);
    rig.finish_read(2, &[1; 4096]); // Its rest is not read any more.
    assert_eq!(rig.results(), [(4, Err(Errno::SHUTDOWN))]);
    rig.finish_read(0, &[0; 4096]);
    assert!(matches!(rig.shapes()[1], Shape::Write { offset: 0, .. }), "the block is written");
    rig.finish_nth(1, Ok(4096));
    assert_eq!(rig.results(), [(1, Ok(()))]);
    rig.finish_nth(0, Ok(4096));
    rig.finish(TransferId::Sync(going), Ok(0));
    assert_eq!(rig.results(), [(3, Err(Errno::SHUTDOWN))], "its sync had not begun");
    assert!(rig.engine.is_volume_idle(going));
    rig.engine.remove_volume(going);
}

#[test]
fn volume_grows_and_never_shrinks() {
    let blocks = Capabilities { block: 4096, ..Capabilities::new(10_000, 4) };
    let mut rig = Rig::of(SchedulerKind::None, 4, &blocks);
    let volume = rig.volume;
    assert_eq!(rig.engine.grow_volume(volume, 9_999), Err(NoGrowth::Smaller(10_000)));
    assert_eq!(rig.engine.grow_volume(volume, 1 << 53), Err(NoGrowth::TooLarge(1 << 53)));
    // Its last block is a short one, which is whole afterwards.
    rig.submit(0, 1, write(9_000, 1_000, 1));
    assert_eq!(rig.engine.grow_volume(volume, 12_288), Err(NoGrowth::Busy));
    rig.finish_all();
    assert_eq!(rig.engine.grow_volume(volume, 12_288), Ok(()));
    // There is no short one any more.
    rig.submit(0, 2, read(8_192, 4_096));
    assert_eq!(rig.engine.grow_volume(volume, 20_480), Ok(()));
    rig.submit(0, 3, read(16_384, 4_096));
    let read = rig.shapes();
    assert_eq!(read.iter().filter_map(Shape::range).next_back(), Some((16_384, 20_480)));
}

/// A request may have more than the one takes, were it of the other.
#[test]
fn no_request_is_longer_than_a_volume_takes() {
    let mut rig = Rig::held_back();
    let short = Capabilities { max_transfer: Some(8192), ..any_byte() };
    let short = rig.add_volume(&short);
    for tag in 0..4 {
        rig.submit_to(short, 0, tag, write(tag * 4096, 4096, 1));
    }
    rig.let_go();
    assert_eq!(rig.finish_all().len(), 2);
    assert_eq!(rig.engine.elevator().limits().max_sectors, 16);
    assert!(rig.engine.elevator().limits().max_sectors < Limits::default().max_sectors);
}

#[test]
fn place_of_a_volume_that_has_gone_is_free_again() {
    let mut rig = Rig::new(SchedulerKind::None, 1);
    let (one, two) = (rig.add_volume(&any_byte()), rig.add_volume(&any_byte()));
    let VolumePlace { first, .. } = rig.engine.place(one);
    rig.engine.close_volume(one);
    rig.settle();
    rig.engine.remove_volume(one);
    let three = rig.add_volume(&any_byte());
    assert_eq!(rig.engine.place(three).first, first);
    assert_ne!(three, one);
    assert_ne!(rig.engine.place(two).first, first);
    let error = rig.engine.add_volume(&Capabilities::new(u64::MAX, 1));
    assert_eq!(error, Err(NoVolume::TooLarge(u64::MAX)));
}
