//! The types of both sides: requests, extents, and the session with which a handshake ends.

use bytes::Bytes;

use crate::client::EncodeError;
use crate::export::ExportInfo;
use crate::header::Header;
use crate::proto::{ExtentFlags, REQUEST_LEN};

/// The agreement of a handshake, on either side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// The chosen export; its flags are those of this session.
    pub export: ExportInfo,
    /// Whether replies may be structured, and those to `READ` and `BLOCK_STATUS` are.
    pub structured_replies: bool,
    /// The id of `base:allocation`, if it was selected for this export: `BLOCK_STATUS` is legal.
    pub allocation_context: Option<u32>,
}

/// A request and the number its reply carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Chosen by the client, returned in the reply.
    pub cookie: u64,
    /// What to do.
    pub command: Command,
}

impl Request {
    /// Returns the request as it stands on the wire, but for the data of a write, which follows.
    pub fn header(&self) -> Result<[u8; REQUEST_LEN], EncodeError> {
        Header::of(self).map(Header::to_bytes)
    }
}

/// What a client wants done. The server's machine yields only legal ones: ranges are not empty,
/// lie inside the export and keep to its block sizes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Read `len` bytes.
    Read {
        /// First byte.
        offset: u64,
        /// Bytes, at most the export's largest request.
        len: u32,
        /// The reply must not be fragmented.
        df: bool,
    },
    /// Write `data`.
    Write {
        /// First byte.
        offset: u64,
        /// A piece of the input buffer, not a copy.
        data: Bytes,
        /// Durable before the reply.
        fua: bool,
    },
    /// Make every acknowledged write durable.
    Flush,
    /// Forget what is there.
    Trim {
        /// First byte.
        offset: u64,
        /// Bytes; may be more than a `READ` could carry.
        len: u32,
        /// Durable before the reply.
        fua: bool,
    },
    /// Fetch what will soon be read.
    Cache {
        /// First byte.
        offset: u64,
        /// Bytes; may be more than a `READ` could carry.
        len: u32,
    },
    /// Write zeroes.
    WriteZeroes {
        /// First byte.
        offset: u64,
        /// Bytes; may be more than a `WRITE` could carry.
        len: u32,
        /// Durable before the reply.
        fua: bool,
        /// The range must stay allocated.
        no_hole: bool,
        /// Fail at once with [`NbdError::NotSupported`](crate::NbdError::NotSupported), changing
        /// nothing, if this is not faster than writing.
        fast: bool,
    },
    /// Ask what is allocated.
    BlockStatus(StatusQuery),
    /// End the session; there is no reply.
    Disconnect,
}

/// The range of a `BLOCK_STATUS`, needed again to answer it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatusQuery {
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub len: u32,
    /// Only the first extent is wanted.
    pub one: bool,
}

/// Consecutive bytes of one allocation state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// Bytes.
    pub len: u32,
    /// Hole, zeroes, both or neither.
    pub flags: ExtentFlags,
}
