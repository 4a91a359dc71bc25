//! Why a server ends the option phase without an answer.

use thiserror::Error;

use crate::proto::{ClientFlags, MAX_OPTIONS, MAX_STRING, OPTION_MAGIC};

/// The error after which the connection must be closed: nothing can be answered.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum HandshakeError {
    /// The client's flags have bits that the greeting did not offer.
    #[error("client flags {found:#x}, allowed are {:#x}", ClientFlags::all().bits())]
    UnknownClientFlags {
        /// All of the flags.
        found: u32,
    },
    /// The client begins with TLS, not with the flags of NBD.
    #[error(
        "it begins with a record of TLS, not with NBD's client flags: TLS, where there is some, \
             begins by STARTTLS"
    )]
    Tls,
    /// More came in the clear behind `STARTTLS`, which its sender did not wait to be answered.
    #[error("{len} bytes in the clear follow STARTTLS: nothing is allowed before TLS begins")]
    BehindStartTls {
        /// How many.
        len: usize,
    },
    /// `EXPORT_NAME` in the clear, where TLS is required.
    #[error("EXPORT_NAME without TLS, which is required here: nbds:// begins it")]
    TlsRequired,
    /// An option does not begin with its magic.
    #[error("an option begins with {found:#018x}, not with {OPTION_MAGIC:#018x}")]
    BadMagic {
        /// The eight bytes in its place.
        found: u64,
    },
    /// `EXPORT_NAME` with a name that cannot be one.
    #[error("EXPORT_NAME with {len} bytes, a name is UTF-8 of at most {MAX_STRING} bytes")]
    BadExportName {
        /// Bytes of the name.
        len: u32,
    },
    /// `EXPORT_NAME` with a name nobody knows.
    #[error("EXPORT_NAME asks for {name:?}, which is not exported")]
    UnknownExport {
        /// The name.
        name: String,
    },
    /// `EXPORT_NAME` with the name of an export that may not be entered now.
    #[error("{why}")]
    NoEntry {
        /// Why not.
        why: String,
    },
    /// `EXPORT_NAME` while the server is being shut down.
    #[error("EXPORT_NAME while the server is shutting down")]
    ShuttingDown,
    /// The client negotiates forever.
    #[error("more than {MAX_OPTIONS} options")]
    TooManyOptions,
    /// The machine was asked to go on after its end.
    #[error("the handshake is over")]
    Over,
}
