//! A record of blktrace, version 7: what its readers and writers here share.
//!
//! ```text
//!    0 u32 magic 0x65617407      24 u32 bytes                            40 u32 cpu
//!    4 u32 sequence              28 u32 action: code | category << 16    44 u16 error
//!    8 u64 time in ns            32 u32 pid                              46 u16 bytes that follow
//!   16 u64 sector                36 u32 device: major << 20 | minor
//! ```
//!
//! Source: the kernel's interface to programs, `blktrace_api.h`, as blkparse(1) and others describe
//! it.

use std::time::SystemTime;

use paternoster::{BioFlags, Op};

/// The bytes of a sector.
pub const SECTOR: u64 = 512;

/// The magic number without the version, its lowest byte.
pub const MAGIC: u32 = 0x6561_7400;

/// The bytes of a record of version 7.
pub const RECORD: usize = 48;

/// The greatest number of a process (`PID_MAX_LIMIT`): greater ones stand for contexts that are no
/// processes, and have notes of their names.
pub const LAST_PROCESS: u32 = 1 << 22;

/// The device of what is none of the kernel's: 8,0.
pub const DEVICE: u32 = 8 << 20;

/// The codes of actions: points of a request's way.
pub mod code {
    /// Q: it was submitted.
    pub const QUEUE: u32 = 1;
    /// M: it was merged into one that waits, behind that.
    pub const BACK_MERGE: u32 = 2;
    /// F: it was merged into one that waits, before that.
    pub const FRONT_MERGE: u32 = 3;
    /// R: the driver gave it back, and gets it once more.
    pub const REQUEUE: u32 = 6;
    /// D: the device got it.
    pub const ISSUE: u32 = 7;
    /// C: it had completed.
    pub const COMPLETE: u32 = 8;
    /// I: the scheduler got it.
    pub const INSERT: u32 = 12;
    /// Of a note: the name of a process follows.
    pub const NOTE_PROCESS: u32 = 0;
    /// Of a note: what time of the day it was follows, as 32 bits of seconds and 32 of ns.
    pub const NOTE_TIMESTAMP: u32 = 1;
    /// A bit: the 8 bytes of a cgroup's number come before what follows.
    pub const CGROUP: u32 = 0x100;
}

/// The categories of actions: what kind of I/O it is.
pub mod category {
    /// Reads.
    pub const READ: u32 = 1;
    /// Writes.
    pub const WRITE: u32 = 2;
    /// Flushes the device's cache first.
    pub const FLUSH: u32 = 4;
    /// Somebody waits for it.
    pub const SYNC: u32 = 8;
    /// It is on its way to the scheduler.
    pub const QUEUE: u32 = 0x10;
    /// It is on its way to the device.
    pub const ISSUE: u32 = 0x40;
    /// It comes back.
    pub const COMPLETE: u32 = 0x80;
    /// It is of a file system or of a block device's file, as all that is of data.
    pub const FS: u32 = 0x100;
    /// It is a driver's own command.
    pub const PC: u32 = 0x200;
    /// No I/O: a note.
    pub const NOTIFY: u32 = 0x400;
    /// It is read ahead.
    pub const AHEAD: u32 = 0x800;
    /// Metadata of a file system.
    pub const META: u32 = 0x1000;
    /// Discards.
    pub const DISCARD: u32 = 0x2000;
    /// It is durable when it completes.
    pub const FUA: u32 = 0x8000;
}

/// A record. Its magic number says that it is one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Counts from 1; 0 of a note.
    pub sequence: u32,
    /// In ns.
    pub time: u64,
    /// Where its data begin, in sectors of 512 bytes.
    pub sector: u64,
    /// How much data there is.
    pub bytes: u32,
    /// One of [`code`] with some of [`category`], which stand in the upper half.
    pub action: u32,
    /// Whose it is.
    pub pid: u32,
    /// Major number times 2^20, and minor number.
    pub device: u32,
    /// The errno with which it completed.
    pub error: u16,
    /// How many bytes follow.
    pub follow: u16,
}

impl Record {
    /// Its bytes, of CPU 0.
    pub fn to_bytes(self) -> [u8; RECORD] {
        let mut bytes = [0; RECORD];
        bytes[0..4].copy_from_slice(&(MAGIC | 7).to_le_bytes());
        bytes[4..8].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.time.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.sector.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.bytes.to_le_bytes());
        bytes[28..32].copy_from_slice(&self.action.to_le_bytes());
        bytes[32..36].copy_from_slice(&self.pid.to_le_bytes());
        bytes[36..40].copy_from_slice(&self.device.to_le_bytes());
        bytes[44..46].copy_from_slice(&self.error.to_le_bytes());
        bytes[46..48].copy_from_slice(&self.follow.to_le_bytes());
        bytes
    }
}

/// How many bytes the name of a process has, with a zero behind it.
const COMMAND: usize = 16;

/// The note that names a process; of a longer name, its first bytes.
pub fn process_note(time: u64, pid: u32, name: &str) -> [u8; RECORD + COMMAND] {
    let mut command = [0; COMMAND];
    let len = name.len().min(COMMAND - 1);
    command[..len].copy_from_slice(&name.as_bytes()[..len]);
    note(code::NOTE_PROCESS, time, pid, &command)
}

/// The note that says what time of the day it was at the recording's first.
pub fn timestamp_note(at: SystemTime) -> [u8; RECORD + 8] {
    let since = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    // The seconds are 32 bits in this form.
    let seconds = u32::try_from(since.as_secs()).unwrap_or(u32::MAX);
    let [seconds, nanos] = [seconds, since.subsec_nanos()].map(u32::to_le_bytes);
    let mut of_day = [0; 8];
    of_day[..4].copy_from_slice(&seconds);
    of_day[4..].copy_from_slice(&nanos);
    note(code::NOTE_TIMESTAMP, 0, 0, &of_day)
}

/// A note with what follows it, which is all but the bytes of a record.
fn note<const BYTES: usize>(what: u32, time: u64, pid: u32, follows: &[u8]) -> [u8; BYTES] {
    let note = Record {
        time,
        action: what | category::NOTIFY << 16,
        pid,
        follow: u16::try_from(follows.len()).expect("it is short"),
        ..Record::default()
    };
    let mut bytes = [0; BYTES];
    bytes[..RECORD].copy_from_slice(&note.to_bytes());
    bytes[RECORD..].copy_from_slice(follows);
    bytes
}

/// The category of an I/O.
pub fn category_of(op: Op, flags: BioFlags, ahead: bool) -> u32 {
    let of_op = match op {
        Op::Read => category::READ,
        Op::Discard => category::WRITE | category::DISCARD,
        Op::Flush => category::WRITE | category::FLUSH,
        _ => category::WRITE,
    };
    let of_flags = [
        (flags.contains(BioFlags::PREFLUSH), category::FLUSH),
        (flags.contains(BioFlags::FUA), category::FUA),
        (flags.contains(BioFlags::SYNC), category::SYNC),
        (flags.contains(BioFlags::PRIO), category::META),
        (ahead, category::AHEAD),
    ];
    let of_op = of_op | category::FS;
    of_flags.into_iter().filter(|(is, _)| *is).fold(of_op, |all, (_, bit)| all | bit)
}
