//! The file and memory as disks, through the real loop.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use paternoster_disk::ModelledBackend;
use paternoster_disk::{
    Backend, BusyDepth, CacheChoice, CommandOp, Extent, FileBackend, FileOptions, MemoryBackend,
    ServersTime,
};
use rustix::io::Errno;
use tempfile::TempDir;

use crate::support::front::{play_in_turn, play_one};
use crate::support::{cache, open_file, read, trim, within_a_minute, write, write_fua, zero};

/// A multiple of every file system's block.
const BLOCK: u64 = 64 << 10;
const FLUSH: CommandOp = CommandOp::Flush;

/// A file of that many bytes, all a hole.
fn empty_file(size: u64) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("disk.img");
    File::create(&path).expect("a file").set_len(size).expect("room for a hole");
    (folder, path)
}

fn open(path: &Path) -> Box<dyn Backend> {
    open_file(path, CacheChoice::Page)
}

fn block(number: u64, fill: u8) -> CommandOp {
    write(number * BLOCK, 64 << 10, fill)
}

fn zero_allocated(offset: u64, len: u32) -> CommandOp {
    CommandOp::Zero { offset, len, fua: true, allocate: true, fast: false }
}

fn hole(len: u64) -> Extent {
    Extent { len, hole: true }
}

fn data(len: u64) -> Extent {
    Extent { len, hole: false }
}

/// Writes 5000 bytes of ones in the middle, then has `op` change 3000 of them: what is read back.
fn around(backend: Box<dyn Backend>, op: impl Fn(u64, u32) -> CommandOp) -> Vec<u8> {
    let commands = vec![write(1000, 5000, 1), op(2000, 3000), FLUSH, cache(0, 7000), read(0, 7000)];
    let mut answers = play_in_turn(backend, commands);
    for answer in &answers[..4] {
        assert_eq!(*answer, Ok(Vec::new()));
    }
    answers.remove(4).expect("it is read")
}

fn with_3000_of(fill: u8) -> Vec<u8> {
    let mut expected = vec![0; 7000];
    expected[1000..6000].fill(1);
    expected[2000..5000].fill(fill);
    expected
}

#[test]
fn what_is_written_trimmed_and_zeroed_on_a_file_reads_so() {
    within_a_minute(|| {
        let (_folder, path) = empty_file(BLOCK);
        let size = 7000;
        File::options().write(true).open(&path).expect("it opens").set_len(size).expect("a size");
        let fua = |offset, len| write_fua(offset, len as usize, 7);
        assert_eq!(around(open(&path), fua), with_3000_of(7));
        assert_eq!(around(open(&path), |at, len| trim(at, len, true)), with_3000_of(0));
        assert_eq!(around(open(&path), |at, len| zero(at, len, true)), with_3000_of(0));
        assert_eq!(around(open(&path), zero_allocated), with_3000_of(0));
        assert_eq!(path.metadata().expect("a file").len(), size, "the size stays");
    });
}

#[test]
fn what_is_written_trimmed_and_zeroed_in_memory_reads_so() {
    within_a_minute(|| {
        let memory = || Box::new(MemoryBackend::new(7000));
        assert_eq!(around(memory(), |at, len| write(at, len as usize, 7)), with_3000_of(7));
        assert_eq!(around(memory(), |at, len| trim(at, len, false)), with_3000_of(0));
        assert_eq!(around(memory(), zero_allocated), with_3000_of(0));
    });
}

#[test]
fn what_is_written_and_zeroed_on_a_modelled_disk_reads_so() {
    within_a_minute(|| {
        let model = ServersTime {
            servers: 2,
            fixed: paternoster::Nanos::from_micros(20),
            per_kib: paternoster::Nanos::new(100),
            sync: paternoster::Nanos::ZERO,
        };
        let modelled = || Box::new(ModelledBackend::of_servers(7000, model));
        assert_eq!(around(modelled(), |at, len| write_fua(at, len as usize, 7)), with_3000_of(7));
        assert_eq!(around(modelled(), |at, len| zero(at, len, true)), with_3000_of(0));
    });
}

#[test]
fn trimmed_range_of_a_file_takes_no_room() {
    within_a_minute(|| {
        for free in [trim(BLOCK, 64 << 10, false), zero(BLOCK, 64 << 10, false)] {
            let (_folder, path) = empty_file(4 * BLOCK);
            if !open(&path).capabilities().fast_zero {
                return; // This file system cannot.
            }
            let commands = vec![block(0, 1), block(1, 2), block(2, 3), FLUSH, free];
            let answers = play_in_turn(open(&path), commands);
            assert_eq!(answers, vec![Ok(Vec::new()); 5]);
            let extents = open(&path).extents(0, 4 * BLOCK).expect("it can be asked");
            assert_eq!(extents, [data(BLOCK), hole(BLOCK), data(BLOCK), hole(BLOCK)]);
        }
    });
}

#[test]
fn range_that_is_zeroed_and_must_stay_allocated_keeps_its_room() {
    within_a_minute(|| {
        let (_folder, path) = empty_file(2 * BLOCK);
        play_in_turn(open(&path), vec![block(0, 1), block(1, 1), FLUSH]);
        let before = path.metadata().expect("a file").blocks();
        let answers = play_in_turn(open(&path), vec![zero_allocated(0, 64 << 10), FLUSH]);
        assert_eq!(answers, [Ok(Vec::new()), Ok(Vec::new())]);
        assert!(path.metadata().expect("a file").blocks() >= before);
    });
}

#[test]
fn extents_of_a_file_cover_what_was_asked_and_no_more() {
    within_a_minute(|| {
        let (_folder, path) = empty_file(4 * BLOCK);
        play_in_turn(open(&path), vec![block(1, 1), block(2, 2), FLUSH]);
        let file = open(&path);
        let extents = |offset, len| file.extents(offset, len).expect("it can be asked");
        if extents(0, BLOCK) != [hole(BLOCK)] {
            return; // This file system does not tell.
        }
        assert_eq!(extents(0, 4 * BLOCK), [hole(BLOCK), data(2 * BLOCK), hole(BLOCK)]);
        assert_eq!(extents(BLOCK - 1, 2), [hole(1), data(1)]);
        assert_eq!(extents(BLOCK + 1, 10), [data(10)]);
        assert_eq!(extents(3 * BLOCK + 5, BLOCK - 5), [hole(BLOCK - 5)]);
        assert_eq!(extents(4 * BLOCK - 1, 1), [hole(1)]);
    });
}

#[test]
fn memory_is_one_extent() {
    let memory = MemoryBackend::new(4096);
    assert_eq!(memory.extents(100, 500).expect("it can be asked"), [data(500)]);
}

#[test]
fn read_behind_the_end_of_a_file_that_was_truncated_is_eio() {
    within_a_minute(|| {
        let (_folder, path) = empty_file(4 * BLOCK);
        let file = open(&path);
        let shorter = File::options().write(true).open(&path).expect("it opens");
        shorter.set_len(BLOCK + 100).expect("a size");
        let reads = vec![
            read(0, 512),
            read(BLOCK, 512),
            read(2 * BLOCK, 512),
            read(BLOCK, 100),
            read(0, 128 << 10),
        ];
        let answers = play_one(file, reads);
        let expected =
            [Ok(vec![0; 512]), Err(Errno::IO), Err(Errno::IO), Ok(vec![0; 100]), Err(Errno::IO)];
        assert_eq!(answers, expected);
    });
}

#[test]
fn file_opened_for_reading_refuses_writes_and_can_be_flushed() {
    within_a_minute(|| {
        let (_folder, path) = empty_file(BLOCK);
        let options = FileOptions { read_only: true, cache: CacheChoice::Page };
        let file = Box::new(FileBackend::open(&path, options).expect("it opens"));
        assert!(!file.capabilities().fast_zero);
        let answers = play_in_turn(file, vec![read(0, 10), write(0, 10, 1), FLUSH]);
        assert_eq!(answers, [Ok(vec![0; 10]), Err(Errno::BADF), Ok(Vec::new())]);
    });
}

/// The outcome of a command that is over at once waited for somebody else to wake the owner up.
#[test]
fn command_that_is_over_at_once_is_answered_at_once() {
    within_a_minute(|| {
        let (_folder, path) = empty_file(BLOCK);
        let at_once = vec![
            read(0, 0),
            CommandOp::Zero { offset: 0, len: 9, fua: false, allocate: true, fast: true },
        ];
        let answers = play_in_turn(open(&path), at_once);
        assert_eq!(answers, [Ok(Vec::new()), Err(Errno::OPNOTSUPP)]);
    });
}

#[test]
fn what_each_disk_can_do_is_told() {
    let (_folder, path) = empty_file(BLOCK + 1);
    let file = open(&path).capabilities();
    assert_eq!(
        (file.size, file.depth),
        (BLOCK + 1, BusyDepth::any(16)),
        "whether it is rotational is the machine's"
    );
    let direct = open_file(&path, CacheChoice::Direct).capabilities().depth;
    assert_eq!((direct.shared, direct.unshared), (16, 32), "past the page cache");
    assert_eq!(direct.of_rotational(), BusyDepth::any(16), "where it rotates");
    let memory = MemoryBackend::new(5).capabilities();
    assert_eq!((memory.size, memory.fast_zero, memory.rotational), (5, true, false));
    let model = ServersTime {
        servers: 4,
        fixed: paternoster::Nanos::new(1),
        per_kib: paternoster::Nanos::ZERO,
        sync: paternoster::Nanos::ZERO,
    };
    let modelled = ModelledBackend::of_servers(5, model).capabilities();
    assert_eq!(modelled.depth, BusyDepth::any(8), "twice its servers");
}
