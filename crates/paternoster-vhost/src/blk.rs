//! virtio's block device: what it says of itself, and what a request wants.
//!
//! ```text
//!   readable   type, sector (16 bytes) │ data to write, or ranges
//!   writable   data read, or a name    │ status (1 byte)
//! ```
//!
//! A driver may cut a request into descriptors as it likes: the header is the first 16 readable
//! bytes, the status is the last writable one. A request without a
//! status byte is returned with length 0.

use std::sync::Arc;

use smallvec::SmallVec;
use thiserror::Error;

use crate::chain::{Buffer, Chain, bytes};
use crate::memory::{Memory, Outside, Region};
use crate::proto::Features;

/// Bytes of a sector, in which a request counts whatever the block size.
pub const SECTOR: u64 = 512;
/// Most data of one request.
pub const MAX_DATA: u64 = 32 << 20;
/// Most segments of data in one request: with header and status they fit a ring of 128.
pub const SEG_MAX: u32 = 126;
/// Most sectors of a discard or of zeroes.
pub const MAX_RANGE: u32 = 8_388_607;
/// Bytes of the configuration.
pub const CONFIG_LEN: usize = 60;
/// Where in it the byte is that says whether the cache writes back.
pub const WRITEBACK: u32 = 32;
/// Bytes of a device's name.
pub const ID_LEN: usize = 20;

/// Bytes of a request's header.
const HEADER: usize = 16;
/// Bytes of a range of a discard or of zeroes.
const RANGE: u64 = 16;
/// In the flags of a range: its space may be given up.
const UNMAP: u32 = 1;

/// The device as its driver sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Device {
    /// Its bytes, of which whole sectors are offered.
    pub size: u64,
    /// The bytes of a block of what is behind it, to which requests are best aligned.
    pub block: u32,
    /// The bytes to which discards are best aligned.
    pub discard: u32,
    /// Its rings.
    pub queues: u16,
    /// Whether its driver may only read.
    pub read_only: bool,
    /// Whether what is written may be lost until a flush.
    pub flushes: bool,
    /// Whether zeroes may give up space.
    pub unmaps: bool,
}

impl Device {
    /// The features that it has.
    pub fn features(&self) -> Features {
        let mut features = Features::all() - Features::RO;
        if !self.flushes {
            features -= Features::FLUSH | Features::CONFIG_WCE;
        }
        if self.read_only {
            features |= Features::RO;
            features -= Features::DISCARD | Features::WRITE_ZEROES;
        }
        features
    }

    /// Its configuration: `struct virtio_blk_config`.
    pub fn config(&self, writeback: bool) -> [u8; CONFIG_LEN] {
        let mut config = [0; CONFIG_LEN];
        let mut put = |at: usize, bytes: &[u8]| config[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &self.sectors().to_le_bytes());
        put(12, &SEG_MAX.to_le_bytes());
        let sector = u32::try_from(SECTOR).expect("512");
        put(20, &sector.to_le_bytes());
        let blocks = (self.block / sector).max(1);
        put(24, &[u8::try_from(blocks.ilog2()).expect("below 32")]);
        put(32, &[u8::from(writeback)]);
        put(34, &self.queues.to_le_bytes());
        put(36, &MAX_RANGE.to_le_bytes());
        put(40, &1u32.to_le_bytes());
        put(44, &(self.discard / sector).max(1).to_le_bytes());
        put(48, &MAX_RANGE.to_le_bytes());
        put(52, &1u32.to_le_bytes());
        put(56, &[u8::from(self.unmaps)]);
        config
    }

    /// Its whole sectors.
    fn sectors(&self) -> u64 {
        self.size / SECTOR
    }
}

/// How a request has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Status {
    /// It is done.
    Ok = 0,
    /// It failed, perhaps after a part of it was done.
    IoErr = 1,
    /// The device does no such thing.
    Unsupported = 2,
}

/// What a request wants of the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Read so many bytes.
    Read {
        /// Where.
        offset: u64,
        /// How many.
        len: u32,
    },
    /// Write so many.
    Write {
        /// Where.
        offset: u64,
        /// How many.
        len: u32,
    },
    /// Make durable what is done.
    Flush,
    /// The device's name.
    GetId,
    /// Give up space.
    Discard {
        /// Where.
        offset: u64,
        /// How many bytes.
        len: u64,
    },
    /// Write zeroes.
    WriteZeroes {
        /// Where.
        offset: u64,
        /// How many bytes.
        len: u64,
        /// Whether their space may be given up.
        unmap: bool,
    },
}

/// A request that can be answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// What it wants; or what it is answered without being done.
    pub op: Result<Op, Status>,
    /// Where its data is: to be written to the disk, or to be read from it into the guest.
    data: SmallVec<[Buffer; 4]>,
    /// Where its status goes.
    status: u64,
}

/// Why a request cannot be answered. Its chain goes back with nothing written.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum Unanswerable {
    /// There is no header.
    #[error("a request has a header of {0} bytes: it has to have 16")]
    Header(u64),
    /// There is no place for the status.
    #[error("a request has no byte for its status")]
    NoStatus,
    /// A place is not in the guest's memory.
    #[error("the {what} of a request: {outside}")]
    Outside {
        /// What lies there.
        what: &'static str,
        /// Where.
        outside: Outside,
    },
}

impl Request {
    /// Reads what a chain wants of a device. The disk can do what it is told to.
    pub fn parse(chain: &Chain, memory: &Memory, device: &Device) -> Result<Self, Unanswerable> {
        let readable = bytes(&chain.readable);
        if readable < HEADER as u64 {
            return Err(Unanswerable::Header(readable));
        }
        let Some(room) = bytes(&chain.writable).checked_sub(1) else {
            return Err(Unanswerable::NoStatus);
        };
        let outside = |what| move |outside| Unanswerable::Outside { what, outside };
        let mut bytes_of = [0; HEADER];
        copy_from(memory, &chain.readable, &mut bytes_of).map_err(outside("header"))?;
        let status = behind(&chain.writable, room).first().expect("one byte is left").addr;
        memory.check(status, 1).map_err(outside("status"))?;
        let [t0, t1, t2, t3, _, _, _, _, s0, s1, s2, s3, s4, s5, s6, s7] = bytes_of;
        let kind = u32::from_le_bytes([t0, t1, t2, t3]);
        let sector = u64::from_le_bytes([s0, s1, s2, s3, s4, s5, s6, s7]);
        let data = match kind {
            0 | 8 => before(&chain.writable, room),
            1 | 11 | 13 => behind(&chain.readable, HEADER as u64),
            _ => SmallVec::new(),
        };
        let op = match kind {
            0 => device.range(sector, room).map(|(offset, len)| Op::Read { offset, len }),
            1 | 11 | 13 if device.read_only => Err(Status::IoErr),
            1 => device
                .range(sector, readable - HEADER as u64)
                .map(|(offset, len)| Op::Write { offset, len }),
            4 if device.flushes => Ok(Op::Flush),
            8 if room < ID_LEN as u64 => Err(Status::IoErr),
            8 => Ok(Op::GetId),
            11 => segment(memory, &data).and_then(|segment| device.discard(segment)),
            13 => segment(memory, &data).and_then(|segment| device.write_zeroes(segment)),
            _ => Err(Status::Unsupported),
        };
        let is_there = data.iter().all(|one| memory.check(one.addr, one.len.into()).is_ok());
        let op = if is_there { op } else { Err(Status::IoErr) };
        Ok(Self { op, data, status })
    }

    /// Copies what the request writes out of the guest.
    pub fn copy_out(&self, memory: &Memory, into: &mut [u8]) -> Result<(), Outside> {
        copy_from(memory, &self.data, into)
    }

    /// Copies what it reads into the guest, from `at` of its data on.
    pub fn copy_in(&self, memory: &Memory, at: u64, mut from: &[u8]) -> Result<(), Outside> {
        for buffer in behind(&self.data, at) {
            let len = from.len().min(usize::try_from(buffer.len).unwrap_or(usize::MAX));
            let (here, left) = from.split_at(len);
            memory.write(buffer.addr, here)?;
            from = left;
        }
        Ok(())
    }

    /// The parts that its data is in.
    pub fn parts(&self) -> usize {
        self.data.len()
    }

    /// Calls `each` for each part of where its data is: with the region of the part, where the part
    /// begins there, and its bytes.
    pub fn places(
        &self,
        memory: &Memory,
        mut each: impl FnMut(&Arc<Region>, usize, usize),
    ) -> Result<(), Outside> {
        let mut all = self.data.iter();
        all.try_for_each(|buffer| memory.parts(buffer.addr, buffer.len.into(), &mut each))
    }

    /// Ends it. Returns how many bytes have been written to the guest, as its chain is given back
    /// with: those of its data that it was given, and the status.
    pub fn finish(&self, memory: &Memory, status: Status) -> Result<u32, Outside> {
        memory.write(self.status, &[status as u8])?;
        let data = match (status, self.op) {
            (Status::Ok, Ok(Op::Read { len, .. })) => len,
            (Status::Ok, Ok(Op::GetId)) => u32::try_from(ID_LEN).expect("20"),
            _ => 0,
        };
        Ok(data + 1)
    }
}

/// A range of a discard or of zeroes, as the driver has written it.
#[derive(Clone, Copy)]
struct Segment {
    sector: u64,
    sectors: u32,
    flags: u32,
}

impl Device {
    /// The bytes of whole sectors that begin at one, if they are on the device.
    fn range(&self, sector: u64, len: u64) -> Result<(u64, u32), Status> {
        if !len.is_multiple_of(SECTOR) || len > MAX_DATA {
            return Err(Status::IoErr);
        }
        let offset = self.offset(sector, len / SECTOR)?;
        Ok((offset, u32::try_from(len).expect("at most 32 MiB")))
    }

    /// The bytes of a segment, if they are on the device.
    fn bytes_of(&self, segment: Segment) -> Result<(u64, u64), Status> {
        let Segment { sector, sectors, .. } = segment;
        if sectors > MAX_RANGE {
            return Err(Status::IoErr);
        }
        let sectors = u64::from(sectors);
        Ok((self.offset(sector, sectors)?, sectors * SECTOR))
    }

    /// Where the sectors from one on begin, in bytes; an error if there are none or not all are on
    /// the device.
    fn offset(&self, sector: u64, sectors: u64) -> Result<u64, Status> {
        let end = sector.checked_add(sectors).filter(|end| *end <= self.sectors());
        if sectors == 0 || end.is_none() {
            return Err(Status::IoErr);
        }
        Ok(sector * SECTOR)
    }

    /// A discard takes no flags.
    fn discard(&self, segment: Segment) -> Result<Op, Status> {
        if segment.flags != 0 {
            return Err(Status::Unsupported);
        }
        self.bytes_of(segment).map(|(offset, len)| Op::Discard { offset, len })
    }

    fn write_zeroes(&self, segment: Segment) -> Result<Op, Status> {
        if segment.flags & !UNMAP != 0 {
            return Err(Status::Unsupported);
        }
        let unmap = segment.flags & UNMAP != 0;
        self.bytes_of(segment).map(|(offset, len)| Op::WriteZeroes { offset, len, unmap })
    }
}

/// The one segment of a discard or of zeroes.
fn segment(memory: &Memory, data: &[Buffer]) -> Result<Segment, Status> {
    let mut range = [0; 16];
    if bytes(data) != RANGE || copy_from(memory, data, &mut range).is_err() {
        return Err(Status::IoErr);
    }
    let [s0, s1, s2, s3, s4, s5, s6, s7, n0, n1, n2, n3, f0, f1, f2, f3] = range;
    Ok(Segment {
        sector: u64::from_le_bytes([s0, s1, s2, s3, s4, s5, s6, s7]),
        sectors: u32::from_le_bytes([n0, n1, n2, n3]),
        flags: u32::from_le_bytes([f0, f1, f2, f3]),
    })
}

/// The bytes of the buffers before the one of that number.
fn before(buffers: &[Buffer], at: u64) -> SmallVec<[Buffer; 4]> {
    let mut left = at;
    let each = buffers.iter().map(|&Buffer { addr, len }| {
        let len = u32::try_from(left.min(len.into())).expect("at most the length");
        left -= u64::from(len);
        Buffer { addr, len }
    });
    each.filter(|buffer| buffer.len > 0).collect()
}

/// Those from that one on.
fn behind(buffers: &[Buffer], at: u64) -> SmallVec<[Buffer; 4]> {
    let mut left = at;
    let each = buffers.iter().map(|&Buffer { addr, len }| {
        let first = u32::try_from(left.min(len.into())).expect("at most the length");
        left -= u64::from(first);
        // Where that wraps, nothing is in the guest's memory.
        Buffer { addr: addr.saturating_add(first.into()), len: len - first }
    });
    each.filter(|buffer| buffer.len > 0).collect()
}

/// Copies from the buffers, in their order, as much as there is room for.
fn copy_from(memory: &Memory, buffers: &[Buffer], mut into: &mut [u8]) -> Result<(), Outside> {
    for buffer in buffers {
        let len = into.len().min(usize::try_from(buffer.len).unwrap_or(usize::MAX));
        let (here, left) = into.split_at_mut(len);
        memory.read(buffer.addr, here)?;
        into = left;
    }
    Ok(())
}
