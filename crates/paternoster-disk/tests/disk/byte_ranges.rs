//! Eight connections write byte ranges that share sectors, merging on, through the real loop:
//! every byte is compared.

use std::path::Path;

use bytes::Bytes;
use paternoster::SchedulerKind;
use paternoster_disk::{Backend, CacheChoice, Capabilities, CommandOp, MemoryBackend};

use crate::support::devices::LoopDevice;
use crate::support::front::{Answers, play};
use crate::support::random::Random;
use crate::support::{open_file, read, trim, trimmed, within_a_minute, zero};

/// Its last block is short.
const DISK: usize = (3 << 20) + 700;

/// Tiles the disk with ranges of 1 to 9000 bytes, three quarters of which end with a sector, or a
/// block where that is longer.
fn tiles(random: &mut Random, block: usize, disk: usize) -> Vec<(usize, usize)> {
    let mut tiles = Vec::new();
    let mut at = 0;
    while at < disk {
        let mut end = at + 1 + random.index(9000);
        if !random.once_in(4) {
            end = end.next_multiple_of(block.max(512)).min(at + 9000);
        }
        let end = end.min(disk);
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
    let Capabilities { size, block, .. } = backend.capabilities();
    let size = usize::try_from(size).expect("a small disk");
    let mut model = Model { bytes: vec![0; size], block: block as usize };
    let mut phases = Vec::new();
    for share in [1, 4] {
        let mut ranges = tiles(&mut random, model.block, size);
        ranges.retain(|_| random.once_in(share));
        shuffle_a_little(&mut ranges, &mut random);
        let commands = ranges.iter().map(|&range| model.change(range, share, &mut random));
        phases.push(commands.collect());
    }
    let mut reads = tiles(&mut random, model.block, size);
    shuffle_a_little(&mut reads, &mut random);
    phases.push(reads.iter().map(|&(at, end)| read(at as u64, len_u32(at, end))).collect());
    let (answers, merges) = play(backend, kind, phases);
    assert!(merges > 0, "something merged");
    assert_all_succeeded(&answers[0]);
    assert_all_succeeded(&answers[1]);
    for ((at, end), answer) in reads.into_iter().zip(&answers[2]) {
        let data = answer.as_ref().expect("it is read");
        assert!(*data == model.bytes[at..end], "{kind}, seed {seed}: bytes {at} to {end} differ");
    }
}

/// What the disk is to hold.
struct Model {
    bytes: Vec<u8>,
    /// Bytes of a block of the disk.
    block: usize,
}

impl Model {
    /// A write of random bytes; where only a share of the disk is changed, also a trim or zeroes.
    fn change(&mut self, (at, end): (usize, usize), share: u64, random: &mut Random) -> CommandOp {
        let (offset, len) = (at as u64, len_u32(at, end));
        if share > 1 && random.once_in(3) {
            if random.once_in(2) {
                let changed = trimmed(at..end, self.block, self.bytes.len());
                self.bytes[changed].fill(0);
                return trim(offset, len, false);
            }
            self.bytes[at..end].fill(0);
            return zero(offset, len, true);
        }
        self.bytes[at..end].fill_with(|| random.next().to_le_bytes()[0]);
        let data = Bytes::copy_from_slice(&self.bytes[at..end]);
        CommandOp::Write { offset, data, fua: random.once_in(16) }
    }
}

fn len_u32(at: usize, end: usize) -> u32 {
    u32::try_from(end - at).expect("at most 9000")
}

fn assert_all_succeeded(answers: &Answers) {
    for (number, answer) in answers.iter().enumerate() {
        assert!(answer.is_ok(), "command {number}: {answer:?}");
    }
}

fn file_of(size: usize, folder: &Path, cache: CacheChoice) -> Box<dyn Backend> {
    let path = folder.join("disk.img");
    let file = std::fs::File::create(&path).expect("a file");
    file.set_len(size as u64).expect("room for a hole");
    open_file(&path, cache)
}

const SCHEDULERS: [SchedulerKind; SchedulerKind::ALL.len()] = SchedulerKind::ALL;

#[test]
fn every_byte_written_to_a_file_is_read_back() {
    within_a_minute(|| {
        for (seed, kind) in (0..).zip(SCHEDULERS) {
            let folder = tempfile::tempdir().expect("a temporary folder");
            play_byte_ranges(file_of(DISK, folder.path(), CacheChoice::Page), kind, seed);
        }
    });
}

#[test]
fn every_byte_written_past_the_page_cache_is_read_back() {
    within_a_minute(|| {
        for (seed, kind) in (20..).zip(SCHEDULERS) {
            let folder = tempfile::tempdir().expect("a temporary folder");
            let backend = file_of(DISK, folder.path(), CacheChoice::Direct);
            assert!(backend.capabilities().block >= 4096, "a page, for the end of the file");
            play_byte_ranges(backend, kind, seed);
            let size = folder.path().join("disk.img").metadata().expect("it is there").len();
            assert_eq!(size, DISK as u64, "the file never grows");
        }
    });
}

#[test]
fn every_byte_written_to_a_block_device_is_read_back() {
    let what = "byte ranges on a block device of 4096-byte blocks";
    let Some(device) = LoopDevice::new(what, 3 << 20, 4096) else { return };
    within_a_minute(move || {
        for (seed, kind) in (30..).zip(SCHEDULERS) {
            let backend = open_file(&device.path, CacheChoice::Direct);
            assert_eq!(backend.capabilities().block, 4096);
            play_byte_ranges(backend, kind, seed);
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
