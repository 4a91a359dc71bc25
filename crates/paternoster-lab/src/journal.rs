//! The journal of a file system, as far as its commits take time.
//!
//! ```text
//!   fsync ──▶ commit 7 ──▶ blocks ──▶ flush ──▶ commit block, durable ──▶ those that waited go on
//!   fsync meanwhile ──▶ commit 8, with all others that ask until 7 is done
//! ```
//!
//! The last block is durable by itself (FUA), or by a flush behind it.

use std::collections::VecDeque;

use paternoster::{BioFlags, Op, Sector, SectorCount};

use crate::sim::Io;

/// Sectors of a block.
pub(crate) const BLOCK: u32 = 8;

/// Where a journal lies on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalPlace {
    /// Its first sector.
    pub start: Sector,
    /// How long it is.
    pub sectors: SectorCount,
}

/// What a commit writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommitForm {
    /// Blocks before the last one.
    pub(crate) blocks: u32,
    /// As many more for each that waits for the commit.
    pub(crate) waiter_blocks: u32,
    /// Whether these blocks are one write, or each is one.
    pub(crate) in_one: bool,
    /// Whether the last block is written with FUA; otherwise a flush follows it.
    pub(crate) fua: bool,
}

/// The journal.
#[derive(Debug)]
pub(crate) struct Journal {
    place: JournalPlace,
    form: CommitForm,
    /// Where its next block goes, from its start.
    next: u32,
    /// How many commits are done.
    committed: u64,
    is_running: bool,
    /// How many wait for the commit after the one that runs.
    waiters: u32,
    /// What is left of the commit that runs: I/Os, and whether each waits for all before it.
    left: VecDeque<(Io, bool)>,
    /// Its I/Os under way.
    under_way: u32,
}

impl Journal {
    pub(crate) fn new(place: JournalPlace, form: CommitForm) -> Self {
        Self {
            place,
            form,
            next: 0,
            committed: 0,
            is_running: false,
            waiters: 0,
            left: VecDeque::new(),
            under_way: 0,
        }
    }

    pub(crate) fn place(&self) -> JournalPlace {
        self.place
    }

    /// Has what was done so far committed. Returns the number of the commit that does that: one
    /// that runs does not.
    pub(crate) fn ask(&mut self) -> u64 {
        self.waiters += 1;
        self.committed + 1 + u64::from(self.is_running)
    }

    pub(crate) fn has_committed(&self, number: u64) -> bool {
        self.committed >= number
    }

    pub(crate) fn is_running(&self) -> bool {
        self.is_running
    }

    /// One of its I/Os has completed.
    pub(crate) fn completed(&mut self) {
        self.under_way -= 1;
    }

    /// What its task does next. Returns whether a commit is done, and the next I/O, without a name;
    /// none where it waits.
    pub(crate) fn step(&mut self) -> (bool, Option<Io>) {
        let is_done = self.is_running && self.left.is_empty() && self.under_way == 0;
        if is_done {
            self.committed += 1;
            self.is_running = false;
        }
        if !self.is_running && self.waiters > 0 {
            self.begin();
        }
        let next = self.left.front().copied();
        let next = next.filter(|&(_, waits)| !waits || self.under_way == 0);
        if next.is_some() {
            self.left.pop_front();
            self.under_way += 1;
        }
        (is_done, next.map(|(io, _)| io))
    }

    /// Begins the commit for those that wait.
    fn begin(&mut self) {
        self.is_running = true;
        let CommitForm { blocks, waiter_blocks, in_one, fua } = self.form;
        let blocks = blocks + waiter_blocks * std::mem::take(&mut self.waiters);
        let writes = if in_one { 1 } else { blocks };
        for _ in 0..writes {
            let io = self.write(blocks / writes, BioFlags::SYNC);
            self.left.push_back((io, false));
        }
        let durable = if fua { BioFlags::FUA } else { BioFlags::empty() };
        let last = self.write(1, BioFlags::SYNC | durable);
        self.left.extend([(flush(), true), (last, true)]);
        if !fua {
            self.left.push_back((flush(), true));
        }
    }

    /// The next blocks are written: in a row, from the start of the journal where they do not fit
    /// before its end.
    fn write(&mut self, blocks: u32, flags: BioFlags) -> Io {
        let sectors = SectorCount(blocks * BLOCK);
        if self.next + sectors.0 > self.place.sectors.0 {
            self.next = 0;
        }
        let sector = Sector(self.place.start.0 + u64::from(self.next));
        self.next += sectors.0;
        Io { name: 0, op: Op::Write, flags, sector, sectors, io_prio: None }
    }
}

/// A flush, without a name.
pub(crate) fn flush() -> Io {
    let (flags, sectors) = (BioFlags::empty(), SectorCount(0));
    Io { name: 0, op: Op::Flush, flags, sector: Sector(0), sectors, io_prio: None }
}
