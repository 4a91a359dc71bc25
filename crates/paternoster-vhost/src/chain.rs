//! A chain of descriptors: the buffers of one request, as the driver has linked them.
//!
//! ```text
//!   head ─▶ ┌addr len flags next┐ ─▶ ┌…┐ ─▶ ┌INDIRECT┐ ─▶ a table of descriptors elsewhere
//!           └───────────────────┘    └─┘    └────────┘    in the guest's memory
//! ```
//!
//! Every descriptor is read once and copied: the driver may change it afterwards, and does not
//! change what was checked. Those that the device reads come before those that it writes.

use smallvec::SmallVec;
use thiserror::Error;

use crate::memory::{Area, Memory};

/// Bytes of a descriptor.
pub(crate) const DESCRIPTOR: usize = 16;
/// Most descriptors of a table of its own.
const MAX_INDIRECT: u32 = 1024;

const NEXT: u16 = 1;
const WRITE: u16 = 2;
const INDIRECT: u16 = 4;

/// A part of a request in the guest's memory. It is not known to be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// The guest's address.
    pub addr: u64,
    /// Its bytes.
    pub len: u32,
}

/// The buffers of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chain {
    /// What the device reads.
    pub readable: SmallVec<[Buffer; 4]>,
    /// What it writes, behind that.
    pub writable: SmallVec<[Buffer; 4]>,
}

/// Why a chain is invalid. Its slot goes back to the driver.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum ChainError {
    /// A link leads out of the table.
    #[error("a descriptor is followed by number {next} of {size}")]
    Next {
        /// Where it leads.
        next: u16,
        /// How many there are.
        size: u32,
    },
    /// There are more than the table has: it is a loop.
    #[error("a chain has more descriptors than the {0} of its table")]
    Loop(u32),
    /// Indirect descriptors were not negotiated.
    #[error("a descriptor is indirect, which was not negotiated")]
    NotNegotiated,
    /// One table leads to another.
    #[error("an indirect descriptor is in a table of indirect ones")]
    Nested,
    /// A table is followed by something.
    #[error("an indirect descriptor is followed by another")]
    IndirectNext,
    /// A table has no such length.
    #[error("an indirect table has {0} bytes: 16 each of 1 to 1024 descriptors are allowed")]
    IndirectLength(u32),
    /// A table is not in the guest's memory.
    #[error("an indirect table is at {0:#x}, outside the guest's memory")]
    IndirectOutside(u64),
    /// What the device reads comes behind what it writes.
    #[error("a descriptor that the device reads comes behind one that it writes")]
    Order,
    /// It is longer than any chain may be.
    #[error("a chain has {0} bytes: at most 2³² are allowed")]
    TooLong(u64),
}

/// A descriptor, copied.
#[derive(Clone, Copy, Debug)]
struct Descriptor {
    buffer: Buffer,
    flags: u16,
    next: u16,
}

impl Descriptor {
    fn of(bytes: [u8; DESCRIPTOR]) -> Self {
        let [a0, a1, a2, a3, a4, a5, a6, a7, l0, l1, l2, l3, f0, f1, n0, n1] = bytes;
        let buffer = Buffer {
            addr: u64::from_le_bytes([a0, a1, a2, a3, a4, a5, a6, a7]),
            len: u32::from_le_bytes([l0, l1, l2, l3]),
        };
        let (flags, next) = (u16::from_le_bytes([f0, f1]), u16::from_le_bytes([n0, n1]));
        Self { buffer, flags, next }
    }

    fn is(self, flag: u16) -> bool {
        self.flags & flag != 0
    }
}

/// Where descriptors are.
enum Table<'a> {
    /// In the ring.
    Ring(&'a Area),
    /// Where an indirect descriptor says.
    Indirect(&'a Memory, Buffer),
}

impl Table<'_> {
    fn descriptor(&self, number: u16) -> Result<Descriptor, ChainError> {
        let at = usize::from(number) * DESCRIPTOR;
        match self {
            Self::Ring(area) => Ok(Descriptor::of(area.read(at))),
            Self::Indirect(memory, table) => {
                let mut bytes = [0; DESCRIPTOR];
                let place = table.addr.checked_add(at as u64);
                let read = place.is_some_and(|place| memory.read(place, &mut bytes).is_ok());
                if !read {
                    return Err(ChainError::IndirectOutside(table.addr));
                }
                Ok(Descriptor::of(bytes))
            }
        }
    }
}

impl Chain {
    /// Reads the chain that begins at `head`, which is in the ring.
    pub(crate) fn read(
        ring: &Area,
        size: u16,
        head: u16,
        memory: &Memory,
        may_be_indirect: bool,
    ) -> Result<Self, ChainError> {
        let mut chain = Self::default();
        let indirect = chain.follow(&Table::Ring(ring), size.into(), head)?;
        let Some(table) = indirect else { return chain.checked() };
        if !may_be_indirect {
            return Err(ChainError::NotNegotiated);
        }
        let Buffer { len, .. } = table;
        let entry = u32::try_from(DESCRIPTOR).expect("16");
        if len == 0 || len % entry != 0 || len / entry > MAX_INDIRECT {
            return Err(ChainError::IndirectLength(len));
        }
        match chain.follow(&Table::Indirect(memory, table), len / entry, 0)? {
            Some(_) => Err(ChainError::Nested),
            None => chain.checked(),
        }
    }

    /// Follows the links of a table from one descriptor on. Returns the indirect one that ends
    /// them, if one does.
    fn follow(
        &mut self,
        table: &Table<'_>,
        size: u32,
        first: u16,
    ) -> Result<Option<Buffer>, ChainError> {
        let mut number = first;
        for _ in 0..size {
            let descriptor = table.descriptor(number)?;
            if descriptor.is(INDIRECT) {
                // The standard lets a driver set WRITE here, and devices have to ignore it.
                let is_followed = descriptor.is(NEXT);
                return if is_followed {
                    Err(ChainError::IndirectNext)
                } else {
                    Ok(Some(descriptor.buffer))
                };
            }
            if descriptor.is(WRITE) {
                self.writable.push(descriptor.buffer);
            } else if self.writable.is_empty() {
                self.readable.push(descriptor.buffer);
            } else {
                return Err(ChainError::Order);
            }
            if !descriptor.is(NEXT) {
                return Ok(None);
            }
            number = descriptor.next;
            if u32::from(number) >= size {
                return Err(ChainError::Next { next: number, size });
            }
        }
        Err(ChainError::Loop(size))
    }

    /// The chain, if it is not longer than any may be.
    fn checked(self) -> Result<Self, ChainError> {
        let bytes = bytes(&self.readable) + bytes(&self.writable);
        if bytes > 1 << 32 { Err(ChainError::TooLong(bytes)) } else { Ok(self) }
    }
}

/// The bytes of all of these: at most 2048 of less than 2³².
pub(crate) fn bytes(buffers: &[Buffer]) -> u64 {
    buffers.iter().map(|buffer| u64::from(buffer.len)).sum()
}
