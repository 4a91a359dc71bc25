//! A request of a trace.

use paternoster::{BioFlags, Op};

/// Number of a context of a trace: a process, a cgroup or a volume, as the format has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ContextId(pub u32);

/// A request as its submitter submitted it, before merging.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// When it arrived, in ns since the first time of the trace.
    pub arrived: u64,
    /// Whose it is.
    pub context: ContextId,
    /// Its operation.
    pub op: Op,
    /// Its flags, as far as the format has them.
    pub flags: BioFlags,
    /// It was read ahead of a reader.
    pub ahead: bool,
    /// Its first byte on the device.
    pub offset: u64,
    /// Its length in bytes; 0 of a flush.
    pub len: u64,
    /// When the device got it, in ns since the first time of the trace.
    pub dispatched: Option<u64>,
    /// When it had completed, in ns since the first time of the trace.
    pub completed: Option<u64>,
    /// The errno with which it failed.
    pub error: Option<u16>,
    /// Its reply, in a recording of the server.
    pub replied: Option<Replied>,
}

/// A reply, and what its client knew when it asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replied {
    /// When it was handed over to the socket, in ns since the first time of the trace.
    pub at: u64,
    /// How many replies the client had got when the request was read; none where that is not known.
    pub after: Option<u32>,
}

impl Request {
    /// A request of which no more is known.
    pub fn new(arrived: u64, context: ContextId, op: Op, offset: u64, len: u64) -> Self {
        Self {
            arrived,
            context,
            op,
            flags: BioFlags::empty(),
            ahead: false,
            offset,
            len,
            dispatched: None,
            completed: None,
            error: None,
            replied: None,
        }
    }
}
