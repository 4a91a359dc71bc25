//! Reads straight into a machine's memory.

use std::ops::Range;
use std::path::Path;

use paternoster::SchedulerKind;
use paternoster_disk::{Backend, CacheChoice, Capabilities, CommandOp, GuestReads, Part, Transfer};
use rustix::io::Errno;

use crate::support::front::play;
use crate::support::guest::Guest;
use crate::support::{Rig, any_byte, merges, open_file, read, within_a_minute};

const PAGE: usize = 4096;

/// That page of a guest's memory.
fn page(number: usize) -> Range<usize> {
    bytes(number * PAGE, PAGE)
}

fn bytes(from: usize, len: usize) -> Range<usize> {
    from..from + len
}

fn read_into(offset: u64, guest: &Guest, ranges: &[Range<usize>]) -> CommandOp {
    CommandOp::ReadInto { offset, into: guest.buffers(ranges) }
}

/// Whose device reads whole pages into whole pages.
fn pages() -> Capabilities {
    let reads_into = Some(GuestReads { memory: 512, block: 4096 });
    Capabilities { block: 4096, reads_into, ..any_byte() }
}

/// 16 pages, each filled with its number.
fn content() -> Vec<u8> {
    (0..16).flat_map(|page| [page; PAGE]).collect()
}

/// Reads three pages into three places of a guest, out of order there, and one as ever, at once:
/// neighbours, which merge.
fn reads_into_places(backend: Box<dyn Backend>) {
    let guest = Guest::new(8 * PAGE);
    let places = [page(5), page(1), page(3)];
    let phase = vec![
        read_into(4 * PAGE as u64, &guest, &places),
        read(7 * PAGE as u64, 4096),
        read_into(8 * PAGE as u64, &guest, &[page(0)]),
    ];
    let (answers, _) = play(backend, SchedulerKind::Bfq, vec![phase]);
    let [into, own, last] = &answers[0][..] else { panic!("three answers: {answers:?}") };
    assert_eq!((into, last), (&Ok(vec![]), &Ok(vec![])), "nothing is given back");
    assert_eq!(own.as_deref(), Ok(&[7; PAGE][..]));
    let expected = [[4; PAGE], [5; PAGE], [6; PAGE]].concat();
    assert!(guest.bytes(&places) == expected);
    assert!(guest.bytes(&[page(0)]) == [8; PAGE]);
    assert!(guest.bytes(&[bytes(6 * PAGE, 2 * PAGE)]) == [0; 2 * PAGE], "nothing else is written");
}

fn file_of(folder: &Path) -> std::path::PathBuf {
    let path = folder.join("disk.img");
    std::fs::write(&path, content()).expect("room for it");
    path
}

#[test]
fn file_is_read_into_a_guest_through_the_page_cache_and_past_it() {
    within_a_minute(|| {
        for cache in [CacheChoice::Page, CacheChoice::Direct] {
            let folder = tempfile::tempdir().expect("a temporary folder");
            reads_into_places(open_file(&file_of(folder.path()), cache));
        }
    });
}

#[test]
fn what_does_not_fit_is_refused() {
    let guest = Guest::new(4 * PAGE);
    let whole = &[page(0)][..];
    let half = PAGE / 2;
    for (capabilities, offset, ranges, result) in [
        (pages(), 0, whole, Ok(())),
        (pages(), 512, whole, Err(Errno::INVAL)),
        (pages(), 0, &[bytes(0, 512)], Err(Errno::INVAL)),
        (pages(), 0, &[bytes(0, half), bytes(half, half)], Err(Errno::INVAL)),
        (pages(), 0, &[bytes(512, PAGE)], Ok(())),
        (pages(), 0, &[bytes(100, PAGE)], Err(Errno::INVAL)),
        (any_byte(), 0, whole, Err(Errno::INVAL)),
    ] {
        let mut rig = Rig::of(SchedulerKind::None, 1, &capabilities);
        rig.submit(0, 7, read_into(offset, &guest, ranges));
        rig.finish_all();
        assert_eq!(rig.results(), [(7, result)], "{ranges:?} at {offset}");
    }
}

#[test]
fn neighbours_are_one_transfer_whose_rest_goes_behind_what_was_read() {
    let mut rig = Rig::held_back_on(&pages());
    let guest = Guest::new(8 * PAGE);
    let places = [page(2), page(0)];
    rig.submit(0, 1, read_into(0, &guest, &places));
    rig.submit(0, 2, read(2 * PAGE as u64, 4096));
    rig.let_go();
    let (_, transfer) = &rig.in_device[0];
    let Transfer::ReadInto { parts, offset: 0 } = transfer else { panic!("{transfer:?}") };
    let [Part::Guest(_), Part::Guest(_), Part::Own(4096)] = &parts[..] else { panic!("{parts:?}") };
    // Of the second page a half: that is no whole block, and is read again.
    rig.finish_read(0, &content()[..PAGE + PAGE / 2]);
    assert!(guest.bytes(&places[..1]) == [0; PAGE]);
    rig.finish_read(0, &[7; PAGE]);
    assert_eq!(rig.results(), [(1, Ok(()))]);
    assert!(guest.bytes(&places[1..]) == [7; PAGE], "the rest has gone to the second place");
    rig.finish_all();
    assert_eq!(rig.results(), [(2, Ok(()))]);
}

#[test]
fn each_place_is_a_segment_of_a_request() {
    let mut rig = Rig::held_back_on(&pages());
    let guest = Guest::new(128 * PAGE);
    let places = |pages: Range<usize>| pages.map(page).collect::<Vec<_>>();
    rig.submit(0, 1, read_into(0, &guest, &places(0..100)));
    rig.submit(0, 2, read_into(100 * PAGE as u64, &guest, &places(100..128)));
    rig.submit(0, 3, read(128 * PAGE as u64, 4096));
    assert_eq!(merges(rig.engine.elevator()), 1, "128 are allowed, and not 129");
}

#[test]
fn memory_that_is_gone_is_no_fault_of_the_disk() {
    let mut rig = Rig::of(SchedulerKind::None, 1, &pages());
    let guest = Guest::new(PAGE);
    for (errno, faults) in [(Errno::FAULT, 0), (Errno::IO, 1)] {
        rig.submit(0, 1, read_into(0, &guest, &[page(0)]));
        rig.finish_nth(0, Err(errno));
        assert_eq!(rig.results(), [(1, Err(errno))]);
        assert_eq!(rig.engine.take_faults().len(), faults, "{errno}");
    }
}
