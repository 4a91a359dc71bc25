//! What goes from one server to the next in a file: a line of JSON, then bytes.
//!
//! ```text
//!   {"format": 1, "connections": [{…, "input": 60, "output": 16}, …], …}\n
//!   60 bytes of input, 16 of output of the first connection; those of the second; …
//! ```
//!
//! Descriptors come beside it, those of clients in the order of `connections`. A later format may
//! have further fields, which are not read.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, Write as _};
use std::os::fd::OwnedFd;

use bytes::{Bytes, BytesMut};
use paternoster_nbd::server::RefusedWrite;
use paternoster_nbd::{BlockSize, ExportInfo, NbdError, Session, TransmissionFlags};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::message::FORMAT;
use crate::catalogue::WrittenRecords;
use crate::clients::HeldConnection;
use crate::ctl::SetByRequest;

/// What there is before anything has stopped.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Offer {
    pub(super) format: u32,
    /// What a service manager calls sockets, by their place among the descriptors.
    pub(super) names: BTreeMap<usize, String>,
    /// What requests have made.
    pub(super) records: WrittenRecords,
}

/// What there is when nothing is under way any more.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct State {
    pub(super) format: u32,
    pub(super) disks: Vec<DiskState>,
    /// What requests have set of groups and disks that the file does not say.
    pub(super) set: SetByRequest,
    pub(super) connections: Vec<ConnectionState>,
}

/// What is not in the file of a disk.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct DiskState {
    pub(super) name: String,
    /// The depth that its scheduler has learned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) learned_depth: Option<u32>,
    /// Volumes of which a sync has failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) failed_syncs: Vec<String>,
}

/// A client's connection.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ConnectionState {
    export: ToldExport,
    structured_replies: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    allocation_context: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    refused: Option<RefusedState>,
    /// Bytes of commands without an answer, and of what was not decoded.
    input: usize,
    /// Bytes of replies that were not sent.
    output: usize,
}

/// What the client was told of its export.
#[derive(Debug, Serialize, Deserialize)]
struct ToldExport {
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    size: u64,
    flags: u16,
    /// The least, the preferred and the greatest.
    block_size: [u32; 3],
}

/// A refused write, the rest of whose payload is to come.
#[derive(Debug, Serialize, Deserialize)]
struct RefusedState {
    cookie: u64,
    error: u32,
    message: String,
    left: usize,
}

/// A connection as it was left.
#[derive(Debug)]
pub(crate) struct LeftConnection {
    pub(crate) session: Session,
    pub(crate) refused: Option<RefusedWrite>,
    pub(crate) input: BytesMut,
    pub(crate) output: Bytes,
}

impl ConnectionState {
    pub(super) fn of(held: &HeldConnection) -> Self {
        let HeldConnection { session, refused, input, output, .. } = held;
        let ExportInfo { name, description, size, flags, block_size } = &session.export;
        let BlockSize { min, preferred, max } = *block_size;
        let len = |parts: &[Bytes]| parts.iter().map(Bytes::len).sum();
        Self {
            export: ToldExport {
                name: name.clone(),
                description: description.clone(),
                size: *size,
                flags: flags.bits(),
                block_size: [min, preferred, max],
            },
            structured_replies: session.structured_replies,
            allocation_context: session.allocation_context,
            refused: refused.as_ref().map(|refused| RefusedState {
                cookie: refused.cookie,
                error: refused.error.code(),
                message: refused.message.clone(),
                left: refused.left,
            }),
            input: len(input),
            output: len(output),
        }
    }

    fn session(&self) -> Session {
        let ToldExport { name, description, size, flags, block_size } = &self.export;
        let [min, preferred, max] = *block_size;
        Session {
            export: ExportInfo {
                name: name.clone(),
                description: description.clone(),
                size: *size,
                flags: TransmissionFlags::from_bits_retain(*flags),
                block_size: BlockSize { min, preferred, max },
            },
            structured_replies: self.structured_replies,
            allocation_context: self.allocation_context,
        }
    }

    fn refused(&self) -> Option<RefusedWrite> {
        let RefusedState { cookie, error, ref message, left } = *self.refused.as_ref()?;
        let (error, message) = (NbdError::from_code(error), message.clone());
        Some(RefusedWrite { cookie, error, message, left })
    }
}

/// Writes a file of what is in memory alone, which nobody changes afterwards.
pub(super) fn write(
    header: &impl Serialize,
    connections: &[HeldConnection],
) -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let mut file = File::from(memfd_create("paternoster-handover", flags)?);
    let mut line = serde_json::to_vec(header)?;
    line.push(b'\n');
    file.write_all(&line)?;
    for HeldConnection { input, output, .. } in connections {
        for part in input.iter().chain(output) {
            file.write_all(part)?;
        }
    }
    let seals = SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE;
    fcntl_add_seals(&file, seals)?;
    Ok(file.into())
}

/// Reads the line of such a file, if it is of a format that this server reads.
pub(super) fn read<H: DeserializeOwned>(file: OwnedFd) -> io::Result<(H, BufReader<File>)> {
    #[derive(Deserialize)]
    struct OfFormat {
        format: u32,
    }
    let mut file = File::from(file);
    file.rewind()?;
    let mut file = BufReader::new(file);
    let mut line = String::new();
    file.read_line(&mut line)?;
    let OfFormat { format } = serde_json::from_str(&line)?;
    if format != FORMAT {
        return Err(io::Error::other(format!(
            "the state is of format {format}, and this is paternoster {}, which reads {FORMAT}",
            env!("CARGO_PKG_VERSION")
        )));
    }
    Ok((serde_json::from_str(&line)?, file))
}

/// Reads what follows the line of a state: the connections.
pub(super) fn read_connections(
    state: &State,
    file: &mut impl io::Read,
) -> io::Result<Vec<LeftConnection>> {
    let mut bytes = |len: usize| {
        let mut bytes = Vec::new();
        // As much as there is, whatever is said.
        let read = file.by_ref().take(len as u64).read_to_end(&mut bytes)?;
        if read < len {
            let what = format!("the state ends {} bytes early", len - read);
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, what));
        }
        Ok(bytes)
    };
    let connections = state.connections.iter().map(|of| {
        let input = BytesMut::from(Bytes::from(bytes(of.input)?));
        let output = bytes(of.output)?.into();
        Ok(LeftConnection { session: of.session(), refused: of.refused(), input, output })
    });
    connections.collect()
}

/// Writes connections as one server does, for tests; with their sockets.
#[cfg(test)]
pub(crate) fn written(
    connections: &[HeldConnection],
) -> io::Result<(OwnedFd, Vec<paternoster_disk::Fd>)> {
    let of = connections.iter().map(ConnectionState::of).collect();
    let state = State { format: FORMAT, connections: of, ..State::default() };
    let sockets = connections.iter().map(|held| held.socket.clone()).collect();
    Ok((write(&state, connections)?, sockets))
}

/// Reads them as the next one does, for tests.
#[cfg(test)]
pub(crate) fn read_back(file: OwnedFd) -> io::Result<Vec<LeftConnection>> {
    let (state, mut file) = read::<State>(file)?;
    read_connections(&state, &mut file)
}
