//! A guest's memory, of which nothing outside is ever touched.

use std::io::Write as _;
use std::os::fd::OwnedFd;

use paternoster_vhost::proto::RegionPlace;
use paternoster_vhost::{Memory, Outside, Region, RegionError, Sealed};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

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
    let unsealed = || {
        let file = memfd_create("guest", MemfdFlags::CLOEXEC).expect("memory");
        ftruncate(&file, PAGE).expect("room");
        file
    };
    assert!(refused(unsealed(), place(0, PAGE, 0), Sealed::Required).contains("F_SEAL_SHRINK"));
    assert!(Region::map(place(0, PAGE, 0), unsealed(), Sealed::Any).is_ok());
    assert!(Region::map(place(0, PAGE, 0), memfd(PAGE), Sealed::Required).is_ok());
}
