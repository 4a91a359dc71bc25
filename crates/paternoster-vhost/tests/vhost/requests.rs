//! Requests of a driver, as chains cut in every way.

use paternoster_vhost::blk::{Device, Op, Request, Status, Unanswerable};
use paternoster_vhost::proto::Features;
use paternoster_vhost::{Buffer, Chain};

use crate::driver::{DATA, Driver, GUEST};

const HEADER: u64 = DATA;
const PAYLOAD: u64 = DATA + 4096;
const STATUS: u64 = DATA + 2048;

fn device() -> Device {
    Device {
        size: 64 << 20,
        block: 4096,
        discard: 4096,
        queues: 64,
        read_only: false,
        flushes: true,
        unmaps: true,
    }
}

fn buffer((addr, len): (u64, u64)) -> Buffer {
    Buffer { addr, len: u32::try_from(len).expect("it is short") }
}

/// A chain of these, cut into so many bytes each.
fn chain(readable: &[(u64, u64)], writable: &[(u64, u64)], cut: u64) -> Chain {
    let cut = |of: &[(u64, u64)]| {
        let pieces = of.iter().flat_map(|&(addr, len)| {
            let pieces = (0..len.div_ceil(cut)).map(move |piece| cut * piece);
            pieces.map(move |at| buffer((addr + at, cut.min(len - at))))
        });
        pieces.collect()
    };
    Chain { readable: cut(readable), writable: cut(writable) }
}

/// What a request of that type and sector wants.
fn parse(driver: &Driver, kind: u32, sector: u64, chain: &Chain) -> Result<Request, Unanswerable> {
    let mut header = kind.to_le_bytes().to_vec();
    header.extend([0; 4]);
    header.extend(sector.to_le_bytes());
    driver.write(HEADER, &header);
    Request::parse(chain, &driver.memory, &device())
}

/// What becomes of data of so many bytes to be read or written there.
fn data_op(kind: u32, sector: u64, len: u64) -> Result<Op, Status> {
    let chain = match kind {
        0 => chain(&[(HEADER, 16)], &[(PAYLOAD, len), (STATUS, 1)], u64::MAX >> 1),
        _ => chain(&[(HEADER, 16), (PAYLOAD, len)], &[(STATUS, 1)], u64::MAX >> 1),
    };
    parse(&Driver::new(8), kind, sector, &chain).expect("it can be answered").op
}

#[test]
fn data_is_copied_however_it_is_cut() {
    let driver = Driver::new(8);
    let bytes: Vec<u8> = (0..1024u32).map(|byte| (byte % 251) as u8).collect();
    for cut in [1, 3, 16, 17, 511, 512, 1024, 4096] {
        driver.write(PAYLOAD, &bytes);
        let write = chain(&[(HEADER, 16), (PAYLOAD, 1024)], &[(STATUS, 1)], cut);
        let write = parse(&driver, 1, 8, &write).expect("a request");
        assert_eq!(write.op, Ok(Op::Write { offset: 4096, len: 1024 }));
        let mut out = vec![0; 1024];
        write.copy_out(&driver.memory, &mut out).expect("it is there");
        assert_eq!(out, bytes);
        assert_eq!(write.finish(&driver.memory, Status::Ok), Ok(1));

        driver.write(PAYLOAD, &[0; 1024]);
        let read = chain(&[(HEADER, 16)], &[(PAYLOAD, 1024), (STATUS, 1)], cut);
        let read = parse(&driver, 0, 8, &read).expect("a request");
        assert_eq!(read.op, Ok(Op::Read { offset: 4096, len: 1024 }));
        // In the parts in which the disk has it.
        read.copy_in(&driver.memory, 0, &bytes[..300]).expect("it is there");
        read.copy_in(&driver.memory, 300, &bytes[300..]).expect("it is there");
        driver.write(STATUS, &[9]);
        assert_eq!(read.finish(&driver.memory, Status::Ok), Ok(1025));
        assert_eq!(driver.read::<1024>(PAYLOAD).to_vec(), bytes);
        assert_eq!(driver.read::<1>(STATUS), [0]);
        assert_eq!(read.finish(&driver.memory, Status::IoErr), Ok(1), "of no data");
        assert_eq!(driver.read::<1>(STATUS), [1]);
    }
}

#[test]
fn data_beyond_the_device_or_not_of_sectors_is_an_error() {
    let sectors = device().size / 512;
    for kind in [0, 1] {
        assert!(data_op(kind, sectors - 1, 512).is_ok());
        let refused = [
            (sectors - 1, 1024),
            (sectors, 512),
            (u64::MAX, 512),
            (u64::MAX / 512 + 1, 512),
            (0, 511),
            (0, 0),
            (0, 513),
        ];
        for (sector, len) in refused {
            assert_eq!(data_op(kind, sector, len), Err(Status::IoErr), "{kind} {sector} {len}");
        }
    }
}

#[test]
fn request_has_32_mib_of_data_at_most() {
    let driver = Driver::new(8);
    let read = |parts: usize| {
        let mut writable = vec![(0, GUEST / 2); parts];
        writable.push((STATUS, 1));
        let chain = chain(&[(HEADER, 16)], &writable, GUEST);
        parse(&driver, 0, 0, &chain).expect("it can be answered").op
    };
    assert_eq!(read(64), Ok(Op::Read { offset: 0, len: 32 << 20 }));
    assert_eq!(read(65), Err(Status::IoErr));
}

#[test]
fn data_outside_the_memory_is_an_error_and_the_status_says_so() {
    let driver = Driver::new(8);
    for addr in [GUEST, GUEST - 511, u64::MAX - 511] {
        for kind in [0, 1] {
            let (data, status) = ((addr, 512), (STATUS, 1));
            let chain = match kind {
                0 => chain(&[(HEADER, 16)], &[data, status], 4096),
                _ => chain(&[(HEADER, 16), data], &[status], 4096),
            };
            let request = parse(&driver, kind, 0, &chain).expect("it can be answered");
            assert_eq!(request.op, Err(Status::IoErr));
            assert_eq!(request.finish(&driver.memory, Status::IoErr), Ok(1));
        }
    }
}

#[test]
fn request_without_header_or_status_cannot_be_answered() {
    let driver = Driver::new(8);
    let of = |readable: &[_], writable: &[_]| {
        parse(&driver, 0, 0, &chain(readable, writable, 4096)).expect_err("it is none")
    };
    assert_eq!(of(&[(HEADER, 15)], &[(STATUS, 1)]), Unanswerable::Header(15));
    assert_eq!(of(&[], &[(STATUS, 1)]), Unanswerable::Header(0));
    assert_eq!(of(&[(HEADER, 16)], &[]), Unanswerable::NoStatus);
    let outside = of(&[(GUEST - 8, 16)], &[(STATUS, 1)]);
    assert!(matches!(outside, Unanswerable::Outside { what: "header", .. }), "{outside}");
    for addr in [GUEST, u64::MAX] {
        let outside = of(&[(HEADER, 16)], &[(PAYLOAD, 512), (addr, 1)]);
        assert!(matches!(outside, Unanswerable::Outside { what: "status", .. }), "{outside}");
    }
}

#[test]
fn ranges_are_discarded_and_zeroed() {
    let driver = Driver::new(8);
    let sectors = device().size / 512;
    let op = |kind, sector: u64, count: u32, flags: u32, len| {
        let mut range = sector.to_le_bytes().to_vec();
        range.extend(count.to_le_bytes());
        range.extend(flags.to_le_bytes());
        driver.write(PAYLOAD, &range);
        let chain = chain(&[(HEADER, 16), (PAYLOAD, len)], &[(STATUS, 1)], 4096);
        parse(&driver, kind, 0, &chain).expect("it can be answered").op
    };
    assert_eq!(op(11, 8, 16, 0, 16), Ok(Op::Discard { offset: 4096, len: 8192 }));
    let zeroes = |unmap| Ok(Op::WriteZeroes { offset: 4096, len: 8192, unmap });
    assert_eq!(op(13, 8, 16, 0, 16), zeroes(false));
    assert_eq!(op(13, 8, 16, 1, 16), zeroes(true));
    assert_eq!(op(11, 0, 1, 1, 16), Err(Status::Unsupported), "a discard has no flags");
    assert_eq!(op(13, 0, 1, 2, 16), Err(Status::Unsupported));
    for kind in [11, 13] {
        assert_eq!(op(kind, 0, 1, 0, 32), Err(Status::IoErr), "one segment");
        assert_eq!(op(kind, 0, 1, 0, 15), Err(Status::IoErr));
        assert_eq!(op(kind, 0, 0, 0, 16), Err(Status::IoErr), "of nothing");
        assert_eq!(op(kind, sectors - 1, 2, 0, 16), Err(Status::IoErr));
        assert_eq!(op(kind, u64::MAX, 1, 0, 16), Err(Status::IoErr));
        assert_eq!(op(kind, 0, u32::MAX, 0, 16), Err(Status::IoErr));
    }
}

#[test]
fn flush_and_name_are_taken_and_the_rest_is_not_supported() {
    let driver = Driver::new(8);
    let op = |kind, room| {
        let chain = chain(&[(HEADER, 16)], &[(PAYLOAD, room), (STATUS, 1)], 4096);
        parse(&driver, kind, 77, &chain).expect("it can be answered").op
    };
    assert_eq!(op(4, 0), Ok(Op::Flush));
    assert_eq!(op(8, 20), Ok(Op::GetId));
    assert_eq!(op(8, 19), Err(Status::IoErr));
    for kind in [2, 3, 5, 10, 12, 14, 15, 17, 0x8000_0000, u32::MAX] {
        assert_eq!(op(kind, 512), Err(Status::Unsupported));
    }
}

#[test]
fn device_that_may_only_be_read_takes_nothing_else() {
    let driver = Driver::new(8);
    let device = Device { read_only: true, flushes: false, ..device() };
    let op = |kind: u32| {
        let mut header = [0; 16];
        header[..4].copy_from_slice(&kind.to_le_bytes());
        driver.write(HEADER, &header);
        let chain = chain(&[(HEADER, 16), (PAYLOAD, 512)], &[(STATUS, 1)], 4096);
        Request::parse(&chain, &driver.memory, &device).expect("it can be answered").op
    };
    for kind in [1, 11, 13] {
        assert_eq!(op(kind), Err(Status::IoErr));
    }
    assert_eq!(op(4), Err(Status::Unsupported));
    // Neither flush (9) nor its byte (11), discards (13) or zeroes (14), but read-only (5).
    let bits = [2, 5, 6, 10, 12, 28, 29, 30, 32].map(|bit| 1u64 << bit);
    assert_eq!(device.features().bits(), bits.iter().sum::<u64>());
}

/// The offsets are those of `struct virtio_blk_config` in the standard.
#[test]
fn configuration_is_laid_out_as_the_standard_has_it() {
    let config = device().config(true);
    assert_eq!(config[0..8], (131_072u64).to_le_bytes());
    assert_eq!(config[8..12], [0; 4], "SIZE_MAX is not offered");
    assert_eq!(config[12..16], [126, 0, 0, 0]);
    assert_eq!(config[20..24], [0, 2, 0, 0]);
    assert_eq!(config[24], 3, "blocks of 8 sectors");
    assert_eq!(config[32], 1, "the cache writes back");
    assert_eq!(config[34..36], [64, 0]);
    assert_eq!(config[36..40], [0xff, 0xff, 0x7f, 0]);
    assert_eq!(config[40..48], [1, 0, 0, 0, 8, 0, 0, 0]);
    assert_eq!(config[48..56], [0xff, 0xff, 0x7f, 0, 1, 0, 0, 0]);
    assert_eq!(config[56], 1);
    assert_eq!(device().config(false)[32], 0);
    assert_eq!(device().features() & Features::RO, Features::empty());
}
