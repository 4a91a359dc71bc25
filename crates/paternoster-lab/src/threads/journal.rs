//! The journal of a file system, as far as its commits take time.
//!
//! ```text
//!   fsync ──▶ commit 7 ──▶ 2 blocks ──▶ flush ──▶ commit block, durable ──▶ who waited goes on
//!   fsync meanwhile ──▶ commit 8, with all others that ask until 7 is done
//! ```
//!
//! dbench has another journal (`dbench/journal.rs`). A commit here is as long whoever waits for it,
//! its blocks are I/Os of their own, and the last one is durable (FUA). There a commit grows with
//! the clients that wait, its blocks are one write, and a flush follows the last one. What they
//! share is the count of commits.

use paternoster::{BioFlags, Op, Sector, SectorCount};

use super::system::System;
use crate::sim::{Action, Io};

/// Sectors of a block.
const BLOCK: u32 = 8;

/// Blocks of a commit before its last one: a description and the metadata of a file.
const BLOCKS: u32 = 2;

/// Where the journal lies on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalPlace {
    /// Its first sector.
    pub start: Sector,
    /// How long it is.
    pub sectors: SectorCount,
}

/// The journal.
#[derive(Debug)]
pub(super) struct Journal {
    place: JournalPlace,
    /// Where its next block goes, from its start.
    next: u32,
    /// The last commit that is done, and the last one that was asked for.
    committed: u64,
    asked: u64,
    phase: Phase,
    /// Its I/Os under way.
    under_way: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Idle,
    /// So many blocks are left before the flush.
    Blocks(u32),
    Flush,
    LastBlock,
}

impl Journal {
    pub(super) fn new(place: JournalPlace) -> Self {
        let phase = Phase::Idle;
        Self { place, next: 0, committed: 0, asked: 0, phase, under_way: 0 }
    }

    pub(super) fn place(&self) -> JournalPlace {
        self.place
    }

    /// Has what was done so far committed. Returns the number of the commit that does that: one
    /// that runs does not.
    pub(super) fn ask(&mut self) -> u64 {
        let is_running = self.phase != Phase::Idle;
        let number = self.committed + 1 + u64::from(is_running);
        self.asked = self.asked.max(number);
        number
    }

    pub(super) fn has_committed(&self, number: u64) -> bool {
        self.committed >= number
    }

    /// One of its I/Os has completed.
    pub(super) fn completed(&mut self) {
        self.under_way -= 1;
    }

    /// What it does next. Returns the I/O, without a name; nothing where it waits.
    pub(super) fn step(&mut self) -> Option<Io> {
        if self.under_way > 0 && !matches!(self.phase, Phase::Blocks(1..)) {
            return None;
        }
        let (phase, io) = match self.phase {
            Phase::Idle if self.asked > self.committed => (Phase::Blocks(BLOCKS), None),
            Phase::Idle => return None,
            Phase::Blocks(0) => (Phase::Flush, Some(flush())),
            Phase::Blocks(left) => (Phase::Blocks(left - 1), Some(self.block(BioFlags::SYNC))),
            Phase::Flush => (Phase::LastBlock, Some(self.block(BioFlags::SYNC | BioFlags::FUA))),
            Phase::LastBlock => {
                self.committed += 1;
                (Phase::Idle, None)
            }
        };
        self.phase = phase;
        match io {
            Some(io) => {
                self.under_way += 1;
                Some(io)
            }
            None => self.step(),
        }
    }

    /// The next block is written; behind the last one of the journal, its first follows.
    fn block(&mut self, flags: BioFlags) -> Io {
        if self.next + BLOCK > self.place.sectors.0 {
            self.next = 0;
        }
        let sector = Sector(self.place.start.0 + u64::from(self.next));
        self.next += BLOCK;
        let sectors = SectorCount(BLOCK);
        Io { name: 0, op: Op::Write, flags, sector, sectors, io_prio: None }
    }
}

/// A flush, without a name.
pub(super) fn flush() -> Io {
    let (flags, sectors) = (BioFlags::empty(), SectorCount(0));
    Io { name: 0, op: Op::Flush, flags, sector: Sector(0), sectors, io_prio: None }
}

impl System {
    /// What the task of the journal does next.
    pub(super) fn journal_on(&mut self) -> Action {
        let name = self.name();
        let Some(journal) = &mut self.journal else { return Action::Wait };
        let before = journal.committed;
        let io = journal.step();
        if journal.committed > before {
            self.wake_committed();
        }
        match io {
            Some(io) => {
                self.journal_submits(name);
                Action::Submit(Io { name, ..io })
            }
            None => Action::Wait,
        }
    }
}
