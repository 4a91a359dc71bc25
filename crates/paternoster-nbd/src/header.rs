//! A request as it stands on the wire.

use bytes::{Buf, BufMut};

use crate::client::EncodeError;
use crate::command::{Command, Request};
use crate::proto::{CommandFlags, MAX_PAYLOAD, REQUEST_LEN, REQUEST_MAGIC, cmd};

/// A request without its magic and without the data of a write.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Header {
    pub(crate) flags: u16,
    /// A `cmd::` code or an unknown one.
    pub(crate) code: u16,
    /// Chosen by the client, returned in the reply.
    pub(crate) cookie: u64,
    pub(crate) offset: u64,
    /// Bytes; of a `WRITE` these follow.
    pub(crate) len: u32,
}

impl Header {
    /// Reads what follows the magic.
    pub(crate) fn parse(bytes: &[u8; REQUEST_LEN]) -> Self {
        let mut fields = &bytes[size_of::<u32>()..];
        Self {
            flags: fields.get_u16(),
            code: fields.get_u16(),
            cookie: fields.get_u64(),
            offset: fields.get_u64(),
            len: fields.get_u32(),
        }
    }

    /// That of a request, unless it is too long.
    pub(crate) fn of(request: &Request) -> Result<Self, EncodeError> {
        let none = CommandFlags::empty();
        let (code, offset, len, flags) = match &request.command {
            Command::Read { len, .. } if *len > MAX_PAYLOAD => {
                let len = usize::try_from(*len).expect("a u32 fits in memory sizes");
                return Err(EncodeError::TooLong { len });
            }
            Command::Read { offset, len, df } => {
                (cmd::READ, *offset, *len, when(*df, CommandFlags::DF))
            }
            Command::Write { offset, data, fua } => {
                let len = u32::try_from(data.len()).ok().filter(|len| *len <= MAX_PAYLOAD);
                let len = len.ok_or(EncodeError::TooLong { len: data.len() })?;
                (cmd::WRITE, *offset, len, when(*fua, CommandFlags::FUA))
            }
            Command::Flush => (cmd::FLUSH, 0, 0, none),
            Command::Trim { offset, len, fua } => {
                (cmd::TRIM, *offset, *len, when(*fua, CommandFlags::FUA))
            }
            Command::Cache { offset, len } => (cmd::CACHE, *offset, *len, none),
            Command::WriteZeroes { offset, len, fua, no_hole, fast } => {
                let flags = when(*fua, CommandFlags::FUA)
                    | when(*no_hole, CommandFlags::NO_HOLE)
                    | when(*fast, CommandFlags::FAST_ZERO);
                (cmd::WRITE_ZEROES, *offset, *len, flags)
            }
            Command::BlockStatus(query) => {
                let flags = when(query.one, CommandFlags::REQ_ONE);
                (cmd::BLOCK_STATUS, query.offset, query.len, flags)
            }
            Command::Disconnect => (cmd::DISC, 0, 0, none),
        };
        Ok(Self { flags: flags.bits(), code, cookie: request.cookie, offset, len })
    }

    /// That of a write, whatever its data is.
    pub(crate) fn of_write(cookie: u64, offset: u64, len: u32, fua: bool) -> Self {
        let flags = when(fua, CommandFlags::FUA).bits();
        Self { flags, code: cmd::WRITE, cookie, offset, len }
    }

    /// The bytes on the wire, with the magic.
    pub(crate) fn to_bytes(self) -> [u8; REQUEST_LEN] {
        let mut bytes = [0; REQUEST_LEN];
        let mut fields = &mut bytes[..];
        fields.put_u32(REQUEST_MAGIC);
        fields.put_u16(self.flags);
        fields.put_u16(self.code);
        fields.put_u64(self.cookie);
        fields.put_u64(self.offset);
        fields.put_u32(self.len);
        bytes
    }

    /// Returns whether it changes the disk.
    pub(crate) fn writes(&self) -> bool {
        matches!(self.code, cmd::WRITE | cmd::TRIM | cmd::WRITE_ZEROES)
    }

    /// Returns whether its length is that of data on the wire.
    pub(crate) fn carries_data(&self) -> bool {
        matches!(self.code, cmd::READ | cmd::WRITE)
    }
}

/// `flag`, if it is wanted.
fn when(wanted: bool, flag: CommandFlags) -> CommandFlags {
    if wanted { flag } else { CommandFlags::empty() }
}
