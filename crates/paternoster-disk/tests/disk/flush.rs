//! FLUSH and FUA: when they are answered, and what a failed sync means for all of them.

use paternoster::SchedulerKind;
use paternoster_disk::{CommandOp, SyncStats, Transferred};
use rustix::io::Errno;

use crate::support::{Rig, SYNC, Shape, read, trim, write, write_fua, zero};

const FLUSH: CommandOp = CommandOp::Flush;

fn rig() -> Rig {
    Rig::new(SchedulerKind::Cfq, 8)
}

fn sync_succeeds(rig: &mut Rig) {
    rig.finish_sync(Ok(0));
}

fn sync_fails(rig: &mut Rig, error: Errno) {
    rig.finish_sync(Err(error));
}

fn syncs(rig: &Rig) -> usize {
    rig.shapes().iter().filter(|shape| matches!(shape, Shape::Sync(_))).count()
}

#[test]
fn flush_is_answered_when_its_sync_has_ended() {
    let mut rig = rig();
    rig.submit(0, 1, FLUSH);
    assert_eq!(rig.shapes(), [SYNC]);
    assert_eq!(rig.results(), []);
    assert!(!rig.engine.is_idle(), "a flush is in flight");
    sync_succeeds(&mut rig);
    assert_eq!(rig.results(), [(1, Ok(()))]);
    assert!(rig.engine.is_idle());
}

#[test]
fn flush_that_comes_while_a_sync_runs_waits_for_the_next() {
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
    assert_eq!(rig.syncs_begun, 2);
    assert_eq!(rig.engine.sync_stats(rig.volume), SyncStats { succeeded: 2, failed: false });
    assert!(rig.in_device.is_empty());
}

#[test]
fn flush_waits_for_no_transfer_and_needs_no_room_in_the_device() {
    let mut rig = Rig::new(SchedulerKind::Cfq, 1);
    rig.submit(0, 1, write(0, 512, 1));
    rig.submit(0, 2, write(8192, 512, 1));
    rig.submit(0, 3, FLUSH);
    assert_eq!(rig.shapes().last(), Some(&SYNC));
    sync_succeeds(&mut rig);
    assert_eq!(rig.results(), [(3, Ok(()))]);
}

#[test]
fn fua_write_is_a_plain_one_and_then_a_sync_of_its_range() {
    let mut rig = rig();
    rig.submit(0, 1, write_fua(512, 1024, 7));
    assert_eq!(rig.finish_next(), Shape::Write { offset: 512, parts: vec![1024] });
    assert_eq!(rig.results(), [], "what is written is not durable yet");
    assert_eq!(rig.shapes(), [Shape::sync_of(512..1536)]);
    sync_succeeds(&mut rig);
    assert_eq!(rig.results(), [(1, Ok(()))]);
}

#[test]
fn fua_write_in_pieces_is_synced_once_after_its_last_piece() {
    let mut rig = Rig::with_short_requests(SchedulerKind::Cfq, 8, 8);
    rig.submit(0, 1, write_fua(100, 10_000, 7));
    assert_eq!(rig.in_device.len(), 3);
    for _ in 0..3 {
        assert_eq!(syncs(&rig), 0);
        rig.finish_next();
    }
    assert_eq!(rig.finish_all(), [Shape::sync_of(100..10_100)]);
    assert_eq!(rig.results(), [(1, Ok(()))]);
}

#[test]
fn fua_write_that_waits_for_its_sync_is_not_cancelled_and_one_cancelled_in_part_is_not_synced() {
    let mut rig = Rig::with_short_requests(SchedulerKind::Cfq, 1, 8);
    rig.submit(0, 1, write_fua(0, 4096, 7));
    rig.finish_next();
    rig.submit(0, 2, write_fua(65_536, 40_000, 7));
    rig.engine.cancel_queued(rig.clock.now());
    rig.settle();
    assert_eq!(rig.results(), [], "the one waits for its sync, the other for its piece");
    let mut ended = rig.finish_all();
    ended.retain(|shape| *shape != Shape::sync_of(0..4096));
    assert_eq!(ended, [Shape::Write { offset: 65_536, parts: vec![4096] }]);
    let mut results = rig.results();
    results.sort_by_key(|&(tag, _)| tag);
    assert_eq!(results, [(1, Ok(())), (2, Err(Errno::SHUTDOWN))]);
    assert!(rig.engine.is_idle() && rig.syncs_begun == 1);
}

#[test]
fn fua_commands_that_wait_share_a_sync_from_the_first_of_their_bytes_to_the_last() {
    let mut rig = rig();
    rig.submit(0, 1, FLUSH);
    rig.submit(0, 2, write_fua(1 << 20, 512, 7));
    rig.submit(0, 3, write_fua(8192, 512, 7));
    rig.finish_nth(1, Ok(512));
    rig.finish_nth(1, Ok(512));
    sync_succeeds(&mut rig);
    assert_eq!(rig.results(), [(1, Ok(()))]);
    assert_eq!(rig.finish_all(), [Shape::sync_of(8192..(1 << 20) + 512)]);
    assert_eq!(rig.results().len(), 2);
}

#[test]
fn flush_among_those_that_wait_makes_their_sync_one_of_the_whole_disk() {
    for flush_first in [true, false] {
        let mut rig = rig();
        rig.submit(0, 1, FLUSH);
        if flush_first {
            rig.submit(1, 2, FLUSH);
        }
        rig.submit(0, 3, write_fua(0, 512, 7));
        rig.finish_nth(1, Ok(512));
        if !flush_first {
            rig.submit(1, 2, FLUSH);
        }
        sync_succeeds(&mut rig);
        assert_eq!(rig.finish_all(), [SYNC]);
        assert_eq!(rig.results().len(), 3);
    }
}

#[test]
fn fua_trim_and_a_fua_zero_are_answered_after_a_sync_of_their_own() {
    for op in [trim(0, 4096, true), zero(0, 4096, true)] {
        let mut rig = rig();
        rig.submit(0, 1, op);
        rig.finish_next();
        assert_eq!(rig.results(), []);
        assert_eq!(rig.shapes(), [Shape::sync_of(0..4096)]);
        sync_succeeds(&mut rig);
        assert_eq!(rig.results(), [(1, Ok(()))]);
    }
}

#[test]
fn fua_trim_is_synced_once_after_its_last_piece() {
    let mut rig = Rig::with_short_requests(SchedulerKind::Cfq, 8, 8);
    rig.submit(0, 1, trim(0, 3 * 4096, true));
    for left in [2, 1] {
        rig.finish_next();
        assert_eq!((rig.in_device.len(), syncs(&rig)), (left, 0));
    }
    rig.finish_next();
    assert_eq!(rig.shapes(), [Shape::sync_of(0..12288)]);
    sync_succeeds(&mut rig);
    assert_eq!(rig.results(), [(1, Ok(()))]);
}

#[test]
fn fua_trim_that_ends_while_a_sync_runs_waits_for_the_next() {
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
fn plain_trim_and_a_plain_zero_are_not_synced() {
    let mut rig = rig();
    rig.submit(0, 1, trim(0, 4096, false));
    rig.submit(0, 2, zero(8192, 4096, false));
    rig.finish_all();
    assert_eq!(rig.results().len(), 2);
    assert_eq!(rig.syncs_begun, 0);
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
        assert_eq!(rig.syncs_begun, 1);
        assert_eq!(rig.engine.sync_stats(rig.volume), SyncStats { succeeded: 0, failed: true });
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
    assert_eq!(rig.syncs_begun, 1);
    assert_eq!(rig.engine.sync_stats(rig.volume), SyncStats { succeeded: 0, failed: true });
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
fn fua_write_that_fails_fails_alone_and_is_not_synced() {
    for error in [Errno::IO, Errno::NOSPC, Errno::DQUOT] {
        let mut rig = rig();
        rig.submit(0, 1, write_fua(0, 512, 1));
        rig.finish_nth(0, Err(error));
        rig.submit(0, 2, FLUSH);
        rig.finish_next();
        assert_eq!(rig.results(), [(1, Err(error)), (2, Ok(()))]);
        assert_eq!(rig.syncs_begun, 1);
        assert_eq!(rig.engine.sync_stats(rig.volume), SyncStats { succeeded: 1, failed: false });
    }
}

/// A FUA write of 9 MiB where there was room for 8 got EIO, and so did every FLUSH and FUA write
/// of all tenants until the restart.
#[test]
fn fua_write_that_fits_in_part_fails_for_lack_of_space_and_nobody_else_does() {
    let mut rig = rig();
    rig.submit(0, 1, write_fua(0, 9 << 10, 1));
    rig.finish_nth(0, Ok(8 << 10));
    assert_eq!(rig.shapes(), [Shape::Write { offset: 8 << 10, parts: vec![1 << 10] }]);
    rig.finish_nth(0, Err(Errno::NOSPC));
    assert_eq!(rig.results(), [(1, Err(Errno::NOSPC))]);
    rig.submit(2, 2, FLUSH);
    rig.submit(2, 3, write_fua(1 << 20, 512, 1));
    rig.finish_all();
    assert_eq!(rig.results(), [(2, Ok(())), (3, Ok(()))]);
}

/// The kernel tells of a failed writeback once for each open file, to whoever syncs next.
#[test]
fn failed_writeback_of_one_tenant_that_another_s_fua_write_is_told_of_is_not_lost() {
    for error in [Errno::IO, Errno::NOSPC] {
        let mut rig = rig();
        rig.submit(2, 1, write(1 << 20, 4096, 1));
        rig.finish_next(); // Tenant B's page, of which the kernel now cannot write back.
        rig.submit(0, 2, write_fua(0, 512, 1));
        rig.finish_next();
        sync_fails(&mut rig, error); // Told to tenant A, and never again.
        rig.submit(2, 3, FLUSH);
        rig.finish_all();
        let told = [(1, Ok(())), (2, Err(Errno::IO)), (3, Err(Errno::IO))];
        assert_eq!(rig.results(), told, "{error:?}");
    }
}

#[test]
fn plain_write_that_fails_leaves_flushes_alone() {
    let mut rig = rig();
    rig.submit(0, 1, write(0, 512, 1));
    rig.finish_nth(0, Err(Errno::IO));
    rig.submit(0, 2, FLUSH);
    rig.finish_next();
    assert_eq!(rig.results(), [(1, Err(Errno::IO)), (2, Ok(()))]);
}

#[test]
fn fua_trim_that_fails_is_answered_with_its_own_error_and_not_synced() {
    let mut rig = rig();
    rig.submit(0, 1, trim(0, 512, true));
    rig.finish_nth(0, Err(Errno::OPNOTSUPP));
    assert_eq!(rig.results(), [(1, Err(Errno::OPNOTSUPP))]);
    assert_eq!(rig.syncs_begun, 0);
    assert_eq!(rig.engine.sync_stats(rig.volume), SyncStats { succeeded: 0, failed: false });
}

/// A server that stops leaves what waits to the next one, which does not hear of a failed sync.
#[test]
fn cancelled_sync_is_carried_out_and_only_its_failure_is_told() {
    let shutdown = Err(Errno::SHUTDOWN);
    let both_succeed = [(1, Ok(())), (2, shutdown), (3, shutdown)];
    let second_fails = [(1, Ok(())), (2, Err(Errno::IO)), (3, Err(Errno::IO))];
    let first_fails = [(1, Err(Errno::IO)), (2, Err(Errno::IO)), (3, Err(Errno::IO))];
    let cases = [
        ([Ok(0), Ok(0)], both_succeed),
        ([Ok(0), Err(Errno::IO)], second_fails),
        ([Err(Errno::IO), Ok(0)], first_fails),
    ];
    for (ends, wanted) in cases {
        let mut rig = Rig::new(SchedulerKind::None, 8);
        rig.submit(0, 1, FLUSH);
        rig.submit(1, 2, FLUSH);
        rig.submit(2, 3, write_fua(0, 512, 7));
        rig.submit(3, 4, write(8192, 512, 7));
        rig.engine.cancel_queued(rig.clock.now());
        rig.engine.cancel_syncs();
        rig.settle();
        assert_eq!(rig.results(), [], "all of it is in the device, or waits for what is");
        rig.finish_nth(2, Ok(512));
        rig.finish_nth(1, Ok(512));
        for end in ends {
            // After one that failed none begins.
            if syncs(&rig) > 0 {
                rig.finish_sync(end);
            }
        }
        let mut results = rig.results();
        results.sort_unstable_by_key(|&(tag, _)| tag);
        assert_eq!(results[..3], wanted);
        assert_eq!(results[3..], [(4, Ok(()))], "what is in the device finishes");
        rig.submit(0, 5, FLUSH);
        rig.finish_all();
        let is_sound = ends.iter().all(Result::is_ok);
        let last = if is_sound { Ok(()) } else { Err(Errno::IO) };
        assert_eq!(rig.results(), [(5, last)], "one that comes later is not cancelled");
    }
}

/// A far server that is lost when ours stops: its next server asks for the same again.
#[test]
fn transfer_that_is_given_up_after_the_cancellation_fails_as_what_waited_does() {
    for (is_cancelled, error) in [(false, Errno::IO), (true, Errno::SHUTDOWN)] {
        let mut rig = Rig::new(SchedulerKind::None, 8);
        rig.submit(0, 1, write(8192, 512, 7));
        rig.submit(1, 2, read(0, 512));
        rig.submit(2, 3, read(65_536, 512));
        if is_cancelled {
            rig.engine.cancel_queued(rig.clock.now());
            rig.engine.cancel_syncs();
            rig.settle();
        }
        for _ in 0..2 {
            let (id, _) = rig.in_device.remove(0);
            rig.engine.transfer_done(rig.clock.now(), id, Transferred::given_up(Errno::IO));
            rig.settle();
        }
        rig.finish_nth(0, Err(Errno::NXIO));
        let results = rig.results();
        assert_eq!(results, [(1, Err(error)), (2, Err(error)), (3, Err(Errno::NXIO))]);
    }
}
