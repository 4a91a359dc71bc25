//! A solid-state drive: a controller that takes one command at a time, dies that work side by side,
//! a link, and a write buffer.
//!
//! ```text
//!   read    controller ──▶ the dies of its chunks ──▶ link ──▶ + fixed ──▶ done
//!   write   controller ──▶ link ──▶ room in the buffer ──▶ + fixed, buffered ──▶ done
//!                                      └──▶ dies, one after the other, program its chunks
//!   flush   controller ──▶ all that was written before is programmed ──▶ + fixed ──▶ done
//! ```
//!
//! Controller and link serve one command at a time, in order. A chunk lies on one die. Chunks in a
//! row lie on dies in a row, so that a long read has many dies at work; short reads far apart meet
//! on a die by chance, and wait for one another there. That chance, and not the number of dies, is
//! why such a drive needs many reads outstanding.

mod buffer;
mod die;
mod draw;
mod from_toml;
mod queue;
mod reading;
mod streams;
mod writing;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use paternoster::{Instant, Nanos, Sector, SectorCount};

use super::{Command, Completion, Model, Op, Spent};
use crate::random::{Chances, Who};
use buffer::WriteBuffer;
use die::Die;
use queue::Queue;
use streams::Streams;

pub use draw::Varying;
pub use queue::QueueParameters;

/// Bytes of a sector.
const SECTOR: u64 = 512;

/// How a solid-state drive is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SsdParameters {
    /// Commands that it takes at once.
    pub depth: u32,
    /// Which of them it works on.
    pub queue: QueueParameters,
    /// Commands whose end is remembered, as one that begins there is sequential; a sequential read
    /// has been read ahead.
    pub streams: u32,
    /// The sector behind the last one.
    pub end: Sector,
    /// How long the controller is busy with a command, before it takes the next one.
    pub controller: Nanos,
    /// Further time of every command, in which it keeps nothing busy.
    pub fixed: Nanos,
    /// Dies.
    pub dies: u32,
    /// Sectors in a row that lie on one die.
    pub chunk: SectorCount,
    /// How long a die reads a chunk.
    pub read: Varying,
    /// How long a die reads each chunk of a read of several.
    pub joined_read: Varying,
    /// Of so many of 2³² reads that find the drive idle, the first chunk takes `idle_hit`.
    pub idle_hits: u32,
    /// How long that takes.
    pub idle_hit: Nanos,
    /// In so many of 2³² reads of a chunk the die takes `rare_read` instead.
    pub rare_reads: u32,
    /// How long such a read takes.
    pub rare_read: Nanos,
    /// How long a die programs a chunk.
    pub program: Nanos,
    /// Whether a read suspends a program, or waits for its end.
    pub suspends: bool,
    /// Chunks in the write buffer.
    pub buffer: u32,
    /// How long a write takes to enter the buffer when it has room.
    pub buffered: Nanos,
    /// Further time of a flush, when all has been programmed.
    pub flush: Nanos,
    /// Bytes that the link moves a second.
    pub link_bytes_per_s: u64,
}

/// What is due at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    /// The dies have read what the command wants.
    Read(u32),
    /// The link has moved what the command writes.
    Written(u32),
    /// The command completes.
    Done(u32),
    /// A program of the die may have ended.
    Program(u32),
}

/// A command in the drive.
#[derive(Clone, Copy, Debug, Default)]
struct InDrive {
    transfer: Nanos,
    chunks: u32,
    durable: bool,
    /// Further time of a flush.
    flush: Nanos,
    spent: Spent,
}

/// A solid-state drive.
#[derive(Debug)]
pub struct Ssd {
    parameters: SsdParameters,
    queue: Queue,
    streams: Streams,
    /// Whether the last command found the drive idle, and has not read yet.
    found_idle: bool,
    controller_free: Instant,
    link_free: Instant,
    dies: Vec<Die>,
    /// Whether a program's end is on the agenda, of each die.
    programs: Vec<bool>,
    /// The die that programs next.
    next_die: u32,
    buffer: WriteBuffer,
    /// What is due, by time; what is due at one time in the order in which it was put here.
    agenda: BinaryHeap<Reverse<(Instant, u64, Due)>>,
    /// Reads that complete, in the order in which the link serves them. They are due as if they
    /// were on the agenda, which is the shorter by half.
    read: VecDeque<(Instant, u64, u32)>,
    sequence: u64,
    commands: Vec<InDrive>,
    chances: Chances,
}

impl Ssd {
    /// Makes an idle drive, whose times are drawn with that seed.
    pub fn new(parameters: SsdParameters, seed: u64) -> Self {
        let start = Instant::from_nanos(0);
        let dies = parameters.dies.max(1) as usize;
        Self {
            queue: Queue::new(parameters.queue),
            streams: Streams::new(parameters.streams),
            found_idle: false,
            controller_free: start,
            link_free: start,
            dies: (0..dies).map(|_| Die::new(start)).collect(),
            programs: vec![false; dies],
            next_die: 0,
            buffer: WriteBuffer::new(parameters.buffer),
            agenda: BinaryHeap::new(),
            read: VecDeque::new(),
            sequence: 0,
            commands: vec![InDrive::default(); parameters.depth as usize],
            chances: Chances::new(seed, Who::SolidState),
            parameters,
        }
    }

    /// Works on as many commands as it does at once.
    fn take(&mut self, now: Instant) {
        while let Some(command) = self.queue.take(now, &self.streams) {
            self.begin(now, command);
        }
    }

    /// Begins to work on a command.
    fn begin(&mut self, now: Instant, command: Command) {
        let Command { tag, op, durable, sectors, .. } = command;
        let SsdParameters { controller, fixed, link_bytes_per_s, buffered, .. } = self.parameters;
        let is_sequential = self.streams.note(&command);
        let bytes = u64::from(sectors.0) * SECTOR;
        let moves = matches!(op, Op::Read | Op::Write);
        let transfer = if moves { bytes * 1_000_000_000 / link_bytes_per_s.max(1) } else { 0 };
        let transfer = Nanos::new(transfer);
        let chunks = self.chunks(&command);
        let count = u32::try_from(chunks.end - chunks.start).unwrap_or(u32::MAX);
        let flush = if op == Op::Flush { self.parameters.flush } else { Nanos::ZERO };
        let mut overhead = controller + fixed + flush;
        if op == Op::Write {
            overhead += buffered;
        }
        let spent = Spent { transfer, overhead, ..Spent::default() };
        self.commands[tag as usize] = InDrive { transfer, chunks: count, durable, flush, spent };
        self.controller_free = self.controller_free.max(now) + controller;
        let from = self.controller_free;
        match op {
            Op::Read if is_sequential => self.schedule(from, Due::Read(tag)),
            Op::Read => {
                let mut draws = self.chances.of(&command);
                let (end, longest) = self.read_chunks(from, chunks, &mut draws);
                let spent = &mut self.commands[tag as usize].spent;
                spent.overhead += longest;
                self.schedule(end, Due::Read(tag));
            }
            Op::Write => {
                let end = self.transfer(from, tag);
                self.schedule(end, Due::Written(tag));
            }
            Op::Flush if !self.buffer.sync(tag) => {}
            Op::Flush | Op::Discard => self.schedule(from + flush + fixed, Due::Done(tag)),
        }
    }

    fn schedule(&mut self, at: Instant, due: Due) {
        self.sequence += 1;
        self.agenda.push(Reverse((at, self.sequence, due)));
    }

    /// The chunks of the command.
    fn chunks(&self, command: &Command) -> std::ops::Range<u64> {
        let chunk = u64::from(self.parameters.chunk.0.max(1));
        let end = command.sector.0 + u64::from(command.sectors.0);
        command.sector.0 / chunk..end.div_ceil(chunk)
    }

    /// The die on which a chunk lies: those in a row on dies in a row, beginning anywhere.
    fn die_of(&self, chunk: u64) -> usize {
        let dies = self.dies.len() as u64;
        // The multiplier is 2⁶⁴ by the golden ratio, which spreads rows evenly.
        let first = (chunk / dies).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        usize::try_from((chunk + first) % dies).expect("a die has a small number")
    }

    /// Moves the data of a command over the link, which is free for it from `at`. Returns when that
    /// is done.
    fn transfer(&mut self, at: Instant, tag: u32) -> Instant {
        self.link_free = self.link_free.max(at) + self.commands[tag as usize].transfer;
        self.link_free
    }

    fn handle(&mut self, at: Instant, due: Due) -> Option<u32> {
        let fixed = self.parameters.fixed;
        match due {
            Due::Read(tag) => {
                let end = self.transfer(at, tag);
                self.sequence += 1;
                self.read.push_back((end + fixed, self.sequence, tag));
            }
            Due::Written(tag) => {
                let chunks = self.commands[tag as usize].chunks;
                if self.buffer.write(tag, chunks) {
                    self.entered(at, tag, chunks);
                }
            }
            Due::Program(die) => self.program_due(at, die as usize),
            Due::Done(tag) => return Some(tag),
        }
        None
    }
}

impl Model for Ssd {
    fn depth(&self) -> u32 {
        self.parameters.depth
    }

    fn end(&self) -> Sector {
        self.parameters.end
    }

    fn rotational(&self) -> bool {
        false
    }

    fn submit(&mut self, now: Instant, command: Command) {
        self.found_idle = self.queue.is_idle();
        self.queue.add(now, command);
        self.take(now);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let due = self.agenda.peek().map(|Reverse((at, ..))| *at);
        let read = self.read.front().map(|(at, ..)| *at);
        match (due, read) {
            (Some(due), Some(read)) => Some(due.min(read)),
            (due, read) => due.or(read),
        }
    }

    fn poll(&mut self, now: Instant) -> Option<Completion> {
        loop {
            let due = self.agenda.peek().map(|Reverse((at, sequence, _))| (*at, *sequence));
            let read = self.read.front().map(|(at, sequence, _)| (*at, *sequence));
            let is_read = read.is_some_and(|read| due.is_none_or(|due| read < due));
            let (at, _) = if is_read { read? } else { due? };
            if at > now {
                return None;
            }
            let done = if is_read {
                self.read.pop_front().map(|(.., tag)| tag)
            } else {
                let Reverse((.., due)) = self.agenda.pop()?;
                self.handle(at, due)
            };
            if let Some(tag) = done {
                self.queue.done();
                self.take(at);
                return Some(Completion { tag, spent: self.commands[tag as usize].spent });
            }
        }
    }
}
