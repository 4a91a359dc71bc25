//! Bios and requests. A submitter submits a bio; a scheduler holds a request, which is one bio, or
//! several of adjacent ranges that were merged.
//!
//! ```text
//!   bio [100,+8)  ──made──▶  request [100,+8)
//!   bio [108,+8)  ──back merge──▶    [100,+16)     user data: both, in the order of merging
//! ```

use std::fmt;
use std::ops::Add;

use bitflags::bitflags;
use slotmap::KeyData;
use smallvec::SmallVec;

use crate::arena::{GroupId, IocId, ListLinks, RequestId};
use crate::io_context::IoPrio;
use crate::synchrony::Synchrony;
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
    /// Returns the sector so many sectors further on, at most 2⁶⁴ − 1. An elevator takes no bio
    /// that ends beyond.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn add(self, count: SectorCount) -> Self {
        Self(self.0.saturating_add(u64::from(count.0)))
    }
}

impl Add for SectorCount {
    type Output = Self;
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

/// A range of sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) start: Sector,
    pub(crate) sectors: SectorCount,
}

impl Extent {
    /// The sector behind its last.
    #[inline]
    pub(crate) fn end(self) -> Sector {
        // No bio that ends beyond 2⁶⁴ − 1 was taken, so this cannot overflow. Merging needs it
        // often.
        Sector(self.start.0 + u64::from(self.sectors.0))
    }
}

/// An operation.
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
    /// Make durable all writes that completed before; it has no range.
    Flush,
}

impl Op {
    /// The number of operations.
    pub const COUNT: usize = 5;
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; Self::COUNT] =
        [Self::Read, Self::Write, Self::Discard, Self::WriteZeroes, Self::Flush];

    /// Returns the direction as schedulers see it: all that changes the device is a write.
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
    /// Flags of a bio.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct BioFlags: u8 {
        /// It is synchronous. Every read is, with or without this flag.
        const SYNC = 1;
        /// It has to be durable when it completes. It bypasses the scheduler, as in Linux; wfq
        /// takes it and charges it.
        const FUA = 1 << 1;
        /// All writes that completed before have to be made durable first. It bypasses the
        /// scheduler.
        const PREFLUSH = 1 << 2;
        /// It never merges.
        const NO_MERGE = 1 << 3;
        /// It is a synchronous write after which its submitter is expected to submit more soon, as
        /// after an `O_DIRECT` one (`REQ_IDLE`).
        const IDLE = 1 << 4;
        /// It is metadata for which much else waits (`REQ_PRIO`).
        const PRIO = 1 << 5;
        /// It was told [`Later`](crate::Submitted::Later), and has been counted as an arrival. The
        /// elevator sets this on the bio that it gives back.
        const RETRIED = 1 << 6;
    }
}

/// One piece of I/O as a submitter submits it.
///
/// ```
/// use paternoster::{Bio, BioFlags, IocId, Op, Sector, SectorCount};
///
/// # let ioc = IocId::default();
/// let write = Bio::write(ioc, Sector(2048), SectorCount(8))
///     .with_flags(BioFlags::SYNC)
///     .with_user_data(7);
/// assert_eq!((write.op, write.end(), write.segments), (Op::Write, Sector(2056), 1));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Bio {
    /// Its operation.
    pub op: Op,
    /// Its flags.
    pub flags: BioFlags,
    /// Its first sector.
    pub sector: Sector,
    /// Its length; 0 for a flush, and for no other.
    pub sectors: SectorCount,
    /// How many segments of memory it has.
    pub segments: u16,
    /// Who issues it.
    pub ioc: IocId,
    /// The submitter's own name for it, which is returned when it completes.
    pub user_data: u64,
}

impl Bio {
    /// Makes a bio of one segment, without flags and with user data 0. A flush has no sectors;
    /// every other operation has some.
    #[inline]
    pub const fn new(op: Op, ioc: IocId, sector: Sector, sectors: SectorCount) -> Self {
        Self { op, flags: BioFlags::empty(), sector, sectors, segments: 1, ioc, user_data: 0 }
    }

    /// Makes a bio that reads the range.
    #[inline]
    pub const fn read(ioc: IocId, sector: Sector, sectors: SectorCount) -> Self {
        Self::new(Op::Read, ioc, sector, sectors)
    }

    /// Makes a bio that writes the range. It is asynchronous unless it has [`BioFlags::SYNC`].
    #[inline]
    pub const fn write(ioc: IocId, sector: Sector, sectors: SectorCount) -> Self {
        Self::new(Op::Write, ioc, sector, sectors)
    }

    /// Makes a bio that says that the range is no longer needed.
    #[inline]
    pub const fn discard(ioc: IocId, sector: Sector, sectors: SectorCount) -> Self {
        Self::new(Op::Discard, ioc, sector, sectors)
    }

    /// Makes a bio after which the range reads as zeroes.
    #[inline]
    pub const fn write_zeroes(ioc: IocId, sector: Sector, sectors: SectorCount) -> Self {
        Self::new(Op::WriteZeroes, ioc, sector, sectors)
    }

    /// Makes a bio that makes durable all writes that completed before.
    #[inline]
    pub const fn flush(ioc: IocId) -> Self {
        Self::new(Op::Flush, ioc, Sector(0), SectorCount(0))
    }

    /// Sets the submitter's name for it, which is returned when it completes.
    #[inline]
    #[must_use]
    pub const fn with_user_data(self, user_data: u64) -> Self {
        Self { user_data, ..self }
    }

    /// Sets its flags.
    #[inline]
    #[must_use]
    pub const fn with_flags(self, flags: BioFlags) -> Self {
        Self { flags, ..self }
    }

    /// Sets the number of its segments.
    #[inline]
    #[must_use]
    pub const fn with_segments(self, segments: u16) -> Self {
        Self { segments, ..self }
    }

    /// Returns whether it bypasses the scheduler: a flush, or a bio with FUA or PREFLUSH.
    #[inline]
    pub const fn bypasses(&self) -> bool {
        matches!(self.op, Op::Flush)
            || self.flags.intersects(BioFlags::FUA.union(BioFlags::PREFLUSH))
    }

    /// Returns whether it bypasses the scheduler for FUA alone.
    #[inline]
    pub(crate) const fn has_fua_only(&self) -> bool {
        !matches!(self.op, Op::Flush)
            && self.flags.contains(BioFlags::FUA)
            && !self.flags.contains(BioFlags::PREFLUSH)
    }

    /// Returns whether it is synchronous.
    #[inline]
    pub const fn is_sync(&self) -> bool {
        matches!(self.op, Op::Read) || self.flags.contains(BioFlags::SYNC)
    }

    /// Returns its synchrony.
    #[inline]
    pub(crate) const fn synchrony(&self) -> Synchrony {
        Synchrony::of(self.is_sync())
    }

    /// Returns whether it may merge at all.
    #[inline]
    pub(crate) const fn is_mergeable(&self) -> bool {
        !self.bypasses() && !self.flags.contains(BioFlags::NO_MERGE)
    }

    /// The sector behind its last.
    #[inline]
    pub fn end(&self) -> Sector {
        self.sector + self.sectors
    }

    /// Asserts that its range is valid, so that no later sum of sectors wraps.
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
    /// Made and not yet inserted.
    Made,
    /// Held by the scheduler.
    Queued,
    /// Waiting on the bypass list.
    Bypassing,
    /// In flight.
    InFlight,
}

/// The submitter's names of the bios of a request, in the order in which they were merged.
pub type UserDataList = SmallVec<[u64; 2]>;

/// A request. Its times are on the elevator's own clock ([`ElevatorClock`](crate::ElevatorClock)).
#[derive(Clone, Debug)]
pub struct Request {
    /// Its operation.
    pub op: Op,
    /// The flags of the bio that it was made of.
    pub flags: BioFlags,
    /// The I/O priority at which it was issued.
    pub io_prio: IoPrio,
    /// The segments of all its bios.
    pub segments: u16,
    /// Its length.
    pub sectors: SectorCount,
    /// Its first sector.
    pub sector: Sector,
    /// Who issued it.
    pub ioc: IocId,
    /// The group that it is counted in.
    pub group: GroupId,
    /// When the earliest of its bios became a request.
    pub start: Instant,
    /// The scheduler's deadline for it; meaningful in its fifos.
    pub deadline: Instant,
    /// When it was last dispatched; meaningful while it is in flight.
    pub(crate) dispatched: Instant,
    /// Its number among all requests that were made; orders those of one instant.
    pub(crate) sequence: u64,
    /// The queue that it belongs to, by its scheduler's own kind of key; meaningful to a scheduler
    /// that has queues.
    pub(crate) queue: KeyData,
    pub(crate) place: Place,
    /// 2 if it is synchronous, and 1 more if it has the priority flag: of two requests of a queue
    /// the more urgent one goes first, wherever it is.
    pub(crate) urgency: u8,
    /// Whether it was bound to the current scheduler, which is then notified of its completion.
    pub(crate) bound: bool,
    /// Whether it never merges again, because it refused a bio for its size or was requeued.
    pub(crate) never_merge: bool,
    /// Whether it is in the merge hash.
    pub(crate) hashed: bool,
    /// The number of its token; meaningful under Kyber while it is in flight.
    pub(crate) token: u8,
    pub(crate) bios: UserDataList,
    pub(crate) by_end: ListLinks<RequestId>,
    pub(crate) by_arrival: ListLinks<RequestId>,
}

impl Request {
    /// A request of which nothing is known yet.
    pub(crate) fn blank() -> Self {
        let start = Instant::START;
        Self {
            op: Op::Read,
            flags: BioFlags::empty(),
            io_prio: IoPrio::default(),
            segments: 0,
            sectors: SectorCount(0),
            sector: Sector(0),
            ioc: IocId::default(),
            group: GroupId::default(),
            start,
            deadline: start,
            dispatched: start,
            sequence: 0,
            queue: KeyData::default(),
            place: Place::Made,
            urgency: 0,
            bound: false,
            never_merge: false,
            hashed: false,
            token: 0,
            bios: UserDataList::new(),
            by_end: ListLinks::default(),
            by_arrival: ListLinks::default(),
        }
    }

    /// The sector behind its last.
    #[inline]
    pub fn end(&self) -> Sector {
        self.extent().end()
    }

    /// Returns its range.
    #[inline]
    pub(crate) fn extent(&self) -> Extent {
        Extent { start: self.sector, sectors: self.sectors }
    }

    /// Returns its direction as schedulers see it.
    #[inline]
    pub fn direction(&self) -> Direction {
        self.op.direction()
    }

    /// Returns whether it is synchronous.
    #[inline]
    pub fn is_sync(&self) -> bool {
        self.op == Op::Read || self.flags.contains(BioFlags::SYNC)
    }

    /// Returns its synchrony.
    #[inline]
    pub(crate) fn synchrony(&self) -> Synchrony {
        Synchrony::of(self.is_sync())
    }

    /// Returns whether it is a synchronous write after which the device should not idle, as those
    /// of `fsync` and of journals.
    #[inline]
    pub fn is_noidle(&self) -> bool {
        self.op == Op::Write
            && self.flags.contains(BioFlags::SYNC)
            && !self.flags.contains(BioFlags::IDLE)
    }

    /// Returns whether it has the priority flag.
    #[inline]
    pub fn has_prio(&self) -> bool {
        self.flags.contains(BioFlags::PRIO)
    }

    /// The submitter's names of its bios, in the order in which they were merged.
    #[inline]
    pub fn user_data(&self) -> &[u64] {
        &self.bios
    }

    /// The name of the bio that it was made of, by which traces name the request. A request that is
    /// gone has none: 0, and debug builds panic.
    #[inline]
    pub fn name(&self) -> u64 {
        debug_assert!(!self.bios.is_empty(), "a request that exists has a bio");
        // Without a trace nothing uses the name, and this lets the compiler drop it whole.
        self.bios.first().copied().unwrap_or_default()
    }

    /// Returns whether a scheduler holds it in its lists.
    #[inline]
    pub fn is_queued(&self) -> bool {
        self.place == Place::Queued
    }

    /// Returns whether the device has it.
    #[inline]
    pub(crate) fn is_in_flight(&self) -> bool {
        self.place == Place::InFlight
    }

    /// Returns whether it may merge at all.
    #[inline]
    pub(crate) fn is_mergeable(&self) -> bool {
        !self.never_merge && matches!(self.place, Place::Made | Place::Queued)
    }
}

/// How urgent a request of that bio is ([`Request::urgency`]).
#[inline]
pub(crate) fn urgency_of(bio: &Bio) -> u8 {
    u8::from(bio.is_sync()) << 1 | u8::from(bio.flags.contains(BioFlags::PRIO))
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}[{},+{}) of bio {}", self.op, self.sector.0, self.sectors.0, self.name())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::requests::Requests;
    use std::ops::Range;

    /// A read of those sectors, of no context in particular.
    pub(crate) fn bio(range: Range<u64>) -> Bio {
        let sectors = u32::try_from(range.end - range.start).expect("a short range");
        Bio::read(IocId::default(), Sector(range.start), SectorCount(sectors))
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
        assert!(write.with_flags(BioFlags::SYNC).is_sync());
    }

    #[test]
    fn request_prints_its_operation_range_and_name() {
        let mut requests = Requests::default();
        let rq = request(&mut requests, &bio(100..108).with_user_data(7));
        assert_eq!(requests[rq].to_string(), "Read[100,+8) of bio 7");
    }
}
