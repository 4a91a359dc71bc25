//! The memory in which the requests in flight of each ring outlive the server.
//!
//! ```text
//!   header   features, version, descriptors, last_batch_head, used_idx       16 bytes
//!   head 0   in flight?, next of its batch, counter: in which order taken    16 bytes
//!   head 1   …
//!   …        the same for each ring
//!   ours     whether the cache writes through: a front-end says that once, to one server
//! ```
//!
//! The front-end holds on to it while no server is there and gives it to the next one, which takes
//! what is in flight again. At any moment the server may be killed; so after every store each chain
//! is marked in flight, or the driver sees its end. One batch is in doubt, that of the last index:
//! `used_idx` is behind the ring's where the server was killed between telling the driver and
//! noting that it had, and the batch is then undone by its links from `last_batch_head` on.
//!
//! The file came from outside, and nothing in it is believed: see [`RingInflight::recover`].

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use thiserror::Error;

use crate::memory::{Area, Memory, Region, RegionError, Sealed};
use crate::proto::{InflightPlace, MAX_RING, RegionPlace};

/// Bytes of the header of a ring's part, and of each entry behind it.
const ENTRY: usize = 16;
/// To how many bytes the parts of rings are aligned: a line of the cache.
const ALIGN: usize = 64;
/// The version of what is in it.
const VERSION: u16 = 1;

// Where the fields of the header are,
const VERSION_AT: usize = 8;
const SIZE_AT: usize = 10;
const LAST_BATCH_HEAD: usize = 12;
const USED_INDEX: usize = 14;
// and those of an entry.
const IN_FLIGHT: usize = 0;
const NEXT: usize = 6;
const COUNTER: usize = 8;

/// Why memory for requests in flight is not taken.
#[derive(Debug, Error)]
pub enum InflightError {
    /// The number or the size of the rings is not allowed.
    #[error(
        "memory for the requests in flight of {queues} rings of {ring_size} descriptors: 1 to \
         {most} rings are allowed, each a power of two up to {MAX_RING}"
    )]
    Shape {
        /// The rings.
        queues: u16,
        /// The descriptors of each.
        ring_size: u16,
        /// The most rings.
        most: u16,
    },
    /// It is too small for its rings.
    #[error("{size} bytes for requests in flight: these rings need {needed}")]
    Small {
        /// Its bytes.
        size: u64,
        /// What is needed.
        needed: u64,
    },
    /// It is no memory.
    #[error(transparent)]
    Region(#[from] RegionError),
    /// There is none.
    #[error("there is no memory for requests in flight: {0}")]
    System(#[from] io::Error),
}

/// The memory of all rings of a device.
#[derive(Debug)]
pub struct Inflight {
    memory: Memory,
    place: InflightPlace,
    /// What is not the rings'.
    ours: Option<Area>,
}

impl Inflight {
    /// Makes memory for these rings of a device that has `most`. The descriptor is for the
    /// front-end.
    pub fn create(
        queues: u16,
        ring_size: u16,
        most: u16,
    ) -> Result<(Self, OwnedFd), InflightError> {
        let size = needed(queues, ring_size, most)? + ALIGN as u64;
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = memfd_create("requests in flight", flags).map_err(io::Error::from)?;
        ftruncate(&file, size).map_err(io::Error::from)?;
        let seals = SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
        fcntl_add_seals(&file, seals).map_err(io::Error::from)?;
        let place = InflightPlace { size, offset: 0, queues, ring_size };
        let ours = file.try_clone()?;
        Ok((Self::map(place, ours, most, Sealed::Required)?, file))
    }

    /// Takes the memory that a front-end has of a server before this one, for a device that has
    /// `most` rings.
    pub fn map(
        place: InflightPlace,
        file: OwnedFd,
        most: u16,
        sealed: Sealed,
    ) -> Result<Self, InflightError> {
        let InflightPlace { size, offset, queues, ring_size } = place;
        let needed = needed(queues, ring_size, most)?;
        if size < needed {
            return Err(InflightError::Small { size, needed });
        }
        let mut memory = Memory::default();
        let region = RegionPlace { guest: 0, size, front_end: 0, offset };
        memory.add(Region::map(region, file, sealed)?)?;
        // That of another program may have no such part.
        let ours = memory.area(needed, ALIGN);
        Ok(Self { memory, place, ours })
    }

    /// Returns whether the driver was told that what is answered is durable.
    pub fn writes_through(&self) -> bool {
        self.ours.as_ref().is_some_and(|ours| ours.load::<u16>(0, Ordering::Relaxed) == 1)
    }

    /// Notes that it was, or that it was not, for the server behind this one.
    pub fn set_writes_through(&self, writes_through: bool) {
        if let Some(ours) = &self.ours {
            ours.store(0, u16::from(writes_through), Ordering::Relaxed);
        }
    }

    /// Its size and the rings that it is for.
    pub fn place(&self) -> InflightPlace {
        self.place
    }

    /// Returns whether its file has been found to be shorter than it was.
    pub fn is_lost(&self) -> bool {
        self.memory.is_lost()
    }

    /// The part of a ring of so many descriptors; none where it is for fewer rings or shorter ones.
    pub fn ring(&self, ring: u16, size: u16) -> Option<RingInflight> {
        let InflightPlace { queues, ring_size, .. } = self.place;
        if ring >= queues || size > ring_size {
            return None;
        }
        let at = usize::from(ring) * stride(ring_size);
        let len = ENTRY * (1 + usize::from(size));
        let area = self.memory.area(at as u64, len)?;
        Some(RingInflight { area, size, counter: 0 })
    }
}

/// The bytes that these rings need, where a device has `most`.
fn needed(queues: u16, ring_size: u16, most: u16) -> Result<u64, InflightError> {
    if !(1..=most).contains(&queues) || !ring_size.is_power_of_two() || ring_size > MAX_RING {
        return Err(InflightError::Shape { queues, ring_size, most });
    }
    Ok((usize::from(queues) * stride(ring_size)) as u64)
}

/// The bytes from one ring's part to the next.
fn stride(ring_size: u16) -> usize {
    (ENTRY * (1 + usize::from(ring_size))).next_multiple_of(ALIGN)
}

/// The requests in flight of one ring.
#[derive(Debug)]
pub struct RingInflight {
    area: Area,
    size: u16,
    /// The next chain's number in the order in which they are taken.
    counter: u64,
}

impl RingInflight {
    /// Returns the heads in flight, in the order in which they were taken, where the driver has
    /// been told of the chains before `used` and has offered so many more.
    ///
    /// What contradicts itself is memory that a server has never written to, or lies: then nothing
    /// is in flight, and it begins anew.
    pub(crate) fn recover(&mut self, used: u16, offered: u16) -> Result<Vec<u16>, InvalidRegion> {
        match self.read(used, offered) {
            Ok(heads) => {
                self.area.store(USED_INDEX, used, Ordering::Release);
                Ok(heads)
            }
            Err(contradiction) => {
                self.begin(used);
                Err(contradiction)
            }
        }
    }

    fn read(&mut self, used: u16, offered: u16) -> Result<Vec<u16>, InvalidRegion> {
        let header = |at| self.area.load::<u16>(at, Ordering::Acquire);
        let (version, size) = (header(VERSION_AT), header(SIZE_AT));
        let features: u64 = self.area.load(0, Ordering::Acquire);
        if version == 0 {
            return Err(InvalidRegion::New);
        }
        if version != VERSION || size != self.size || features != 0 {
            return Err(InvalidRegion::Header { version, size, features });
        }
        let mut in_doubt = used.wrapping_sub(header(USED_INDEX));
        if in_doubt > self.size {
            return Err(InvalidRegion::Batch(in_doubt));
        }
        let mut head = header(LAST_BATCH_HEAD);
        while in_doubt > 0 {
            if head >= self.size {
                return Err(InvalidRegion::Link(head));
            }
            self.area.store(entry(head) + IN_FLIGHT, 0u8, Ordering::Release);
            head = self.area.load(entry(head) + NEXT, Ordering::Acquire);
            in_doubt -= 1;
        }
        let mut heads = Vec::new();
        for head in 0..self.size {
            match self.area.load::<u8>(entry(head) + IN_FLIGHT, Ordering::Acquire) {
                0 => {}
                1 => {
                    heads.push((
                        self.area.load::<u64>(entry(head) + COUNTER, Ordering::Acquire),
                        head,
                    ));
                }
                other => return Err(InvalidRegion::Entry(other)),
            }
        }
        if heads.len() > usize::from(offered) {
            return Err(InvalidRegion::TooMany { in_flight: heads.len(), offered });
        }
        heads.sort_unstable();
        self.counter = heads.last().map_or(0, |(counter, _)| counter.wrapping_add(1));
        Ok(heads.into_iter().map(|(_, head)| head).collect())
    }

    /// Begins with nothing in flight.
    fn begin(&mut self, used: u16) {
        // First of all nobody believes what is not written yet.
        self.area.store(VERSION_AT, 0u16, Ordering::Release);
        self.area.write(0, &vec![0; ENTRY * (1 + usize::from(self.size))]);
        self.area.store(SIZE_AT, self.size, Ordering::Release);
        // Of 0 a successor would believe that this batch is to be undone.
        self.area.store(USED_INDEX, used, Ordering::Release);
        self.area.store(VERSION_AT, VERSION, Ordering::Release);
        self.counter = 0;
    }

    /// A chain is taken.
    pub(crate) fn taken(&mut self, head: u16) {
        self.area.store(entry(head) + COUNTER, self.counter, Ordering::Release);
        self.counter = self.counter.wrapping_add(1);
        self.area.store(entry(head) + IN_FLIGHT, 1u8, Ordering::Release);
    }

    /// A chain is given back, and the driver not told yet.
    pub(crate) fn given_back(&mut self, head: u16) {
        let last: u16 = self.area.load(LAST_BATCH_HEAD, Ordering::Acquire);
        self.area.store(entry(head) + NEXT, last, Ordering::Release);
        self.area.store(LAST_BATCH_HEAD, head, Ordering::Release);
    }

    /// The driver has been told of the batch that was given back, and so of all before `used`.
    pub(crate) fn published(&mut self, batch: &[u16], used: u16) {
        for &head in batch {
            self.area.store(entry(head) + IN_FLIGHT, 0u8, Ordering::Release);
        }
        self.area.store(USED_INDEX, used, Ordering::Release);
    }
}

/// Where the entry of a head begins.
fn entry(head: u16) -> usize {
    ENTRY * (1 + usize::from(head))
}

/// What is not as a server leaves it.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum InvalidRegion {
    /// No server has written to it.
    #[error("it is new")]
    New,
    /// It is of another kind of ring.
    #[error("it is of version {version}, for {size} descriptors, with features {features:#x}")]
    Header {
        /// Its version.
        version: u16,
        /// Its descriptors.
        size: u16,
        /// Its features: none are known.
        features: u64,
    },
    /// It has more in flight than the driver has offered.
    #[error("it has {in_flight} chains in flight where the driver has offered {offered}")]
    TooMany {
        /// Those in flight.
        in_flight: usize,
        /// Those that the driver has offered and was not told the end of.
        offered: u16,
    },
    /// It is too far behind.
    #[error("it is {0} chains behind the ring")]
    Batch(u16),
    /// A link leads out of it.
    #[error("its last batch leads to descriptor {0}")]
    Link(u16),
    /// A chain is neither in flight nor not.
    #[error("a chain has {0} where 0 or 1 is allowed")]
    Entry(u8),
}
