//! The ring as a driver sees it that keeps to the rules.

use paternoster_vhost::proto::{Features, RegionPlace, RingAddresses};
use paternoster_vhost::{Buffer, Chain, RingError, SplitRing};

use crate::driver::{DATA, Driver, FRONT_END, GUEST, INDIRECT, WRITE, encoded};

fn buffers(of: &[(u64, u32)]) -> Vec<Buffer> {
    of.iter().map(|&(addr, len)| Buffer { addr, len }).collect()
}

/// The one chain that is there.
fn popped(driver: &Driver, ring: &mut SplitRing) -> Chain {
    let taken = ring.pop(&driver.memory).expect("a ring").expect("a chain");
    taken.chain.expect("a chain")
}

#[test]
fn chains_come_in_the_drivers_order_and_go_back_with_what_was_written() {
    let mut driver = Driver::new(8);
    let mut ring = driver.ring(Features::VERSION_1);
    driver.chain(3, &[(DATA, 16, 0), (DATA + 512, 512, 0), (DATA + 1024, 1, WRITE)]);
    driver.chain(0, &[(DATA, 16, 0), (DATA + 2048, 513, WRITE)]);
    driver.offer(3);
    driver.offer(0);
    assert!(ring.peek().expect("a ring"));
    let first = popped(&driver, &mut ring);
    assert_eq!(first.readable.to_vec(), buffers(&[(DATA, 16), (DATA + 512, 512)]));
    assert_eq!(first.writable.to_vec(), buffers(&[(DATA + 1024, 1)]));
    let second = popped(&driver, &mut ring);
    assert_eq!(second.writable.to_vec(), buffers(&[(DATA + 2048, 513)]));
    assert_eq!(ring.pop(&driver.memory), Ok(None));
    assert_eq!(ring.in_flight(), 2);
    // In the other order, and seen once the index is.
    ring.push_used(0, 513);
    ring.push_used(3, 1);
    assert_eq!(driver.take_used(), []);
    assert!(ring.publish(), "the driver has not said that it wants no calls");
    assert_eq!(driver.take_used(), [(0, 513), (3, 1)]);
    assert!(!ring.publish(), "there is nothing to be called for");
}

#[test]
fn table_of_its_own_is_read_where_it_lies() {
    let mut driver = Driver::new(2);
    let mut ring = driver.ring(Features::VERSION_1 | Features::INDIRECT_DESC);
    // More than the ring has.
    let table: Vec<_> = (0..5u16)
        .flat_map(|number| {
            let (flags, next) = if number < 4 { (1, number + 1) } else { (WRITE, 0) };
            encoded((DATA + 512 * u64::from(number), 512, flags, next))
        })
        .collect();
    driver.write(DATA + 0x1_0000, &table);
    driver.chain(1, &[(DATA + 0x1_0000, 80, INDIRECT)]);
    driver.offer(1);
    let chain = popped(&driver, &mut ring);
    assert_eq!((chain.readable.len(), chain.writable.len()), (4, 1));
    assert_eq!(chain.readable[3].addr, DATA + 3 * 512);
}

#[test]
fn driver_is_called_where_it_wants_to_be() {
    for (flag, wants) in [(0, true), (1, false)] {
        let mut driver = Driver::new(4);
        let mut ring = driver.ring(Features::VERSION_1);
        driver.set_no_interrupt(flag);
        driver.chain(0, &[(DATA, 1, WRITE)]);
        driver.offer(0);
        popped(&driver, &mut ring);
        ring.push_used(0, 0);
        assert_eq!(ring.publish(), wants);
    }
    // With an event: once, by the entry that was wanted.
    let mut driver = Driver::new(4);
    let mut ring = driver.ring(Features::VERSION_1 | Features::EVENT_IDX);
    driver.chain(0, &[(DATA, 1, WRITE)]);
    driver.set_used_event(2);
    let called = [false, false, true, false].map(|_| {
        driver.offer(0);
        popped(&driver, &mut ring);
        ring.push_used(0, 0);
        ring.publish()
    });
    assert_eq!(called, [false, false, true, false]);
}

/// A ring may have had nothing to call by, or the server before it did not come to call.
#[test]
fn call_that_is_owed_is_made_whatever_the_driver_wants() {
    let mut driver = Driver::new(4);
    // It was told of six, and waits for the call of the fifth.
    driver.set_used_index(6);
    driver.set_available(6);
    driver.set_used_event(5);
    let mut ring = driver.ring_at(6, Features::VERSION_1 | Features::EVENT_IDX);
    driver.chain(0, &[(DATA, 1, WRITE)]);
    for owes in [false, true] {
        driver.offer(0);
        popped(&driver, &mut ring);
        ring.push_used(0, 0);
        if owes {
            ring.owe_call();
        }
        assert_eq!(ring.publish(), owes);
    }
    ring.owe_call();
    assert!(ring.publish(), "also where nothing is new");
}

/// A front-end says its table again, with other mappings of the same files; or with none.
#[test]
fn ring_goes_on_in_other_memory_at_its_addresses() {
    let mut driver = Driver::new(4);
    let mut ring = driver.ring(Features::VERSION_1);
    driver.chain(0, &[(DATA, 1, WRITE)]);
    driver.offer(0);
    popped(&driver, &mut ring);
    let other = Driver::new(4);
    ring.move_to(&other.memory).expect("it is there too");
    ring.push_used(0, 1);
    ring.publish();
    assert_eq!([driver.used_index(), other.used_index()], [0, 1]);
    let place = RegionPlace { guest: 0, size: GUEST, front_end: FRONT_END, offset: 0 };
    driver.memory.remove(place).expect("it is there");
    let gone = ring.move_to(&driver.memory).expect_err("it has no memory");
    assert!(matches!(gone, RingError::Outside { area: "descriptors", .. }), "{gone}");
}

#[test]
fn ring_that_stops_takes_nothing_new() {
    let mut driver = Driver::new(4);
    let mut ring = driver.ring(Features::VERSION_1);
    driver.chain(0, &[(DATA, 1, WRITE)]);
    driver.offer(0);
    assert_eq!(ring.peek(), Ok(true));
    ring.stop();
    assert_eq!((ring.peek(), ring.next_available()), (Ok(false), 0));
}

#[test]
fn kicks_are_held_and_allowed() {
    let mut driver = Driver::new(4);
    let mut ring = driver.ring(Features::VERSION_1);
    ring.hold_kicks();
    assert!(driver.no_notify());
    assert_eq!(ring.allow_kicks(), Ok(false));
    assert!(!driver.no_notify());
    driver.chain(0, &[(DATA, 1, WRITE)]);
    ring.hold_kicks();
    driver.offer(0);
    assert_eq!(ring.allow_kicks(), Ok(true), "for this one there is no kick");

    let mut driver = Driver::new(4);
    let mut ring = driver.ring(Features::VERSION_1 | Features::EVENT_IDX);
    driver.chain(0, &[(DATA, 1, WRITE)]);
    driver.offer(0);
    popped(&driver, &mut ring);
    assert_eq!(ring.allow_kicks(), Ok(false));
    assert_eq!(driver.avail_event(), 1, "the next chain is to be kicked for");
    ring.hold_kicks();
    driver.chain(1, &[(DATA, 1, WRITE)]);
    driver.offer(1);
    popped(&driver, &mut ring);
    assert_eq!(driver.avail_event(), 1, "it stays behind");
}

#[test]
fn ring_goes_on_where_the_used_index_is() {
    let mut driver = Driver::new(4);
    (driver.seen, driver.available) = (u16::MAX, u16::MAX);
    driver.set_used_index(u16::MAX);
    driver.set_available(u16::MAX);
    let mut ring = driver.ring_at(u16::MAX, Features::VERSION_1);
    driver.chain(2, &[(DATA, 1, WRITE)]);
    for _ in 0..3 {
        driver.offer(2);
        popped(&driver, &mut ring);
        ring.push_used(2, 0);
        assert!(ring.publish());
        assert_eq!(driver.take_used(), [(2, 0)]);
    }
    assert_eq!(ring.next_available(), 2);
}

#[test]
fn ring_that_is_none_is_refused() {
    let driver = Driver::new(8);
    let begin = |size, addresses| {
        SplitRing::new(&driver.memory, size, addresses, 0, Features::VERSION_1).map(drop)
    };
    let right = Driver::addresses();
    assert_eq!(begin(8, right), Ok(()));
    for size in [0, 3, 12, 2048, u16::MAX] {
        assert_eq!(begin(size, right), Err(RingError::Size(size)));
    }
    let end = FRONT_END + GUEST;
    for addr in [end - 64, end, 0, u64::MAX - 1] {
        let outside = |area| Err(RingError::Outside { area, addr });
        let addresses = RingAddresses { descriptors: addr, ..right };
        assert_eq!(begin(8, addresses), outside("descriptors"));
        let addresses = RingAddresses { used: addr, ..right };
        assert_eq!(begin(8, addresses), outside("used entries"));
    }
    let unaligned = |area, addr, align| Err(RingError::Unaligned { area, addr, align });
    let addr = FRONT_END + 8;
    let addresses = RingAddresses { descriptors: addr, ..right };
    assert_eq!(begin(8, addresses), unaligned("descriptors", addr, 16));
    let addr = FRONT_END + 0x8001;
    let addresses = RingAddresses { available: addr, ..right };
    assert_eq!(begin(8, addresses), unaligned("available entries", addr, 2));
    let addr = FRONT_END + 0xa002;
    let addresses = RingAddresses { used: addr, ..right };
    assert_eq!(begin(8, addresses), unaligned("used entries", addr, 4));
}
