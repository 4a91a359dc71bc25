//! Eight connections write byte ranges that share sectors, merging on, through the real loop:
//! every byte is compared.

mod support;

use std::path::Path;

use bytes::Bytes;
use paternoster::SchedulerKind;
use paternoster_disk::{Backend, CommandOp, FileBackend, MemoryBackend};

use support::front::{Answers, play};
use support::random::Random;
use support::{read, trim, within_a_minute, zero};

const DISK: usize = 3 << 20;

/// Tiles the disk with ranges of 1 to 9000 bytes, three quarters of which end with a sector.
fn tiles(random: &mut Random) -> Vec<(usize, usize)> {
    let mut tiles = Vec::new();
    let mut at = 0;
    while at < DISK {
        let mut end = at + 1 + random.index(9000);
        if !random.once_in(4) {
            end = end.next_multiple_of(512).min(at + 9000);
        }
        let end = end.min(DISK);
        tiles.push((at, end));
        at = end;
    }
    tiles
}

/// Swaps neighbours here and there: near enough to merge, at either end.
fn shuffle_a_little(tiles: &mut [(usize, usize)], random: &mut Random) {
    for index in 1..tiles.len() {
        if random.once_in(3) {
            tiles.swap(index, index - 1);
        }
    }
}

/// Writes every byte once, then writes, trims and zeroes some again, then reads all.
fn play_byte_ranges(backend: Box<dyn Backend>, kind: SchedulerKind, seed: u64) {
    let mut random = Random::new(seed);
    let mut model = vec![0; DISK];
    let mut phases = Vec::new();
    for share in [1, 4] {
        let mut ranges = tiles(&mut random);
        ranges.retain(|_| random.once_in(share));
        shuffle_a_little(&mut ranges, &mut random);
        let commands = ranges.iter().map(|&range| change(&mut model, range, share, &mut random));
        phases.push(commands.collect());
    }
    let mut reads = tiles(&mut random);
    shuffle_a_little(&mut reads, &mut random);
    phases.push(reads.iter().map(|&(at, end)| read(at as u64, len_u32(at, end))).collect());
    let (answers, merges) = play(backend, kind, phases);
    assert!(merges > 0, "something merged");
    assert_all_succeeded(&answers[0]);
    assert_all_succeeded(&answers[1]);
    for ((at, end), answer) in reads.into_iter().zip(&answers[2]) {
        let data = answer.as_ref().expect("it is read");
        assert!(*data == model[at..end], "{kind}, seed {seed}: bytes {at} to {end} differ");
    }
}

/// A write of random bytes; where only a share of the disk is changed, also a trim or zeroes.
fn change(
    model: &mut [u8],
    (at, end): (usize, usize),
    share: u64,
    random: &mut Random,
) -> CommandOp {
    let (offset, len) = (at as u64, len_u32(at, end));
    if share > 1 && random.once_in(3) {
        model[at..end].fill(0);
        return if random.once_in(2) { trim(offset, len, false) } else { zero(offset, len, true) };
    }
    model[at..end].fill_with(|| random.next().to_le_bytes()[0]);
    let data = Bytes::copy_from_slice(&model[at..end]);
    CommandOp::Write { offset, data, fua: random.once_in(16) }
}

fn len_u32(at: usize, end: usize) -> u32 {
    u32::try_from(end - at).expect("at most 9000")
}

fn assert_all_succeeded(answers: &Answers) {
    for (number, answer) in answers.iter().enumerate() {
        assert!(answer.is_ok(), "command {number}: {answer:?}");
    }
}

fn file_of(size: usize, folder: &Path) -> Box<dyn Backend> {
    let path = folder.join("disk.img");
    let file = std::fs::File::create(&path).expect("a file");
    file.set_len(size as u64).expect("room for a hole");
    Box::new(FileBackend::open(&path, false).expect("it opens"))
}

const SCHEDULERS: [SchedulerKind; SchedulerKind::ALL.len()] = SchedulerKind::ALL;

#[test]
fn every_byte_written_to_a_file_is_read_back() {
    within_a_minute(|| {
        for (seed, kind) in (0..).zip(SCHEDULERS) {
            let folder = tempfile::tempdir().expect("a temporary folder");
            play_byte_ranges(file_of(DISK, folder.path()), kind, seed);
        }
    });
}

#[test]
fn every_byte_written_to_memory_is_read_back() {
    within_a_minute(|| {
        for (seed, kind) in (10..).zip(SCHEDULERS) {
            play_byte_ranges(Box::new(MemoryBackend::new(DISK)), kind, seed);
        }
    });
}
