//! How commands become transfers: exact bytes at any alignment, merging, and splitting.

use paternoster::{Nanos, Op, SchedulerKind};
use paternoster_disk::{Capabilities, Command, CommandOp, Transfer, Transferred};
use rustix::io::Errno;

use crate::support::random::Random;
use crate::support::{
    Rig, SECTOR, Shape, any_byte, cache, elevator, in_parts, one_volume, read, trim, write, zero,
};

/// The largest request.
const LARGEST: u64 = 1280 << 10;

/// The transfers that a command alone is made of, from the first byte to the last.
fn ranges_of(rig: &mut Rig, op: CommandOp) -> Vec<(u64, u64)> {
    rig.submit(0, 1, op);
    let mut ranges: Vec<_> = rig.finish_all().iter().filter_map(Shape::range).collect();
    ranges.sort_unstable();
    assert_eq!(rig.results(), [(1, Ok(()))]);
    ranges
}

fn assert_cover(ranges: &[(u64, u64)], (offset, end): (u64, u64)) {
    assert_eq!(ranges.first().map(|range| range.0), Some(offset), "{ranges:?}");
    assert_eq!(ranges.last().map(|range| range.1), Some(end), "{ranges:?}");
    assert!(ranges.windows(2).all(|pair| pair[0].1 == pair[1].0), "{ranges:?}");
}

#[test]
fn transfers_cover_the_bytes_of_a_command_and_no_other() {
    let mut random = Random::new(1);
    let mut rig = Rig::with_short_requests(SchedulerKind::Cfq, 4, 6);
    for len in 1..=9000 {
        let offset = random.of(0..1 << 40);
        let long = usize::try_from(len).expect("at most 9000");
        let short = u32::try_from(len).expect("at most 9000");
        let op = match random.of(0..5) {
            0 => write(offset, long, 1),
            1 => read(offset, short),
            2 => cache(offset, short),
            3 => trim(offset, short, false),
            _ => zero(offset, short, false),
        };
        assert_cover(&ranges_of(&mut rig, op), (offset, offset + len));
    }
}

#[test]
fn pieces_are_cut_at_whole_sectors() {
    let mut rig = Rig::with_short_requests(SchedulerKind::Cfq, 4, 4);
    assert_eq!(
        ranges_of(&mut rig, write(700, 2800, 1)),
        [(700, 2560), (2560, 3500)],
        "sectors 1 to 4, then 5 and 6"
    );
}

#[test]
fn every_byte_of_a_write_in_pieces_comes_from_its_place() {
    let mut rig = Rig::with_short_requests(SchedulerKind::Cfq, 8, 2);
    let data: Vec<u8> = (0..=250).cycle().take(5000).collect();
    let op = CommandOp::Write { offset: 333, data: data.clone().into(), fua: false };
    rig.submit(0, 1, op);
    let mut written = vec![0; 333 + 5000];
    while let Some((_, transfer)) = rig.in_device.first() {
        let Transfer::Write { offset, from, .. } = transfer else { panic!("a write is written") };
        let (at, bytes) = (usize::try_from(*offset).expect("small"), from.concat());
        written[at..at + bytes.len()].copy_from_slice(&bytes);
        rig.finish_next();
    }
    assert_eq!(written[333..], data);
}

#[test]
fn whole_sector_neighbours_of_a_tenants_connections_become_one_vectored_transfer() {
    let mut rig = Rig::held_back();
    rig.submit(1, 3, write(2048, 1024, 3));
    rig.submit(0, 2, write(512, 1536, 2));
    rig.submit(0, 4, write(3072, 512, 4));
    rig.submit(1, 1, write(0, 512, 1));
    rig.let_go();
    let parts = vec![512, 1536, 1024, 512];
    assert_eq!(rig.shapes(), [Shape::Write { offset: 0, parts }]);
    let Transfer::Write { from, .. } = &rig.in_device[0].1 else { panic!("a write is written") };
    let values: Vec<u8> = from.iter().map(|part| part[0]).collect();
    assert_eq!(values, [1, 2, 3, 4], "in the order of the disk");
    rig.finish_next();
    assert_eq!(rig.results().len(), 4);
}

#[test]
fn neighbours_of_different_tenants_do_not_merge() {
    let mut rig = Rig::held_back();
    rig.submit(0, 1, write(0, 512, 1));
    rig.submit(2, 2, write(512, 512, 2));
    rig.let_go();
    assert_eq!(rig.finish_all().len(), 2);
}

#[test]
fn piece_that_is_no_whole_sectors_never_merges() {
    // Each pair is adjacent in sectors; the first also in bytes.
    let pairs = [
        [write(0, 700, 1), write(700, 324, 2)],
        [write(0, 512, 1), write(512, 100, 2)],
        [write(100, 412, 1), write(512, 512, 2)],
        [write(0, 511, 1), write(512, 512, 2)],
    ];
    for pair in pairs {
        let mut rig = Rig::held_back();
        for op in &pair {
            rig.submit(0, 1, op.clone());
        }
        rig.let_go();
        assert_eq!(rig.finish_all().len(), 2, "{pair:?}");
    }
}

#[test]
fn the_odd_end_of_a_command_in_pieces_never_merges() {
    let mut rig = Rig::held_back();
    let limits = rig.engine.elevator().limits().with_max_sectors(8);
    rig.engine.administer(|elevator| elevator.set_limits(limits));
    rig.submit(0, 1, write(0, 4096 + 100, 1));
    rig.submit(0, 2, write(4608, 512, 2));
    rig.let_go();
    assert_eq!(rig.finish_all().len(), 3);
}

#[test]
fn zeroes_fua_writes_and_caching_reads_never_merge() {
    let make: [fn(u64) -> CommandOp; 3] = [
        |at| zero(at, 512, false),
        |at| crate::support::write_fua(at, 512, 1),
        |at| cache(at, 512),
    ];
    for make in make {
        let mut rig = Rig::held_back();
        rig.submit(0, 1, make(0));
        rig.submit(0, 2, make(512));
        rig.let_go();
        let shapes = rig.finish_all();
        let transfers = shapes.iter().filter(|shape| shape.range().is_some());
        assert_eq!(transfers.count(), 2, "{shapes:?}");
    }
}

#[test]
fn merging_stops_at_the_largest_request() {
    let mut rig = Rig::held_back();
    for number in 0..100 {
        rig.submit(0, number, read(number * 65536, 65536));
    }
    rig.let_go();
    let shapes = rig.finish_all();
    assert!(shapes.len() >= 5, "{}", shapes.len());
    for shape in &shapes {
        let (start, end) = shape.range().expect("reads");
        assert!(end - start <= LARGEST, "{shape:?}");
    }
}

#[test]
fn command_longer_than_the_largest_request_is_split() {
    let mut rig = Rig::new(SchedulerKind::Cfq, 4);
    for op in [read(512, 4 << 20), write(512, 4 << 20, 1), zero(512, 4 << 20, false)] {
        let ranges = ranges_of(&mut rig, op);
        assert_cover(&ranges, (512, 512 + (4 << 20)));
        assert_eq!(ranges.len(), 4);
        assert!(ranges.iter().all(|(start, end)| end - start <= LARGEST));
    }
}

#[test]
fn read_in_pieces_gives_its_data_in_order() {
    let mut rig = Rig::with_short_requests(SchedulerKind::Cfq, 8, 2);
    rig.submit(0, 1, read(100, 3000));
    while !rig.in_device.is_empty() {
        let last = rig.in_device.len() - 1;
        let transfer = &rig.in_device[last].1;
        let Transfer::Read { offset, .. } = transfer else { panic!("a read is read") };
        let bytes = (*offset..*offset + transfer.len()).map(|at| at.to_le_bytes()[0]);
        let data: Vec<u8> = bytes.collect();
        rig.finish_read(last, &data);
    }
    let data = rig.outcomes().remove(0).result.expect("all pieces were read").concat();
    let expected: Vec<u8> = (100u64..3100).map(|at| at.to_le_bytes()[0]).collect();
    assert_eq!(data, expected);
}

#[test]
fn huge_trim_is_split_at_4_mib() {
    let mut rig = Rig::new(SchedulerKind::Cfq, 4);
    let ranges = ranges_of(&mut rig, trim(0, u32::MAX - 511, false));
    assert_cover(&ranges, (0, u64::from(u32::MAX - 511)));
    assert_eq!(ranges.len(), 1024);
    assert!(ranges.iter().all(|(start, end)| end - start <= 4 << 20));
}

#[test]
fn the_longest_commands_at_the_end_of_the_largest_disk_are_taken() {
    let mut rig = Rig::new(SchedulerKind::Cfq, 4);
    let end = i64::MAX.cast_unsigned();
    let offset = end - u64::from(u32::MAX);
    let ranges = ranges_of(&mut rig, trim(offset, u32::MAX, false));
    assert_cover(&ranges, (offset, end));
}

#[test]
fn command_of_no_length_is_done_at_once() {
    let mut rig = Rig::new(SchedulerKind::Cfq, 4);
    let ops = [read(7, 0), cache(7, 0), write(7, 0, 1), trim(7, 0, true), zero(7, 0, false)];
    for op in ops {
        rig.submit(0, 1, op);
        assert!(rig.in_device.is_empty());
        assert_eq!(rig.results(), [(1, Ok(()))]);
    }
    assert!(rig.engine.is_idle());
}

#[test]
fn caching_read_gives_nothing() {
    let mut rig = Rig::new(SchedulerKind::Cfq, 4);
    rig.submit(0, 1, cache(512, 4096));
    assert_eq!(rig.finish_all(), [Shape::Cache { offset: 512, len: 4096 }]);
    let outcome = rig.outcomes().remove(0);
    assert!(outcome.result.expect("it was read").concat().is_empty());
}

fn fast_zero(allocate: bool) -> CommandOp {
    CommandOp::Zero { offset: 0, len: 4096, fua: false, allocate, fast: true }
}

#[test]
fn fast_zero_is_done_where_zeroing_is_fast() {
    let mut rig = Rig::new(SchedulerKind::Cfq, 4);
    assert_eq!(ranges_of(&mut rig, fast_zero(false)), [(0, 4096)]);
}

#[test]
fn fast_zero_that_would_be_slow_is_refused_and_changes_nothing() {
    let mut rig = Rig::new(SchedulerKind::Cfq, 4);
    rig.submit(0, 1, fast_zero(true));
    let (elevator, connections) = elevator(SchedulerKind::Cfq, 4);
    let mut slow = Rig::new(SchedulerKind::Cfq, 4);
    let capabilities = Capabilities { fast_zero: false, ..any_byte() };
    (slow.engine, slow.volume) = one_volume(elevator, &capabilities);
    slow.connections = connections;
    slow.submit(0, 1, fast_zero(false));
    for rig in [&mut rig, &mut slow] {
        assert!(rig.in_device.is_empty());
        assert_eq!(rig.results(), [(1, Err(Errno::OPNOTSUPP))]);
        assert!(rig.engine.is_idle());
    }
}

#[test]
fn what_is_queued_can_be_cancelled_and_what_is_in_the_device_ends_as_it_ends() {
    let mut rig = Rig::new(SchedulerKind::Cfq, 2);
    for tag in 0..6 {
        rig.submit(usize::from(tag % 2 == 1), tag, write(tag * 8192, 512, 1));
    }
    rig.submit(0, 6, CommandOp::Flush);
    rig.engine.cancel_queued(rig.clock.now());
    rig.settle();
    let mut cancelled = rig.results();
    cancelled.sort_by_key(|(tag, _)| *tag);
    let expected: Vec<_> = (2..6).map(|tag| (tag, Err(Errno::SHUTDOWN))).collect();
    assert_eq!(cancelled, expected);
    rig.finish_all();
    assert_eq!(rig.results(), [(0, Ok(())), (1, Ok(())), (6, Ok(()))]);
    assert!(rig.engine.is_idle());
    rig.submit(0, 7, read(0, 512));
    rig.finish_all();
    assert_eq!(rig.results(), [(7, Ok(()))], "an engine goes on after that");
}

#[test]
fn command_that_is_cancelled_in_part_is_answered_when_its_last_piece_has_left_the_device() {
    let mut rig = Rig::with_short_requests(SchedulerKind::Cfq, 1, 8);
    rig.submit(0, 1, zero(0, 3 * 4096, true));
    rig.engine.cancel_queued(rig.clock.now());
    rig.settle();
    assert_eq!(rig.results(), []);
    rig.finish_next();
    assert_eq!(rig.results(), [(1, Err(Errno::SHUTDOWN))]);
    assert!(rig.engine.is_idle() && rig.in_device.is_empty());
}

#[test]
fn what_the_elevator_turns_away_is_tried_again_in_order_and_can_be_cancelled() {
    let mut rig = Rig::new(SchedulerKind::MqDeadline, 1);
    rig.engine.administer(|elevator| elevator.set_nr_requests(Some(2)));
    for tag in 0..8 {
        rig.submit(0, tag, read(tag * 8192, 512));
    }
    for tag in 0..4 {
        assert_eq!(rig.finish_next().range(), Some((tag * 8192, tag * 8192 + SECTOR)));
        assert_eq!(rig.results(), [(tag, Ok(()))]);
    }
    rig.engine.cancel_queued(rig.clock.now());
    rig.settle();
    assert_eq!(rig.results(), [5, 6, 7].map(|tag| (tag, Err(Errno::SHUTDOWN))));
    rig.finish_all();
    assert_eq!(rig.results(), [(4, Ok(()))]);
    assert!(rig.engine.is_idle());
}

#[test]
fn what_was_called_to_try_again_or_is_to_be_issued_again_is_cancelled_too() {
    let mut rig = Rig::new(SchedulerKind::MqDeadline, 1);
    rig.engine.administer(|elevator| elevator.set_nr_requests(Some(1)));
    for tag in 0..3 {
        rig.submit(0, tag, read(tag * 8192, 512));
    }
    let (id, transfer) = rig.in_device.remove(0);
    let Transfer::Read { parts, .. } = transfer else { panic!("a read is read") };
    let now = rig.clock.now();
    let filled = in_parts(&parts, &[0; 100]);
    rig.engine.transfer_done(now, id, Transferred::new(Ok(100), filled));
    rig.engine.cancel_queued(now);
    rig.settle();
    let mut results = rig.results();
    results.sort_by_key(|(tag, _)| *tag);
    assert_eq!(results, [0, 1, 2].map(|tag| (tag, Err(Errno::SHUTDOWN))));
    assert!(rig.engine.is_idle() && rig.in_device.is_empty());
}

/// 65 kB of commands once made 2.1 GiB of pieces.
#[test]
fn command_of_4_gib_has_four_pieces_at_a_time_and_all_of_it_is_done_in_order() {
    const LEN: u32 = u32::MAX - 100;
    for op in [cache(700, LEN), zero(700, LEN, false), trim(700, LEN, false)] {
        let mut rig = Rig::new(SchedulerKind::None, 64);
        rig.submit(0, 1, op);
        let mut at = 700;
        while !rig.in_device.is_empty() {
            assert!(rig.in_device.len() <= 4, "{} pieces", rig.in_device.len());
            let (start, end) = rig.finish_next().range().expect("no sync");
            assert_eq!(start, at);
            at = end;
        }
        assert_eq!(at, 700 + u64::from(LEN));
        assert_eq!(rig.results(), [(1, Ok(()))]);
    }
}

#[test]
fn commands_that_wait_queue_four_pieces_each() {
    let mut rig = Rig::held_back();
    for tag in 0..100 {
        rig.submit(0, tag, cache(0, u32::MAX));
    }
    assert_eq!(rig.engine.elevator().queued(), 400);
}

#[test]
fn command_that_has_failed_is_not_cut_any_further() {
    let mut rig = Rig::new(SchedulerKind::None, 64);
    rig.submit(0, 1, zero(0, u32::MAX, false));
    rig.finish_nth(2, Err(Errno::NOSPC));
    assert_eq!(rig.finish_all().len(), 3);
    assert_eq!(rig.results(), [(1, Err(Errno::NOSPC))]);
    assert!(rig.engine.is_idle());
}

#[test]
fn what_is_not_cut_yet_is_cancelled_too() {
    let mut rig = Rig::new(SchedulerKind::None, 2);
    rig.submit(0, 1, cache(0, u32::MAX));
    rig.engine.cancel_queued(rig.clock.now());
    rig.settle();
    assert_eq!(rig.results(), []);
    assert_eq!(rig.finish_all().len(), 2);
    assert_eq!(rig.results(), [(1, Err(Errno::SHUTDOWN))]);
    assert!(rig.engine.is_idle());
}

/// Both are there when the first transfer begins: so they are one.
#[test]
fn commands_that_arrive_before_a_step_are_in_the_scheduler_before_the_first_transfer() {
    let Rig { mut engine, volume, clock, connections, .. } = Rig::new(SchedulerKind::MqDeadline, 8);
    for (tag, offset) in [(1u64, 512), (2, 0)] {
        let (ioc, op) = (connections[0], read(offset, 512));
        engine.submit(clock.now(), Command { tag: tag.into(), volume, ioc, op });
        clock.advance(Nanos::from_micros(1));
    }
    let mut started = Vec::new();
    let mut start = |_, _, transfer| started.push(Shape::of(&transfer));
    while engine.step(|| clock.now(), &mut start).is_continue() {}
    assert_eq!(started, [Shape::Read { offset: 0, parts: vec![512, 512] }]);
}

/// Five pieces, one in the device at a time, where to begin a transfer takes 10 ms. Four are there
/// at 0 and wait until 0, 10, 20 and 30 ms. The first is done at 10 ms; before the fifth is
/// submitted the second begins, until 20 ms. From then it waits until 40 ms.
#[test]
fn bio_is_submitted_at_a_moment_of_its_own() {
    let mut rig = Rig::with_short_requests(SchedulerKind::None, 1, 8);
    let (volume, ioc) = (rig.volume, rig.connections[0]);
    let whole = Command { tag: 1.into(), volume, ioc, op: read(0, 5 * 4096) };
    rig.engine.submit(rig.clock.now(), whole);
    let mut in_device = Vec::new();
    for _ in 0..6 {
        let Rig { engine, clock, .. } = &mut rig;
        let mut start = |_, id, transfer: Transfer| {
            in_device.push((id, transfer.len()));
            clock.advance(Nanos::from_millis(10));
        };
        while engine.step(|| clock.now(), &mut start).is_continue() {}
        if let Some((id, len)) = in_device.pop() {
            let filled = in_parts(&[4096], &[0; 4096]);
            engine.transfer_done(clock.now(), id, Transferred::new(Ok(len), filled));
        }
    }
    assert_eq!(rig.results(), [(1, Ok(()))]);
    let elevator = rig.engine.elevator();
    let waits = elevator.groups().iter().map(|(group, _)| elevator.stats().group(group));
    let waits: u64 = waits.map(|group| group.op(Op::Read).wait.as_nanos()).sum();
    assert_eq!(Nanos::new(waits), Nanos::from_millis(10 + 20 + 30 + 20));
}
