//! Transfers as commands of the protocol, and its answers as results of transfers.

use bytes::Bytes;
use paternoster_nbd::{Command, NbdError};
use rustix::io::Errno;

use crate::engine::{Payload, Transfer, in_one};

/// The command that carries a transfer out.
pub(super) fn command(transfer: &Transfer) -> Command {
    let short = |len: u64| u32::try_from(len).expect("a transfer is shorter than 4 GiB");
    let len = short(transfer.len());
    match transfer {
        &Transfer::Read { offset, .. } => Command::Read { offset, len, df: false },
        Transfer::ReadInto { .. } => unreachable!("it offers no reads into a guest"),
        &Transfer::Cache { offset, .. } => Command::Cache { offset, len },
        Transfer::Write { offset, from } => {
            Command::Write { offset: *offset, data: in_one(from), fua: false }
        }
        &Transfer::Trim { offset, .. } => Command::Trim { offset, len, fua: false },
        &Transfer::Zero { offset, allocate, .. } => {
            Command::WriteZeroes { offset, len, fua: false, no_hole: allocate, fast: false }
        }
        Transfer::Sync { .. } => Command::Flush,
    }
}

/// The data of a read, cut into its parts.
pub(super) fn in_parts(mut data: &[u8], parts: &[u32]) -> Payload {
    let cut = parts.iter().map(|&len| {
        let (part, rest) = data.split_at((len as usize).min(data.len()));
        data = rest;
        Bytes::copy_from_slice(part)
    });
    cut.collect()
}

/// The error of this system that stands for one of the protocol.
pub(super) fn errno(error: NbdError) -> Errno {
    match error {
        NbdError::NotPermitted => Errno::PERM,
        NbdError::NoMemory => Errno::NOMEM,
        NbdError::Invalid => Errno::INVAL,
        NbdError::NoSpace => Errno::NOSPC,
        NbdError::Overflow => Errno::OVERFLOW,
        NbdError::NotSupported => Errno::OPNOTSUPP,
        NbdError::Shutdown => Errno::SHUTDOWN,
        NbdError::Io => Errno::IO,
    }
}
