//! FLUSH and FUA: when they are answered, and what a failed sync means for all of them.

mod support;

use paternoster::SchedulerKind;
use paternoster_disk::{CommandOp, SyncStats, TransferId};
use rustix::io::Errno;

use support::{Rig, Shape, read, trim, write, write_fua, zero};

const FLUSH: CommandOp = CommandOp::Flush;

fn rig() -> Rig {
    Rig::new(SchedulerKind::Cfq, 8)
}

fn sync_succeeds(rig: &mut Rig) {
    rig.finish(TransferId::Sync, Ok(0));
}

fn sync_fails(rig: &mut Rig, error: Errno) {
    rig.finish(TransferId::Sync, Err(error));
}

fn syncs(rig: &Rig) -> usize {
    rig.shapes().iter().filter(|shape| **shape == Shape::Sync).count()
}

#[test]
fn a_flush_is_answered_when_its_sync_has_ended() {
    let mut rig = rig();
    rig.submit(0, 1, FLUSH);
    assert_eq!(rig.shapes(), [Shape::Sync]);
    assert_eq!(rig.results(), []);
    assert!(!rig.engine.is_idle(), "a flush is under way");
    sync_succeeds(&mut rig);
    assert_eq!(rig.results(), [(1, Ok(()))]);
    assert!(rig.engine.is_idle());
}

#[test]
fn a_flush_that_comes_while_a_sync_runs_waits_for_the_next() {
    let mut rig = rig();
    rig.submit(0, 1, FLUSH);
    rig.submit(1, 2, FLUSH);
    assert_eq!(syncs(&rig), 1, "one runs at a time");
    sync_succeeds(&mut rig);
    assert_eq!(rig.results(), [(1, Ok(()))]);
    assert_eq!(syncs(&rig), 1, "the second flush has one of its own");
    sync_succeeds(&mut rig);
    assert_eq!(rig.results(), [(2, Ok(()))]);
}

#[test]
fn flushes_that_wait_share_a_sync_whoever_sent_them() {
    let mut rig = rig();
    rig.submit(0, 1, FLUSH);
    for (connection, tag) in [(0, 2), (1, 3), (2, 4), (3, 5)] {
        rig.submit(connection, tag, FLUSH);
    }
    sync_succeeds(&mut rig);
    sync_succeeds(&mut rig);
    assert_eq!(rig.results(), [1, 2, 3, 4, 5].map(|tag| (tag, Ok(()))));
    assert_eq!(rig.engine.sync_stats(), SyncStats { begun: 2, failed: false });
    assert!(rig.in_device.is_empty());
}

#[test]
fn a_flush_waits_for_no_transfer_and_needs_no_room_in_the_device() {
    let mut rig = Rig::new(SchedulerKind::Cfq, 1);
    rig.submit(0, 1, write(0, 512, 1));
    rig.submit(0, 2, write(8192, 512, 1));
    rig.submit(0, 3, FLUSH);
    assert_eq!(rig.shapes().last(), Some(&Shape::Sync));
    sync_succeeds(&mut rig);
    assert_eq!(rig.results(), [(3, Ok(()))]);
}

#[test]
fn a_fua_write_is_a_durable_transfer_and_needs_no_sync() {
    let mut rig = rig();
    rig.submit(0, 1, write_fua(512, 1024, 7));
    assert_eq!(rig.finish_all(), [Shape::Write { offset: 512, parts: vec![1024], durable: true }]);
    assert_eq!(rig.results(), [(1, Ok(()))]);
    assert_eq!(rig.engine.sync_stats().begun, 0);
}

#[test]
fn every_piece_of_a_fua_write_is_durable() {
    let mut rig = Rig::with_short_requests(SchedulerKind::Cfq, 8, 8);
    rig.submit(0, 1, write_fua(100, 10_000, 7));
    let shapes = rig.finish_all();
    assert_eq!(shapes.len(), 3, "{shapes:?}");
    let durable = |shape: &Shape| matches!(shape, Shape::Write { durable: true, .. });
    assert!(shapes.iter().all(durable), "{shapes:?}");
}

#[test]
fn a_fua_trim_and_a_fua_zero_are_answered_after_a_sync_of_their_own() {
    for op in [trim(0, 4096, true), zero(0, 4096, true)] {
        let mut rig = rig();
        rig.submit(0, 1, op);
        rig.finish_next();
        assert_eq!(rig.results(), []);
        assert_eq!(rig.shapes(), [Shape::Sync]);
        sync_succeeds(&mut rig);
        assert_eq!(rig.results(), [(1, Ok(()))]);
    }
}

#[test]
fn a_fua_trim_is_synced_once_after_its_last_piece() {
    let mut rig = Rig::with_short_requests(SchedulerKind::Cfq, 8, 8);
    rig.submit(0, 1, trim(0, 3 * 4096, true));
    for left in [2, 1] {
        rig.finish_next();
        assert_eq!((rig.in_device.len(), syncs(&rig)), (left, 0));
    }
    rig.finish_next();
    assert_eq!(rig.shapes(), [Shape::Sync]);
    sync_succeeds(&mut rig);
    assert_eq!(rig.results(), [(1, Ok(()))]);
}

#[test]
fn a_fua_trim_that_ends_while_a_sync_runs_waits_for_the_next() {
    let mut rig = rig();
    rig.submit(0, 1, trim(0, 4096, true));
    rig.submit(1, 2, FLUSH);
    rig.finish_nth(0, Ok(4096));
    sync_succeeds(&mut rig);
    assert_eq!(rig.results(), [(2, Ok(()))]);
    sync_succeeds(&mut rig);
    assert_eq!(rig.results(), [(1, Ok(()))]);
}

#[test]
fn a_plain_trim_and_a_plain_zero_are_not_synced() {
    let mut rig = rig();
    rig.submit(0, 1, trim(0, 4096, false));
    rig.submit(0, 2, zero(8192, 4096, false));
    rig.finish_all();
    assert_eq!(rig.results().len(), 2);
    assert_eq!(rig.engine.sync_stats().begun, 0);
}

#[test]
fn after_a_failed_sync_all_that_wait_for_one_get_eio_whatever_its_error_was() {
    for error in [Errno::IO, Errno::NOSPC, Errno::DQUOT] {
        let mut rig = rig();
        rig.submit(0, 1, trim(0, 4096, true));
        rig.submit(0, 2, FLUSH);
        rig.submit(1, 3, FLUSH);
        rig.finish_nth(0, Ok(4096)); // The trim now waits for the next sync, as 3 does.
        sync_fails(&mut rig, error);
        let mut results = rig.results();
        results.sort_by_key(|(tag, _)| *tag);
        assert_eq!(results, [1, 2, 3].map(|tag| (tag, Err(Errno::IO))));
        assert!(rig.in_device.is_empty(), "no sync can make good what one has lost");
        assert_eq!(rig.engine.sync_stats(), SyncStats { begun: 1, failed: true });
    }
}

#[test]
fn after_a_failed_sync_every_flush_and_fua_command_gets_eio_for_ever() {
    let mut rig = rig();
    rig.submit(0, 1, FLUSH);
    sync_fails(&mut rig, Errno::IO);
    rig.results();
    let promises =
        [FLUSH, write_fua(0, 512, 1), trim(0, 512, true), zero(0, 512, true), write_fua(0, 0, 1)];
    for _ in 0..3 {
        for op in &promises {
            rig.submit(2, 9, op.clone());
            assert!(rig.in_device.is_empty(), "{op:?}");
            assert_eq!(rig.results(), [(9, Err(Errno::IO))], "{op:?}");
        }
    }
    assert!(rig.engine.is_idle());
    assert_eq!(rig.engine.sync_stats(), SyncStats { begun: 1, failed: true });
}

#[test]
fn after_a_failed_sync_commands_without_a_promise_still_work() {
    let mut rig = rig();
    rig.submit(0, 1, FLUSH);
    sync_fails(&mut rig, Errno::IO);
    rig.results();
    let plain = [write(0, 512, 1), trim(512, 512, false), zero(1024, 512, false), read(0, 512)];
    for op in plain {
        rig.submit(2, 9, op);
        rig.finish_next();
        assert_eq!(rig.results(), [(9, Ok(()))]);
    }
}

#[test]
fn fua_commands_in_the_device_when_a_sync_fails_get_eio() {
    let mut rig = rig();
    for (tag, op) in [(1, write_fua(0, 512, 1)), (2, trim(4096, 512, true))] {
        rig.submit(0, tag, op);
    }
    rig.submit(0, 3, zero(8192, 512, true));
    rig.submit(0, 4, FLUSH);
    sync_fails(&mut rig, Errno::IO);
    rig.finish_all();
    // In what order is the scheduler's to say.
    let mut results = rig.results();
    results.sort_unstable_by_key(|&(tag, _)| tag);
    assert_eq!(results, [1, 2, 3, 4].map(|tag| (tag, Err(Errno::IO))));
    assert!(rig.engine.is_idle());
}

#[test]
fn a_fua_write_that_fails_with_eio_means_what_a_failed_sync_means() {
    let mut rig = rig();
    rig.submit(0, 1, write_fua(0, 512, 1));
    rig.submit(1, 2, FLUSH);
    rig.submit(2, 3, FLUSH);
    rig.finish_nth(0, Err(Errno::IO));
    assert_eq!(rig.results(), [(1, Err(Errno::IO))]);
    assert!(rig.engine.sync_stats().failed);
    rig.finish_all();
    assert_eq!(rig.results(), [(2, Err(Errno::IO)), (3, Err(Errno::IO))]);
    rig.submit(3, 4, FLUSH);
    assert_eq!(rig.results(), [(4, Err(Errno::IO))]);
}

#[test]
fn a_fua_write_that_fails_for_lack_of_space_fails_alone() {
    let mut rig = rig();
    rig.submit(0, 1, write_fua(0, 512, 1));
    rig.finish_nth(0, Err(Errno::NOSPC)); // Was it the write or the sync in it?
    rig.finish_nth(0, Err(Errno::NOSPC)); // The plain write: no room.
    rig.submit(0, 2, FLUSH);
    rig.finish_next();
    assert_eq!(rig.results(), [(1, Err(Errno::NOSPC)), (2, Ok(()))]);
}

#[test]
fn a_fua_write_that_fails_otherwise_than_by_eio_is_written_plainly_and_synced() {
    let mut rig = rig();
    rig.submit(0, 1, write_fua(0, 512, 1));
    rig.finish_nth(0, Err(Errno::NOSPC));
    rig.finish_next(); // The plain write.
    assert_eq!(rig.results(), [], "it waits for the sync");
    rig.finish_nth(0, Err(Errno::NOSPC)); // The sync: what was written before had no room.
    rig.submit(0, 2, FLUSH);
    assert_eq!(rig.results(), [(1, Err(Errno::IO)), (2, Err(Errno::IO))]);
}

#[test]
fn a_plain_write_that_fails_leaves_flushes_alone() {
    let mut rig = rig();
    rig.submit(0, 1, write(0, 512, 1));
    rig.finish_nth(0, Err(Errno::IO));
    rig.submit(0, 2, FLUSH);
    rig.finish_next();
    assert_eq!(rig.results(), [(1, Err(Errno::IO)), (2, Ok(()))]);
}

#[test]
fn a_fua_trim_that_fails_is_answered_with_its_own_error_and_not_synced() {
    let mut rig = rig();
    rig.submit(0, 1, trim(0, 512, true));
    rig.finish_nth(0, Err(Errno::OPNOTSUPP));
    assert_eq!(rig.results(), [(1, Err(Errno::OPNOTSUPP))]);
    assert_eq!(rig.engine.sync_stats(), SyncStats { begun: 0, failed: false });
}
