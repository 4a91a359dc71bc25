//! What a recording has beside blktrace's file: `NAME.pater` beside `NAME.blktrace.0`.
//!
//! ```text
//!   "PATREC01"
//!   block: u32 kind, u32 bytes of the payload, payload     little endian; kinds that are not
//!   …                                                      known are skipped
//!
//!   1 meta      JSON: what recorded, under which scheduler, on what
//!   2 names     JSON: connections, with their exports, groups and weights
//!   3 change    JSON: what was set while it was recorded
//!   4 requests  32 bytes each: u64 sequence of Q, u64 reply ns, u32 bytes, u8 op, u8 flags,
//!               u16 error, u32 after, u32 bytes of the offset within its sector
//!   5 lost      JSON: how many requests were left out, and when
//! ```
//!
//! A file that ends within a block is whole up to that block.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Read, Write};

use paternoster::Op;
use serde::{Deserialize, Serialize};

/// With what the file begins.
pub const MAGIC: &[u8; 8] = b"PATREC01";

/// How long a block may be, in bytes: a reader has one in memory.
pub const LONGEST: u32 = 1 << 20;

const META: u32 = 1;
const NAMES: u32 = 2;
const CHANGE: u32 = 3;
const REQUESTS: u32 = 4;
const LOST: u32 = 5;

/// The bytes of a request.
const REQUEST: usize = 32;

/// What recorded, under which scheduler, on what.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Meta {
    /// The version of this form: 1.
    pub version: u32,
    /// The disk.
    pub disk: String,
    /// Its size in bytes.
    pub size: u64,
    /// Whether it rotates.
    pub rotational: bool,
    /// The scheduler with its tunables that are set, as one word: `cfq:slice_idle=0`.
    pub scheduler: String,
    /// How many requests it takes at once under each scheduler that learns no depth, by name.
    pub depths: BTreeMap<String, u32>,
}

/// A connection, and whose it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Party {
    /// Its number, which is the pid in blktrace's file.
    pub connection: u32,
    /// What it is called: `gold#3`.
    pub name: String,
    /// The path of its group.
    pub group: String,
    /// The weight of that; 0 of the root, which has none.
    pub weight: u32,
    /// The volume of a pool; empty of a disk that has no volumes.
    pub volume: String,
}

/// Something that was set while it was recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// When, in ns since the start.
    pub at_ns: u64,
    /// What: the name of a group with its weight, or of a tunable.
    pub what: String,
    /// To what.
    pub value: String,
}

/// Requests that were left out, as the recorder could not follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lost {
    /// How many.
    pub requests: u64,
    /// From when, in ns since the start.
    pub from_ns: u64,
    /// Until when.
    pub until_ns: u64,
}

/// What blktrace's file does not have of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedRequest {
    /// The sequence of its Q in blktrace's file.
    pub sequence: u64,
    /// When its reply was handed over, in ns since the start.
    pub reply: u64,
    /// Its length in bytes, which may be no whole sectors.
    pub len: u32,
    /// Its operation.
    pub op: Op,
    /// Its flags.
    pub flags: RequestFlags,
    /// The errno with which it failed; 0 of none.
    pub error: u16,
    /// How many replies its connection had got when it was taken in; none where that is not known.
    pub after: Option<u32>,
    /// Bytes of its offset within its first sector.
    pub within: u16,
}

bitflags::bitflags! {
    /// Flags of a request.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct RequestFlags: u8 {
        /// It was taken in at one time with the request before it.
        const ONE_READ = 1;
        /// Its offset or length is no whole sectors.
        const PARTS_OF_SECTORS = 2;
        /// It was refused.
        const REFUSED = 4;
        /// It had no reply: it was given up, or what became of it was lost.
        const NO_REPLY = 8;
    }
}

const NOT_KNOWN: u32 = u32::MAX;

impl RecordedRequest {
    fn to_bytes(self) -> [u8; REQUEST] {
        let mut bytes = [0; REQUEST];
        bytes[0..8].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.reply.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.len.to_le_bytes());
        let op = Op::ALL.iter().position(|op| *op == self.op).unwrap_or_default();
        bytes[20] = u8::try_from(op).expect("there are few");
        bytes[21] = self.flags.bits();
        bytes[22..24].copy_from_slice(&self.error.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.after.unwrap_or(NOT_KNOWN).to_le_bytes());
        bytes[28..32].copy_from_slice(&u32::from(self.within).to_le_bytes());
        bytes
    }

    /// None of bytes that are no request: of an operation that is not known.
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
        let long = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
        Some(Self {
            sequence: long(0),
            reply: long(8),
            len: word(16),
            op: *Op::ALL.get(usize::from(bytes[20]))?,
            flags: RequestFlags::from_bits_retain(bytes[21]),
            error: u16::from_le_bytes([bytes[22], bytes[23]]),
            after: Some(word(24)).filter(|after| *after != NOT_KNOWN),
            within: u16::try_from(word(28)).ok().filter(|within| *within < 512)?,
        })
    }
}

/// A block of the file.
#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    /// What recorded.
    Meta(Meta),
    /// Connections that have come.
    Names(Vec<Party>),
    /// Something was set.
    Change(Change),
    /// Requests, in the order of their replies.
    Requests(Vec<RecordedRequest>),
    /// Requests were left out.
    Lost(Lost),
}

impl Block {
    /// Its bytes, with the kind and the length before them.
    pub fn to_bytes(&self) -> Vec<u8> {
        let json = |kind, value: serde_json::Result<Vec<u8>>| {
            (kind, value.expect("text and numbers are JSON"))
        };
        let (kind, payload) = match self {
            Self::Meta(meta) => json(META, serde_json::to_vec(meta)),
            Self::Names(names) => json(NAMES, serde_json::to_vec(names)),
            Self::Change(change) => json(CHANGE, serde_json::to_vec(change)),
            Self::Requests(requests) => {
                (REQUESTS, requests.iter().flat_map(|request| request.to_bytes()).collect())
            }
            Self::Lost(lost) => json(LOST, serde_json::to_vec(lost)),
        };
        let len = u32::try_from(payload.len()).expect("a block is short");
        [&kind.to_le_bytes()[..], &len.to_le_bytes(), &payload].concat()
    }

    /// That of a kind and a payload; none of a kind that is not known.
    fn from_payload(kind: u32, payload: &[u8]) -> Result<Option<Self>, String> {
        let wrong = |error: serde_json::Error| error.to_string();
        Ok(Some(match kind {
            META => Self::Meta(serde_json::from_slice(payload).map_err(wrong)?),
            NAMES => Self::Names(serde_json::from_slice(payload).map_err(wrong)?),
            CHANGE => Self::Change(serde_json::from_slice(payload).map_err(wrong)?),
            LOST => Self::Lost(serde_json::from_slice(payload).map_err(wrong)?),
            REQUESTS => {
                let requests = payload.chunks(REQUEST).map(|bytes| {
                    let whole = Some(bytes).filter(|bytes| bytes.len() == REQUEST);
                    whole.and_then(RecordedRequest::from_bytes).ok_or("a request that is none")
                });
                Self::Requests(requests.collect::<Result<_, _>>()?)
            }
            _ => return Ok(None),
        }))
    }
}

/// Writes the file.
#[derive(Debug)]
pub struct Writer<W>(W);

impl<W: Write> Writer<W> {
    /// Begins it.
    pub fn new(mut out: W) -> io::Result<Self> {
        out.write_all(MAGIC)?;
        Ok(Self(out))
    }

    /// Writes a block; how many bytes that is.
    pub fn write(&mut self, block: &Block) -> io::Result<u64> {
        let bytes = block.to_bytes();
        self.0.write_all(&bytes)?;
        Ok(bytes.len() as u64)
    }

    /// Has all of it written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }

    /// What it writes to.
    pub fn into_inner(self) -> W {
        self.0
    }
}

/// Reads the file, block by block.
#[derive(Debug)]
pub struct Reader<R> {
    bytes: R,
    /// Where the next block begins.
    at: u64,
}

/// Why a file cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SidecarError {
    /// The file cannot be read.
    #[error(transparent)]
    Unreadable(#[from] io::Error),
    /// It is something else.
    #[error("it does not begin with \"PATREC01\"")]
    NoSidecar,
    /// A block is not what its kind has.
    #[error("byte {at}: {what}")]
    Malformed {
        /// Where the block begins.
        at: u64,
        /// What was found.
        what: String,
    },
}

impl<R: BufRead> Reader<R> {
    /// Begins with the file.
    pub fn new(mut bytes: R) -> Result<Self, SidecarError> {
        let mut magic = [0; MAGIC.len()];
        match bytes.read_exact(&mut magic) {
            Ok(()) if &magic == MAGIC => Ok(Self { bytes, at: MAGIC.len() as u64 }),
            Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => Err(error.into()),
            _ => Err(SidecarError::NoSidecar),
        }
    }

    /// The next block of a kind that is known. None at the end, and before a block that is cut.
    pub fn next_block(&mut self) -> Result<Option<Block>, SidecarError> {
        loop {
            let at = self.at;
            let mut head = Vec::new();
            self.bytes.by_ref().take(8).read_to_end(&mut head)?;
            let Some((kind, len)) = head.first_chunk::<4>().zip(head.last_chunk::<4>()) else {
                return Ok(None);
            };
            if head.len() < 8 {
                return Ok(None);
            }
            let (kind, len) = (u32::from_le_bytes(*kind), u32::from_le_bytes(*len));
            let malformed = |what| SidecarError::Malformed { at, what };
            if len > LONGEST {
                let what = format!("a block of {len} bytes: at most {LONGEST} are allowed");
                return Err(malformed(what));
            }
            let mut payload = Vec::new();
            self.bytes.by_ref().take(len.into()).read_to_end(&mut payload)?;
            if payload.len() < len as usize {
                return Ok(None);
            }
            self.at += 8 + u64::from(len);
            if let Some(block) = Block::from_payload(kind, &payload).map_err(malformed)? {
                return Ok(Some(block));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> RecordedRequest {
        RecordedRequest {
            sequence: 1 << 40,
            reply: 7,
            len: 4095,
            op: Op::WriteZeroes,
            flags: RequestFlags::ONE_READ | RequestFlags::PARTS_OF_SECTORS,
            error: 5,
            after: Some(3),
            within: 511,
        }
    }

    fn blocks() -> Vec<Block> {
        let [name, group, volume] = ["gold#3", "/a", "v"].map(str::to_owned);
        let party = Party { connection: 3, name, group, weight: 7, volume };
        let what = ("weight of /a".to_owned(), "300".to_owned());
        vec![
            Block::Meta(Meta { version: 1, scheduler: "wfq".into(), ..Meta::default() }),
            Block::Names(vec![party]),
            Block::Change(Change { at_ns: 9, what: what.0, value: what.1 }),
            Block::Requests(vec![request(), RecordedRequest { after: None, ..request() }]),
            Block::Lost(Lost { requests: 4, from_ns: 1, until_ns: 2 }),
        ]
    }

    fn written() -> Vec<u8> {
        let mut writer = Writer::new(Vec::new()).expect("memory");
        for block in blocks() {
            writer.write(&block).expect("memory");
        }
        writer.into_inner()
    }

    fn read(bytes: &[u8]) -> Result<Vec<Block>, SidecarError> {
        let mut reader = Reader::new(bytes)?;
        let mut blocks = Vec::new();
        while let Some(block) = reader.next_block()? {
            blocks.push(block);
        }
        Ok(blocks)
    }

    #[test]
    fn file_is_read_as_it_was_written_and_up_to_its_last_whole_block() {
        let bytes = written();
        assert_eq!(read(&bytes).expect("it is one"), blocks());
        // The first block begins at byte 8, and its payload with the length of 32 bits before it.
        for cut in 8..bytes.len() {
            let found = read(&bytes[..cut]).expect("it is one");
            assert!(found.len() < blocks().len() && found[..] == blocks()[..found.len()], "{cut}");
        }
    }

    #[test]
    fn blocks_of_other_kinds_are_skipped_and_what_is_wrong_is_told() {
        let other = [&77_u32.to_le_bytes()[..], &3_u32.to_le_bytes(), b"abc"].concat();
        let bytes = [&written()[..8], &other, &written()[8..]].concat();
        assert_eq!(read(&bytes).expect("it is one"), blocks());
        let error = |bytes: &[u8]| read(bytes).expect_err("it is wrong").to_string();
        assert_eq!(error(b"PATREC02"), "it does not begin with \"PATREC01\"");
        let long = [&MAGIC[..], &4_u32.to_le_bytes(), &(2 * LONGEST).to_le_bytes()].concat();
        assert_eq!(error(&long), "byte 8: a block of 2097152 bytes: at most 1048576 are allowed");
        let short = [&MAGIC[..], &4_u32.to_le_bytes(), &3_u32.to_le_bytes(), b"abc"].concat();
        assert_eq!(error(&short), "byte 8: a request that is none");
    }
}
