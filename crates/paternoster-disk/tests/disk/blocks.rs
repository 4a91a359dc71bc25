//! A device that takes whole blocks only: what covers a part of one is a read-modify-write, which
//! holds it.

use bytes::Bytes;
use paternoster::{Nanos, SchedulerKind};
use paternoster_disk::{Capabilities, CommandOp, Granules, Transfer};
use rustix::io::Errno;

use crate::support::{Rig, Shape, any_byte, read, trim, write, write_fua, zero};

const BLOCK: u64 = 4096;

/// A device of blocks of 4096 bytes.
const BLOCKS: Capabilities = Capabilities { block: 4096, ..Capabilities::new(1 << 50, 4) };

fn rig() -> Rig {
    Rig::of(SchedulerKind::None, 4, &BLOCKS)
}

fn read_of(offset: u64, len: usize) -> Shape {
    Shape::Read { offset, parts: vec![len] }
}

/// The bytes that the first transfer in the device writes.
fn written(rig: &Rig) -> (u64, Vec<u8>) {
    let Transfer::Write { offset, from } = &rig.in_device[0].1 else { panic!("it is a write") };
    (*offset, from.concat())
}

fn tags(rig: &mut Rig) -> Vec<u64> {
    rig.results()
        .into_iter()
        .map(|(tag, result)| result.map(|()| tag).expect("it succeeds"))
        .collect()
}

#[test]
fn write_of_a_part_of_a_block_reads_it_and_writes_all() {
    let mut rig = rig();
    rig.submit(0, 1, write(BLOCK + 10, 20, 7));
    assert_eq!(rig.shapes(), [read_of(BLOCK, 4096)]);
    rig.finish_read(0, &[1; 4096]);
    let (offset, bytes) = written(&rig);
    let expected = [&[1; 10][..], &[7; 20], &[1; 4066]].concat();
    assert_eq!((offset, bytes), (BLOCK, expected));
    assert!(rig.outcomes().is_empty(), "it is done when all is written");
    rig.finish_next();
    assert_eq!(tags(&mut rig), [1]);
}

/// One request and two transfers: three blocks and a bit, of which the last is read.
#[test]
fn only_the_block_at_its_end_is_read() {
    let mut rig = rig();
    rig.submit(0, 1, write(0, 3 * 4096 + 100, 7));
    assert_eq!(rig.shapes(), [read_of(3 * BLOCK, 4096)]);
    rig.finish_read(0, &[1; 4096]);
    let (offset, bytes) = written(&rig);
    assert_eq!((offset, bytes.len()), (0, 4 * 4096));
    assert!(bytes[..3 * 4096 + 100].iter().all(|&byte| byte == 7));
    assert!(bytes[3 * 4096 + 100..].iter().all(|&byte| byte == 1));
}

/// Else three transfers would be needed.
#[test]
fn ends_that_are_apart_are_two_requests_and_neighbours_are_one() {
    let mut apart = rig();
    apart.submit(0, 1, write(10, 3 * 4096, 7));
    assert_eq!(apart.shapes(), [read_of(0, 4096), read_of(3 * BLOCK, 4096)]);
    let mut neighbours = rig();
    neighbours.submit(0, 1, write(10, 4096, 7));
    assert_eq!(neighbours.shapes(), [read_of(0, 8192)]);
}

#[test]
fn whole_blocks_are_written_at_once() {
    let mut rig = rig();
    rig.submit(0, 1, write(BLOCK, 8192, 7));
    assert_eq!(rig.shapes(), [Shape::Write { offset: BLOCK, parts: vec![8192] }]);
}

#[test]
fn client_gets_the_bytes_that_it_asked_for_of_whole_blocks() {
    let mut rig = rig();
    rig.submit(0, 1, read(BLOCK + 4090, 10));
    assert_eq!(rig.shapes(), [read_of(BLOCK, 8192)]);
    let bytes: Vec<u8> = (0..=255).cycle().take(8192).collect();
    rig.finish_read(0, &bytes);
    let outcome = rig.outcomes().pop().expect("it is done");
    assert_eq!(outcome.result.expect("it succeeds").concat(), bytes[4090..4100]);
}

#[test]
fn nothing_that_touches_a_held_block_starts_until_it_is_done() {
    let mut rig = rig();
    rig.submit(0, 1, write(BLOCK + 10, 20, 7));
    rig.submit(0, 2, read(BLOCK, 512));
    rig.submit(1, 3, write(0, 3 * 4096, 8));
    rig.submit(2, 4, trim(BLOCK, 4096, false));
    rig.submit(2, 5, read(4 * BLOCK, 4096));
    assert_eq!(rig.shapes(), [read_of(BLOCK, 4096), read_of(4 * BLOCK, 4096)]);
    assert_eq!(rig.engine.waiting_for_blocks(), 3);
    rig.finish_read(0, &[1; 4096]);
    assert_eq!(rig.engine.waiting_for_blocks(), 3, "it has yet to be written");
    rig.finish_nth(1, Ok(4096));
    assert_eq!(rig.engine.waiting_for_blocks(), 0);
    assert_eq!(rig.in_device.len(), 4, "they share it");
}

/// A write that shares the block has begun and may end at any time: what is read before would undo
/// it.
#[test]
fn block_is_held_when_those_before_are_done() {
    let mut rig = rig();
    rig.submit(0, 1, write(0, 8192, 8));
    rig.submit(0, 2, read(BLOCK, 4096));
    rig.submit(1, 3, write(BLOCK + 1, 1, 7));
    rig.submit(2, 4, read(BLOCK, 4096));
    assert_eq!((rig.in_device.len(), rig.engine.waiting_for_blocks()), (2, 2));
    rig.finish_next();
    assert_eq!(rig.engine.waiting_for_blocks(), 2, "the read is left");
    rig.finish_next();
    assert_eq!(rig.shapes(), [read_of(BLOCK, 4096)]);
    assert_eq!(rig.engine.waiting_for_blocks(), 1, "the second read came after the write");
    assert_eq!(tags(&mut rig), [1, 2]);
}

/// What waits takes no place in the device: others go on at its whole depth.
#[test]
fn who_waits_for_a_block_takes_no_place_in_the_device() {
    let mut rig = rig();
    for tag in 0..64 {
        rig.submit(0, tag, write(tag * 64, 64, 1));
    }
    for tag in 64..67 {
        rig.submit(2, tag, read(tag * BLOCK, 4096));
    }
    assert_eq!(rig.in_device.len(), 4, "one of the writes, and three reads");
}

#[test]
fn parts_of_a_block_are_written_in_the_order_of_their_arrival() {
    let mut rig = rig();
    for tag in 0..4 {
        rig.submit(0, tag, write(10 * tag, 10, 1));
    }
    for tag in 0..4 {
        assert_eq!(rig.shapes(), [read_of(0, 4096)]);
        rig.finish_next();
        assert!(rig.outcomes().is_empty());
        rig.finish_next();
        assert_eq!(tags(&mut rig), [tag]);
    }
}

#[test]
fn parts_of_blocks_never_merge_and_whole_ones_do() {
    let mut rig = Rig::held_back_on(&BLOCKS);
    rig.submit(0, 1, write(0, 4096, 1));
    rig.submit(0, 2, write(4096, 4096, 2));
    rig.submit(0, 3, write(8192, 512, 3));
    rig.submit(0, 4, read(1 << 20, 512));
    rig.submit(0, 5, read((1 << 20) + 512, 512));
    rig.let_go();
    let shapes = rig.finish_all();
    assert!(shapes.contains(&Shape::Write { offset: 0, parts: vec![4096, 4096] }), "{shapes:?}");
    assert_eq!(shapes.iter().filter(|shape| **shape == read_of(1 << 20, 4096)).count(), 2);
}

#[test]
fn zeroes_that_are_no_whole_blocks_are_written() {
    let mut rig = rig();
    rig.submit(0, 1, zero(BLOCK - 100, 8192, false));
    let zeroes = Shape::Zero { offset: BLOCK, len: 4096, allocate: false };
    assert_eq!(rig.shapes(), [read_of(0, 4096), zeroes, read_of(2 * BLOCK, 4096)]);
    rig.finish_read(0, &[1; 4096]);
    rig.finish_next();
    rig.finish_read(0, &[1; 4096]);
    let (offset, bytes) = written(&rig);
    assert_eq!((offset, bytes), (0, [&[1; 3996][..], &[0; 100]].concat()));
}

#[test]
fn fast_zeroes_of_no_whole_block_are_refused() {
    let mut rig = rig();
    let op = |offset, len| CommandOp::Zero { offset, len, fua: false, allocate: false, fast: true };
    rig.submit(0, 1, op(10, 4096));
    assert_eq!(rig.results(), [(1, Err(Errno::OPNOTSUPP))]);
    rig.submit(0, 2, op(10, 8192));
    rig.finish_all();
    assert_eq!(rig.results(), [(2, Ok(()))]);
}

#[test]
fn only_whole_blocks_are_trimmed() {
    let mut rig = rig();
    rig.submit(0, 1, trim(10, 8192, false));
    assert_eq!(rig.shapes(), [Shape::Trim { offset: BLOCK, len: 4096 }]);
    rig.finish_next();
    rig.submit(0, 2, trim(10, 4096, false));
    assert!(rig.in_device.is_empty(), "there is none");
    assert_eq!(tags(&mut rig), [1, 2]);
}

#[test]
fn trim_of_nothing_that_is_to_be_durable_waits_for_its_sync() {
    let mut rig = rig();
    rig.submit(0, 1, trim(10, 100, true));
    assert_eq!(rig.shapes(), [Shape::sync_of(10..110)]);
    rig.finish_next();
    assert_eq!(tags(&mut rig), [1]);
}

#[test]
fn fua_is_on_the_write_and_not_on_the_read() {
    let mut rig = rig();
    rig.submit(0, 1, write_fua(10, 20, 7));
    assert_eq!(rig.finish_next(), read_of(0, 4096));
    assert_eq!(rig.shapes(), [Shape::Write { offset: 0, parts: vec![10, 20, 4066] }]);
    rig.finish_next();
    assert_eq!(rig.shapes(), [Shape::sync_of(10..30)]);
}

/// The last block of a file may be short, and is no other's.
#[test]
fn last_block_ends_with_the_disk_and_is_a_request_of_its_own() {
    let size = 10 * BLOCK + 700;
    let mut rig = Rig::of(SchedulerKind::None, 4, &Capabilities { size, ..BLOCKS });
    rig.submit(0, 1, write(9 * BLOCK, 4096 + 700, 7));
    let whole = |offset, len| Shape::Write { offset, parts: vec![len] };
    assert_eq!(rig.shapes(), [whole(9 * BLOCK, 4096), whole(10 * BLOCK, 700)]);
    rig.finish_all();
    rig.submit(0, 2, write(10 * BLOCK, 100, 7));
    assert_eq!(rig.shapes(), [read_of(10 * BLOCK, 700)]);
}

#[test]
fn read_that_fails_leaves_the_block_as_it_was_and_lets_others_have_it() {
    for result in [Err(Errno::IO), Ok(512)] {
        let mut rig = rig();
        rig.submit(0, 1, write(10, 20, 7));
        rig.submit(1, 2, read(0, 512));
        rig.finish_nth(0, result);
        assert_eq!(rig.results(), [(1, Err(Errno::IO))]);
        assert_eq!(rig.shapes(), [read_of(0, 4096)], "the other's");
        rig.finish_next();
        assert_eq!(tags(&mut rig), [2]);
    }
}

/// A transfer that ends inside a block has not written it.
#[test]
fn block_that_was_written_in_part_is_written_again() {
    let mut rig = rig();
    rig.submit(0, 1, write(0, 8192, 7));
    rig.finish_nth(0, Ok(5000));
    assert_eq!(rig.shapes(), [Shape::Write { offset: BLOCK, parts: vec![4096] }]);
}

#[test]
fn what_waits_for_a_block_is_cancelled_and_what_holds_it_ends() {
    let mut rig = rig();
    rig.submit(0, 1, write(10, 20, 7));
    rig.submit(0, 2, write(40, 20, 7));
    rig.submit(1, 3, read(0, 8192));
    rig.submit(1, 4, write(4000, 200, 7));
    rig.engine.cancel_queued(rig.clock.now());
    rig.settle();
    let shutdown = Err(Errno::SHUTDOWN);
    let mut results = rig.results();
    results.sort_unstable_by_key(|&(tag, _)| tag);
    assert_eq!(results, [(2, shutdown), (3, shutdown), (4, shutdown)]);
    rig.finish_all();
    assert_eq!(tags(&mut rig), [1]);
    assert!(rig.engine.is_idle());
    rig.submit(0, 5, read(0, 4096));
    assert_eq!(rig.shapes(), [read_of(0, 4096)], "nobody holds it");
}

/// How many reads a tenant has done in 200 rounds in each of which all that is in a device of 32
/// places is done, while another has so many writes of 512 bytes to one block outstanding.
fn reads_beside(kind: SchedulerKind, writes: u64) -> u64 {
    let mut rig = Rig::of(kind, 32, &BLOCKS);
    (0..writes).for_each(|tag| rig.submit(0, tag, write(tag % 8 * 512, 512, 1)));
    let mut next = 1000..;
    let mut submit_read = |rig: &mut Rig| {
        let tag = next.next().expect("it has no end");
        rig.submit(2, tag, read(2 * tag * BLOCK, 4096)); // no neighbours, which would merge
    };
    (0..64).for_each(|_| submit_read(&mut rig));
    let mut reads = 0;
    for _ in 0..200 {
        rig.clock.advance(Nanos::from_micros(100));
        for _ in 0..rig.in_device.len() {
            rig.finish_next();
        }
        for (tag, _) in rig.results() {
            if tag < 1000 {
                rig.submit(0, tag, write(tag % 8 * 512, 512, 1));
            } else {
                reads += 1;
                submit_read(&mut rig);
            }
        }
    }
    reads
}

/// The one whose writes wait for each other has one place of 32, not 64 of them.
#[test]
fn many_writes_to_one_block_leave_the_device_to_others() {
    for kind in [SchedulerKind::None, SchedulerKind::MqDeadline] {
        let (alone, beside) = (reads_beside(kind, 0), reads_beside(kind, 64));
        assert_eq!(alone, 200 * 32, "{kind}: the device is full");
        assert!(beside * 100 >= alone * 95, "{kind}: {beside} of {alone}");
    }
}

#[test]
fn where_any_byte_can_be_written_nothing_waits() {
    let mut rig = Rig::of(SchedulerKind::None, 4, &any_byte());
    rig.submit(0, 1, write(10, 20, 7));
    rig.submit(0, 2, CommandOp::Write { offset: 30, data: Bytes::from_static(b"x"), fua: false });
    assert_eq!(rig.in_device.len(), 2);
}

/// A device that forgets 8 MiB at a time, from the second MiB on: longer than a piece of a trim is
/// elsewhere.
#[test]
fn trim_is_cut_to_granules_before_it_is_cut_into_pieces() {
    const MIB: u64 = 1 << 20;
    let granules = Some(Granules::new(8 << 20, 1 << 20));
    let mut rig = Rig::of(SchedulerKind::None, 4, &Capabilities { granules, ..BLOCKS });
    rig.submit(0, 1, trim(512, 30 << 20, false));
    let forgotten = |start| Shape::Trim { offset: start * MIB, len: 8 * MIB };
    assert_eq!(rig.finish_all(), [1, 9, 17].map(forgotten));
    assert_eq!(tags(&mut rig), [1]);
    rig.submit(0, 2, trim(2 * MIB, 8 << 20, false));
    assert!(rig.in_device.is_empty(), "no granule is whole");
    assert_eq!(tags(&mut rig), [2], "which is as good as forgotten");
}
