//! What a block layer's tracer tells of a request at one point of its way.
//!
//! ```text
//!   Queued ─┬──▶ Started ─▶ Inserted ─▶ Issued ─▶ Completed, Done
//!           │                             └──▶ Requeued: issued once more
//!           └─▶ Merged into one that is queued, and issued and completed with it
//! ```

use std::collections::BTreeMap;

use paternoster::{BioFlags, Op};

use crate::error::Error;
use crate::findings::Findings;

/// A point of a request's way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Point {
    /// Submitted: Q, or `block_bio_queue`.
    Queued,
    /// Counted by the kernel from here on: `block_io_start`.
    Started,
    /// Inserted into the scheduler: I, or `block_rq_insert`. What is issued at once is not.
    Inserted,
    /// Handed to the driver: D, or `block_rq_issue`.
    Issued,
    /// Taken back by the driver: R, or `block_rq_requeue`.
    Requeued,
    /// Done: C, or `block_rq_complete`.
    Completed,
    /// Counted by the kernel up to here: `block_io_done`.
    Done,
}

/// An event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    /// In ns, of the tracer's clock.
    pub(crate) time: u64,
    /// The number that the tracer gave it; 0 where it gives none.
    pub(crate) sequence: u32,
    pub(crate) point: Point,
    /// Major number in the upper half, minor in the lower.
    pub(crate) device: u64,
    pub(crate) sector: u64,
    /// In bytes.
    pub(crate) len: u64,
    pub(crate) kind: Kind,
    pub(crate) process: u32,
    pub(crate) error: u16,
}

/// What kind of I/O it is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(crate) op: Op,
    pub(crate) flags: BioFlags,
    pub(crate) ahead: bool,
}

/// Reads events in the order of the trace: those at a [`Point`] of a request's way.
pub(crate) trait Events: Send {
    fn next(&mut self, findings: &mut Findings) -> Result<Option<Event>, Error>;

    /// What there is to say of all events that were read, also of those that are at no point.
    fn tally(&self) -> Tally;

    /// The name of a process that is none, but stands for a context.
    fn name_of(&self, _process: u32) -> Option<&[u8]> {
        None
    }
}

/// The times and numbers of events.
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    /// The first time, in ns.
    pub(crate) begin: u64,
    /// How many numbers are missing.
    pub(crate) lost: u64,
    /// Whose the last event was, and the highest number of these.
    last: Option<(Counter, u64)>,
    /// The highest number of each other.
    others: BTreeMap<Counter, u64>,
}

/// Who counts events: a tracer of a device, on a processor.
pub(crate) type Counter = (u64, u32);

impl Tally {
    pub(crate) fn new() -> Self {
        Self { begin: u64::MAX, lost: 0, last: None, others: BTreeMap::new() }
    }

    /// An event at that time, with the number that was given to it.
    #[inline]
    pub(crate) fn add(&mut self, time: u64, number: Option<(Counter, u64)>) {
        self.begin = self.begin.min(time);
        let Some((counter, number)) = number else { return };
        let highest = match self.last {
            Some((last, highest)) if last == counter => highest,
            last => {
                self.others.extend(last);
                self.others.remove(&counter).unwrap_or(number)
            }
        };
        self.lost += number.saturating_sub(highest.saturating_add(1));
        self.last = Some((counter, number.max(highest)));
    }

    /// The events of both.
    pub(crate) fn and(self, other: &Self) -> Self {
        Self { begin: self.begin.min(other.begin), lost: self.lost + other.lost, ..self }
    }
}

/// An errno, which kernels print and store as a negative number of 16 bits, too.
pub(crate) fn errno(number: u16) -> u16 {
    if number > 1 << 15 { number.wrapping_neg() } else { number }
}

impl Event {
    /// `259,0`.
    pub(crate) fn device_name(device: u64) -> String {
        format!("{},{}", device >> 32, device & 0xffff_ffff)
    }

    /// The device of that name.
    pub(crate) fn device_of(name: &[u8]) -> Option<u64> {
        let comma = name.iter().position(|&byte| byte == b',')?;
        let number = |digits| crate::lines::whole(digits).filter(|&number| number < 1 << 32);
        Some(number(&name[..comma])? << 32 | number(&name[comma + 1..])?)
    }
}

impl Kind {
    /// What RWBS says, as blkparse(1) and the tracepoints of the block layer print it: an operation
    /// among its modifiers. None where there is no operation of data in it.
    pub(crate) fn of_rwbs(rwbs: &[u8], len: u64) -> Option<Self> {
        let mut flags = BioFlags::empty();
        let mut op = None;
        let mut ahead = false;
        for (at, letter) in rwbs.iter().enumerate() {
            match letter {
                b'R' => op = Some(Op::Read),
                b'W' => op = Some(Op::Write),
                b'D' => op = Some(Op::Discard),
                b'F' if op.is_none() && at == 0 => flags |= BioFlags::PREFLUSH,
                b'F' => flags |= BioFlags::FUA,
                b'S' => flags |= BioFlags::SYNC,
                b'M' => flags |= BioFlags::PRIO,
                b'A' => ahead = true,
                // Of zeroes; kernels that have no letter for these print N, as of nothing.
                b'Z' => op = Some(Op::WriteZeroes),
                b'N' => op = op.or(Some(Op::WriteZeroes)),
                // E of a secure erase, which is a discard; U of an atomic write, B of a barrier.
                b'E' | b'U' | b'B' => {}
                _ => return None,
            }
        }
        // A flush is a write of nothing, or has no operation at all. What ends a write with FUA
        // has no length either.
        if len == 0 {
            let is_flush = flags.contains(BioFlags::PREFLUSH);
            return is_flush.then_some(Self { op: Op::Flush, flags: BioFlags::empty(), ahead });
        }
        Some(Self { op: op?, flags, ahead })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rwbs_is_an_operation_among_modifiers() {
        let of = |rwbs: &str, len| Kind::of_rwbs(rwbs.as_bytes(), len);
        let kind = |op, flags, ahead| Some(Kind { op, flags, ahead });
        assert_eq!(of("RA", 4096), kind(Op::Read, BioFlags::empty(), true));
        assert_eq!(of("WS", 512), kind(Op::Write, BioFlags::SYNC, false));
        let all = BioFlags::PREFLUSH | BioFlags::FUA | BioFlags::SYNC | BioFlags::PRIO;
        assert_eq!(of("FWFSM", 4096), kind(Op::Write, all, false));
        assert_eq!(of("FWS", 0), kind(Op::Flush, BioFlags::empty(), false));
        assert_eq!(of("FF", 0), kind(Op::Flush, BioFlags::empty(), false));
        assert_eq!(of("DE", 4096), kind(Op::Discard, BioFlags::empty(), false));
        assert_eq!(of("FN", 0), kind(Op::Flush, BioFlags::empty(), false));
        assert_eq!(of("WFS", 0), None);
        assert_eq!(of("WFSU", 512), kind(Op::Write, BioFlags::FUA | BioFlags::SYNC, false));
        assert_eq!(of("NS", 4096), kind(Op::WriteZeroes, BioFlags::SYNC, false));
        assert_eq!(of("N", 0), None);
        assert_eq!(of("R!", 8), None);
    }

    #[test]
    fn device_has_two_numbers() {
        assert_eq!(Event::device_of(b"259,3"), Some(259 << 32 | 3));
        assert_eq!(Event::device_name(259 << 32 | 3), "259,3");
        assert_eq!(Event::device_of(b"259"), None);
        assert_eq!(Event::device_of(b"8,-1"), None);
    }
}
