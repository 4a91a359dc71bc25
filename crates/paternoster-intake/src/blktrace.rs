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

use std::collections::HashMap;
use std::io::{BufRead, Read};

use paternoster::{BioFlags, Op};
use paternoster_trace::blktrace::{LAST_PROCESS, MAGIC, RECORD, category, code};

use crate::error::{Error, Place};
use crate::event::{Counter, Event, Events, Kind, Point, Tally, errno};
use crate::findings::{Findings, Warning};

const VERSIONS: [u8; 2] = [7, 8];

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

/// How much of a file is read at once, in bytes: some 1,300 records.
const PIECE: usize = 64 << 10;

/// The events of one file.
pub(crate) struct File {
    bytes: Box<dyn BufRead + Send>,
    /// What was read of it, of which the part from `begin` on is next.
    piece: Vec<u8>,
    begin: usize,
    /// Where the piece begins in the file.
    at: u64,
    tally: Tally,
    /// The names of contexts for which processes stand.
    names: HashMap<u32, Vec<u8>>,
}

impl File {
    pub(crate) fn new(bytes: Box<dyn BufRead + Send>) -> Self {
        Self {
            bytes,
            piece: Vec::new(),
            begin: 0,
            at: 0,
            tally: Tally::new(),
            names: HashMap::new(),
        }
    }

    /// What is next: so many bytes, or fewer at the end.
    fn ahead(&mut self, bytes: usize) -> Result<&[u8], Error> {
        if self.piece.len() - self.begin < bytes {
            self.piece.drain(..self.begin);
            self.at += self.begin as u64;
            self.begin = 0;
            let more = PIECE.max(bytes) - self.piece.len();
            (&mut self.bytes).take(more as u64).read_to_end(&mut self.piece)?;
        }
        Ok(&self.piece[self.begin..])
    }

    /// The next record that is an event of a request. None at the end, and before one that is cut.
    fn record(&mut self, findings: &mut Findings) -> Result<Option<Event>, Error> {
        loop {
            let at = self.at + self.begin as u64;
            let ahead = self.ahead(64)?;
            if ahead.is_empty() {
                return Ok(None);
            }
            let Some((version, big)) = magic(ahead) else {
                return Err(no_record(at, ahead));
            };
            let size = if version == 7 { RECORD } else { 64 };
            let Some(record) = ahead.get(..size) else {
                return Ok(self.cut(findings));
            };
            // A copy of the code for each byte order.
            let (told, pdu) = match (version, big) {
                (7, false) => Fields::<false> { record }.version_7(),
                (7, true) => Fields::<true> { record }.version_7(),
                (_, false) => Fields::<false> { record }.version_8(),
                (_, true) => Fields::<true> { record }.version_8(),
            };
            let whole = size + usize::from(pdu);
            if pdu > 0 && self.ahead(whole)?.len() < whole {
                return Ok(self.cut(findings));
            }
            // Notes have a time of their own, and no number.
            let Some((time, number, event)) = told else {
                self.note(size, whole, big);
                self.begin += whole;
                continue;
            };
            self.begin += whole;
            self.tally.add(time, Some(number));
            if event.is_some() {
                return Ok(event);
            }
        }
    }

    /// Keeps the name of a context that a note has.
    fn note(&mut self, size: usize, whole: usize, big: bool) {
        let (record, name) = self.piece[self.begin..][..whole].split_at(size);
        let at = if size == RECORD { [28, 32] } else { [32, 28] };
        let word = |at: usize| {
            if big { Fields::<true> { record }.u32(at) } else { Fields::<false> { record }.u32(at) }
        };
        let (action, pid) = (word(at[0]), word(at[1]));
        if action & 0xffff == code::NOTE_PROCESS && pid > LAST_PROCESS {
            let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
            self.names.insert(pid, name.to_owned());
        }
    }

    /// What is left is no whole record.
    fn cut(&mut self, findings: &mut Findings) -> Option<Event> {
        let bytes = (self.piece.len() - self.begin) as u64;
        findings.warn(Warning::CutRecord { bytes });
        self.begin = self.piece.len();
        None
    }
}

/// What a magic number is expected instead of.
fn no_record(at: u64, ahead: &[u8]) -> Error {
    let mut found = [0; 4];
    let bytes = ahead.len().min(4);
    found[..bytes].copy_from_slice(&ahead[..bytes]);
    let found = u32::from_le_bytes(found);
    Error::at(
        Place::Byte(at),
        format!(
            "{found:#010x} is found where a record of blktrace begins: 0x65617407 or 0x65617408, \
             in either byte order, is allowed"
        ),
    )
}

impl Events for File {
    fn next(&mut self, findings: &mut Findings) -> Result<Option<Event>, Error> {
        self.record(findings)
    }

    fn tally(&self) -> Tally {
        self.tally.clone()
    }

    fn name_of(&self, process: u32) -> Option<&[u8]> {
        self.names.get(&process).map(Vec::as_slice)
    }
}

/// What a record tells that is no note: its time, its number and who counts, and the event of a
/// request, if it is one.
type Told = (u64, (Counter, u64), Option<Event>);

/// The fields of a record; numbers may have their high byte first.
struct Fields<'a, const BIG: bool> {
    record: &'a [u8],
}

impl<const BIG: bool> Fields<'_, BIG> {
    fn bytes<const N: usize>(&self, at: usize) -> [u8; N] {
        let mut bytes: [u8; N] = self.record[at..at + N].try_into().expect("so many bytes");
        if BIG {
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

    /// What it tells, and how many bytes follow.
    fn version_7(&self) -> (Option<Told>, u16) {
        let action = self.u32(28);
        let told = self.told(action & 0xffff, action >> 16, [32, 36, 40, 44]);
        (told, self.u16(46))
    }

    fn version_8(&self) -> (Option<Told>, u16) {
        let action = self.u64(32);
        let low = |word: u64| u32::try_from(word & 0xffff_ffff).expect("32 bits");
        let told = self.told(low(action) & 0xffff, low(action >> 16), [28, 40, 44, 48]);
        (told, self.u16(50))
    }

    fn told(&self, action: u32, categories: u32, at: [usize; 4]) -> Option<Told> {
        let [pid, device, cpu, error] = at;
        if categories & category::NOTIFY != 0 {
            return None;
        }
        let device = self.u32(device);
        let device = u64::from(device >> 20) << 32 | u64::from(device & 0xf_ffff);
        let number = ((device, self.u32(cpu)), u64::from(self.u32(4)));
        let time = self.u64(8);
        let point = match action & !code::CGROUP {
            code::QUEUE => Point::Queued,
            code::INSERT => Point::Inserted,
            code::ISSUE => Point::Issued,
            code::REQUEUE => Point::Requeued,
            code::COMPLETE => Point::Completed,
            _ => return Some((time, number, None)),
        };
        let len = u64::from(self.u32(24));
        let event = kind(categories, len).map(|kind| Event {
            time,
            sequence: self.u32(4),
            point,
            device,
            sector: self.u64(16),
            len,
            kind,
            process: self.u32(pid),
            error: errno(self.u16(error)),
        });
        Some((time, number, event))
    }
}

/// What kind of I/O it is; none of a driver's own commands, which move no data.
fn kind(categories: u32, len: u64) -> Option<Kind> {
    let is = |bit: u32| categories & bit != 0;
    let op = match () {
        () if is(category::PC) => None?,
        () if len == 0 => is(category::FLUSH).then_some(Op::Flush)?,
        () if is(category::DISCARD) => Op::Discard,
        () if is(category::WRITE) => Op::Write,
        () => Op::Read,
    };
    let mut flags = BioFlags::empty();
    if op != Op::Flush {
        flags.set(BioFlags::SYNC, is(category::SYNC));
        flags.set(BioFlags::FUA, is(category::FUA));
        flags.set(BioFlags::PREFLUSH, is(category::FLUSH));
        flags.set(BioFlags::PRIO, is(category::META));
    }
    Some(Kind { op, flags, ahead: is(category::AHEAD) })
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

    fn tally(&self) -> Tally {
        self.files.iter().fold(Tally::new(), |all, (file, _)| all.and(&file.tally))
    }

    fn name_of(&self, process: u32) -> Option<&[u8]> {
        self.files.iter().find_map(|(file, _)| file.name_of(process))
    }
}
