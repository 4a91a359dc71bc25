//! The commands that fronts give to a disk, and the transfers that the engine gives to a back end.

use bytes::Bytes;
use paternoster::{IocId, RequestId};
use rustix::io::Errno;
use smallvec::SmallVec;

use super::sync::SyncRange;
use super::volumes::VolumeId;
use crate::guest::{GuestBuffers, GuestSlice};
use crate::ring::Buffers;

/// The front's name for a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FrontTag {
    /// By which of the front's doors the command came: its keys are its own.
    pub door: u8,
    /// The name there.
    pub key: u64,
}

/// Of a front with one door.
impl From<u64> for FrontTag {
    fn from(key: u64) -> Self {
        Self { door: 0, key }
    }
}

/// One command of a front. Ranges lie inside its volume.
#[derive(Clone, Debug)]
pub struct Command {
    /// Its name, given back in its [`Outcome`].
    pub tag: FrontTag,
    /// Of what it is a command. Where that volume is closed, or no more, it fails with ESHUTDOWN.
    pub volume: VolumeId,
    /// The I/O context that it is issued by. It may exit when the outcome has come, not before:
    /// what failed is issued again.
    pub ioc: IocId,
    /// What is to be done.
    pub op: CommandOp,
}

/// The operation of a command. Offsets and lengths are in bytes, at any alignment.
#[derive(Clone, Debug)]
pub enum CommandOp {
    /// Read the range.
    Read {
        /// First byte.
        offset: u64,
        /// Bytes.
        len: u32,
    },
    /// Read straight into a machine's memory; the outcome has no bytes. EINVAL where that is not
    /// what [`Capabilities::reads_into`](crate::Capabilities::reads_into) asks for.
    ReadInto {
        /// First byte.
        offset: u64,
        /// Where to, as many bytes as are read.
        into: GuestBuffers,
    },
    /// Read the range and forget it: it will be wanted soon.
    Cache {
        /// First byte.
        offset: u64,
        /// Bytes.
        len: u32,
    },
    /// Write `data`.
    Write {
        /// First byte.
        offset: u64,
        /// What to write.
        data: Bytes,
        /// Durable before it completes.
        fua: bool,
    },
    /// Forget the range.
    Trim {
        /// First byte.
        offset: u64,
        /// Bytes.
        len: u32,
        /// Durable before it completes.
        fua: bool,
    },
    /// Make the range read as zeroes.
    Zero {
        /// First byte.
        offset: u64,
        /// Bytes.
        len: u32,
        /// Durable before it completes.
        fua: bool,
        /// The range must stay allocated.
        allocate: bool,
        /// Fail with `EOPNOTSUPP` at once where writing would be as fast.
        fast: bool,
    },
    /// Make durable what was completed before.
    Flush,
}

/// The result of a command.
#[derive(Debug)]
pub struct Outcome {
    /// The name of the command.
    pub tag: FrontTag,
    /// What was read (empty for other commands), or why it failed.
    pub result: Result<Payload, Errno>,
    /// What is to be done again, by whoever does it, of a command that was cancelled: all of it, or
    /// a flush where only the sync of an FUA command is missing. None of any other command, of one
    /// whose volume was closed, and of [`CommandOp::ReadInto`].
    pub left: Option<Box<CommandOp>>,
}

impl Outcome {
    /// That of a command that was not cancelled.
    pub fn new(tag: FrontTag, result: Result<Payload, Errno>) -> Self {
        Self { tag, result, left: None }
    }

    /// That of a command that was cancelled with this left to do.
    pub fn cancelled(tag: FrontTag, left: CommandOp) -> Self {
        Self { tag, result: Err(Errno::SHUTDOWN), left: Some(Box::new(left)) }
    }
}

/// What was read, in buffers in order. Some may be shared with the disk, which writes elsewhere
/// while they are held.
pub type Payload = Buffers<Bytes>;

/// The name of a transfer while the back end of a volume works on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TransferId {
    /// A request of the elevator.
    Request(VolumeId, RequestId),
    /// The sync that flushes of the volume wait for; there is one at a time.
    Sync(VolumeId),
}

impl TransferId {
    /// Returns the volume whose transfer it is.
    pub fn volume(self) -> VolumeId {
        match self {
            Self::Request(volume, _) | Self::Sync(volume) => volume,
        }
    }
}

/// Lengths of what lies one after the other, in bytes.
pub type Parts = SmallVec<[u32; 1]>;

/// A part of what is read.
#[derive(Clone, Debug)]
pub enum Part {
    /// So many bytes, into buffers of its own.
    Own(u32),
    /// Straight to where it is wanted, whose bytes are not among those that are given back.
    Guest(GuestSlice),
}

impl Part {
    /// Returns its bytes.
    pub fn len(&self) -> u32 {
        match self {
            Self::Own(len) => *len,
            Self::Guest(slice) => slice.len(),
        }
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// One operation that the engine gives to a back end.
#[derive(Debug)]
pub enum Transfer {
    /// Read the parts, one after the other, from `offset` on, each into buffers of its own.
    Read {
        /// First byte.
        offset: u64,
        /// Bytes of each part.
        parts: Parts,
    },
    /// The same, of which some parts go to the memory of machines. Only back ends whose
    /// [`Capabilities`](crate::Capabilities) say that they do that are asked for it.
    ReadInto {
        /// First byte.
        offset: u64,
        /// Each part.
        parts: Buffers<Part>,
    },
    /// Read the range and forget it, where that makes a later read faster.
    Cache {
        /// First byte.
        offset: u64,
        /// Bytes.
        len: u64,
    },
    /// Write the buffers, one after the other, at `offset` on.
    Write {
        /// First byte.
        offset: u64,
        /// What to write.
        from: Buffers<Bytes>,
    },
    /// Forget the range; it may read as anything that was there, or zeroes.
    Trim {
        /// First byte.
        offset: u64,
        /// Bytes.
        len: u64,
    },
    /// Make the range read as zeroes.
    Zero {
        /// First byte.
        offset: u64,
        /// Bytes.
        len: u64,
        /// The range must stay allocated.
        allocate: bool,
    },
    /// Make durable what completed before this began.
    Sync {
        /// Of what.
        range: SyncRange,
    },
}

impl Transfer {
    /// Returns the bytes that it moves or covers.
    pub fn len(&self) -> u64 {
        match self {
            Self::Read { parts, .. } => parts.iter().map(|&part| u64::from(part)).sum(),
            Self::ReadInto { parts, .. } => parts.iter().map(|part| u64::from(part.len())).sum(),
            Self::Write { from, .. } => from.iter().map(|part| part.len() as u64).sum(),
            Self::Cache { len, .. } | Self::Trim { len, .. } | Self::Zero { len, .. } => *len,
            Self::Sync { .. } => 0,
        }
    }

    /// Returns whether it covers no bytes: a sync does not.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The result of a transfer.
#[derive(Debug)]
pub struct Transferred {
    /// Bytes done from its start on, or why it failed.
    pub result: Result<u64, Errno>,
    /// What was read, up to the first byte that was not. No buffer has bytes of two parts: what
    /// holds one part keeps no other one in memory.
    pub read: Payload,
    /// Whether it may yet be carried out although it failed: then nothing of it is issued again.
    pub is_uncertain: bool,
}

impl Transferred {
    /// Makes the result of a transfer that is over.
    pub fn new(result: Result<u64, Errno>, read: Payload) -> Self {
        Self { result, read, is_uncertain: false }
    }

    /// Makes the result of a transfer that is given up, and may yet be carried out.
    pub fn given_up(errno: Errno) -> Self {
        Self { result: Err(errno), read: Payload::new(), is_uncertain: true }
    }
}
