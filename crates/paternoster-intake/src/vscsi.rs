//! `VMware`'s traces of virtual SCSI disks, binary, little endian.
//!
//! ```text
//!   version 1, 32 bytes: u32 serial, u32 bytes, u32 elements, u16 command, u16 version << 8,
//!                        u64 block, u64 time in us
//!   version 2, 40 bytes: u16 command, u16 version << 8, u32 serial, u32 bytes, u32 elements,
//!                        u64 block, u64 time in us, u64 response time in us
//! ```
//!
//! Each record has the version in it.

use std::io::BufRead;

use paternoster::Op;

use crate::columns::US;
use crate::error::{Error, Place};
use crate::findings::{Findings, Warning};
use crate::request::Request;
use crate::trace::Requests;

const SECTOR: u64 = 512;

/// The version of a trace that begins so: what its first records have.
pub(crate) fn version(head: &[u8]) -> Option<u8> {
    [1, 2].into_iter().find(|&version| {
        let records: Vec<_> = head.chunks_exact(size(version)).take(8).collect();
        let is_one = |bytes: &&[u8]| {
            let record = Record { bytes, version };
            record.version() == u16::from(version) && record.len() < 1 << 26
        };
        // Others than reads and writes are among them.
        let moves_data = |bytes: &&[u8]| Record { bytes, version }.op().is_some();
        records.iter().all(is_one) && records.iter().any(moves_data)
    })
}

fn size(version: u8) -> usize {
    if version == 1 { 32 } else { 40 }
}

struct Record<'a> {
    bytes: &'a [u8],
    version: u8,
}

impl Record<'_> {
    fn field<const N: usize>(&self, [of_1, of_2]: [usize; 2]) -> [u8; N] {
        let at = if self.version == 1 { of_1 } else { of_2 };
        self.bytes[at..at + N].try_into().expect("a record is whole")
    }

    fn version(&self) -> u16 {
        u16::from_le_bytes(self.field([14, 2])) >> 8
    }

    fn command(&self) -> u16 {
        u16::from_le_bytes(self.field([12, 0]))
    }

    fn op(&self) -> Option<Op> {
        match self.command() & 0xff {
            0x08 | 0x28 | 0x88 | 0xa8 => Some(Op::Read),
            0x0a | 0x2a | 0x8a | 0xaa => Some(Op::Write),
            0x35 | 0x91 => Some(Op::Flush),
            0x42 => Some(Op::Discard),
            _ => None,
        }
    }

    fn len(&self) -> u64 {
        u32::from_le_bytes(self.field([4, 8])).into()
    }
}

/// The requests of a file.
pub(crate) struct Records {
    bytes: Box<dyn BufRead + Send>,
    version: u8,
    at: u64,
    left_out: u64,
}

impl Records {
    pub(crate) fn new(bytes: Box<dyn BufRead + Send>, version: u8) -> Self {
        Self { bytes, version, at: 0, left_out: 0 }
    }
}

impl Requests for Records {
    fn next(&mut self, findings: &mut Findings) -> Result<Option<Request>, Error> {
        let size = size(self.version);
        loop {
            let mut bytes = Vec::with_capacity(size);
            let mut take = std::io::Read::take(&mut self.bytes, size as u64);
            std::io::Read::read_to_end(&mut take, &mut bytes)?;
            if bytes.len() < size {
                if !bytes.is_empty() {
                    findings.warn(Warning::CutRecord { bytes: bytes.len() as u64 });
                }
                if self.left_out > 0 {
                    findings.warn(Warning::LinesLeftOut { count: self.left_out });
                }
                return Ok(None);
            }
            let record = Record { bytes: &bytes, version: self.version };
            let (found, version) = (record.version(), self.version);
            if found != u16::from(version) {
                let what = format!("a record of version {found}: all are of {version} so far");
                return Err(Error::at(Place::Byte(self.at), what));
            }
            self.at += size as u64;
            // Others move no data.
            let Some(op) = record.op() else {
                self.left_out += 1;
                continue;
            };
            let arrived = u64::from_le_bytes(record.field([24, 24])).saturating_mul(US);
            let response = (version == 2).then(|| u64::from_le_bytes(record.field([24, 32])));
            let response = response.map(|us| us.saturating_mul(US));
            let offset = u64::from_le_bytes(record.field([16, 16])).saturating_mul(SECTOR);
            let context = findings.context(b"disk");
            return Ok(Some(Request {
                completed: response.map(|response| arrived.saturating_add(response)),
                ..Request::new(arrived, context, op, offset, record.len())
            }));
        }
    }
}
