//! Files and block devices past the page cache: how they are opened, and what they can do.

use std::fs::File;
use std::path::Path;

use paternoster_disk::{Backend as _, CacheChoice, CommandOp, Extent, FileBackend, FileOptions};

use crate::support::devices::{LoopDevice, Mounted};
use crate::support::front::play_in_turn;
use crate::support::{open_file, read, trim, within_a_minute, write, write_fua, zero};

const BLOCK: u64 = 4096;
const SIZE: u64 = 64 << 20;

fn open(path: &Path, cache: CacheChoice) -> std::io::Result<FileBackend> {
    FileBackend::open(path, FileOptions { read_only: false, cache })
}

fn refusal(path: &Path, cache: CacheChoice) -> String {
    open(path, cache).expect_err("it is refused").to_string()
}

#[test]
fn file_is_opened_as_was_asked_for_and_says_why() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("disk.img");
    File::create(&path).expect("a file").set_len(SIZE).expect("room for a hole");
    let opened = |choice| {
        let backend = open(&path, choice).expect("it opens");
        let cache = backend.cache().expect("it is a file").clone();
        (cache.direct, cache.because, backend.capabilities().block)
    };
    let (direct, because, block) = opened(CacheChoice::Auto);
    assert!(direct && block >= 512, "this file system takes O_DIRECT");
    assert!(because.contains(&format!("blocks of {block} bytes")), "{because}");
    assert_eq!(opened(CacheChoice::Page), (false, "it is asked for".to_owned(), 1));
}

/// procfs takes no direct I/O.
#[test]
fn file_that_takes_no_direct_io_goes_through_the_page_cache_or_is_refused() {
    let path = Path::new("/proc/version");
    let open = |cache| FileBackend::open(path, FileOptions { read_only: true, cache });
    let backend = open(CacheChoice::Auto).expect("it opens");
    let cache = backend.cache().expect("it is a file");
    assert!(!cache.direct && !cache.binds);
    assert_eq!(cache.because, "the file system refuses O_DIRECT");
    assert_eq!(
        open(CacheChoice::Direct).expect_err("it is asked for").to_string(),
        "direct I/O is asked for, and the file system refuses O_DIRECT"
    );
}

/// What the page cache has of the tail's page must not reach the blocks before it.
#[test]
fn last_block_of_a_file_that_does_not_fill_it_is_written_and_the_file_does_not_grow() {
    within_a_minute(|| {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("disk.img");
        let size = 5 * BLOCK + 1000;
        File::create(&path).expect("a file").set_len(size).expect("room for a hole");
        let commands = vec![
            write(4 * BLOCK, 4096 + 1000, 1),
            read(5 * BLOCK - 10, 1010),
            write_fua(5 * BLOCK + 100, 5, 2),
            write(5 * BLOCK - 512, 512, 3),
            zero(5 * BLOCK + 990, 10, false),
            CommandOp::Flush,
        ];
        let answers = play_in_turn(open_file(&path, CacheChoice::Direct), commands);
        assert!(answers.iter().all(Result::is_ok), "{answers:?}");
        assert_eq!(answers[1].as_deref(), Ok(&[1; 1010][..]));
        let bytes = std::fs::read(&path).expect("it is there");
        assert_eq!(bytes.len() as u64, size);
        let tail = &bytes[5 * 4096 - 512..];
        let expected = [&[3; 512][..], &[1; 100], &[2; 5], &[1; 885], &[0; 10]].concat();
        assert!(tail == expected);
    });
}

#[test]
fn block_device_is_read_written_trimmed_and_zeroed() {
    let Some(device) = LoopDevice::new("a block device of 4096-byte blocks", SIZE, 4096) else {
        return;
    };
    let backend = open_file(&device.path, CacheChoice::Auto);
    let capabilities = backend.capabilities();
    assert_eq!((capabilities.size, capabilities.block), (SIZE, 4096));
    assert!(capabilities.fast_zero, "a loop device punches holes");
    let cache = backend.cache().expect("it is a device").clone();
    assert!(cache.direct && cache.binds, "{}", cache.because);
    assert_eq!(backend.damage(), None);
    let all = backend.extents(0, SIZE).expect("it says so");
    assert_eq!(all, [Extent { len: SIZE, hole: false }], "a device does not say where holes are");
    within_a_minute(move || {
        let commands = vec![
            write(0, 4 * 4096, 1),
            write(100, 10, 2),
            trim(2 * BLOCK, 4096, true),
            zero(3 * BLOCK - 6, 106, true),
            CommandOp::Flush,
            read(0, 4 * 4096),
        ];
        let mut answers = play_in_turn(backend, commands);
        let read = answers.pop().expect("an answer").expect("it is read");
        assert!(answers.iter().all(Result::is_ok), "{answers:?}");
        let expected =
            [&[1; 100][..], &[2; 10], &[1; 2 * 4096 - 110], &[0; 4096 + 100], &[1; 3996]].concat();
        assert!(read == expected);
    });
}

#[test]
fn block_device_that_somebody_else_has_is_refused_by_name() {
    let what = "a block device that is mounted";
    let Some(device) = LoopDevice::new(what, SIZE, 512) else { return };
    let first = open(&device.path, CacheChoice::Auto).expect("it opens");
    let again = refusal(&device.path, CacheChoice::Auto);
    assert_eq!(again, "another program or device has it");
    drop(first);
    let at = device.folder.path().join("mounted");
    let Some(mounted) = Mounted::new(what, "ext4", &device.path, &at) else { return };
    for cache in [CacheChoice::Auto, CacheChoice::Page] {
        let refused = refusal(&device.path, cache);
        assert_eq!(refused, format!("it is mounted at {}", at.display()));
    }
    let read_only = FileOptions { read_only: true, cache: CacheChoice::Auto };
    assert!(FileBackend::open(&device.path, read_only).is_ok(), "nobody writes to it");
    drop(mounted);
    assert!(open(&device.path, CacheChoice::Auto).is_ok());
}
