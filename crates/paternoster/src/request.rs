//! What is scheduled: a bio is what a submitter asks for, a request is what a scheduler holds:
//! one bio, or several of adjacent ranges merged.
//!
//! ```text
//!   bio [100,+8)  ──made──▶  request [100,+8)
//!   bio [108,+8)  ──back merge──▶    [100,+16)     user data: both, in the order of merging
//! ```

use std::fmt;
use std::ops::Add;

use bitflags::bitflags;
use slotmap::{KeyData, SlotMap};
use smallvec::SmallVec;

use crate::arena::{GroupId, IocId, Linked, ListLinks, RequestId};
use crate::io_context::IoPrio;
use crate::parts::sort_list::SortNodes;
use crate::time::Instant;

/// A position on the device, in sectors of 512 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sector(pub u64);

/// A length in sectors of 512 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SectorCount(pub u32);

impl SectorCount {
    /// Bytes in a sector.
    pub const SECTOR_BYTES: u32 = 512;

    /// The length in bytes.
    #[inline]
    pub const fn bytes(self) -> u64 {
        self.0 as u64 * Self::SECTOR_BYTES as u64
    }
}

impl Add<SectorCount> for Sector {
    type Output = Self;
    /// That many sectors further on, 2⁶⁴ − 1 at most: an elevator takes no bio that ends beyond.
    #[inline]
    fn add(self, count: SectorCount) -> Self {
        Self(self.0.saturating_add(u64::from(count.0)))
    }
}

impl Add for SectorCount {
    type Output = Self;
    #[inline]
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum Op {
    /// Read the range.
    Read,
    /// Write the range.
    Write,
    /// The range is no longer needed.
    Discard,
    /// Make the range read as zeroes.
    WriteZeroes,
    /// Make durable what was completed; has no range.
    Flush,
}

impl Op {
    /// The number of operations.
    pub const COUNT: usize = 5;
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; Self::COUNT] =
        [Self::Read, Self::Write, Self::Discard, Self::WriteZeroes, Self::Flush];

    /// The direction as schedulers see it: everything that changes the device is a write.
    #[inline]
    pub const fn direction(self) -> Direction {
        match self {
            Self::Read | Self::Flush => Direction::Read,
            Self::Write | Self::Discard | Self::WriteZeroes => Direction::Write,
        }
    }
}

/// Whether data leave the device or change it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Direction {
    /// From the device.
    Read = 0,
    /// To the device.
    Write = 1,
}

bitflags! {
    /// How a bio is to be treated.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct BioFlags: u8 {
        /// Somebody waits for it. Every read is synchronous, with or without this flag.
        const SYNC = 1;
        /// To be durable when it completes. Bypasses the scheduler, as in Linux.
        const FUA = 1 << 1;
        /// What was completed before is to be made durable first. Bypasses the scheduler.
        const PREFLUSH = 1 << 2;
        /// Never to be merged with another.
        const NO_MERGE = 1 << 3;
        /// A synchronous write after which its submitter is expected to go on soon, as after an
        /// `O_DIRECT` one (`REQ_IDLE`).
        const IDLE = 1 << 4;
        /// Metadata that much else waits for (`REQ_PRIO`).
        const PRIO = 1 << 5;
    }
}

/// One piece of I/O as a submitter gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bio {
    /// What is to be done.
    pub op: Op,
    /// How.
    pub flags: BioFlags,
    /// Where it starts.
    pub sector: Sector,
    /// How long it is; 0 for a flush, and for nothing else.
    pub sectors: SectorCount,
    /// Pieces of memory that it gathers or scatters.
    pub segments: u16,
    /// Who issues it.
    pub ioc: IocId,
    /// The submitter's own name for it, given back when it completes.
    pub user_data: u64,
}

impl Bio {
    /// Whether it goes round the scheduler: a flush, or anything with FUA or PREFLUSH.
    #[inline]
    pub const fn bypasses(&self) -> bool {
        matches!(self.op, Op::Flush)
            || self.flags.intersects(BioFlags::FUA.union(BioFlags::PREFLUSH))
    }

    /// Whether somebody waits for it.
    #[inline]
    pub const fn is_sync(&self) -> bool {
        matches!(self.op, Op::Read) || self.flags.contains(BioFlags::SYNC)
    }

    /// Whether it may merge at all.
    #[inline]
    pub(crate) const fn is_mergeable(&self) -> bool {
        !self.bypasses() && !self.flags.contains(BioFlags::NO_MERGE)
    }

    /// The sector behind its last.
    #[inline]
    pub fn end(&self) -> Sector {
        self.sector + self.sectors
    }

    /// Asserts that its range is one, so that no sum of sectors wraps behind this.
    #[inline]
    pub(crate) fn check_range(&self) {
        let Self { op, sector, sectors, user_data, .. } = *self;
        assert!(
            (op == Op::Flush) == (sectors.0 == 0),
            "bio {user_data}: {op:?} of {} sectors: a flush has none, and nothing else has none",
            sectors.0
        );
        assert!(
            sector.0.checked_add(u64::from(sectors.0)).is_some(),
            "bio {user_data}: {op:?} of {} sectors at sector {} ends beyond sector 2⁶⁴ − 1",
            sectors.0,
            sector.0
        );
    }
}

/// Where a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Made, not yet inserted.
    Made,
    /// Held by the scheduler.
    Queued,
    /// Waits past the scheduler.
    Bypassing,
    /// In the device.
    InDevice,
}

/// The submitter's names of the bios of a request, in the order in which they were merged.
pub type UserDataList = SmallVec<[u64; 2]>;

/// What a scheduler orders.
#[derive(Clone, Debug)]
pub struct Request {
    /// What is to be done.
    pub op: Op,
    /// The flags of the bio that it was made of.
    pub flags: BioFlags,
    /// The I/O priority at which it was issued.
    pub io_prio: IoPrio,
    /// Pieces of memory of all its bios.
    pub segments: u16,
    /// How long it is.
    pub sectors: SectorCount,
    /// Where it starts.
    pub sector: Sector,
    /// Who issued it.
    pub ioc: IocId,
    /// The group that it is counted in.
    pub group: GroupId,
    /// When the earliest of its bios became a request.
    pub start: Instant,
    /// The scheduler's deadline for it; meaningful in its fifos.
    pub deadline: Instant,
    /// When it was last given to the device; meaningful there.
    pub(crate) dispatched: Instant,
    /// Counts the requests made; orders those of one instant.
    pub(crate) sequence: u64,
    /// The queue of its scheduler that it belongs to, by that scheduler's own kind of key;
    /// meaningful to one that has queues.
    pub(crate) queue: KeyData,
    pub(crate) place: Place,
    /// Whether the scheduler that holds the elevator now was told of it, and is to be told of its
    /// completion.
    pub(crate) known: bool,
    /// Set when it may not merge any more: refused once for its size, or handed back.
    pub(crate) never_merge: bool,
    /// Whether the table of ends has it.
    pub(crate) hashed: bool,
    pub(crate) bios: UserDataList,
    pub(crate) by_end: ListLinks<RequestId>,
    pub(crate) by_arrival: ListLinks<RequestId>,
}

impl Request {
    /// The sector behind its last.
    #[inline]
    pub fn end(&self) -> Sector {
        // No bio was taken that ends beyond what can be counted, and merging asks for this often.
        Sector(self.sector.0 + u64::from(self.sectors.0))
    }

    /// The direction as schedulers see it.
    #[inline]
    pub fn direction(&self) -> Direction {
        self.op.direction()
    }

    /// Whether somebody waits for it.
    #[inline]
    pub fn is_sync(&self) -> bool {
        self.op == Op::Read || self.flags.contains(BioFlags::SYNC)
    }

    /// Whether it is a synchronous write after which nothing is to be waited for, as those of
    /// `fsync` and of journals.
    #[inline]
    pub fn is_noidle(&self) -> bool {
        self.op == Op::Write
            && self.flags.contains(BioFlags::SYNC)
            && !self.flags.contains(BioFlags::IDLE)
    }

    /// Whether much else waits for it.
    #[inline]
    pub fn has_prio(&self) -> bool {
        self.flags.contains(BioFlags::PRIO)
    }

    /// The submitter's names of its bios, in the order in which they were merged.
    #[inline]
    pub fn user_data(&self) -> &[u64] {
        &self.bios
    }

    /// The name of the bio that it was made of, by which traces name the request.
    #[inline]
    pub fn name(&self) -> u64 {
        self.bios[0]
    }

    /// Whether a scheduler holds it, in its lists.
    #[inline]
    pub(crate) fn is_queued(&self) -> bool {
        self.place == Place::Queued
    }

    /// Whether it may merge at all.
    #[inline]
    pub(crate) fn is_mergeable(&self) -> bool {
        !self.never_merge && matches!(self.place, Place::Made | Place::Queued)
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}[{},+{}) of bio {}", self.op, self.sector.0, self.sectors.0, self.name())
    }
}

/// The requests of one elevator.
#[derive(Debug, Default)]
pub struct Requests {
    slots: SlotMap<RequestId, Request>,
    /// Their nodes in sort lists.
    pub(crate) sort_nodes: SortNodes,
    made: u64,
}

impl Requests {
    #[inline]
    pub(crate) fn add(
        &mut self,
        now: Instant,
        bio: &Bio,
        io_prio: IoPrio,
        group: GroupId,
    ) -> RequestId {
        self.made += 1;
        let rq = self.slots.insert(Request {
            op: bio.op,
            flags: bio.flags,
            io_prio,
            segments: bio.segments,
            sectors: bio.sectors,
            sector: bio.sector,
            ioc: bio.ioc,
            group,
            start: now,
            deadline: now,
            dispatched: now,
            sequence: self.made,
            queue: KeyData::default(),
            place: Place::Made,
            known: false,
            // Zeroes carry no data to gather.
            never_merge: !bio.is_mergeable() || bio.op == Op::WriteZeroes,
            hashed: false,
            bios: UserDataList::from_slice(&[bio.user_data]),
            by_end: ListLinks::default(),
            by_arrival: ListLinks::default(),
        });
        self.sort_nodes.add(rq);
        rq
    }

    #[inline]
    pub(crate) fn remove(&mut self, rq: RequestId) -> Request {
        self.slots.remove(rq).expect("a request is freed once")
    }

    /// Requests that exist.
    #[inline]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether none exists.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Every request that exists.
    pub fn iter(&self) -> impl Iterator<Item = (RequestId, &Request)> {
        self.slots.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (RequestId, &mut Request)> {
        self.slots.iter_mut()
    }

    /// Sorts by arrival, those of one instant as they were made.
    pub(crate) fn sort_by_arrival(&self, list: &mut [RequestId]) {
        list.sort_unstable_by_key(|&rq| (self[rq].start, self[rq].sequence));
    }
}

impl std::ops::Index<RequestId> for Requests {
    type Output = Request;
    /// The request; panics where it is gone.
    #[inline]
    fn index(&self, rq: RequestId) -> &Request {
        &self.slots[rq]
    }
}

impl std::ops::IndexMut<RequestId> for Requests {
    #[inline]
    fn index_mut(&mut self, rq: RequestId) -> &mut Request {
        &mut self.slots[rq]
    }
}

/// The links by which a request is in a list in order of arrival: a fifo, a head list.
#[derive(Debug)]
pub(crate) enum ByArrival {}
/// The links by which a request is in a chain of those with like ends.
#[derive(Debug)]
pub(crate) enum ByEnd {}

impl Linked<RequestId, ByArrival> for Requests {
    #[inline]
    fn list_links(&self, rq: RequestId) -> &ListLinks<RequestId> {
        &self[rq].by_arrival
    }
    #[inline]
    fn list_links_mut(&mut self, rq: RequestId) -> &mut ListLinks<RequestId> {
        &mut self[rq].by_arrival
    }
}

impl Linked<RequestId, ByEnd> for Requests {
    #[inline]
    fn list_links(&self, rq: RequestId) -> &ListLinks<RequestId> {
        &self[rq].by_end
    }
    #[inline]
    fn list_links_mut(&mut self, rq: RequestId) -> &mut ListLinks<RequestId> {
        &mut self[rq].by_end
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::ops::Range;

    /// A read of those sectors, of no context in particular.
    pub(crate) fn bio(range: Range<u64>) -> Bio {
        Bio {
            op: Op::Read,
            flags: BioFlags::empty(),
            sector: Sector(range.start),
            sectors: SectorCount(u32::try_from(range.end - range.start).expect("a short range")),
            segments: 1,
            ioc: IocId::default(),
            user_data: 0,
        }
    }

    /// A request of that bio alone.
    pub(crate) fn request(requests: &mut Requests, bio: &Bio) -> RequestId {
        requests.add(Instant::START, bio, IoPrio::default(), GroupId::default())
    }

    #[test]
    fn what_may_change_the_device_is_a_write() {
        let writes = Op::ALL.map(|op| op.direction() == Direction::Write);
        assert_eq!(writes, [false, true, true, true, false]);
    }

    #[test]
    fn every_read_is_synchronous_and_a_write_only_if_it_says_so() {
        let read = bio(0..8);
        let write = Bio { op: Op::Write, ..read };
        assert!(read.is_sync());
        assert!(!write.is_sync());
        assert!(Bio { flags: BioFlags::SYNC, ..write }.is_sync());
    }

    #[test]
    fn a_request_tells_its_operation_range_and_name() {
        let mut requests = Requests::default();
        let rq = request(&mut requests, &Bio { user_data: 7, ..bio(100..108) });
        assert_eq!(requests[rq].to_string(), "Read[100,+8) of bio 7");
    }
}
