//! blktrace's binary files, versions 7 and 8, of either byte order: a file a processor, or one of
//! all as `blkparse -d` writes it.
//!
//! ```text
//!   version 7, 48 bytes             version 8, 64 bytes
//!    0 u32 magic 0x65617407          0 u32 magic 0x65617408
//!    4 u32 sequence                  4 u32 sequence
//!    8 u64 time in ns                8 u64 time in ns
//!   16 u64 sector                   16 u64 sector
//!   24 u32 bytes                    24 u32 bytes
//!   28 u32 action                   28 u32 pid
//!   32 u32 pid                      32 u64 action
//!   36 u32 device                   40 u32 device
//!   40 u32 cpu                      44 u32 cpu
//!   44 u16 error, u16 pdu bytes     48 u16 error, u16 pdu bytes, 12 bytes of nothing
//! ```
//!
//! `pdu` bytes follow. A pid of a completion is of who was interrupted by it.

use std::io::{BufRead, Read as _};

use paternoster::{BioFlags, Op};

use crate::error::{Error, Place};
use crate::event::{Event, Events, Kind, Number, Point};
use crate::findings::{Findings, Warning};

const MAGIC: u32 = 0x6561_7400;
const VERSIONS: [u8; 2] = [7, 8];

/// Codes of actions.
const QUEUE: u32 = 1;
const ISSUE: u32 = 7;
const COMPLETE: u32 = 8;
const INSERT: u32 = 11;
/// A note's action is of this category.
const NOTIFY: u32 = 0x400;
/// The 8 bytes of a cgroup's number come before the rest of the pdu.
const CGROUP: u32 = 0x100;

/// Categories.
const WRITE: u32 = 2;
const FLUSH: u32 = 4;
const SYNC: u32 = 8;
const AHEAD: u32 = 0x800;
const META: u32 = 0x1000;
const DISCARD: u32 = 0x2000;
const FUA: u32 = 0x8000;

/// Whether a trace that begins so is one of blktrace.
pub(crate) fn matches(head: &[u8]) -> bool {
    magic(head).is_some()
}

/// The version, and whether numbers have their high byte first.
fn magic(record: &[u8]) -> Option<(u8, bool)> {
    let word: [u8; 4] = record.get(..4)?.try_into().ok()?;
    for (number, big) in [(u32::from_le_bytes(word), false), (u32::from_be_bytes(word), true)] {
        let version = number.to_le_bytes()[0];
        if number & !0xff == MAGIC && VERSIONS.contains(&version) {
            return Some((version, big));
        }
    }
    None
}

/// The events of one file.
pub(crate) struct File {
    bytes: Box<dyn BufRead + Send>,
    /// Where the next record begins.
    at: u64,
}

impl File {
    pub(crate) fn new(bytes: Box<dyn BufRead + Send>) -> Self {
        Self { bytes, at: 0 }
    }

    /// Reads so many bytes, or fewer at the end.
    fn read(&mut self, into: &mut [u8]) -> Result<usize, Error> {
        let mut done = 0;
        while done < into.len() {
            match self.bytes.read(&mut into[done..]) {
                Ok(0) => break,
                Ok(read) => done += read,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(done)
    }

    /// The next event. None at the end, and in front of a record that is cut.
    fn record(&mut self, findings: &mut Findings) -> Result<Option<Event>, Error> {
        let mut record = [0; 64];
        let read = self.read(&mut record[..48])?;
        if read == 0 {
            return Ok(None);
        }
        let cut = |findings: &mut Findings, bytes: usize| {
            findings.warn(Warning::CutRecord { bytes: bytes as u64 });
            Ok(None)
        };
        let Some((version, big)) = magic(&record) else {
            let found = u32::from_le_bytes([record[0], record[1], record[2], record[3]]);
            return Err(Error::at(
                Place::Byte(self.at),
                format!(
                    "{found:#010x} is found where a record of blktrace begins: 0x65617407 or \
                         0x65617408, in either byte order, is allowed"
                ),
            ));
        };
        if read < 48 {
            return cut(findings, read);
        }
        let mut size = 48;
        if version == 8 {
            size += self.read(&mut record[48..])?;
            if size < 64 {
                return cut(findings, size);
            }
        }
        let fields = Fields { record: &record, big };
        let (event, pdu) = if version == 7 { fields.version_7() } else { fields.version_8() };
        let mut skipped = 0;
        while skipped < u64::from(pdu) {
            let here = self.bytes.fill_buf()?.len() as u64;
            if here == 0 {
                return cut(findings, size + usize::try_from(skipped).expect("a pdu is short"));
            }
            let part = here.min(u64::from(pdu) - skipped);
            self.bytes.consume(usize::try_from(part).expect("it is in a buffer"));
            skipped += part;
        }
        self.at += size as u64 + u64::from(pdu);
        Ok(Some(event))
    }
}

impl Events for File {
    fn next(&mut self, findings: &mut Findings) -> Result<Option<Event>, Error> {
        loop {
            match self.record(findings)? {
                // Notes have a time of their own, and no number.
                Some(event) if event.number.is_none() => {}
                event => return Ok(event),
            }
        }
    }
}

/// The fields of a record.
struct Fields<'a> {
    record: &'a [u8; 64],
    big: bool,
}

impl Fields<'_> {
    fn bytes<const N: usize>(&self, at: usize) -> [u8; N] {
        let mut bytes: [u8; N] = self.record[at..at + N].try_into().expect("so many bytes");
        if self.big {
            bytes.reverse();
        }
        bytes
    }

    fn u16(&self, at: usize) -> u16 {
        u16::from_le_bytes(self.bytes(at))
    }

    fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.bytes(at))
    }

    fn u64(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.bytes(at))
    }

    /// The event, and how many bytes follow.
    fn version_7(&self) -> (Event, u16) {
        let action = self.u32(28);
        let event = self.event(action & 0xffff, action >> 16, [32, 36, 40, 44]);
        (event, self.u16(46))
    }

    fn version_8(&self) -> (Event, u16) {
        let action = self.u64(32);
        let low = |word: u64| u32::try_from(word & 0xffff_ffff).expect("32 bits");
        let event = self.event(low(action) & 0xffff, low(action >> 16), [28, 40, 44, 48]);
        (event, self.u16(50))
    }

    fn event(&self, code: u32, category: u32, [pid, device, cpu, error]: [usize; 4]) -> Event {
        let is_note = category & NOTIFY != 0;
        let len = u64::from(self.u32(24));
        let device = self.u32(device);
        let kind = kind(category, len);
        let point = match code & !CGROUP {
            QUEUE => Point::Queued,
            INSERT => Point::Inserted,
            ISSUE => Point::Issued,
            COMPLETE => Point::Completed,
            _ => Point::Other,
        };
        let number = Number { cpu: self.u32(cpu), sequence: u64::from(self.u32(4)) };
        Event {
            time: self.u64(8),
            number: (!is_note).then_some(number),
            // What is of no data is of a driver's own commands.
            point: if kind.is_some() { point } else { Point::Other },
            device: u64::from(device >> 20) << 32 | u64::from(device & 0xf_ffff),
            sector: self.u64(16),
            len,
            kind: kind.unwrap_or(Kind { op: Op::Flush, flags: BioFlags::empty(), ahead: false }),
            process: self.u32(pid),
            error: self.u16(error),
        }
    }
}

fn kind(category: u32, len: u64) -> Option<Kind> {
    let is = |bit: u32| category & bit != 0;
    let op = match () {
        () if len == 0 => is(FLUSH).then_some(Op::Flush)?,
        () if is(DISCARD) => Op::Discard,
        () if is(WRITE) => Op::Write,
        () => Op::Read,
    };
    let mut flags = BioFlags::empty();
    if op != Op::Flush {
        flags.set(BioFlags::SYNC, is(SYNC));
        flags.set(BioFlags::FUA, is(FUA));
        flags.set(BioFlags::PREFLUSH, is(FLUSH));
        flags.set(BioFlags::PRIO, is(META));
    }
    Some(Kind { op, flags, ahead: is(AHEAD) })
}

/// The events of the files of all processors, by their times.
pub(crate) struct Merged {
    files: Vec<(File, Option<Event>)>,
    has_begun: bool,
}

impl Merged {
    pub(crate) fn new(files: Vec<File>) -> Self {
        let files = files.into_iter().map(|file| (file, None)).collect();
        Self { files, has_begun: false }
    }
}

impl Events for Merged {
    fn next(&mut self, findings: &mut Findings) -> Result<Option<Event>, Error> {
        if !self.has_begun {
            self.has_begun = true;
            for (file, next) in &mut self.files {
                *next = file.next(findings)?;
            }
        }
        let by_time = |(_, next): &&mut (File, Option<Event>)| next.map_or(u64::MAX, |it| it.time);
        let Some((file, next)) = self.files.iter_mut().min_by_key(by_time) else { return Ok(None) };
        let Some(event) = *next else { return Ok(None) };
        *next = file.next(findings)?;
        Ok(Some(event))
    }
}
