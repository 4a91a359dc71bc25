//! A guest's memory, of which nothing outside is ever touched.

use std::env;
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Stdio};

use paternoster_vhost::proto::RegionPlace;
use paternoster_vhost::{Memory, Outside, Region, RegionError, Sealed};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use vm_memory::mmap::MmapRegion;
use vm_memory::{Bytes as _, FileOffset, VolatileMemory as _};

use crate::driver::{memfd, region};

const PAGE: u64 = 4096;

/// Two regions that adjoin in the guest, and one apart; the front-end has them the other way round.
fn memory() -> Memory {
    let mut memory = Memory::default();
    for (guest, front_end) in [(2 * PAGE, 0x30_0000), (0, 0x10_0000), (PAGE, 0x20_0000)] {
        memory.add(region(guest, PAGE, front_end)).expect("they do not overlap");
    }
    memory.remove(place(2 * PAGE, PAGE, 0x30_0000)).expect("it is there");
    memory.add(region(4 * PAGE, PAGE, 0x30_0000)).expect("they do not overlap");
    memory
}

fn place(guest: u64, size: u64, front_end: u64) -> RegionPlace {
    RegionPlace { guest, size, front_end, offset: 0 }
}

#[test]
fn range_crosses_from_one_region_to_the_next() {
    let memory = memory();
    let bytes: Vec<u8> = (0..=255).collect();
    memory.write(PAGE - 100, &bytes).expect("they adjoin");
    let mut read = vec![0; 256];
    memory.read(PAGE - 100, &mut read).expect("they adjoin");
    assert_eq!(read, bytes);
    memory.read(PAGE, &mut read[..156]).expect("it is in the second");
    assert_eq!(read[..156], bytes[100..]);
}

#[test]
fn range_outside_is_refused_and_nothing_of_it_written() {
    let memory = memory();
    let end = 5 * PAGE;
    let ranges = [
        (2 * PAGE - 1, 2),
        (2 * PAGE, 1),
        (4 * PAGE - 1, 1),
        (end - 1, 2),
        (end, 1),
        (u64::MAX, 1),
        (u64::MAX - 1, 2),
        (0, u64::MAX),
        (PAGE, u64::MAX - PAGE + 1),
    ];
    for (addr, len) in ranges {
        assert_eq!(memory.check(addr, len), Err(Outside { addr, len }));
    }
    assert!(memory.write(2 * PAGE - 1, &[7, 7]).is_err());
    let mut byte = [1];
    memory.read(2 * PAGE - 1, &mut byte).expect("it is there");
    assert_eq!(byte, [0]);
    assert!(memory.read(2 * PAGE - 1, &mut [0; 2]).is_err());
    assert_eq!(memory.check(7 * PAGE, 0), Ok(()), "nothing is nowhere");
}

#[test]
fn regions_that_overlap_are_refused() {
    let mut memory = memory();
    for (guest, front_end) in [(0, 0x90_0000), (4 * PAGE, 0x90_0000), (8 * PAGE, 0x10_0000)] {
        let error = memory.add(region(guest, PAGE, front_end));
        assert!(matches!(error, Err(RegionError::Overlaps { .. })), "{error:?}");
    }
    for unlike in [place(0, PAGE, 0x20_0000), place(0, 2 * PAGE, 0x10_0000), place(9, 1, 1)] {
        let error = memory.remove(unlike);
        assert!(matches!(error, Err(RegionError::Unknown { .. })), "{error:?}");
    }
}

#[test]
fn what_is_mapped_is_held_by_those_that_use_it() {
    let mut memory = memory();
    let before = memory.clone();
    memory.remove(place(0, PAGE, 0x10_0000)).expect("it is there");
    assert!(memory.check(0, 1).is_err());
    before.write(0, b"in flight").expect("it is still there");
}

fn refused(file: OwnedFd, place: RegionPlace, sealed: Sealed) -> String {
    Region::map(place, file, sealed).expect_err("it is refused").to_string()
}

#[test]
fn region_beyond_its_file_is_refused() {
    let size = |size| place(0, size, 0);
    let beyond = refused(memfd(PAGE), size(PAGE + 1), Sealed::Any);
    assert_eq!(beyond, "a region ends at 4097 of a file of 4096 bytes: it has to be in the file");
    let shifted = RegionPlace { offset: PAGE, ..size(PAGE) };
    let beyond = refused(memfd(PAGE), shifted, Sealed::Any);
    assert_eq!(beyond, "a region ends at 8192 of a file of 4096 bytes: it has to be in the file");
    let wraps = RegionPlace { offset: u64::MAX, ..size(PAGE) };
    assert!(refused(memfd(PAGE), wraps, Sealed::Any).contains("it has to be in the file"));
    assert!(refused(memfd(PAGE), size(0), Sealed::Any).contains("empty"));
    let wraps = place(u64::MAX - 1, PAGE, 0);
    assert!(refused(memfd(PAGE), wraps, Sealed::Any).contains("2⁶⁴"));
    assert!(refused(memfd(PAGE), place(0, PAGE, u64::MAX), Sealed::Any).contains("2⁶⁴"));
}

/// A part of a huge page could be mapped and never unmapped. Where the machine has no such pages
/// the file can be made all the same.
#[test]
fn part_of_a_huge_page_is_refused() {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::HUGETLB | MemfdFlags::HUGE_2MB;
    let file = memfd_create("huge", flags).expect("the kernel has huge pages");
    ftruncate(&file, 4 << 20).expect("no page is taken by it");
    let refused = refused(file, place(0, PAGE, 0), Sealed::Any);
    let says = "a region of 4096 bytes of huge pages: whole pages of 2097152 bytes are allowed";
    assert_eq!(refused, says);
}

#[test]
fn only_memory_is_mapped() {
    let eventfd = eventfd(0, EventfdFlags::empty()).expect("a descriptor");
    assert!(refused(eventfd, place(0, PAGE, 0), Sealed::Any).contains("tmpfs or hugetlbfs"));
    let mut file = tempfile::tempfile_in(env!("CARGO_TARGET_TMPDIR")).expect("a file");
    file.write_all(&[0; 4096]).expect("room");
    assert!(refused(file.into(), place(0, PAGE, 0), Sealed::Any).contains("tmpfs or hugetlbfs"));
}

#[test]
fn file_that_may_be_made_shorter_is_refused_where_seals_are_required() {
    assert!(refused(unsealed(1), place(0, PAGE, 0), Sealed::Required).contains("F_SEAL_SHRINK"));
    assert!(Region::map(place(0, PAGE, 0), unsealed(1), Sealed::Any).is_ok());
    assert!(Region::map(place(0, PAGE, 0), memfd(PAGE), Sealed::Required).is_ok());
}

/// A file of so many pages that may be made shorter.
fn unsealed(pages: u64) -> OwnedFd {
    let file = memfd_create("guest", MemfdFlags::CLOEXEC).expect("memory");
    ftruncate(&file, pages * PAGE).expect("room");
    file
}

#[test]
fn memory_that_is_taken_away_is_zeroes_and_lost() {
    let file = unsealed(4);
    let region = Region::map(place(0, 4 * PAGE, 0), file.try_clone().expect("one"), Sealed::Any);
    let mut taken = Memory::default();
    taken.add(region.expect("memory")).expect("it is the first");
    taken.write(0, b"the guest's").expect("it is there");
    let left = memory();
    left.write(0, b"another's").expect("it is there");
    ftruncate(&file, PAGE).expect("it is not sealed");
    let mut bytes = [1; 4];
    taken.read(0, &mut bytes).expect("it is mapped");
    assert_eq!((&bytes, taken.is_lost()), (b"the ", false), "nobody has touched what is gone");
    taken.read(3 * PAGE, &mut bytes).expect("it is mapped");
    assert_eq!((bytes, taken.is_lost()), ([0; 4], true));
    taken.write(2 * PAGE, b"in flight").expect("it is mapped");
    taken.read(0, &mut bytes).expect("it is mapped");
    assert_eq!(bytes, [0; 4], "all of it is lost at once");
    let mut bytes = [0; 9];
    left.read(0, &mut bytes).expect("it is there");
    assert_eq!((&bytes, left.is_lost()), (b"another's", false));
    // The slot is free for another, which is not lost.
    drop(taken);
    assert!(!memory().is_lost());
}

/// Set where the test is to die of a fault that is nobody's.
const FAULT: &str = "PATERNOSTER_VHOST_FAULT";

#[test]
fn fault_elsewhere_kills_as_ever() {
    if env::var_os(FAULT).is_some() {
        let _region = memory();
        let file = unsealed(1);
        let from = FileOffset::new(file.try_clone().expect("one").into(), 0);
        let mapping = MmapRegion::<()>::from_file(from, 4096).expect("memory");
        ftruncate(&file, 0).expect("it is not sealed");
        let _ = mapping.as_volatile_slice().load::<u8>(0, std::sync::atomic::Ordering::Relaxed);
        return;
    }
    let test = env::current_exe().expect("it runs");
    let mut child = Command::new(test);
    child.args(["--exact", "memory::fault_elsewhere_kills_as_ever"]).env(FAULT, "1");
    child.stdout(Stdio::null()).stderr(Stdio::null());
    let status = child.status().expect("it starts");
    assert_eq!(status.signal(), Some(rustix::process::Signal::BUS.as_raw()), "{status}");
}
