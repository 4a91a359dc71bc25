//! Why a client is served no more.

use std::fmt;

use paternoster::Nanos;
use paternoster_nbd::server::Fatal;
use rustix::io::Errno;

use crate::tls;

/// Why a connection ended; the first reason is the one.
#[derive(Clone, Debug)]
pub(crate) enum Leave {
    /// The client said that it was done: `NBD_CMD_DISC`.
    Disconnected,
    /// The client closed its end without saying so.
    Closed,
    /// The socket failed.
    Broken(Errno),
    /// What it sent cannot be understood.
    CutOff(Fatal),
    /// What it sent is no TLS as it was agreed on.
    Tls(rustls::Error),
    /// It made no progress for so long, while others of its tenant waited for memory.
    Stalled(Nanos),
    /// Its volume is removed.
    Removed,
    /// The front-end of a virtual machine closed its socket.
    HungUp,
    /// It was not obeyed, which its thread has logged.
    Refused,
    /// It was to attach to another server, which has not come.
    HandOver,
    /// It has taken memory away that it had given.
    MemoryGone,
}

impl fmt::Display for Leave {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disconnected => f.write_str("it sent NBD_CMD_DISC"),
            Self::Closed => f.write_str("it closed the connection without NBD_CMD_DISC"),
            Self::Broken(errno) => errno.fmt(f),
            Self::CutOff(fatal) => fatal.fmt(f),
            Self::Tls(error) => write!(f, "TLS: {}", tls::why(error)),
            Self::Removed => f.write_str("its volume is being removed"),
            Self::HungUp => f.write_str("its front-end has hung up"),
            Self::Refused => f.write_str("what its front-end said was not obeyed"),
            Self::HandOver => f.write_str("a hand-over was given up, and it has to attach anew"),
            Self::MemoryGone => f.write_str(
                "its front-end has made a file of its memory shorter: F_SEAL_SHRINK forbids that",
            ),
            Self::Stalled(span) => write!(
                f,
                "it made no progress for {} s while others of its tenant waited for memory",
                span.as_nanos() / 1_000_000_000
            ),
        }
    }
}
