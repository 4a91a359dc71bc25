//! What a piece of a command does, and the bio that it is for the elevator.

use bytes::Bytes;
use paternoster::{Bio, BioFlags, IocId, Op, Sector, SectorCount};

use super::command::CommandOp;
use crate::guest::GuestBuffers;

const SECTOR_BYTES: u64 = SectorCount::SECTOR_BYTES as u64;

/// What a piece does, beyond its range.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    Read,
    /// A read whose data goes straight to where it is wanted.
    ReadInto(GuestBuffers),
    /// A read whose data nobody wants.
    Cache,
    Write {
        data: Bytes,
        /// Its command ends with a sync.
        fua: bool,
    },
    Trim,
    Zero {
        /// The range must stay allocated.
        allocate: bool,
    },
}

impl Kind {
    pub(super) fn op(&self) -> Op {
        match self {
            Self::Read | Self::ReadInto(_) | Self::Cache => Op::Read,
            Self::Write { .. } => Op::Write,
            Self::Trim => Op::Discard,
            Self::Zero { .. } => Op::WriteZeroes,
        }
    }

    /// The flags of its bios. Every write is synchronous; a discard is not, in Linux neither. After
    /// a plain write its submitter goes on, as after an `O_DIRECT` one; one with FUA ends
    /// something, as a journal's does. FUA itself stays here: with that flag the bio would bypass
    /// the scheduler.
    pub(super) fn bio_flags(&self) -> BioFlags {
        match self {
            Self::Write { fua: true, .. } => BioFlags::SYNC | BioFlags::NO_MERGE,
            Self::Write { .. } => BioFlags::SYNC | BioFlags::IDLE,
            Self::Zero { .. } => BioFlags::SYNC,
            Self::Cache => BioFlags::NO_MERGE,
            Self::Read | Self::ReadInto(_) | Self::Trim => BioFlags::empty(),
        }
    }

    /// The segments of memory of its bio.
    pub(super) fn segments(&self) -> u16 {
        match self {
            Self::ReadInto(into) => u16::try_from(into.count()).unwrap_or(u16::MAX),
            _ => 1,
        }
    }

    /// The bio of a range of whole blocks of so many sectors; none if they are not.
    pub(super) fn whole_blocks(
        &self,
        block: SectorCount,
        ioc: IocId,
        offset: u64,
        len: u32,
    ) -> Option<Bio> {
        let sectors = SectorCount(len / SectorCount::SECTOR_BYTES);
        let is_whole = offset.is_multiple_of(block.bytes())
            && u64::from(len).is_multiple_of(block.bytes())
            && len > 0;
        let bio = Bio::new(self.op(), ioc, Sector(offset / SECTOR_BYTES), sectors);
        is_whole.then(|| bio.with_flags(self.bio_flags()))
    }

    /// The command that does it, with that sync; none that reads into a guest, as that has it in
    /// its ring.
    pub(super) fn command(&self, offset: u64, len: u32, fua: bool) -> Option<CommandOp> {
        Some(match self {
            Self::Read => CommandOp::Read { offset, len },
            Self::ReadInto(_) => return None,
            Self::Cache => CommandOp::Cache { offset, len },
            Self::Write { data, .. } => CommandOp::Write { offset, data: data.clone(), fua },
            Self::Trim => CommandOp::Trim { offset, len, fua },
            &Self::Zero { allocate } => CommandOp::Zero { offset, len, fua, allocate, fast: false },
        })
    }

    /// A write of so many zeroes.
    pub(super) fn zeroes(len: usize) -> Self {
        Self::Write { data: Bytes::from(vec![0; len]), fua: false }
    }

    /// The same for a part of the range.
    pub(super) fn part(&self, from: u32, len: u32) -> Self {
        match self {
            Self::Write { data, fua } => {
                let data = data.slice(from as usize..(from + len) as usize);
                Self::Write { data, fua: *fua }
            }
            Self::ReadInto(into) => Self::ReadInto(into.part(from, len)),
            whole => whole.clone(),
        }
    }
}
