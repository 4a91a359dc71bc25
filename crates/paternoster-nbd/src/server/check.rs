//! Checks requests: which are legal, and with which error the others are answered.
//!
//! Asked in this order, so that the first answer is the one that helps most:
//!
//! ```text
//!   known command? ──▶ may it write? ──▶ offered? ──▶ flags? ──▶ payload, range, block size
//!   EINVAL             EPERM            EINVAL       EINVAL     EINVAL, EOVERFLOW, ENOSPC
//! ```

use crate::command::{Command, Session, StatusQuery};
use crate::header::Header;
use crate::proto::{CommandFlags, NbdError, TransmissionFlags, cmd};

/// Why a request is not legal.
#[derive(Debug)]
pub(super) struct Refusal {
    /// What the client's program sees.
    pub(super) error: NbdError,
    /// What its user may see.
    pub(super) message: String,
}

/// What a legal request asks for.
#[derive(Debug)]
pub(super) enum Verdict {
    /// Something to do.
    Run(Command),
    /// A write whose payload follows.
    Payload { offset: u64, fua: bool },
    /// Nothing: its length is zero. Done.
    Nothing,
}

/// Judges one request against what the session allows.
pub(super) fn check(header: &Header, session: &Session) -> Result<Verdict, Refusal> {
    if header.code == cmd::DISC {
        return Ok(Verdict::Run(Command::Disconnect));
    }
    check_command(header, session)?;
    let flags = check_flags(header, session.export.flags)?;
    let Header { offset, len, .. } = *header;
    if header.code == cmd::FLUSH {
        if offset != 0 || len != 0 {
            return refuse(
                NbdError::Invalid,
                format!("FLUSH of {len} bytes at {offset}, not 0, 0"),
            );
        }
        return Ok(Verdict::Run(Command::Flush));
    }
    check_range(header, session, flags)?;
    if len == 0 {
        if header.code == cmd::BLOCK_STATUS {
            return refuse(NbdError::Invalid, "BLOCK_STATUS of 0 bytes has no answer");
        }
        return Ok(Verdict::Nothing);
    }
    let fua = flags.contains(CommandFlags::FUA);
    Ok(Verdict::Run(match header.code {
        cmd::READ => Command::Read { offset, len, df: flags.contains(CommandFlags::DF) },
        cmd::WRITE => return Ok(Verdict::Payload { offset, fua }),
        cmd::TRIM => Command::Trim { offset, len, fua },
        cmd::CACHE => Command::Cache { offset, len },
        cmd::WRITE_ZEROES => Command::WriteZeroes {
            offset,
            len,
            fua,
            no_hole: flags.contains(CommandFlags::NO_HOLE),
            fast: flags.contains(CommandFlags::FAST_ZERO),
        },
        // BLOCK_STATUS: nothing else has passed `check_command`.
        _ => {
            let one = flags.contains(CommandFlags::REQ_ONE);
            Command::BlockStatus(StatusQuery { offset, len, one })
        }
    }))
}

/// The command is known, allowed and advertised.
fn check_command(header: &Header, session: &Session) -> Result<(), Refusal> {
    let offered = session.export.flags;
    if header.writes() && offered.contains(TransmissionFlags::READ_ONLY) {
        return refuse(NbdError::NotPermitted, "the export is read-only");
    }
    let (advertised, name) = match header.code {
        cmd::READ | cmd::WRITE => return Ok(()),
        cmd::FLUSH => (offered.contains(TransmissionFlags::SEND_FLUSH), "FLUSH"),
        cmd::TRIM => (offered.contains(TransmissionFlags::SEND_TRIM), "TRIM"),
        cmd::CACHE => (offered.contains(TransmissionFlags::SEND_CACHE), "CACHE"),
        cmd::WRITE_ZEROES => {
            (offered.contains(TransmissionFlags::SEND_WRITE_ZEROES), "WRITE_ZEROES")
        }
        cmd::BLOCK_STATUS => (session.allocation_context.is_some(), "BLOCK_STATUS"),
        code => return refuse(NbdError::Invalid, format!("command {code} is not known")),
    };
    if !advertised {
        return refuse(NbdError::Invalid, format!("{name} was not negotiated for this export"));
    }
    Ok(())
}

/// Every flag is known, advertised and of this command. FUA is taken on commands that write
/// nothing, because there are clients that set it there.
fn check_flags(header: &Header, offered: TransmissionFlags) -> Result<CommandFlags, Refusal> {
    let mut allowed = match header.code {
        cmd::READ if offered.contains(TransmissionFlags::SEND_DF) => CommandFlags::DF,
        cmd::BLOCK_STATUS => CommandFlags::REQ_ONE,
        cmd::WRITE_ZEROES if offered.contains(TransmissionFlags::SEND_FAST_ZERO) => {
            CommandFlags::NO_HOLE | CommandFlags::FAST_ZERO
        }
        cmd::WRITE_ZEROES => CommandFlags::NO_HOLE,
        _ => CommandFlags::empty(),
    };
    allowed
        .set(CommandFlags::FUA, !header.writes() || offered.contains(TransmissionFlags::SEND_FUA));
    let found = header.flags;
    match CommandFlags::from_bits(found) {
        Some(flags) if allowed.contains(flags) => Ok(flags),
        _ => {
            let allowed = allowed.bits();
            refuse(
                NbdError::Invalid,
                format!("flags {found:#x} on command {}, allowed are {allowed:#x}", header.code),
            )
        }
    }
}

/// The range lies inside the export, keeps to its block size and can be carried.
fn check_range(header: &Header, session: &Session, flags: CommandFlags) -> Result<(), Refusal> {
    let Header { offset, len, .. } = *header;
    let export = &session.export;
    if header.carries_data() && len > export.block_size.max {
        // EOVERFLOW is kept for reads that may not be fragmented.
        let error =
            if flags.contains(CommandFlags::DF) { NbdError::Overflow } else { NbdError::Invalid };
        return refuse(
            error,
            format!("{len} bytes, at most {} are allowed", export.block_size.max),
        );
    }
    if offset.checked_add(u64::from(len)).is_none_or(|end| end > export.size) {
        // Trimming takes no space; the protocol text counts it with reading here.
        let error = match header.code {
            cmd::WRITE | cmd::WRITE_ZEROES => NbdError::NoSpace,
            _ => NbdError::Invalid,
        };
        let size = export.size;
        return refuse(error, format!("{len} bytes at {offset} pass the end at {size}"));
    }
    let min = export.block_size.min.max(1);
    if !offset.is_multiple_of(u64::from(min)) || !len.is_multiple_of(min) {
        let message = format!("{len} bytes at {offset} are not multiples of {min}");
        return refuse(NbdError::Invalid, message);
    }
    Ok(())
}

fn refuse<T>(error: NbdError, message: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal { error, message: message.into() })
}
