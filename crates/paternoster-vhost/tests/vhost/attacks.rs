//! What a hostile driver writes into its ring, a row each.

use paternoster_vhost::proto::Features;
use paternoster_vhost::{Broken, ChainError};

use crate::driver::{DATA, Descriptor, Driver, GUEST, INDIRECT, NEXT, WRITE, encoded};

const SIZE: u16 = 8;
/// Where tables of their own are.
const TABLE: u64 = DATA + 0x1_0000;

/// What comes of descriptors of the ring, and of a table of its own.
fn chain_of(ring_of: &[Descriptor], table: &[Descriptor], features: Features) -> ChainError {
    let mut driver = Driver::new(SIZE);
    let mut ring = driver.ring(Features::VERSION_1 | features);
    for (number, &descriptor) in (0..).zip(ring_of) {
        driver.descriptor(number, descriptor);
    }
    let table: Vec<_> = table.iter().flat_map(|&descriptor| encoded(descriptor)).collect();
    driver.write(TABLE, &table);
    driver.offer(0);
    let taken = ring.pop(&driver.memory).expect("the ring is whole").expect("a chain");
    let error = taken.chain.expect_err("it is none");
    // The slot comes back, and the ring goes on.
    ring.push_used(taken.head, 0);
    ring.publish();
    assert_eq!(driver.take_used(), [(0, 0)]);
    driver.descriptor(1, (DATA, 1, WRITE, 0));
    driver.offer(1);
    assert!(ring.pop(&driver.memory).expect("the ring is whole").expect("a chain").chain.is_ok());
    error
}

fn direct(descriptors: &[Descriptor]) -> ChainError {
    chain_of(descriptors, &[], Features::empty())
}

fn indirect(len: u32, flags: u16, table: &[Descriptor]) -> ChainError {
    chain_of(&[(TABLE, len, INDIRECT | flags, 1)], table, Features::INDIRECT_DESC)
}

#[test]
fn chain_that_is_none_gives_its_slot_back() {
    let two = [(DATA, 16, NEXT, 1), (DATA, 16, NEXT, 0)];
    assert_eq!(direct(&two), ChainError::Loop(8));
    assert_eq!(direct(&[(DATA, 16, NEXT, 0)]), ChainError::Loop(8));
    assert_eq!(direct(&[(DATA, 16, NEXT, 8)]), ChainError::Next { next: 8, size: 8 });
    assert_eq!(direct(&[(DATA, 16, NEXT, 0xffff)]), ChainError::Next { next: 0xffff, size: 8 });
    let behind = [(DATA, 16, WRITE | NEXT, 1), (DATA, 16, 0, 0)];
    assert_eq!(direct(&behind), ChainError::Order);
    let long = [(DATA, u32::MAX, NEXT, 1), (DATA, 2, 0, 0)];
    assert_eq!(direct(&long), ChainError::TooLong((1 << 32) + 1));
    assert_eq!(direct(&[(TABLE, 16, INDIRECT, 0)]), ChainError::NotNegotiated);
}

#[test]
fn table_that_is_none_gives_its_slot_back() {
    let one = [(DATA, 16, 0, 0)];
    assert_eq!(indirect(16, NEXT, &one), ChainError::IndirectNext);
    for len in [0, 8, 17, 16 * 1025, u32::MAX] {
        assert_eq!(indirect(len, 0, &one), ChainError::IndirectLength(len));
    }
    assert_eq!(indirect(16, 0, &[(TABLE, 16, INDIRECT, 0)]), ChainError::Nested);
    let leads_out = [(DATA, 16, NEXT, 1)];
    assert_eq!(indirect(16, 0, &leads_out), ChainError::Next { next: 1, size: 1 });
    let table_loop = [(DATA, 16, NEXT, 1), (DATA, 16, NEXT, 0)];
    assert_eq!(indirect(32, 0, &table_loop), ChainError::Loop(2));
    for addr in [GUEST, GUEST - 8, u64::MAX - 7, u64::MAX] {
        let outside = chain_of(&[(addr, 16, INDIRECT, 0)], &[], Features::INDIRECT_DESC);
        assert_eq!(outside, ChainError::IndirectOutside(addr));
    }
}

#[test]
fn index_that_runs_ahead_breaks_the_ring() {
    let mut driver = Driver::new(SIZE);
    let ring = driver.ring(Features::VERSION_1);
    driver.set_available(SIZE);
    assert_eq!(ring.peek(), Ok(true));
    for index in [SIZE + 1, 0x8000, 0xffff] {
        let mut ring = driver.ring(Features::VERSION_1);
        driver.set_available(index);
        let ahead = Broken::Ahead { ahead: index, size: SIZE };
        assert_eq!(ring.peek(), Err(ahead));
        assert_eq!(ring.allow_kicks(), Err(ahead));
        assert_eq!(ring.pop(&driver.memory), Err(ahead));
        // It stays so, whatever the driver says next.
        driver.set_available(1);
        assert_eq!((ring.peek(), ring.pop(&driver.memory)), (Err(ahead), Err(ahead)));
    }
}

#[test]
fn head_that_is_none_or_in_flight_breaks_the_ring() {
    for head in [SIZE, 0xffff] {
        let mut driver = Driver::new(SIZE);
        let mut ring = driver.ring(Features::VERSION_1);
        driver.offer(head);
        driver.descriptor(0, (DATA, 1, WRITE, 0));
        driver.offer(0);
        let broken = Err(Broken::Head { head, size: SIZE });
        assert_eq!(ring.pop(&driver.memory), broken);
        assert_eq!(ring.pop(&driver.memory), broken, "not the one behind it either");
    }
    let mut driver = Driver::new(SIZE);
    let mut ring = driver.ring(Features::VERSION_1);
    driver.chain(0, &[(DATA, 1, WRITE)]);
    driver.offer(0);
    driver.offer(0);
    assert!(ring.pop(&driver.memory).is_ok());
    assert_eq!(ring.pop(&driver.memory), Err(Broken::InFlight(0)));
}

/// Between the two the driver has not been told that it may.
#[test]
fn head_that_is_given_back_and_not_published_is_in_flight() {
    let mut driver = Driver::new(SIZE);
    let mut ring = driver.ring(Features::VERSION_1);
    driver.chain(0, &[(DATA, 1, WRITE)]);
    driver.offer(0);
    assert!(ring.pop(&driver.memory).is_ok());
    ring.push_used(0, 0);
    driver.offer(0);
    assert_eq!(ring.pop(&driver.memory), Err(Broken::InFlight(0)));
}

#[test]
fn chain_that_is_changed_behind_our_back_is_what_it_was() {
    let mut driver = Driver::new(SIZE);
    let mut ring = driver.ring(Features::VERSION_1);
    driver.chain(0, &[(DATA, 16, 0), (DATA + 512, 1, WRITE)]);
    driver.offer(0);
    let taken = ring.pop(&driver.memory).expect("a ring").expect("a chain");
    driver.chain(0, &[(GUEST, 16, 0), (u64::MAX, 1, WRITE)]);
    let chain = taken.chain.expect("it is one");
    assert_eq!((chain.readable[0].addr, chain.writable[0].addr), (DATA, DATA + 512));
}
