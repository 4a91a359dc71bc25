//! Requests in flight that outlive a server, wherever it is killed.

use std::os::fd::OwnedFd;

use paternoster_vhost::proto::{Features, InflightPlace};
use paternoster_vhost::{Inflight, InflightError, InvalidRegion, Sealed, SplitRing};

use crate::driver::{DATA, Driver, WRITE, memfd};

const SIZE: u16 = 8;

/// What the front-end holds on to.
struct Kept {
    place: InflightPlace,
    file: OwnedFd,
}

impl Kept {
    fn new() -> Self {
        let (inflight, file) = Inflight::create(2, SIZE, 2).expect("memory");
        Self { place: inflight.place(), file }
    }

    /// A server that begins with the ring.
    fn begin(&self, driver: &Driver) -> (SplitRing, Result<(), InvalidRegion>) {
        let file = self.file.try_clone().expect("a descriptor");
        let inflight = Inflight::map(self.place, file, 2, Sealed::Required).expect("memory");
        let mut ring = driver.ring(Features::VERSION_1);
        let recovered = ring.recover(inflight.ring(1, SIZE).expect("it has two"));
        (ring, recovered)
    }

    /// Reads and writes the part of the second ring, as the protocol lays it out.
    fn raw(&self) -> RawRing<'_> {
        // 16 bytes of header and 16 a descriptor are 144: 192 to the next line of the cache.
        RawRing(&self.file, 192)
    }
}

/// The part of a ring in the file.
struct RawRing<'a>(&'a OwnedFd, u64);

impl RawRing<'_> {
    fn read<const N: usize>(&self, at: u64) -> [u8; N] {
        let mut bytes = [0; N];
        rustix::io::pread(self.0, &mut bytes, self.1 + at).expect("it is there");
        bytes
    }

    fn write(&self, at: u64, bytes: &[u8]) {
        rustix::io::pwrite(self.0, bytes, self.1 + at).expect("it is there");
    }

    fn in_flight(&self) -> Vec<u8> {
        (0..u64::from(SIZE)).map(|head| self.read::<1>(16 + 16 * head)[0]).collect()
    }
}

/// Takes the next chain, whose head that is.
fn pop(driver: &Driver, ring: &mut SplitRing) -> Option<u16> {
    let taken = ring.pop(&driver.memory).expect("a ring")?;
    assert!(taken.chain.is_ok());
    Some(taken.head)
}

fn all(driver: &Driver, ring: &mut SplitRing) -> Vec<u16> {
    std::iter::from_fn(|| pop(driver, ring)).collect()
}

/// A driver with all of its chains written, and these available.
fn driver(offered: &[u16]) -> Driver {
    let mut driver = Driver::new(SIZE);
    for head in 0..SIZE {
        driver.descriptor(head, (DATA, 1, WRITE, 0));
    }
    for &head in offered {
        driver.offer(head);
    }
    driver
}

#[test]
fn what_is_in_flight_is_taken_again_in_its_order() {
    let (kept, mut driver) = (Kept::new(), driver(&[7, 2, 5, 0]));
    let (mut ring, recovered) = kept.begin(&driver);
    assert_eq!(recovered, Err(InvalidRegion::New));
    assert_eq!([(); 3].map(|()| pop(&driver, &mut ring)), [Some(7), Some(2), Some(5)]);
    ring.push_used(2, 1);
    ring.publish();
    drop(ring);
    // One was never taken: it comes behind.
    let (mut ring, recovered) = kept.begin(&driver);
    assert_eq!(recovered, Ok(()));
    assert!(ring.peek().expect("a ring"));
    assert_eq!(all(&driver, &mut ring), [7, 5, 0]);
    drop(ring);
    // And so it does for the server after that, though its head is the least.
    let (mut ring, recovered) = kept.begin(&driver);
    assert_eq!((recovered, all(&driver, &mut ring)), (Ok(()), vec![7, 5, 0]));
    for head in [0, 5, 7] {
        ring.push_used(head, 1);
    }
    ring.publish();
    assert_eq!(driver.take_used(), [(2, 1), (0, 1), (5, 1), (7, 1)]);
    let (mut ring, recovered) = kept.begin(&driver);
    assert_eq!((recovered, all(&driver, &mut ring)), (Ok(()), vec![]));
}

/// What was given back and not published was not seen by the driver.
#[test]
fn what_the_driver_was_not_told_of_is_taken_again() {
    let (kept, driver) = (Kept::new(), driver(&[1, 4, 6]));
    let (mut ring, _) = kept.begin(&driver);
    all(&driver, &mut ring);
    ring.push_used(4, 1);
    ring.push_used(1, 1);
    drop(ring);
    let (mut ring, recovered) = kept.begin(&driver);
    assert_eq!((recovered, all(&driver, &mut ring)), (Ok(()), vec![1, 4, 6]));
}

/// Killed behind the index and before any, one or all of the marks: the driver knows of the batch.
#[test]
fn batch_that_the_driver_was_told_of_is_not_taken_again() {
    for marks in 0..=3 {
        let (kept, mut driver) = (Kept::new(), driver(&[1, 4, 6, 3]));
        let (mut ring, _) = kept.begin(&driver);
        all(&driver, &mut ring);
        let batch = [4, 1, 3];
        for head in batch {
            ring.push_used(head, 1);
        }
        ring.publish();
        drop(ring);
        let raw = kept.raw();
        // `used_idx` is written behind the marks.
        raw.write(14, &0u16.to_ne_bytes());
        for head in &batch[marks..] {
            raw.write(16 + 16 * u64::from(*head), &[1]);
        }
        let (mut ring, recovered) = kept.begin(&driver);
        assert_eq!((recovered, all(&driver, &mut ring)), (Ok(()), vec![6]), "{marks} marks");
        assert_eq!(raw.read(14), 3u16.to_ne_bytes());
        ring.push_used(6, 1);
        ring.publish();
        assert_eq!(driver.take_used().len(), 4);
        assert_eq!(raw.in_flight(), [0; 8]);
    }
}

/// As spdk#3766: a 0 there would have the first batch after a restart undone.
#[test]
fn new_memory_begins_at_the_rings_index() {
    let (kept, driver) = (Kept::new(), driver(&[]));
    driver.set_used_index(40);
    let (_, recovered) = kept.begin(&driver);
    assert_eq!(recovered, Err(InvalidRegion::New));
    let raw = kept.raw();
    assert_eq!((raw.read(8), raw.read(10)), (1u16.to_ne_bytes(), SIZE.to_ne_bytes()));
    assert_eq!(raw.read(14), 40u16.to_ne_bytes());
}

#[test]
fn lies_begin_anew() {
    // Where, what, and what is said of it.
    let lies: [(u64, u16, InvalidRegion); 6] = [
        (0, 1, InvalidRegion::Header { version: 1, size: SIZE, features: 1 }),
        (8, 2, InvalidRegion::Header { version: 2, size: SIZE, features: 0 }),
        (10, 16, InvalidRegion::Header { version: 1, size: 16, features: 0 }),
        (14, 0xfff0, InvalidRegion::Batch(17)),
        (16, 7, InvalidRegion::Entry(7)),
        (12, 8, InvalidRegion::Link(8)),
    ];
    for (at, lie, says) in lies {
        let (kept, mut driver) = (Kept::new(), driver(&[0, 1]));
        let (mut ring, _) = kept.begin(&driver);
        all(&driver, &mut ring);
        ring.push_used(0, 1);
        ring.publish();
        drop(ring);
        let raw = kept.raw();
        raw.write(at, &lie.to_ne_bytes());
        if at == 12 {
            // One chain is in doubt.
            raw.write(14, &0u16.to_ne_bytes());
        }
        let (_, recovered) = kept.begin(&driver);
        assert_eq!(recovered, Err(says));
        assert_eq!(raw.in_flight(), [0; 8]);
        driver.take_used();
    }
}

/// Whoever says that more is in flight than the driver has offered would have us take what is not
/// there.
#[test]
fn more_in_flight_than_the_driver_has_offered_begins_anew() {
    let (kept, mut driver) = (Kept::new(), driver(&[0, 1]));
    let (mut ring, _) = kept.begin(&driver);
    all(&driver, &mut ring);
    drop(ring);
    let raw = kept.raw();
    raw.write(16 + 16 * 5, &[1]);
    let (mut ring, recovered) = kept.begin(&driver);
    assert_eq!(recovered, Err(InvalidRegion::TooMany { in_flight: 3, offered: 2 }));
    // Nothing is in flight then, and what the driver has offered is taken from the start.
    assert_eq!((raw.in_flight(), ring.in_flight()), (vec![0; 8], 0));
    assert_eq!(all(&driver, &mut ring), [0, 1]);
    driver.take_used();
}

/// As cloud-hypervisor does, which goes on behind what it has offered.
#[test]
fn ring_with_new_memory_goes_on_at_its_used_index_whatever_the_base_says() {
    let (kept, mut driver) = (Kept::new(), driver(&[3, 2]));
    let file = kept.file.try_clone().expect("a descriptor");
    let inflight = Inflight::map(kept.place, file, 2, Sealed::Required).expect("memory");
    let mut ring = driver.ring_at(2, Features::VERSION_1);
    let recovered = ring.recover(inflight.ring(1, SIZE).expect("it has two"));
    assert_eq!(recovered, Err(InvalidRegion::New));
    assert_eq!(all(&driver, &mut ring), [3, 2]);
    driver.take_used();
}

#[test]
fn chains_to_be_taken_again_are_in_flight_before_they_are() {
    let (kept, driver) = (Kept::new(), driver(&[3, 2]));
    let (mut ring, _) = kept.begin(&driver);
    all(&driver, &mut ring);
    let (ring, recovered) = kept.begin(&driver);
    assert_eq!((recovered, ring.in_flight(), ring.next_available()), (Ok(()), 2, 2));
}

#[test]
fn memory_of_another_shape_is_refused() {
    for (queues, ring_size) in [(0, 8), (3, 8), (2, 0), (2, 12), (2, 2048)] {
        let error = Inflight::create(queues, ring_size, 2).expect_err("there are no such rings");
        assert!(matches!(error, InflightError::Shape { .. }), "{error}");
    }
    let place = InflightPlace { size: 383, offset: 0, queues: 2, ring_size: 8 };
    let error =
        Inflight::map(place, memfd(4096), 2, Sealed::Required).expect_err("it is too small");
    assert_eq!(error.to_string(), "383 bytes for requests in flight: these rings need 384");
    let (inflight, _file) = Inflight::create(2, 8, 2).expect("memory");
    assert!(inflight.ring(2, 8).is_none() && inflight.ring(1, 16).is_none());
    assert!(inflight.ring(1, 4).is_some(), "a shorter ring has room");
}
