//! The numbers of the protocol: magics, codes, flags, errors and the limits we set ourselves.
//!
//! Names follow the protocol text without their `NBD_` prefix: `NBD_OPT_GO` is [`opt::GO`]. Every
//! number on the wire is big-endian.

use bitflags::bitflags;
use thiserror::Error;

/// First word of the server's greeting, ASCII `NBDMAGIC`.
pub const GREETING_MAGIC: u64 = 0x4e42_444d_4147_4943;
/// Second word of the greeting and first of every option, ASCII `IHAVEOPT`.
pub const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054;
/// Second word of the greeting of the old handshake, which has no options.
pub const OLD_MAGIC: u64 = 0x0000_4202_8186_1253;
/// Starts every reply to an option.
pub const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
/// Starts every request of the transmission phase.
pub const REQUEST_MAGIC: u32 = 0x2560_9513;
/// Starts a simple reply.
pub const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
/// Starts a chunk of a structured reply.
pub const STRUCTURED_REPLY_MAGIC: u32 = 0x668e_33ef;

/// Bytes of the greeting: two magics and the handshake flags.
pub const GREETING_LEN: usize = 18;
/// Bytes of the client's flags, its answer to the greeting.
pub const CLIENT_FLAGS_LEN: usize = 4;
/// Bytes of an option before its data: magic, option, length.
pub const OPTION_HEADER_LEN: usize = 16;
/// Bytes of a reply to an option before its data: magic, option, reply, length.
pub const OPTION_REPLY_HEADER_LEN: usize = 20;
/// Bytes of a request before its payload: magic, flags, command, cookie, offset, length.
pub const REQUEST_LEN: usize = 28;
/// Bytes of a simple reply before its payload: magic, error, cookie.
pub const SIMPLE_REPLY_LEN: usize = 16;
/// Bytes of a chunk before its payload: magic, flags, type, cookie, length.
pub const CHUNK_HEADER_LEN: usize = 20;
/// Zero bytes after the answer to `EXPORT_NAME`, unless both sides agreed on `NO_ZEROES`.
pub const EXPORT_NAME_PADDING: usize = 124;

/// Longest string: export names, descriptions, context names, messages. Set by the protocol.
pub const MAX_STRING: usize = 4096;
/// Most bytes a `READ` or `WRITE` may carry; what the protocol calls portable.
pub const MAX_PAYLOAD: u32 = 32 << 20;
/// Longest option data that is looked at; longer data is skipped without being stored.
pub const MAX_OPTION_LEN: u32 = 64 << 10;
/// Options a client may send before it must have chosen an export.
pub const MAX_OPTIONS: u32 = 1024;
/// Most descriptors in one `BLOCK_STATUS` chunk.
pub const MAX_EXTENTS: usize = 1 << 20;

/// The one metadata context of the standard: holes and zeroes.
pub const BASE_ALLOCATION: &str = "base:allocation";

/// Options: what a client asks for during the handshake.
pub mod opt {
    /// Enter the transmission phase with this export; no error can be answered.
    pub const EXPORT_NAME: u32 = 1;
    /// End the session.
    pub const ABORT: u32 = 2;
    /// List the exports.
    pub const LIST: u32 = 3;
    /// Go over to TLS.
    pub const STARTTLS: u32 = 5;
    /// Describe an export.
    pub const INFO: u32 = 6;
    /// Describe an export and enter the transmission phase with it.
    pub const GO: u32 = 7;
    /// Use structured replies.
    pub const STRUCTURED_REPLY: u32 = 8;
    /// List the metadata contexts of an export.
    pub const LIST_META_CONTEXT: u32 = 9;
    /// Select metadata contexts of an export.
    pub const SET_META_CONTEXT: u32 = 10;
    /// Use 64-bit lengths.
    pub const EXTENDED_HEADERS: u32 = 11;
}

/// Replies to options; those with bit 31 set are errors and end the option.
pub mod rep {
    /// The option is accepted, or its list has ended.
    pub const ACK: u32 = 1;
    /// One export of a list.
    pub const SERVER: u32 = 2;
    /// One piece of information about an export.
    pub const INFO: u32 = 3;
    /// One metadata context.
    pub const META_CONTEXT: u32 = 4;
    /// Set in every error.
    pub const ERROR: u32 = 1 << 31;
    /// The option is not known.
    pub const ERR_UNSUP: u32 = ERROR + 1;
    /// The option is forbidden here.
    pub const ERR_POLICY: u32 = ERROR + 2;
    /// The option's data is malformed, or the option comes at the wrong time.
    pub const ERR_INVALID: u32 = ERROR + 3;
    /// The option is not supported on this platform.
    pub const ERR_PLATFORM: u32 = ERROR + 4;
    /// TLS must be started first.
    pub const ERR_TLS_REQD: u32 = ERROR + 5;
    /// There is no such export.
    pub const ERR_UNKNOWN: u32 = ERROR + 6;
    /// The server is being shut down.
    pub const ERR_SHUTDOWN: u32 = ERROR + 7;
    /// The client must ask for the block sizes first.
    pub const ERR_BLOCK_SIZE_REQD: u32 = ERROR + 8;
    /// The request or its reply is too large.
    pub const ERR_TOO_BIG: u32 = ERROR + 9;
}

/// Kinds of information about an export.
pub mod info {
    /// Size and transmission flags.
    pub const EXPORT: u16 = 0;
    /// The name the server prefers.
    pub const NAME: u16 = 1;
    /// A text for people.
    pub const DESCRIPTION: u16 = 2;
    /// Minimum, preferred and maximum size of a request.
    pub const BLOCK_SIZE: u16 = 3;
}

/// Commands of the transmission phase.
pub mod cmd {
    /// Read data.
    pub const READ: u16 = 0;
    /// Write data.
    pub const WRITE: u16 = 1;
    /// Disconnect; has no reply.
    pub const DISC: u16 = 2;
    /// Make all acknowledged writes durable.
    pub const FLUSH: u16 = 3;
    /// Data is no longer needed.
    pub const TRIM: u16 = 4;
    /// Data will soon be needed.
    pub const CACHE: u16 = 5;
    /// Write zeroes without sending them.
    pub const WRITE_ZEROES: u16 = 6;
    /// Ask which parts are holes or zeroes.
    pub const BLOCK_STATUS: u16 = 7;
}

/// Chunk types of structured replies; those with bit 15 set are errors.
pub mod chunk {
    /// Nothing more; ends a reply.
    pub const NONE: u16 = 0;
    /// Data at an offset.
    pub const OFFSET_DATA: u16 = 1;
    /// Zeroes at an offset.
    pub const OFFSET_HOLE: u16 = 2;
    /// Descriptors of one metadata context.
    pub const BLOCK_STATUS: u16 = 5;
    /// Set in every error.
    pub const ERROR_BIT: u16 = 1 << 15;
    /// An error of the whole request.
    pub const ERROR: u16 = ERROR_BIT + 1;
    /// An error at an offset.
    pub const ERROR_OFFSET: u16 = ERROR_BIT + 2;
    /// Flag of the last chunk of a reply.
    pub const FLAG_DONE: u16 = 1;
}

bitflags! {
    /// What the server's greeting offers.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct HandshakeFlags: u16 {
        /// Options have replies.
        const FIXED_NEWSTYLE = 1 << 0;
        /// The padding after `EXPORT_NAME` may be left out.
        const NO_ZEROES = 1 << 1;
    }

    /// What the client takes of the greeting's offers; any other bit closes the connection.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct ClientFlags: u32 {
        /// Options have replies.
        const FIXED_NEWSTYLE = 1 << 0;
        /// The padding after `EXPORT_NAME` is left out.
        const NO_ZEROES = 1 << 1;
    }

    /// What an export can do, as the client learns.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct TransmissionFlags: u16 {
        /// Always set; the machines see to it.
        const HAS_FLAGS = 1 << 0;
        /// Writes are refused.
        const READ_ONLY = 1 << 1;
        /// `FLUSH` is known.
        const SEND_FLUSH = 1 << 2;
        /// The FUA flag is honoured.
        const SEND_FUA = 1 << 3;
        /// Seeks cost time.
        const ROTATIONAL = 1 << 4;
        /// `TRIM` is known.
        const SEND_TRIM = 1 << 5;
        /// `WRITE_ZEROES` is known.
        const SEND_WRITE_ZEROES = 1 << 6;
        /// The DF flag is honoured; the machines set it exactly with structured replies.
        const SEND_DF = 1 << 7;
        /// A flush on one connection covers the writes acknowledged on all.
        const CAN_MULTI_CONN = 1 << 8;
        /// `CACHE` is known.
        const SEND_CACHE = 1 << 10;
        /// The `FAST_ZERO` flag is honoured.
        const SEND_FAST_ZERO = 1 << 11;
    }

    /// Modifies one command.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct CommandFlags: u16 {
        /// Durable before it is acknowledged. Taken, and ignored, on commands that write nothing.
        const FUA = 1 << 0;
        /// `WRITE_ZEROES` must not make a hole.
        const NO_HOLE = 1 << 1;
        /// `READ` is answered in one chunk.
        const DF = 1 << 2;
        /// `BLOCK_STATUS` is answered with one descriptor.
        const REQ_ONE = 1 << 3;
        /// `WRITE_ZEROES` fails at once if it is no faster than writing.
        const FAST_ZERO = 1 << 4;
    }

    /// What `base:allocation` says about an extent.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct ExtentFlags: u32 {
        /// Not allocated: writing there may find no space.
        const HOLE = 1 << 0;
        /// Reads as zeroes.
        const ZERO = 1 << 1;
    }
}

/// The errors that may stand on the wire; there are no others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Error)]
#[repr(u32)]
pub enum NbdError {
    /// The export may not be written.
    #[error("operation not permitted (EPERM)")]
    NotPermitted = 1,
    /// The device failed.
    #[error("input/output error (EIO)")]
    Io = 5,
    /// The server is out of memory.
    #[error("cannot allocate memory (ENOMEM)")]
    NoMemory = 12,
    /// The request is not legal.
    #[error("invalid argument (EINVAL)")]
    Invalid = 22,
    /// A write past the end, or a full device.
    #[error("no space left on device (ENOSPC)")]
    NoSpace = 28,
    /// A read too long to be answered in one chunk.
    #[error("value too large (EOVERFLOW)")]
    Overflow = 75,
    /// Zeroing would not be fast.
    #[error("operation not supported (ENOTSUP)")]
    NotSupported = 95,
    /// The server is being shut down.
    #[error("server is shutting down (ESHUTDOWN)")]
    Shutdown = 108,
}

impl NbdError {
    /// Every error, in the order of its number.
    pub const ALL: [Self; 8] = [
        Self::NotPermitted,
        Self::Io,
        Self::NoMemory,
        Self::Invalid,
        Self::NoSpace,
        Self::Overflow,
        Self::NotSupported,
        Self::Shutdown,
    ];

    /// Returns the number on the wire.
    pub fn code(self) -> u32 {
        self as u32
    }

    /// Returns the error with this number; an unknown number counts as [`NbdError::Invalid`], as
    /// the protocol asks of clients.
    pub fn from_code(code: u32) -> Self {
        Self::ALL.into_iter().find(|error| error.code() == code).unwrap_or(Self::Invalid)
    }
}
