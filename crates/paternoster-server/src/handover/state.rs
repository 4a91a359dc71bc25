//! What goes from one server to the next in a file: a line of JSON, then bytes.
//!
//! ```text
//!   {"format": 1, "connections": [{…, "input": 60, "output": 16}, …], …}\n
//!   60 bytes of input, 16 of output of the first connection; those of the second; …
//! ```
//!
//! Descriptors come beside it, those of clients in the order of `connections`. Fields that are not
//! known are not read, but for those of records, which are as in a `state_dir`.

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
use crate::messages::Resumed;

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
    /// Of which images a sync has failed, or data may be lost.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) not_durable: Vec<String>,
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
}

/// A client's connection.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ConnectionState {
    export: ToldExport,
    /// The bytes that this is: of which image, and from where on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bytes: Option<(String, u64)>,
    structured_replies: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    allocation_context: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    refused: Option<RefusedState>,
    /// Whether there was credit for all of the payload whose beginning has come.
    #[serde(default)]
    has_room: bool,
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
    pub(crate) input: BytesMut,
    pub(crate) resumed: Resumed,
}

impl ConnectionState {
    pub(super) fn of(held: &HeldConnection, bytes: Option<(String, u64)>) -> Self {
        let HeldConnection { session, refused, has_room, input, output, .. } = held;
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
            bytes,
            structured_replies: session.structured_replies,
            allocation_context: session.allocation_context,
            has_room: *has_room,
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
        let (refused, has_room, bytes) = (of.refused(), of.has_room, of.bytes.clone());
        let resumed = Resumed { refused, has_room, output, bytes };
        Ok(LeftConnection { session: of.session(), input, resumed })
    });
    connections.collect()
}

/// Writes connections as one server does, for tests; with their sockets.
#[cfg(test)]
pub(crate) fn written(
    connections: &[HeldConnection],
) -> io::Result<(OwnedFd, Vec<paternoster_disk::Fd>)> {
    let of = connections.iter().map(|held| ConnectionState::of(held, None)).collect();
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

#[cfg(test)]
mod tests {
    use paternoster_nbd::server::Transmission;
    use paternoster_nbd::{Command, Request};

    use super::*;

    /// What this server must be able to read for as long as it reads that format.
    const STATE: &[u8] = include_bytes!("fixtures/state-1");
    const OFFER: &[u8] = include_bytes!("fixtures/offer-1");

    fn file(bytes: &[u8]) -> OwnedFd {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(bytes).expect("room");
        file.into()
    }

    #[test]
    fn state_of_format_1_is_read() {
        let (state, mut rest) = read::<State>(file(STATE)).expect("it is one");
        let disks = state.disks.iter().map(|of| (&*of.name, of.learned_depth));
        assert!(disks.eq([("fast", Some(24)), ("slow", None)]));
        assert_eq!(state.not_durable, ["fe01:4711"]);
        assert_eq!((state.set.disks.len(), state.set.groups.len()), (1, 2));
        assert_eq!(state.set.groups[1].disk.as_deref(), Some("slow"));
        let left = read_connections(&state, &mut rest).expect("it is all there");
        let [mut vm7, backup] = <[_; 2]>::try_from(left).expect("two");
        assert_eq!(vm7.session.export.name, "vm7");
        assert_eq!((vm7.session.export.size, vm7.session.allocation_context), (1 << 30, Some(1)));
        assert!(vm7.session.structured_replies && !backup.session.structured_replies);
        assert_eq!(vm7.resumed.output.len(), 16, "a simple reply");
        assert_eq!(vm7.resumed.bytes, Some(("fe01:4711".to_owned(), 1 << 20)));
        assert!(vm7.resumed.has_room && !backup.resumed.has_room);
        let mut transmission = Transmission::resume(vm7.session, None);
        let mut next =
            || transmission.decode(&mut vm7.input, &mut BytesMut::new()).expect("requests");
        let data = Bytes::from(vec![7; 512]);
        let write = Command::Write { offset: 4096, data, fua: true };
        assert_eq!(next(), Some(Request { cookie: 7, command: write }));
        assert_eq!(next(), Some(Request { cookie: 8, command: Command::Flush }));
        assert_eq!(next(), None);
        assert_eq!(transmission.wanted(), 924, "of the last write 100 bytes have come");
        let (error, message) = (NbdError::NotPermitted, "read-only".to_owned());
        let refused = RefusedWrite { cookie: 11, error, message, left: 300 };
        assert_eq!(backup.resumed.refused, Some(refused));
    }

    #[test]
    fn offer_of_format_1_is_read() {
        let (offer, _) = read::<Offer>(file(OFFER)).expect("it is one");
        assert_eq!(offer.names[&0], "nbd");
        offer.records.read().expect("they are records");
    }

    #[test]
    fn state_that_is_not_one_is_an_error_that_says_so() {
        let refused = |bytes: &[u8]| {
            let read = read::<State>(file(bytes));
            let all = read.and_then(|(state, mut rest)| read_connections(&state, &mut rest));
            all.expect_err("it is none").to_string()
        };
        let later = refused(b"{\"format\": 2, \"connections\": 7}\n");
        assert!(later.contains("is of format 2, and this is paternoster"), "{later}");
        assert!(later.ends_with("which reads 1"), "{later}");
        let short = refused(&STATE[..STATE.len() - 20]);
        assert_eq!(short, "the state ends 4 bytes early");
        for rubbish in [&b""[..], b"\n", b"{}", b"{\"format\": 1}\n", &[0xff; 40]] {
            refused(rubbish);
        }
        // No more memory is asked for than there are bytes.
        let many = r#"{"format":1,"disks":[],"set":{"disks":[],"groups":[]},"connections":["#;
        let one = r#"{"export":{"name":"e","size":1,"flags":1,"block_size":[1,1,1]},"#;
        let sizes = r#""structured_replies":true,"input":18446744073709551615,"output":0}]}"#;
        let much = format!("{many}{one}{sizes}\n");
        assert!(refused(much.as_bytes()).contains("bytes early"));
    }
}
