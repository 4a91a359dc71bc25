//! Failed and short transfers: each client gets its own result, and the rest is tried again.

use paternoster::SchedulerKind;
use paternoster_disk::{Buffers, CommandOp, Transfer, Transferred};
use rustix::io::Errno;

use crate::support::{Rig, Shape, cache, read, trim, write, write_fua};

/// Four reads of 8 sectors each by the two connections of a tenant, one behind the other: one
/// transfer.
fn four_merged_reads() -> Rig {
    let mut rig = Rig::held_back();
    for (tag, connection) in [(0, 0), (1, 1), (2, 0), (3, 1)] {
        rig.submit(connection, tag, read(tag * 4096, 4096));
    }
    rig.let_go();
    assert_eq!(rig.shapes(), [Shape::Read { offset: 0, parts: vec![4096; 4] }]);
    rig
}

fn ok(tags: &[u64]) -> Vec<(u64, Result<(), Errno>)> {
    tags.iter().map(|&tag| (tag, Ok(()))).collect()
}

/// Ends all that is in the device, with EIO where a transfer covers that byte: what was tried.
fn finish_with_bad_byte(rig: &mut Rig, bad: u64) -> Vec<Shape> {
    let mut tried = Vec::new();
    while let Some((_, transfer)) = rig.in_device.first() {
        let shape = Shape::of(transfer);
        let (start, end) = shape.range().expect("there is no sync");
        let result = if (start..end).contains(&bad) { Err(Errno::IO) } else { Ok(end - start) };
        tried.push(shape);
        rig.finish_nth(0, result);
    }
    tried
}

#[test]
fn one_bad_sector_in_a_merged_read_is_one_commands_trouble() {
    let mut rig = four_merged_reads();
    let tried = finish_with_bad_byte(&mut rig, 2 * 4096 + 700);
    assert_eq!(tried.len(), 5, "once together, then each alone: {tried:?}");
    let mut results = rig.results();
    results.sort_by_key(|(tag, _)| *tag);
    assert_eq!(results, [(0, Ok(())), (1, Ok(())), (2, Err(Errno::IO)), (3, Ok(()))]);
    assert!(rig.engine.is_idle());
}

#[test]
fn what_is_issued_again_is_issued_alone_and_never_merges() {
    let mut rig = four_merged_reads();
    rig.submit(1, 4, read(4 * 4096, 4096)); // A fifth neighbour, which waits behind.
    rig.finish_nth(0, Err(Errno::IO));
    let shapes = rig.finish_all();
    let alone = |at: u64| Shape::Read { offset: at * 4096, parts: vec![4096] };
    assert_eq!(shapes.len(), 5, "{shapes:?}");
    for number in 0..5 {
        assert!(shapes.contains(&alone(number)), "{shapes:?}");
    }
}

#[test]
fn what_lies_inside_a_short_transfer_succeeds_at_once_and_the_rest_is_issued() {
    let mut rig = four_merged_reads();
    rig.finish_nth(0, Ok(2 * 4096 + 1));
    assert_eq!(rig.results(), ok(&[0, 1]));
    let alone = |offset, len| Shape::Read { offset, parts: vec![len] };
    assert_eq!(rig.finish_all(), [alone(2 * 4096 + 1, 4095), alone(3 * 4096, 4096)]);
    assert_eq!(rig.results(), ok(&[2, 3]));
}

#[test]
fn short_transfer_that_ends_between_two_commands_splits_them_there() {
    let mut rig = four_merged_reads();
    rig.finish_nth(0, Ok(3 * 4096));
    assert_eq!(rig.results(), ok(&[0, 1, 2]));
    assert_eq!(rig.finish_all(), [Shape::Read { offset: 3 * 4096, parts: vec![4096] }]);
}

#[test]
fn data_in_a_short_transfer_goes_to_the_commands_that_it_is_of() {
    let mut rig = four_merged_reads();
    rig.finish_read(0, &[[1; 4096], [2; 4096]].concat());
    for (tag, outcome) in (0u64..).zip(rig.outcomes()) {
        assert_eq!(outcome.tag.key, tag);
        let data = outcome.result.expect("it is inside what was transferred").concat();
        assert_eq!(data, vec![u8::try_from(tag + 1).expect("1 or 2"); 4096]);
    }
}

/// A client would have taken the next reply for the rest of its data.
#[test]
fn read_of_which_not_all_bytes_came_fails() {
    let mut rig = Rig::new(SchedulerKind::None, 1);
    rig.submit(0, 1, read(0, 4096));
    let (id, _) = rig.in_device.remove(0);
    let transferred = Transferred::new(Ok(4096), Buffers::new());
    rig.engine.transfer_done(rig.clock.now(), id, transferred);
    assert_eq!(rig.results(), [(1, Err(Errno::IO))]);
}

#[test]
fn short_transfer_goes_on_with_its_rest_until_all_is_done() {
    for op in [read(100, 5000), write(100, 5000, 1), write_fua(100, 5000, 1), cache(100, 5000)] {
        let mut rig = Rig::new(SchedulerKind::Cfq, 4);
        rig.submit(0, 1, op);
        for start in [100, 1100, 1101, 5098] {
            let range = (start, 5100);
            assert_eq!(rig.shapes().iter().map(Shape::range).collect::<Vec<_>>(), [Some(range)]);
            assert_eq!(rig.results(), []);
            let next = [(100, 1000), (1100, 1), (1101, 3997), (5098, 2)];
            let moved = next.iter().find(|(from, _)| *from == start).expect("one of these").1;
            rig.finish_nth(0, Ok(moved));
        }
        rig.finish_all();
        assert_eq!(rig.results(), ok(&[1]));
    }
}

#[test]
fn data_of_a_read_that_came_in_parts_is_put_together() {
    let mut rig = Rig::with_short_requests(SchedulerKind::Cfq, 1, 8);
    let disk: Vec<u8> = (0..=255).cycle().take(10_000).collect();
    rig.submit(0, 1, read(700, 9000));
    while let Some((_, transfer)) = rig.in_device.first() {
        let Transfer::Read { offset, parts } = transfer else { panic!("a read") };
        let &[len] = parts.as_slice() else { panic!("of one piece") };
        let moved = (len as usize).min(1500);
        let from = usize::try_from(*offset).expect("small");
        rig.finish_read(0, &disk[from..from + moved]);
    }
    let outcome = rig.outcomes().remove(0);
    assert!(outcome.result.expect("all was read").concat() == disk[700..9700], "the same bytes");
}

#[test]
fn data_of_a_write_that_went_in_parts_is_what_was_to_be_written() {
    let data: Vec<u8> = (0..=255).cycle().take(5000).collect();
    let mut rig = Rig::new(SchedulerKind::Cfq, 4);
    let op = CommandOp::Write { offset: 300, data: data.clone().into(), fua: false };
    rig.submit(0, 1, op);
    let mut disk = vec![0; 6000];
    while let Some((_, Transfer::Write { offset, from })) = rig.in_device.first() {
        let (at, from) = (usize::try_from(*offset).expect("small"), from.concat());
        let moved = from.len().min(777);
        disk[at..at + moved].copy_from_slice(&from[..moved]);
        rig.finish_nth(0, Ok(moved as u64));
    }
    assert_eq!(rig.results(), ok(&[1]));
    assert!(disk[300..5300] == data, "the same bytes");
}

#[test]
fn short_transfer_s_rest_brings_the_error() {
    for op in [write(0, 5000, 1), write_fua(0, 5000, 1)] {
        let mut rig = Rig::new(SchedulerKind::Cfq, 4);
        rig.submit(0, 1, op);
        rig.finish_nth(0, Ok(4096));
        rig.finish_nth(0, Err(Errno::NOSPC));
        assert_eq!(rig.results(), [(1, Err(Errno::NOSPC))]);
        assert!(rig.engine.is_idle() && rig.in_device.is_empty());
    }
}

#[test]
fn transfer_that_moves_nothing_is_eio_and_no_loop() {
    for op in [read(0, 512), write(0, 512, 1), write_fua(0, 512, 1)] {
        for moved_before in [0, 300] {
            let mut rig = Rig::new(SchedulerKind::Cfq, 4);
            rig.submit(0, 1, op.clone());
            if moved_before > 0 {
                rig.finish_nth(0, Ok(moved_before));
            }
            rig.finish_nth(0, Ok(0));
            assert_eq!(rig.results(), [(1, Err(Errno::IO))]);
            assert!(rig.engine.is_idle() && rig.in_device.is_empty());
        }
    }
}

#[test]
fn merged_transfer_that_moves_nothing_is_tried_again_one_by_one() {
    let mut rig = four_merged_reads();
    rig.finish_nth(0, Ok(0));
    assert_eq!(rig.finish_all().len(), 4);
    assert_eq!(rig.results(), ok(&[0, 1, 2, 3]));
}

#[test]
fn single_transfer_that_fails_is_not_tried_again() {
    let mut rig = Rig::new(SchedulerKind::Cfq, 4);
    rig.submit(0, 1, read(0, 512));
    rig.finish_nth(0, Err(Errno::NOSPC));
    assert_eq!(rig.results(), [(1, Err(Errno::NOSPC))]);
    assert!(rig.engine.is_idle() && rig.in_device.is_empty());
}

#[test]
fn second_failure_is_final_and_its_error_is_what_is_told() {
    let mut rig = four_merged_reads();
    rig.finish_nth(0, Err(Errno::IO));
    for error in [Errno::NOSPC, Errno::NXIO, Errno::PERM, Errno::DQUOT] {
        rig.finish_nth(0, Err(error));
    }
    let errors = [Errno::NOSPC, Errno::NXIO, Errno::PERM, Errno::DQUOT];
    let expected: Vec<_> = (0..).zip(errors.map(Err::<(), _>)).collect();
    assert_eq!(rig.results(), expected);
    assert!(rig.engine.is_idle() && rig.in_device.is_empty());
}

#[test]
fn merged_trim_that_fails_is_tried_again_range_by_range() {
    let mut rig = Rig::held_back();
    rig.submit(0, 1, trim(0, 4096, false));
    rig.submit(0, 2, trim(4096, 4096, false));
    rig.let_go();
    assert_eq!(rig.shapes(), [Shape::Trim { offset: 0, len: 8192 }]);
    rig.finish_nth(0, Err(Errno::IO));
    let alone = |offset| Shape::Trim { offset, len: 4096 };
    assert_eq!(rig.finish_all(), [alone(0), alone(4096)]);
    assert_eq!(rig.results(), ok(&[1, 2]));
}

/// A write in three pieces, all in the device.
fn write_in_three_pieces() -> Rig {
    let mut rig = Rig::with_short_requests(SchedulerKind::Cfq, 8, 8);
    rig.submit(0, 1, write(0, 3 * 4096, 7));
    assert_eq!(rig.in_device.len(), 3);
    rig
}

#[test]
fn command_in_pieces_fails_only_when_all_its_pieces_are_done() {
    let mut rig = write_in_three_pieces();
    rig.finish_nth(1, Err(Errno::IO));
    assert_eq!(rig.results(), []);
    rig.finish_nth(1, Ok(4096));
    assert_eq!(rig.results(), []);
    rig.finish_nth(0, Ok(4096));
    assert_eq!(rig.results(), [(1, Err(Errno::IO))]);
}

#[test]
fn command_in_pieces_fails_with_the_error_of_its_first_piece_that_failed() {
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let mut rig = write_in_three_pieces();
        let ids: Vec<_> = rig.in_device.iter().map(|(id, _)| *id).collect();
        let results = [Ok(4096), Err(Errno::NOSPC), Err(Errno::IO)];
        for piece in order {
            rig.finish(ids[piece], results[piece]);
        }
        assert_eq!(rig.results(), [(1, Err(Errno::NOSPC))], "{order:?}");
    }
}

#[test]
fn pieces_of_one_command_do_not_fail_others() {
    let mut rig = write_in_three_pieces();
    rig.submit(1, 2, write(1 << 20, 4096, 8));
    for _ in 0..3 {
        rig.finish_nth(0, Err(Errno::IO));
    }
    rig.finish_next();
    assert_eq!(rig.results(), [(1, Err(Errno::IO)), (2, Ok(()))]);
}
