//! A guest's memory as we see it: regions of files that a front-end has given us.
//!
//! ```text
//!   guest      0 ┌────────┐  4 GiB ┌──────┐       descriptors of a chain
//!                │ region │        │region│
//!   front-end    └────────┘        └──────┘       areas of a ring
//! ```
//!
//! Every address from outside is checked here. No Rust reference points into the memory: the guest
//! may write to it at any time, so bytes are copied, each once, or the kernel reads a file straight
//! into it, and the indices of rings are loaded and stored as atoms.
//!
//! A range may cross from one region to the next where the two adjoin in the guest. The memory may
//! be changed while requests are in flight: these go on with the [`Memory`] that there was, behind
//! an `Arc`, which holds on to its regions.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rustix::fs::{SealFlags, fcntl_get_seals, fstat, fstatfs};
use thiserror::Error;
use vm_memory::mmap::MmapRegion;
use vm_memory::{AtomicAccess, Bytes as _, FileOffset, VolatileMemory as _};

use crate::proto::{MAX_SLOTS, RegionPlace};
use crate::sigbus::{MAX_MAPPINGS, Watched};

/// The file systems of which memory is taken, as `statfs` numbers them: a page of theirs is there
/// or is not. On others a fault may take for ever.
const FILE_SYSTEMS: [i64; 2] = [TMPFS, HUGETLBFS];
const TMPFS: i64 = 0x0102_1994;
const HUGETLBFS: i64 = 0x9584_58f6;

/// Why a region is not taken.
#[derive(Debug, Error)]
pub enum RegionError {
    /// There is nothing in it, or an address wraps.
    #[error(
        "a region of {size} bytes at {guest:#x} of the guest: none is empty, or ends beyond 2⁶⁴"
    )]
    Size {
        /// The bytes.
        size: u64,
        /// The guest's address.
        guest: u64,
    },
    /// The file is shorter.
    #[error("a region ends at {end} of a file of {file} bytes: it has to be in the file")]
    Short {
        /// Where it ends.
        end: u64,
        /// How long the file is.
        file: u64,
    },
    /// The file may become shorter, and may not.
    #[error("the file of a region may be made shorter: it has to have F_SEAL_SHRINK")]
    Unsealed,
    /// It is not memory.
    #[error("a region is on a file system of type {0:#x}: it has to be on tmpfs or hugetlbfs")]
    FileSystem(i64),
    /// It is not of whole pages, and could not be unmapped.
    #[error("a region of {size} bytes of huge pages: whole pages of {page} bytes are allowed")]
    HugePages {
        /// The bytes.
        size: u64,
        /// Those of a page.
        page: u64,
    },
    /// It cannot be asked or mapped.
    #[error("a region cannot be mapped: {0}")]
    System(#[from] io::Error),
    /// It overlaps another.
    #[error("a region of {size} bytes at {guest:#x} overlaps one at {other:#x}")]
    Overlaps {
        /// The bytes.
        size: u64,
        /// The guest's address.
        guest: u64,
        /// That of the other.
        other: u64,
    },
    /// There are too many.
    #[error("one region more than the {MAX_SLOTS} that memory may have")]
    TooMany,
    /// The server has too many.
    #[error("one mapping more than the {MAX_MAPPINGS} of the whole server")]
    Mappings,
    /// There is none like it.
    #[error("there is no region of {size} bytes at {guest:#x} to be removed")]
    Unknown {
        /// The bytes.
        size: u64,
        /// The guest's address.
        guest: u64,
    },
}

/// Whether the file of a region may be one that can be made shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sealed {
    /// It may.
    Any,
    /// It may not.
    Required,
}

/// A range that is not in the memory.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("{len} bytes at {addr:#x} are not in the guest's memory")]
pub struct Outside {
    /// Where it begins.
    pub addr: u64,
    /// Its bytes.
    pub len: u64,
}

/// A region that is mapped.
#[derive(Debug)]
pub struct Region {
    place: RegionPlace,
    // In this order: what is watched is mapped.
    watched: Watched,
    mapping: MmapRegion<()>,
    can_shrink: bool,
}

impl Region {
    /// Maps a region of a file. Nothing outside the file is mapped, whatever the front-end says.
    pub fn map(place: RegionPlace, file: OwnedFd, sealed: Sealed) -> Result<Self, RegionError> {
        let RegionPlace { guest, size, front_end, offset } = place;
        let wraps = |start: u64| start.checked_add(size).is_none();
        let bytes = usize::try_from(size).ok().filter(|&bytes| bytes > 0);
        let Some(bytes) = bytes.filter(|_| ![guest, front_end].into_iter().any(wraps)) else {
            return Err(RegionError::Size { size, guest });
        };
        let system = fstatfs(&file).map_err(io::Error::from)?;
        if !FILE_SYSTEMS.contains(&system.f_type) {
            return Err(RegionError::FileSystem(system.f_type));
        }
        // Of a huge page the kernel unmaps no part.
        let page = u64::try_from(system.f_bsize).unwrap_or(1).max(1);
        if system.f_type == HUGETLBFS && !size.is_multiple_of(page) {
            return Err(RegionError::HugePages { size, page });
        }
        let status = fstat(&file).map_err(io::Error::from)?;
        let file_bytes = u64::try_from(status.st_size).unwrap_or(0);
        match offset.checked_add(size) {
            Some(end) if end <= file_bytes => {}
            end => {
                let end = end.unwrap_or(u64::MAX);
                return Err(RegionError::Short { end, file: file_bytes });
            }
        }
        let can_shrink = can_shrink(&file);
        if sealed == Sealed::Required && can_shrink {
            return Err(RegionError::Unsealed);
        }
        let from = FileOffset::new(file.into(), offset);
        let mapping = MmapRegion::from_file(from, bytes).map_err(io::Error::other)?;
        let watched = Watched::new(mapping.as_ptr(), bytes)?.ok_or(RegionError::Mappings)?;
        Ok(Self { place, watched, mapping, can_shrink })
    }

    /// Returns whether its file was found to be shorter than it was. Then it is zeroes, and nobody
    /// else's.
    fn is_lost(&self) -> bool {
        self.watched.is_lost()
    }

    /// Where a range of the guest's addresses begins here, and how much of it is here.
    fn part(&self, addr: u64, len: u64) -> Option<(usize, usize)> {
        let offset = addr.checked_sub(self.place.guest)?;
        let there = self.place.size.checked_sub(offset).filter(|there| *there > 0)?;
        let offset = usize::try_from(offset).ok()?;
        Some((offset, usize::try_from(there.min(len)).ok()?))
    }
}

/// What it is mapped by.
impl AsRef<MmapRegion<()>> for Region {
    fn as_ref(&self) -> &MmapRegion<()> {
        &self.mapping
    }
}

/// Returns whether a file can be made shorter.
fn can_shrink(file: &OwnedFd) -> bool {
    // A file that cannot be asked has no seals.
    !fcntl_get_seals(file).is_ok_and(|seals| seals.contains(SealFlags::SHRINK))
}

/// The regions of a guest's memory.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    /// By the guest's address.
    regions: Vec<Arc<Region>>,
}

impl Memory {
    /// Adds a region.
    pub fn add(&mut self, region: Region) -> Result<(), RegionError> {
        if self.regions.len() >= MAX_SLOTS {
            return Err(RegionError::TooMany);
        }
        let RegionPlace { guest, size, front_end, .. } = region.place;
        let overlaps = |a: u64, b: u64, other: u64| a < b + other && b < a + size;
        let other = self.regions.iter().map(|other| other.place).find(|other| {
            overlaps(guest, other.guest, other.size)
                || overlaps(front_end, other.front_end, other.size)
        });
        if let Some(other) = other {
            return Err(RegionError::Overlaps { size, guest, other: other.guest });
        }
        let place = self.regions.partition_point(|other| other.place.guest < guest);
        self.regions.insert(place, Arc::new(region));
        Ok(())
    }

    /// Removes a region, which has to be as it was added; where it is in its file does not count.
    pub fn remove(&mut self, place: RegionPlace) -> Result<(), RegionError> {
        let RegionPlace { guest, size, front_end, .. } = place;
        let found = self.regions.iter().position(|region| {
            let here = region.place;
            (here.guest, here.size, here.front_end) == (guest, size, front_end)
        });
        let Some(found) = found else { return Err(RegionError::Unknown { size, guest }) };
        self.regions.remove(found);
        Ok(())
    }

    /// The number of its regions.
    pub fn regions(&self) -> usize {
        self.regions.len()
    }

    /// Returns whether a part of it can be taken away: whether a file can be made shorter.
    pub fn can_shrink(&self) -> bool {
        self.regions.iter().any(|region| region.can_shrink)
    }

    /// Returns whether there is none.
    pub fn is_empty(&self) -> bool {
        self.regions.is_empty()
    }

    /// Returns whether the file of a region has been found to be shorter than it was: the front-end
    /// has taken the memory away, and what is read of it is zeroes.
    pub fn is_lost(&self) -> bool {
        self.regions.iter().any(|region| region.is_lost())
    }

    /// Copies from the guest.
    pub fn read(&self, addr: u64, into: &mut [u8]) -> Result<(), Outside> {
        let mut done = 0;
        self.parts(addr, into.len() as u64, |region, offset, len| {
            let slice = region.mapping.get_slice(offset, len).expect("it is in the region");
            slice.copy_to(&mut into[done..done + len]);
            done += len;
        })
    }

    /// Copies to the guest. Nothing is written where not all of it is in the memory.
    pub fn write(&self, addr: u64, from: &[u8]) -> Result<(), Outside> {
        self.check(addr, from.len() as u64)?;
        let mut done = 0;
        self.parts(addr, from.len() as u64, |region, offset, len| {
            let slice = region.mapping.get_slice(offset, len).expect("it is in the region");
            slice.copy_from(&from[done..done + len]);
            done += len;
        })
    }

    /// Returns whether a range is in the memory.
    pub fn check(&self, addr: u64, len: u64) -> Result<(), Outside> {
        self.parts(addr, len, |_, _, _| ())
    }

    /// The area of so many bytes at an address of the front-end, if one region has all of it.
    pub(crate) fn area(&self, front_end: u64, len: usize) -> Option<Area> {
        let has = |region: &&Arc<Region>| {
            let place = region.place;
            let offset = front_end.checked_sub(place.front_end);
            let end = offset.and_then(|offset| offset.checked_add(len as u64));
            end.is_some_and(|end| end <= place.size)
        };
        let region = self.regions.iter().find(has)?;
        let offset = usize::try_from(front_end - region.place.front_end).ok()?;
        Some(Area { region: Arc::clone(region), offset, len })
    }

    /// Calls `each` for each part of a range that is in one region: with the region, where the part
    /// begins there, and its bytes.
    pub(crate) fn parts(
        &self,
        addr: u64,
        len: u64,
        mut each: impl FnMut(&Arc<Region>, usize, usize),
    ) -> Result<(), Outside> {
        let outside = Outside { addr, len };
        let (mut at, mut left) = (addr, len);
        while left > 0 {
            let after = self.regions.partition_point(|region| region.place.guest <= at);
            let region = after.checked_sub(1).map(|place| &self.regions[place]);
            let part = region.and_then(|region| Some((region, region.part(at, left)?)));
            let Some((region, (offset, there))) = part else { return Err(outside) };
            each(region, offset, there);
            left -= there as u64;
            at = match at.checked_add(there as u64) {
                Some(next) => next,
                None if left == 0 => at,
                None => return Err(outside),
            };
        }
        Ok(())
    }
}

/// A part of a region that is used for as long as its ring is.
#[derive(Clone, Debug)]
pub(crate) struct Area {
    region: Arc<Region>,
    offset: usize,
    len: usize,
}

impl Area {
    pub(crate) fn read<const N: usize>(&self, at: usize) -> [u8; N] {
        let mut bytes = [0; N];
        let slice = self.region.mapping.get_slice(self.at(at, N), N).expect("it is in the area");
        slice.copy_to(&mut bytes);
        bytes
    }

    pub(crate) fn write(&self, at: usize, bytes: &[u8]) {
        #[cfg(test)]
        crate::killed::before_store();
        let len = bytes.len();
        let slice = self.region.mapping.get_slice(self.at(at, len), len);
        slice.expect("it is in the area").copy_from(bytes);
    }

    pub(crate) fn load<T: AtomicAccess>(&self, at: usize, ordering: Ordering) -> T {
        let slice = self.region.mapping.as_volatile_slice();
        let at = self.at(at, size_of::<T>());
        slice.load(at, ordering).expect("it is aligned, in the area")
    }

    pub(crate) fn store<T: AtomicAccess>(&self, at: usize, value: T, ordering: Ordering) {
        #[cfg(test)]
        crate::killed::before_store();
        let slice = self.region.mapping.as_volatile_slice();
        let at = self.at(at, size_of::<T>());
        slice.store(value, at, ordering).expect("it is aligned, in the area");
    }

    /// Returns whether it is aligned where it is mapped: the mapping is, to a page.
    pub(crate) fn is_aligned(&self, to: usize) -> bool {
        self.offset.is_multiple_of(to)
    }

    /// Where in the region a part of the area begins.
    fn at(&self, at: usize, len: usize) -> usize {
        assert!(at + len <= self.len, "it is in the area");
        self.offset + at
    }
}
